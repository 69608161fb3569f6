"""Applications on top of the library: the command line."""
