"""The same layer with linear, sparse or adaptive attention, on a CPU or a GPU."""
