"""How far G and W are from their interpolants on boxes, and the degrees that make this small: no node is evaluated.

With R_i = 1 − I_i, I_i interpolation of degree p_i in coordinate i, and Λ_i its Lebesgue constant,

    1 − Π I_i = Σ_i (Π_{j<i} I_j) R_i,    Π_{j<i} I_j = 1 − Σ_{j<i} (Π_{l<j} I_l) R_j,

so ‖g − Ig‖ ≤ Σ_i ‖R_i g‖ + Σ_{j<i} Π_{l<j} Λ_l ‖R_j R_i g‖. The second sum is small: degrees are chosen coordinate by coordinate.
Where it is not, Σ_i Π_{j<i} Λ_j ‖R_i g‖ counts.
W is a sum of products of exponentials, whose remainders are those of e^(a t); G is such a sum with affine factors, less
(f − f(c))·W. For the latter R_i is bounded in two ways, by Taylor coefficients along x_i (`taylor.axes`: exact where f is a
polynomial in x_i) and on ellipses (`complex_rectangles`), and the smaller bound counts; R_j R_i on products of two ellipses.
All outputs share one bound.
"""

import numpy as np

from ...common.outward import UP, UP_FEW
from ...formula.complex_rectangles import enclose_rectangles
from ...formula.taylor.axes import axis_coefficients
from .bernstein import RHOS, ellipse_factor, highest_degree, lebesgue, node_polynomial
from .cleared import ClearedBoxes

NARROWER = (0, 1, 2)  # steps down the ladder of ellipses, tried for pairs of coordinates
REAL, ACROSS = (RHOS + 1 / RHOS) / 2 * UP_FEW, (RHOS - 1 / RHOS) / 2 * UP_FEW  # half-axes
NOMINAL_DEGREE = 4  # at which ellipses for pairs, and sides to halve, are chosen


