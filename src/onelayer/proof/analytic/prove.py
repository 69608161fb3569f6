"""The analytic certificate: a proof of sup |T − f| ≤ ε for analytic targets, by Chebyshev interpolation on boxes.

Groups with one head, memory tokens above all, are proved without their denominator, in up to ten coordinates: `rational`
says how (with `cleared`, `degrees`, `bernstein`; for the slopes of a head with `covariance`, `convolved`). The rest is about
groups with several heads, domains with a condition, and groups of up to four coordinates where f has infinite slopes.

On a box, g = T − f is interpolated at (p+1)^D Chebyshev points. If |g| ≤ V_i with coordinate i on its Bernstein ellipse of
parameter ρ_i and the others real, the interpolant is within Σ_i Λ_p^(i−1)·4V_i ρ_i^(−p)/(ρ_i − 1) of g; and the interpolant,
being a polynomial, is bounded by finitely many values (Ehlich–Zeller). V of T comes from the strip bound of its heads, V of
f from one evaluation of the formula in complex balls, which also proves that f is analytic there. The stages, in order:
`layer.form` T as a sum of softmax averages; `summand` T and f in one group of coordinates; `strip` T on ellipses; `tiles` and
`subdivision` the boxes, which do not depend on ε; `chebyshev` the interpolation; `grid` T at the nodes; `enclosure` the range
of g on a box; `cover` all boxes, refined where it matters.

If neither T nor f mixes two groups of coordinates, g is a sum over groups and its range is the sum of the ranges:
max g = Σ_g max g_g, min g = Σ_g min g_g. So an additive target costs one low-dimensional certificate per group. Groups may
overlap, as in x1*x2 + x2*x3: the sum of the ranges then still holds g, but need not be its range, and disjoint groups are
tried after it where they are small enough.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ...common.budget import Budget
from ...common.numbers import at_most
from ...common.outward import UP
from ...common.progress import Progress
from ...formula.additive import components, links_of, maximal, parts_of
from ...formula.float_bounds import ULPS
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Frame
from ...layer.form import Form
from ...layer.heads import Hinges
from ...layer.rounding.deployed import FormProgram, edges
from ...target.singular import places_of
from ...target.target import Target
from ..boxes import Covering, bound_of_sum, range_of_sum
from ..certificate import Evidence
from ..claim import Claim, Proof
from .cleared import OneHead
from .covariance import SlopeHead
from .cover import Cover, cover
from .panelled import PanelledCover, panelled
from .rational import RationalCover
from .summand import MOST_COORDINATES, MOST_WITH_HEADS, Summand

AnyCover = Cover | PanelledCover | RationalCover

TRUNCATION_SHARE = 0.05  # share of the tolerance that truncation may take
ROUNDING_SHARE = 0.01  # share of the tolerance below which rounding is not bounded more closely


def prove(
    form: Form,
    frame: Frame,
    claim: Claim,
    budget: Budget | None = None,
    truncation: float | None = None,
    program: FormProgram | None = None,
    deployed: np.ndarray | None = None,
    hinges: tuple[Hinges, torch.Tensor] | None = None,
) -> Proof | None:
    """The proof, or None where this method does not apply (no formula, too many coordinates in one group).

    With `hinges`, and their values, T has them beside the form; they and the kinks of f must be of one coordinate each.

    `truncation` is the absolute error that interpolation may add, by default a twentieth of the tolerance: it decides the
    degrees, not the boxes. Once a bound holds, the stage reported to `progress` names it; an interrupt from the keyboard
    then ends the refinement, and the bound so far is returned. Before that the interrupt is raised.
    `program` says how the form is computed, by default in float64 as it stands; `deployed` is its rounding per output, if that
    is known already (`form` may be only some heads of the model).
    """
    target, tolerance = claim.target, claim.tolerance
    if target.formula is None or not form.is_finite():
        return None
    if hinges is not None and (target.domain.within or (hinges[0].directions.ne(0).sum(dim=1) != 1).any()):
        return None
    budget, program = budget or Budget(), program or FormProgram.of_form(form, FLOAT64, frame)
    best: Proof | None = None
    for groups in _splittings(form, target, hinges):
        alone = hinges is None or all(len(group) == 1 for group in groups)
        if alone and _within_reach(form, target, groups) and (best is None or not _settled(best, tolerance)):
            goal = (claim.share(TRUNCATION_SHARE) * tolerance if truncation is None else truncation) / len(groups)
            found = _prove(form, frame, claim, groups, goal, budget, program, deployed, hinges)
            best = found if best is None or found.bound < best.bound else best
    return best


def _settled(proof: Proof, tolerance: float) -> bool:
    """Whether there is nothing more to try."""
    return proof.bound <= tolerance or bool(proof.evidence.interrupted)


def _prove(
    form: Form,
    frame: Frame,
    claim: Claim,
    groups: list[tuple[int, ...]],
    goal: float,
    budget: Budget,
    program: FormProgram,
    deployed: np.ndarray | None,
    hinges: tuple[Hinges, torch.Tensor] | None,
) -> Proof:
    """The proof with g split into these groups, truncation up to `goal` in each."""
    target, progress = claim.target, claim.progress
    assert target.formula is not None
    if deployed is None:
        enough = claim.share(ROUNDING_SHARE) * claim.tolerance
        deployed = program.rounding(*box_of(target, frame), enough, budget.over).numpy()
    wanted = claim.tolerance / UP - float(deployed.max()) if len(groups) == 1 else math.inf
    covers: list[AnyCover] = []
    shares = zip(groups, form.split(groups), parts_of(target.formula, groups), strict=True)
    for position, (group, own, formula) in enumerate(shares):
        mine = None if hinges is None else _hinges_of(hinges, group)
        summand = Summand(own, formula, target, frame, group, claim.device, budget, hinges=mine)
        report = _progress_of(progress, position, len(groups))
        covers.append(_cover(summand, goal, wanted, budget, report, claim.close))
    interrupted, on_gpu = None, torch.device(claim.device).type != "cpu"
    try:
        _refine(covers, budget, progress, deployed, claim.tolerance if claim.close else 0.0)
    except KeyboardInterrupt:  # every box is bounded: what was found so far holds
        interrupted = True
    evidence = Evidence(
        groups=tuple(groups),
        boxes=tuple(0 if c.boxes is None else len(c.boxes) for c in covers),
        degrees=tuple(c.degree for c in covers),
        ellipses=tuple(c.ellipse for c in covers if not isinstance(c, RationalCover)) or None,
        truncation=goal * len(groups),
        worst_boxes=tuple(c.worst for c in covers if c.worst is not None),
        rounding=float(deployed.max()),
        interrupted=interrupted,
    )
    assumptions = (
        *program.arithmetic.assumptions,
        f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",
        "explicit softmax attention, or its factored form (other kernels add their own rounding)",
        *(("the proof's float64 arithmetic on a GPU is IEEE 754, exp within 2 units in the last place",) * on_gpu),
    )
    bound = _bound(covers, deployed)
    return Proof(bound, evidence, assumptions, _covering(covers, deployed, target, bound))


def _cover(
    summand: Summand, goal: float, wanted: float, budget: Budget, report: Callable[[float], None], close: float | None
) -> AnyCover:
    """A cover by rational Bernstein forms if there is one head, no condition and no singular place, else by interpolation.

    Without heads T − f is f less an affine function, which interpolation bounds at once.
    """
    alone = summand.form.heads <= 1 and summand.target.domain.within is None and summand.hinges is None
    idle = not summand.form.blocks and summand.dimension <= MOST_WITH_HEADS
    head = SlopeHead.of(summand) or OneHead.of(summand) if alone and not idle else None
    if head is None or (summand.dimension <= MOST_WITH_HEADS and _is_steep(summand)):
        panels = panelled(summand, goal, budget, report, close)
        assert panels is not None or summand.hinges is None  # which nothing else knows of
        return panels or cover(summand, goal, budget, report, close)
    found = RationalCover(summand, head, goal, wanted, close)
    found.start(budget, report)
    return found


def _hinges_of(hinges: tuple[Hinges, torch.Tensor], group: tuple[int, ...]) -> tuple[Hinges, torch.Tensor]:
    """Those of one coordinate."""
    units, values = hinges
    mine = units.directions[:, group[0]] != 0
    return Hinges(units.directions[mine][:, list(group)], units.offsets[mine]), values[mine]


def _is_steep(summand: Summand) -> bool:
    """Whether f has infinite slopes on the box: only interpolation knows how to freeze what is singular (`frozen`)."""
    lower, upper = (tuple(side.tolist()) for side in summand.sides)
    return bool(places_of(summand.formula, lower, upper))


def _covering(covers: Sequence[AnyCover], deployed: np.ndarray, target: Target, bound: float) -> Covering | None:
    """The boxes of the covers; None if some cover has none."""
    patches = [c.patch for c in covers if c.patch is not None]
    return Covering(tuple(patches), deployed, target.domain, bound) if len(patches) == len(covers) else None


def box_of(target: Target, frame: Frame) -> tuple[torch.Tensor, torch.Tensor]:
    """The domain's box in normalised coordinates, rounded outward."""
    numbers = (target.domain.lower, target.domain.upper, frame.shift, frame.scale)
    return edges(*(torch.tensor(t, dtype=torch.float64) for t in numbers))


