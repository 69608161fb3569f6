"""What token programs share: codes of numbers, the check of their weights, and the Approximation around them.

A program is a one-layer Transformer written down weight by weight. A token enters as a unit vector, the embedding writes
whole numbers into the stream (a code of plus and minus ones for the token or its position, flags, counts), and one head
does the work; there is no residual, so the feed-forward network sees what the head wrote and nothing else. Scores carry no
rounding (`exact`), what remains is that of softmax (`weights`) and of the feed-forward network (`piecewise_linear`).
"""

import math
import time
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from ....approximation import Approximation
from ....common.checks import require_seed, require_whole
from ....common.errors import InputError
from ....common.numbers import at_most, exact
from ....layer.arithmetic import arithmetic_of
from ....layer.facts import Facts
from ....model.masking import of_any_length
from ....model.transformer import SingleLayerTransformer
from ....target.decoding import Decoding
from ....target.description import Description
from ....target.domain import domain_of
from ....target.sides import MOST_VARIABLES
from ...lemma import Lemma, approximation_by_lemma
from .exact import exact_scores, score_reach
from .sequences import sequences

TOLERANCE = 0.25  # half of what decoding tolerates
MOST_LENGTH = 4096  # attention has n² weights
MOST_TOKENS = 1024  # one-hot inputs are this wide, and some weights are this wide and this high


@dataclass(frozen=True)
class Program(ABC):
    """A task on sequences of n tokens, the layer that solves it, and the lemma that bounds the layer's error."""

    n: int
    vocabulary: int

    name: ClassVar[str]
    decoding: ClassVar[Decoding]
    layout: ClassVar[str] = "position"
    causal: ClassVar[bool] = False
    most: ClassVar[int] = MOST_LENGTH

    def __post_init__(self) -> None:
        require_whole("the length", self.n, 1, self.most)
        require_whole("vocabulary", self.vocabulary, 2, MOST_TOKENS)
        for name in ("n", "vocabulary"):
            object.__setattr__(self, name, int(getattr(self, name)))  # NumPy's integers are welcome

    @property
    def tokens(self) -> int:
        """How many token numbers there are."""
        return self.vocabulary

    @property
    def parameters(self) -> dict[str, int]:
        return asdict(self)

    @property
    def output_shape(self) -> tuple[int, ...]:
        return (self.n,)

    @property
    @abstractmethod
    def description(self) -> str:
        """What is computed, in a few words."""

    @property
    @abstractmethod
    def story(self) -> str:
        """What the head and the feed-forward network do."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """What the head does, in a word."""

    @abstractmethod
    def write(self) -> SingleLayerTransformer:
        """The layer in float64."""

    @abstractmethod
    def lemma(self, model: SingleLayerTransformer) -> Lemma:
        """The bound for a layer whose weights are those of `write`, rounded to its dtype."""

    @abstractmethod
    def answers(self, x: Int[np.ndarray, "batch n"]) -> Float[np.ndarray, "batch ..."]:
        """The right numbers, computed directly."""

    def special(self) -> list[list[int]]:
        """Sequences worth looking at besides the constant ones and random ones."""
        return []


class BitProgram(Program):
    """A program on two tokens, 0 and 1."""

    def __init__(self, n: int) -> None:
        super().__init__(n, 2)

    @property
    def parameters(self) -> dict[str, int]:
        return {"n": self.n}


def packed(program: Program, dtype: str, seed: int) -> Approximation:
    """The Approximation of a program, refused where its error cannot be proved small enough for the dtype."""
    require_whole("n", program.n, 1, MOST_VARIABLES)
    require_seed(seed)
    started = time.perf_counter()
    model, lemma = proved(program, program.write().to(arithmetic_of(dtype).dtype))
    n, tokens = program.n, program.tokens
    description = Description(
        kind="gallery",
        entry=program.name,
        text=program.description,
        parameters=program.parameters,
        domain=domain_of([(0, tokens - 1)] * n),
        shape=(n, 1),
        output_shape=program.output_shape,
        vocabulary=tokens,
        decoding=program.decoding,
    )
    facts = facts_of(program, model, started, seed)
    x = sequences(n, tokens, program.special(), seed)
    domain = f"all sequences of {n} tokens out of {tokens}"
    return approximation_by_lemma(model, description, lemma, facts, TOLERANCE, (x, program.answers(x)), domain)


def proved(program: Program, model: SingleLayerTransformer) -> tuple[SingleLayerTransformer, Lemma]:
    """The model and its lemma, refused where the lemma does not prove enough for the dtype."""
    lemma, dtype = prove(program, model), arithmetic_of(model.W_E.dtype).name
    if not lemma.bound <= TOLERANCE:
        held = _largest_length(program, model.W_E.dtype)
        shorter = f"a length up to {held:,}" if held else "fewer tokens"
        shorter += "" if dtype == "float64" else ", or dtype='float64'"
        asked = f"{program.name} of length {program.n:,} in {dtype}, proved within {exact(TOLERANCE)}"
        raise InputError(asked, f"a bound of {at_most(lemma.bound, 3)}", f"choose {shorter}")
    return model, lemma


def _largest_length(program: Program, dtype: torch.dtype) -> int:
    """The largest n, found by bisection, for which the lemma proves enough; 0 if there is none."""
    low, high = 0, program.n
    while high - low > 1:
        n = (low + high) // 2
        shorter = type(program)(**program.parameters | {"n": n})
        held = prove(shorter, shorter.write().to(dtype)).bound <= TOLERANCE
        low, high = (n, high) if held else (low, n)
    return low


def facts_of(program: Program, model: SingleLayerTransformer, started: float, seed: int) -> Facts:
    c = model.config
    return Facts(
        method="gallery",
        construction="tokens",
        layout=program.layout,
        heads=((program.kind, c.heads),),
        units=c.heads + c.ffn_width,
        total=float(model.W_2.detach().abs().sum()),
        seconds=time.perf_counter() - started,
        seed=int(seed),
        places=tuple(range(c.places)),
        amplitude=float(model.W_V.detach().abs().max()),
        largest_score=score_reach(model),
        story=program.story,
    )


def prove(program: Program, model: SingleLayerTransformer) -> Lemma:
    """The program's lemma on this model; nothing is claimed of a model that differs from the construction."""
    dtype = model.W_E.dtype
    own = program.write().to(dtype)
    own = of_any_length(own, program.causal) if model.config.any_length else own
    stored, wanted = model.state_dict(), own.state_dict()
    if model.config != own.config or stored.keys() != wanted.keys():
        return _unproved("a layer of another shape")
    changed = [name for name, t in wanted.items() if stored[name].dtype != dtype or not torch.equal(stored[name], t)]
    if changed:
        return _unproved(f"{', '.join(changed)} changed")
    if not exact_scores(model):
        return _unproved(f"scores up to {at_most(score_reach(model), 3)} that {arithmetic_of(dtype).name} may round")
    return program.lemma(model)


def _unproved(why: str) -> Lemma:
    return Lemma(f"nothing is proved: {why}", {"unproved": math.inf})


def bits(count: int) -> int:
    """How many bits number `count` things."""
    return max(1, (count - 1).bit_length())


def codes(count: int) -> Float[Tensor, "count bit"]:
    """The numbers 0 … count − 1 in binary, with −1 for 0: equal codes have inner product `bits`, others at least 2 less."""
    shifts = torch.arange(bits(count))
    return ((torch.arange(count).unsqueeze(1) >> shifts) & 1).to(torch.float64) * 2 - 1
