"""LayerConfig: the shape of a single-layer Transformer, checked once, free of torch.

The symbols are the paper's: n tokens of d features, h heads with their own W^Q, W^K, W^V, one W^O, one feed-forward
network. Tokens stand in the order

    data tokens (n) | anchor tokens | memory tokens | output tokens

and only data tokens carry input; the special tokens are constant vectors, part of the weights. A layer for any length takes
1 … n data tokens: positions are counted from the first, and what is stored for a later one is not used.
"""

import operator
from dataclasses import dataclass, fields
from numbers import Real
from typing import Any, Literal, get_args, get_origin

from ..common.errors import InputError

Activation = Literal["relu", "gelu", "silu"]
Code = Literal["one-hot", "sinusoidal", "learned", "none"]
Norm = Literal["none", "pre", "post"]
Readout = Literal["position", "output", "mean"]
Attention = Literal["softmax", "fused", "sigmoid", "linear", "sparsemax", "local"]

_AT_LEAST = {  # smallest allowed value of every whole-number field
    "tokens": 1,
    "features_in": 1,
    "features_out": 1,
    "d_model": 1,
    "heads": 1,
    "d_k": 1,
    "d_v": 1,
    "ffn_width": 1,
    "anchor_tokens": 0,
    "memory_tokens": 0,
    "output_tokens": 0,
    "window": 0,
}


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """Everything about a `SingleLayerTransformer` except its weights.

    d_k and d_v are the widths of one head and need not be d_model/heads. `code="none"` leaves out positional codes: with
    one normalisation for all positions the layer then treats all tokens alike.

    `attention` says what stands in the place of Eq. (5), with the scores s_ij = q_i·k_j/√d_k (`model.attention_weights`):

        softmax     α_ij = exp(s_ij)/Σ_l exp(s_il), Eq. (5)
        fused       the same function as softmax, Eq. (5)–(7) in one kernel of torch: other rounding, which is bounded for
                    CPUs (`layer.rounding.online_softmax`)
        sigmoid     α_ij = 1/(1 + exp(−s_ij)): nothing is normalised. There is no bias −log n; the keys can hold one
        linear      α_ij = φ(q_i)·φ(k_j)/Σ_l φ(q_i)·φ(k_l), φ(t) = elu(t) + 1 of every coordinate; no factor 1/√d_k
        sparsemax   the point of the simplex closest to the scores: α_ij = max(s_ij − τ_i, 0) with Σ_j α_ij = 1
        local       softmax over the data tokens with |i − j| ≤ `window` and all special tokens; output tokens see all

    `any_length` makes `tokens` the largest length instead of the only one. In a `causal` layer position i attends to the
    positions up to i, and to the special tokens.
    """

    tokens: int
    features_in: int
    features_out: int
    d_model: int
    heads: int
    d_k: int
    d_v: int
    ffn_width: int
    activation: Activation = "relu"
    dropout: float = 0.0
    code: Code = "one-hot"
    anchor_tokens: int = 0
    memory_tokens: int = 0
    output_tokens: int = 0
    residual: bool = True
    norm: Norm = "none"
    norm_eps: float = 1e-5
    readout: Readout = "position"
    projection_bias: bool = False
    attention: Attention = "softmax"
    window: int = 0
    any_length: bool = False
    causal: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if get_origin(field.type) is Literal:
                self._require_choice(field.name, value, get_args(field.type))
            elif field.type is bool:
                self._require_choice(field.name, value, (False, True))
        for name, least in _AT_LEAST.items():
            value = getattr(self, name)
            if hasattr(value, "__index__") and not isinstance(value, bool):
                value = operator.index(value)  # NumPy's integers are welcome
                object.__setattr__(self, name, value)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise InputError(
                    f"{name}, a whole number of at least {least}", f"{name}={value!r}", f"set {name}={least} or more"
                )
        self._require_range("dropout", 0.0, 1.0)
        self._require_range("norm_eps", 1e-300, float("inf"))
        if self.code == "one-hot" and self.d_model < self.features_in + self.tokens:
            raise InputError(
                "one-hot positional codes beside the features, which need d_model ≥ features_in + tokens"
                f" = {self.features_in + self.tokens}",
                f"d_model={self.d_model}",
                f"set d_model={self.features_in + self.tokens} or more, or another code",
            )
        if self.readout == "output" and self.output_tokens == 0:
            raise InputError("readout='output'", "output_tokens=0", "set output_tokens=1 or more, or another readout")
        if self.window and self.attention != "local":
            found = f"window={self.window} with attention={self.attention!r}"
            raise InputError("a window for attention='local' alone", found, "set window=0, or attention='local'")
        if self.causal and self.readout == "output":
            raise InputError(
                "causal=True, positions that look back", "readout='output'", "choose readout='position' or 'mean'"
            )

    def _require_choice(self, name: str, value: object, choices: tuple[object, ...]) -> None:
        if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
            listed = ", ".join(map(repr, choices))
            raise InputError(f"{name}, one of {listed}", f"{name}={value!r}", f"choose one of {listed}")

    def _require_range(self, name: str, low: float, high: float) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, Real) or not low <= float(value) < high:
            raise InputError(
                f"{name}, a number in [{low:g}, {high:g})", f"{name}={value!r}", f"set {name} in that range"
            )

    @property
    def special_tokens(self) -> int:
        return self.anchor_tokens + self.memory_tokens + self.output_tokens

    @property
    def all_tokens(self) -> int:
        """Length of the sequence that attention sees."""
        return self.tokens + self.special_tokens

    @property
    def read_rows(self) -> slice:
        """The tokens whose outputs are read: the output tokens, or else the data tokens."""
        if self.readout == "output":
            return slice(self.all_tokens - self.output_tokens, self.all_tokens)
        return slice(0, self.tokens)

    @property
    def places(self) -> int:
        """Number of output vectors: one per position, one per output token, or one mean."""
        return {"position": self.tokens, "output": self.output_tokens, "mean": 1}[self.readout]

    def seen_by(self, row: int) -> list[int]:
        """The tokens that a row which is read out attends to, in a sequence of the largest length."""
        every = self.readout == "output"
        data = [position for position in range(self.tokens) if every or not self.hides(row, position)]
        return [*data, *range(self.tokens, self.all_tokens)]

    def hides(self, row: Any, position: Any) -> Any:
        """Whether the row of a data token does not see a position: later in a causal layer, or outside its window.

        For whole numbers, or arrays of them.
        """
        hidden = (position > row) & self.causal
        return hidden | (abs(position - row) > self.window) if self.attention == "local" else hidden

    @property
    def hides_tokens(self) -> bool:
        """Whether rows differ in the tokens that they see."""
        return self.causal or self.attention == "local"

    def require_one_length(self) -> None:
        """Refuse a layer for any length where one function of tokens·features_in numbers is meant."""
        if self.any_length:
            raise InputError("a layer for one length", "any_length=True", f"take model.at_length(n), n ≤ {self.tokens}")

    def require_unmasked(self, asked: str) -> None:
        """Refuse what is only known for layers of one length in which every token sees all: `asked` says what."""
        present = {"any_length": self.any_length, "causal": self.causal, "a window": self.attention == "local"}
        if any(present.values()):
            found = " and ".join(name for name, there in present.items() if there)
            raise InputError(
                f"{asked} of a layer of one length without masks",
                f"{found} in its configuration",
                "choose another layer",
            )

    def require_softmax(self, asked: str) -> None:
        """Refuse what is only known for softmax attention, Eq. (5): `asked` says what."""
        if self.attention not in ("softmax", "fused"):
            found = f"one with {self.attention} attention"
            raise InputError(f"{asked} of a layer with softmax attention", found, "choose another layer")

    @property
    def parameter_count(self) -> int:
        """Numbers that a model of this shape stores: weights, embedding, codes, special tokens, normalisation."""
        m, h, d = self.d_model, self.heads, self.features_in
        embedding = 2 * self.tokens * d + d * m + m + self.special_tokens * m + (self.code != "none") * self.tokens * m
        attention = h * m * (2 * self.d_k + self.d_v) + h * self.d_v * m
        biases = (h * (2 * self.d_k + self.d_v) + m) if self.projection_bias else 0
        ffn = 2 * m * self.ffn_width + self.ffn_width + m
        norms = 4 * m if self.norm != "none" else 0
        return embedding + attention + biases + ffn + norms + m * self.features_out + self.features_out

    @property
    def operations(self) -> int:
        """Floating-point operations of one evaluation: a multiplication and an addition count as two, an exp as one.

        Every weight α_ij is computed, whatever the attention; sorting t scores counts as t log t.
        """
        m, h, n, t = self.d_model, self.heads, self.tokens, self.all_tokens
        rows = self.read_rows.stop - self.read_rows.start
        embed = 2 * n * self.features_in * (m + 1)
        project = 2 * m * h * (rows * self.d_k + n * (self.d_k + self.d_v))
        weigh = 4 + (self.attention == "sparsemax") * t.bit_length()
        attend = h * rows * t * (2 * self.d_k + weigh + 2 * self.d_v) + 2 * rows * h * self.d_v * m
        return embed + project + attend + rows * 4 * m * self.ffn_width + 2 * rows * m * self.features_out
