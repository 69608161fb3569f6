"""Boxes for the analytic certificate, from the phases of the heads and the singularities of the formula alone.

A box is good if polynomials of moderate degree P would reproduce T − f on it to NOMINAL_ACCURACY times the layer's size: for
every coordinate i there is an ellipse, of a parameter ρ on the ladder RHOS, with V_i·4ρ^(−P)/(ρ − 1) small enough, V_i a
bound on |T| + |f| with x_i on that ellipse, and V_i is not out of all proportion. A box that is not good is halved across the
coordinate that needs the highest degree. The layout does not depend on the requested accuracy: that decides the degree on
each box, later.

A box that touches a place where f is singular is never good. Once it is so small that freezing what is singular costs next to
nothing (`frozen`), it only has to be good for the layer and what is left of f.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ...common.outward import UP, UP_FEW
from ...formula import gradient, interval
from ...formula.complex_rectangles import enclose_rectangles
from ...target.singular import singular_nodes
from .frozen import Freezer, Frozen
from .strip import Ellipses, size_on_ellipses
from .summand import Summand
from .tiles import DEGREES, Tiles

NOMINAL_ACCURACY = {1: 1e-10, 2: 1e-9, 3: 1e-7, 4: 1e-6}  # by the number of coordinates, as the degree below
NOMINAL_DEGREE = {1: 36, 2: 28, 3: 20, 4: 16}  # P
RHOS = (1.5, 1.8, 2.2, 2.7, 3.3, 4.1, 5.0, 6.5, 8.5, 12.0)
CLOSE_PLACES = (3, 6, 9)  # places on the ladder where negligible tokens are looked for
MOST_GROWTH = 100.0  # |T| + |f| on an ellipse, relative to its size on the domain
FIRST_PHASE = 1.1  # θ aimed at by the first tiling
SMALLEST_SIDE = {1: 2.0**-12, 2: 2.0**-7}  # share of a side: where f has no enclosure, smaller boxes are not tried
SMALLEST_NEAR_STEEP = 2.0**-30  # the same where f has infinite slopes, toward which boxes shrink
THINNEST_SIDE = 2.0**-70  # share of a side: smaller boxes are never tried
NARROW = 2.0**-20  # relative width of a box
BOXES_AT_ONCE, NUMBERS_AT_ONCE = 512, 2**22  # measured, held


@dataclass(frozen=True)
class Tiling:
    """Good boxes that cover the group's box: those where f is analytic, and the others by what is frozen there."""

    analytic: Tiles
    frozen: tuple[tuple[Summand, Tiles], ...] = ()


def tiling(summand: Summand, over: Callable[[int], bool], per_side: int, cheap: float) -> Tiling | None:
    """Boxes, at least `per_side` along each side, frozen where that costs at most `cheap`; None if too many or too small."""
    pending, rows = _coarse_boxes(summand, per_side), _rows(summand)
    good = [measured(summand, pending[:0])]
    singular = _Singular(summand, cheap) if singular_nodes(summand.formula) else None
    while len(pending):
        if over(sum(map(len, good)) + len(pending)):
            return None
        now, pending = pending[:rows], pending[rows:]
        tiles = measured(summand, now[summand.truths(now) != -1])
        fine, needed = _judged(summand, tiles)
        good.append(tiles[fine])
        if fine.all():
            continue
        halves = _halves(summand, tiles.boxes[~fine], needed[~fine], singular)
        if halves is None:
            return None
        pending = np.concatenate([halves, pending])
    parts = singular.parts if singular else ()
    return Tiling(Tiles.joined(good), parts) if parts or sum(map(len, good)) else None


def _halves(summand: Summand, boxes: np.ndarray, needed: np.ndarray, singular: "_Singular | None") -> np.ndarray | None:
    """Boxes that are not good, cut in two across the coordinate that needs the highest degree; None where that is hopeless."""
    lower, upper = summand.sides
    width, smallest = (boxes[:, 1] - boxes[:, 0]) / (upper - lower), SMALLEST_SIDE[min(summand.dimension, 2)]
    stuck = np.isinf(needed).any(axis=1) & (width * summand.phases < 1).all(axis=1)  # f is not well bounded, T is
    halve = np.ones(len(boxes), dtype=bool)
    if singular:
        halve, needed, alone = singular.kept_of(boxes, needed)
        stuck, smallest = stuck & alone, SMALLEST_NEAR_STEEP if singular.steep else smallest
    if (stuck & (width.max(axis=1, initial=0.0) < smallest)).any():
        return None
    axis = np.where(np.isinf(needed), 1e6 * width * (1 + summand.phases), needed).argmax(axis=1)
    if (width[np.arange(len(boxes)), axis] < THINNEST_SIDE)[halve].any():
        return None
    return halved(boxes[halve], axis[halve])


