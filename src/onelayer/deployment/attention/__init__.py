"""The same layer with linear, sparse or adaptive attention, on the CPU or a GPU."""
