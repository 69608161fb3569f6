"""Applications: the command line and the explorer."""
