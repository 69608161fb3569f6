"""What one layer computes when its block is applied several times: each step proved, and a unit that says when to stop."""

from .pointers import follow_pointers
from .squaring import square

__all__ = ["follow_pointers", "square"]
