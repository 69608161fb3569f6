"""Induction heads in two layers, A B … A ↦ B: one head each, and no weight that depends on the length but a score's scale.

    python examples/two_layers.py

What you learn: what a second layer is good for. One layer needs a head for every distance; two need one head each, at any length.

The first layer lets every position see the token before it; the second looks for the last position whose predecessor is the
token here, and reads the token there. The stream, b being the number of signs in a token's code:

    code (b)    of the token
    before (b)  the code of the token before, written by the first layer; 0 at the first position
    one | place = 0, 1, … | sign = (−1)^place | token, a number

First layer, looking back: score 800·j − 800·(−1)^(i+j) on position j ≤ i, 0 on the anchor, whose code is 0. At i ≥ 1 position
i − 1 has 800·i; i itself has 800 less, i − 2 has 2400 less, and so on; the anchor has 800·i less. At i = 0 the anchor leads by
800. All scores are whole numbers and exact.

Second layer, looking back: score U·(code here)·(before at j) + 1600·(j + 1), U·b on the anchor, whose token is "none", U =
800·(N + 1). Where `before` is the code here, the last such j leads the others by 1600, and the anchor by 1600 at least; where
it is another code, the anchor leads by 2U − 1600·N = 1600 at least; where it is 0, by U·b − 1600 ≥ 800·(N − 1), at the first
position alone (N ≥ 3).

Rounding. One token leads alone in the first layer: its weight is within η of 1 (`tokens.weights.leader_error`, about 10u), and
`before` is ± this weight, exactly. So a score of the second layer is off by U·b·η, and by the rounding of a product in the key
and of b + 1 products and their sum. If that is at most 400 the right token still leads by 800. The answer is its number times
its weight.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch

from onelayer.common.checks import known_options, require_whole
from onelayer.common.errors import InputError
from onelayer.common.numbers import at_most
from onelayer.construction.gallery.one_head import one_head
from onelayer.construction.gallery.tokens.exact import exact_scores
from onelayer.construction.gallery.tokens.lookup import pass_on
from onelayer.construction.gallery.tokens.program import MOST_LENGTH, MOST_TOKENS, TOLERANCE, bits, codes
from onelayer.construction.gallery.tokens.weights import leader_error, masked_error, rounded_up
from onelayer.construction.lemma import Lemma
from onelayer.layer.arithmetic import Arithmetic, arithmetic_of
from onelayer.layer.assemble.frame import power_of_4
from onelayer.layer.heads import MASKED
from onelayer.model.masking import of_any_length
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.target.decoding import Decoding
from onelayer.target.sequence_task import SequenceTask

DECODING = Decoding("round")
STEP = 2 * MASKED  # between positions, in the second layer


@dataclass(frozen=True, eq=False)
class TwoLayers:
    """Two single-layer Transformers; the first passes its stream on as it is. `bound` holds for all sequences of the task."""

    first: SingleLayerTransformer
    second: SingleLayerTransformer
    description: SequenceTask
    lemma: Lemma
    weights: tuple[str, str]

    @property
    def bound(self) -> float:
        """What is proved of |T − token|; ∞ if a weight was changed. Below ½ it excludes wrong answers."""
        same = (self.first.fingerprint(), self.second.fingerprint()) == self.weights
        return self.lemma.bound if same else float("inf")

    @property
    def parameters(self) -> int:
        return self.first.parameter_count + self.second.parameter_count

    @property
    def parameters_without_positions(self) -> int:
        """Without the rows that are stored for each position: normalisation (0 and 1), place and sign."""
        rows = ("shift", "scale", "P")
        stored = [*self.first.state_dict().items(), *self.second.state_dict().items()]
        return sum(t.numel() for name, t in stored if name not in rows)

    @property
    def longest(self) -> int:
        """The largest length."""
        return self.description.longest

    def __call__(self, x: Any) -> list[np.ndarray]:
        """The numbers at every position, for a list of sequences."""
        together, padding, lengths = self.description.batch(x)
        with torch.no_grad():
            stream = self.first(self.description.features(together.to(self.first.W_E.dtype)), padding)
            y = self.second(stream, padding)[..., 0].double().numpy()
        return [row[:n] for row, n in zip(y, lengths or [together.shape[1]], strict=True)]

    def answer(self, x: Any) -> list[np.ndarray]:
        """The tokens at every position, for a list of sequences."""
        return [DECODING(row) for row in self(x)]


@known_options
def induction(longest: int = 1000, vocabulary: int = 26, *, dtype: str = "float64") -> TwoLayers:
    """At every position, the token that followed the last earlier occurrence of the token here; `vocabulary` if there is none."""
    require_whole("longest", longest, 3, MOST_LENGTH)
    require_whole("vocabulary", vocabulary, 2, MOST_TOKENS)
    a = arithmetic_of(dtype)
    layers = (_previous_token(longest, vocabulary), _matching(longest, vocabulary))
    first, second = (of_any_length(layer.to(a.dtype), causal=True).eval() for layer in layers)
    lemma = _lemma(first, longest, vocabulary, a)
    if not lemma.bound <= TOLERANCE:
        found = f"a bound of {at_most(lemma.bound, 3)}"
        raise InputError(f"induction of length {longest:,} in {dtype}", found, "choose shorter sequences, or float64")
    task = SequenceTask(
        kind="gallery",
        text=f"the token that followed the last earlier occurrence of the token here, {vocabulary} if there is none",
        longest=longest,
        ends=(0.0, vocabulary - 1.0),
        answer="position",
        vocabulary=vocabulary,
        decoding=DECODING,
    )
    return TwoLayers(first, second, task, lemma, (first.fingerprint(), second.fingerprint()))


def _lemma(first: SingleLayerTransformer, n: int, V: int, a: Arithmetic) -> Lemma:
    b, u, weight = bits(V), Fraction(a.u), leader_error(a)
    agreement, place = Fraction(_unit(n)) * b, Fraction(STEP) * (n + 1)
    off = agreement * weight + (agreement * (1 + weight) + place) * ((1 + u) ** (b + 3) - 1)
    if not (exact_scores(first) and off <= MASKED / 2):
        return Lemma("nothing is proved: scores are rounded too much", {"unproved": float("inf")})
    return Lemma(
        "in the first layer the token before leads by 800, exactly; in the second the token after its last occurrence does, up to"
        " rounding that is less than half of the lead; what is read is a whole number times a weight within a few u of 1",
        {
            "rounding of the second head": rounded_up(V * (weight + 2 * u)),
            "tokens without weight": 2 * masked_error(n + 1, float(V), a),
        },
    )


def _unit(n: int) -> float:
    return MASKED * (n + 1)


def _coordinates(V: int) -> tuple[slice, slice, range]:
    b = bits(V)
    return slice(0, b), slice(b, 2 * b), range(2 * b, 2 * b + 4)


def _previous_token(n: int, V: int) -> SingleLayerTransformer:
    b = bits(V)
    width, (code, before, (ONE, PLACE, SIGN, TOKEN)) = 2 * b + 4, _coordinates(V)
    model = one_head(n, (V, width), width, 4, b, 1, code="learned", anchor_tokens=1, residual=True)
    place = torch.arange(n, dtype=torch.float64)
    with torch.no_grad():
        model.W_E[:, code], model.W_E[:, TOKEN] = codes(V), torch.arange(V, dtype=torch.float64)
        model.P[:, ONE], model.P[:, PLACE], model.P[:, SIGN] = 1.0, place, 1 - 2 * (place % 2)
        model.W_Q[0, ONE, 0] = model.W_Q[0, SIGN, 1] = 1.0
        model.W_K[0, PLACE, 0], model.W_K[0, SIGN, 1] = 2 * MASKED, -2 * MASKED  # times √d_k = 2
        model.W_V[0, code] = model.W_O[:, before] = torch.eye(b, dtype=torch.float64)
        model.W_R.copy_(torch.eye(width))  # the stream is handed over
    return model


def _matching(n: int, V: int) -> SingleLayerTransformer:
    b = bits(V)
    width, (code, before, (ONE, PLACE, _, TOKEN)) = 2 * b + 4, _coordinates(V)
    d_k = power_of_4(b + 1)
    model = one_head(n, (width, 1), width, d_k, 1, 1, code="none", anchor_tokens=1)
    root, unit = d_k**0.5, torch.eye(b, dtype=torch.float64)
    with torch.no_grad():
        model.W_E.copy_(torch.eye(width))
        model.S[0, PLACE], model.S[0, TOKEN] = b * _unit(n) / STEP, V
        model.W_Q[0, code, :b], model.W_Q[0, ONE, b] = unit, 1.0
        model.W_K[0, before, :b] = root * _unit(n) * unit
        model.W_K[0, PLACE, b] = model.W_K[0, ONE, b] = root * STEP
        model.W_V[0, TOKEN, 0] = 1.0
        pass_on(model, 1)
    return model


def main() -> int:
    two = induction(longest=1000, vocabulary=26)
    sequence = [0, 1, 2, 0, 1, 3, 0]
    print(f"what followed each token of {sequence} the last time, 26 for nothing: {two.answer([sequence])[0].tolist()}")
    print(f"CERTIFIED: right for all sequences of up to 1,000 tokens, answers within {at_most(two.bound, 2)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
