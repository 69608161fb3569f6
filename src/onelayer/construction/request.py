"""Wishes: what is asked of a layer, and the refusal of wishes that make no sense together."""

import math
from dataclasses import dataclass
from numbers import Integral

from ..common.errors import InputError
from ..layer.assemble import Layout
from ..target.target import require_tolerance

MOST_POLISHED = 1000  # a step of polishing costs the cube of it
CHOICES = {
    "method": ("polished", "solved", "representative"),
    "construction": ("auto", "gates", "memory"),
    "layout": ("token", "wide", "heads"),
}


@dataclass(frozen=True)
class Wishes:
    """What the user asked of a solved or polished layer; `units` None means as many as the tolerance needs."""

    tolerance: float
    construction: str = "auto"
    units: int | None = None
    hinges: int = 0
    seed: int = 0
    layout: Layout = "token"
    seconds: float = 120.0  # no new size is tried after that
    arithmetic: str = "float64"  # what the model will run in: in float32 Σ|c| must be small for rounding to be
    device: str = "cpu"  # where linear algebra happens


def require_sense(wishes: Wishes, method: str, symmetric: bool, share: float | None) -> None:
    """Every option has a value it can have, and a meaning for what was asked."""
    require_tolerance(wishes.tolerance)
    for name, value in (("method", method), ("construction", wishes.construction), ("layout", wishes.layout)):
        if value not in CHOICES[name]:
            raise InputError(f"{name}, one of {', '.join(CHOICES[name])}", f"{value!r}", "choose one of these")
    for name, number, low, high in (
        ("units", wishes.units, 1, 50_000),
        ("hinges", wishes.hinges, 0, 20_000),
        ("seed", wishes.seed, 0, 2**32 - 1),
    ):
        whole = isinstance(number, Integral) and not isinstance(number, bool)
        if number is not None and not (whole and low <= number <= high):
            raise InputError(f"{name}, a whole number from {low} to {high}", f"{number!r}", "give such a number")
    if method == "representative":
        _refuse(
            "method='representative'",
            "use gates, the paper's construction",
            construction=wishes.construction == "memory",
        )
        _refuse("method='representative'", "leave it out: the tolerance decides", units=wishes.units is not None)
        _refuse("method='representative'", "use it with method='solved'", hinges=wishes.hinges > 0, symmetric=symmetric)
    elif method == "polished" and not symmetric:
        if wishes.units is not None and wishes.units > MOST_POLISHED:
            change = "use method='solved', or leave it out: the tolerance decides"
            raise InputError(f"at most {MOST_POLISHED} units to polish", f"{wishes.units}", change)
        _refuse("method='polished'", "use it with method='solved'", hinges=wishes.hinges > 0)
    if method != "representative":
        _refuse(f"method={method!r}", "use it with method='representative'", share=share is not None)
    if not 0 < wishes.seconds < math.inf:
        raise InputError("seconds, finite and above 0", f"{wishes.seconds!r}", "give the time that the fit may take")
    other = wishes.layout != "token"
    if symmetric:
        single = wishes.arithmetic != "float64"
        _refuse("symmetric=True", "leave it out", layout=other, hinges=wishes.hinges > 0, dtype=single)
    if wishes.construction == "memory":
        _refuse("construction='memory'", "use layout='token': there is one data token", layout=other)


def _refuse(asked: str, change: str, **given: bool) -> None:
    for name, wrong in given.items():
        if wrong:
            raise InputError(asked, f"`{name}` as well", change)
