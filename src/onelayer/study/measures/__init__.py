"""The measures that studies can name: importing this package registers them."""

from ...errors import InputError
from . import attention, construction, training
from .registry import REGISTERED, Measure, Point, Result, Value, measure

__all__ = ["Measure", "Point", "Result", "Value", "attention", "construction", "found", "measure", "training"]


def found(name: str) -> Measure:
    """The measure of that name."""
    if name not in REGISTERED:
        raise InputError(f"a measure among {', '.join(sorted(REGISTERED))}", repr(name), "choose one of them")
    return REGISTERED[name]
