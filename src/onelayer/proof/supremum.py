"""sup |T − f| from both sides: the error proved at one point, and a bound proved everywhere.

First a point with a large error is looked for and its error proved (`attained`). Then the engines are asked to prove
(1 + accuracy) times that: the claim is true, up to what the point misses of the supremum, so they go on until it is proved or
the time is up. Where a proof ends above it, its worst boxes are searched for a point with a larger error, and so on.

Below rounding nothing can be told apart: an upper bound below `FLOOR` times the size of f is not improved.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from flint import arb

from ..common.budget import Budget
from ..common.numbers import at_least, at_most, point
from ..common.progress import Progress
from ..formula.float_bounds import ULPS
from ..formula.taylor.series import Space
from ..layer.arithmetic import FLOAT32, arithmetic_of
from ..layer.assemble import frame_of
from ..layer.form import Form
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
from .analytic import prove as analytic
from .attained import Attained, InBalls, attained, real_function
from .bisection.prove import MOST_COORDINATES, BranchAndBound, proof_by
from .bisection.transformer import Value
from .certificate import Box, Method
from .claim import Claim, Proof
from .decision import OBSERVATION_TIME, answer_of, has_kinks, methods_for, prove_by
from .observation import Answer, observe, observe_from, polished_from

FLOOR = 2.0**-46  # times the size of f
CLOSE_SHARE = 0.25  # share of the accuracy: how close to what they see engines go
SMALLEST = 1e-290  # no smaller bound is asked for
SIZE_POINTS = 200  # at which the size of formulas is looked at
ROUNDS = 4  # of proof, each from a better point
BETTER = 0.05  # share of the accuracy: a point that is not better by this much does not help
BOX_POINTS = 200  # looked at in every worst box
FIRST_METHOD_TIME = 0.6  # share of the seconds for the first of two engines


@dataclass(frozen=True)
class Supremum:
    """lower ≤ sup |T − f| ≤ upper, both proved; at the point |T − f| ≥ lower. upper is ∞ where nothing was proved."""

    lower: float
    upper: float
    point: tuple[float, ...] | None
    accuracy: float  # asked for
    method: Method
    boxes: int
    domain: str
    assumptions: tuple[str, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether upper ≤ (1 + accuracy)·lower."""
        return self.upper <= (1 + self.accuracy) * self.lower

    def __str__(self) -> str:
        where = f", attained near {point(self.point)}" if self.point is not None else ""
        high = at_most(self.upper, 6) if math.isfinite(self.upper) else "∞"
        close = f"{at_most(100 * (self.upper / self.lower - 1), 2)}% apart" if 0 < self.lower <= self.upper else ""
        short = "" if self.reached else f"an accuracy of {100 * self.accuracy:.4g}% was not reached"
        notes = "; ".join(note for note in (close, short) if note)
        return f"{at_least(self.lower, 6)} ≤ sup |T − f| ≤ {high}{where}{f' ({notes})' if notes else ''}"


@dataclass(frozen=True)
class Pair:
    """T and f whose distance is asked for: T at points, in floats and in balls, and the engines that bound |T − f|."""

    target: Target  # f
    answer: Answer
    in_balls: InBalls
    methods: list[Method]  # worth trying, in order
    prove: Callable[[Method, Claim, float, Budget], Proof | None]
    places: tuple[int, ...] = (0,)
    dtype: type[np.floating] = np.float64
    size: float = 0.0  # about max |T| and max |f|: what rounding is relative to


def layer_and_target(model: SingleLayerTransformer, target: Target, places: tuple[int, ...], budget: Budget) -> Pair:
    """A model and a target. The upper bound holds for the computed answers too: their rounding is part of it."""
    own = budget.share(OBSERVATION_TIME) if target.data is None else Budget(math.inf)
    return Pair(
        target,
        answer_of(model, places, own),
        real_function(model, places),
        methods_for(target),
        lambda method, claim, observed, left: prove_by(method, model, claim, observed, left),
        places,
        np.float32 if arithmetic_of(model.W_E.dtype) is FLOAT32 else np.float64,
        float(np.abs(target.centre).max()),
    )


