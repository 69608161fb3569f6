"""sup |T − f| from both sides: the error proved at one point, and a bound proved everywhere.

First a point with a large error is looked for and its error proved (`attained`). Then the engines are asked to prove
(1 + accuracy) times that: the claim is true, up to what the point misses of the supremum, so they go on until it is proved or
the time is up. Where a proof ends above it, its worst boxes are searched for a point with a larger error, and so on. A high
accuracy is approached in steps, and the best ends of all of them are kept: a proof that is asked for much may end with little.

Below rounding nothing can be told apart: an upper bound below `FLOOR` times the size of f is not improved.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from flint import arb

from ..common.budget import Budget
from ..common.errors import InputError
from ..common.progress import Progress
from ..formula.float_bounds import ULPS
from ..formula.taylor.series import Space
from ..layer.arithmetic import Arithmetic
from ..layer.assemble import frame_of
from ..layer.form import Form
from ..layer.rounding.online_softmax import arithmetic_of_model
from ..model.transformer import SingleLayerTransformer
from ..target.singular import has_kinks
from ..target.target import Target
from .analytic import prove as analytic
from .ascent import POLISHED
from .attained import Attained, InBalls, attained, real_function
from .bisection.prove import MOST_COORDINATES, BranchAndBound, assumptions_of, proof_by
from .bisection.transformer import Value
from .certificate import Box, Method
from .claim import Claim, Proof
from .decision import edge_of, methods_for, prove_by
from .observation import Answer, Observation, answer_of, floats_of, observe, observe_from, polished_from
from .overflow import refusal
from .two_sided import LAYER, Supremum

FLOOR = 2.0**-46  # times the size of f
CLOSE_SHARE = 0.25  # share of the accuracy: how close to what they see engines go
SMALLEST = 1e-290  # no smaller bound is asked for
SIZE_POINTS = 200  # at which the size of formulas is looked at
FIRST_STEP, STEP, STEP_TIME = 0.01, 1e-3, 0.3  # accuracies asked for on the way; share of the seconds left for each
ROUNDS = 4  # of proof, each from a better point
BETTER = 0.05  # share of the accuracy: a point that is not better by this much does not help
BOX_POINTS = 200  # looked at in every worst box
WORTH_SEARCHING, SEARCH_TIME = 1.5, 0.3  # where upper is at most this many times lower; share of the seconds left
SEARCHES, FRESH_POINTS, MORE_POLISHED = (
    4,
    100_000,
    20,
)  # where a proof ends above the goal: how hard a worse point is sought
FIRST_METHOD_TIME = 0.6  # share of the seconds for the first of two engines


@dataclass(frozen=True)
class Pair:
    """T and f whose distance is asked for: T at points, in floats and in balls, and the engines that bound |T − f|."""

    target: Target  # f
    answer: Answer
    in_balls: InBalls
    methods: list[Method]  # worth trying, in order
    prove: Callable[[Method, Claim, float, Budget], Proof | None]
    compared: tuple[str, str]  # what the two are called
    places: tuple[int, ...] = (0,)
    dtype: type[np.floating] = np.float64
    size: float = 0.0  # about max |T| and max |f|: what rounding is relative to
    search: Callable[[], BranchAndBound] | None = None  # T − f on boxes, for other norms …
    assumptions: tuple[str, ...] = ()  # … and what that rests on


def layer_and_target(model: SingleLayerTransformer, target: Target, places: tuple[int, ...], budget: Budget) -> Pair:
    """A model and a target. The upper bound holds for the computed answers too: their rounding is part of it."""
    arithmetic = arithmetic_of_model(model)
    return Pair(
        target,
        answer_of(model, places, budget if target.data is None else Budget(math.inf)),
        real_function(model, places),
        methods_for(target, model.config.heads),
        lambda method, claim, observed, left: prove_by(method, model, claim, observed, left),
        (LAYER, target.text),
        places,
        floats_of(model),
        float(np.abs(target.centre).max()),
        lambda: _search(model, target, places, arithmetic),
        (*assumptions_of(model, target, arithmetic), *target.caveats),
    )


def _search(
    model: SingleLayerTransformer, target: Target, places: tuple[int, ...], arithmetic: Arithmetic
) -> BranchAndBound:
    if (reason := refusal(model, edge_of(model, target))) is not None:
        raise InputError("weights that proofs can multiply", reason, "scale the weights, or ask for another layer")
    return BranchAndBound.of(model, target, places, arithmetic)


def two_formulas(apart: Target, both: Target, compared: tuple[str, str]) -> Pair:
    """Two formulas, the outputs of `both`, as their difference `apart` and T = 0. Nothing is rounded but in the proof."""
    m, formula = apart.outputs, apart.formula
    assert formula is not None
    with np.errstate(all="ignore"):
        sizes = np.abs(both.values(both.domain.points(np.random.default_rng(0).random((SIZE_POINTS, both.dimension)))))
    assumptions = (f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",)
    zero = Form(torch.zeros(m, dtype=torch.float64), torch.zeros(apart.dimension, m, dtype=torch.float64), ())

    def nothing(space: Space) -> Value:
        return Value(space.constant(np.zeros((space.boxes, m))), np.zeros((space.boxes, m)))

    def search() -> BranchAndBound:
        return BranchAndBound(nothing, apart, range(m), m)

    def prove(method: Method, claim: Claim, observed: float, budget: Budget) -> Proof | None:
        if method == "bisect":
            few = apart.dimension <= MOST_COORDINATES
            return proof_by(search(), claim, observed, budget, assumptions) if few else None
        found = analytic.prove(zero, frame_of(apart.domain), claim, budget, deployed=np.zeros(m))
        return None if found is None else replace(found, assumptions=assumptions)

    return Pair(
        apart,
        lambda x: np.zeros((len(x), m)),
        lambda x: [arb(0)] * m,
        ["bisect"] if has_kinks(formula) else ["analytic", "bisect"],
        prove,
        compared,
        size=float(np.nanmax(np.where(np.isfinite(sizes), sizes, 0.0))),
        search=search,
        assumptions=(*assumptions, *apart.caveats),
    )


def supremum_of(
    pair: Pair, accuracy: float, budget: Budget, seed: int = 0, progress: Progress | None = None
) -> Supremum:
    """[lower, upper] around sup |T − f|, within the accuracy if the budget allows it."""
    return _both_ends(pair, accuracy, budget, seed, progress).unless_contradicted()


def _both_ends(pair: Pair, accuracy: float, budget: Budget, seed: int, progress: Progress | None) -> Supremum:
    target = pair.target
    seen = observe(pair.answer, target, seed, pair.dtype)
    found = Supremum(0.0, math.inf, None, accuracy, "none", 0, str(target.domain), pair.compared)
    if math.isnan(seen.largest):
        return found
    found = _from_below(found, pair, seen.worst, budget)
    for step in _steps(accuracy) if target.data is None else ():
        claim = Claim(target, 1.0, pair.places, seed, progress=progress, close=CLOSE_SHARE * step)
        found = _approached(replace(found, accuracy=step), pair, claim, seen, budget.share(STEP_TIME))
        if not found.reached or budget.over():
            break
    claim = Claim(target, 1.0, pair.places, seed, progress=progress, close=CLOSE_SHARE * accuracy)
    found = replace(found, accuracy=accuracy)
    done = budget.over() or found.reached or found.upper <= FLOOR * pair.size
    return found if done else _approached(found, pair, claim, seen, budget)


def _steps(accuracy: float) -> Iterator[float]:
    """Accuracies that are asked for before this one."""
    step = FIRST_STEP
    while step > accuracy / STEP:
        yield step
        step *= STEP


def _approached(found: Supremum, pair: Pair, claim: Claim, seen: Observation, budget: Budget) -> Supremum:
    """With better ends, by rounds of proofs, each from a better point, until the accuracy of `found` is reached."""
    target, accuracy = pair.target, found.accuracy
    for _ in range(ROUNDS):
        goal = max((1 + accuracy) * found.lower, FLOOR * pair.size, SMALLEST)
        before = found
        for method in pair.methods:
            own = budget.share(FIRST_METHOD_TIME if method != pair.methods[-1] else 1.0)
            proof = pair.prove(method, replace(claim, tolerance=goal), max(found.lower, seen.limit), own)
            if proof is None:
                continue
            if proof.bound < found.upper:
                caveats = (*proof.assumptions, *target.caveats)
                found = replace(found, upper=proof.bound, method=method, boxes=_count(proof), assumptions=caveats)
            if proof.evidence.interrupted:
                budget.interrupted.set()
                return found
            if found.reached or found.upper <= FLOOR * pair.size or target.data is not None:
                return found
            if found.upper <= WORTH_SEARCHING * found.lower:
                points = _points_in(proof.evidence.worst_boxes or (), seen.worst, target, claim.seed)
                found = _searched(found, pair, points, budget.share(SEARCH_TIME), claim.seed)
            if found.reached or budget.over():
                return found
        if not found.lower > before.lower * (1 + BETTER * accuracy):
            break
    return found


def _searched(found: Supremum, pair: Pair, points: np.ndarray, budget: Budget, seed: int) -> Supremum:
    """With a lower bound from these points, then from many fresh ones, until the accuracy is reached."""
    found = _from_below(found, pair, observe_from(pair.answer, pair.target, points).worst, budget, MORE_POLISHED)
    for turn in range(SEARCHES):
        if found.reached or budget.over():
            break
        fresh = observe(pair.answer, pair.target, seed + 1 + turn, pair.dtype, FRESH_POINTS).worst
        found = _from_below(found, pair, fresh, budget, MORE_POLISHED)
    return found


def _from_below(found: Supremum, pair: Pair, points: np.ndarray, budget: Budget, count: int = POLISHED) -> Supremum:
    """With the lower bound from these points, climbed from the first of them, if that is better."""
    if not len(points):
        return found
    worst = polished_from(pair.answer, pair.target, points, pair.dtype, count)
    best: Attained = attained(pair.in_balls, pair.target, worst, budget)
    return replace(found, lower=best.lower, point=best.point) if best.lower > found.lower else found


def _points_in(boxes: Sequence[Box], worst: np.ndarray, target: Target, seed: int) -> np.ndarray:
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
