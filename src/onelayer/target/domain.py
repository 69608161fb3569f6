"""Domain: a box with outward-rounded float ends, and optionally a condition that cuts a compact set out of it.

Ends are numbers or constant formulas such as "2*pi". The end that a formula gives is a real number that floats may miss;
the box kept here is the smallest float box that contains it. Everything proved is proved on this box (or on the part of it
where the condition holds).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Number
from typing import Any, cast

import numpy as np
from jaxtyping import Bool, Float

from ..common.errors import InputError
from ..formula import Condition, enclose, parse, parse_condition, satisfies
from .sides import MOST_VARIABLES, read_domain

End = float | int | str | np.integer | np.floating


@dataclass(frozen=True)
class Domain:
    """The box lower ≤ x ≤ upper in the variables `names`; `ends` are the ends as they were written."""

    names: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    ends: tuple[tuple[str, str], ...]
    within: Condition | None = None

    @property
    def dimension(self) -> int:
        return len(self.names)

    @property
    def sides(self) -> Float[np.ndarray, " coordinate"]:
        """Side lengths, rounded up."""
        return np.nextafter(np.array(self.upper) - np.array(self.lower), np.inf)

    def points(self, unit: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point coordinate"]:
        """Points of the unit cube carried to the box, never outside it."""
        low, high = np.array(self.lower), np.array(self.upper)
        return np.clip(low + (high - low) * unit, low, high)

    def unit(self, x: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point coordinate"]:
        """Points of the box carried to the unit cube: the inverse of `points`, up to rounding."""
        low, high = np.array(self.lower), np.array(self.upper)
        return np.clip((x - low) / (high - low), 0.0, 1.0)

    def nearest(
        self, x: Float[np.ndarray, "point coordinate"], single: bool = False
    ) -> Float[np.ndarray, "point coordinate"]:
        """The nearest points of the box; if `single`, float32 numbers near them, inside the box where it has any."""
        inside = np.clip(x, np.array(self.lower), np.array(self.upper))
        return self._single(inside) if single else inside

    def representable(
        self, x: Float[np.ndarray, "point coordinate"], single: bool
    ) -> Float[np.ndarray, "inside coordinate"]:
        """The points that lie in the domain; if `single`, first moved to float32 numbers near them, inside the box."""
        x = self._single(x) if single else x
        return x[self.contains(x)]

    def _single(self, x: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point coordinate"]:
        """float32 numbers near the points, the next one inward where rounding leaves the box."""
        with np.errstate(over="ignore"):
            near = x.astype(np.float32)
            near = np.where(near > np.array(self.upper), np.nextafter(near, np.float32(-np.inf)), near)
            near = np.where(near < np.array(self.lower), np.nextafter(near, np.float32(np.inf)), near)
        return near.astype(np.float64)

    def contains(self, x: Float[np.ndarray, "point coordinate"]) -> Bool[np.ndarray, " point"]:
        """Which points lie in the domain: in the box, and where the condition holds (as floats evaluate it)."""
        inside = np.asarray(((x >= np.array(self.lower)) & (x <= np.array(self.upper))).all(axis=1))
        if self.within:
            inside = inside & np.asarray(satisfies(self.within, x))
        return inside

    def __str__(self) -> str:
        if len(self.names) > 3 and len(set(self.ends)) == 1:
            a, b = self.ends[0]
            box = f"{self.names[0]}, …, {self.names[-1]} in [{a}, {b}]"
        else:
            box = ", ".join(f"{n} in [{a}, {b}]" for n, (a, b) in zip(self.names, self.ends, strict=True))
        return f"{box}, where {self.within.text}" if self.within else box


Side = tuple[End, End]
Box = Sequence[Side] | Mapping[str, Side] | Side | str
Sides = Box | Domain  # as users give them


def domain_of(sides: Box, within: str | None = None, most: int | None = MOST_VARIABLES) -> Domain:
    """A Domain of at most `most` variables, from a list of (low, high) for x1, x2, … or a dictionary name → (low, high).

    One variable may do without the list, (0, 1); text is read as on the command line, "0:1, -1:2*pi".
    """
    listed = sides_of(sides)
    names = tuple(listed) if isinstance(listed, dict) else tuple(f"x{j + 1}" for j in range(len(listed)))
    pairs = list(listed.values()) if isinstance(listed, dict) else listed
    if not pairs:
        raise InputError("a domain with at least one side", "none", "give (low, high) for every variable")
    if most is not None and len(pairs) > most:
        raise InputError(f"at most {most} variables", f"{len(pairs)}", "use fewer variables")
    lower, upper, ends = [], [], []
    for name, pair in zip(names, pairs, strict=True):
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"two ends (low, high) for {name}", repr(pair), "write for instance (0, 1) or (0, '2*pi')")
        ends.append((_plain(pair[0]), _plain(pair[1])))
        low, high = (_end(name, end) for end in ends[-1])
        if not low[1] < high[0] or high[0] - low[1] < 1e-290:
            found = f"low = {ends[-1][0]}, high = {ends[-1][1]}"
            raise InputError(f"low < high for {name}, at least 1e-290 apart", found, "swap or widen the ends")
        lower.append(low[0])
        upper.append(high[1])
    condition = parse_condition(within, names) if within is not None else None
    return Domain(names, tuple(lower), tuple(upper), tuple((_as_text(a), _as_text(b)) for a, b in ends), condition)


def sides_of(sides: Box) -> list[Any] | dict[str, Any]:
    """The sides one by one, or by name: text is read, and (0, 1) alone is one side."""
    if isinstance(sides, str):
        return cast(list[Any] | dict[str, Any], read_domain(sides))
    if isinstance(sides, Mapping):
        return dict(sides)
    if not isinstance(sides, Iterable):
        example = "write for instance [(0, 1), (0, 1)]"
        raise InputError("a domain: (low, high) for every variable", f"{sides!r}", example)
    pairs = [tuple(side) if isinstance(side, np.ndarray) and side.ndim == 1 else side for side in sides]
    alone = len(pairs) == 2 and all(isinstance(end, str | Number) and ":" not in str(end) for end in pairs)
    return [tuple(pairs)] if alone else pairs


def _plain(end: Any) -> Any:
    """NumPy's numbers as Python's, so that the text of an end is that of the number that is used."""
    return end.item() if isinstance(end, np.integer | np.floating) else end


def _as_text(end: End) -> str:
    """An end in the words that are stored."""
    return parse(end, ()).text if isinstance(end, str) else str(end)


def _end(name: str, end: End) -> tuple[float, float]:
    """The nearest floats below and above an end (equal when it is a float)."""
    if isinstance(end, str):
        try:
            formula = parse(end, ())
        except InputError as refusal:
            asked = f"a number or a constant formula as an end of {name}"
            raise InputError(asked, refusal.found, refusal.change) from None
        if len(formula.outputs) != 1:
            raise InputError(f"one number as an end of {name}", repr(end), "give one constant expression")
        ball = enclose(formula, [], strict=True)[0]
        low, high = (ball.lower(), ball.upper()) if ball.is_finite() else (math.nan, math.nan)
    elif isinstance(end, bool) or not isinstance(end, int | float):
        example = "write for instance 1 or '2*pi'"
        raise InputError(f"a number or a constant formula as an end of {name}", repr(end), example)
    elif isinstance(end, int) and abs(end) > 10**150:
        low = high = math.inf
    else:
        low = high = float(end)
        if isinstance(end, int) and int(low) != end:  # an integer too long for a float
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    if not (math.isfinite(low) and math.isfinite(high)) or max(abs(low), abs(high)) > 1e150:
        raise InputError(f"a finite end of {name}, at most 1e150 in size", repr(end), "give finite numbers")
    return low, high
