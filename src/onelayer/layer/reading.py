"""Reading a Form back from the weights of a model: what a constructed Transformer computes, without its layer.

The steps of the layer are taken on numbers that carry how far they may be from the real ones and from the computed ones
(`affine_layer`): heads become averages of affine values with affine scores, units that open and close become hinges. Whatever the
weights are, the Form is within `error` of the real function, and `program` bounds what is computed. Anything else (LayerNorm,
trained weights, quadratic scores, …) has no reading: None.

Slopes. What heads are off by are averages of products of functions that are affine, or such averages times each other. Where
scores have slopes of at most S, and second derivatives of at most S/edge (masked ones may be quadratic), and a, b are affine with
|a·b| ≤ E on the box, weights have slopes of at most 2S of themselves and second derivatives of at most (4S² + 2S/edge) of
themselves, so that

    |E[ab]'|, |(E[a]E[b])'|  ≤ (2/edge + 4S)·E,        |E[ab]''|, |(E[a]E[b])''|  ≤ (2/edge² + 20S/edge + 16S²)·E,

and what is charged is 2E for the two of them: `slope_error` = 4(S + 1/edge)·`error`, `curvature_error` = 16(S + 1/edge)²·`error`,
and ∞ where hinges are not known exactly.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..common.outward import UP
from ..model.transformer import SingleLayerTransformer
from .affine import AffineNumbers, Sums
from .affine_layer import AffineLayer, HeadsOfRow, attended, embedded, heads_at, passed
from .arithmetic import Arithmetic, arithmetic_of
from .assemble import Frame
from .equivalent import softmax_equivalent
from .form import Block, Form
from .heads import EDGE, Hinges
from .number_range import out_of_range
from .rounding.deployed import FormProgram, HeadProgram, hat_errors
from .rounding.online_softmax import arithmetic_of_model


@dataclass(frozen=True)
class Reading:
    """T as a form and hinges, per output in the order of the places; `error` bounds |form + hinges − T| on the box."""

    form: Form
    hinges: Hinges
    hinge_values: torch.Tensor
    frame: Frame
    error: torch.Tensor
    slope_error: torch.Tensor  # per output: bounds what the form's slopes, with respect to any x̂_i, are off by
    curvature_error: torch.Tensor  # likewise for second derivatives along one x̂_i
    program: FormProgram  # how far what is computed may be from form + hinges
    edge: float


def form_of_model(
    model: SingleLayerTransformer,
    places: tuple[int, ...] = (0,),
    edge: float = EDGE,
    arithmetic: Arithmetic | None = None,
) -> Reading | None:
    """What `model` computes at the given places for |x̂| ≤ edge, read from its weights; None if it has another form.

    The arithmetic is that of the model on a CPU, unless another is given.
    """
    c = model.config
    plain = not (c.any_length or c.causal) and c.norm == "none" and c.activation == "relu" and not c.projection_bias
    if not plain or c.dropout or c.readout == "mean" or not all(0 <= p < c.places for p in places):
        return None
    same = softmax_equivalent(model, places, edge)
    if same is None or out_of_range(same.model, edge) is not None or not places:
        return None
    if math.sqrt(c.d_k) != 2.0 ** round(math.log2(c.d_k) / 2) or not bool((model.scale > 0).all()):
        return None  # boxes in x̂ would be reversed
    if arithmetic is None:
        arithmetic = arithmetic_of_model(model)
    with np.errstate(all="ignore"):
        layer = embedded(same.model, arithmetic, edge, same.underflow)
        parts = []
        for place in places:
            part = _read_row(layer, same.model.config.read_rows.start + place, c.attention in ("linear", "sigmoid"))
            if part is None:
                return None
            parts.append(part)
    reading = parts[0] if len(parts) == 1 else _joined(parts)
    if len(reading.hinges):
        return reading
    also = FormProgram.of_form(reading.form, arithmetic_of(model.W_E.dtype), reading.frame, stores=True)
    return replace(reading, program=replace(reading.program, others=(also,)))


def _read_row(layer: AffineLayer, row: int, loose: bool) -> Reading | None:
    """The outputs at one row; None if it has no reading."""
    heads = heads_at(layer, row)
    if heads is None:
        return None
    stream, averages = attended(layer, row, heads, loose)
    found = passed(layer, stream, averages)
    if found is None:
        return None
    out, hinges = found
    c, e, w, a = layer.model.config, layer.ends, layer.w, layer.arithmetic
    D, K = len(e) - 1, len(averages.sizes)
    bends = (hinges.size + hinges.rad)[:, : D + 1] @ e * UP  # [hinge]
    ends = np.concatenate([e, averages.sizes, bends])
    A = out.mid[:, 1 + D : 1 + D + K].T.reshape(len(averages.used), c.d_v, len(out.own))  # [used head, width, output]
    blocks, slip = _blocks(layer, heads, averages.used, A)
    error = (out.rad @ ends + out.moved @ averages.real + slip) * UP
    steep = heads.steepest + 1 / layer.edge
    directions = np.abs(hinges.mid[:, 1 : 1 + D]).max(axis=1, initial=0.0)
    slope_error = (error * 4 * steep + out.rad[:, 1 + D + K :] @ directions) * UP
    if (hinges.rad != 0).any():
        slope_error = np.full_like(error, np.inf)
    errors = out.errors
    constant = errors[:, 0] + errors[:, 1 + D + K :] @ bends + out.moved @ averages.vanished + slip
    if not all(np.isfinite(t).all() for t in (out.mid, error, constant, A)):
        return None
    share, lost = hat_errors(w["shift"].flatten(), w["scale"].flatten(), a)
    program = FormProgram(
        a,
        _programs(layer, heads, averages.used, out),
        constant=_tensor(constant * UP),
        linear=_tensor(errors[:, 1 : 1 + D].T * UP),
        hat=_tensor(share),
        lost=_tensor(lost),
    )
    return Reading(
        form=Form(_tensor(out.mid[:, 0]), _tensor(out.mid[:, 1 : 1 + D].T), blocks),
        hinges=Hinges(_tensor(hinges.mid[:, 1 : 1 + D]), _tensor(hinges.mid[:, 0])),
        hinge_values=_tensor(out.mid[:, 1 + D + K :].T),
        frame=Frame(tuple(w["shift"].flatten().tolist()), tuple(w["scale"].flatten().tolist())),
        error=_tensor(error),
        slope_error=_tensor(slope_error),
        curvature_error=_tensor(error * 16 * steep * steep * UP),
        program=program,
        edge=layer.edge,
    )


def _tensor(t: np.ndarray) -> torch.Tensor:
    """A copy that shares nothing."""
    return torch.from_numpy(np.array(t, order="C"))


def _by_width(heads: HeadsOfRow, used: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """(places among the used heads, the tokens that these keep [head, token]) for every number of tokens."""
    counts = heads.kept[used].sum(axis=1)
    found = []
    for n in np.unique(counts).tolist():
        mine = np.flatnonzero(counts == n)
        found.append((mine, np.argsort(~heads.kept[used[mine]], axis=1, kind="stable")[:, :n]))
    return found


def _blocks(
    layer: AffineLayer, heads: HeadsOfRow, used: np.ndarray, A: np.ndarray
) -> tuple[tuple[Block, ...], np.ndarray]:
    """The heads with their values at the outputs, and what rounding these here costs, [output]."""
    blocks, slip = list[Block](), np.zeros(A.shape[-1])
    for mine, order in _by_width(heads, used):
        at = (used[mine][:, None], order)
        v, s = layer.values[at], heads.scores[at]
        made = Sums(replace(layer.arithmetic, rescalings=0)).add(v, A[mine][:, None]).result()  # [head, token, output]
        numbers = (s.mid[..., 1:], s.mid[..., 0], made.mid[..., 0], made.mid[..., 1:].swapaxes(2, 3))
        blocks.append(Block(*map(_tensor, numbers)))
        exact = AffineNumbers(v.mid, 0 * v.rad, 0 * v.off, v.moved, 0 * v.own)
        lost = Sums(layer.arithmetic).add(exact, A[mine][:, None]).result().rad
        slip = slip + (lost @ layer.ends).max(axis=1).sum(axis=0) * UP
    return tuple(blocks), slip


def _programs(layer: AffineLayer, heads: HeadsOfRow, used: np.ndarray, out: AffineNumbers) -> tuple[HeadProgram, ...]:
    """The heads as they are computed, values before W^O."""
    D, width = len(layer.ends) - 1, layer.model.config.d_v
    sizes = out.errors[:, 1 + D : 1 + D + len(used) * width].T.reshape(len(used), width, len(out.own))
    moved = out.moved.T.reshape(len(used), width, len(out.own))
    programs = []
    for mine, order in _by_width(heads, used):
        at = (used[mine][:, None], order)
        v, s = layer.values[at], heads.scores[at]
        block = (s.mid[..., 1:], s.mid[..., 0], v.mid[..., 0], v.mid[..., 1:].swapaxes(2, 3))
        charged = (s.off, s.own, v.errors.swapaxes(2, 3), sizes[mine], moved[mine])
        programs.append(HeadProgram(Block(*map(_tensor, block)), *map(_tensor, charged)))
    return tuple(programs)


def _joined(parts: list[Reading]) -> Reading:
    """The outputs of all places side by side; places with the same heads share them."""
    m = [len(part.form.bias) for part in parts]

    def beside(t: torch.Tensor, place: int) -> torch.Tensor:
        return torch.nn.functional.pad(t, (sum(m[:place]), sum(m[place + 1 :])))

    blocks, programs = list[Block](), list[HeadProgram]()
    for place, part in enumerate(parts):
        for block in part.form.blocks:
            wide = replace(block, values=beside(block.values, place), slopes=beside(block.slopes, place))
            for i, old in enumerate(blocks):
                if torch.equal(old.keys, wide.keys) and torch.equal(old.biases, wide.biases):
                    blocks[i] = replace(old, values=old.values + wide.values, slopes=old.slopes + wide.slopes)
                    break
            else:
                blocks.append(wide)
        for head in part.program.heads:
            own = replace(head, sizes=beside(head.sizes, place), moved=beside(head.moved, place))
            for i, other in enumerate(programs):
                if own.same_heads(other):
                    programs[i] = replace(other, sizes=other.sizes + own.sizes, moved=other.moved + own.moved)
                    break
            else:
                programs.append(own)
    bias, straight = torch.cat([p.form.bias for p in parts]), torch.cat([p.form.linear for p in parts], dim=1)
    hinges = Hinges(torch.cat([p.hinges.directions for p in parts]), torch.cat([p.hinges.offsets for p in parts]))
    program = replace(
        parts[0].program,
        heads=tuple(programs),
        constant=torch.cat([p.program.constant for p in parts]),
        linear=torch.cat([p.program.linear for p in parts], dim=1),
    )
    return replace(
        parts[0],
        form=Form(bias, straight, tuple(blocks)),
        hinges=hinges,
        hinge_values=torch.cat([beside(p.hinge_values, i) for i, p in enumerate(parts)]),
        error=torch.cat([p.error for p in parts]),
        slope_error=torch.cat([p.slope_error for p in parts]),
        curvature_error=torch.cat([p.curvature_error for p in parts]),
        program=program,
    )
