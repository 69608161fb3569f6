"""The majority of any number of bits: the sign of a mean, which no length changes."""

import numpy as np
import torch
from jaxtyping import Float, Int

from ....layer.arithmetic import arithmetic_of
from ....model.transformer import SingleLayerTransformer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..one_head import one_head
from ..tokens.program import BitProgram
from ..tokens.weights import average_error, rounded_up


class SignMajority(BitProgram):
    """Ones have value 1, zeros −1, the output token 0, all weights are equal: h = (ones − zeros)/(n + 1).

    A majority makes h at least 1/(n + 1), anything else at most 0. M is a power of two, M ≥ longest + 1, so that
    relu(Mh) − relu(Mh − 1) is 1 or 0.
    """

    name = "majority"
    decoding = Decoding("round")
    layout = "token"
    kind = "uniform"

    @property
    def description(self) -> str:
        return f"whether more than half of up to {self.n} bits are ones (0 for a tie)"

    @property
    def story(self) -> str:
        return (
            "All scores are 0, so the output token gives all bits and itself the same weight. Ones have value 1, zeros −1: the"
            " head's output is positive for a majority of ones, by 1/(n + 1) at least. The feed-forward network stretches"
            f" that by {self._scale} and cuts it off at 0 and 1, with two ReLUs."
        )

    @property
    def _scale(self) -> int:
        return 1 << self.n.bit_length()  # at least n + 1

    def write(self) -> SingleLayerTransformer:
        model = one_head(self.n, (2, 1), 1, 1, 1, 2, code="none", output_tokens=1)
        with torch.no_grad():
            model.W_E[0, 0], model.W_E[1, 0] = -1.0, 1.0
            model.W_V[0, 0, 0] = model.W_O[0, 0] = model.W_R[0, 0] = 1.0
            model.W_1[0, :] = self._scale
            model.b_1[1] = -1.0
            model.W_2[0, 0], model.W_2[1, 0] = 1.0, -1.0
        return model

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        a = arithmetic_of(model.W_E.dtype)
        head = average_error(model.config.all_tokens, a)  # values are 1 or −1 and weights add up to less than 1
        return Lemma(
            "the head's output is (ones − zeros)/(n + 1) up to rounding, at least 1/(n + 1) for a majority and at most 0"
            " otherwise; M(n + 1) ≥ 1 carries it to 1 or 0",
            {
                "rounding of the head": rounded_up(self._scale * head),
                "rounding of the feed-forward network": 4 * self._scale * a.u,
            },
        )

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch 1"]:
        return (2 * x.sum(axis=1, keepdims=True) > x.shape[1]).astype(np.float64)
