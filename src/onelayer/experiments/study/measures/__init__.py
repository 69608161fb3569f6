"""The measures that studies can name, and the modules that register them when they are first asked for."""

import importlib

from ....common.errors import InputError
from .registry import REGISTERED, Measure, Point, Result, measure

__all__ = ["HOMES", "Measure", "Point", "Result", "everything", "found", "measure"]

# name → module in this package
HOMES = {
    "attention": "attention",
    "construct": "construction",
    "contest": "contest",
    "depth": "deep",
    "sample": "training",
    "sorting": "deep",
    "train": "training",
}


def found(name: str) -> Measure:
    """The measure of that name."""
    if name not in REGISTERED and name in HOMES:
        importlib.import_module(f".{HOMES[name]}", __name__)
    if name not in REGISTERED:
        raise InputError(
            f"a measure among {', '.join(sorted({*HOMES, *REGISTERED}))}", repr(name), "choose one of them"
        )
    return REGISTERED[name]


def everything() -> list[Measure]:
    """All measures, by name."""
    return [found(name) for name in sorted({*HOMES, *REGISTERED})]
