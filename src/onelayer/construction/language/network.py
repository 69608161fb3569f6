"""The layer of an n-gram model: a head that reads the previous token, and a hidden unit for every context of two tokens.

The stream holds, side by side,

    the code of the own token | the code of the previous one | the code of the position | that of the one before | flags | lanes

Codes are signs, so that two codes of b signs agree in b places if they are equal and have an inner product of at most b − 2 if
not. The embedding writes everything but the code of the previous token: lanes are those of the bigram p(· | b). The head finds
the position before by its code, all other scores are 800 lower, and copies the code of its token; the first position reads an
anchor, whose value is 0. Unit (a, b) of the feed-forward network is

    relu(⟨code of b, own⟩ + ⟨code of a, previous⟩ − (2·bits − 1)),

1 in its context and 0 in all others. It adds what turns the lanes of p(· | b) into those of p(· | a, b). The read-out turns lanes
into logits.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from ...common.errors import InputError
from ...layer.arithmetic import arithmetic_of
from ...layer.assemble.frame import power_of_4
from ...layer.heads import MASKED
from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ...target.ngram import Distribution, NGram
from ..gallery.tokens.program import bits, codes
from .lanes import Lanes

MOST_NUMBERS = 2 * 10**8  # parameters, at most


@dataclass(frozen=True, eq=False)
class Cases:
    """The distinct distributions of an n-gram model, and which of them belongs to a token alone and to a hidden unit."""

    ngram: NGram

    @cached_property
    def units(self) -> list[tuple[int, ...]]:
        """The context of every hidden unit."""
        return self.ngram.own_contexts

    @cached_property
    def distributions(self) -> list[Distribution]:
        return list(self._numbered)

    @cached_property
    def of_tokens(self) -> np.ndarray:
        """By token: the number of its distribution, for all contexts that end with it and have no unit."""
        return np.array([self._numbered[d] for d in self._alone])

    @cached_property
    def of_units(self) -> np.ndarray:
        return np.array([self._numbered[d] for d in self._together], dtype=np.int64)

    @cached_property
    def _alone(self) -> list[Distribution]:
        return [self.ngram.distribution((token,)) for token in range(len(self.ngram.words))]

    @cached_property
    def _together(self) -> list[Distribution]:
        return [self.ngram.distribution(context) for context in self.units]

    @cached_property
    def _numbered(self) -> dict[Distribution, int]:
        return {d: i for i, d in enumerate(dict.fromkeys([*self._alone, *self._together]))}


@dataclass(frozen=True)
class Places:
    """Where things are in the stream."""

    vocabulary: int
    longest: int

    @property
    def own(self) -> slice:
        return slice(0, bits(self.vocabulary))

    @property
    def previous(self) -> slice:
        return slice(self.own.stop, 2 * self.own.stop)

    @property
    def here(self) -> slice:
        return slice(self.previous.stop, self.previous.stop + bits(self.longest))

    @property
    def before(self) -> slice:
        return slice(self.here.stop, self.here.stop + bits(self.longest))

    @property
    def flags(self) -> tuple[int, int, int]:
        """1 on data; 1 on the first position, which has none before it; 1 on the anchor."""
        return self.before.stop, self.before.stop + 1, self.before.stop + 2

    @property
    def lanes(self) -> int:
        """The first lane."""
        return self.before.stop + 3


def config_of(vocabulary: int, longest: int, units: int, lanes: int) -> LayerConfig:
    """The shape of the layer."""
    return LayerConfig(
        tokens=longest, features_in=vocabulary, features_out=vocabulary, d_model=Places(vocabulary, longest).lanes + lanes,
        heads=1, d_k=power_of_4(bits(longest) + 2), d_v=bits(vocabulary), ffn_width=max(1, units), code="learned",
        anchor_tokens=1, any_length=True, causal=True,
    )  # fmt: skip


def frame_of_codes(cases: Cases, longest: int, lanes: int, dtype: torch.dtype) -> SingleLayerTransformer:
    """Everything but the lanes: embedding, head and hidden units, exact whole numbers; what belongs to lanes is 0."""
    V, config = len(cases.ngram.words), config_of(len(cases.ngram.words), longest, len(cases.units), lanes)
    if config.parameter_count > MOST_NUMBERS:
        raise InputError(
            f"a layer of at most {MOST_NUMBERS:,} numbers",
            f"{config.parameter_count:,} for {V:,} tokens and {len(cases.units):,} contexts",
            "give a shorter corpus, order=2, or a smaller longest",
        )
    model, places = SingleLayerTransformer(config, dtype=dtype), Places(V, longest)
    own, previous, here, before = places.own, places.previous, places.here, places.before
    DATA, FIRST, ANCHOR = places.flags
    token, position, b = codes(V).to(dtype), codes(longest).to(dtype), bits(longest)
    high = math.sqrt(config.d_k) * MASKED
    unit = torch.eye(max(b, token.shape[1]), dtype=dtype)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.W_E[:, own], model.b_E[DATA], model.S[0, ANCHOR] = token, 1.0, 1.0
        model.P[:, here], model.P[1:, before], model.P[0, FIRST] = position, position[:-1], 1.0
        model.W_Q[0, before, :b] = unit[:b, :b]
        model.W_Q[0, DATA, b] = model.W_Q[0, FIRST, b + 1] = 1.0
        model.W_K[0, here, :b] = high * unit[:b, :b]
        model.W_K[0, ANCHOR, b], model.W_K[0, ANCHOR, b + 1] = high * (b - 1), high
        model.W_V[0, own] = model.W_O[:, previous] = unit[: token.shape[1], : token.shape[1]]
        if cases.units:
            a, last = torch.tensor(cases.units).T
            model.W_1[previous], model.W_1[own] = token[a].T, token[last].T
            model.b_1[:] = 1.0 - 2 * token.shape[1]
    return model


def write(cases: Cases, longest: int, lanes: Lanes, dtype: str) -> SingleLayerTransformer:
    """The layer with its lanes: what a unit adds is taken from the lanes of its last token as they are stored."""
    kind = arithmetic_of(dtype).dtype
    model = frame_of_codes(cases, longest, lanes.values.shape[1], kind)
    at = Places(len(cases.ngram.words), longest).lanes
    with torch.no_grad():
        model.W_E[:, at:] = _tensor(lanes.values[cases.of_tokens], kind)
        if cases.units:
            last = model.W_E[[context[1] for context in cases.units], at:].double().numpy()
            model.W_2[:, at:] = _tensor(lanes.values[cases.of_units] - last, kind)
        model.W_R[at:] = _tensor(lanes.read, kind)
    return model.eval()


def _tensor(x: np.ndarray, dtype: torch.dtype) -> Tensor:
    return torch.from_numpy(x).to(dtype)
