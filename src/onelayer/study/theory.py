"""What theory predicts of a rate, by name, for targets of D variables.

    lipschitz      the theorem's lattice (docs/theorem.md, 3): M = ∏ ⌈D L_j / (2(1 − η)ε)⌉ heads, so M ~ ε^(−D)
    second-order   smooth targets, values that are free: an error of order h², so M grows no faster than ε^(−D/2)
    analytic       analytic targets: error ~ exp(−c M^(1/D)) for some c > 0 (docs/polished.md)
    additive       a sum over D variables is built one variable at a time: M ~ D, at equal tolerance for each
    free           the proof's boxes depend on how sharp the layer is, not on the tolerance: exponent 0
    gap            samples of a function with a declared Lipschitz constant: the bound is at least half of what they leave
                   open, so that it falls no faster than the distance between samples, N^(−1/D)

The first is a theorem about the construction, gap is one about every method; the others are estimates of what free values reach.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ..errors import InputError

Sense = Literal["equal", "at least", "at most", "above"]
SLACK = 1e-6  # for exponents of exact data, whose intervals have no width


@dataclass(frozen=True)
class Prediction:
    """An exponent for D variables, and in which sense it is predicted."""

    name: str
    exponent: Callable[[int], float]
    sense: Sense
    words: str

    def text(self, D: int) -> str:
        sign = {"equal": "", "at least": "≥ ", "at most": "≤ ", "above": "> "}[self.sense]
        return f"{sign}{self.exponent(D):.3g}"

    def agrees(self, low: float, high: float, D: int) -> bool:
        """Whether an interval for the exponent is compatible with the prediction."""
        value = self.exponent(D)
        return {
            "equal": low - SLACK <= value <= high + SLACK,
            "at least": high + SLACK >= value,
            "at most": low - SLACK <= value,
            "above": low > value,
        }[self.sense]


PREDICTIONS = {
    p.name: p
    for p in (
        Prediction("lipschitz", lambda D: -float(D), "equal", "M = ∏ ⌈D L_j / (2(1 − η)ε)⌉, theorem"),
        Prediction("second-order", lambda D: -D / 2, "at least", "M no more than ε^(−D/2), estimate"),
        Prediction("analytic", lambda D: 0.0, "above", "error ~ exp(−c M^(1/D)), c > 0, estimate"),
        Prediction("additive", lambda D: 1.0, "equal", "M ~ D, estimate"),
        Prediction("free", lambda D: 0.0, "equal", "boxes do not depend on ε, estimate"),
        Prediction("gap", lambda D: -1 / D, "at least", "no bound below half the gap between samples, theorem"),
    )
}


def prediction(name: str) -> Prediction | None:
    """The prediction of that name; none for no name."""
    if not name:
        return None
    if name not in PREDICTIONS:
        raise InputError(f"a theory among {', '.join(PREDICTIONS)}", repr(name), "choose one, or leave it out")
    return PREDICTIONS[name]
