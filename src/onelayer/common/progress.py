"""Progress: a callback that long work calls with the name of its stage and the fraction done."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