def two_formulas(apart: Target, both: Target) -> Pair:
    """Two formulas, the outputs of `both`, as their difference `apart` and T = 0. Nothing is rounded but in the proof."""
    m, formula = apart.outputs, apart.formula
    assert formula is not None
    with np.errstate(all="ignore"):
        sizes = np.abs(both.values(both.domain.points(np.random.default_rng(0).random((SIZE_POINTS, both.dimension)))))
    assumptions = (f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",)
    zero = Form(torch.zeros(m, dtype=torch.float64), torch.zeros(apart.dimension, m, dtype=torch.float64), ())

    def nothing(space: Space) -> Value:
        return Value(space.constant(np.zeros((space.boxes, m))), np.zeros((space.boxes, m)))

    def prove(method: Method, claim: Claim, observed: float, budget: Budget) -> Proof | None:
        if method == "bisect":
            search = BranchAndBound(nothing, apart, range(m), m)
            return (
                proof_by(search, claim, observed, budget, assumptions) if apart.dimension <= MOST_COORDINATES else None
            )
        found = analytic.prove(zero, frame_of(apart.domain), claim, budget, deployed=np.zeros(m))
        return None if found is None else replace(found, assumptions=assumptions)

    return Pair(
        apart,
        lambda x: np.zeros((len(x), m)),
        lambda x: [arb(0)] * m,
        ["bisect"] if has_kinks(formula) else ["analytic", "bisect"],
        prove,
        size=float(np.nanmax(np.where(np.isfinite(sizes), sizes, 0.0))),
    )


def supremum_of(
    pair: Pair, accuracy: float, budget: Budget, seed: int = 0, progress: Progress | None = None
) -> Supremum:
    """[lower, upper] around sup |T − f|, within the accuracy if the budget allows it."""
    target = pair.target
    seen = observe(pair.answer, target, seed, pair.dtype)
    found = Supremum(0.0, math.inf, None, accuracy, "none", 0, str(target.domain))
    if math.isnan(seen.largest):
        return found
    found = _from_below(found, pair, seen.worst, budget)
    for _ in range(ROUNDS):
        goal = max((1 + accuracy) * found.lower, FLOOR * pair.size, SMALLEST)
        claim = Claim(target, goal, pair.places, seed, progress=progress, close=CLOSE_SHARE * accuracy)
        before, boxes = found, list[Box]()
        for method in pair.methods:
            own = budget.share(FIRST_METHOD_TIME if method != pair.methods[-1] else 1.0)
            proof = pair.prove(method, claim, max(found.lower, seen.limit), own)
            if proof is None:
                continue
            boxes += proof.evidence.worst_boxes or ()
            if proof.bound < found.upper:
                caveats = (*proof.assumptions, *target.caveats)
                found = replace(found, upper=proof.bound, method=method, boxes=_count(proof), assumptions=caveats)
            if proof.evidence.interrupted:
                return found
            if found.upper <= goal:
                break
        if found.reached or found.upper <= FLOOR * pair.size or budget.over() or target.data is not None:
            break
        more = observe_from(pair.answer, target, _points_in(boxes, seen.worst, target, seed)).worst
        found = _from_below(found, pair, more, budget)
        if found.reached or not found.lower > before.lower * (1 + BETTER * accuracy):
            break
    return found


def _from_below(found: Supremum, pair: Pair, points: np.ndarray, budget: Budget) -> Supremum:
    """With the lower bound from these points, climbed from the worst, if that is better."""
    if not len(points):
        return found
    worst = polished_from(pair.answer, pair.target, points, pair.dtype)
    best: Attained = attained(pair.in_balls, pair.target, worst, budget)
    return replace(found, lower=best.lower, point=best.point) if best.lower > found.lower else found


def _points_in(boxes: list[Box], worst: np.ndarray, target: Target, seed: int) -> np.ndarray:
    """Points in the boxes; where a box has not all coordinates, the others are those of the worst point."""
    rng, points = np.random.default_rng(seed), [worst[:1]]
    for box in boxes:
        some = np.repeat(points[0], BOX_POINTS, axis=0)
        low, high = np.array(box.lower), np.array(box.upper)
        some[:, list(box.coordinates)] = low + (high - low) * rng.random((BOX_POINTS, len(low)))
        points.append(target.domain.nearest(some))
    return np.concatenate(points)


def _count(proof: Proof) -> int:
    """The boxes of a proof."""
    boxes = proof.evidence.boxes
    return sum(boxes) if isinstance(boxes, tuple) else boxes or 0
