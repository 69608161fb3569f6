"""How large the numbers inside a layer can become on its domain: absolute values, and scores with their signs.

All are float64 sums, inflated by far more than their rounding.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...common.outward import UP
from ...model.activations import activation_of
from ...model.config import LayerConfig
from .sequence_subject import SequenceSubject
from .subject import Subject

AnySubject = Subject | SequenceSubject
Placement = Literal["post", "pre", "bert", "gpt2"]  # where LayerNorm stands: BERT has one more before, GPT-2 one behind
WIDE = 1e-6
APART = 60.0  # a score this far below another has a weight of at most e^−60 ≈ 1e-26


@dataclass(frozen=True)
class ValueBounds:
    """Bounds on absolute values over the domain."""

    tokens: Float[Tensor, "token model"]
    attended: Float[Tensor, "row model"]  # even if scores are off by WIDE of their size
    largest_values: Float[Tensor, " model"]  # what attention adds, whatever its weights
    stream: Float[Tensor, "row model"]  # what the FFN sees
    fed: Float[Tensor, "row model"]  # what the FFN adds
    score: float  # of tokens whose weight is not negligible, where there are several
    masked: float  # of all tokens
    lost: float  # the total weight of the other tokens, at most

    @property
    def largest_token(self) -> float:
        """A bound on |e| over all tokens."""
        return math.sqrt(float(self.tokens.square().sum(dim=1).max())) * 1.001


def value_bounds(subject: AnySubject) -> ValueBounds:
    """Absolute values followed through all the steps, for every x̂ of the domain."""
    c = subject.model.config
    w = {name: t.detach().double() for name, t in subject.model.state_dict().items()}
    zero = torch.zeros(1, dtype=torch.float64)
    centre, radius = _data_tokens(subject, w)
    radius = radius + _cancelled(subject, w)
    if c.special_tokens:
        centre, radius = torch.cat([centre, w["S"]]), torch.cat([radius, torch.zeros_like(w["S"])])
    e = (centre.abs() + radius) * UP
    v = torch.einsum("tm,hmw->thw", e, w["W_V"].abs()) + w.get("b_V", zero).abs()
    score, masked, lost, weights = _scores(subject, w, centre, radius)
    largest = (v.amax(dim=0).flatten() @ w["W_O"].abs() + w.get("b_O", zero).abs()) * UP
    mixed = torch.einsum("hrt,thw->rhw", weights, v).flatten(1)
    a = torch.minimum((mixed @ w["W_O"].abs() + w.get("b_O", zero).abs()) * UP, largest)
    stream = (e[c.read_rows] + a if c.residual else a) * UP
    active = activation_of(c).largest(stream @ w["W_1"].abs() + w["b_1"].abs())
    fed = (active @ w["W_2"].abs() + w["b_2"].abs()) * UP
    return ValueBounds(e, a, largest, stream, fed, score, masked, lost)


def _data_tokens(
    subject: AnySubject, w: dict[str, Tensor]
) -> tuple[Float[Tensor, "data model"], Float[Tensor, "data model"]]:
    """Centres and radii of the embedded data tokens: of a box of numbers, or of the vectors of a vocabulary."""
    added = w["b_E"] + w.get("P", torch.zeros(subject.model.config.tokens, 1, dtype=torch.float64))
    if subject.vocabulary is None:
        low, high = subject.reach
        return (low + high) / 2 @ w["W_E"] + added, (high - low) / 2 @ w["W_E"].abs() * UP
    pairs = list(zip(w["shift"], w["scale"], strict=True))
    alike = bool((w["shift"] == w["shift"][0]).all() and (w["scale"] == w["scale"][0]).all())
    vectors = (
        (scale[:, None] * w["W_E"] - (shift * scale) @ w["W_E"]) for shift, scale in pairs[: 1 if alike else None]
    )
    lows, highs = zip(*(torch.aminmax(v, dim=0) for v in vectors), strict=True)
    low, high = torch.stack(lows) + added, torch.stack(highs) + added
    centre = (low + high) / 2
    return centre, torch.maximum(high - centre, centre - low) * UP


def _cancelled(subject: AnySubject, w: dict[str, Tensor]) -> Float[Tensor, " model"]:
    """What float64 may lose where the parts of an embedding cancel: 64 roundings of the sum of their sizes."""
    if subject.vocabulary is None:
        low, high = subject.reach
        x = torch.maximum(low.abs(), high.abs()).amax(dim=0)
    else:
        x = ((1 + w["shift"].abs()) * w["scale"].abs()).amax(dim=0)
    parts = x @ w["W_E"].abs() + w["b_E"].abs() + (w["P"].abs().amax(dim=0) if "P" in w else 0.0)
    return parts * 2.0**-46


def _visible(c: LayerConfig) -> tuple[Bool[Tensor, "row token"], Bool[Tensor, "row token"]]:
    """(which tokens a row that is read can see, which ones it sees in every sequence); padding stands at the end."""
    rows = c.read_rows.stop - c.read_rows.start
    possible = torch.ones(rows, c.all_tokens, dtype=torch.bool)
    if c.causal:
        possible[:, : c.tokens] = possible[:, : c.tokens].tril()
    certain = possible.clone()
    if c.any_length and not c.causal:
        certain[:, : c.tokens] = torch.eye(c.tokens, dtype=torch.bool) if c.readout != "output" else False
    return possible, certain


def _scores(
    subject: AnySubject,
    w: dict[str, Tensor],
    centre: Float[Tensor, "token model"],
    radius: Float[Tensor, "token model"],
) -> tuple[float, float, float, Float[Tensor, "head row token"]]:
    """(|score| of tokens whose weight is not negligible, of all tokens, weight of the others), over all heads and rows read.

    A weight is negligible if the score is far below that of a token which the row sees in every sequence. Bounds on all
    weights follow, even if scores are off by WIDE of their size.

    With biases q = eW + b, a factor of e is no factor of the score: then Σ(|eW| + |b|)_w (|e'W'| + |b'|)_w stands for |score|,
    since eW and b may cancel in q and yet a factor moves eW.
    """
    c = subject.model.config
    zero = torch.zeros(1, dtype=torch.float64)

    def projected(t: slice, which: str) -> tuple[Tensor, Tensor, Tensor]:
        """Centres, radii and |eW| + |b|, [token, head, width]."""
        matrix, bias = w[f"W_{which}"], w.get(f"b_{which}", zero)
        spread = radius[t] + 1e-12 * centre[t].abs()
        plain, off = torch.einsum("tm,hmw->thw", centre[t], matrix), torch.einsum("tm,hmw->thw", spread, matrix.abs())
        off = off + 1e-12 * bias.abs()
        return plain + bias, off, plain.abs() + bias.abs() + off

    (q, q_off, q_size), (k, k_off, k_size) = projected(c.read_rows, "Q"), projected(slice(None), "K")
    root = math.sqrt(c.d_k)
    middle = torch.einsum("rhw,thw->hrt", q, k) / root
    full = torch.einsum("rhw,thw->hrt", q.abs() + q_off, k.abs() + k_off) / root * UP
    off = full - torch.einsum("rhw,thw->hrt", q.abs(), k.abs()) / root + 1e-9 * full
    possible, certain = _visible(c)
    ahead = (middle - off).masked_fill(~certain, -math.inf).amax(dim=-1, keepdim=True)
    kept = possible & (middle + off >= ahead - APART)
    several = kept & (kept.sum(dim=-1, keepdim=True) > 1)  # the only one keeps its weight, however its score moves
    apart = torch.einsum("rhw,thw->hrt", q_size, k_size) / root
    size = (apart if c.projection_bias else middle.abs() + off) * UP
    lost = 0.0 if bool(kept.all()) else c.all_tokens * math.exp(-APART)
    wide = off + WIDE * size
    best = (middle - wide).masked_fill(~certain, -math.inf).amax(dim=-1, keepdim=True)
    weights = (middle + wide - best).clamp_max(0.0).masked_fill(~possible, -math.inf).exp() * UP
    return float(torch.where(several, size, 0.0).max()), float(size.max()), lost, weights


def largest_norm(subject: AnySubject, s: ValueBounds, placement: Placement) -> float:
    """A bound on |z| wherever a LayerNorm reads the stream z."""
    rows = s.tokens[subject.model.config.read_rows]
    stream = rows + s.attended  # at the same coordinates or others: the sum of squares is at most this one's
    most = []
    if placement != "post":
        most += [s.tokens.square().sum(dim=1), stream.square().sum(dim=1)]
    if placement != "pre":
        most.append((stream + s.fed).square().sum(dim=1))
    return math.sqrt(float(torch.cat(most).max())) * 1.001  # a factor ρ may exceed 1 by the rounding of the gain
