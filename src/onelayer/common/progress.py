"""Progress: what long work calls with the name of its stage and the fraction that is done."""

from collections.abc import Callable

Progress = Callable[[str, float], None]
