"""A composed layer against a composed formula: T = Σ H(A(x)), f = Σ h(g(x)), one lane for every term.

    |A − g| ≤ δ on the domain           by interpolation, as for any layer, rounding included
    g(x) ∈ [low, high]                   by Taylor models
    H(a) − h(u) for |a − u| ≤ δ          on intervals of u: H(u) − h(u) by Taylor models, |H(a) − H(u)| ≤ δ·(slope of H)

The sum of the ranges of the lanes holds T − f, up to what the network rounds. Which lane belongs to which term is found by
comparing A with inner functions of f at points; a wrong guess gives a large bound, never a false one.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ..common.budget import Budget
from ..common.outward import UP, UP_FEW, U
from ..formula import Formula, enclose, evaluate, interval, to_text
from ..formula.additive import additive_terms
from ..formula.composition import Bounds, Composition, Way, ways
from ..formula.composition import U as OUTER
from ..formula.rewriting import sum_of
from ..formula.taylor.formula import Enclosed, TaylorAlgebra
from ..formula.taylor.series import Space
from ..formula.tree import Node, variables
from ..layer.composed_reading import Network
from ..layer.form import Block, Form
from ..layer.reading import Reading
from ..layer.rounding.deployed import Deployment
from ..target.points import uniform_points
from ..target.ranges import range_of
from ..target.target import Target
from .analytic import prove as analytic
from .certificate import Evidence
from .claim import Claim, Proof

PROBES = 300  # points at which lanes and inner functions are compared
ALIKE = 0.1  # share of a lane's range: inner functions that differ by more are not its own
ROUNDS, MOST_INTERVALS = 60, 200_000
CLOSE = 0.005  # relative excess over what was seen that is not worth halving for


@dataclass(frozen=True)
class Lane:
    """What a lane stands for in one output: h(g(x)). The stream holds A − shift; `apart` is how far A was seen from g."""

    index: int
    output: int
    term: Composition
    shift: float
    apart: float


def prove(reading: Reading, network: Network, claim: Claim, budget: Budget, how: Deployment) -> Proof | None:
    """The proof, or None if the lanes of the model are not inner functions of the formula."""
    target = claim.target
    lanes = matched(reading, network, target)
    if lanes is None or target.formula is None or len(reading.hinges):
        return None
    inner, constants = list[Proof](), [lane for lane in lanes if lane.index < 0]
    lanes = [lane for lane in lanes if lane.index >= 0]
    for lane in lanes:
        own = replace(claim, tolerance=max(lane.apart, 1e-290), progress=None).about(target.inner(lane.term.inner))
        proof = analytic.prove(_lane_form(reading.form, lane), reading.frame, own, budget, how=how)
        if proof is None or not np.isfinite(proof.bound):
            return None
        inner.append(proof)
    ends = np.tile(network.bias[:, None], (1, 2))
    sizes, rounding = np.abs(network.bias), np.zeros(target.outputs)
    for lane, proof in zip(lanes, inner, strict=True):
        delta = proof.bound
        span = range_of(target.inner(lane.term.inner).formula, target.domain)  # type: ignore[arg-type]
        if not np.isfinite(span).all():
            return None
        curve = Curve.of(network, lane)
        found = outer_range(curve, lane.term.outer, span, delta)
        ends[lane.output] += found
        sizes[lane.output] += max(map(abs, found))
        top = np.nextafter(span[1] + delta * UP - lane.shift, np.inf)
        rounding[lane.output] += network.rounding(lane.index, lane.output, float(top), how.arithmetic)
    for lane in constants:  # terms without variables
        ball = enclose(Formula("", target.formula.names, (lane.term.inner,)), [0.0] * target.dimension)[0]
        ends[lane.output] -= (ball.upper(), ball.lower())
        sizes[lane.output] += ball.magnitude()
    adding = 2 * (len(lanes) + 2) * U * sizes  # what rounding does to these sums here
    bound = float((np.abs(ends).max(axis=1) + rounding + adding).max()) * UP_FEW
    told = tuple(_told(lane, proof.bound, target.formula.names) for lane, proof in zip(lanes, inner, strict=True))
    return Proof(bound, _evidence(inner, float(rounding.max())) | Evidence(lanes=told), inner[0].assumptions)


def _told(lane: Lane, bound: float, names: tuple[str, ...]) -> dict[str, Any]:
    """A lane for the certificate: the stream holds inner − shift within the bound, and the output adds outer(inner)."""
    inner, outer = to_text(lane.term.inner, names), to_text(lane.term.outer, ("u",))
    return {"output": lane.output, "inner": inner, "outer": outer, "shift": lane.shift, "bound": bound}


def _evidence(proofs: list[Proof], rounding: float) -> Evidence:
    """What the proofs of the lanes leave behind, one after the other."""

    def joined(name: str) -> tuple:  # type: ignore[type-arg]
        return tuple(entry for proof in proofs for entry in getattr(proof.evidence, name) or ())

    names = ("groups", "boxes", "degrees", "ellipses", "worst_boxes")
    together = rounding + sum(proof.evidence.rounding or 0.0 for proof in proofs)
    cut = sum(proof.evidence.truncation or 0.0 for proof in proofs)
    interrupted = True if any(proof.evidence.interrupted for proof in proofs) else None
    return Evidence(**{n: joined(n) for n in names}, truncation=cut, rounding=together, interrupted=interrupted)


def matched(reading: Reading, network: Network, target: Target) -> list[Lane] | None:
    """The lanes with the terms of the formula that they stand for; None if some term or lane is left over."""
    if target.formula is None or target.domain.within is not None or target.margin:
        return None
    x = target.domain.points(uniform_points(PROBES, target.dimension, 5).numpy())
    a = reading.form(reading.frame(torch.from_numpy(x))).numpy()
    bounds, found = bounds_on(target), list[Lane]()
    for output, tree in enumerate(target.formula.outputs):
        free = sorted({int(k) for k in network.lanes[network.values[:, output] != 0]})
        plain = list[Node]()
        for term in additive_terms(tree):
            options = [(way, _lanes_of(way, free, a, x, target, output)) for way in ways(term, bounds)]
            good = [(way, lanes) for way, lanes in options if lanes is not None]
            way, lanes = good[0] if good else ((Composition(term, OUTER),), [])
            found += lanes
            plain += [one.inner for one in way if one.plain]
            free = [k for k in free if k not in {lane.index for lane in lanes}]
        rest = sum_of(plain)
        if free:
            lane = _alike(Composition(rest, OUTER), free, a, x, target, output)
            if lane is None or len(free) > 1:
                return None
            found.append(lane)
        elif variables(rest):
            return None
        elif plain:
            found.append(Lane(-1, output, Composition(rest, OUTER), 0.0, 0.0))
    return found


def _lanes_of(
    way: Way, free: list[int], a: np.ndarray, x: np.ndarray, target: Target, output: int
) -> list[Lane] | None:
    """A lane for each composition, of those that are still free; None if some has none, or all are plain."""
    found, left = list[Lane](), list(free)
    for one in way:
        if one.plain:
            continue
        lane = _alike(one, left, a, x, target, output)
        if lane is None:
            return None
        found.append(lane)
        left.remove(lane.index)
    return found or None


def _alike(
    term: Composition, free: list[int], a: np.ndarray, x: np.ndarray, target: Target, output: int
) -> Lane | None:
    assert target.formula is not None
    with np.errstate(all="ignore"):
        g = np.asarray(evaluate(Formula("", target.formula.names, (term.inner,)), x))[:, 0]
    near = list[Lane]()
    for k in free:
        off = g - a[:, k]
        shift = float(off.max() + off.min()) / 2
        lane = Lane(k, output, term, shift, float(np.abs(off - shift).max()))
        near += [lane] if lane.apart <= ALIKE * float(np.ptp(a[:, k])) else []
    return min(near, key=lambda lane: lane.apart, default=None)


def bounds_on(target: Target) -> Bounds:
    """Proved bounds of functions of the formula's variables on the target's box."""
    assert target.formula is not None
    names = target.formula.names
    sides = [interval(a, b) for a, b in zip(target.domain.lower, target.domain.upper, strict=True)]

    def bounds(node: Node) -> tuple[float, float]:
        formula = Formula("", names, (node,))
        ball = enclose(formula, sides)[0]
        if ball.is_finite() and (ball.lower() > 0 or ball.upper() < 0):
            return ball.lower(), ball.upper()
        return range_of(formula, target.domain)

    return bounds


def _lane_form(form: Form, lane: Lane) -> Form:
    """A as a form: one output, shifted, with the heads that contribute to it."""
    blocks, at = list[Block](), slice(lane.index, lane.index + 1)
    for b in form.blocks:
        used = (b.values[..., at] != 0).any(dim=(1, 2)) | (b.slopes[..., at] != 0).any(dim=(1, 2, 3))
        if used.any():
            blocks.append(Block(b.keys[used], b.biases[used], b.values[used][..., at], b.slopes[used][..., at]))
    return Form(torch.full_like(form.bias[at], lane.shift), form.linear[:, at], tuple(blocks))


@dataclass(frozen=True)
class Curve:
    """H(u) = Σ_i values_i·relu(u − knots_i), knots in increasing order; `off` is what their rounding changes at most."""

    knots: np.ndarray
    values: np.ndarray
    off: float = 0.0

    @staticmethod
    def of(network: Network, lane: Lane) -> "Curve":
        own = (network.lanes == lane.index) & (network.values[:, lane.output] != 0)
        knots, values = lane.shift - network.offsets[own], network.values[own, lane.output]
        order = np.argsort(knots, kind="stable")
        return Curve(knots[order], values[order], float((np.abs(values) * np.abs(knots)).sum()) * U * UP_FEW)

    def line(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(value at u, slope, and bounds on the rounding of both) of the piece to the right of u."""
        count = np.searchsorted(self.knots, u, side="right")
        running = np.concatenate([[0.0], np.cumsum(self.values)])
        sizes = np.concatenate([[0.0], np.cumsum(np.abs(self.values))]) * UP
        off = (len(self.knots) + 4) * U
        value, size = np.zeros_like(u), np.zeros_like(u)
        for start in range(0, len(u), 4096):
            some = slice(start, start + 4096)
            reach = np.maximum(u[some, None] - self.knots, 0.0)
            value[some], size[some] = reach @ self.values, reach @ np.abs(self.values)
        return value, running[count], off * size * UP, off * sizes[count]

    def steepest(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """The largest |slope| on [low, high]."""
        slopes = np.abs(np.concatenate([[0.0], np.cumsum(self.values)]))
        slopes = slopes + (len(self.knots) + 4) * U * np.concatenate([[0.0], np.cumsum(np.abs(self.values))])
        first = np.searchsorted(self.knots, low, side="left")
        last = np.searchsorted(self.knots, high, side="right")
        table = [slopes]  # maxima over 1, 2, 4, … pieces
        while len(table[-1]) > 1 and 2 ** len(table) <= len(slopes):
            step = 2 ** (len(table) - 1)
            table.append(np.maximum(table[-1][:-step], table[-1][step:]))
        level = np.floor(np.log2(last - first + 1)).astype(int)
        found = np.zeros(len(low))
        for k in np.unique(level).tolist():
            own = level == k
            found[own] = np.maximum(table[k][first[own]], table[k][last[own] + 1 - 2**k])
        return found * UP_FEW


def outer_range(curve: Curve, outer: Node, span: tuple[float, float], delta: float) -> tuple[float, float]:
    """Bounds on H(a) − h(u) for u in the span and |a − u| ≤ δ."""
    formula = Formula("", ("u",), (outer,))
    inside = curve.knots[(curve.knots > span[0]) & (curve.knots < span[1])]
    cuts = np.unique(np.concatenate([[span[0]], inside, [span[1]]]))
    lower, upper = cuts[:-1], cuts[1:]
    if not len(lower):
        lower = upper = np.array([span[0]])
    low, high, examined = np.inf, -np.inf, 0
    for turn in range(ROUNDS):
        bottom, top, seen = _ranges(curve, formula, lower, upper, delta)
        examined += len(lower)
        least, most = min(low, float(seen.min())), max(high, float(seen.max()))
        slack = CLOSE * max(most - least, 0.0)
        wide = (bottom < least - slack) | (top > most + slack)
        wide &= (upper - lower) > 4 * np.spacing(np.maximum(np.abs(lower), np.abs(upper)))
        if turn == ROUNDS - 1 or examined + 2 * int(wide.sum()) > MOST_INTERVALS:
            wide[:] = False
        low = min(low, float(bottom[~wide].min(initial=np.inf)))
        high = max(high, float(top[~wide].max(initial=-np.inf)))
        if not wide.any():
            break
        middle = (lower[wide] + upper[wide]) / 2
        lower, upper = np.concatenate([lower[wide], middle]), np.concatenate([middle, upper[wide]])
    off = 2 * curve.off * UP_FEW
    return low - off - U * abs(low), high + off + U * abs(high)


def _ranges(
    curve: Curve, formula: Formula, lower: np.ndarray, upper: np.ndarray, delta: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(low, high) of H(a) − h(u) on intervals of u within one piece of H, and the same as seen at their middles."""
    space = Space(lower[:, None], upper[:, None])
    h: Enclosed = formula.tape.run(TaylorAlgebra(space))[0]
    value, slope, value_off, slope_off = curve.line(lower)
    line = space.variable(0) - space.constant(lower)
    H = line.times(slope, slope_off) + space.constant(value, value_off)
    bottom, top = (H - h.model).range()
    H_low, H_high = H.range()
    with np.errstate(all="ignore"):
        bottom = np.fmax(bottom, H_low - h.high - 2 * U * (np.abs(H_low) + np.abs(h.high)))
        top = np.fmin(top, H_high - h.low + 2 * U * (np.abs(H_high) + np.abs(h.low)))
        left, right = np.nextafter(lower - delta * UP_FEW, -np.inf), np.nextafter(upper + delta * UP_FEW, np.inf)
        moved = delta * curve.steepest(left, right) * UP_FEW
        middle = (lower + upper) / 2
        at = H.c[0] - np.asarray(evaluate(formula, middle[:, None]))[:, 0]
        at = np.where(np.isfinite(at), at, 0.0)
        bottom, top = bottom - moved - 2 * U * np.abs(bottom), top + moved + 2 * U * np.abs(top)
    bottom, top = np.where(np.isnan(bottom), -np.inf, bottom), np.where(np.isnan(top), np.inf, top)
    return bottom, top, np.concatenate([at - moved, at + moved])
