"""Recall: the value that was last written under a key, and a sequence in reverse, at every length.

`look_up` is a dictionary: some tokens write a value under a key, others ask for a key, and the head finds the last write.

`reverse` cannot be one head. Attention that picks one token by score keeps its pick when a token is appended, or takes the new
one; the right answer at position i, n − 1 − i, does neither. So there are two heads for every position p, which differ in
what they prefer to p at row i, if it is there: position p + 1 + i, or p + i. Their differences add up to it (`PairedReverse`).
"""

import numpy as np
import torch
from jaxtyping import Float, Int

from ....common.checks import known_options, require_whole
from ....common.numbers import exact
from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import Frame, blank, power_of_4
from ....layer.heads import MASKED
from ....model.config import LayerConfig
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..one_head import one_head
from ..tokens.lookup import Lookup, pass_on
from ..tokens.program import MOST_TOKENS, bits, codes
from ..tokens.weights import average_error, masked_error, rounded_up
from .token_layers import LONGEST, for_all_lengths


@known_options
def look_up(
    longest: int = LONGEST, keys: int = 10, values: int = 10, *, dtype: str = "float64", seed: int = 0
) -> SequenceLayer:
    """At every position, the value that was last written under its key; the number of values if there is none.

    Token k·values + v writes v under key k; token keys·values + k asks for key k.
    """
    program = LookUp(longest, keys, values)
    text = (
        f"the value last written under the key here: k·{values} + v writes, {keys * values} + k asks, {values} is none"
    )
    return for_all_lengths(program, text, dtype, seed)


