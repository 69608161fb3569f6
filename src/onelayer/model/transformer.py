"""SingleLayerTransformer: the paper's model as an ordinary nn.Module.

One block in the paper's sense (Section III): an embedding with positional codes, ONE multi-head self-attention layer,
Eq. (5)–(8), a position-wise feed-forward network, optional residuals and LayerNorm, and a linear read-out. Vectors are
rows, as in the paper: q_i = x_i W^Q. The module knows nothing of where its weights come from: built, trained or loaded.

Shapes: token = data tokens and special tokens, row = the tokens that are read out, place = output vectors.
"""

import hashlib
import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..common.errors import InputError
from .attention_weights import attention_weights, linear_features
from .config import LayerConfig
from .masking import hidden_tokens, of_length, require_padding

ACTIVATION: dict[str, Callable[[Tensor], Tensor]] = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


class SingleLayerTransformer(nn.Module):
    """T : R^(n×d) → R^(places×d_out), batched: [batch, n, d] → [batch, places, d_out].

    With `any_length` in the configuration n may be anything from 1 to `tokens`, and sequences of different length share a batch
    if `padding` says which positions hold no token, as `key_padding_mask` does in torch. Nothing attends to those; with
    readout="position" the answers there are 0.

    Fresh weights are drawn from a generator of their own (`seed`); torch's global random state is not touched.
    """

    shift: Tensor
    scale: Tensor
    P: Tensor

    def __init__(self, config: LayerConfig, *, seed: int = 0, dtype: torch.dtype = torch.float64) -> None:
        super().__init__()
        if not isinstance(config, LayerConfig):
            raise InputError("a LayerConfig", type(config).__name__, "build one: LayerConfig(tokens=…, heads=…, …)")
        if dtype not in (torch.float64, torch.float32):
            raise InputError("dtype torch.float64 or torch.float32", f"{dtype}", "choose one of the two")
        self.config = c = config
        draw = _Draw(seed, dtype)
        # embedding: a fixed affine normalisation x̂ = (x − shift)·scale, then W^E, plus the code p_j of the position
        self.register_buffer("shift", torch.zeros(c.tokens, c.features_in, dtype=dtype))
        self.register_buffer("scale", torch.ones(c.tokens, c.features_in, dtype=dtype))
        self.W_E = draw(c.features_in, c.d_model)
        self.b_E = draw.zeros(c.d_model)
        if c.code == "learned":
            self.P = draw(c.tokens, c.d_model)
        elif c.code != "none":
            self.register_buffer("P", fixed_code(c).to(dtype))
        if c.special_tokens:
            self.S = draw(c.special_tokens, c.d_model)
        # attention: one W^Q, W^K, W^V per head, one W^O for all
        self.W_Q = draw(c.heads, c.d_model, c.d_k)
        self.W_K = draw(c.heads, c.d_model, c.d_k)
        self.W_V = draw(c.heads, c.d_model, c.d_v)
        self.W_O = draw(c.heads * c.d_v, c.d_model)
        if c.projection_bias:
            self.b_Q = draw.zeros(c.heads, c.d_k)
            self.b_K = draw.zeros(c.heads, c.d_k)
            self.b_V = draw.zeros(c.heads, c.d_v)
            self.b_O = draw.zeros(c.d_model)
        # feed-forward network
        self.W_1, self.b_1 = draw(c.d_model, c.ffn_width), draw.zeros(c.ffn_width)
        self.W_2, self.b_2 = draw(c.ffn_width, c.d_model), draw.zeros(c.d_model)
        if c.norm != "none":
            self.gain_1, self.offset_1 = draw.ones(c.d_model), draw.zeros(c.d_model)
            self.gain_2, self.offset_2 = draw.ones(c.d_model), draw.zeros(c.d_model)
        # linear read-out, after any LayerNorm
        self.W_R, self.b_R = draw(c.d_model, c.features_out), draw.zeros(c.features_out)

    @classmethod
    def from_torch(
        cls, layer: nn.TransformerEncoderLayer, tokens: int, *, any_length: bool = False, causal: bool = False
    ) -> "SingleLayerTransformer":
        """The stock encoder layer as a single-layer Transformer on sequences of `tokens` vectors, or of any length up to that.

        Embedding and read-out are the identity and there are no positional codes, so that T(x) equals layer(x) up to
        rounding, for x of shape [batch, tokens, d_model] and a layer with batch_first=True. A stock layer without biases
        becomes one with zero biases.
        """
        from .stock import transformer_of

        return transformer_of(layer, tokens, any_length=any_length, causal=causal)

    def forward(
        self, x: Float[Tensor, "batch data feature"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch place out"]:
        """T(x). Only the tokens that are read out ask queries: the others cannot influence the answer."""
        e, s = self.embed(x), self.special
        hidden = self._hidden(x, padding)
        asking = s[-self.config.output_tokens :].unsqueeze(0) if self.config.readout == "output" else e
        return self.read(self._sublayers(asking, e, s, hidden), padding)

    def embed(self, x: Float[Tensor, "batch data feature"]) -> Float[Tensor, "batch data model"]:
        """The data tokens, x̂_j W^E + b^E + p_j."""
        c = self.config
        if not isinstance(x, Tensor):
            change = f"convert with torch.as_tensor(x, dtype={self.W_E.dtype})"
            raise InputError("a torch tensor as input", type(x).__name__, change)
        fits = x.ndim == 3 and x.shape[2] == c.features_in
        if not fits or not (1 <= x.shape[1] <= c.tokens if c.any_length else x.shape[1] == c.tokens):
            length = f"n ≤ {c.tokens}" if c.any_length else c.tokens
            raise InputError(
                f"input of shape [batch, {length}, {c.features_in}] (tokens, features)",
                f"shape {list(x.shape)}",
                f"reshape to [batch, {length}, {c.features_in}], or change tokens and features_in",
            )
        if x.dtype != self.W_E.dtype:
            dtype = self.W_E.dtype
            raise InputError(f"input of dtype {dtype}", f"dtype {x.dtype}", f"convert with x.to({dtype})")
        n = x.shape[1]
        e = (x - self.shift[:n]) * self.scale[:n] @ self.W_E + self.b_E
        return e if c.code == "none" else e + self.P[:n]

    def at_length(self, n: int) -> "SingleLayerTransformer":
        """The same layer for sequences of exactly n tokens."""
        return of_length(self, n)

    @property
    def special(self) -> Float[Tensor, "special model"]:
        """The constant tokens: anchor, memory, output."""
        return self.S if self.config.special_tokens else self.W_E.new_zeros(0, self.config.d_model)

    def tokens(self, x: Float[Tensor, "batch data feature"]) -> Float[Tensor, "batch token model"]:
        """The whole sequence that attention sees: data tokens, then special tokens."""
        return torch.cat([self.embed(x), self.special.expand(x.shape[0], -1, -1)], dim=1)

    def block(self, e: Float[Tensor, "batch token model"]) -> Float[Tensor, "batch token model"]:
        """Attention and feed-forward sublayers with every given token, data and special, as query, key and value."""
        hidden = hidden_tokens(self.config, e.shape[1] - self.config.special_tokens, None, e.device, every_row=True)
        return self._sublayers(e, e, e.new_zeros(0, e.shape[-1]), hidden)

    def advance(
        self, e: Float[Tensor, "batch data model"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch data model"]:
        """The block's outputs at all data tokens e, which may be another block's outputs; special tokens stay constant."""
        return self._sublayers(e, e, self.special, self._hidden(e, padding))

    def _sublayers(
        self,
        asking: Float[Tensor, "#batch row model"],
        e: Float[Tensor, "batch data model"],
        s: Float[Tensor, "special model"],
        hidden: Bool[Tensor, "#batch #row token"] | None = None,
    ) -> Float[Tensor, "batch row model"]:
        """The block's outputs at the tokens `asking`, which attend to e and s; residuals and LayerNorm as configured."""
        pre, post = self.config.norm == "pre", self.config.norm == "post"
        seen = [self._norm_1(t) if pre else t for t in (asking, e, s)]
        a = self._drop(self.attend(seen[0], seen[1], seen[2], hidden))
        h = asking + a if self.config.residual else a
        h = self._norm_1(h) if post else h
        f = self._drop(self.feed_forward(self._norm_2(h) if pre else h))
        y = h + f if self.config.residual else f
        return self._norm_2(y) if post else y

    def attend(
        self,
        asking: Float[Tensor, "#batch row model"],
        e: Float[Tensor, "batch data model"],
        s: Float[Tensor, "special model"],
        hidden: Bool[Tensor, "#batch #row token"] | None = None,
    ) -> Float[Tensor, "batch row model"]:
        """Multi-head attention, MHA(X) = Concat(Z_1, …, Z_h) W^O, Eq. (8), from the tokens `asking` to e and s.

        The special tokens s are the same for the whole batch: their keys and values are computed once. Tokens that are
        `hidden` from a row have weight 0 there.
        """
        q, v, v_s = self._project(asking, "Q"), self._project(e, "V"), self._project(s, "V")
        k, k_s = self._project(e, "K"), self._project(s, "K")
        if self.config.attention == "fused":
            z = self._fused(q, (k, k_s), (v, v_s), hidden)
        else:
            alpha = self._drop(self._weights(q, k, k_s, hidden))
            on_data, on_special = alpha.split([e.shape[1], len(s)], dim=-1)
            z = _mix(on_data, v) + torch.einsum("bhrs,hsw->bhrw", on_special, v_s)  # Eq. (6): Σ_j α_ij v_j; Eq. (7)
        concat = z.transpose(1, 2).flatten(2)  # [batch, row, head·d_v]
        a = concat @ self.W_O  # Eq. (8)
        return a + self.b_O if self.config.projection_bias else a

    def attention(
        self, x: Float[Tensor, "batch data feature"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch head token token"]:
        """The attention weights α_ij of every head, Eq. (5): row i is the query token, column j the key token."""
        e, hidden = self.tokens(x), self._hidden(x, padding, every_row=True)
        e = self._norm_1(e) if self.config.norm == "pre" else e
        return self._weights(self._project(e, "Q"), self._project(e, "K"), self.W_K.new_zeros(0), hidden)

    def _hidden(self, x: Tensor, padding: Tensor | None, every_row: bool = False) -> Tensor | None:
        if padding is not None:
            require_padding(self.config, padding, x.shape[:2])
        return hidden_tokens(self.config, x.shape[1], padding, x.device, every_row)

    def _weights(
        self,
        q: Float[Tensor, "#batch head row width"],
        k: Float[Tensor, "batch head data width"],
        k_s: Tensor,
        hidden: Tensor | None = None,
    ) -> Float[Tensor, "batch head row token"]:
        """α_ij, Eq. (5) or what `attention` puts in its place, over data tokens and then special tokens."""
        linear = self.config.attention == "linear"
        if linear:
            q, k, k_s = (linear_features(t) for t in (q, k, k_s))
        scores = _inner(q, k)
        if len(k_s):
            on_special = q * k_s.mT if q.shape[-1] == 1 else torch.einsum("bhrw,hsw->bhrs", q, k_s)
            scores = torch.cat([scores, on_special.expand(scores.shape[0], -1, -1, -1)], dim=-1)
        return attention_weights(
            scores if linear else scores / math.sqrt(self.config.d_k), self.config.attention, hidden
        )

    def _fused(
        self, q: Tensor, keys: tuple[Tensor, Tensor], values: tuple[Tensor, Tensor], hidden: Tensor | None
    ) -> Tensor:
        """Eq. (7) in one kernel of torch. Queries are divided by √d_k before: kernels round what they do with the scale."""
        batch = keys[0].shape[0]
        k, v = (torch.cat([t, t_s.expand(batch, -1, -1, -1)], dim=2) for t, t_s in (keys, values))
        p = self.config.dropout if self.training else 0.0
        seen = None if hidden is None else ~hidden.unsqueeze(1)
        q = (q / math.sqrt(self.config.d_k)).expand(batch, -1, -1, -1)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen, dropout_p=p, scale=1.0)

    def feed_forward(self, h: Float[Tensor, "batch row model"]) -> Float[Tensor, "batch row model"]:
        """Two layers of the form of Eq. (1), the second linear, the same at every position."""
        hidden = ACTIVATION[self.config.activation](h @ self.W_1 + self.b_1)
        return self._drop(hidden) @ self.W_2 + self.b_2

    def read(
        self, h: Float[Tensor, "batch row model"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch place out"]:
        """Linear read-out of every row, or of the mean of those that hold a token."""
        empty = None if padding is None or self.config.readout == "output" else padding[..., None]
        if self.config.readout == "mean" and empty is not None:
            h = h.masked_fill(empty, 0.0).sum(dim=1, keepdim=True) / (~empty).sum(dim=1, keepdim=True).clamp_min(1)
        elif self.config.readout == "mean":
            h = h.mean(dim=1, keepdim=True)
        y = h @ self.W_R + self.b_R
        return y.masked_fill(empty, 0.0) if self.config.readout == "position" and empty is not None else y

    def _project(self, x: Float[Tensor, "*batch token model"], which: str) -> Float[Tensor, "*batch head token width"]:
        """q_i = x_i W^Q, k_i = x_i W^K or v_i = x_i W^V, for every head."""
        projected = torch.einsum("...tm,hmw->...htw", x, getattr(self, f"W_{which}"))
        return projected + getattr(self, f"b_{which}").unsqueeze(1) if self.config.projection_bias else projected

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.config.dropout, training=self.training) if self.config.dropout else x

    def _norm_1(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (self.config.d_model,), self.gain_1, self.offset_1, self.config.norm_eps)

    def _norm_2(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, (self.config.d_model,), self.gain_2, self.offset_2, self.config.norm_eps)

    def extra_repr(self) -> str:
        c = self.config
        other = "" if c.attention in ("softmax", "fused") else f" of {c.attention} attention"
        return (
            f"[batch, {c.tokens}, {c.features_in}] → [batch, {c.places}, {c.features_out}], {c.heads} heads"
            f"{other} (d_k={c.d_k}, d_v={c.d_v}), d_model={c.d_model}, ffn_width={c.ffn_width}, {self.parameter_count} numbers"
        )

    def fingerprint(self) -> str:
        """SHA-256 over names, dtypes, shapes and bytes of all stored tensors."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.state_dict().items()):
            t = tensor.detach().cpu().contiguous()
            digest.update(f"{name} {t.dtype} {list(t.shape)}".encode())
            digest.update(t.flatten().view(torch.uint8).numpy().tobytes())  # NumPy has no bfloat16
        return digest.hexdigest()

    @property
    def parameter_count(self) -> int:
        """Numbers stored by the module: weights, embedding, codes, special tokens, zeros and all."""
        return sum(t.numel() for t in self.state_dict().values())


def _inner(q: Tensor, k: Tensor) -> Tensor:
    """All inner products q_i·k_j. Width one is a plain product: no swarm of 1×1 matrix products for many narrow heads."""
    return q * k.mT if q.shape[-1] == 1 else q @ k.mT


def _mix(alpha: Tensor, v: Tensor) -> Tensor:
    """Σ_j α_ij v_j; few tokens and narrow values are summed without a matrix product per head."""
    if alpha.shape[-1] * v.shape[-1] <= 16:
        return (alpha.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)
    return alpha @ v


def fixed_code(config: LayerConfig) -> Float[Tensor, "data model"]:
    """The fixed positional codes p_j: one-hot in the coordinates behind the features, or sinusoidal.

    Sinusoidal: p_(j,2i) = sin(j/10000^(2i/d_model)), p_(j,2i+1) = cos of the same.
    """
    n, m = config.tokens, config.d_model
    code = torch.zeros(n, m, dtype=torch.float64)
    if config.code == "one-hot":
        code[:, config.features_in : config.features_in + n] = torch.eye(n, dtype=torch.float64)
    else:
        position = torch.arange(n, dtype=torch.float64).unsqueeze(1)
        pair = torch.arange(m, dtype=torch.float64) // 2
        angle = position / 10000 ** (2 * pair / m)
        code[:, 0::2], code[:, 1::2] = angle[:, 0::2].sin(), angle[:, 1::2].cos()
    return code


class _Draw:
    """Fresh parameters: uniform in ±√(6/(fan_in + fan_out)) (Glorot), from a generator of their own."""

    def __init__(self, seed: int, dtype: torch.dtype) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.options: dict[str, Any] = {"dtype": dtype}

    def __call__(self, *shape: int) -> nn.Parameter:
        reach = math.sqrt(6 / (shape[-2] + shape[-1]))
        return nn.Parameter((2 * torch.rand(shape, generator=self.generator, **self.options) - 1) * reach)

    def zeros(self, *shape: int) -> nn.Parameter:
        return nn.Parameter(torch.zeros(shape, **self.options))

    def ones(self, *shape: int) -> nn.Parameter:
        return nn.Parameter(torch.ones(shape, **self.options))
