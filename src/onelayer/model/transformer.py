"""SingleLayerTransformer: the paper's model as an ordinary nn.Module.

One block in the paper's sense (Section III): an embedding with positional codes, ONE multi-head self-attention layer,
Eq. (5)–(8), a position-wise feed-forward network, optional residuals and LayerNorm, and a linear read-out. Vectors are
rows, as in the paper: q_i = x_i W^Q. The module knows nothing of where its weights come from: built, trained or loaded.

Shapes: token = data tokens and special tokens, row = the tokens that are read out, place = output vectors.
"""

import hashlib
import math
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..common.errors import InputError
from . import program
from .config import LayerConfig
from .masking import hidden_tokens, of_length, require_padding
from .on_tensors import OnTensors


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
        """T(x), by the steps of `program.answer`."""
        self._require_input(x)
        return self._blank(program.answer(OnTensors(self, x, self._hidden(x, padding), padding)), padding)

    def embed(self, x: Float[Tensor, "batch data feature"]) -> Float[Tensor, "batch data model"]:
        """The data tokens, x̂_j W^E + b^E + p_j."""
        self._require_input(x)
        return program.embedding(OnTensors(self, x))

    def _require_input(self, x: Tensor) -> None:
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
        return program.block(OnTensors(self, hidden=hidden), e, [e])

    def advance(
        self, e: Float[Tensor, "batch data model"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch data model"]:
        """The block's outputs at all data tokens e, which may be another block's outputs; special tokens stay constant."""
        return program.block(OnTensors(self, hidden=self._hidden(e, padding)), e, _groups(e, self.special))

    def attend(
        self,
        asking: Float[Tensor, "#batch row model"],
        e: Float[Tensor, "batch data model"],
        s: Float[Tensor, "special model"],
        hidden: Bool[Tensor, "#batch #row token"] | None = None,
    ) -> Float[Tensor, "batch row model"]:
        """Multi-head attention, Eq. (8), from the tokens `asking` to e and s.

        The special tokens s are the same for the whole batch. Tokens that are `hidden` from a row have weight 0 there.
        """
        return program.attention(OnTensors(self, hidden=hidden), asking, _groups(e, s))

    def attention(
        self, x: Float[Tensor, "batch data feature"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch head token token"]:
        """The attention weights α_ij of every head, Eq. (5): row i is the query token, column j the key token."""
        a = OnTensors(self, hidden=self._hidden(x, padding, every_row=True))
        e = program.seen(a, self.tokens(x))
        return a.weights(a.project(e, "Q"), [a.project(e, "K")])

    def _hidden(self, x: Tensor, padding: Tensor | None, every_row: bool = False) -> Tensor | None:
        if padding is not None:
            require_padding(self.config, padding, x.shape[:2])
        return hidden_tokens(self.config, x.shape[1], padding, x.device, every_row)

    def feed_forward(self, h: Float[Tensor, "batch row model"]) -> Float[Tensor, "batch row model"]:
        """Two layers of the form of Eq. (1), the second linear, the same at every position."""
        return OnTensors(self).feed_forward(h)

    def read(
        self, h: Float[Tensor, "batch row model"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch place out"]:
        """Linear read-out of every row, or of the mean of those that hold a token."""
        return self._blank(program.read(OnTensors(self, padding=padding), h), padding)

    def _blank(self, y: Tensor, padding: Tensor | None) -> Tensor:
        """Answers, 0 at positions without a token."""
        return y if padding is None or self.config.readout != "position" else y.masked_fill(padding[..., None], 0.0)

    def _project(self, x: Float[Tensor, "*batch token model"], which: str) -> Float[Tensor, "*batch head token width"]:
        """q_i = x_i W^Q, k_i = x_i W^K or v_i = x_i W^V, for every head."""
        projected = torch.einsum("...tm,hmw->...htw", x, getattr(self, f"W_{which}"))
        return projected + getattr(self, f"b_{which}").unsqueeze(1) if self.config.projection_bias else projected

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


def _groups(e: Tensor, s: Tensor) -> list[Tensor]:
    """Data tokens, and special tokens if there are any."""
    return [e, s] if len(s) else [e]


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
