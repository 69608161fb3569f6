"""Formulas from text: a safe tree, and several rigorous readings of it.

    parse, parse_condition, to_text     text ↔ tree; nothing is ever executed
    evaluate, satisfies                 numbers at a batch of points, NumPy or torch
    enclose, holds                      ranges over real boxes, with proof
    gradient                            partial derivatives over real boxes, with proof

Importing this package loads neither torch nor flint; the enclosures load flint on first use.
"""

import importlib
from typing import TYPE_CHECKING, Any

from .expression import Condition as Condition
from .expression import Formula as Formula
from .parser import parse as parse
from .parser import parse_condition as parse_condition
from .printing import to_text as to_text

if TYPE_CHECKING:
    from .intervals import UNDEFINED as UNDEFINED
    from .intervals import Interval as Interval
    from .intervals import interval as interval
    from .numeric import evaluate as evaluate
    from .numeric import satisfies as satisfies
    from .real_balls import enclose as enclose
    from .real_balls import gradient as gradient
    from .real_balls import holds as holds

# public name → the module that defines it
_HOME = {
    "Interval": "intervals",
    "UNDEFINED": "intervals",
    "enclose": "real_balls",
    "evaluate": "numeric",
    "gradient": "real_balls",
    "holds": "real_balls",
    "interval": "intervals",
    "satisfies": "numeric",
}

__all__ = sorted([*_HOME, "Condition", "Formula", "parse", "parse_condition", "to_text"])


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
