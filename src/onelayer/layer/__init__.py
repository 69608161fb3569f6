"""The mathematics of one layer: heads and values, the weights they become, their real function, and floating point."""
