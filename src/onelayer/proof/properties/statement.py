"""Statements about a layer as text: "increasing in x1", "T <= 2*pi", "Lipschitz 3 in x2", each with "not" in front if wanted.

Every statement says where something lies: the values of T, its slopes along one coordinate, or its second derivatives along
one. These are divided differences of T of order 0, 1 and 2, which need no derivative to be defined:

    T <= c, T >= c, T < c, T > c    T(x)
    increasing, decreasing          (T(b) − T(a))/(b − a)
    Lipschitz c                     the same, between −c and c
    convex, concave                 twice the divided difference T[a, m, b]

for all points of the domain that differ in that coordinate alone and whose segment lies in the domain, and for all outputs.
"""

import math
import re
from dataclasses import dataclass

from ...common.errors import InputError
from ...formula import enclose, parse

SHAPES = {"increasing": (1, 1), "decreasing": (1, -1), "convex": (2, 1), "concave": (2, -1)}  # order, sign
MOST_CHARACTERS = 500
_SHAPE = re.compile(r"(increasing|decreasing|convex|concave)(?:\s+in(?:\s+(.+))?)?", re.IGNORECASE)
_LIPSCHITZ = re.compile(r"lipschitz\s+(.+?)\s+in\s+(.+)", re.IGNORECASE)
_COMPARISON = re.compile(r"T\s*(<=|>=|<|>|≤|≥)\s*(.*)")
_NOT = re.compile(r"not\s+(.+)", re.IGNORECASE)
_KEYS = re.compile(r"<=|>=|[<>≤≥]|\b(?:increasing|decreasing|convex|concave|lipschitz)\b", re.IGNORECASE)  # one in each
KINDS = ("values", "slopes", "second derivatives")  # by order


@dataclass(frozen=True)
class Limit:
    """A real number c that lies between two floats, which are equal if c is one."""

    below: float
    above: float


@dataclass(frozen=True)
class Statement:
    """All divided differences of this order along this coordinate lie at or above `least` and at or below `most`.

    If `strict` they do not reach it; if `negated` some of them do not lie there.
    """

    text: str
    order: int
    coordinate: int = 0
    least: Limit | None = None
    most: Limit | None = None
    strict: bool = False
    negated: bool = False

    def holds(self, low: float, high: float) -> bool:
        """Whether it is true, but for the negation, if everything lies in [low, high]."""
        if not low <= high:
            return False
        above = self.least is None or (low > self.least.above if self.strict else low >= self.least.above)
        return above and (self.most is None or (high < self.most.below if self.strict else high <= self.most.below))

    def fails(self, low: float, high: float) -> bool:
        """Whether it is false, but for the negation, if one of them lies in [low, high]."""
        if not low <= high:
            return False
        under = self.least is not None and (high <= self.least.below if self.strict else high < self.least.below)
        return under or (self.most is not None and (low >= self.most.above if self.strict else low > self.most.above))

    def room(self, low: float, high: float) -> float:
        """How far [low, high] is from the limits, about; negative if it is beyond one."""
        rooms = [low - self.least.above] if self.least else []
        return min(rooms + ([self.most.below - high] if self.most else []), default=math.inf)

    @property
    def what(self) -> str:
        """What it is about: values, slopes or second derivatives."""
        return KINDS[self.order]


def read(text: object, names: tuple[str, ...]) -> Statement:
    """The statement that the text makes about a layer with variables of these names."""
    x = names[0]
    asked = f'a property such as "increasing in {x}", "convex in {x}", "Lipschitz 3 in {x}" or "T <= 2"'
    if not isinstance(text, str):
        raise InputError(asked, type(text).__name__, "give it as text")
    line = " ".join(text.split())
    if len(line) > MOST_CHARACTERS:
        raise InputError(asked, f"{len(line)} characters", "write one short line")
    denied = _NOT.fullmatch(line)
    several = len(_KEYS.findall(line)) > 1
    try:
        found = _read(line, denied[1] if denied else line, bool(denied), names)
    except InputError:
        if not several:
            raise
        found = None
    if found is None and several:
        raise InputError("one property at a time", repr(_clipped(line)), "ask for each on its own")
    if found is None:
        raise InputError(asked, repr(_clipped(line)) if line else "nothing", _nearest(line, x))
    return found


def _read(line: str, plain: str, negated: bool, names: tuple[str, ...]) -> Statement | None:
    """The statement of a line, `plain` without its "not"; None if it is none."""
    if match := _SHAPE.fullmatch(plain):
        shape = match[1].lower()
        order, sign = SHAPES[shape]
        if match[2] is None:
            raise InputError(f'a variable after "{shape} in"', "none", f"write {shape} in {names[0]}")
        zero, i = Limit(0.0, 0.0), _coordinate(match[2], names)
        return Statement(line, order, i, zero if sign > 0 else None, zero if sign < 0 else None, negated=negated)
    if match := _LIPSCHITZ.fullmatch(plain):
        c, i = _constant(match[1]), _coordinate(match[2], names)
        if c.above < 0:
            raise InputError("a Lipschitz constant of at least 0", match[1], "give how steep T may be")
        return Statement(line, 1, i, Limit(-c.above, -c.below), c, negated=negated)
    if match := _COMPARISON.fullmatch(plain):
        relation = match[1]
        if not match[2]:
            raise InputError(f"a number after {relation}", "nothing", f"write for instance T {relation} 2")
        c = _constant(match[2])
        least, most = (c, None) if relation in (">", ">=", "≥") else (None, c)
        return Statement(line, 0, 0, least, most, strict=relation in "<>", negated=negated)
    return None


def _nearest(line: str, name: str) -> str:
    """What to write instead of a line that is no statement."""
    if "lipschitz" in line.lower():
        return f"write a constant and a variable, as in Lipschitz 3 in {name}"
    if any(sign in line for sign in "<>≤≥="):
        return "write T alone on the left, then <=, >=, < or >, then a number"
    return "write one of these; docs/trust/properties.md has all of them"


def _clipped(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _coordinate(name: str, names: tuple[str, ...]) -> int:
    if name not in names:
        known = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
        raise InputError(f"a variable among {known}", repr(_clipped(name)), "name one of these")
    return names.index(name)


def _constant(text: str) -> Limit:
    """The number that a constant formula such as 2*pi gives."""
    asked = "a number or a constant formula in the property"
    try:
        formula = parse(text, ())
    except InputError as refusal:
        raise InputError(asked, refusal.found, refusal.change) from None
    if len(formula.outputs) != 1:
        raise InputError(asked, repr(_clipped(text)), "give one number")
    value = enclose(formula, [], strict=True)[0]
    if not (value.is_finite() and math.isfinite(value.lower()) and math.isfinite(value.upper())):
        raise InputError(asked, f"{_clipped(text)!r}, which has no finite value", "give a finite number")
    return Limit(value.lower(), value.upper())
