"""The certificate by bisection: branch and bound with Taylor models, for any model and any target with a modulus.

On a box both T and f are enclosed by third-order Taylor models (`formula.taylor`), so g = T − f is known up to O(size⁴);
kinks that T and f share cancel. The box with the largest bound is halved again and again; the largest bound left is always
a valid bound on sup |g|, so the search can stop at any time. A callable is enclosed by its value at the centre and its
declared modulus, data by what the samples leave open at the centre and their declared Lipschitz constants.

Jumps: with a `margin` μ the claim leaves out every x whose surroundings {y in the box : |y_i − x_i| ≤ μ} contain points on
both sides of a condition of `where(…)`. A box of half-widths h ≤ μ/2 is dropped once two points y with |y_i − centre_i| ≤ μ − h_i
are proved to lie on different sides: they belong to the surroundings of every x in the box.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import reduce

import numpy as np

from ...common.budget import Budget
from ...common.machine import one_thread
from ...common.numbers import at_most, exact
from ...common.outward import UP_FEW
from ...common.progress import Progress
from ...formula.float_bounds import ULPS
from ...formula.real_balls import switched
from ...formula.simpler_kinks import plain
from ...formula.taylor.formula import Enclosed, TaylorAlgebra, condition_on
from ...formula.taylor.kink import merged
from ...formula.taylor.series import Space, Taylor
from ...formula.tree import switches, variables
from ...layer.arithmetic import Arithmetic
from ...layer.rounding.online_softmax import arithmetic_of_model, attention_assumed
from ...model.transformer import SingleLayerTransformer
from ...target.target import Target
from ..boxes import Covering, Patch
from ..certificate import Box, Evidence
from ..claim import Claim, Proof
from .frontier import Frontier, smear
from .other_attention import SIGMOID_ASSUMED
from .transformer import Network, Value

AT_ONCE = 2**22  # numbers held at a time
CLOSE_FACTOR = 1.5  # a bound within this factor of the observed error is not improved, unless that may decide
AMPLE_SHARE = 0.05  # share of the tolerance: a bound below it is good enough, however small the observed error
EXTRA_FACTOR, EXTRA_BOXES = 2, 2_000  # boxes, once within the tolerance: factor × those so far + extra
MOST_COORDINATES = 12
ALL_CORNERS_UP_TO = 6  # coordinates: all corners are then tried when looking for a jump


def prove(model: SingleLayerTransformer, claim: Claim, observed: float, budget: Budget | None = None) -> Proof | None:
    """A bound on sup |T − f|; None where nothing can be said: no declared modulus, weights not finite, many coordinates."""
    target, arithmetic = claim.target, arithmetic_of_model(model)
    if target.dimension > MOST_COORDINATES or (target.formula is None and target.modulus.kind == "estimated"):
        return None
    if not all(bool(t.isfinite().all()) for t in model.state_dict().values()):
        return None
    search = BranchAndBound.of(model, target, claim.places, arithmetic)
    assumptions = assumptions_of(model, target, arithmetic)
    if target.leaves_points_out:
        assumptions += (f"points within {exact(target.margin)} of a jump of `where` are left out",)
    return proof_by(search, claim, observed, budget or Budget(), assumptions)


def proof_by(
    search: "BranchAndBound", claim: Claim, observed: float, budget: Budget, assumptions: tuple[str, ...]
) -> Proof:
    """The bound that branch and bound finds, and what it leaves behind."""
    with one_thread(True):
        cover, boxes, interrupted = search.run(claim.tolerance, observed, budget, claim.progress)
    bound = float(cover.bound.max(initial=-math.inf)) * UP_FEW
    bound = bound if math.isfinite(bound) else math.inf  # also if all boxes are outside: nothing is claimed
    evidence = Evidence(
        boxes=boxes,
        left=len(cover),
        dropped_at_jumps=search.dropped,
        order=3,
        worst_boxes=(_worst(cover),) if len(cover) else None,
        interrupted=interrupted or None,
    )
    covering = _covering(cover, claim.target, bound) if len(cover) else None
    return Proof(bound, evidence, assumptions, covering)


def _worst(cover: Frontier) -> Box:
    """The box with the largest bound."""
    at, D = int(cover.bound.argmax()), cover.lower.shape[1]
    return Box(tuple(range(D)), tuple(cover.lower[at].tolist()), tuple(cover.upper[at].tolist()))


def _covering(cover: Frontier, target: Target, bound: float) -> Covering:
    """The boxes that are left; their bounds hold for every output, rounding included."""
    high = np.broadcast_to(cover.bound[:, None], (len(cover), target.outputs))
    patch = Patch(tuple(range(target.dimension)), cover.lower, cover.upper, -high, high)
    return Covering((patch,), np.zeros(target.outputs), target.domain, bound)


def assumptions_of(model: SingleLayerTransformer, target: Target, arithmetic: Arithmetic) -> tuple[str, ...]:
    """What bounds on boxes rest on."""
    assumed = [
        *arithmetic.assumptions,
        f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",
        f"{attention_assumed(model.config.attention)} (other kernels add their own rounding)",
    ]
    if model.config.attention == "sigmoid":
        assumed.append(SIGMOID_ASSUMED)
    if model.config.norm != "none":
        assumed += ["LayerNorm's mean within (m + 2)u mean|x| and its variance within 2(m + 4)u mean x², m = d_model"]
    if model.config.activation != "relu":
        assumed.append(f"{model.config.activation} within 16 units of its argument")
    if target.formula is None:
        assumed.append(f"the modulus of continuity as declared, on the whole box ({target.modulus})")
        values = "callable's values" if target.data is None else "samples' values, up to 4 units of rounding,"
        assumed.append(f"the {values} are within {exact(target.evaluation_error)} of f (declared)")
    return tuple(assumed)


class BranchAndBound:
    """Branch and bound for one function on Taylor models and one target."""

    def __init__(self, network: Callable[[Space], Value], target: Target, columns: Sequence[int], numbers: int) -> None:
        """`network`: T on boxes; `columns`: its outputs that are compared; `numbers`: its intermediate results, about."""
        self.network, self.columns = network, columns
        self.target = target if target.formula is None else target.part(plain(target.formula))
        per_box = 20 * math.comb(target.dimension + 3, 3) * numbers // 8
        self.at_once = max(1, min(4096, AT_ONCE // max(per_box, 1)))
        self.dropped = 0

    @classmethod
    def of(
        cls, model: SingleLayerTransformer, target: Target, places: tuple[int, ...], arithmetic: Arithmetic
    ) -> "BranchAndBound":
        c = model.config
        columns = [r * c.features_out + o for r in places for o in range(c.features_out)]
        widest = max(c.d_k, c.d_v) * c.all_tokens * c.heads * (c.read_rows.stop - c.read_rows.start)
        return cls(Network(model, arithmetic), target, columns, widest + c.all_tokens * (c.d_model + c.ffn_width))

    def run(
        self, tolerance: float, observed: float, budget: Budget, progress: Progress | None
    ) -> tuple[Frontier, int, bool]:
        """(cover, boxes evaluated, whether interrupted)."""
        lower, upper = (np.array([end]) for end in (self.target.domain.lower, self.target.domain.upper))
        cover = self._evaluated(lower, upper, np.array([np.inf]))
        boxes, within, started = 1, None, budget.elapsed
        try:
            while len(cover):
                bound = float(cover.bound.max())
                if bound <= tolerance and within is None:
                    within = boxes
                if bound <= CLOSE_FACTOR * observed and (bound <= tolerance or observed > tolerance):
                    break
                if bound <= AMPLE_SHARE * tolerance:
                    break
                if budget.over(boxes) or (within is not None and boxes > EXTRA_FACTOR * within + EXTRA_BOXES):
                    break
                if progress:
                    progress(f"certifying, bound {at_most(bound, 3)}", min(1.0, budget.elapsed / budget.seconds))
                goal = tolerance if observed <= tolerance < bound else CLOSE_FACTOR * observed
                worst = np.flatnonzero((cover.bound >= bound / 4) & (cover.bound > goal) & cover.divisible)
                pace = boxes / max(budget.elapsed - started, 1e-3)  # boxes per second
                most = max(1, int(min(self.at_once, pace * budget.left)))
                worst = worst[np.argsort(-cover.bound[worst])[:most]]
                if not len(worst) or bound > cover.bound[worst].max():
                    break  # the box that decides cannot be divided
                chosen, others = cover.pick(worst), np.delete(np.arange(len(cover)), worst)
                halves = chosen.halves()
                children = self._evaluated(*halves)
                boxes += len(halves[0])
                cover = cover.pick(others).with_more(children)
        except KeyboardInterrupt:
            return cover, boxes, True
        return cover, boxes, False

    def _evaluated(self, lower: np.ndarray, upper: np.ndarray, inherited: np.ndarray) -> Frontier:
        """A cover of these boxes, without those proved outside the domain or dropped at jumps; `inherited` bounds carry over."""
        starts = range(0, len(lower), self.at_once)
        batches = (self._batch(*(t[i : i + self.at_once] for t in (lower, upper, inherited))) for i in starts)
        return reduce(Frontier.with_more, batches)

    def _batch(self, lower: np.ndarray, upper: np.ndarray, inherited: np.ndarray) -> Frontier:
        within = self.target.domain.within
        if within is not None:
            keep = ~condition_on(Space(lower, upper), within).no
            lower, upper, inherited = lower[keep], upper[keep], inherited[keep]
        if self.target.margin:
            keep = ~self._at_jump(Space(lower, upper))
            self.dropped += int((~keep).sum())
            lower, upper, inherited = lower[keep], upper[keep], inherited[keep]
        if not len(lower):
            return Frontier(lower, upper, inherited, np.zeros(0, int))
        space = Space(lower, upper)
        bound, behind = np.zeros(len(lower)), np.zeros((space.dimension, len(lower)))
        for g, size, _ in self.differences(space):
            bound, behind = np.maximum(bound, size), np.maximum(behind, smear(g))
        return Frontier(lower, upper, np.minimum(bound, inherited), self.cut_axis(space, behind))

    def differences(self, space: Space) -> Iterator[tuple[Taylor, np.ndarray, np.ndarray]]:
        """For every output: T − f on the boxes, a bound on its size for the computed T too, and how far that T may be off."""
        outputs = self._target_on(space)
        first = len(space.kinks)
        answer = self.network(space)
        for column, f in zip(self.columns, outputs, strict=True):
            T = answer.model[column]
            g = merged(T - f.model, first)
            (low, high), (T_low, T_high) = g.range(), T.range()
            with np.errstate(all="ignore"):
                low, high = np.fmax(low, (T_low - f.high) * UP_FEW), np.fmin(high, (T_high - f.low) * UP_FEW)
                size = np.maximum(np.abs(low), np.abs(high)) + answer.off[:, column]
            yield g, np.where(np.isnan(size), np.inf, size * UP_FEW), answer.off[:, column]

    def cut_axis(self, space: Space, behind: np.ndarray) -> np.ndarray:
        """The coordinate along which each box is halved: the one `behind` most of the variation, unless its side is short."""
        sides = (space.upper - space.lower) / self.target.domain.sides
        weight = np.where(np.isfinite(behind), behind, 0.0) * (space.upper > space.lower).T
        longest = np.where(0.1 * sides.max(axis=1) <= sides.T, weight, -1.0)  # no slivers
        return np.where(longest.max(axis=0) > 0, longest.argmax(axis=0), sides.argmax(axis=1))

    def _target_on(self, space: Space) -> list[Enclosed]:
        """f on the boxes, output by output."""
        t = self.target
        if t.formula is not None:
            outputs: list[Enclosed] = t.formula.tape.run(TaylorAlgebra(space, formula=t.formula))
            return outputs
        values, uncertainty = t.enclosed(space.centre)
        if t.modulus.lipschitz is not None:
            swing = space.half @ np.array(t.modulus.lipschitz)
        else:
            assert t.modulus.omega is not None
            swing = np.array([t.modulus.omega(float(r)) for r in (space.half / t.domain.sides).max(axis=1) * UP_FEW])
        radius = (swing[:, None] + uncertainty) * UP_FEW
        outputs = []
        for value, reach in zip(values.T, radius.T, strict=True):
            good = np.isfinite(value)
            off = np.where(good, reach, np.inf)
            middle = np.where(good, value, 0.0)
            outputs.append(Enclosed(space.constant(middle, off), middle - off * UP_FEW, middle + off * UP_FEW))
        return outputs

    def _at_jump(self, space: Space) -> np.ndarray:
        """Boxes all of whose points are proved to be within the margin of a jump.

        A condition does not change along coordinates that it does not contain: these stay at the centre, however wide.
        """
        found, formula, D = np.zeros(space.boxes, dtype=bool), self.target.formula, space.dimension
        if formula is None:
            return found
        seen = np.isin(np.arange(1, D + 1), variables(*switches(formula.outputs)))
        half = np.where(seen, space.half, 0.0)
        box, margin = (self.target.domain.lower, self.target.domain.upper), self.target.margin
        surroundings = Space(*(np.clip(space.centre + s * (space.half + margin), *box) for s in (-1, 1)))
        around = TaylorAlgebra(surroundings, strict=True, formula=formula)
        formula.tape.run(around)
        rows = np.flatnonzero(around.undecided & (half <= margin / 2).all(axis=1))
        if not len(rows):
            return found
        reach = np.where(seen, margin * (1 - 1e-12) - space.half, 0.0)
        turns = [np.zeros(D), *np.eye(D), *-np.eye(D)]
        if D <= ALL_CORNERS_UP_TO:
            turns += [np.array(signs) for signs in itertools.product((-1.0, 1.0), repeat=D)]
        yes = no = np.False_  # [switch, row]: whether a switch is on, or off, somewhere around
        for turn in turns:
            at = np.clip(space.centre[rows] + reach[rows] * turn, *box)
            truths = np.array([switched(formula, p).truths for p in at.tolist()], dtype=float).T  # NaN: not decided
            # in the surroundings of every point of the box, whatever the rounding of `at`
            apart = np.maximum(*(np.nextafter(t, np.inf) for t in (at - space.lower[rows], space.upper[rows] - at)))
            near = ((apart <= margin) | ~seen).all(axis=1)
            yes, no = yes | (truths == 1) & near, no | (truths == 0) & near
        found[rows] = (yes & no).any(axis=0)
        return found