@known_options
def reverse(longest: int = 16, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """The sequence of tokens in reverse order: two heads for every position."""
    return for_all_lengths(PairedReverse(longest, vocabulary), "the sequence in reverse order", dtype, seed)


class LookUp(Lookup):
    """Score U·(agreement of the keys' codes) + 800·(j + 1) on a token j that writes, U·bits on the anchor, 2U > 800·n.

    Among the writes under the right key the last leads by 800 or more, all of them lead the anchor, and the anchor leads the
    writes under other keys, 2U lower but for their position. Tokens that ask get 2U less, and come below the anchor too.
    """

    name = "look_up"
    decoding = Decoding("largest")
    causal = True

    keys: int
    values: int

    def __init__(self, n: int, keys: int, values: int) -> None:
        for name, count in (("keys", keys), ("values", values)):
            require_whole(name, count, 1, MOST_TOKENS)
            object.__setattr__(self, name, int(count))
        super().__init__(n, keys * values + keys)

    @property
    def parameters(self) -> dict[str, int]:
        return {"n": self.n, "keys": self.keys, "values": self.values}

    @property
    def description(self) -> str:
        return f"the value last written under the key here, among {self.keys} keys and {self.values} values"

    @property
    def story(self) -> str:
        return (
            f"Keys are written as codes of {bits(self.keys)} signs, positions as numbers. The head looks back: its score is"
            f" {exact(self._unit)} per agreeing sign, and 800 more for every later position, so that the last"
            " write under the right key leads. If there is none the anchor leads, which says so. The head copies the value as"
            " a unit vector; the feed-forward network passes it on."
        )

    @property
    def _unit(self) -> float:
        return MASKED * (self.n // 2 + 1)

    def write(self) -> SingleLayerTransformer:
        n, K, V, b = self.n, self.keys, self.values, bits(self.keys)
        d_k, unit = power_of_4(b + 1), self._unit
        model = one_head(n, (self.tokens, V + 1), V + b + 4, d_k, V + 1, V + 1, code="learned", anchor_tokens=1)
        code, (ONE, ASKS, PLACE) = slice(V + 1, V + 1 + b), range(V + 1 + b, V + 4 + b)
        root = d_k**0.5
        with torch.no_grad():
            model.W_E[: K * V, :V] = torch.eye(V, dtype=torch.float64).repeat(K, 1)
            model.W_E[: K * V, code] = codes(K).repeat_interleave(V, dim=0)
            model.W_E[K * V :, code] = codes(K)
            model.W_E[:, ONE], model.W_E[K * V :, ASKS] = 1.0, 1.0
            model.P[:, PLACE] = torch.arange(1, n + 1)
            model.S[0, V], model.S[0, PLACE] = 1.0, b * unit / MASKED
            model.W_Q[0, code, :b] = torch.eye(b, dtype=torch.float64)
            model.W_Q[0, ONE, b] = 1.0
            model.W_K[0, code, :b] = root * unit * torch.eye(b, dtype=torch.float64)
            model.W_K[0, PLACE, b], model.W_K[0, ASKS, b] = root * MASKED, -root * 2 * unit
            model.W_V[0, : V + 1] = torch.eye(V + 1, dtype=torch.float64)
            pass_on(model, V + 1)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n value"]:
        K, V = self.keys, self.values
        last = np.full((len(x), K), V)
        found = np.empty(x.shape, dtype=np.int64)
        rows = np.arange(len(x))
        for i in range(x.shape[1]):
            writes = x[:, i] < K * V
            key = np.where(writes, x[:, i] // V, x[:, i] - K * V)
            last[rows[writes], key[writes]] = x[writes, i] % V
            found[:, i] = last[rows, key]
        return np.eye(V + 1)[found]


class PairedReverse(Lookup):
    """x_(n−1−i) = x_i + Σ_p (C_p − C'_p), with two heads for every position p < longest.

    At row i head C_p reads position p + 1 + i if it is there, else p, else the anchor (0): scores 2400, 1600, 800, 0. C'_p
    prefers p + i instead. So C_p − C'_p is x_(p+1+i) − x_(p+i) for p ≤ n − 2 − i, then x_(n−1−i) − x_(n−1) for p = n − 1 − i,
    and 0 for larger p. The first kind adds up to x_(n−1) − x_i.
    """

    name = "reverse"
    decoding = Decoding("largest")
    most = 64

    @property
    def description(self) -> str:
        return f"the sequence of up to {self.n} tokens in reverse order"

    @property
    def story(self) -> str:
        return (
            f"Heads come in pairs, one pair for each of {self.n} positions p. At position i the first of a pair reads position"
            " p + 1 + i, or p if that is past the end; the second reads p + i, or p. Where neither is there the anchor gives 0."
            " The sum of all differences, and of what the last head reads, the token at i itself, is the token at n − 1 − i."
        )

    def write(self) -> SingleLayerTransformer:
        n, V = self.n, self.vocabulary
        heads, d_k = 2 * n + 1, power_of_4(n + 1)
        config = LayerConfig(
            tokens=n, features_in=V, features_out=V, d_model=V + n + 1, heads=heads, d_k=d_k, d_v=V, code="learned",
            ffn_width=V, anchor_tokens=1, residual=False, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * n * V, (1.0,) * n * V))
        code, ANCHOR = slice(V, V + n), V + n
        place = torch.arange(n)
        with torch.no_grad():
            model.W_E[:, :V] = torch.eye(V, dtype=torch.float64)
            model.P[:, code] = torch.eye(n, dtype=torch.float64)
            model.S[0, ANCHOR] = 1.0
            model.W_K[:, V:, : n + 1] = MASKED * d_k**0.5 * torch.eye(n + 1, dtype=torch.float64)
            model.W_V[:, :V] = torch.eye(V, dtype=torch.float64)
            for p in range(n):
                for head, preferred in ((2 * p, place + p + 1), (2 * p + 1, place + p)):
                    there = preferred < n
                    model.W_Q[head, V + place, p] += 2.0
                    model.W_Q[head, V + place, n] = 1.0
                    model.W_Q[head, (V + place)[there], preferred[there]] += 3.0
            model.W_Q[2 * n, V + place, place] = 1.0
            unit = torch.eye(V, dtype=torch.float64)
            signs = torch.tensor([1.0, -1.0] * n + [1.0], dtype=torch.float64)
            model.W_O[:, :V] = (signs[:, None, None] * unit).flatten(0, 1)
            model.W_1[:V], model.W_2[:, :V], model.W_R[:V] = unit, unit, unit
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        a, m = arithmetic_of(model.W_E.dtype), model.config.all_tokens
        heads = model.config.heads
        return Lemma(
            "every head reads one token, exactly, all others lying at least 800 below it; what the heads read adds up to the"
            " token at n − 1 − i as a unit vector",
            {
                "rounding of the heads": rounded_up(heads * average_error(m, a)),
                "tokens without weight": masked_error(m, float(heads), a),
                "rounding of their sum": 2 * heads * (heads + 4) * a.u,
            },
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n token"]:
        return np.eye(self.vocabulary)[x[:, ::-1]]
