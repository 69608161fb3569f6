"""Fidelity: how close a student is to its teacher at inputs that were held out. Observed, never proved.

sup         the largest absolute difference
rmse        root mean square of the differences
spread      root mean square of the teacher's answers about their mean: the scale of rmse
cosine      the mean cosine of the angle between answers, token by token
agreement   the share of tokens where the largest answer (or the head's largest) is the same; None for one number
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor


@dataclass(frozen=True)
class Fidelity:
    """All measures, and at how many answers (tokens, or inputs with one answer each)."""

    sup: float
    rmse: float
    spread: float
    cosine: float
    agreement: float | None
    answers: int

    @property
    def explained(self) -> float:
        """The share of the teacher's variance that the student explains."""
        return 1 - (self.rmse / self.spread) ** 2 if self.spread else math.nan


class FidelityMeter:
    """Measures fidelity batch by batch."""

    def __init__(self) -> None:
        self.sup = self.squares = self.cosines = self.same = 0.0
        self.answers = self.numbers = self.compared = 0
        self.origin: Tensor | None = None
        self.sums: Tensor | float = 0.0
        self.energy: Tensor | float = 0.0

    def add(self, student: Tensor, teacher: Tensor, heads: tuple[Tensor, Tensor] | None = None) -> None:
        """Answers [answer, number] of both; `heads` are what a head makes of them, if one was given."""
        s, t = student.double(), teacher.double()
        off = s - t
        self.sup = float(np.maximum(self.sup, float(off.abs().max())))  # Python's max would lose a NaN
        self.squares += float(off.square().sum())
        self.cosines += float(torch.nn.functional.cosine_similarity(s, t, dim=-1).sum())
        self.answers += len(t)
        self.numbers += t.numel()
        self.origin = t[0] if self.origin is None else self.origin
        shifted = t - self.origin  # near 0, where squares lose no digits
        self.sums = self.sums + shifted.sum(dim=0).cpu()
        self.energy = self.energy + shifted.square().sum(dim=0).cpu()
        mine, theirs = heads if heads is not None else (student, teacher)
        if theirs.shape[-1] > 1:
            self.same += float((mine.argmax(dim=-1) == theirs.argmax(dim=-1)).sum())
            self.compared += len(theirs)

    def result(self) -> Fidelity:
        assert isinstance(self.sums, Tensor)
        variance = (self.energy / self.answers - (self.sums / self.answers).square()).clamp_min(0).mean()
        agreement = self.same / self.compared if self.compared else None
        rmse, spread = math.sqrt(self.squares / self.numbers), math.sqrt(float(variance))
        return Fidelity(self.sup, rmse, spread, self.cosines / self.answers, agreement, self.answers)
