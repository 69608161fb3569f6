"""The measures that studies can name; their modules are imported, and register them, on first use."""

import importlib

from ....common.checks import require_choice
from .registry import REGISTERED, Measure, Point, Result, measure

__all__ = ["MODULES", "Measure", "Point", "Result", "all_measures", "measure", "measure_of"]

# name → module in this package
MODULES = {
    "attention": "attention",
    "construct": "construction",
    "contest": "contest",
    "context": "in_context",
    "corrected": "roles",
    "depth": "deep",
    "generalise": "generalisation",
    "heads": "heads",
    "landscape": "landscape",
    "memorisation": "memorisation",
    "optimise": "optimisers",
    "pointers": "steps",
    "rank": "rank",
    "roles": "roles",
    "sample": "training",
    "size": "construction",
    "sorting": "deep",
    "square": "steps",
    "suite": "suite",
    "train": "training",
    "variant": "variants",
}


def measure_of(name: str) -> Measure:
    """The measure of that name."""
    if name not in REGISTERED and name in MODULES:
        importlib.import_module(f".{MODULES[name]}", __name__)
    require_choice("a measure", name, sorted({*MODULES, *REGISTERED}))
    return REGISTERED[name]


def all_measures() -> list[Measure]:
    """All measures, by name."""
    return [measure_of(name) for name in sorted({*MODULES, *REGISTERED})]
