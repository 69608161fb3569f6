"""The sequence form: a token per coordinate, an anchor token, heads of width one.

Stream of token j:   (x_j, one-hot code of j, …), and no lane that another can spare. Every query is 1, so the score of a
token is its key. Three layouts carry the outputs to their positions (the paper's three ways):

    token   an output token is the only one that is read; its row holds all outputs, and it is the anchor
    wide    every token receives all outputs; the FFN keeps those of its own position: relu(z_q + 2B·code_q − B) − B
    heads   every position has its own heads, which at all other positions attend to a rest token of value 0

The weights of a head sum to 1, so its scores and values matter only relative to the anchor's. Where all heads are gates or
reads, the anchor therefore needs no lane: in layout "wide" it is the token 0, in layout "token" it holds x = SPECK, which
its query multiplies to 1. Scores and values are then off by SPECK·β and SPECK·u at all tokens alike, which changes nothing.
Smooth maxima mask the anchor, and some values are kept on it (`GateLayer.spares_anchor`): then it has a lane.

In layout "token" the residual stream passes the outputs by the feed-forward network. They stand in coordinates in which the
token that is read out has 0, if there are enough; what it has there is taken off the bias. A scalar function of one
coordinate needs no output token (`asks_itself`): the data token asks, and the stream keeps its x for the read-out, which
holds the linear part, and for hinges. Its code is then part of b_E, and SPECK if an output stands in the same coordinate.

Masked tokens get keys at least 800 below the largest key that is kept, over the whole normalised domain: weight exactly 0.
On a domain far from 0 rounding may take x̂ beyond EDGE, which the 55 between exp(−745) = 0 and 800 covers.
"""

import torch
from torch import Tensor

from ...common.errors import InputError
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..heads import MASKED
from ..layer import GateLayer
from .frame import Frame, Layout, Outputs, blank, write_hinges, write_identity
from .gate_heads import X, bound_of_outputs, keys_of, relative_to_anchor, values_of

SPECK = 2.0**-10  # x of an anchor without a lane: a power of two, too small to make the scores larger


def asks_itself(dimension: int, outputs: Outputs, layout: Layout) -> bool:
    """Whether the one data token is read out, so that its linear part takes no head (layers with a residual stream)."""
    return layout == "token" and dimension == 1 and outputs.places * outputs.width == 1


def gate_config(
    dimension: int,
    outputs: Outputs,
    layout: Layout,
    *,
    units: int,
    reads: int = 0,
    hinges: int = 0,
    plain: bool,
    anchored: bool,
    residual: bool = True,
) -> LayerConfig:
    """The shape of the Transformer for this many units, reads and hinges.

    `plain` gates have a value on the anchor only; where the layer is `anchored`, the anchor has a lane of its own. Without
    `residual`, in layout "token", the outputs stand in the first coordinates and the feed-forward network passes them on.
    """
    D, m = dimension, outputs.places * outputs.width
    width = outputs.width if layout == "heads" else m
    before = _embedded(D, layout, anchored)
    carried = m + D * bool(hinges)
    alone = residual and asks_itself(D, outputs, layout)
    if layout == "token" and residual:
        carried = 0 if alone else carried + anchored
    after = {"token": carried, "wide": before + m + outputs.width, "heads": width}[layout]
    heads = (units + reads + 1) * outputs.places if layout == "heads" else units + (0 if alone else reads)
    passing = max(hinges, 1) if layout == "token" and residual else 2 * width + hinges
    return LayerConfig(
        tokens=D,
        features_in=1,
        features_out=m if layout == "token" else outputs.width,
        d_model=max(before, after),
        heads=max(heads, 1),
        d_k=4 if layout == "heads" else 1,
        d_v=1 if plain else width,
        ffn_width=m if layout == "wide" else passing,
        code="none" if alone else "one-hot",
        anchor_tokens={"token": int(alone), "wide": 1, "heads": 2}[layout],
        output_tokens=1 if layout == "token" and not alone else 0,
        residual=layout == "wide" or (layout == "token" and residual),
        readout="output" if layout == "token" and not alone else "position",
    )


def _embedded(dimension: int, layout: Layout, anchored: bool) -> int:
    """Coordinates of the embedding: x, the codes, the anchor's lane; with layout "heads" the rest token's lane, too."""
    return 1 + dimension + (2 if layout == "heads" else int(anchored))


def _lanes(layer: GateLayer, d_model: int, anchored: bool, alone: bool) -> tuple[list[int], list[int]]:
    """(coordinates of the outputs, coordinates in which hinges see x) in layout "token" with residuals."""
    D, m = layer.dimension, layer.outputs
    if alone:
        return [1 + D if anchored else D], [X]
    free = [i for i in range(d_model) if i != (1 + D if anchored else X)]
    if anchored:
        return free[:m], free[m : m + D]
    seen = free[:D] if len(layer.hinges) else []
    return [*free[len(seen) :], X][:m], seen


