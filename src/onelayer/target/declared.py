"""What was declared about f: as the condition that a proof rests on, and held against values of f.

A declaration says |f(x) − f(y)| ≤ allowed(x, y), with values that are within `evaluation_error` of f. Two points whose values
differ by more than that, 4 units of rounding of points and values aside, contradict it, and are refused. Only close pairs and
the extreme values are compared: a declaration that is not refused may still be false.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from ..common.errors import InputError
from ..common.numbers import at_least, at_most, exact, point
from ..common.outward import UP_FEW
from ..formula import enclose
from .envelope import spatial
from .modulus import Modulus
from .samples import ROUNDING

if TYPE_CHECKING:
    from .target import Target

PROBED = 4000  # points at which a new target is looked at
STEPS = (1e-6, 1e-1)  # in sides: how far along a coordinate the neighbours of a probed point are
NEIGHBOURS = 8  # that a point is compared with
MOST_NUMBERS = 60_000  # coordinates of all points that are compared
MOST_PAIRS = 2_000  # at which a declared ω is evaluated
WRITTEN_OUT = 6  # constants in a condition
SHOWN = 8  # coordinates of a point


def condition_of(target: "Target") -> str:
    """What a proof about f rests on, beyond arithmetic; empty if nothing was declared that it needs."""
    modulus = target.modulus
    parts = [_claim(modulus)] if modulus.kind == "declared" else []
    return " and ".join([*parts, *values_condition(target)])


def values_condition(target: "Target") -> tuple[str, ...]:
    """What is declared about the values alone."""
    if target.formula is not None or not target.evaluation_error:
        return ()
    return (f"the values given are within {exact(target.evaluation_error)} of f",)


def _claim(modulus: Modulus) -> str:
    moved = "|f(x) − f(y)| ≤"
    if modulus.lipschitz is None:
        return f"{moved} the declared modulus of max |x_j − y_j|"
    L = modulus.lipschitz
    if len(L) == 1:
        return f"{moved} {exact(L[0])}·|x − y|"
    if len(set(L)) == 1:
        return f"{moved} {exact(L[0])}·Σ|x_j − y_j|"
    if len(L) <= WRITTEN_OUT:
        return f"{moved} " + " + ".join(f"{exact(c)}·|x{j} − y{j}|" for j, c in enumerate(L, 1))
    return f"{moved} ΣL_j·|x_j − y_j| with the declared L, at most {exact(max(L))}"


def require_not_contradicted(target: "Target", declared: Modulus) -> None:
    """Refuse a new formula or callable whose values contradict what is declared: random points, and steps along each axis."""
    from .points import uniform_points  # needs torch

    D = target.dimension
    count = max(8, PROBED // (D + 1))
    unit = uniform_points(count, D, 5).numpy()[: 2 * count]
    rng = np.random.default_rng(5)
    steps = np.exp(rng.uniform(math.log(STEPS[0]), math.log(STEPS[1]), size=(len(unit), D)))
    moved = np.repeat(unit[:, None], D + 1, axis=1)
    moved[:, range(D), range(D)] += np.where(unit + steps <= 1, steps, -steps)
    x = target.domain.points(moved.reshape(-1, D))
    x = x[target.domain.contains(x)]
    require_obeyed(target, declared, x, target.values(x))


def require_obeyed(
    target: "Target", declared: Modulus, x: Float[np.ndarray, "point coordinate"], y: Float[np.ndarray, "point out"]
) -> None:
    """Refuse values y at points x that contradict what is declared; the two points that do so most are named."""
    keep = np.isfinite(y).all(axis=1)
    x, y = x[keep][: MOST_NUMBERS // target.dimension], y[keep][: MOST_NUMBERS // target.dimension]
    if len(x) < 2:
        return
    first, second = _pairs(target, declared, x, y)
    apart = np.abs(y[first] - y[second]).max(axis=1)
    if (
        declared.lipschitz is None and len(first) > MOST_PAIRS
    ):  # the steepest ones, and those with the largest differences
        far = np.abs(x[first] - x[second]).max(axis=1)
        most = np.concatenate([np.argsort(-apart / (far + 1e-300))[:MOST_PAIRS], np.argsort(-apart)[:MOST_PAIRS]])
        first, second, apart = first[most], second[most], apart[most]
    allowed = _allowed(target, declared, x[first], x[second])
    largest = float(np.abs(y).max())
    slack = 2 * (target.evaluation_error + ROUNDING * largest) + _rounding(declared, x[first], x[second])
    excess = apart - (allowed + slack) * UP_FEW
    worst = int(excess.argmax())
    if excess[worst] > 0 and _proved(target, x[first[worst]], x[second[worst]], float(allowed[worst])):
        factor = float((np.maximum(apart - slack, 0) / np.maximum(allowed, 1e-300)).max())
        enough = _Enough(factor, target.evaluation_error + float(excess[worst]) / 2)
        pair = (x[first[worst]], x[second[worst]])
        raise _refusal(target, declared, pair, (float(apart[worst]), float(allowed[worst])), enough)


@dataclass(frozen=True)
class _Enough:
    """What would make the declaration fit the values: constants this many times as large, or this evaluation error."""

    factor: float
    error: float

    def __str__(self) -> str:
        constants = (
            f"declare constants {at_most(self.factor)} times as large" if self.factor < 1e9 else "larger constants"
        )
        return f"{constants}, or evaluation_error={at_most(self.error)}, or more"


def _pairs(
    target: "Target", declared: Modulus, x: np.ndarray, y: np.ndarray
) -> tuple[Int[np.ndarray, " pair"], Int[np.ndarray, " pair"]]:
    """Every point with its nearest neighbours, in the distance of the declaration, and the extreme values of each output."""
    first, second = list(y.argmin(axis=0)), list(y.argmax(axis=0))
    scale = 1 / target.domain.sides if declared.lipschitz is None else np.array(declared.lipschitz)
    if scale.any():
        k = min(len(x), NEIGHBOURS + 1)
        near = spatial().cKDTree(x * scale).query(x * scale, k=k, p=math.inf if declared.lipschitz is None else 1)[1]
        first += np.repeat(np.arange(len(x)), k).tolist()
        second += near.ravel().tolist()
    return np.array(first), np.array(second)


def _allowed(target: "Target", declared: Modulus, a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " pair"]:
    if declared.lipschitz is not None:
        return np.asarray(np.abs(a - b) @ np.array(declared.lipschitz))
    assert declared.omega is not None
    r = (np.abs(a - b) / target.domain.sides).max(axis=1) * UP_FEW
    return np.array([declared.omega(float(v)) for v in r])


def _rounding(declared: Modulus, a: np.ndarray, b: np.ndarray) -> Float[np.ndarray, " pair"]:
    """What 4 units of rounding of the points can change, where there are constants."""
    return ROUNDING * (np.abs(a) + np.abs(b)) @ np.array(declared.lipschitz or (0.0,) * a.shape[1])


def _proved(target: "Target", a: np.ndarray, b: np.ndarray, allowed: float) -> bool:
    """Whether values differ by more than allowed: for a formula in exact arithmetic, else as they were computed."""
    if target.formula is None:
        return True
    balls = [enclose(target.formula, p.tolist(), strict=True) for p in (a, b)]
    if not all(ball.is_finite() for row in balls for ball in row):
        return False
    gaps = [
        max(Fraction(p.lower()) - Fraction(q.upper()), Fraction(q.lower()) - Fraction(p.upper()))
        for p, q in zip(*balls, strict=True)
    ]
    return max(gaps) > Fraction(allowed * UP_FEW)


def _refusal(
    target: "Target", declared: Modulus, pair: tuple[np.ndarray, np.ndarray], gaps: tuple[float, float], enough: _Enough
) -> InputError:
    a, b = (point(p[:SHOWN].tolist()) + " …" * (len(p) > SHOWN) for p in pair)
    digits = next((n for n in (6, 10) if float(at_least(gaps[0], n)) > float(at_most(gaps[1], n))), 17)
    numbers = f"{at_least(gaps[0], digits)} where {at_most(gaps[1], digits)} is allowed"
    given = "modulus"
    if declared.lipschitz is not None:
        given = f"Lipschitz constants {', '.join(map(exact, declared.lipschitz[:SHOWN]))}"
    return InputError(
        f"a function that obeys the declared {given}",
        f"its values at x = {a} and {b} differ by {numbers}",
        "leave the declaration out: a formula needs none" if target.formula else str(enough),
    )
