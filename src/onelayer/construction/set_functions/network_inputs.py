"""What the feed-forward network of a set function can see at a position, and in which range it lies.

own        x_i, through the residual connection
mean       the mean of all x, one head with equal scores
max, min   one max-head each
sum        Σ_j φ(x_j), a combination of exponential heads
average    Σ_j φ(x_j)/n: numerator and n are seen, the quotient is not; only a mean over positions divides by n
"""

from dataclasses import dataclass
from typing import Literal

from ...formula import Formula

Source = Literal["own", "mean", "max", "min", "sum", "average"]


@dataclass(frozen=True)
class Input:
    """A number that lies between `low` and `high`; `inner` is φ of a sum or an average."""

    source: Source
    low: float
    high: float
    inner: Formula | None = None

    @property
    def summed(self) -> bool:
        return self.source in ("sum", "average")
