"""How far the floating point of a program can take a layer from the sum of softmax averages that it is, box by box.

Write u for the unit roundoff. A head averages its values v_t with weights w_t = e^(s_t)/Σ e^(s_t), z = Σ w_t v_t. If the
exponentials are off by factors 1 + η_t, |η_t| ≤ E_t, the average moves by exactly

    Σ_t w_t η_t (v_t − z)/(1 + Σ_t w_t η_t),    so by at most Σ_t w_t E_t |v_t − z| / (1 − Σ_t w_t E_t):

errors count only where a weight is neither 0 nor 1. With scores that are off by d_t (`HeadProgram.scores`, `affine`),

    softmax     E_t = e^(d_t + u·a_t)(1 + κu) − 1, a_t = max s − s_t: the largest score is subtracted first (`shift_roundings`
                times). Attention that goes through the tokens in blocks costs a little more (`online_softmax.py`)
    factored    E_t = e^(u P_t)(1 + κu)² (1 + u)³ − 1, P_t = Σ_i |keys_ti x_i|: e^(k x_i) is computed, e^(b_t) is stored (linear
                attention)

and the larger one is taken. (Smooth maxima have another bound, see `proportional.py`.) Then, for a head of T tokens, in either
form

    3u|z| + …              the normaliser and its reciprocal, or a division; …: what its additions cost, in any order
    3u Σ_t w_t |v_t| + …   a weight's product with the reciprocal, with the value, a fused one; likewise
    Σ_t w_t |Δv_t|         the values themselves (`HeadProgram.values`)

All this on a box with centre c and half-widths r. With k̄ = Σ w_t(c) keys_t, Jensen's inequality gives

    w_t(x) ≤ w_t(c) e^(Σ_i |keys_ti − k̄_i| r_i),

and since ∂_i z is Σ_t w_t slopes_ti plus the covariance of keys and values, |z(x) − z(c)| ≤ Σ_i r_i sup|∂_i z| follows from
the same bounds. Whatever the weights are, Σ_t w_t |v_t − z| is at most half the range of the values. What comes after the heads
is a combination of |z|, of their errors and of |x̂| (`FormProgram`). Boxes are halved where the bound is largest, until it is
small enough or the budget is spent.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ...common.outward import UP_FEW, UP_MANY
from ...formula.additive import home_of, maximal
from ..arithmetic import FLOAT64, VANISHED, Arithmetic
from ..assemble.frame import Frame
from ..form import Block, Form
from ..panels import Panels, panels_of
from .proportional import maximum_rounding, proportional_fit

AT_ONCE = 2**21  # numbers held at a time
WORK = 5 * 10**7  # numbers computed at most
CLOSE = 0.7  # boxes whose bound is at least this share of the largest one are halved
MANY = 256  # heads of one coordinate, from which they are bounded panel by panel: a little less closely
TRUSTED = 1e-7  # rounding of our own weights up to which they count
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
class HeadProgram:
    """Heads that a program computes, and what it is off by: column 0 counts alone, column 1 + i times |x̂_i|.

    An output is off by `moved` times the errors of the averages, and by `sizes` times their absolute values.
    """

    block: Block
    scores: Float[Tensor, "head token column"]
    own: Float[Tensor, "head token"]  # times |score|
    values: Float[Tensor, "head token column out"]
    sizes: Float[Tensor, "head out output"]
    moved: Float[Tensor, "head out output"]

    def part(self, heads: Tensor, coordinates: Tensor) -> "HeadProgram":
        """Some heads, which depend on no other coordinates than these."""
        columns = torch.cat([torch.zeros(1, dtype=torch.int64), 1 + coordinates])
        scores, values = self.scores[heads][..., columns], self.values[heads][:, :, columns]
        rest = (self.own[heads], values, self.sizes[heads], self.moved[heads])
        return HeadProgram(self.block.part(heads, coordinates), scores, *rest)

    def same_heads(self, other: "HeadProgram") -> bool:
        """Whether scores, values and their errors are the same."""
        pairs = ((getattr(self, name), getattr(other, name)) for name in ("scores", "own", "values"))
        fields = ("keys", "biases", "values", "slopes")
        blocks = ((getattr(self.block, name), getattr(other.block, name)) for name in fields)
        return all(torch.equal(a, b) for a, b in (*pairs, *blocks))

    def touched(self) -> Tensor:
        """[head, coordinate]: which coordinates a head, or its error, depends on."""
        loose = self.scores[..., 1:].ne(0).any(dim=1) | self.values[:, :, 1:].ne(0).any(dim=3).any(dim=1)
        return self.block.touched() | loose


@dataclass(frozen=True)
class FormProgram:
    """A layer, or a form, as it is computed: heads, and what else an output is off by."""

    arithmetic: Arithmetic
    heads: tuple[HeadProgram, ...]
    constant: Float[Tensor, " output"]
    linear: Float[Tensor, "coordinate output"]  # times |x̂_i|
    hat: Float[Tensor, " coordinate"]  # x̂_i is off by this share of itself,
    lost: Float[Tensor, " coordinate"]  # and by this
    terms: int = 0  # that are added up for an output, where the form itself is computed,
    factored: bool = False  # perhaps by linear attention
    others: tuple["FormProgram", ...] = ()  # programs that the bound is to cover, too
    stores: bool = False  # it holds the coefficients of the form as numbers of its dtype: what that costs is charged

    @staticmethod
    def of_form(
        form: Form,
        arithmetic: Arithmetic,
        frame: Frame | None = None,
        terms: int | None = None,
        factored: bool = True,
        stores: bool = False,
    ) -> "FormProgram":
        """A program that evaluates the form itself, and adds up this many terms for an output.

        Without a frame x̂ is assumed to be rounded twice, as with any shift and a scale up to 1.
        """
        frame = frame or Frame((1.0,) * form.dimension, (0.9,) * form.dimension)
        share, lost = hat_errors(np.array(frame.shift), np.array(frame.scale), arithmetic)
        hat = (torch.from_numpy(share), torch.from_numpy(lost))
        terms = form.heads + form.dimension + len(form.blocks) + 4 if terms is None else terms
        program = FormProgram(arithmetic, (), 0 * form.bias, 0 * form.linear, *hat, terms, factored, stores=stores)
        return program.of(form)

    def within(self, coordinates: Sequence[int]) -> "FormProgram":
        """The same for forms of these coordinates; it is still to be given one."""
        pick = list(coordinates)
        return replace(self, heads=(), linear=self.linear[pick], hat=self.hat[pick], lost=self.lost[pick])

    def of(self, form: Form) -> "FormProgram":
        """The same program with another form of the same coordinates."""
        a, D, m, hat, lost = self.arithmetic, form.dimension, len(form.bias), self.hat, self.lost
        count = self.terms * a.u
        adding = count / (1 - count) if count < 0.1 else math.inf
        eye = torch.eye(m, dtype=torch.float64)
        heads = []
        for b in form.blocks:
            keys, bias, there = b.keys.abs(), b.biases.masked_fill(~b.there, 0.0).abs(), b.there
            keys = keys.masked_fill(~there[..., None], 0.0)
            k = keys.ne(0).sum(dim=-1) + (bias > 0)
            extra = a.u * (k - 2).clamp_min(0) + a.score_roundings * a.u
            first = extra * bias + k * a.smallest + keys @ lost
            scores = torch.cat([first[..., None], keys * ((a.u + extra)[..., None] + hat)], dim=-1)
            value, slopes = b.values.abs().masked_fill(~there[..., None], 0.0), b.slopes.abs()
            more = (2 + (slopes.ne(0).any(dim=-1).sum(dim=-1) - 1).clamp_min(0)) * a.u  # [head, token]
            steep = slopes.masked_fill(~there[..., None, None], 0.0)
            rest = more[..., None] * value + torch.einsum("htdo,d->hto", steep, lost) + a.smallest * (D + 1)
            values = torch.cat([rest[:, :, None], steep * (more[..., None, None] + hat[:, None])], dim=2)
            if self.stores:
                scores = scores + torch.cat([a.loses(b.biases)[..., None], a.loses(b.keys)], dim=-1)
                values = values + torch.cat([a.loses(b.values)[:, :, None], a.loses(b.slopes)], dim=2)
            wide = eye.expand(len(keys), m, m)
            heads.append(HeadProgram(b, scores, (k >= 2) * a.u, values, adding * wide, (1 + adding) * wide))
        straight = form.linear.abs()
        constant = adding * form.bias.abs() + (1 + adding) * (straight.T @ lost)
        constant = constant + 4 * (form.heads + D + 1) * a.smallest
        linear = straight * (4 * a.u + adding + (1 + adding) * hat[:, None])
        if self.stores:
            constant, linear = constant + 2 * a.loses(form.bias), linear + 2 * a.loses(form.linear)
        return replace(self, heads=tuple(heads), constant=constant * UP_MANY, linear=linear * UP_MANY)

    def only(self, outputs: list[int]) -> "FormProgram":
        """The program of these outputs."""
        heads = tuple(replace(h, sizes=h.sizes[..., outputs], moved=h.moved[..., outputs]) for h in self.heads)
        others = tuple(program.only(outputs) for program in self.others)
        return replace(
            self, heads=heads, constant=self.constant[outputs], linear=self.linear[:, outputs], others=others
        )

    def beside(self, reach: Float[Tensor, " coordinate"]) -> Float[Tensor, " output"]:
        """What outputs are off by for |x̂| ≤ reach, apart from the heads."""
        return (self.constant + reach * (1 + 4 * self.arithmetic.u) @ self.linear) * UP_MANY

    def after(
        self, heads: list[tuple[Tensor, Tensor]], reach: Float[Tensor, " coordinate"]
    ) -> Float[Tensor, " output"]:
        """What outputs are off by, given (|z|, errors of z), [head, out], of all heads."""
        total = self.beside(reach)
        for own, (size, error) in zip(self.heads, heads, strict=True):
            total = total + torch.einsum("hw,hwo->o", size, own.sizes) + torch.einsum("hw,hwo->o", error, own.moved)
        return total * UP_MANY

    def rounding(
        self, lower: Tensor, upper: Tensor, enough: float = 0.0, over: Callable[[], bool] = lambda: False
    ) -> Float[Tensor, " output"]:
        """|computed − T| on the box lower ≤ x̂ ≤ upper, per output, halving boxes until it is at most `enough` or time is
        `over`; ∞ if unproved.

        Heads of different groups of coordinates are bounded separately: the maximum of a sum is at most the sum of the maxima.
        """
        total = self.beside(torch.maximum(lower.abs(), upper.abs()))
        rows = [row.nonzero().flatten().tolist() for h in self.heads for row in h.touched()]
        groups = maximal(sorted({tuple(row) for row in rows})) or [(0,)]
        home = torch.tensor([home_of(row, groups) for row in rows])
        for position, group in enumerate(groups):
            pick, parts, first = torch.tensor(group), [], 0
            for h in self.heads:
                mine = home[first : first + len(h.own)] == position
                first += len(h.own)
                if mine.any():
                    parts.append(h.part(mine, pick))
            own = replace(self, heads=tuple(parts), linear=self.linear[pick], hat=self.hat[pick], lost=self.lost[pick])
            start = Boxes(((lower + upper) / 2)[None, pick], ((upper - lower) / 2 * UP_FEW)[None, pick])
            total = total + _largest(own, start, enough / len(groups), over)
        for program in self.others:
            found = float(total.max())  # it is the maximum that counts: no need to bring the other one below
            total = torch.maximum(total, program.rounding(lower, upper, max(enough, found), over))
        return (total * UP_MANY).nan_to_num(nan=torch.inf, posinf=torch.inf)

    def on_boxes(self, boxes: Boxes) -> Float[Tensor, "box output"]:
        """|computed − T| on every box."""
        straight = boxes.reach * (1 + 4 * self.arithmetic.u) @ self.linear
        return (box_rounding(self, boxes) + straight + self.constant) * UP_MANY


def hat_errors(shift: np.ndarray, scale: np.ndarray, a: Arithmetic) -> tuple[np.ndarray, np.ndarray]:
    """x̂ = fl(fl(x − shift)·scale) is off by the first, relative, and by the second, absolute; [coordinate].

    A difference from 0 and a product with a power of two are exact.
    """
    rounded = (shift != 0).astype(np.float64) + (np.frexp(scale)[0] != 0.5)
    lost = np.array([a.lost(s) for s in scale.tolist()])
    return rounded * a.u * (1 + a.u), np.where((shift == 0) & (scale == 1), 0.0, lost)


def _largest(program: FormProgram, boxes: Boxes, enough: float, over: Callable[[], bool]) -> Float[Tensor, " output"]:
    """The largest bound on what heads add over boxes that cover the given one."""
    if not program.heads:
        return torch.zeros_like(program.constant)
    low, high = (float(end[0, 0]) for end in (boxes.centres - boxes.halves, boxes.centres + boxes.halves))
    panels = panels_of([h.block for h in program.heads], low, high, MANY)
    if panels is not None:
        return _by_panels(program, panels, enough, over)
    return _largest_by_halving(program, boxes, enough, over)


def _largest_by_halving(
    program: FormProgram, boxes: Boxes, enough: float, over: Callable[[], bool]
) -> Float[Tensor, " output"]:
    """The same, all heads at a time."""
    if not program.heads:
        return torch.zeros_like(program.constant)
    width = torch.stack([h.block.key_spreads().amax(dim=0) for h in program.heads]).amax(dim=0) + 1e-300
    found, spent, before = box_rounding(program, boxes), _size(program), [torch.inf] * PATIENCE
    while not (high := float(found.max())) <= enough and spent <= WORK and not over():
        if math.isfinite(high) and high > (1 - GAIN) * before[-PATIENCE]:
            break
        before.append(high)
        boxes, found, work = _halved(program, boxes, found, width)
        spent += work
    return found.amax(dim=0)


def _by_panels(
    program: FormProgram, panels: Panels, enough: float, over: Callable[[], bool]
) -> Float[Tensor, " output"]:
    """The same for heads of one coordinate, few of which are active at a time: the others are bounded on the whole panel."""
    most, coordinate = torch.zeros_like(program.constant), torch.zeros(1, dtype=torch.int64)
    for panel in range(len(panels)):
        low, high = panels.edges[panel], panels.edges[panel + 1]
        box = Boxes(
            *(
                torch.tensor([[t]], dtype=torch.float64)
                for t in ((low + high) / 2, (high - low) / 2 * UP_FEW + 4 * FLOAT64.u * max(abs(low), abs(high)))
            )
        )
        near, far = (
            tuple(h.part(mine, coordinate) for h, mine in zip(program.heads, which, strict=True) if mine.any())
            for which in (panels.near(low, high), [~mine for mine in panels.near(low, high)])
        )
        beside = box_rounding(replace(program, heads=far), box)[0]
        left = max(enough, float(most.max())) - float(beside.max())
        most = torch.maximum(most, beside + _largest_by_halving(replace(program, heads=near), box, left, over))
    return most


def _halved(program: FormProgram, boxes: Boxes, found: Tensor, width: Tensor) -> tuple[Boxes, Tensor, int]:
    """(boxes, what is found there, work) with those halved that decide, across the coordinate that moves scores most."""
    worst, size = found.amax(dim=1), _size(program)
    pick = (-worst).argsort()[: max(1, AT_ONCE // size)]
    pick = pick[worst[pick] >= CLOSE * float(worst.max())]
    fresh = boxes[pick].halved((boxes.halves[pick] * width).argmax(dim=1))
    values = box_rounding(program, fresh)
    keep = torch.ones(len(worst), dtype=torch.bool)
    keep[pick] = False
    boxes = Boxes(torch.cat([boxes.centres[keep], fresh.centres]), torch.cat([boxes.halves[keep], fresh.halves]))
    return boxes, torch.cat([found[keep], values]), size * len(values)


def _size(program: FormProgram) -> int:
    """About how many numbers are computed for a box."""
    return sum(h.block.values.numel() * (h.block.keys.shape[2] + 3) for h in program.heads) + 1


def box_rounding(program: FormProgram, boxes: Boxes) -> Float[Tensor, "box output"]:
    """What heads add to |computed − T| on every box."""
    rows = max(1, AT_ONCE // _size(program))
    pieces = zip(boxes.centres.split(rows), boxes.halves.split(rows), strict=True)
    return torch.cat([_box_rounding(program, Boxes(c, r)) for c, r in pieces])


def _box_rounding(program: FormProgram, boxes: Boxes) -> Float[Tensor, "box output"]:
    a = program.arithmetic
    e_x = boxes.reach * program.hat + program.lost
    X = (boxes.reach + e_x) * (1 + 2 * a.u)
    total = torch.zeros(len(X), len(program.constant), dtype=torch.float64)
    largest = torch.zeros(len(X), dtype=torch.float64)
    for head in program.heads:
        errors, contribution = _head_rounding(head, boxes, X, e_x if program.factored else None, a)
        total = total + torch.einsum("bhw,hwo->bo", errors, head.moved)
        total = total + torch.einsum("bhw,hwo->bo", contribution, head.sizes)
        largest = torch.maximum(largest, (contribution + errors).sum(dim=1).amax(dim=1))
    found = torch.where(4 * largest[:, None] < a.overflow, total * UP_MANY, torch.inf)
    return found.nan_to_num(nan=torch.inf, posinf=torch.inf)


@dataclass(frozen=True)
class HeadsOnBoxes:
    """Heads on boxes with centre c and half-widths r: what they are at c, and bounds for the whole box."""

    score: Float[Tensor, "box head token"]  # at c
    sure: Float[Tensor, "box head token"]  # its absolute value, 0 for tokens that are not there
    own: Float[Tensor, "box head 1"]  # relative rounding of the weights here
    grow: Float[Tensor, "box head token"]  # Σ_i |keys_ti − k̄_i| r_i
    weights: Float[Tensor, "box head token"]  # at most
    value: Float[Tensor, "box head token out"]  # at c
    swing: Float[Tensor, "box head token out"]  # how far values move
    z: Float[Tensor, "box head out"]  # at c
    dev: Float[Tensor, "box head token out"]  # |v_t(x) − z(c)|
    apart: Float[Tensor, "box head out"]  # |z(x) − z(c)|, by the values
    moved: Float[Tensor, "box head out"]  # Σ_i r_i sup|∂_i z|, which bounds it too


def on_boxes(block: Block, boxes: Boxes) -> HeadsOnBoxes:
    c, r, keys, there = boxes.centres, boxes.halves, block.keys, block.there
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
    around = torch.einsum("bht,bhto->bho", W, dev)
    slope = torch.einsum("bht,bhto->bho", W, swing)
    covariance = torch.einsum("bht,bhto->bho", W * grow, dev) + (W * grow).sum(dim=-1)[..., None] * around
    return HeadsOnBoxes(score, sure, own, grow, W, value, swing, z, dev, around, slope + covariance)


def _head_rounding(
    head: HeadProgram, boxes: Boxes, X: Tensor, e_x: Tensor | None, a: Arithmetic
) -> tuple[Float[Tensor, "box head out"], Float[Tensor, "box head out"]]:
    """(errors of every head, bounds on |z|) on every box; `e_x`: of x̂, where heads may be computed in the factored form."""
    block, there, T, R = head.block, head.block.there, head.block.biases.shape[1], a.rescalings
    r, keys, hidden = boxes.halves, block.keys, ~there[None, :, :, None]
    on = on_boxes(block, boxes)
    score, sure, own, grow, W = on.score, on.sure, on.own, on.grow, on.weights
    value, swing, z, dev = on.value, on.swing, on.z, on.dev
    osc = torch.minimum(on.apart, on.moved)
    # scores, exponentials
    moves = torch.einsum("bd,htd->bht", r, keys.abs())
    d = head.scores[..., 0] + torch.einsum("bd,htd->bht", X, head.scores[..., 1:]) + head.own * (sure + moves)
    top = (grow.masked_fill(~there, 0.0).amax(dim=-1) + 2 * d.masked_fill(~there, 0.0).amax(dim=-1))[..., None]
    below = score.amax(dim=-1, keepdim=True) - score.masked_fill(~there, 0.0) + grow + top
    E = _off((d + a.shift_roundings * a.u * below + a.rescalings * a.exp_error) * UP_MANY, a.exp_error)
    whole = a.shift_roundings * VANISHED * a.u + 2 * (1 + R) * a.exp_error
    logs = d + whole
    if e_x is not None:
        factored = torch.einsum("bd,htd->bht", a.u * X + e_x, keys.abs()) * UP_MANY
        E = torch.maximum(E, _off(factored, 2 * a.exp_error + 3 * a.u))
        logs = torch.maximum(logs, factored + 3 * a.exp_error + 4 * a.u)
    E = E.masked_fill(~there, 0.0)
    share = (W * E).sum(dim=-1)[..., None]
    first = torch.einsum("bht,bhto->bho", W * E, dev + osc[:, :, None]) / (1 - share)
    first = torch.where(share < 0.5, first, torch.inf)
    widest = (value + swing).masked_fill(hidden, -torch.inf).amax(dim=2)
    widest = widest - (value - swing).masked_fill(hidden, torch.inf).amin(dim=2)
    most_off = E.amax(dim=-1)[..., None]
    first = torch.fmin(first, torch.where(most_off < 0.5, most_off * widest / 2 / (1 - most_off) * UP_MANY, torch.inf))
    # averaging
    size = block.values.abs() + torch.einsum("bd,htdo->bhto", X, block.slopes.abs())
    size = size.masked_fill(hidden, 0.0)
    here, most = z.abs() + osc, size.amax(dim=2)
    taken = W * (1 + E) / (1 - share) * UP_MANY  # the weights that are computed, sums aside
    terms = taken[..., None] * size
    up, down = (taken[..., None] * (s * value + swing).clamp_min(0.0) for s in (1, -1))  # of either sign
    one_sided = torch.maximum(up.sum(dim=2), down.sum(dim=2)) + 4 * a.u * terms.sum(dim=2)
    normaliser = any_order(taken, taken.sum(dim=-1), a.u) + 3 * a.u + R * a.u * taken.sum(dim=-1)
    if block.slopes.any():  # where keys are shared, constants and slopes are summed up apart
        constant = taken[..., None] * block.values.abs().masked_fill(~there[..., None], 0.0)
        apart_terms = torch.cat([constant, (terms - constant).clamp_min(0.0)], dim=2)
        added_up = any_order(apart_terms.transpose(2, 3), terms.sum(dim=2) * UP_MANY, a.u)
    else:
        added_up = any_order(terms.transpose(2, 3), one_sided, a.u)
    summed = added_up + (3 + R) * a.u * terms.sum(dim=2)
    shaken = (head.values[:, :, 0] + torch.einsum("bd,htdo->bhto", X, head.values[:, :, 1:])).masked_fill(hidden, 0.0)
    errors = (first + normaliser[..., None] * here + summed) * UP_MANY
    errors = errors + torch.fmin((taken[..., None] * shaken).sum(dim=2), shaken.amax(dim=2) * UP_MANY)
    trusted = own < TRUSTED  # the scores computed here are float64, too
    # or, where values are proportional to scores, as a maximum: the weights may then be anything
    other = maximum_rounding(proportional_fit(block), X, logs.masked_fill(~there, 0.0))
    other = other + (2 * (T + R) + 7) * a.u * most + shaken.amax(dim=2)
    errors = torch.fmin(torch.where(trusted, errors, torch.inf), other)
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
