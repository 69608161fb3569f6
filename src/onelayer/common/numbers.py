"""Numbers as text that claims nothing false: an upper bound rounded up, a lower bound down, a point so that it reads back.

A text stands for the float that it reads back to: 0.1 is the float nearest to 1/10, here as in a certificate's file.
"""

import math
from collections.abc import Iterable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context


def at_most(value: float, digits: int = 4, limit: float = math.inf) -> str:
    """A proved upper bound as text, rounded up, so that the printed number, read as a float, is proved too.

    With all its digits where it keeps a limit, a tolerance say, that the rounded number would pass.
    """
    text = f"{value:.{digits}g}"
    if not float(text) >= value:
        text = f"{float(Context(digits, ROUND_CEILING).create_decimal(value)):.{digits}g}"
    return exact(value) if value <= limit < float(text) else text


def at_least(value: float, digits: int = 4) -> str:
    """A lower bound as text, rounded down."""
    text = f"{value:.{digits}g}"
    return text if float(text) <= value else f"{float(Context(digits, ROUND_FLOOR).create_decimal(value)):.{digits}g}"


def exact(value: float) -> str:
    """A number as the shortest text that reads back to the same float: 0.1, 3, 1e-07."""
    return repr(float(value)).removesuffix(".0")


def point(values: Iterable[float]) -> str:
    """A point, every coordinate exact: (0.1, 3)."""
    return f"({', '.join(map(exact, values))})"


def counted(count: int, noun: str) -> str:
    """A number of things: 1 argument, 2 arguments."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
