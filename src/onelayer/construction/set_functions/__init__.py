"""Functions of sets of any size up to a largest one: sums, means and extremes over the set, and functions of them."""

from .construction import set_function as set_function
