"""The gallery for sequences of any length: one set of weights, proved for every length up to the largest."""

from collections.abc import Callable

from ....sequence_layer import SequenceLayer
from .numbers import maximum, mean, minimum, running_max, running_mean, shift

ENTRIES: dict[str, Callable[..., SequenceLayer]] = {
    f.__name__: f for f in (mean, running_mean, maximum, minimum, running_max, shift)
}
__all__ = ["ENTRIES", *ENTRIES]
