"""Programs whose heads come in pairs: what two heads read differs where a condition holds, and the differences are added up.

A head can read token A unless there is a token B. It cannot read A if there is a B: softmax takes the largest score, and B, once
preferred, is what is read. Two heads that differ in what counts as a B give A − B exactly where one of them sees a B and the
other does not, and 0 elsewhere. Tokens are read as binary numbers, so that few coordinates carry the sum; one ReLU for each
token turns the sum, again a binary number, into a unit vector.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ....layer.arithmetic import arithmetic_of
from ....model.transformer import SingleLayerTransformer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..tokens.lookup import Lookup
from ..tokens.program import bits, codes
from ..tokens.weights import average_error, masked_error, rounded_up


class PairedHeads(Lookup):
    """Heads A_0, B_0, A_1, B_1, … and one more, C: the answer is C + Σ_p (B_p − A_p), a token or "none", as a binary number.

    A ReLU for token v takes 1 less the number of wrong digits: it is 1 for the right token and 0 for all others.
    """

    decoding = Decoding("largest")

    @property
    def digits(self) -> int:
        """Digits of a token, "none" included."""
        return bits(self.vocabulary + 1)

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        a, m, b = arithmetic_of(model.W_E.dtype), model.config.all_tokens, self.digits
        heads = model.config.heads
        return Lemma(
            "every head reads one token, or several that are the same, exactly, all others lying at least 800 below; what the"
            " heads read adds up to the answer as a binary number, of which a ReLU for each token makes a unit vector",
            {
                "rounding of the heads": rounded_up(b * heads * average_error(m, a)),
                "tokens without weight": masked_error(m, float(b * heads), a),
                "rounding of their sum": 2 * b * heads * (heads + 4) * a.u,
                "rounding of the feed-forward network": 4 * (b + 2) * (b + 1) * a.u,
            },
        )


def binary(count: int) -> Float[Tensor, "count digit"]:
    """The numbers 0 … count − 1 in binary."""
    return (codes(count) + 1) / 2


def write_sum(model: SingleLayerTransformer) -> None:
    """Everything after the heads: C + Σ (B_p − A_p), and one ReLU for each token and for "none"."""
    heads, b, answers = model.config.heads, model.config.d_v, model.config.features_out
    signs = torch.tensor([-1.0, 1.0] * (heads // 2) + [1.0], dtype=torch.float64)
    numbers, unit = binary(answers), torch.eye(answers, dtype=torch.float64)
    model.W_O[:, :b] = (signs[:, None, None] * torch.eye(b, dtype=torch.float64)).flatten(0, 1)
    model.W_1[:b] = (2 * numbers - 1).T
    model.b_1.copy_(1 - numbers.sum(dim=1))
    model.W_2[:, :answers], model.W_R[:answers] = unit, unit
