"""How far the floating point of a deployed model can take it from its real function, box by box.

Write u for the unit roundoff. A head averages its values v_t with weights w_t = e^(s_t)/Σ e^(s_t), z = Σ w_t v_t. If the
exponentials are off by factors 1 + η_t, |η_t| ≤ E_t, the average moves by exactly

    Σ_t w_t η_t (v_t − z)/(1 + Σ_t w_t η_t),    so by at most Σ_t w_t E_t |v_t − z| / (1 − Σ_t w_t E_t):

errors count only where a weight is neither 0 nor 1. With P_t = Σ_i |keys_ti x_i| over n non-zero keys,

    softmax     E_t = e^(d_t + u·a_t)(1 + κu) − 1,  d_t = u(n P_t + (n−1)|b_t| + |s_t|): n products and the bias added up in
                any order; a_t = max s − s_t: the largest score is subtracted first (`shift_roundings` times).
                Attention that goes through the tokens in blocks costs a little more (`online_softmax.py`)
    factored    E_t = e^(u P_t)(1 + κu)² (1 + u)³ − 1: e^(k x_i) is computed, e^(b_t) is stored (linear attention)

and the larger one is taken. (Smooth maxima have another bound, see `proportional.py`.) Then, for a head of T tokens, in either
form

    3u|z| + …              the normaliser and its reciprocal, or a division; …: what its additions cost, in any order
    5u Σ_t w_t |v_t| + …   a weight's product with the reciprocal, the value (two roundings), their product, a fused one; likewise
    n u Σ_heads |z|        all heads added up, in any order, n terms

and what comes after the sum (`Reading.steps`, `Reading.passed`). The normalisation x̂ = fl(fl(x − shift)·scale) has a
relative error of at most 2u(1 + u) with the stored shift and scale, u if the scale is a power of two, and what underflow takes
(`Arithmetic.lost`); it moves scores and values of all heads.

All this on a box with centre c and half-widths r. With k̄ = Σ w_t(c) keys_t, Jensen's inequality gives

    w_t(x) ≤ w_t(c) e^(Σ_i |keys_ti − k̄_i| r_i),

and since ∂_i z is Σ_t w_t slopes_ti plus the covariance of keys and values, |z(x) − z(c)| ≤ Σ_i r_i sup|∂_i z| follows from
the same bounds. Boxes are halved where the bound is largest, until it is small enough or the budget is spent.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP_FEW, UP_MANY
from ...formula.additive import maximal
from ..arithmetic import FLOAT64, Arithmetic
from ..form import Block, Form
from .proportional import VANISHED, maximum_rounding, proportional_fit

AT_ONCE = 2**21  # numbers held at a time
WORK = 5 * 10**7  # numbers computed at most
CLOSE = 0.7  # boxes whose bound is at least this share of the largest one are halved
PATIENCE, GAIN = 6, 0.03  # stop when this many rounds of halving together bring less than this share


@dataclass(frozen=True)
class Boxes:
    """Boxes in normalised coordinates."""

    centres: Float[Tensor, "box coordinate"]
    halves: Float[Tensor, "box coordinate"]

    @property
    def reach(self) -> Tensor:
        """max |x̂_i|."""
        return self.centres.abs() + self.halves

    def halved(self, axis: Tensor) -> "Boxes":
        rows = torch.arange(len(axis))
        halves = self.halves.clone()
        halves[rows, axis] /= 2
        step = torch.zeros_like(halves)
        step[rows, axis] = halves[rows, axis]
        return Boxes(torch.cat([self.centres - step, self.centres + step]), torch.cat([halves, halves]) * UP_FEW)

    def __getitem__(self, pick: Tensor) -> "Boxes":
        return Boxes(self.centres[pick], self.halves[pick])


@dataclass(frozen=True)
class Deployment:
    """How a form is evaluated: the arithmetic, terms of the sum over the heads, additions after it, constants that cancel."""

    arithmetic: Arithmetic
    summands: int
    steps: int
    passed: float = 0.0  # constants that are added and subtracted again after the sum, in absolute value
    constants: float = 0.0  # constants among the summands, in absolute value, where they may cancel
    scale: float = 1.0  # the largest |scale| of x̂ = (x − shift)·scale
    exact_scale: bool = False  # whether all scales are powers of two, so that the product is not rounded
    error: float = 0.0  # of the form itself, where it is not quite the real function of the stored weights

    @property
    def beside(self) -> float:
        """What comes after the sum over the heads, wherever the point is."""
        u = self.arithmetic.u
        return 2 * self.steps * u * self.passed + (self.summands + self.steps + 2) * u * self.constants + self.error


def deployed_rounding(
    form: Form,
    lower: Tensor,
    upper: Tensor,
    how: Deployment,
    enough: float = 0.0,
    over: Callable[[], bool] = lambda: False,
) -> Float[Tensor, " out"]:
    """|computed − T| on the box lower ≤ x̂ ≤ upper, per output, halving boxes until it is at most `enough` or time is
    `over`; ∞ if unproved.

    Heads of different groups of coordinates are bounded separately: the maximum of a sum is at most the sum of the maxima.
    """
    total = torch.zeros_like(form.bias)
    groups = maximal(form.links()) or [(0,)]
    for group, part in zip(groups, form.split(groups), strict=True):
        pick = list(group)
        start = Boxes(((lower + upper) / 2)[None, pick], ((upper - lower) / 2 * UP_FEW)[None, pick])
        total = total + _largest(part, start, how, enough / len(groups), over)
    safe = max(how.passed, how.constants) < how.arithmetic.overflow / 8
    return (total + how.beside) * UP_MANY if safe else total + torch.inf


def _largest(
    form: Form, boxes: Boxes, how: Deployment, enough: float, over: Callable[[], bool]
) -> Float[Tensor, " out"]:
    """The largest bound over boxes that cover the given one."""
    width = form.spreads + 1e-300
    size = _size(form)
    found, spent, before = box_rounding(form, boxes, how), size, [torch.inf] * PATIENCE
    while True:
        worst = found.amax(dim=1)
        high = float(worst.max())
        stuck = math.isfinite(high) and high > (1 - GAIN) * before[-PATIENCE]
        if high <= enough or spent > WORK or stuck or over():
            return found.amax(dim=0)
        before.append(high)
        pick = (-worst).argsort()[: max(1, AT_ONCE // size)]
        pick = pick[worst[pick] >= CLOSE * high]
        fresh = boxes[pick].halved((boxes.halves[pick] * width).argmax(dim=1))
        values = box_rounding(form, fresh, how)
        spent += size * len(values)
        keep = torch.ones(len(worst), dtype=torch.bool)
        keep[pick] = False
        boxes = Boxes(torch.cat([boxes.centres[keep], fresh.centres]), torch.cat([boxes.halves[keep], fresh.halves]))
        found = torch.cat([found[keep], values])


def _size(form: Form) -> int:
    """About how many numbers are computed for a box."""
    return sum(b.biases.numel() for b in form.blocks) * (form.dimension + 3) * len(form.bias) + 1


def box_rounding(form: Form, boxes: Boxes, how: Deployment) -> Float[Tensor, "box out"]:
    """|computed − T| on every box, except for what comes after the sum."""
    rows = max(1, AT_ONCE // _size(form))
    pieces = zip(boxes.centres.split(rows), boxes.halves.split(rows), strict=True)
    return torch.cat([_box_rounding(form, Boxes(c, r), how) for c, r in pieces])


def _box_rounding(form: Form, boxes: Boxes, how: Deployment) -> Float[Tensor, "box out"]:
    a = how.arithmetic
    X = boxes.reach * (1 + 3 * a.u) + a.lost(how.scale)
    e_x = (1 if how.exact_scale else 2) * a.u * (1 + a.u) * X + a.lost(how.scale)
    straight = X @ form.linear.abs()
    total = 4 * a.u * straight + e_x @ form.linear.abs() + 4 * (form.heads + form.dimension + 1) * a.smallest
    sizes = form.bias.abs() + straight
    for block in form.blocks:
        errors, contribution = _head_rounding(block, boxes, X, e_x, a)
        total = total + errors.sum(dim=1)
        sizes = sizes + contribution.sum(dim=1)
    terms = (how.summands + how.steps + form.dimension + len(form.blocks) + 2) * a.u
    found = (total + terms / (1 - terms) * (sizes + total)) * UP_MANY if terms < 0.1 else total + torch.inf
    found = torch.where(4 * (sizes + total) < a.overflow, found, torch.inf)
    return found.nan_to_num(nan=torch.inf, posinf=torch.inf)


def _head_rounding(
    block: Block, boxes: Boxes, X: Tensor, e_x: Tensor, a: Arithmetic
) -> tuple[Float[Tensor, "box head out"], Float[Tensor, "box head out"]]:
    """(errors of every head, bounds on |z|) on every box."""
    c, r = boxes.centres, boxes.halves
    keys, there = block.keys, block.there
    score = torch.einsum("bd,htd->bht", c, keys) + block.biases
    sure = score.masked_fill(~there, 0.0).abs()
    log_w = torch.log_softmax(score, dim=-1)
    w = log_w.exp()
    mean = torch.einsum("bht,htd->bhd", w, keys)
    apart = (keys - mean[:, :, None]).abs()  # [box, head, token, coordinate]
    grow = torch.einsum("bhtd,bd->bht", apart, r)
    own = 2 * sure.amax(dim=-1, keepdim=True) * (c.shape[1] + 4) * FLOAT64.u  # relative rounding of w, and so of k̄
    grow = grow * UP_MANY + 2 * (own + 1e-14) * grow.masked_fill(~there, 0.0).amax(dim=-1, keepdim=True)
    W = (log_w + grow).clamp_max(0.0).exp() * UP_MANY
    value = block.values + torch.einsum("bd,htdo->bhto", c, block.slopes)
    swing = torch.einsum("bd,htdo->bhto", r, block.slopes.abs())
    z = torch.einsum("bht,bhto->bho", w, value)
    dev = (value - z[:, :, None]).abs() + swing + 1e-12 * value.abs()
    around = torch.einsum("bht,bhto->bho", W, dev)  # |z(x) − z(c)| ≤ this, and ≤ Σ_i r_i |∂_i z|
    slope = torch.einsum("bht,bhto->bho", W, swing)
    covariance = torch.einsum("bht,bhto->bho", W * grow, dev) + (W * grow).sum(dim=-1)[..., None] * around
    osc = torch.minimum(around, slope + covariance)
    # scores, exponentials
    products = torch.einsum("bd,htd->bht", X, keys.abs())
    n = keys.ne(0).sum(dim=-1)
    bias = block.biases.masked_fill(~there, 0.0).abs()
    moves = torch.einsum("bd,htd->bht", r, keys.abs())
    added = n * products + torch.where(bias > 0, (n - 1).clamp_min(0) * bias + sure + moves, 0.0)
    d = a.u * torch.where(n > 0, added, 0.0) + n * a.smallest + torch.einsum("bd,htd->bht", e_x, keys.abs())
    d = d + a.score_roundings * a.u * (products + bias)
    top = (grow.masked_fill(~there, 0.0).amax(dim=-1) + 2 * d.masked_fill(~there, 0.0).amax(dim=-1))[..., None]
    below = score.amax(dim=-1, keepdim=True) - score.masked_fill(~there, 0.0) + grow + top
    factored = (a.u * products + torch.einsum("bd,htd->bht", e_x, keys.abs())) * UP_MANY
    softmax = _off((d + a.shift_roundings * a.u * below + a.rescalings * a.exp_error) * UP_MANY, a.exp_error)
    E = torch.maximum(softmax, _off(factored, 2 * a.exp_error + 3 * a.u)).masked_fill(~there, 0.0)
    share = (W * E).sum(dim=-1)[..., None]
    first = torch.einsum("bht,bhto->bho", W * E, dev + osc[:, :, None]) / (1 - share)
    first = torch.where(share < 0.5, first, torch.inf)
    # averaging
    size = block.values.abs() + torch.einsum("bd,htdo->bhto", X, block.slopes.abs())
    size = size.masked_fill(~there[None, :, :, None], 0.0)
    T, R = block.biases.shape[1], a.rescalings
    here, most = z.abs() + osc, size.amax(dim=2)
    taken = W * (1 + E) / (1 - share) * UP_MANY  # the weights that are computed, sums aside
    terms = taken[..., None] * size
    up, down = (taken[..., None] * (s * value + swing).clamp_min(0.0) for s in (1, -1))  # of either sign
    one_sided = torch.maximum(up.sum(dim=2), down.sum(dim=2)) + 4 * a.u * terms.sum(dim=2)
    normaliser = any_order(taken, taken.sum(dim=-1), a.u) + 3 * a.u + R * a.u * taken.sum(dim=-1)
    more = max(0, int(block.slopes.ne(0).any(dim=-1).sum(dim=-1).max()) - 1)  # values that sum up several x̂_i
    if block.slopes.any():  # where keys are shared, constants and slopes are summed up apart
        constant = taken[..., None] * block.values.abs().masked_fill(~there[..., None], 0.0)
        apart_terms = torch.cat([constant, (terms - constant).clamp_min(0.0)], dim=2)
        added_up = any_order(apart_terms.transpose(2, 3), terms.sum(dim=2) * UP_MANY, a.u)
    else:
        added_up = any_order(terms.transpose(2, 3), one_sided, a.u)
    summed = added_up + (5 + R + more) * a.u * terms.sum(dim=2)
    errors = (first + normaliser[..., None] * here + summed) * UP_MANY
    errors = errors + torch.einsum("bht,bd,htdo->bho", W, e_x, block.slopes.abs())
    trusted = own < 1e-7  # the scores computed here are float64, too
    # or, where values are proportional to scores, as a maximum: the weights may then be anything
    whole = a.shift_roundings * VANISHED * a.u + 2 * (1 + R) * a.exp_error
    logs = torch.maximum(d + whole, factored + 3 * a.exp_error + 4 * a.u)
    moved = torch.einsum("bd,htdo->bhto", e_x, block.slopes.abs()).masked_fill(~there[None, :, :, None], 0.0)
    other = (
        maximum_rounding(proportional_fit(block), X, logs.masked_fill(~there, 0.0))
        + (2 * (T + R) + 9 + more) * a.u * most
    )
    errors = torch.fmin(torch.where(trusted, errors, torch.inf), other + moved.amax(dim=2))
    errors = (errors + 4 * T * (1 + R) * a.smallest * (1 + most)) * (1 + (2 * (T + R) + 20) * a.u)
    return errors, torch.where(trusted, torch.fmin(here, most), most)


def any_order(terms: Float[Tensor, "... term"], partial: Float[Tensor, "..."], u: float) -> Float[Tensor, "..."]:
    """How far a computed sum of terms of at most these sizes can be from the exact one, in any order of additions.

    `partial` is at least |Σ a_t| over every set of terms: the sum of the positive ones or of the negative ones. An addition is
    off by at most u times its result, and by no more than the smaller of the two numbers that it adds. Call terms of at least
    u·partial big, and let there be m of them. At most m − 1 additions have big terms on both sides: u·partial each. A small
    term meets a big one once, in a sum of small terms that costs at most its own size: together σ, the sum of all small terms.
    Additions among small terms cost at most nuσ. Products that are not rounded first cost u|a_t| more each.
    """
    most = u * partial
    found = torch.minimum(terms, most[..., None]).sum(dim=-1) - most
    return found.clamp_min(0.0) * (1 + 8 * terms.shape[-1] * u)


def _off(exponent: Tensor, relative: float) -> Tensor:
    """e^exponent (1 + relative) − 1, rounded up."""
    grown = torch.expm1(exponent)
    return (grown + relative * UP_MANY * (1 + grown)) * UP_MANY


def edges(lower: Tensor, upper: Tensor, shift: Tensor, scale: Tensor) -> tuple[Tensor, Tensor]:
    """The domain in normalised coordinates, rounded outward."""
    low, high = (lower - shift) * scale, (upper - shift) * scale
    slack = 4 * FLOAT64.u * torch.maximum(low.abs(), high.abs()) + FLOAT64.smallest
    return low - slack, high + slack