def _within_reach(form: Form, target: Target, groups: list[tuple[int, ...]]) -> bool:
    """Whether every group is small enough for the heads that it has."""
    plain = target.domain.within is None
    shares = zip(groups, form.split(groups), strict=True)
    return all(len(g) <= (MOST_COORDINATES if plain and own.heads <= 1 else MOST_WITH_HEADS) for g, own in shares)


def _splittings(
    form: Form, target: Target, hinges: tuple[Hinges, torch.Tensor] | None = None
) -> list[list[tuple[int, ...]]]:
    """Ways to write g as a sum over groups of coordinates: overlapping groups, as small as possible; then disjoint ones."""
    assert target.formula is not None
    if target.domain.within is not None:
        return [[tuple(range(target.dimension))]]
    links = [*form.links(), *links_of(target.formula)]
    if hinges is not None:
        links += [(int(j),) for j in hinges[0].directions.ne(0).any(dim=0).nonzero().flatten()]
    small, apart = maximal(links) or [(0,)], components(links) or [(0,)]
    return [small] if small == apart else [small, apart]


def _progress_of(progress: Progress | None, position: int, groups: int) -> Callable[[float], None]:
    """Reports the progress of one cover among several; together they are the first half of the whole."""

    def report(fraction: float) -> None:
        if progress:
            progress("certifying", (position + fraction) / groups / 2)

    return report


