"""A layer without LayerNorm, rewritten so that LayerNorm hardly moves it.

Every coordinate z_i of the stream is stored twice, as z_i and −z_i, and two more hold C and −C. The mean is 0, and LayerNorm
with the gain g = √(2C²/n + eps), n = d_model, multiplies everything by

    ρ = g/√(2(C² + |z|²)/n + eps),    1 − |z|²/2C² ≤ ρ ≤ 1    (up to the rounding of g).

Whatever reads the stream reads (z_i − (−z_i))/2. In floating point the computed mean is off by about uC: this moves z_i and −z_i
alike and cancels. So C may be as large as |z|u^(−1/2), where |z|²/2C² is as small as rounding (if only z_i were read, C ≈
|z|u^(−1/3) would be best). A sublayer without a residual writes to coordinates that nothing has written before.

The tokens may be much smaller than what attention adds to them, and too large a C costs digits. So where a LayerNorm stands
before attention, the embedding has a smaller C of its own; the bias b_O of attention, or BERT's LayerNorm itself, makes it C.

`deviation` bounds |T' − T| in exact arithmetic.
"""

import itertools
import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ...common.errors import InputError
from ...common.numbers import at_most
from ...layer.assemble.frame import power_of_4
from ...model.config import LayerConfig, Norm
from .value_bounds import AnySubject, Placement, largest_norm, value_bounds

EPS = 1e-5  # the stock layer's default
MOST_NUMBERS = 2**25  # in the stock layer: 256 MB in float64


@dataclass(frozen=True)
class Doubled:
    """The layer with LayerNorm: shape, weights under the names of `SingleLayerTransformer`, C, and what reads 1 off ±C.

    `entry` is C in the embedding. "gain_0" belongs to BERT's LayerNorm of the embedding.
    """

    config: LayerConfig
    weights: dict[str, Tensor]
    constant: float
    entry: float
    one: Tensor


def doubled(subject: AnySubject, placement: Placement) -> Doubled:
    """The stock-like layer: coordinates (z, −z, C, −C, zeros)."""
    c, dtype = subject.model.config, subject.model.W_E.dtype
    w = {name: t.detach() for name, t in subject.model.state_dict().items()}
    embedded, attended, fed = coordinates(c, w)
    Z = embedded.shape[1]
    width = c.d_k * power_of_4(-(-c.d_v // c.d_k))  # 1/√d_k then changes by a power of two: no rounding
    heads = max(c.heads, -(-(2 * Z + 2) // width))
    n = heads * width
    numbers = 4 * n * n + 2 * n * c.ffn_width
    if numbers > MOST_NUMBERS:
        found = f"{c.heads:,} heads, which make d_model = {n:,} and {numbers:,} numbers"
        raise InputError(f"a stock layer of at most {MOST_NUMBERS:,} numbers", found, "export it as onnx or c")
    s, root = value_bounds(subject), math.sqrt(subject.arithmetic.u)
    size = largest_norm(subject, s, placement)
    C = 2.0 ** math.ceil(math.log2(max(size, 1e-3) / root))
    # a LayerNorm before attention sees the tokens alone; C/2^20 makes C − entry a float
    entry = max(2.0 ** math.ceil(math.log2(max(s.largest_token, 1e-3) / root)), C / 2**20)
    entry = C if placement == "post" else min(entry, C)
    if not n * C * C < subject.arithmetic.overflow:
        asked = f"numbers whose squares {subject.arithmetic.name} holds beside LayerNorm"
        raise InputError(asked, f"numbers up to {at_most(size, 3)}", "export it as onnx or c")
    twice = torch.zeros(Z, n, dtype=dtype)
    twice[:, :Z], twice[:, Z : 2 * Z] = torch.eye(Z), -torch.eye(Z)
    unit = torch.zeros(n, dtype=dtype)
    unit[2 * Z], unit[2 * Z + 1] = 1, -1
    norm: Norm = "pre" if placement in ("pre", "gpt2") else "post"

    def gain(constant: float) -> Tensor:
        return torch.full((n,), math.sqrt(2 * constant * constant / n + EPS), dtype=torch.float64).to(dtype)

    def into(writer: Tensor, coordinates: Tensor) -> Tensor:
        return writer @ coordinates @ twice

    def out_of(reader: Tensor, coordinates: Tensor) -> Tensor:
        return (coordinates @ twice / 2).T @ reader  # (z − (−z))/2

    weights: dict[str, Tensor] = {
        "shift": w["shift"],
        "scale": w["scale"],
        "W_E": into(w["W_E"], embedded),
        "b_E": into(w["b_E"], embedded) + entry * unit,
        "P": into(w.get("P", torch.zeros(c.tokens, c.d_model, dtype=dtype)), embedded),
        "S": into(w.get("S", torch.zeros(0, c.d_model, dtype=dtype)), embedded) + entry * unit,
        **{name: out_of(w[name], embedded) for name in ("W_Q", "W_K", "W_V")},
        **{name: w[name] for name in ("b_Q", "b_K", "b_V", "b_1", "b_R") if name in w},
        "W_O": into(w["W_O"], attended),
        "b_O": into(w.get("b_O", torch.zeros(c.d_model, dtype=dtype)), attended)
        + (C - entry if norm == "pre" else 0.0) * unit,
        "W_1": out_of(w["W_1"], attended),
        "W_2": into(w["W_2"], fed),
        "b_2": into(w["b_2"], fed),
        "W_R": out_of(w["W_R"], fed),
        "gain_0": torch.where(unit != 0, gain(entry) * (C / entry), gain(entry)),
        "gain_1": gain(entry if norm == "pre" else C),
        "gain_2": gain(C),
        **{f"offset_{i}": torch.zeros(n, dtype=dtype) for i in (1, 2)},
    }
    config = replace(c, d_model=n, norm=norm, norm_eps=EPS, residual=True, code="none", dropout=0.0)
    return Doubled(config, weights, C, entry, unit / (2 * C))


def coordinates(c: LayerConfig, w: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Where the embedding, attention and the FFN write, as 0-1 matrices [model, Z] without coordinates that nothing reads."""
    by_attention = torch.stack([(w[f"W_{k}"] != 0).any(dim=2).any(dim=0) for k in "QKV"]).any(dim=0)
    by_ffn, by_readout = (w["W_1"] != 0).any(dim=1), (w["W_R"] != 0).any(dim=1)
    if c.residual:
        eye = _chosen(by_attention | by_ffn | by_readout, w["W_E"].dtype)
        return eye, eye, eye
    parts = [_chosen(used, w["W_E"].dtype) for used in (by_attention, by_ffn, by_readout)]
    ends = [0, *torch.tensor([p.shape[1] for p in parts]).cumsum(0).tolist()]
    pads = [(start, ends[-1] - stop) for start, stop in itertools.pairwise(ends)]
    first, second, third = (torch.nn.functional.pad(p, pad) for p, pad in zip(parts, pads, strict=True))
    return first, second, third


def _chosen(used: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.eye(len(used), dtype=dtype)[:, used]
