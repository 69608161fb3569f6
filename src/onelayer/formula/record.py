"""The record of a function of one variable: its facts, and the shapes by which ranges follow from values at points.

    ball      φ of a flint ball, real or complex: an enclosure         slope     φ′ as a formula of u and y = φ(u)
    shape     how a range follows from values at points                domain    where φ is defined; None: everywhere
    steepest  sup |φ′|, or more                                        holder    (C, p): |φ(a) − φ(b)| ≤ C|a − b|^p
    analytic  of a complex ball: whether φ is analytic around it, and `ball` encloses it there; None: not known anywhere
    taylor    (ball, n) ↦ φ^(k)/k!, k = 0 … n, enclosed; None: from the slope
    ends      every derivative is monotone: values at the ends of an interval enclose it
    array     its name in NumPy and torch, or "special": within ULPS units, sinc′ and exprel′ less so; "": through balls
    root      (k, ψ) where φ(u) = u^k·ψ and ψ(0) ≠ 0: ψ as a formula of u and y
    singular  arguments at which it has a value and no finite slope, or no value at all

flint is not imported here, so that words cost nothing: balls are asked for their own methods.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .ball_functions import Ball, Taylor

if TYPE_CHECKING:
    from .expression import Formula


@dataclass(frozen=True)
class DefinedOn:
    """From lo to hi, without one number in between. Enclosures cut arguments to a closed domain: they may only seem outside."""

    lo: float = -math.inf
    hi: float = math.inf
    closed: bool = False
    without: float | None = None

    def has(self, x: Any) -> Any:
        """Whether a number, or a ball, is proved to be inside."""
        if self.closed:
            return (x >= self.lo) & (x <= self.hi)
        inside = (x > self.lo) & (x < self.hi)
        return inside if self.without is None else inside & ((x < self.without) | (x > self.without))


@dataclass(frozen=True)
class Monotone:
    """Never decreasing (or never increasing), with values from least to most; it may jump."""

    least: float | None = None
    most: float | None = None
    rises: bool = True


@dataclass(frozen=True)
class Even:
    """A function of |u| that increases with it, from least."""

    least: float


@dataclass(frozen=True)
class Valley:
    """Falls up to a place between two numbers, where it is at least `least`, and rises from there."""

    left: float
    right: float
    least: float


@dataclass(frozen=True)
class Pole:
    """Falls up to the pole at 0, and rises behind it."""


@dataclass(frozen=True)
class Wave:
    """sin(u + phase·π): maxima 1 at (2k + ½ − phase)π."""

    phase: float


@dataclass(frozen=True)
class BetweenPoles:
    """Increasing between poles at (k + ½)π."""


@dataclass(frozen=True)
class Turning:
    """Turns wherever its slope does; least ≤ φ ≤ most."""

    least: float = -math.inf
    most: float = math.inf


Shape = Monotone | Even | Valley | Pole | Wave | BetweenPoles | Turning


@dataclass(frozen=True)
class Function:
    name: str
    words: str
    ball: Callable[[Ball], Ball]
    slope: str
    shape: Shape
    domain: DefinedOn | None = None
    steepest: float = math.inf
    holder: tuple[float, float] | None = None
    analytic: Callable[[Ball], Any] | None = None
    taylor: Taylor | None = None
    ends: bool = False
    array: str = ""
    numpy: str = ""  # its name in NumPy, if another
    root: tuple[int, str] | None = None
    singular: tuple[float, ...] = ()
    hidden: bool = False  # occurs in slopes only
    synonyms: tuple[str, ...] = ()
    drawn: str = ""  # what books call it, if another name
    letter: bool = False  # its name is a variable's, too, where no bracket follows
    # others that its slope may name
    beside: "Mapping[str, Function]" = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        lo, hi = (self.domain.lo, self.domain.hi) if self.domain else (-math.inf, math.inf)
        least, most = (getattr(self.shape, end, None) for end in ("least", "most"))
        assert lo < hi, self.name
        assert least is None or most is None or least <= most, self.name
        assert all(lo <= place <= hi for place in self.singular), self.name
        assert not (self.holder and math.isfinite(self.steepest)), self.name  # one of them bounds how far it can move

    @cached_property
    def slope_formula(self) -> "Formula":
        """The slope in the variables u and y."""
        from .parser import parse

        return parse(self.slope, ("u", "y"), self.beside)

    @property
    def natural(self) -> tuple[float, float] | None:
        """The closed domain to which arguments are cut."""
        return (self.domain.lo, self.domain.hi) if self.domain and self.domain.closed else None

    @property
    def partial(self) -> bool:
        """Whether it has no value somewhere."""
        return self.domain is not None or isinstance(self.shape, BetweenPoles)


class OwnName(str):
    """The name of a function of the user's own in a tree; it knows its record."""

    record: Function

    def __new__(cls, record: Function) -> "OwnName":
        found = super().__new__(cls, record.name)
        found.record = record
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnName, (self.record,)


def name_of(f: Function) -> str:
    """The name of a function in trees."""
    from .functions import FUNCTIONS

    return f.name if f.name in FUNCTIONS else OwnName(f)


class Readings(dict[str, Any]):
    """Something of every function by its name: kept for those of the language, made anew for the user's own."""

    def __init__(self, make: Callable[[Function], Any], **known: Any) -> None:
        super().__init__(known)
        self.make = make

    def __missing__(self, name: str) -> Any:
        from .functions import FUNCTIONS

        made = self.make(FUNCTIONS[name])
        return made if isinstance(name, OwnName) else self.setdefault(name, made)

    def of(self, f: Function) -> Any:
        return self[name_of(f)]
