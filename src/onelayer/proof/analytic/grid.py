"""T on product grids, quickly: scores are affine, so every exponential is a product of one factor per axis.

On a box with centre m and grid points x = (x_1n, …, x_Dn') of a product grid, with any constants κ_i and M per head,

    e^(s_t(x) − κ·(x−m) − M) = e^(q_t) Π_i E_i[t, n_i],   q_t = keys_t·m + biases_t − M,   E_i = e^((keys_ti−κ_i)(x_i−m_i)),

and the common factor on the left cancels in the softmax. Numerators and denominator are matrix products over the tokens:
D·n exponentials per token instead of n^D, and the rest at the speed of a matrix product.

Rounding, u = 2^−53, for a head with n tokens on |x̂| ≤ edge, S = max_t(Σ_i|keys_ti|·edge + |biases_t|),
W = max_t Σ_i |keys_ti − κ_i|, normalised coordinates off by e_x = 3u·edge, values of size at most V and range R over the box:

    q_t               (D + 3)u·S
    exponents of E    W(e_x + 8u·edge): x_i − m_i ≤ 2·edge is rounded once, the difference of keys once, the product once
    exponentials      κu each, D + 1 of them, and D + 1 products
    averaging         all of this is relative, per exponential: `running.moved`
    sums              two dot products of n terms, the values, slopes and the quotient: (2n + D + 16)u·V

Then the heads are added up, (heads + 8)u·ΣV. Underflow is harmless as long as no exponent of E exceeds 300 in size: the
denominator is then at least e^−300, the terms lost are at most 2^−1074·e^300. Where an exponent is larger the softmax is
evaluated point by point, and its own rounding counts.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import U
from ...layer.arithmetic import FLOAT64
from ...layer.form import Block, Form
from ...layer.rounding import running
from ...layer.rounding.deployed import Boxes, FormProgram

LARGEST_EXPONENT = 300.0
AT_ONCE = 2**22  # numbers held at a time


@dataclass(frozen=True)
class Grids:
    """Product grids in normalised coordinates: centre, and the points along every axis."""

    centres: Float[Tensor, "box coordinate"]
    axes: Float[Tensor, "box coordinate point"]

    @property
    def dimension(self) -> int:
        return self.axes.shape[1]

    @property
    def halves(self) -> Float[Tensor, "box coordinate"]:
        return (self.axes - self.centres[..., None]).abs().amax(dim=2)

    def coordinate(self, i: int) -> Float[Tensor, "box left right"]:
        """x_i at every point, the first axes to the left, the last to the right."""
        n, D = self.axes.shape[2], self.dimension
        shape = [n if j == i else 1 for j in range(D)]
        full = self.axes[:, i].reshape(-1, *shape).expand(-1, *(n,) * D)
        return full.reshape(len(full), n ** _left(D), -1)

    def points(self) -> Float[Tensor, "point coordinate"]:
        return torch.stack([self.coordinate(i).flatten() for i in range(self.dimension)], dim=1)

    def __getitem__(self, which: slice) -> "Grids":
        return Grids(self.centres[which], self.axes[which])


def on_grids(
    form: Form, grids: Grids, edge: float, device: str = "cpu"
) -> tuple[Float[Tensor, "box point out"], Float[Tensor, " out"]]:
    """(T at every point of every grid, a bound on its rounding), |x̂| ≤ edge; evaluated on the device."""
    boxes, n, D, m = len(grids.axes), grids.axes.shape[2], grids.dimension, len(form.bias)
    rounding = grid_rounding(form, edge)
    form, grids = form.to(device), Grids(grids.centres.to(device), grids.axes.to(device))
    y = form.bias.expand(boxes, n ** _left(D), n ** (D - _left(D)), m).clone()
    for i in range(D):
        if form.linear[i].any():
            y += grids.coordinate(i)[..., None] * form.linear[i]
    steep = [not _largest_exponent(block, grids) <= LARGEST_EXPONENT for block in form.blocks]
    if any(steep):  # some heads one way, some the other: both errors, each for all heads, cover the mixture
        rounding = rounding + _pointwise_rounding(form.to("cpu"), edge)
    for block, pointwise in zip(form.blocks, steep, strict=True):
        if pointwise:
            y += _pointwise(block, grids).reshape(y.shape)
            continue
        columns = 1 + m * (1 + D * bool(block.slopes.any()))
        heads = max(1, AT_ONCE // (n**D * columns + block.biases.shape[1] * n ** math.ceil(D / 2) * columns))
        rows = max(1, heads // len(block.biases))
        for first in range(0, boxes, rows):
            some = slice(first, first + rows)
            for part in _parts(block, heads):
                y[some] += _products(part, grids[some])
    return y.reshape(boxes, n**D, m).cpu(), rounding


def _left(dimension: int) -> int:
    """How many axes form the rows of the matrix products."""
    return (dimension + 1) // 2


def _parts(block: Block, heads: int) -> list[Block]:
    """The block in pieces of at most this many heads."""
    if len(block.biases) <= heads:
        return [block]
    fields = (t.split(heads) for t in (block.keys, block.biases, block.values, block.slopes))
    return [Block(*pieces) for pieces in zip(*fields, strict=True)]


def _relative_keys(block: Block) -> Float[Tensor, "head token coordinate"]:
    """keys − κ with κ in the middle; 0 for tokens that are not there."""
    low, high = block.key_ranges()
    return (block.keys - ((low + high) / 2)[:, None]).masked_fill(~block.there[..., None], 0.0)


def _largest_exponent(block: Block, grids: Grids) -> float:
    by_token = torch.einsum("bd,htd->bht", grids.halves, _relative_keys(block).abs())
    return float(by_token.max())


def _pointwise(block: Block, grids: Grids) -> Float[Tensor, "point out"]:
    rows = max(1, AT_ONCE // max(1, block.biases.numel()))
    return torch.cat([block(x) for x in grids.points().split(rows)])


def _pointwise_rounding(form: Form, edge: float) -> Float[Tensor, " out"]:
    whole = Boxes(*(torch.full((1, form.dimension), end, dtype=torch.float64) for end in (0.0, edge)))
    return FormProgram.of_form(form, FLOAT64, terms=form.summands + 6, factored=False).on_boxes(whole)[0]


def _products(block: Block, grids: Grids) -> Float[Tensor, "box left right out"]:
    """Σ_h Σ_t (values + x·slopes) w on every grid, by matrix products."""
    D, m = grids.dimension, block.values.shape[2]
    q = torch.einsum("bd,htd->bht", grids.centres, block.keys) + block.biases
    left = (q - q.amax(dim=2, keepdim=True)).exp()[..., None]
    right = torch.ones_like(left)
    offsets, keys = grids.axes - grids.centres[..., None], _relative_keys(block)
    for i in range(D):
        E = (keys[None, :, :, i, None] * offsets[:, None, None, i, :]).exp()
        if i < _left(D):
            left = (left[..., :, None] * E[..., None, :]).flatten(3)
        else:
            right = (right[..., :, None] * E[..., None, :]).flatten(3)
    columns = [torch.ones_like(block.biases)[..., None], block.values]
    if block.slopes.any():
        columns += [block.slopes[:, :, i] for i in range(D)]
    coefficients = torch.cat(columns, dim=2)  # [head, token, 1 + out + coordinate·out]
    both = (coefficients[None, ..., None] * right[:, :, :, None, :]).flatten(3)
    sums = (left.transpose(2, 3) @ both).unflatten(3, (coefficients.shape[2], -1))  # [box, head, left, column, right]
    total, above = sums[:, :, :, 0], sums[:, :, :, 1 : 1 + m]
    if block.slopes.any():
        for i in range(D):
            own = sums[:, :, :, 1 + m * (i + 1) : 1 + m * (i + 2)]
            above = above + grids.coordinate(i)[:, None, :, None, :] * own
    return (above / total[:, :, :, None]).sum(dim=1).transpose(2, 3)


def grid_rounding(form: Form, edge: float) -> Float[Tensor, " out"]:
    """|ΔT| of `on_grids` by matrix products, per output; ∞ if scores are too large."""
    e_x, D = 3 * U * edge, form.dimension
    total = form.bias.abs() * 4 * U + form.linear.abs().sum(dim=0) * (e_x + (D + 6) * U * edge)
    sizes = form.bias.abs() + form.linear.abs().sum(dim=0) * edge
    for block in form.blocks:
        hidden = ~block.there
        S = (block.keys.abs().sum(dim=2) * edge + block.biases.abs()).masked_fill(hidden, 0.0).amax(dim=1)
        W = _relative_keys(block).abs().sum(dim=2).amax(dim=1)
        relative = W * (e_x + 8 * U * edge) + (D + 3) * U * S + (FLOAT64.exp_error + U) * (D + 1)
        swing = block.slopes.abs().sum(dim=2)
        high = (block.values + edge * swing).masked_fill(hidden[..., None], -torch.inf).amax(dim=1)
        low = (block.values - edge * swing).masked_fill(hidden[..., None], torch.inf).amin(dim=1)
        size = torch.maximum(high.abs(), low.abs())
        n = block.biases.shape[1]
        moved = swing.masked_fill(hidden[..., None], 0.0).amax(dim=1) * e_x
        epsilon = running.exponentials(relative[:, None].numpy())
        by_head = torch.from_numpy(running.moved(epsilon, (high - low).numpy())) + (2 * n + D + 16) * U * size + moved
        total, sizes = total + by_head.sum(dim=0), sizes + size.sum(dim=0)
    return 1.12 * (total + (form.heads + D + 8) * U * sizes)
