"""A model on a grid: round the keys, solve for the values again, and round these one after another.

As fpminimax does for polynomials (Brisebarre and Chevillard 2007): what rounding a number does to the answers is taken up by the
numbers that are not rounded yet. T is linear in its values (`value_entries`), so that this is linear algebra (`nearest_values`).

Errors are *observed* on points; they prove nothing.

Values on a grid by linear algebra: solved for, then rounded one after another, each time with the others solved for again.

With √W Φ = QR

    Σ_i w_i |Φ(x_i) c − y_i|² = |R c − Qᵀ√W y|² + const,

and rounding c_K, then c_(K−1) with c_K as it is now, and so on, is back substitution with a rounding after each step (Babai's
nearest plane). What is left at the end is Σ_k (R_kk δ_k)², δ_k the rounding of c_k. The features overlap so much that most R_kk
are small; columns are ordered so that R_kk times the spacing of the grid is as even as possible. The weights w are Lawson's, from
the solution off the grid. Steps of single numbers to a neighbour on the grid then lower the maximum itself.
"""

import copy
import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ..layer.digits import balance_readout, has_digits, with_digits
from ..layer.grid import FLOAT32, MATRICES, Grid
from ..layer.value_entries import ValueEntries, features, value_entries
from ..model.transformer import SingleLayerTransformer

REWEIGHTINGS = 8
RIDGES = (1e-24, 1e-18, 1e-12)  # per point and squared norm of a column: how much a value is held where it was
DEAD = 1e-6  # share of the largest column: one that is smaller is held as if it were this large
ROUNDING = 2.0**-22  # about, in float32: a few units of rounding
MOST_STEPS = 100  # of single numbers


@dataclass(frozen=True)
class GridColumns:
    """How the numbers of a solution are rounded, column by column: grid, digits, largest number, and which ones they are."""

    parts: list[tuple[Grid, int, float, Tensor]]

    def rounded(self, c: Tensor) -> Tensor:
        found = torch.empty_like(c)
        for grid, digits, largest, at in self.parts:
            found[at] = grid.in_digits(c[at], digits, largest)
        return found

    def spacing(self, c: Tensor) -> Tensor:
        found = torch.empty_like(c)
        for grid, digits, largest, at in self.parts:
            found[at] = grid.spacing(c[at], digits, largest)
        return found

    def one(self, k: int) -> tuple[Grid, int, float]:
        """How number k is rounded."""
        return next((grid, digits, largest) for grid, digits, largest, at in self.parts if k in at)


def nearest_values(
    phi: Float[Tensor, "point value"],
    y: Float[Tensor, " point"],
    off_grid: tuple[Tensor, Tensor],
    columns: GridColumns,
    start: Tensor,
) -> Float[Tensor, " value"]:
    """Values on the grid with about the smallest maximum of |Φ c − y|; `off_grid` are the values and weights of `reweighted`."""
    c, weights = off_grid
    found = [_nearest(phi, y, w, ridge, c, columns) for w in (weights, torch.ones_like(weights)) for ridge in RIDGES]
    found = [t for t in (*found, columns.rounded(start)) if bool(t.isfinite().all())]
    return _stepped(phi, y, min(found, key=lambda t: _judged(phi, y, t)), columns)


def reweighted(phi: Tensor, y: Tensor, start: Tensor) -> tuple[Tensor, Tensor]:
    """(values off the grid, weights): of Lawson's reweighting, those with the smallest maximum."""
    weights = torch.ones_like(y)
    best, found = math.inf, (start, weights)
    for _ in range(REWEIGHTINGS):
        Q, R, b = _factored(phi, y, weights, RIDGES[1], start)
        c = torch.linalg.solve_triangular(R, (Q.T @ b)[:, None], upper=True)[:, 0] + start
        residual = (y - phi @ c).abs()
        if float(residual.max()) < best:
            best, found = float(residual.max()), (c, weights)
        weights = weights * residual / residual.mean().clamp_min(1e-300) + 1e-6
        weights = weights / weights.mean()
    return found


