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

from dataclasses import replace

import torch
from torch import Tensor

from ...common.errors import InputError
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..heads import EDGE, MASKED
from ..layer import GateLayer
from .frame import Frame, Layout, Outputs, blank, write_hinges, write_identity

X = 0  # the coordinate that holds x_j
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
    layer: GateLayer, frame: Frame, outputs: Outputs, layout: Layout, residual: bool = True
) -> SingleLayerTransformer:
    """The model; without `residual`, in layout "token", the outputs stand in the first coordinates of the stream."""
    D, m = layer.dimension, layer.outputs
    if layout != "token" and len(layer.hinges):
        raise InputError("hinges in the FFN", f"layout={layout!r}", "use layout='token', which leaves the FFN free")
    if layout != "token" and outputs.places > D:
        found = f"{outputs.places} output positions, {D} tokens"
        raise InputError(f"layout={layout!r}, a token for each output", found, "use layout='token'")
    alone = residual and asks_itself(D, outputs, layout)
    reads = [] if alone else layer.reads
    counts = {"units": layer.units, "reads": len(reads), "hinges": len(layer.hinges)}
    anchored = layout == "heads" or not layer.spares_anchor
    config = gate_config(D, outputs, layout, **counts, plain=layer.plain, anchored=anchored, residual=residual)
    d_v, before = config.d_v, _embedded(D, layout, anchored)
    model = blank(config, frame)
    with torch.no_grad():
        model.W_E[0, X] = 1.0
        if layout == "heads":
            model.S[:, 1 + D : before] = torch.eye(2, dtype=torch.float64)
            keyed = _keys(layer, reads, constant=True)
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
        layer = layer if anchored else _relative_to_anchor(layer, speck)
        keys, _, _ = _keys(layer, reads, constant=False, anchor_at=speck)
        values, out = _values(layer, reads, d_v, constant=False)
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


def _relative_to_anchor(layer: GateLayer, speck: float) -> GateLayer:
    """The same function with c_j − c_0 + u·speck on token j instead of c_j, and u·speck, which is not stored, on the anchor."""
    moved = layer.gate_values[:, 0] - speck * layer.gate_values[:, -1]
    values = layer.gate_values.clone()
    values[:, 1:-1] = (values[:, 1:-1] - moved[:, None]).where(layer.gates.kept[..., None], 0.0)
    values[:, 0] = 0.0
    return replace(layer, gate_values=values, bias=layer.bias + moved.sum(dim=0))


def _keys(layer: GateLayer, reads: list[int], constant: bool, anchor_at: float = 0.0) -> tuple[Tensor, Tensor, Tensor]:
    """Keys of all heads over (x, codes, anchor), and bounds on the largest kept score: at least `lowest`, at most `highest`.

    A key's weight on x is shared by all tokens, masked ones included: hence the |β|·EDGE in their offsets. An anchor with
    x = `anchor_at` has the score −β·anchor_at instead of 0, and all others move along.
    """
    D, g, s = layer.dimension, layer.gates, layer.maxima
    heads = layer.units + len(reads) + constant
    keys = torch.zeros(heads, D + 2, dtype=torch.float64)
    lowest, highest = torch.zeros(heads, dtype=torch.float64), torch.zeros(heads, dtype=torch.float64)

    gates = slice(0, len(g))
    keys[gates, X] = -g.sharpness
    masked = -(MASKED + g.sharpness.abs() * (EDGE + anchor_at))[:, None]  # below the anchor's score
    keys[gates, 1 : D + 1] = torch.where(g.kept, g.sharpness[:, None] * (g.offsets - anchor_at), masked)
    reach = g.offsets.where(g.kept, 0.0).abs().amax(dim=1) + EDGE if len(g) else g.sharpness
    highest[gates] = g.sharpness.abs() * reach

    maxima = slice(len(g), layer.units)
    keys[maxima, X] = s.sharpness
    low = (s.offsets * s.sharpness.sign()[:, None]).where(s.kept, -torch.inf).amax(dim=1) if len(s) else s.sharpness
    lowest[maxima] = s.sharpness.abs() * (low - EDGE)
    highest[maxima] = s.sharpness.abs() * (low + EDGE)
    masked = (lowest[maxima] - MASKED - s.sharpness.abs() * EDGE)[:, None]
    keys[maxima, 1 : D + 1] = torch.where(s.kept, s.sharpness[:, None] * s.offsets, masked)
    keys[maxima, D + 1] = masked[:, 0]

    for i, j in enumerate(reads):
        keys[layer.units + i, 1 + j] = highest[layer.units + i] = lowest[layer.units + i] = MASKED
    if constant:
        keys[-1, 1 : D + 1] = -MASKED
    return keys, lowest, highest


def _values(layer: GateLayer, reads: list[int], d_v: int, constant: bool) -> tuple[Tensor, Tensor]:
    """(values over (x, codes, anchor) [head, D + 2, d_v], W^O [head, d_v, outputs]) of all heads.

    A plain gate is worth 1 on the anchor and its row of W^O holds the values. With full values the values stand in W^V:
    for one output W^O is 1, for several a head is as wide as the outputs and W^O is the identity.
    """
    D, m, units = layer.dimension, layer.outputs, layer.units
    heads, n = units + len(reads) + constant, len(layer.gates)
    values = torch.zeros(heads, D + 2, d_v, dtype=torch.float64)
    out = torch.zeros(heads, d_v, m, dtype=torch.float64)
    if d_v == 1 and layer.plain:
        values[:n, D + 1, 0] = 1.0
        out[:n, 0] = layer.gate_values[:, 0]
    else:
        values[:n, D + 1] = layer.gate_values[:, 0]
        values[:n, 1 : D + 1] = layer.gate_values[:, 1 : D + 1]
        values[:n, X] = layer.gate_values[:, D + 1]
        out[:n] = torch.eye(m, dtype=torch.float64)
    values[n:units, X, 0] = 1.0
    values[n:units, 1 : D + 1, 0] = layer.maxima.offsets
    out[n:units, 0] = layer.max_values
    for i, j in enumerate(reads):
        values[units + i, X, 0] = 1.0
        out[units + i, 0] = layer.linear[j]
    if constant:  # attends to the anchor alone
        values[-1, D + 1, 0] = 1.0
        out[-1, 0] = layer.bias
    return values, out


def _write_place(
    model: SingleLayerTransformer,
    layer: GateLayer,
    outputs: Outputs,
    place: int,
    keyed: tuple[Tensor, Tensor, Tensor],
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
    values, out = _values(layer.restricted(columns), layer.reads, c.d_v, constant=True)
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


def bound_of_outputs(layer: GateLayer) -> float:
    """B ≥ |T(x)| on the domain: each head is at most its largest value, a read at most ½, a maximum at most ½ + max|b|."""
    v = layer.gate_values.abs()
    tokens = v[:, 1:-1].amax(dim=1) if layer.dimension else v[:, 0]
    gates = torch.maximum(v[:, 0], tokens + EDGE * v[:, -1]).sum(dim=0)
    reach = layer.maxima.offsets.abs().amax(dim=1, keepdim=True) + EDGE if len(layer.maxima) else layer.max_values
    maxima = (reach * layer.max_values.abs()).sum(dim=0)
    total = layer.bias.abs() + EDGE * layer.linear.abs().sum(dim=0) + gates + maxima
    return 1.01 * float(total.max()) + 1e-300