def assemble_gates(
    layer: GateLayer, frame: Frame, outputs: Outputs, layout: Layout, residual: bool = True, anchored: bool = False
) -> SingleLayerTransformer:
    """The model; without `residual`, in layout "token", the outputs stand in the first coordinates of the stream.

    The anchor has a lane where it needs one, or if it is to be `anchored`.
    """
    D, m = layer.dimension, layer.outputs
    if layout != "token" and len(layer.hinges):
        raise InputError("hinges in the FFN", f"layout={layout!r}", "use layout='token', which leaves the FFN free")
    if layout != "token" and outputs.places > D:
        found = f"{outputs.places} output positions, {D} tokens"
        raise InputError(f"layout={layout!r}, a token for each output", found, "use layout='token'")
    alone = residual and asks_itself(D, outputs, layout)
    reads = [] if alone else layer.reads
    counts = {"units": layer.units, "reads": len(reads), "hinges": len(layer.hinges)}
    anchored = anchored or layout == "heads" or not layer.spares_anchor
    config = gate_config(D, outputs, layout, **counts, plain=layer.plain, anchored=anchored, residual=residual)
    d_v, before = config.d_v, _embedded(D, layout, anchored)
    model = blank(config, frame)
    with torch.no_grad():
        model.W_E[0, X] = 1.0
        if layout == "heads":
            model.S[:, 1 + D : before] = torch.eye(2, dtype=torch.float64)
            keyed = keys_of(layer, reads, constant=True)
            for place in range(outputs.places):
                _write_place(model, layer, outputs, place, keyed)
            write_identity(model, outputs.width, torch.zeros(outputs.width, dtype=torch.float64))
            return model
        speck, code, B = 0.0, 1.0, bound_of_outputs(layer)
        if alone:
            code = model.b_E[D] = 1.0 if anchored else SPECK
            model.W_Q[:, D, 0] = 1 / code
            model.S[0, 1 + D : before] = 1.0
        elif anchored or layout == "wide":
            model.W_Q[:, 1:before, 0] = 1.0
            model.S[0, 1 + D : before] = 1.0
        else:
            speck = model.S[0, X] = SPECK
            model.W_Q[:, X, 0] = 1 / SPECK
        layer = layer if anchored else relative_to_anchor(layer, speck)
        keys, _, _ = keys_of(layer, reads, constant=False, anchor_at=speck)
        values, out = values_of(layer, reads, d_v, constant=False)
        keys[:, 1 : 1 + D] /= code
        values[:, 1 : 1 + D] /= code
        model.W_K[: len(keys), :before, 0] = keys[:, :before]
        model.W_V[: len(keys), :before] = values[:, :before]
        if layout == "wide":
            model.W_O[: len(keys) * d_v, before : before + m] = out.flatten(0, 1)
            _write_selection(model, layer, outputs, before, B)
            return model
        lanes, seen = list(range(m)), list(range(m, m + D))
        if residual:
            lanes, seen = _lanes(layer, config.d_model, anchored, alone)
            asking = model.b_E if alone else model.S[0]
            model.W_R[lanes] = torch.eye(m, dtype=torch.float64)
            model.b_R.copy_(layer.bias - asking[lanes])
            if alone:
                model.W_R[X] = layer.linear[0]
        else:
            write_identity(model, m, layer.bias)
        model.W_O[: len(keys) * d_v, lanes] = out.flatten(0, 1)
        if len(layer.hinges):
            first = layer.units * d_v
            for i, j in enumerate(reads):  # the FFN sees x_j in a coordinate of its own
                model.W_O[first + i * d_v, seen[j]] = 1.0
            write_hinges(model, layer.hinges, layer.hinge_values, seen, lanes, 0 if residual else 2 * m)
    return model


def _write_place(
    model: SingleLayerTransformer, layer: GateLayer, outputs: Outputs, place: int, keyed: tuple[Tensor, Tensor, Tensor]
) -> None:
    """Layout "heads": q_i = (1, [i is not my position]); the rest token wins exactly where the second component is 1."""
    keys, lowest, highest = keyed
    D, c = layer.dimension, model.config
    mine = slice(place * len(keys), (place + 1) * len(keys))
    model.W_Q[mine, 1 : D + 3, :2] = 1.0
    model.W_Q[mine, 1 + outputs.tokens[place], 1] = 0.0
    scale = 2.0  # undoes 1/√4
    model.W_K[mine, : D + 2, 0] = scale * keys
    model.W_K[mine, D + 2, 0] = scale * (lowest - MASKED)
    model.W_K[mine, D + 2, 1] = scale * (highest - lowest + 2 * MASKED)
    columns = slice(place * outputs.width, (place + 1) * outputs.width)
    values, out = values_of(layer.restricted(columns), layer.reads, c.d_v, constant=True)
    model.W_V[mine, : D + 2] = values
    model.W_O[mine.start * c.d_v : mine.stop * c.d_v, : outputs.width] = out.flatten(0, 1)


def _write_selection(model: SingleLayerTransformer, layer: GateLayer, outputs: Outputs, at: int, B: float) -> None:
    """Layout "wide": u_q = relu(z_q + 2B·code_q − B), y = Σ_q u_q − B, for |z_q| ≤ B; the bias is added to z_q."""
    width = outputs.width
    y = at + layer.outputs
    for place, token in enumerate(outputs.tokens):
        for o in range(width):
            unit = place * width + o
            model.W_1[at + unit, unit] = 1.0
            model.W_1[1 + token, unit] = 2 * B
            model.b_1[unit] = layer.bias[unit] - B
            model.W_2[unit, y + o] = 1.0
    model.b_2[y : y + width] = -B
    model.W_R[y : y + width] = torch.eye(width, dtype=torch.float64)