def _factored(phi: Tensor, y: Tensor, weights: Tensor, ridge: float, start: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(Q, R, b) of the weighted problem for c − start, its ridge included."""
    root = weights.sqrt()
    A = phi * root[:, None]
    norms = A.norm(dim=0)
    held = torch.diag(norms.clamp_min(DEAD * float(norms.max()) + 1e-300) * math.sqrt(ridge * len(A)))
    Q, R = torch.linalg.qr(torch.cat([A, held]))
    return Q, R, torch.cat([(y - phi @ start) * root, y.new_zeros(len(held))])


def _nearest(phi: Tensor, y: Tensor, weights: Tensor, ridge: float, start: Tensor, columns: GridColumns) -> Tensor:
    """Values on the grid: back substitution in which every number is rounded before the next one is solved for."""
    order = _even_order(phi * weights.sqrt()[:, None] * columns.spacing(start))
    Q, R, b = _factored(phi[:, order], y, weights, ridge, start[order])
    z, c = Q.T @ b, start.clone()
    moved = torch.zeros_like(start)  # c − start, in the order of the factor
    kinds = [columns.one(int(k)) for k in order]
    for i in range(len(order) - 1, -1, -1):
        k = order[i]
        value = start[k] + (z[i] - R[i, i + 1 :] @ moved[i + 1 :]) / R[i, i]
        grid, digits, largest = kinds[i]
        c[k] = grid.in_digits(value[None], digits, largest)[0]
        moved[i] = c[k] - start[k]
    return c


def _even_order(A: Tensor) -> Tensor:
    """The order of columns in which |R_kk| of A = QR is about even: each time the column with the least that is new."""
    gram = A.T @ A
    left, order = gram.diagonal().clone(), []
    rows = torch.zeros_like(gram)
    for i in range(len(gram)):
        k = int(left.argmin())
        order.append(k)
        rows[i] = (gram[k] - rows[:i, k] @ rows[:i]) / left[k].clamp_min(1e-300).sqrt()
        left = left - rows[i].square()
        left = left.clamp_min(1e-14 * gram.diagonal())
        left[order] = math.inf
    return torch.tensor(order)


def _stepped(phi: Tensor, y: Tensor, c: Tensor, columns: GridColumns) -> Tensor:
    """Single numbers moved to neighbours on the grid as long as that lowers the largest error."""
    residual = y - phi @ c
    worst = float(residual.abs().max())
    for _ in range(MOST_STEPS):
        step = columns.spacing(c)
        down, up = ((residual[:, None] + s * phi * step).abs().amax(dim=0) for s in (1.0, -1.0))
        k = int(torch.minimum(down, up).argmin())
        moved = c.clone()
        moved[k] += step[k] if up[k] <= down[k] else -step[k]
        moved = columns.rounded(moved)
        after = y - phi @ moved
        if not float(after.abs().max()) < worst:
            break
        c, residual, worst = moved, after, float(after.abs().max())
    return c


def _judged(phi: Tensor, y: Tensor, c: Tensor) -> float:
    """The largest error, and about what float32 arithmetic adds to it: it is in proportion to what the values can contribute."""
    return float((y - phi @ c).abs().max() + ROUNDING * (phi.abs().amax(dim=0) @ c.abs()))


HEADROOM = 1.02  # by how much a column of values may grow while it is rounded
DIGITS = ((1, 1), (1, 2), (2, 2), (2, 3), (3, 3))  # of keys, of values: the first that is close enough is taken
AT_ONCE = 4096  # points


@dataclass(frozen=True)
class OnGrid:
    """A model on the grid, in float32; the digits of keys and values; the largest error at the points."""

    model: SingleLayerTransformer
    digits: tuple[int, int]
    observed: float


def on_grid(
    model: SingleLayerTransformer,
    grid: Grid,
    x: Float[Tensor, "point coordinate"],
    y: Float[Tensor, "point out"],
    goal: float = 0.0,
    digits: tuple[int, int] | None = None,
) -> OnGrid:
    """The model with all numbers on the grid, for answers y at points x; with as few digits as an error of `goal` allows.

    `digits` of keys and of values may be given; there is one in float32, and where the data token is not read out. Where answers
    are not linear in the values (`value_entries`), all numbers are rounded as they are.
    """
    model = copy.deepcopy(model).double()
    if grid.fixed:
        balance_readout(model)
    splittable = grid.bits < FLOAT32.bits and has_digits(model)
    best: OnGrid | None = None
    tried = DIGITS if digits is None else (digits,)
    for some in tried if splittable else DIGITS[:1]:
        found = _on_grid(model, grid, x, y, some)
        if best is None or found.observed < best.observed:
            best = found
        if found.observed <= goal:
            break
    assert best is not None
    return best


def _on_grid(model: SingleLayerTransformer, grid: Grid, x: Tensor, y: Tensor, digits: tuple[int, int]) -> OnGrid:
    model, given = copy.deepcopy(model), model.state_dict()
    entries, d = value_entries(model) or [], model.config.d_model
    lanes = {at % d for e in entries if e.name == "S" for at in e.at.tolist()}
    counts = [digits[lane in lanes] for lane in range(d)]
    with torch.no_grad():
        for name, t in model.state_dict().items():
            t.copy_(grid.rounded(name, t))
        if model.config.special_tokens:
            for lane, count in enumerate(counts):
                model.S[:, lane] = grid.in_digits(given["S"][:, lane], count)
        if entries:
            _solve_values(model, given, grid, entries, x, y, digits[1])
    observed = float((_answers(model, x) - y).abs().max())
    model = with_digits(model, grid, counts, digits[1]) if has_digits(model) else model
    model = model.to(torch.float32).eval()
    for t in model.state_dict().values():
        t += 0.0  # no −0, which int8 does not have
    assert grid.contains(model)
    return OnGrid(model, digits, observed)


def _answers(model: SingleLayerTransformer, x: Tensor) -> Tensor:
    c = model.config
    with torch.no_grad():
        return torch.cat([model(part.reshape(len(part), c.tokens, c.features_in))[:, 0] for part in x.split(AT_ONCE)])


def _solve_values(
    model: SingleLayerTransformer,
    given: dict[str, Tensor],
    grid: Grid,
    entries: list[ValueEntries],
    x: Tensor,
    y: Tensor,
    digits: int,
) -> None:
    """The values of a model whose other numbers are on the grid, written into it; one output at a time."""
    state = model.state_dict()
    phi = torch.cat(features(model, x, entries), dim=1)
    output = torch.cat([e.output for e in entries])
    now = torch.cat([state[e.name].flatten()[e.at] for e in entries])
    before = torch.cat([given[e.name].flatten()[e.at] for e in entries])
    rest = y - _answers(model, x)
    for o in range(y.shape[1]):
        mine = (output == o).nonzero().flatten()
        values = phi[:, mine]
        fit = values, rest[:, o] + values @ now[mine]
        off_grid = reweighted(*fit, before[mine])
        columns = _columns(given, grid, entries, mine, off_grid[0], digits)
        now[mine] = nearest_values(*fit, off_grid, columns, before[mine])
    first = 0
    for e in entries:
        state[e.name].view(-1)[e.at] = now[first : first + len(e.at)]
        first += len(e.at)


def _columns(
    given: dict[str, Tensor], grid: Grid, entries: list[ValueEntries], mine: Tensor, c: Tensor, digits: int
) -> GridColumns:
    """The columns of the entries `mine`, whose solution off the grid is c.

    A column that holds other numbers, too, keeps the exponent with which these were rounded.
    """
    parts, first, tokens = [], 0, any(e.name == "S" for e in entries)
    for e in entries:
        own = ((mine >= first) & (mine < first + len(e.at))).nonzero().flatten()
        at = e.at[mine[own] - first]
        first += len(e.at)
        if not len(own):
            continue
        several = ("S", "W_R") if tokens else ("W_R", "b_R")  # weights sum to 1, so tokens take up a bias, too
        count = digits if e.name in several else 1
        if grid.fixed and e.name not in MATRICES:
            parts.append((FLOAT32, 1, math.inf, own))
            continue
        if not grid.fixed:
            parts.append((grid, count, math.inf, own))
            continue
        before, t = given[e.name], torch.zeros_like(given[e.name])
        t.view(-1)[at] = HEADROOM * c[own]
        others = before.ne(0)
        others.view(-1)[e.at] = False
        shared = others.any(dim=-2, keepdim=True)
        largest = torch.where(shared, before, t).abs().amax(dim=-2, keepdim=True).expand_as(t).flatten()[at]
        for size in largest.unique():
            parts.append((grid, count, float(size), own[largest == size]))
    return GridColumns(parts)
