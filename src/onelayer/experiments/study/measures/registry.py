"""Measures: what a study can do at a point of its sweep, by name.

A measure is a function from one point, a dictionary of plain values (numbers, text, true or false), to a dictionary of plain
values. It is registered under a name, with its axes: a default value for each, or a type (`str`, `int`, `float`) for an axis
that every sweep has to set.

    @measure("construct", target=str, tolerance=float, method="polished", seed=0)
    def construct(point: Point) -> Result: ...

MODULES of `measures/__init__.py` says which module holds it. A result may have the name of an axis: the table then holds the
result, not the value of the axis.

It runs in another process, perhaps on another machine: everything it needs is in the point, everything it finds is in the
result. It depends on the point alone (except for seconds), so a lost point can be measured again.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Point = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Measure:
    """A registered function, and its axes with their defaults (a type where there is none)."""

    name: str
    function: Callable[[Point], Result]
    axes: dict[str, Any]
    source: str = ""  # digest of the source text, for a function that the caller passed

    @property
    def summary(self) -> str:
        """The first line of the function's docstring."""
        return (self.function.__doc__ or "").strip().split("\n")[0]

    def __call__(self, point: Point) -> Result:
        return self.function(point)


REGISTERED: dict[str, Measure] = {}


def measure(name: str, **axes: Any) -> Callable[[Callable[[Point], Result]], Callable[[Point], Result]]:
    """Register a function as the measure of that name, with these axes."""

    def register(function: Callable[[Point], Result]) -> Callable[[Point], Result]:
        REGISTERED[name] = Measure(name, function, axes)
        return function

    return register
