"""Circuits: the parts of a layer, how they are connected, and what is proved about the layer without each of them."""
