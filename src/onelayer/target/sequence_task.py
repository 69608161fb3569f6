"""A task on sequences of any length up to a largest one: what goes in, what comes out, and for which sequences it is stated."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ..common.checks import is_number, is_whole
from ..common.errors import InputError
from ..common.numbers import exact
from .decoding import Decoding
from .tokenizer import Tokens

Kind = Literal["gallery", "set", "language"]
Answer = Literal["position", "whole"]  # one for every position, or one for the whole sequence
Batch = tuple[Float[Tensor, "batch n"], Bool[Tensor, "batch n"] | None, list[int] | None]


@dataclass(frozen=True, kw_only=True)
class SequenceTask:
    """f on sequences of 1 to `longest` numbers between two ends, or tokens of a vocabulary."""

    kind: Kind
    text: str
    longest: int
    ends: tuple[float, float]  # of numbers; the first and the last token
    answer: Answer
    outputs: int = 1  # numbers in one answer
    vocabulary: int | None = None  # inputs are token numbers below this
    decoding: Decoding | None = None
    entry: str = ""  # of the gallery
    parameters: dict[str, Any] = field(default_factory=dict)
    words: tuple[str, ...] = ()  # of a language, in the order of their numbers

    @property
    def quantifier(self) -> str:
        """The sequences that a statement about all of them speaks of."""
        if self.vocabulary is not None:
            return f"all n ≤ {self.longest:,} and all sequences of n tokens out of {self.vocabulary:,}"
        return f"all n ≤ {self.longest:,} and all x in [{exact(self.ends[0])}, {exact(self.ends[1])}]^n"

    def batch(self, x: Any) -> Batch:
        """Sequences as one padded batch; the padding, if lengths differ; the lengths, None for one sequence alone."""
        if isinstance(x, Tensor):
            x = x.detach().cpu().double().numpy()  # NumPy has no bfloat16
        x = x[()] if isinstance(x, np.ndarray) and x.ndim == 0 else x
        rows = list(x) if isinstance(x, np.ndarray | list | tuple) else [x]
        single = getattr(x, "ndim", 1) < 2 and not (rows and isinstance(rows[0], np.ndarray | list | tuple | Tensor))
        found = [self._sequence(row) for row in ([rows] if single else rows)]
        lengths = [len(row) for row in found]
        together = np.full((len(found), max(lengths, default=1)), self.ends[0])
        for i, row in enumerate(found):
            together[i, : len(row)] = row
        padding = np.arange(together.shape[1]) >= np.array(lengths).reshape(-1, 1)
        masked = torch.from_numpy(padding) if padding.any() else None
        return torch.from_numpy(together), masked, None if single else lengths

    def _sequence(self, row: Any) -> Float[np.ndarray, " n"]:
        """One sequence; another shape, length or token is refused."""
        row = row.detach().cpu().double().numpy() if isinstance(row, Tensor) else row
        try:
            if not _numbers(np.asarray(row)):
                raise TypeError
            found = np.array(row, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            raise InputError("sequences of numbers", f"{row!r}"[:80], "pass lists or arrays of numbers") from None
        if found.ndim != 1 or not 1 <= len(found) <= self.longest:
            what = f"a sequence of 1 to {self.longest:,} {'numbers' if self.vocabulary is None else 'tokens'}"
            length = f"{len(found):,} of them" if found.ndim == 1 else f"shape {list(found.shape)}"
            change = "build the layer for longer sequences" if found.ndim == 1 and len(found) else "give a list of them"
            raise InputError(what, length, change)
        if self.vocabulary is not None and not self._known(found).all():
            wrong = found[~self._known(found)][0]
            raise InputError(f"tokens from 0 to {self.vocabulary - 1}", exact(float(wrong)), "number tokens from 0 on")
        return found

    def _known(self, x: Float[np.ndarray, " n"]) -> Bool[np.ndarray, " n"]:
        assert self.vocabulary is not None
        return np.asarray((x >= 0) & (x < self.vocabulary) & (x == np.round(x)))

    def covers(self, x: Float[np.ndarray, " n"], single: bool) -> bool:
        """Whether the statement speaks of a sequence: all numbers between the ends, and floats of the layer's type."""
        held = not single or np.array_equal(x, x.astype(np.float32))
        return bool(held and ((x >= self.ends[0]) & (x <= self.ends[1])).all())

    def features(self, x: Float[Tensor, "batch n"]) -> Float[Tensor, "batch n feature"]:
        """What the model takes: numbers as they are, tokens as unit vectors."""
        if self.vocabulary is None:
            return x.unsqueeze(-1)
        return torch.nn.functional.one_hot(x.long(), self.vocabulary).to(x.dtype)

    @property
    def _consistent(self) -> bool:
        """Whether ends, tokens and words belong together."""
        V, language = self.vocabulary, self.kind == "language"
        ends = self.ends[0] < self.ends[1] if V is None else type(V) is int and self.ends == (0.0, V - 1.0)
        words = len(set(self.words)) == len(self.words) == (V if language else 0)
        return ends and words and (not language or self.parameters.get("tokens") in get_args(Tokens))

    def as_json(self) -> dict[str, Any]:
        """For target.json."""
        decoding = None if self.decoding is None else self.decoding.record()
        return asdict(self) | {"ends": list(self.ends), "words": list(self.words), "decoding": decoding}

    @staticmethod
    def from_json(about: dict[str, Any]) -> "SequenceTask":
        """The task in a record; a record of something else raises ValueError, KeyError or TypeError."""
        low, high = about["ends"]
        task = SequenceTask(
            kind=about["kind"],
            text=str(about["text"]),
            longest=int(about["longest"]),
            ends=(float(low), float(high)),
            answer=about["answer"],
            outputs=int(about["outputs"]),
            vocabulary=about["vocabulary"],
            decoding=Decoding.of(about["decoding"]),
            entry=str(about["entry"]),
            parameters=dict(about["parameters"]),
            words=tuple(map(str, about["words"])),
        )
        chosen = task.kind in get_args(Kind) and task.answer in get_args(Answer)
        numbers = is_number(low) and is_number(high) and is_whole(about["longest"]) and is_whole(about["outputs"])
        if not chosen or not numbers or task.longest < 1 or not task._consistent:
            raise ValueError(f"no task on sequences: {json.dumps(about)[:80]}")
        return task


def _numbers(x: np.ndarray) -> bool:
    """Whether these are real numbers: no text, no dates, nothing missing, nothing complex."""
    return x.dtype.kind in "biuf" or (x.dtype.kind == "O" and not any(v is None or isinstance(v, str) for v in x.flat))
