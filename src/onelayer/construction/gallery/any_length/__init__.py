"""The gallery for sequences of any length: one set of weights, proved for every length up to the largest."""

from collections.abc import Callable

from ....sequence_layer import SequenceLayer
from .brackets import balanced, depth
from .induction import induction
from .listed_functions import composition
from .numbers import maximum, mean, minimum, running_max, running_mean, shift
from .recall import look_up, reverse
from .sorting import sort
from .token_layers import copy_where, first_occurrence, histogram, majority

_NUMBERS = (mean, running_mean, maximum, minimum, running_max, shift, sort)
_TOKENS = (histogram, majority, first_occurrence, copy_where, look_up, reverse, depth, balanced, induction, composition)
ENTRIES: dict[str, Callable[..., SequenceLayer]] = {f.__name__: f for f in (*_NUMBERS, *_TOKENS)}
__all__ = [
    "ENTRIES", "balanced", "composition", "copy_where", "depth", "first_occurrence", "histogram", "induction", "look_up",
    "majority", "maximum", "mean", "minimum", "reverse", "running_max", "running_mean", "shift", "sort",
]  # fmt: skip
