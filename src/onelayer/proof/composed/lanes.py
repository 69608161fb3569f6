"""Which lane of a composed layer stands for which term of the formula: compared at points.

A wrong guess gives a large bound, never a false one.
"""

from dataclasses import dataclass

import numpy as np
import torch

from ...formula import Formula, evaluate
from ...formula.additive import additive_terms, gathered
from ...formula.composition import Composition, Way, ways
from ...formula.composition import U as OUTER
from ...formula.tree import Node, Sum, variables
from ...layer.composed_reading import OuterNetwork
from ...layer.reading import Reading
from ...target.points import uniform_points
from ...target.ranges import bounds_on
from ...target.target import Target

PROBES = 300  # points at which lanes and inner functions are compared
ALIKE = 0.1  # share of a lane's range: inner functions that differ by more are not its own


@dataclass(frozen=True)
class Lane:
    """What a lane stands for in one output: h(g(x)). The stream holds A − shift; `apart` is how far A was seen from g."""

    index: int
    output: int
    term: Composition
    shift: float
    apart: float


def matched(reading: Reading, network: OuterNetwork, target: Target) -> list[Lane] | None:
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
        rest = gathered(Sum, plain)
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
