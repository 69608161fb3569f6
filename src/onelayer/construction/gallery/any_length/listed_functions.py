"""Composition f(g(x)) in one layer, for functions that the sequence lists: two heads for every argument of f.

The sequence of tokens 0 … m − 1 starts with the values g(0), …, g(m − 1), then f(0), …, f(m − 1), then anything. Every position
asks for f(g(x)), x being its token. A deep model looks up g(x) and then f there. One layer has no second look: what a head reads
cannot depend on what another one found. So there are two heads for every argument y of f: both read f(y), but the first prefers
g(x) if it is y.
"""

import numpy as np
import torch
from jaxtyping import Float, Int

from ....common.checks import known_options, require_whole
from ....layer.assemble.frame import Frame, blank, power_of_4
from ....layer.heads import MASKED
from ....model.config import LayerConfig
from ....model.transformer import SingleLayerTransformer
from ....sequence_layer import SequenceLayer
from ..tokens.program import bits, codes
from .paired_heads import PairedHeads, binary, write_sum
from .token_layers import for_all_lengths

MOST_ARGUMENTS = 64  # there are two heads for each


@known_options
def composition(longest: int = 64, vocabulary: int = 8, *, dtype: str = "float64", seed: int = 0) -> SequenceLayer:
    """f(g(x)) at every token x. The sequence starts with the values of g, then those of f; `vocabulary` is "not listed"."""
    m = vocabulary
    text = f"f(g(x)) at every token x: the first {m} tokens list g, the next {m} list f, {m} is not listed"
    return for_all_lengths(ListedComposition(longest, vocabulary), text, dtype, seed)


class ListedComposition(PairedHeads):
    """A row with token x. A_y reads position x if it holds y, else position m + y. B_y reads m + y. C reads position x.

    So B_y − A_y is f(y) − y if y = g(x), and 0 otherwise. Where a position is not there the anchor says "none". With U = 1600,
    b the number of signs in a code, and s_j the agreement of the codes of x and j < m (0 for later positions), the scores are

        A_y    U·s_j + 2400·[x_j = y], U·b + 1600 more for j = m + y, 2400 less for all other j ≥ m; U·b + 800 for the anchor
        B_y    1600 for j = m + y, 800 for the anchor, 0 elsewhere
        C      U·s_j; U·b − 800 for the anchor

    If f(y) = y, position m + y leads even where g(x) = y; what it reads is the same.
    """

    name = "composition"

    def __post_init__(self) -> None:
        require_whole("vocabulary", self.vocabulary, 2, MOST_ARGUMENTS)
        super().__post_init__()

    @property
    def description(self) -> str:
        return f"f(g(x)) for functions of {self.vocabulary} tokens that the sequence lists"

    @property
    def story(self) -> str:
        return (
            f"Heads come in pairs, one pair for each of {self.vocabulary} arguments y of f. Both read f(y), but the first prefers"
            " g(x), x being the token here, if it is y. Their difference is f(y) less y if y is g(x), and 0 otherwise. The last"
            f" head adds g(x). Tokens are binary numbers; {self.vocabulary + 1} ReLUs decode the sum."
        )

    def write(self) -> SingleLayerTransformer:
        n, m, b = self.n, self.vocabulary, bits(self.vocabulary)
        d_k, heads, width = power_of_4(b + 1), 2 * m + 1, 2 * m + b + 3
        config = LayerConfig(
            tokens=n, features_in=m, features_out=m + 1, d_model=width, heads=heads, d_k=d_k, d_v=self.digits,
            code="learned", ffn_width=m + 1, anchor_tokens=1, residual=False, readout="position",
        )  # fmt: skip
        model = blank(config, Frame((0.0,) * n * m, (1.0,) * n * m))
        code, listed, (LATE, ONE, ANCHOR) = slice(m, m + b), slice(m + b, 2 * m + b), range(width - 3, width)
        unit, flag = 2 * MASKED, 3 * MASKED
        keys = torch.zeros(heads, width, b + 1, dtype=torch.float64)
        keys[0::2, code, :b] = unit * torch.eye(b, dtype=torch.float64)
        for y in range(m):
            first, second, argument = keys[2 * y, :, b], keys[2 * y + 1, :, b], listed.start + y
            first[y], first[LATE], first[ANCHOR] = flag, -flag, unit * b + MASKED
            first[argument] = unit * b + 2 * MASKED + flag
            second[argument], second[ANCHOR] = 2 * MASKED, MASKED
        keys[-1, ANCHOR, b] = unit * b - MASKED
        positions, values = torch.zeros(max(n, 2 * m), width, dtype=torch.float64), binary(m + 1)
        positions[:m, code], positions[m : 2 * m, listed] = codes(m), torch.eye(m, dtype=torch.float64)
        positions[m:, LATE] = positions[:, ONE] = 1.0
        with torch.no_grad():
            model.W_E[:, :m] = torch.eye(m, dtype=torch.float64)
            model.P.copy_(positions[:n])
            model.S[0, ANCHOR] = 1.0
            model.W_Q[:, :m, :b], model.W_Q[:, ONE, b] = codes(m), 1.0
            model.W_K[:, :, : b + 1] = d_k**0.5 * keys
            model.W_V[:, :m], model.W_V[:, ANCHOR] = values[:m], values[m]
            write_sum(model)
        return model

    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch n token"]:
        m, none = self.vocabulary, np.full((len(x), 1), self.vocabulary)
        missing = np.repeat(none, max(0, 2 * m - x.shape[1]), axis=1)
        lists = np.concatenate([x, missing], axis=1)
        g, f = lists[:, :m], np.concatenate([lists[:, m : 2 * m], none], axis=1)
        return np.eye(m + 1)[np.take_along_axis(f, np.take_along_axis(g, x, axis=1), axis=1)]
