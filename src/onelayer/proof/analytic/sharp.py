"""T at the nodes of boxes for layers with very sharp heads, point by point, with a bound on its rounding for every box.

`grid` bounds rounding once for the whole domain, in proportion to the largest key: too much where keys are 10⁷, although a head
that sharp is constant, up to rounding, on most boxes. Here the bound is that of a model (`layer.rounding.deployed`) on
each box, and T is evaluated in the same order as there: scores, weights, values, the average of each head, their sum.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP_FEW
from ...layer.arithmetic import FLOAT64
from ...layer.assemble import Frame
from ...layer.form import Form
from ...layer.rounding.deployed import Boxes, FormProgram
from .grid import AT_ONCE, Grids

SHARP = 2.0**12  # spread of scores over the domain from which this pays


def is_sharp(form: Form, edge: float) -> bool:
    return float(form.spreads.max()) * edge > SHARP


def on_sharp_grids(
    form: Form, grids: Grids, frame: Frame
) -> tuple[Float[Tensor, "box point out"], Float[Tensor, "box out"]]:
    """(T at every point of every grid, a bound on its rounding); x̂ is computed as the frame does."""
    boxes, points, m = len(grids.axes), grids.axes.shape[2] ** grids.dimension, len(form.bias)
    numbers = max([1, *(block.biases.numel() * (1 + m) for block in form.blocks)])
    rows = grids.points().split(max(1, AT_ONCE // numbers))
    T = torch.cat([_at(form, x) for x in rows]).reshape(boxes, points, m)
    halves = grids.halves * UP_FEW + 4 * FLOAT64.u * (grids.centres.abs() + grids.halves)
    program = FormProgram.of_form(form, FLOAT64, frame, factored=False)
    return T, program.on_boxes(Boxes(grids.centres, halves))


def _at(form: Form, x: Float[Tensor, "point coordinate"]) -> Float[Tensor, "point out"]:
    y = form.bias.expand(len(x), -1)
    for i in range(x.shape[1]):
        y = y + x[:, i, None] * form.linear[i]
    for block in form.blocks:
        weights = torch.softmax(torch.einsum("bd,htd->bht", x, block.keys) + block.biases, dim=-1)
        values = block.values.expand(len(x), -1, -1, -1)
        if block.slopes.any():
            values = values + torch.einsum("bd,htdo->bhto", x, block.slopes)
        y = y + torch.einsum("bht,bhto->bho", weights, values).sum(dim=1)
    return y
