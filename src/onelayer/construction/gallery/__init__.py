"""The gallery: functions that one layer computes with a proved error, each with every head explained.

Every entry returns an `Approximation`: an ordinary model, a certificate whose bound a lemma proves, and in `facts.story` a
paragraph on what its heads do. Entries of `any_length` return a `SequenceLayer` for every length up to the largest.
"""

from collections.abc import Callable

from ...approximation import Approximation
from . import any_length
from .linear import affine, clip, mean
from .order import absolute_difference, maximum, median, minimum, running_max, sort, top_k
from .routing import permute, reverse, shift
from .sets import deep_set
from .tokens import copy_where, first_occurrence, histogram, majority, parity

_ORDER = (sort, maximum, minimum, median, top_k, absolute_difference, running_max)
_NUMBERS = (clip, mean, affine, deep_set, permute, reverse, shift)
_TOKENS = (histogram, first_occurrence, copy_where, parity, majority)
ENTRIES: dict[str, Callable[..., Approximation]] = {f.__name__: f for f in (*_ORDER, *_NUMBERS, *_TOKENS)}

__all__ = ["any_length", *sorted(ENTRIES)]


def __dir__() -> list[str]:
    return __all__
