"""The weights of a layer for a set function, from its design.

The stream has the coordinates x̂, marks for data, queries, anchor, output token and "not the first position", the output, one
for every input that heads compute, and n where averages need it. Scores depend on the key alone: βx̂ on numbers. Values are 1
and x̂. W^O adds up the exponential sums; hidden units are ReLUs of linear forms of the stream.
"""

import math

import torch

from ...layer.assemble.frame import Frame, blank
from ...model.config import LayerConfig
from ...model.masking import of_any_length
from ...model.transformer import SingleLayerTransformer
from .design import Computed, Design
from .exponential_sums import COUNT, ExponentialSum

X, DATA, QUERY, ANCHOR, OUTPUT, LATER, RESULT, FIRST_INPUT = range(8)  # coordinates of the stream


def transformer_of_set(design: Design) -> SingleLayerTransformer:
    """The layer for all set sizes up to the largest."""
    n, d, outputs = design.longest, design, int(design.readout == "output")
    config = LayerConfig(
        tokens=n,
        features_in=1,
        features_out=1,
        d_model=FIRST_INPUT + len(d.inputs) + d.averaged,
        heads=d.heads,
        d_k=1,
        d_v=2,
        ffn_width=max(1, d.units),
        code="learned" if d.averaged else "none",
        anchor_tokens=1,
        output_tokens=outputs,
        readout=d.readout,
    )
    model = blank(config, Frame((d.frame.shift,) * n, (d.frame.scale,) * n))
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = model.b_E[QUERY] = model.S[0, ANCHOR] = 1.0
        model.W_R[RESULT, 0], model.b_R[0] = 1.0, float(d.offset)
        if outputs:
            model.S[1, QUERY] = model.S[1, OUTPUT] = 1.0
        if d.averaged:
            model.P[1:, LATER] = 1.0
        _write_heads(model, d)
        start = 0
        for one in d.computed:
            _write_units(model, d, one, start)
            start += len(one.profile.decoder.units)
    return of_any_length(model.to(d.arithmetic.dtype))


def _write_heads(model: SingleLayerTransformer, d: Design) -> None:
    """Exponential heads, then one head for every mean, maximum and minimum."""
    model.W_Q[:, QUERY, 0] = 1.0
    model.W_K[:, ANCHOR, 0] = model.W_K[:, OUTPUT, 0] = d.masked
    model.W_V[:, DATA, 0] = model.W_V[:, X, 1] = 1.0
    for h, beta in enumerate(d.exponential):
        model.W_K[h, X, 0], model.W_K[h, ANCHOR, 0] = beta, d.anchor_score(beta)
    for k, one in enumerate(d.inputs):
        if one.summed:
            _write_sum(model, d, d.sums[one], FIRST_INPUT + k)
        else:
            h = len(d.exponential) + d.plain.index(one)
            model.W_K[h, X, 0] = d.score_of(one)
            model.W_O[2 * h + 1, FIRST_INPUT + k] = 1.0
    if d.averaged:
        _write_sum(model, d, COUNT, FIRST_INPUT + len(d.inputs))


def _write_sum(model: SingleLayerTransformer, d: Design, sum_: ExponentialSum, coordinate: int) -> None:
    for beta, c, slope in zip(sum_.sharpness, sum_.constants, sum_.slopes, strict=True):
        h, undo = d.exponential.index(beta), math.exp(d.anchor_score(beta))
        model.W_O[2 * h, coordinate], model.W_O[2 * h + 1, coordinate] = c * undo, slope * undo


def _write_units(model: SingleLayerTransformer, d: Design, one: Computed, start: int) -> None:
    """height·relu(side·(form − knot)); for averages height·relu(side·(form·n − knot·n)) at the first position."""
    term = one.term
    for i, unit in enumerate(one.profile.decoder.units, start):
        for w, seen in zip(term.weights, term.inputs, strict=True):
            at = X if seen.source == "own" else FIRST_INPUT + d.inputs.index(seen)
            model.W_1[at, i] = unit.side * w * d.unit_of(seen)
        if term.averaged:
            model.W_1[FIRST_INPUT + len(d.inputs), i] = float(-unit.side * unit.knot)
            model.W_1[LATER, i] = -d.silence
        else:
            model.b_1[i] = float(-unit.side * unit.knot)
        model.W_2[i, RESULT] = float(unit.height)