def _refine(
    covers: Sequence[AnyCover], budget: Budget, progress: Progress | None, deployed: np.ndarray, enough: float
) -> None:
    """Refine the covers in turn, until none can be refined, or the bound is small enough."""
    busy, steps = list(covers) if math.isfinite(_bound(covers, deployed)) else [], 0
    while busy and _bound(covers, deployed) > enough:
        busy = [c for c in busy if c.refine(budget, alone=len(covers) == 1)]
        steps += 1
        if progress:
            stage = f"certifying, bound {at_most(_bound(covers, deployed), 3)}"
            progress(stage, 1 - 0.5 * 0.9**steps if busy else 1.0)


def _bound(covers: Sequence[AnyCover], deployed: np.ndarray) -> float:
    """max |Σ g_g| from the ranges of the g_g, and the rounding of the deployed model; ∞ unless it is a number."""
    return bound_of_sum([c.range for c in covers], deployed)


def range_of(
    form: Form,
    frame: Frame,
    target: Target,
    goal: float,
    close: float,
    budget: Budget,
    settled: Callable[[np.ndarray, np.ndarray], bool],
) -> tuple[np.ndarray, np.ndarray] | None:
    """(low, high), [out]: low ≤ T − f ≤ high on the domain for the real function of the form; None where nothing is proved.

    Boxes are refined until every end is within `close` times the width of what was seen, `settled(low, high)` holds or the
    budget is spent. `goal` is what truncation may add. Ways to split g into groups are tried in turn, and the best ends kept.
    """
    if target.formula is None or not form.is_finite():
        return None
    best: tuple[np.ndarray, np.ndarray] | None = None
    for groups in _splittings(form, target):
        if not _within_reach(form, target, groups):
            continue
        shares = zip(groups, form.split(groups), parts_of(target.formula, groups), strict=True)
        summands = (Summand(own, formula, target, frame, group, "cpu", budget) for group, own, formula in shares)
        covers = [_cover(s, goal / len(groups), math.inf, budget, lambda _: None, close) for s in summands]
        busy, found = list(covers), _closer(best, covers)
        try:
            while busy and np.isfinite(found).all() and not settled(*found):
                busy = [c for c in busy if c.refine(budget, alone=False)]
                found = _closer(best, covers)
        except KeyboardInterrupt:
            return _closer(best, covers)
        best = found
        if settled(*best):
            break
    return best


def _closer(best: tuple[np.ndarray, np.ndarray] | None, covers: Sequence[AnyCover]) -> tuple[np.ndarray, np.ndarray]:
    """The range of Σ g_g from the ranges of the g_g, rounded outward, or what is known already where that is closer."""
    low, high = range_of_sum([c.range for c in covers])
    return (low, high) if best is None else (np.maximum(low, best[0]), np.minimum(high, best[1]))
