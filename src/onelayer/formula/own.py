"""Functions of the user's own: a record like those of the language, checked where it says something that can be checked.

    dawson = ol.Function("dawson", ball=lambda z: z.pi().sqrt() / 2 * (-z * z).exp() * z.erfi(), slope="1 - 2*u*y")
    target = ol.Target("x*dawson(3*x)", (0, 2), functions=[dawson])

Proofs about such a target rest on the record, and their certificates say so.
"""

import keyword
import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from ..common.checks import is_number
from ..common.errors import InputError
from .record import DefinedOn, Even, Monotone, OwnName, Turning
from .record import Function as Record
from .tree import Call, Node, postorder
from .vocabulary import CONSTANTS, FIRST, FUNCTIONS, ORDERED, SYNONYMS
from .words import INDEXED

SHAPES = ("any", "increasing", "decreasing", "even")
AWAY = (0.0, *(sign * 10.0**k * m for sign in (1, -1) for k in range(-6, 4) for m in (1.1, 3.7)))  # from the middle
WIDTHS = (1e-6, 1e-2)  # of boxes that are tried


def Function(
    name: str,
    *,
    ball: Callable[[Any], Any],
    slope: str,
    shape: str = "any",
    least: float = -math.inf,
    most: float = math.inf,
    domain: tuple[float, float] | None = None,
    closed: bool = False,
    analytic: bool = False,
    words: str = "",
) -> Record:
    """A function g that formulas may use by its name, with `Target(…, functions=[g])`.

    `ball` encloses g on a ball of python-flint (NaN where there is no enclosure). `slope` is g′ as a formula in u and y = g(u).
    `shape` is "increasing", "decreasing", "even" (a function of |u| that increases with it) or "any"; g lies between `least` and
    `most`. It is defined inside `domain`, including the ends if `closed`. With `analytic`, `ball` takes complex balls too, and g
    is analytic wherever the real part lies in the domain. All this is spot-checked at points, and otherwise taken on trust.
    """
    asked = "a name of a new function"
    if not (isinstance(name, str) and name.isidentifier()) or keyword.iskeyword(name):
        raise InputError(asked, f"{name!r}", "use letters, digits and _, not starting with a digit")
    if name in ("u", "y", *FIRST, *FUNCTIONS, *CONSTANTS, *SYNONYMS, *ORDERED) or INDEXED.fullmatch(name):
        raise InputError(asked, f"{name!r}, which has a meaning already", "choose another name")
    if not callable(ball):
        raise InputError("`ball`, a function of a ball of flint", f"{type(ball).__name__}", "pass a function")
    if shape not in SHAPES:
        raise InputError("a shape", f"{shape!r}", f"use one of {', '.join(SHAPES)}")
    if shape == "even" and not math.isfinite(least):
        raise InputError("the value of an even function at 0", "none", "give it as `least`")
    numbers = isinstance(domain, tuple) and len(domain) == 2 and all(map(is_number, domain))
    if domain is not None and not (numbers and domain[0] < domain[1]):
        raise InputError("a domain (low, high), two numbers", f"{domain!r}", "give low < high")
    if not (is_number(least) and is_number(most) and least <= most):
        raise InputError("numbers least <= most", f"{least!r} and {most!r}", "give the ends of the values")
    low, high = (None if math.isinf(end) else end for end in (least, most))
    rises = Monotone(low, high, rises=shape == "increasing")
    known = Turning(least, most) if shape == "any" else Even(least) if shape == "even" else rises
    inside = DefinedOn(*domain, closed=closed) if domain else None
    return Record(name, words, ball, slope, known, inside, analytic=(lambda z: True) if analytic else None)


def together(functions: Iterable[Record]) -> dict[str, Record]:
    """The functions by name, each of which may name the others in its slope; refused where a record contradicts itself."""
    found: dict[str, Record] = {}
    for f in [functions] if isinstance(functions, Record) else functions:
        if not isinstance(f, Record):
            raise InputError("functions, a list of ol.Function", type(f).__name__, "make them with ol.Function")
        if f.name in found:
            raise InputError("functions with different names", f"{f.name!r} twice", "rename one of them")
        found[f.name] = replace(f, beside=found)
    for f in found.values():
        try:
            require_consistent(f)
        except InputError:
            raise
        except Exception as error:
            asked, what = f"a `ball` of {f.name} that takes balls of flint", f"{type(error).__name__}: {error}"
            raise InputError(asked, what, "correct the function") from error
    return found


def own_names(roots: Iterable[Node]) -> list[OwnName]:
    """The functions of the user's own in trees, each once."""
    names = [tree.name for tree in postorder(roots) if isinstance(tree, Call)]
    return list(dict.fromkeys(name for name in names if isinstance(name, OwnName)))


def require_consistent(f: Record) -> None:
    """Try what a record says at points and on small boxes: the ball, the slope, the shape and the ends agree."""
    from flint import acb, arb, ctx

    from .derived import range_of, taylor
    from .parser import parse

    try:
        parse(f.slope, ("u", "y"), f.beside)
    except InputError as refusal:
        raise InputError(f"the slope of {f.name}, a formula of u and y", refusal.found, refusal.change) from None

    lo, hi = (f.domain.lo, f.domain.hi) if f.domain else (-math.inf, math.inf)
    ends = lo if math.isfinite(lo) else hi - 2, hi if math.isfinite(hi) else lo + 2
    middle = sum(ends) / 2 if math.isfinite(sum(ends)) else 0.0
    with ctx.workprec(128):
        for a, width in ((middle + step, w) for step in AWAY for w in WIDTHS):
            if not (lo < a and a + width < hi) or (
                f.domain and f.domain.without is not None and a <= f.domain.without <= a + width
            ):
                continue
            points, box = [arb(a), arb(a) + arb(width) / 3, arb(a) + width], arb(a).union(arb(a) + width)
            values = [f.ball(x) for x in points]
            if not all(isinstance(v, arb) and v.is_finite() for v in values):
                raise _contradiction(f, "no finite ball", a)
            around, (_, slope) = range_of(f, box), taylor(f, box, 1)
            if around.is_finite() and not all(around.overlaps(v) for v in values):
                raise _contradiction(f, "a value outside its enclosure", a)
            rise = (values[2] - values[0]) / width
            if slope.is_finite() and not slope.overlaps(rise):
                raise _contradiction(f, f"a slope that is not {f.slope}", a)
            if f.analytic is not None and slope.rad() < 1e-3 * (1 + abs(slope)) and f.analytic(z := acb(a, width)):
                turned = (f.ball(z) - f.ball(acb(a))) / acb(0, width)
                if turned.is_finite() and abs(turned - slope) > 0.1 * (1 + abs(slope)):
                    raise _contradiction(f, "another slope across the real line, so that it is not analytic,", a)
            if abs(rise) > f.steepest:
                raise _contradiction(f, f"a slope above {f.steepest}", a)
            turned = isinstance(f.shape, Even) and rise * a < 0 and abs(a) > width
            if turned or (isinstance(f.shape, Monotone) and (rise < 0 if f.shape.rises else rise > 0)):
                raise _contradiction(f, "the other direction than its shape", a)
            least, most = (getattr(f.shape, end, None) for end in ("least", "most"))
            if any((least is not None and v < least) or (most is not None and v > most) for v in values):
                raise _contradiction(f, "a value beyond its ends", a)


def _contradiction(f: Record, found: str, x: float) -> InputError:
    return InputError(f"a record of {f.name} that is true", f"{found} near u = {x:g}", "correct the record")
