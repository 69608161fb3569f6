"""Formulas from text: a safe tree, and several rigorous readings of it.

    parse, parse_condition, to_text     text ↔ tree; nothing is ever executed
    evaluate, satisfies                 numbers at a batch of points, NumPy or torch
    enclose, holds                      ranges over real boxes, with proof
    gradient                            partial derivatives over real boxes, with proof

Importing this package loads neither torch nor flint; the enclosures load flint on first use.
"""

from typing import TYPE_CHECKING, Any

from .expression import Condition, Formula
from .numeric import evaluate, satisfies
from .parser import parse, parse_condition
from .printing import to_text

if TYPE_CHECKING:
    from .intervals import UNDEFINED, Interval, interval
    from .real_balls import enclose, gradient, holds

__all__ = ["Condition", "Formula", "evaluate", "parse", "parse_condition", "satisfies", "to_text"]
__all__ += ["UNDEFINED", "Interval", "enclose", "gradient", "holds", "interval"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import real_balls

    return getattr(real_balls, name)
