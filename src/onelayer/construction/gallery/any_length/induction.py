"""Induction heads in one layer, A B … A ↦ B: the token that followed the last time. Two heads for every position.

A deep model first lets every position see the token before it, and then looks for the position whose predecessor is the token
here. One layer has no first step: a key at p + 1 does not know the token at p. So there are two heads for every position p.
Both read position p + 1 unless the token here was seen before in a window: from p on, or from p + 1 on. They differ only if p
is where it was seen last.
"""

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ....common.checks import known_options, require_whole
from ....layer.assemble.frame import Frame, blank, power_of_4
from ....layer.heads import MASKED
from ....model.config import LayerConfig
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from .paired_heads import PairedHeads, binary, write_sum
from .token_layers import for_all_lengths

MOST_WORDS = 62  # each has a coordinate in all queries and keys, which have at most 64


@known_options
def induction(longest: int = 16, vocabulary: int = 14, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """At every position, the token that followed the last earlier occurrence of the token here; `vocabulary` if there is none."""
    text = f"the token that followed the last earlier occurrence of the token here, {vocabulary} if there is none"
    return for_all_lengths(Induction(longest, vocabulary), text, dtype, seed)


class Induction(PairedHeads):
    """Row i of A_p: an earlier token equal to x_i at p or later, else position p + 1. Of B_p: the same from p + 1 on.

    So B_p − A_p is x_(p+1) − x_i if p is the last occurrence before i, and 0 otherwise. Head C reads an earlier token equal to
    x_i, else the anchor, which says "none". With U = 1600·longest the scores at row i are

        U·[x_j = x_i] − 1600·j − U·[j is before the window]      all j but p + 1: the earliest leads, x_i itself is the last
        U·[x_j = x_i] + U + 800 − 1600·i                         j = p + 1: between x_i itself and every earlier equal token
        2U·(2p + 1 − 2i)                                         anchor: leads as long as p + 1 is not there, i ≤ p

    and the anchor of head C has the score of p + 1. Where p + 1 itself holds x_i it leads, and it reads x_i as it should.
    """

    name = "induction"
    causal = True
    most = 128

    def __post_init__(self) -> None:
        require_whole("vocabulary", self.vocabulary, 2, MOST_WORDS)
        super().__post_init__()

    @property
    def description(self) -> str:
        return f"the token that followed the last occurrence of the token here, up to {self.n} tokens"

    @property
    def story(self) -> str:
        return (
            f"Heads come in pairs, one pair for each of {self.n - 1} positions p. Both read position p + 1, unless the token here"
            " occurs earlier, from p on for the first of the pair and from p + 1 on for the second. Their difference is the"
            " token at p + 1 less the token here if p is the last occurrence, and 0 otherwise. The last head adds the token here"
            f' if it occurred before, else "none". Tokens are binary numbers; {self.vocabulary + 1} ReLUs decode the sum.'
        )

    def write(self) -> SingleLayerTransformer:
        n, V, unit = self.n, self.vocabulary, 2 * MASKED * self.n
        d_k, heads = power_of_4(V + 2), 2 * n - 1
        config = LayerConfig(
            tokens=n, features_in=V, features_out=V + 1, d_model=V + n + 1, heads=heads, d_k=d_k, d_v=self.digits,
            code="learned", ffn_width=V + 1, anchor_tokens=1, residual=False, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * n * V, (1.0,) * n * V))
        place, ANCHOR, CONSTANT, BETWEEN = slice(V, V + n), V + n, V, V + 1  # of the stream; of queries and keys
        j = torch.arange(n, dtype=torch.float64)
        keys = torch.zeros(heads, V + n + 1, V + 2, dtype=torch.float64)
        keys[:, :V, :V] = unit * torch.eye(V, dtype=torch.float64)
        for p in range(n - 1):
            for head, first in ((2 * p, p), (2 * p + 1, p + 1)):
                score = -2 * MASKED * j - unit * (j < first)
                keys[head, place, CONSTANT] = _steps(torch.where(j == p + 1, 0.0, score))
                keys[head, place, BETWEEN] = _steps(MASKED * (j == p + 1).double())
                keys[head, ANCHOR, CONSTANT], keys[head, ANCHOR, BETWEEN] = -4 * unit * (n - p), 2 * unit
        keys[-1, place, CONSTANT], keys[-1, ANCHOR, BETWEEN] = _steps(-2 * MASKED * j), MASKED
        with torch.no_grad():
            model.W_E[:, :V] = torch.eye(V, dtype=torch.float64)
            model.P[:, place] = torch.ones(n, n, dtype=torch.float64).tril()  # position j: 1 in the coordinates 0 … j
            model.S[0, ANCHOR] = 1.0
            model.W_Q[:, :V, :V] = torch.eye(V, dtype=torch.float64)
            model.W_Q[:, place, CONSTANT] = _steps(torch.ones_like(j))
            model.W_Q[:, place, BETWEEN] = _steps(2 * n + 1 - 2 * j)  # times 800: U + 800 − 1600·i
            model.W_K[:, :, : V + 2] = d_k**0.5 * keys
            model.W_V[:, :V], model.W_V[:, ANCHOR] = binary(V + 1)[:V], binary(V + 1)[V]
            write_sum(model)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n token"]:
        V, rows = self.vocabulary, np.arange(len(x))
        following = np.full((len(x), V), V)  # what followed each token the last time
        found = np.empty(x.shape, dtype=np.int64)
        for i in range(x.shape[1]):
            if i:
                following[rows, x[:, i - 1]] = x[:, i]
            found[:, i] = following[rows, x[:, i]]
        return np.eye(V + 1)[found]


def _steps(values: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """The weights that make these values of the positions: position j adds up the first j + 1 of them."""
    return torch.diff(values, prepend=values.new_zeros(1))
