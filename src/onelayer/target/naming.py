"""Which variables a formula has, and which side of a domain belongs to which of them.

Names in the domain decide. Without them the variables are x1, x2, …, or the names in the formula (and in the condition):
x, y, z, t, then the others from A to Z. Imports nothing heavy, so that the command line refuses bad text quickly.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from ..common.errors import InputError
from ..common.numbers import counted
from ..formula import parse, parse_condition
from ..formula.vocabulary import FIRST
from ..formula.words import in_order
from .sides import MOST_VARIABLES

Side = TypeVar("Side")


def variables_of(
    formula: str, within: str | None = None, functions: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """The variables of a formula, which may have functions of the user's, and of the condition on its domain, in order."""
    own = parse(formula, own=functions).names
    more = () if within is None else parse_condition(within).names
    if set(more) <= set(own):
        return own
    if set(own) <= set(more):
        return more
    if _indexed(own) != _indexed(more):
        found = f"{own[0]} in the formula, {more[0]} in the condition"
        raise InputError("the same variables in formula and condition", found, "use x1, x2, … or names, not both")
    return in_order([*own, *more])


def spread(
    sides: Any, formula: str, within: str | None = None, least: int = 1, functions: Mapping[str, Any] | None = None
) -> Any:
    """Sides as given; a single interval without a name stands for every variable: of x1, x2, …, `least` or more."""
    if isinstance(sides, dict) or len(sides) != 1:
        return sides
    names = variables_of(formula, within, functions)
    count = max(least if _indexed(names) else 1, len(names), 1)
    if count > MOST_VARIABLES:
        raise InputError(f"at most {MOST_VARIABLES} variables", f"{count}", "use fewer variables")
    return list(sides) * count


def named(
    sides: list[Side], formula: str, within: str | None = None, functions: Mapping[str, Any] | None = None
) -> list[Side] | dict[str, Side]:
    """The sides by name, if the formula has names. Refused: sides that differ, for names whose order is anybody's guess."""
    names = variables_of(formula, within, functions)
    if not names or _indexed(names):
        return sides
    change = f"name the sides in the domain: {', '.join(names[:8])}"
    if len(names) != len(sides):
        found = f"{counted(len(sides), 'side')} for {', '.join(names[:8])}"
        if len(sides) == 1:
            change = f"give a side for each, such as [(0, 1)] * {len(names)}"
        elif len(sides) > len(names):
            change = f"leave out {counted(len(sides) - len(names), 'side')}, or name all of them"
        raise InputError(f"{counted(len(names), 'side')}, one per variable", found, change)
    alike = all(side == sides[0] for side in sides)
    if not (alike or set(names) <= set(FIRST) or parse(formula, own=functions).declared):
        found = f"different sides for {', '.join(names[:8])}"
        raise InputError("a domain that says which side is whose", found, change)
    return dict(zip(names, sides, strict=True))


def _indexed(names: tuple[str, ...]) -> bool:
    return all(name == f"x{i}" for i, name in enumerate(names, 1))
