"""A piecewise-linear decoder of ReLUs through given nodes, and the proof of what it answers near them.

Nodes x_0 < x_1 < … with values y_k: from a node in the middle, x_m, slopes change to the right and to the left,

    D(x) = y_m + Σ_i a_i relu(x − t_i) + Σ_i a_i' relu(t_i' − x),      t_i ≥ x_m ≥ t_i',

one unit per node where the slope changes. Starting in the middle keeps the terms, which cancel, small.

The proof is a finite case analysis. The head's computed output is within a relative `spread` of a node, whatever the input.
D with the stored numbers is evaluated in exact rational arithmetic at the node, at both ends of that interval and at the
knots within: a piecewise-linear function is extreme there. A unit is relu(±h + b), one rounding of its own size, since ±h
is exact; product and sum over K units and the offset, in any order, add at most K + 1 more:

    |computed − D(h)| ≤ γ_(K+2) (|y_m| + Σ_i |a_i| relu_i(h)),

and the bracket, convex in h, is largest at an end of the interval. Products that underflow are off by less than what
rounding the terms up to floats adds.
"""

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise

from ....layer.arithmetic import arithmetic_of
from ....model.transformer import SingleLayerTransformer
from .weights import exact_gamma, rounded_up

Node = tuple[Fraction, Fraction]


@dataclass(frozen=True)
class Unit:
    """height·relu(side·(x − knot)), side = 1 or −1."""

    side: int
    knot: Fraction
    height: Fraction


@dataclass(frozen=True)
class Decoder:
    """offset + Σ units, in exact arithmetic."""

    offset: Fraction
    units: tuple[Unit, ...]

    def __call__(self, x: Fraction) -> Fraction:
        return self.offset + sum((side(x) for side in self._sides), start=Fraction(0))

    def size(self, x: Fraction) -> Fraction:
        """|offset| + Σ |units|: how much is added up."""
        return abs(self.offset) + sum((side(x) for side in self._sizes), start=Fraction(0))

    def knots_between(self, low: Fraction, high: Fraction) -> list[Fraction]:
        return self._knots[bisect_left(self._knots, low) : bisect_right(self._knots, high)]

    @cached_property
    def _knots(self) -> list[Fraction]:
        return sorted({unit.knot for unit in self.units})

    @cached_property
    def _sides(self) -> list["_Side"]:
        return [_Side(side, [(u.knot, u.height) for u in self.units if u.side == side]) for side in (1, -1)]

    @cached_property
    def _sizes(self) -> list["_Side"]:
        return [_Side(side, [(u.knot, abs(u.height)) for u in self.units if u.side == side]) for side in (1, -1)]


class _Side:
    """Σ height·relu(side·(x − knot)) over the units of one side, from running sums of height and height·knot."""

    def __init__(self, side: int, units: list[tuple[Fraction, Fraction]]) -> None:
        self.side = side
        ordered = sorted((side * knot, height) for knot, height in units)
        self.knots = [knot for knot, _ in ordered]
        self.heights = list(accumulate((height for _, height in ordered), initial=Fraction(0)))
        self.moments = list(accumulate((height * knot for knot, height in ordered), initial=Fraction(0)))

    def __call__(self, x: Fraction) -> Fraction:
        at = self.side * x
        k = bisect_left(self.knots, at)
        return self.heights[k] * at - self.moments[k]


def decoder_through(nodes: list[Node], start: int) -> Decoder:
    """The decoder through the nodes (in increasing order), from the one numbered `start`."""
    slopes = [(y1 - y0) / (x1 - x0) for (x0, y0), (x1, y1) in pairwise(nodes)]
    right = [(nodes[k][0], slopes[k] - (slopes[k - 1] if k > start else 0)) for k in range(start, len(slopes))]
    left = [(nodes[k][0], (slopes[k] if k < start else 0) - slopes[k - 1]) for k in range(start, 0, -1)]
    units = [Unit(side, knot, a) for side, changes in ((1, right), (-1, left)) for knot, a in changes if a]
    return Decoder(nodes[start][1], tuple(units))


def write_decoder(model: SingleLayerTransformer, decoder: Decoder, lane: int = 0, factor: int = 1) -> None:
    """Units and offset into the feed-forward network: from a coordinate of the stream, times a factor, to output 0.

    The decoder of lane k fills the k-th block of hidden units; all blocks are equally wide.
    """
    first = lane * len(decoder.units)
    for i, unit in enumerate(decoder.units, start=first):
        model.W_1[lane, i], model.b_1[i] = unit.side, float(-unit.side * unit.knot)
        model.W_2[i, 0] = factor * float(unit.height)
    model.b_2[0] += factor * float(decoder.offset)
    model.W_R[0, 0] = 1.0


def read_decoder(model: SingleLayerTransformer, lane: int = 0) -> Decoder:
    """The decoder that the stored, rounded numbers make of a coordinate; the offset is that of all lanes."""
    sides, biases, heights = (t.detach().double().tolist() for t in (model.W_1[lane], model.b_1, model.W_2[:, 0]))
    units = [
        Unit(int(side), -int(side) * Fraction(bias), Fraction(height))
        for side, bias, height in zip(sides, biases, heights, strict=True)
        if side
    ]
    return Decoder(Fraction(model.b_2[0].item()), tuple(units))


def decoding_terms(model: SingleLayerTransformer, nodes: list[Node], spread: Fraction) -> dict[str, float]:
    """The terms of the error when the head's output is within `spread` (relative) of a node x, and y is the right answer."""
    return {name: rounded_up(max(errors)) for name, errors in decoding_errors(model, nodes, spread).items()}


def decoding_errors(
    model: SingleLayerTransformer, nodes: list[Node], spread: Fraction, lane: int = 0
) -> dict[str, list[Fraction]]:
    """The terms of the error at every node. Several lanes add up: each counts the roundings of the sum over all of them."""
    decoder = read_decoder(model, lane)
    units = int((model.W_1 != 0).any(dim=0).sum())
    rounding = exact_gamma(units + 2, Fraction(arithmetic_of(model.W_E.dtype).u))
    stored, moved, summed = list[Fraction](), list[Fraction](), list[Fraction]()
    for x, y in nodes:
        low, high = sorted((x * (1 - spread), x * (1 + spread)))
        value = decoder(x)
        stored.append(abs(value - y))
        moved.append(max(abs(decoder(at) - value) for at in (low, high, *decoder.knots_between(low, high))))
        summed.append(rounding * max(decoder.size(low), decoder.size(high)))
    return {
        "decoder, stored knots and heights": stored,
        "rounding of the head, seen through the decoder": moved,
        "rounding of the feed-forward network": summed,
    }


def units_of(decoder: Decoder) -> int:
    """Width of the feed-forward network; a constant still needs one (idle) unit."""
    return max(1, len(decoder.units))
