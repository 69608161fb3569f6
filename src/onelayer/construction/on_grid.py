"""A model on a grid: round the keys, solve for the values again, and round these one after another.

As fpminimax does for polynomials (Brisebarre and Chevillard 2007): what rounding a number does to the answers is taken up by the
numbers that are not rounded yet. T is linear in its values (`value_entries`), so that this is linear algebra (`nearest_values`).

Errors are *observed* on points; they prove nothing.
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
from .nearest_values import GridColumns, nearest_values, reweighted

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