class Remainders:
    """Bounds on ‖R_i G‖ and ‖R_i W‖ for all degrees, [degree, coordinate, box], and on pairs."""

    def __init__(self, boxes: ClearedBoxes) -> None:
        self.boxes = boxes
        D = boxes.head.dimension
        self.highest = P = highest_degree(D)
        self.lebesgue, self.polynomial, self.factor = lebesgue(P), node_polynomial(P), ellipse_factor(P)
        self.reach = boxes.reach.transpose(1, 2, 0)  # [token, coordinate, box]
        self.largest = boxes.largest.T  # [token, box]
        with np.errstate(all="ignore"):
            by_order, own = self._coefficients()
            self.steepest, from_formula = self._formula_remainders(by_order)
            shape = self.polynomial[1:, None, None]
            self.G = np.concatenate([np.full_like(by_order[:1], np.inf), (own * shape + from_formula) * UP])
            self.W = np.concatenate([np.full_like(by_order[:1], np.inf), by_order[2:] * shape * UP])
        lost = ~np.isfinite(boxes.spread)
        for E in (self.G, self.W):
            E[np.isnan(E) | lost] = np.inf

    def _coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds on the Taylor coefficients along every coordinate of W, [order 0 … P + 1, coordinate, box], and of what is
        left of G without (f − f(c))·W, [order 2 … P + 1, …]."""
        x, boxes = self.reach, self.boxes
        self.sized = self.largest * boxes.size.T
        self.tilts = boxes.tilt_size.transpose(1, 2, 0)  # [token or 1, coordinate, box]
        powers = [np.ones_like(x)]
        for j in range(1, self.highest + 2):
            powers.append(powers[-1] * x / j)
        self.powers = np.stack(powers)  # (a t)^j/j!, [order, token, coordinate, box]
        by_order = np.einsum("jtdb,tb->jdb", self.powers, self.largest) * UP
        tilted = np.einsum("jtdb,tdb->jdb", self.powers[:-1], self.tilts * self.largest[:, None]) * UP
        return by_order, np.einsum("jtdb,tb->jdb", self.powers[2:], self.sized) * UP + tilted[1:]

    def _denominator_on_ellipses(self) -> np.ndarray:
        """Bounds on |W| with one coordinate on an ellipse, [ρ, coordinate, box]."""
        return np.stack([(self.largest[:, None] * np.exp(self.reach * (A - 1) * UP)).sum(axis=0) for A in REAL])

    def _formula_remainders(self, by_order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(bounds on |∂f/∂t_i| [coordinate, box], on ‖R_i (f − f(c))W‖ of degrees 1 … P)."""
        boxes, P = self.boxes, self.highest
        found = axis_coefficients(boxes.head.formula, boxes.lower, boxes.upper, boxes.half, P + 1)
        series = np.zeros_like(by_order)
        for o, (low, high) in enumerate(found):
            low, high = low.copy(), high.copy()
            low[0], high[0] = low[0] - boxes.reference[:, o], high[0] - boxes.reference[:, o]
            series = np.maximum(series, np.maximum(np.abs(low), np.abs(high)) * UP)
        on_ellipses = self._formula_on(
            np.arange(boxes.head.dimension)[:, None], np.arange(len(RHOS))[:, None, None, None]
        )
        W = self._denominator_on_ellipses()
        self.products = np.where(np.isfinite(W), on_ellipses * W * UP, np.inf)  # [ρ, coordinate, box]
        steepest = np.minimum(series[1], (on_ellipses / ((RHOS + 1 / RHOS) / 2 - 1)[:, None, None]).min(axis=0) * UP)
        rows = []
        for p in range(1, P + 1):
            by_taylor = (series[: p + 2] * by_order[: p + 2][::-1]).sum(axis=0) * self.polynomial[p] * UP
            rows.append(np.fmin(by_taylor, self._by_ellipse(p).min(axis=0)))
        return steepest, np.stack(rows)

    def _formula_on(self, sets: np.ndarray, which: np.ndarray) -> np.ndarray:
        """max |f − f(c)| over the outputs with the coordinates of each set on ellipses, the others real; ∞ if not analytic.

        sets [set, member]; `which` [ρ, set or 1, coordinate or 1, box or 1] are places in RHOS; the result is [ρ, set, box].
        """
        boxes, D = self.boxes, self.boxes.head.dimension
        shape = (len(which), len(sets), len(boxes))
        box = []
        for i in range(D):
            on = (sets == i).any(axis=1)[:, None]
            own = which[:, :, i % which.shape[2]]
            middle, half = boxes.centre[:, i], boxes.half[:, i]
            reach = REAL[own] * half + 1e-15 * np.abs(middle)
            a = np.where(on, middle - reach, boxes.lower[:, i])
            b = np.where(on, middle + reach, boxes.upper[:, i])
            e = np.where(on, ACROSS[own] * half, 0.0)
            box.append((np.broadcast_to(a, shape), np.broadcast_to(b, shape), np.broadcast_to(e, shape)))
        worst = np.zeros(shape)
        for o, (low, high, im) in enumerate(enclose_rectangles(boxes.head.formula, box)):
            at = boxes.reference[:, o]
            size = np.hypot(np.maximum(np.abs(low - at), np.abs(high - at)), im) * UP
            worst = np.maximum(worst, np.where(np.isnan(size), np.inf, size))
        return worst

    def _by_ellipse(self, p: int) -> np.ndarray:
        """‖R_i (f − f(c))W‖ of degree p from every ellipse, [ρ, coordinate, box]."""
        found = self.products * self.factor[p][:, None, None]
        return np.where(np.isnan(found), np.inf, found)

    def start_pairs(self) -> None:
        """Prepare bounds on ‖R_j R_i (f − f(c))W‖, on the ellipses that are best for one coordinate, or narrower ones."""
        D = self.boxes.head.dimension
        best = self._by_ellipse(NOMINAL_DEGREE).argmin(axis=0)  # [coordinate, box]
        self.first, self.second = np.triu_indices(D, 1)
        self.pairs: list[tuple[np.ndarray, ...]] = []  # places in RHOS, bounds on the products of ellipses
        if D == 1:
            return
        which = np.stack([np.maximum(best - down, 0) for down in NARROWER])  # [step, coordinate, box]
        sets = np.stack([self.first, self.second], axis=1)
        f = self._formula_on(sets, which[:, None])
        for step, places in enumerate(which):
            grown = np.exp(self.reach * (REAL[places] - 1) * UP)
            self.pairs.append((places, *self._on_pairs(grown[:, self.first] * grown[:, self.second], f[step])))

    def _on_pairs(self, grown: np.ndarray, f: np.ndarray) -> tuple[np.ndarray, ...]:
        """Bounds on (f − f(c))W for pairs of coordinates, [pair, box]; e_t grows by the factors [token, pair, box]."""
        W = np.einsum("tb,tnb->nb", self.largest, grown) * UP
        return (np.where(np.isfinite(W), f * W * UP, np.inf),)

    def pair_sums(self, degrees: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Σ_{j<i} Π_{l<j} Λ_l ‖R_j R_i ·‖ for G and W at the degrees [coordinate, row]."""
        D = len(degrees)
        if D == 1:
            return np.zeros(len(rows)), np.zeros(len(rows))
        at, along = (np.arange(D)[:, None], rows), self.polynomial[degrees]
        a = np.moveaxis(self.powers[degrees + 1, :, *at], -1, 0) * along  # of e^(a t), [token, coordinate, row]
        lower = np.moveaxis(self.powers[degrees, :, *at], -1, 0) * along
        b = lower * self.tilts[..., rows]
        before = np.cumprod(np.concatenate([np.ones((1, len(rows))), self.lebesgue[degrees[:-1]]]), axis=0)

        def off(weights: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
            """Σ_t weights Σ_{j<i} before_j u_j v_i."""
            later = np.cumsum(v[:, :0:-1], axis=1)[:, ::-1]
            return (weights * (before[:-1] * u[:, :-1] * later).sum(axis=1)).sum(axis=0)

        sized, largest = self.sized[:, rows], self.largest[:, rows]
        W = off(largest, a, a) * UP
        G = off(sized, a, a) + off(largest, a, b) + off(largest, b, a)
        smallest = np.full((len(self.first), len(rows)), np.inf)
        for places, products in self.pairs:
            factors = self.factor[degrees, places[:, rows]]
            bound = products[:, rows] * factors[self.first] * factors[self.second]
            smallest = np.fmin(smallest, np.where(np.isnan(bound), np.inf, bound))
        return (G + (before[self.first] * smallest).sum(axis=0)) * UP, W

    def plain_sum(self, errors: np.ndarray, degrees: np.ndarray) -> np.ndarray:
        """Σ_i Π_{j<i} Λ_j ‖R_i g‖, the largest remainder first: any order of the coordinates will do."""
        order = np.argsort(-errors, axis=0)
        constants = np.take_along_axis(self.lebesgue[degrees], order, 0)
        before = np.cumprod(np.concatenate([np.ones_like(constants[:1]), constants[:-1]]), axis=0)
        return (before * np.take_along_axis(errors, order, 0)).sum(axis=0)

    def degrees(self, goal: float, level: float, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(degrees [coordinate, box], ‖G − IG‖, ‖W − IW‖): ∞ where ‖G − IG‖ + level·‖W − IW‖ misses the goal.

        From degree 1 the coordinate is raised that gains most per node; boxes with more than `most` nodes are given up.
        """
        D, b = self.G.shape[1:]
        P = np.ones((D, b), dtype=np.int64)
        G_error, W_error = np.full(b, np.inf), np.full(b, np.inf)
        active = np.flatnonzero(np.isfinite(self.G[-1]).all(axis=0) & np.isfinite(self.W[-1]).all(axis=0))
        with np.errstate(all="ignore"):
            self.start_pairs()
            while len(active):
                now = P[:, active]
                g, w = (np.take_along_axis(E[:, :, active], now[None], 0)[0] for E in (self.G, self.W))
                fine = g.sum(axis=0) + level * w.sum(axis=0) <= goal
                if fine.any():
                    rows = active[fine]
                    pair_G, pair_W = self.pair_sums(P[:, rows], rows)
                    whole_G = np.fmin(g[:, fine].sum(axis=0) + pair_G, self.plain_sum(g[:, fine], P[:, rows])) * UP
                    whole_W = (w[:, fine].sum(axis=0) + pair_W) * UP
                    enough = whole_G + level * whole_W <= goal
                    G_error[rows[enough]], W_error[rows[enough]] = whole_G[enough], whole_W[enough]
                    fine[np.flatnonzero(fine)[~enough]] = False
                active, now, loss = active[~fine], now[:, ~fine], (g + level * w)[:, ~fine]
                higher = np.minimum(now + 1, self.highest)
                after = sum(
                    factor * np.take_along_axis(E[:, :, active], higher[None], 0)[0]
                    for E, factor in ((self.G, 1.0), (self.W, level))
                )
                gain = (np.minimum(loss, 1e300) - np.minimum(after, 1e299)) / np.log((now + 2) / (now + 1))
                gain = np.where(now < self.highest, gain, -1.0)
                best = gain.argmax(axis=0)
                P[best, active] += gain.max(axis=0) > 0
                active = active[(gain.max(axis=0) > 0) & ((P[:, active] + 1.0).prod(axis=0) <= most)]
        return P, G_error, W_error

    def worst_side(self, level: float) -> np.ndarray:
        """The coordinate whose remainder is largest at a moderate degree, [box]; −1 where one is infinite."""
        E = self.G[NOMINAL_DEGREE] + level * self.W[NOMINAL_DEGREE]
        return np.where(np.isfinite(E).all(axis=0), E.argmax(axis=0), -1)
