"""The stored numbers that the answers of a model are linear in: its values, wherever they stand.

With fixed scores T is linear in the values, in the read-out's weights on x, in the bias and in what hidden units write, all
together as long as every path from a token to an output meets one of them:

    W_O   of heads whose rows of W_O hold numbers other than 0 and powers of two (plain gates, maxima, ridges, reads),
    W_V   of other heads whose W_V holds such numbers (gates),
    S     the coordinates of special tokens that such heads' values come from, and no score (memory tokens),
    W_R   on the coordinates that keep x; b_R; W_2 of hidden units that see x alone.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from ..model.transformer import SingleLayerTransformer

AT_ONCE = 2**22  # scores held at a time


@dataclass(frozen=True)
class ValueEntries:
    """Entries of one tensor, by their place in it, and the output that each contributes to."""

    name: str
    at: Tensor  # [entry], into the flattened tensor
    output: Tensor  # [entry]


def value_entries(model: SingleLayerTransformer) -> list[ValueEntries] | None:
    """The values of a model that reads one row; None for another kind of model, or a value that reaches several outputs."""
    c = model.config
    plain = c.attention == "softmax" and c.norm == "none" and c.residual and not c.projection_bias
    if not plain or len(range(*c.read_rows.indices(c.all_tokens))) != 1 or c.readout == "mean":
        return None
    w = {name: t.detach().double() for name, t in model.state_dict().items()}
    W_O = w["W_O"].reshape(c.heads, c.d_v, c.d_model)
    written = W_O.ne(0).any(dim=(0, 1)) | w["W_2"].ne(0).any(dim=0)
    if w["W_1"][written].any():
        return None  # a network behind the heads
    in_O = _general(W_O).any(dim=(1, 2))
    in_V = _general(w["W_V"]).any(dim=(1, 2)) & ~in_O
    B = W_O @ w["W_R"]  # [head, value, out]
    found = []
    picked = W_O.ne(0) & in_O[:, None, None]
    if picked.any():
        found.append(_entries("W_O", picked.flatten(0, 1), w["W_R"].ne(0).expand(c.heads * c.d_v, -1, -1)))
    picked = w["W_V"].ne(0) & in_V[:, None, None]
    if picked.any():
        found.append(_entries("W_V", picked, B.ne(0)[:, None].expand(-1, c.d_model, -1, -1)))
    read = w["W_V"].ne(0).any(dim=2) & ~(in_O | in_V)[:, None]  # [head, model]
    scored = (w["W_Q"].ne(0) | w["W_K"].ne(0)).any(dim=(0, 2))
    lanes = read.any(dim=0) & ~scored
    if c.special_tokens and lanes.any():
        reached = torch.einsum("hmv,hvo->mo", w["W_V"].abs() * read[..., None], B.abs()).ne(0)
        found.append(_entries("S", w["S"].ne(0) & lanes, reached.expand(c.special_tokens, -1, -1)))
    kept = w["W_E"].ne(0).any(dim=0) & ~written
    found.append(_entries("W_R", w["W_R"].ne(0) & kept[:, None], _own_output(w["W_R"])))
    found.append(_entries("b_R", torch.ones_like(w["b_R"], dtype=torch.bool), _own_output(w["b_R"])))
    found.append(_entries("W_2", w["W_2"].ne(0), w["W_R"].ne(0).expand(c.ffn_width, -1, -1)))
    return None if any(entries is None for entries in found) else [e for e in found if e is not None and len(e.at)]


def features(model: SingleLayerTransformer, x: Tensor, entries: list[ValueEntries]) -> list[Tensor]:
    """∂T/∂entry at points x [batch, D] for the entries of each tensor, [batch, entry], in the dtype of the model."""
    c = model.config
    rows = max(1, AT_ONCE // (c.heads * c.all_tokens * max(c.d_k, 1)))
    parts = [_features(model, part, entries) for part in x.split(rows)]
    return [torch.cat([part[i] for part in parts]) for i in range(len(entries))]


def _features(model: SingleLayerTransformer, x: Tensor, entries: list[ValueEntries]) -> list[Tensor]:
    c = model.config
    with torch.no_grad():
        tokens = model.tokens(x.reshape(len(x), c.tokens, c.features_in))
        asking = tokens[:, c.read_rows.start]
        q = torch.einsum("bm,hmw->bhw", asking, model.W_Q)
        k = torch.einsum("btm,hmw->bhtw", tokens, model.W_K)
        alpha = torch.softmax(torch.einsum("bhw,bhtw->bht", q, k) / c.d_k**0.5, dim=-1)
        averaged = torch.einsum("bht,btm->bhm", alpha, tokens)  # of the whole stream, before W_V
        W_O = model.W_O.reshape(c.heads, c.d_v, c.d_model)
        B = W_O @ model.W_R
        hidden = torch.relu(asking @ model.W_1 + model.b_1)
        z = torch.einsum("bhm,hmv->bhv", averaged, model.W_V).flatten(1)
        found = []
        for e in entries:
            shape = getattr(model, e.name).shape
            at = torch.unravel_index(e.at, shape)
            match e.name:
                case "W_O":
                    phi = z[:, at[0]] * model.W_R[at[1], e.output]
                case "W_V":
                    phi = averaged[:, at[0], at[1]] * B[at[0], at[2], e.output]
                case "S":
                    C = torch.einsum("hmv,hvo->hmo", model.W_V, B)[:, at[1], e.output]  # [head, entry]
                    phi = (alpha[:, :, c.tokens + at[0]] * C).sum(dim=1)
                case "W_R":
                    phi = asking[:, at[0]]
                case "b_R":
                    phi = torch.ones_like(asking[:, :1]).expand(-1, len(e.at))
                case _:  # W_2
                    phi = hidden[:, at[0]] * model.W_R[at[1], e.output]
            found.append(phi)
        return found


def _entries(name: str, picked: Tensor, reached: Tensor) -> ValueEntries | None:
    """The picked entries, each with the one output of `reached` [*entry, out]; None if one reaches several or none."""
    at, to = picked.flatten().nonzero().flatten(), reached[picked]
    if len(at) and bool((to.sum(dim=-1) != 1).any()):
        return None
    return ValueEntries(name, at, to.to(torch.int64).argmax(dim=-1))


def _own_output(t: Tensor) -> Tensor:
    """Which output an entry of the read-out belongs to: its column."""
    return torch.eye(t.shape[-1], dtype=torch.bool).expand(*t.shape, -1)


def _general(t: Tensor) -> Tensor:
    """Which numbers are neither 0 nor a power of two."""
    return t.ne(0) & torch.frexp(t)[0].abs().ne(0.5)
