"""LanguageModel: one causal layer that answers with the distribution of the next token, and writes text by it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from .common.checks import is_number, known_options, require_seed, require_whole
from .common.errors import InputError
from .model.incremental import TokenByToken
from .sequence_layer import SequenceLayer
from .target.tokenizer import Tokens, numbers_of, tokens_in

MOST_GENERATED = 10**6


@dataclass(frozen=True, eq=False, repr=False)
class LanguageModel(SequenceLayer):
    """softmax(T(x)) ≈ p(· | x) at every position of every text of up to `longest` tokens, within a proved total variation.

    Called with token numbers it answers with logits, as every layer for sequences does. Texts are what `probabilities` and
    `generate` take; the token ⟨start⟩ stands before them.
    """

    @property
    def words(self) -> tuple[str, ...]:
        """The tokens, in the order of their numbers; the first is ⟨start⟩."""
        return self.description.words

    @property
    def tokens(self) -> Tokens:
        """What a token is: "characters" or "words"."""
        return "words" if self.description.parameters["tokens"] == "words" else "characters"

    def encode(self, text: str) -> list[int]:
        """The numbers of a text's tokens, ⟨start⟩ first; a token that is not in the vocabulary is refused."""
        if not isinstance(text, str):
            raise InputError("a text", type(text).__name__, "give a str")
        return [0, *numbers_of(tokens_in(text, self.tokens), self.words)]

    def probabilities(self, context: str | Sequence[int]) -> Float[np.ndarray, " token"]:
        """The distribution of the next token after a text, or after token numbers exactly as they are given.

        Of a longer context the last `longest` tokens count; for an n-gram model that changes nothing.
        """
        if not isinstance(context, Iterable):
            raise InputError("a text, or token numbers", type(context).__name__, "give a str or a list")
        numbers = self.encode(context) if isinstance(context, str) else list(context)
        return softmax(TokenByToken(self.model).extend(self._features(numbers[-self.longest :])).double().cpu().numpy())

    @known_options
    def generate(self, prompt: str = "", length: int = 200, temperature: float = 1.0, seed: int = 0) -> str:
        """The prompt and `length` tokens more, drawn one by one; the same seed gives the same text.

        At temperature t the probabilities are proportional to q^(1/t), q being those of the layer; 0 takes the most likely token,
        the first of equals. A token with q below the proved bound may have probability 0 in the model, and is never drawn.
        """
        require_whole("length", length, 0, MOST_GENERATED)
        require_seed(seed)
        if not is_number(temperature) or not 0 <= temperature < math.inf:
            raise InputError("temperature, a number from 0 on", f"{temperature!r}", "choose for instance 1")
        rng, numbers, growing = np.random.default_rng(seed), self.encode(prompt), TokenByToken(self.model)
        given, read = len(numbers), max(0, len(numbers) - self.longest)
        for _ in range(length):
            if growing.length + len(numbers) - read > self.longest:  # start again, with the last half of the longest
                growing, read = TokenByToken(self.model), len(numbers) - max(2, self.longest // 2)
            logits = growing.extend(self._features(numbers[read:])).double().cpu().numpy()
            read = len(numbers)
            numbers.append(_drawn(logits, float(temperature), self.certificate.bound, rng))
        return prompt + "".join(self.words[i] for i in numbers[given:])

    def _features(self, numbers: list[int]) -> Float[Tensor, "n feature"]:
        """Token numbers as the model takes them, checked."""
        together, _, _ = self.description.batch([numbers])
        return self.description.features(together.to(self.model.W_E))[0]


def softmax(logits: Float[np.ndarray, " token"]) -> Float[np.ndarray, " token"]:
    """The distribution of logits, in float64."""
    e = np.exp(logits - logits.max())
    return np.asarray(e / e.sum())


def _drawn(logits: np.ndarray, temperature: float, ruled_out: float, rng: np.random.Generator) -> int:
    """A token from softmax(logits/temperature), by one uniform number; those less likely than `ruled_out` are left out."""
    if temperature == 0:
        return int(logits.argmax())
    likely = np.flatnonzero(softmax(logits) >= min(ruled_out, 1 / len(logits)))
    with np.errstate(over="ignore"):
        steps = np.cumsum(softmax((logits[likely] - logits.max()) / temperature))
    return int(likely[min(np.searchsorted(steps, rng.random() * steps[-1], side="right"), len(likely) - 1)])