class _Singular:
    """Boxes next to singular places of f, kept where they are good with what is singular there frozen."""

    def __init__(self, summand: Summand, cheap: float) -> None:
        self.summand, self.cheap, self.freezer = summand, cheap, Freezer(summand.formula)
        self.steep = bool(singular_nodes(summand.formula, steep=True))
        self.kept: dict[int, tuple[Summand, list[Tiles]]] = {}

    @property
    def parts(self) -> tuple[tuple[Summand, Tiles], ...]:
        return tuple((own, Tiles.joined(tiles)) for own, tiles in self.kept.values() if tiles)

    def kept_of(self, boxes: np.ndarray, needed: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(which boxes are still to be halved, the degrees that they need, which have nothing that can be frozen)."""
        halve, alone, needed = np.ones(len(boxes), dtype=bool), np.ones(len(boxes), dtype=bool), needed.copy()
        for b in range(len(boxes)):
            found = self.freezer(boxes[b], self.summand.sides)
            if found is None:
                continue
            alone[b] = False
            if found.cost.max() <= self.cheap:
                fresh = (self.summand.frozen(found.formula, len(found.constants)), list[Tiles]())
                own, tiles = self.kept.setdefault(id(found.formula), fresh)
                tile = measured(own, boxes[b : b + 1], found)
                fits, degrees = _judged(own, tile)
                halve[b], needed[b] = not fits[0], degrees[0]
                tiles += [tile] * bool(fits[0])
            elif np.isinf(needed[b]).any():
                needed[b] = np.arange(self.summand.dimension) == found.axis
        return halve, needed, alone


def _judged(summand: Summand, tiles: Tiles) -> tuple[np.ndarray, np.ndarray]:
    """(which tiles are good [box], the degree that each coordinate needs [box, coordinate])."""
    needed = _degree_needed(tiles.rho, tiles.sizes.max(axis=2), NOMINAL_ACCURACY[summand.dimension] * summand.size)
    bounded = tiles.sizes.max(axis=(1, 2)) <= MOST_GROWTH * summand.size
    return bounded & (needed.max(axis=1) <= NOMINAL_DEGREE[summand.dimension]), needed


def halved_for_goal(summand: Summand, tiles: Tiles, goal: float, over: Callable[[int], bool]) -> Tiles:
    """The tiles, halved where even the highest degree misses the goal, as long as that can help.

    This is rare: the layer must be so much larger than the formula that the layout ignored the latter. Nothing finer than
    rounding at the size of the layer is aimed at.
    """
    goal, good = max(goal, 1e-15 * summand.size), [tiles[:0]]
    lower, upper = summand.sides
    while len(tiles):
        width = (tiles.boxes[:, 1] - tiles.boxes[:, 0]) / (upper - lower)
        missed = tiles.truncation(DEGREES[summand.dimension][-1]).max(axis=1) > goal
        missed &= width.max(axis=1) > SMALLEST_SIDE[1]
        if not missed.any() or over(sum(map(len, good)) + len(tiles) + int(missed.sum())):
            return Tiles.joined([*good, tiles])
        good.append(tiles[~missed])
        tiles = _halved_tiles(summand, tiles[missed], goal)
    return Tiles.joined(good)


def _halved_tiles(summand: Summand, tiles: Tiles, goal: float) -> Tiles:
    """Tiles cut in two across the coordinate that needs the highest degree, halves outside of the domain left out."""
    needed, rows = _degree_needed(tiles.rho, tiles.sizes.max(axis=2), goal), _rows(summand)
    halves = halved(tiles.boxes, needed.argmax(axis=1))
    halves = halves[summand.truths(halves) != -1]
    return Tiles.joined([tiles[:0], *(measured(summand, halves[i : i + rows]) for i in range(0, len(halves), rows))])


def _rows(summand: Summand) -> int:
    """How many boxes to measure at once."""
    return max(8, min(BOXES_AT_ONCE, NUMBERS_AT_ONCE // (len(RHOS) * max(1, summand.tokens) * len(summand.form.bias))))


def measured(summand: Summand, boxes: np.ndarray, frozen: Frozen | None = None) -> Tiles:
    """The boxes with the ellipses that need the lowest degree for the nominal accuracy, and the sizes there.

    `frozen`: what is frozen on the boxes, if anything; the formula of the summand is then the frozen one.
    """
    m = len(summand.form.bias)
    constants = np.tile(frozen.constants if frozen else (), (len(boxes), 1))
    cost = np.tile(frozen.cost if frozen else np.zeros(m), (len(boxes), 1))
    nominal = NOMINAL_ACCURACY[summand.dimension] * summand.size
    P, ladder = NOMINAL_DEGREE[summand.dimension], np.array(RHOS)[:, None, None]
    every = np.repeat(RHOS, len(boxes))
    layer = _layer_sizes(summand, np.tile(boxes, (len(RHOS), 1, 1)), every, closely=False)
    layer = layer.reshape(len(RHOS), len(boxes), *layer.shape[1:])  # [ρ, box, side, out]
    wide = (_degree_needed(ladder, layer.max(axis=3), nominal).min(axis=0) > P).any(axis=1)
    for place in CLOSE_PLACES:  # from narrow ellipses to wide ones, as long as there is a bound at all
        if wide.any():
            layer[place, wide] = _layer_sizes(summand, boxes[wide], np.full(wide.sum(), RHOS[place]), closely=True)
            wide = wide & np.isfinite(layer[place]).all(axis=(1, 2))
    needed = _degree_needed(ladder, layer.max(axis=3), nominal)
    heads = bool(summand.form.blocks)  # without heads any ellipse suits the layer
    best = needed.argmin(axis=0) if heads else _best_for_formula(summand, boxes, constants, nominal)
    own, rho = _taken(layer, best), np.array(RHOS)[best]
    formula = _formula_sizes(summand, boxes, rho, constants)
    missed = (_degree_needed(rho, (own + formula).max(axis=2), nominal) > P) & (needed.min(axis=0) <= P) & heads
    narrow = np.where(missed, (needed <= P).argmax(axis=0), best)  # f is not well bounded that far out
    if (rows := (missed & (narrow < best)).any(axis=1)).any():
        own[rows], rho[rows] = _taken(layer[:, rows], narrow[rows]), np.array(RHOS)[narrow[rows]]
        formula[rows] = _formula_sizes(summand, boxes[rows], rho[rows], constants[rows])
    half = (boxes[:, 1] - boxes[:, 0])[:, :, None] / 2
    with np.errstate(divide="ignore", invalid="ignore"):
        of_formula = formula / (half * ((rho + 1 / rho) / 2 - 1)[:, :, None])
        slopes = summand.slopes_on(boxes) + np.fmin(of_formula, _formula_slopes(summand, boxes))
    sizes, slopes = (np.where(np.isnan(t), np.inf, t) for t in (own + formula, slopes))
    return Tiles(boxes, rho, sizes, slopes, constants, cost)


def _formula_slopes(summand: Summand, boxes: np.ndarray) -> np.ndarray:
    """Bounds on |∂f/∂x_i| [box, coordinate, out] where boxes are so narrow that ellipses say little about them; else ∞."""
    found = np.full((len(boxes), summand.dimension, len(summand.formula.outputs)), np.inf)
    narrow = (boxes[:, 1] - boxes[:, 0]).max(axis=1) < NARROW * np.abs(boxes).max(axis=(1, 2))
    for b in np.flatnonzero(narrow) if summand.box is not None and not summand.constants else ():
        _, slopes = gradient(summand.formula, [interval(*side) for side in boxes[b].T.tolist()])
        found[b] = [[s.magnitude() if s.is_finite() else np.inf for s in row] for row in zip(*slopes, strict=True)]
    return found


def _best_for_formula(summand: Summand, boxes: np.ndarray, constants: np.ndarray, nominal: float) -> np.ndarray:
    """Places on the ladder of the ellipses that need the lowest degree for the formula, [box, coordinate]."""
    best = np.zeros((len(boxes), summand.dimension), dtype=np.int64)
    least = np.full(best.shape, np.inf)
    for place in (*reversed(CLOSE_PLACES), 0):
        rho = np.full(best.shape, RHOS[place])
        degree = _degree_needed(rho, _formula_sizes(summand, boxes, rho, constants).max(axis=2), nominal)
        best, least = np.where(degree < least, place, best), np.minimum(degree, least)
        if (least <= NOMINAL_DEGREE[summand.dimension]).all():
            break
    return best


def _taken(layer: np.ndarray, which: np.ndarray) -> np.ndarray:
    return np.take_along_axis(layer, which[None, :, :, None], axis=0)[0]


def _degree_needed(rho: np.ndarray, sizes: np.ndarray, nominal: float) -> np.ndarray:
    """The degree p with 4Vρ^(−p)/(ρ − 1) = nominal."""
    with np.errstate(divide="ignore", over="ignore"):
        return np.maximum(np.log(4 * sizes / (nominal * (rho - 1))) / np.log(rho), 0.0)


def _coarse_boxes(summand: Summand, per_side: int) -> np.ndarray:
    """A coarse tiling whose halves of halves fit the sharpest head: boxes [box, 2, D] with shared float faces."""
    D = summand.dimension
    rho = (8 / NOMINAL_ACCURACY[D]) ** (1 / NOMINAL_DEGREE[D])
    needed = np.ceil(summand.phases * (rho - 1 / rho) / 2 / (4 * FIRST_PHASE)).clip(1, 1e15)
    counts = [max(per_side, math.ceil(n / 2 ** max(0, math.floor(math.log2(n)) - 1))) for n in needed.tolist()]
    lower, upper = summand.sides
    axes = []
    for a, b, n in zip(lower, upper, counts, strict=True):
        cuts = np.clip(np.concatenate([[a], a + (b - a) * np.arange(1, n) / n, [b]]), a, b)
        axes.append(np.stack([cuts[:-1], cuts[1:]], axis=1))
    index = np.stack(np.meshgrid(*(np.arange(n) for n in counts), indexing="ij"), axis=-1).reshape(-1, D)
    return np.stack([axes[j][index[:, j]] for j in range(D)], axis=2)


def halved(boxes: np.ndarray, axis: np.ndarray) -> np.ndarray:
    """Every box cut in two across the given coordinate."""
    rows = np.arange(len(boxes))
    middle = boxes[rows, 0, axis] / 2 + boxes[rows, 1, axis] / 2
    left, right = boxes.copy(), boxes.copy()
    left[rows, 1, axis] = middle
    right[rows, 0, axis] = middle
    return np.concatenate([left, right])


def _layer_sizes(summand: Summand, boxes: np.ndarray, rho: np.ndarray, closely: bool) -> np.ndarray:
    """[box, coordinate, out]: |T| on the ellipses, slightly enlarged for the rounding of the normalisation."""
    shift, scale = summand.normalisation
    centres = (boxes.mean(axis=1) - shift) * scale
    slack = 1e-14 * (1 + summand.reach)
    halves = (boxes[:, 1] - boxes[:, 0]) / 2 * scale * UP_FEW + slack
    ellipses = Ellipses(*(torch.from_numpy(t) for t in (centres, halves, rho[:, None])))
    return size_on_ellipses(summand.form, ellipses, closely).numpy()


def _formula_sizes(summand: Summand, boxes: np.ndarray, rho: np.ndarray, constants: np.ndarray) -> np.ndarray:
    """[box, coordinate, out]: |f| on the rectangle around each ellipse; ∞ where not proved analytic."""
    summand.budget.require_time()
    middle = (boxes[:, 0] + boxes[:, 1]) / 2
    half = (boxes[:, 1] - boxes[:, 0]) / 2 * UP + 1e-15 * np.abs(boxes).max(axis=(1, 2))[:, None]
    longer, across = half * (rho + 1 / rho) / 2 * UP**2, half * (rho - 1 / rho) / 2 * UP**2
    still = np.zeros(len(boxes))
    sides = [(c - h, c + h, still) for c, h in zip(middle.T, half.T, strict=True)]
    fixed = [(c, c, still) for c in constants.T]
    found = np.full((len(boxes), summand.dimension, len(summand.formula.outputs)), np.inf)
    for i, (c, a, b) in enumerate(zip(middle.T, longer.T, across.T, strict=True)):
        own = (c - a, c + a, b)
        values = enclose_rectangles(summand.formula, [*sides[:i], own, *sides[i + 1 :], *fixed])
        for o, (low, high, im) in enumerate(values):
            found[:, i, o] = np.hypot(np.maximum(np.abs(low), np.abs(high)), im) * UP
    return found
