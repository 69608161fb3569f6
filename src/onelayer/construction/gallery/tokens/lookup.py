"""Looking up: a head that attends to one token alone, all others lying at least 800 below it, and copies its value.

reverse             the position with the mirrored code
first_occurrence    tokens equal to that of the query, earlier ones first; the value is the position
copy_where          marked tokens, earlier ones first; then the anchor, which says "none"; then the rest
"""

import numpy as np
import torch
from jaxtyping import Float, Int

from ....approximation import Approximation
from ....common.checks import known_options
from ....common.numbers import exact
from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import power_of_4
from ....layer.heads import MASKED
from ....model.transformer import SingleLayerTransformer
from ....target.decoding import Decoding
from ...lemma import Lemma
from ..one_head import one_head
from .program import Program, bits, codes, packed
from .weights import average_error, masked_error, rounded_up


def reverse_tokens(n: int, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """The sequence of tokens in reverse order, as unit vectors."""
    return packed(Reverse(n, vocabulary), dtype, seed)


@known_options
def first_occurrence(n: int, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """At every position, the first position (from 0) that holds the same token."""
    return packed(FirstOccurrence(n, vocabulary), dtype, seed)


@known_options
def copy_where(n: int, vocabulary: int = 26, *, dtype: str = "float64", seed: int = 0) -> Approximation:
    """The token at the first marked position, at every position: v is plain, v + vocabulary marked; "none" is vocabulary."""
    return packed(CopyWhere(n, vocabulary), dtype, seed)


class Lookup(Program):
    """A program whose head attends to one token; the feed-forward network passes its value, which is not negative."""

    kind = "lookup"

    @property
    def largest_value(self) -> int:
        """The largest number that is copied."""
        return 1

    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        arithmetic, m = arithmetic_of(model.W_E.dtype), model.config.all_tokens
        return Lemma(
            "one token has the largest score, exactly, and all others lie at least 800 below it: its weight is 1 up to"
            " rounding, theirs vanish; all else is exact",
            {
                "rounding of the head": rounded_up(self.largest_value * average_error(m, arithmetic)),
                "tokens without weight": masked_error(m, float(self.largest_value), arithmetic),
            },
        )


class Reverse(Lookup):
    """The query of position i is the code of n − 1 − i, the key of position j is its own code."""

    name = "reverse"
    decoding = Decoding("largest")

    @property
    def description(self) -> str:
        return f"the sequence of n = {self.n} tokens in reverse order"

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.vocabulary)

    @property
    def story(self) -> str:
        return (
            f"Every position carries the code of its own number and that of its mirror image, {bits(self.n)} signs each. The"
            " head compares the mirrored code of the query position with the codes of all positions: one agrees, the others"
            " lie 800 or more below and get no weight. It copies the token there as a unit vector; the feed-forward network"
            " passes it on."
        )

    def write(self) -> SingleLayerTransformer:
        n, V, b = self.n, self.vocabulary, bits(self.n)
        d_k = power_of_4(b)
        width = V + 2 * b  # token | code of the position | code of its mirror image
        model, position = one_head(n, (V, V), width, d_k, V, V, code="learned"), codes(n)
        with torch.no_grad():
            model.W_E[:, :V] = torch.eye(V)
            model.P[:, V : V + b], model.P[:, V + b :] = position, position.flip(0)
            model.W_Q[0, V + b :, :b] = torch.eye(b)
            model.W_K[0, V : V + b, :b] = MASKED / 2 * d_k**0.5 * torch.eye(b)
            model.W_V[0, :V] = torch.eye(V)
            pass_on(model, V)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n token"]:
        return np.eye(self.vocabulary)[x[:, ::-1]]


class FirstOccurrence(Lookup):
    """Score 400·n·(agreement of codes) − 800·j on position j."""

    name = "first_occurrence"
    decoding = Decoding("round")

    @property
    def largest_value(self) -> int:
        return self.n - 1

    @property
    def description(self) -> str:
        return f"at every position, the first position (from 0) of its token among n = {self.n}"

    @property
    def story(self) -> str:
        return (
            f"Tokens are written as codes of {bits(self.vocabulary)} signs, positions as numbers 0, 1, …. The head's score is"
            f" {exact(MASKED * self.n / 2)} per agreeing sign (and less by as much per other sign), less {exact(MASKED)} per"
            " position: among the tokens equal to the one at its position the first leads by 800, and all of them lead the"
            " others. It copies the number of that position; the feed-forward network passes it on."
        )

    def write(self) -> SingleLayerTransformer:
        n, V, b = self.n, self.vocabulary, bits(self.vocabulary)
        d_k = power_of_4(b + 1)
        model = one_head(n, (V, 1), b + 2, d_k, 1, 1, code="learned")  # stream: code | 1 | position
        scale = MASKED * d_k**0.5
        with torch.no_grad():
            model.W_E[:, :b], model.W_E[:, b] = codes(V), 1.0
            model.P[:, b + 1] = torch.arange(n)
            model.W_Q[0, : b + 1, : b + 1] = torch.eye(b + 1)  # q = (code, 1)
            model.W_K[0, :b, :b] = scale * n / 2 * torch.eye(b)  # k = √d_k·(400·n·code, −800·j)
            model.W_K[0, b + 1, b] = -scale
            model.W_V[0, b + 1, 0] = 1.0
            pass_on(model, 1)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n"]:
        return np.stack([(x == x[:, [i]]).argmax(axis=1) for i in range(x.shape[1])], axis=1).astype(np.float64)


class CopyWhere(Lookup):
    """Score −800·j on a marked position j, −800·n on the anchor, −800·(n + 1 + j) on a plain position."""

    name = "copy_where"
    decoding = Decoding("largest")

    @property
    def tokens(self) -> int:
        return 2 * self.vocabulary

    @property
    def description(self) -> str:
        V = self.vocabulary
        return f"the token at the first marked of n = {self.n} positions ({V} to {2 * V - 1} are marked), {V} if there is none"

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n, self.vocabulary + 1)

    @property
    def story(self) -> str:
        return (
            "The head's score does not depend on the query: −800 per position on marked tokens, less than that on the anchor,"
            " and still less on plain tokens, in steps of 800. So all weight is on the first marked token, or on the anchor"
            " if there is none. It copies the token as a unit vector, with one entry more for none; the feed-forward network"
            " passes it on."
        )

    def write(self) -> SingleLayerTransformer:
        n, V = self.n, self.vocabulary
        width = V + 3  # token or none | 1 on data | rank: the position, later for the anchor and for plain tokens
        model = one_head(n, (2 * V, V + 1), width, 1, V + 1, V + 1, code="learned", anchor_tokens=1)
        with torch.no_grad():
            model.W_E[:, :V] = torch.eye(V).repeat(2, 1)
            model.W_E[:, V + 1] = 1.0
            model.W_E[:V, V + 2] = n + 1
            model.P[:, V + 2] = torch.arange(n)
            model.S[0, V], model.S[0, V + 2] = 1.0, n
            model.W_Q[0, V + 1, 0] = 1.0
            model.W_K[0, V + 2, 0] = -MASKED
            model.W_V[0, : V + 1] = torch.eye(V + 1)
            pass_on(model, V + 1)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n token"]:
        marked, V = x >= self.vocabulary, self.vocabulary
        first = np.take_along_axis(x, marked.argmax(axis=1)[:, None], axis=1)[:, 0] - V
        token = np.where(marked.any(axis=1), first, V)
        return np.repeat(np.eye(V + 1)[token][:, None], x.shape[1], axis=1)

    def special(self) -> list[list[int]]:
        n, V = self.n, self.vocabulary
        return [
            [V - 1] * n,  # none is marked
            [0] * (n - 1) + [V],  # the last one
            [2 * V - 1, *[V] * (n - 1)],  # all are
            *([v % V + V * (j == k) for j, v in enumerate(range(n))] for k in {0, n // 2}),
        ]


def pass_on(model: SingleLayerTransformer, width: int) -> None:
    """W^O, feed-forward network and read-out pass the head's output, which is not negative: relu(z) = z, exactly."""
    unit = torch.eye(width, dtype=torch.float64)
    model.W_O[:, :width] = unit
    model.W_1[:width], model.W_2[:, :width], model.W_R[:width] = unit, unit, unit
