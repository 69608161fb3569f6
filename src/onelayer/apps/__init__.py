"""Applications on top of the library: the command line and the explorer in the browser."""
