"""A repeated layer together with what is proved of it after every number of steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ....common.checks import require_whole
from ....model.repeated import RepeatedLayer
from ...lemma import Lemma


@dataclass(frozen=True, eq=False)
class ProvedSteps:
    """`lemma_after(steps)` bounds the error of `repeated.after(x, steps)` for all x that `domain` names, rounding included.

    `when_halted` bounds it for every sequence that the halting unit stops, after however many steps.
    """

    repeated: RepeatedLayer
    domain: str
    lemma_after: Callable[[int], Lemma]
    when_halted: Lemma
    weights: str  # the fingerprint of the layer that the lemmas are about

    def bound(self, steps: int | None = None) -> float:
        """The proved bound after this many steps, or where the layer halts; ∞ if a weight was changed."""
        if steps is None:
            lemma = self.when_halted
        else:
            require_whole("steps", steps, 0, self.repeated.most_steps)
            lemma = self.lemma_after(steps)
        return lemma.bound if self.repeated.layer.fingerprint() == self.weights else math.inf
