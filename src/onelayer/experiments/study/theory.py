"""What theory predicts for a rate, by name, for targets of D variables.

    lipschitz      the theorem's lattice (docs/theory/theorem.md, 3): M = ∏ ⌈D L_j / (2(1 − η)ε)⌉ heads, so M ~ ε^(−D)
    holder-α       the same with |f(x) − f(y)| ≤ L‖x − y‖^α for α = 1/2, 1/3: M ~ ε^(−D/α)
    singular-s     one variable, a singularity like |x|^s, a fixed lattice of heads, values that are free: an error of order
                   M^(−s), as for polynomials of degree M (Bernstein) and splines with M equal pieces, so M ~ ε^(−1/s); s = 1/2,
                   1, 2, 3
    root           the same singularities, heads that can move and be as sharp as they like: error ~ exp(−c √M) for some c > 0, as
                   for rational functions of degree M (Newman, Stahl). docs/theory/sizes.md proves that gates reach it
    second-order   smooth targets, values that are free: an error of order h², so M grows no faster than ε^(−D/2)
    analytic       analytic targets: error ~ exp(−c M^(1/D)) for some c > 0 (docs/build/polished.md)
    additive       a sum over D variables is built one variable at a time, each within ε/D: M = D m(ε/D) with m(ε) between
                   constant and ε^(−1/2) (second-order for one variable), so that M ~ D^b with b between 1 and 3/2
    apart          and is proved one variable at a time: boxes ~ D
    free           the proof's boxes depend on how sharp the layer is, not on the tolerance: exponent 0
    work           every unit is evaluated at every point: points per second ~ 1/M, as long as units are what takes time
    gap            samples of a function with a declared Lipschitz constant: the bound is at least half of what they leave
                   open, so that it falls no faster than the distance between samples, N^(−1/D)
    lattice        samples in context at the centres of cells (docs/theory/prompts.md): the bound is L√D/2·N^(−1/D), and a little
    quartered      every step of the repeated layer for x² divides its error by four: error ~ exp(−b·steps), b = ln 4

The first two and the last two are theorems about constructions, gap is one about every method, root one about what gates can
reach; the others are estimates of what free values reach.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from ...common.errors import InputError

HOLDER = {"1/2": 1 / 2, "1/3": 1 / 3}
SINGULAR = {"1/2": 1 / 2, "1": 1.0, "2": 2.0, "3": 3.0}
Band = tuple[float, float]
SLACK = 1e-6  # for exponents of exact data, whose intervals have no width


@dataclass(frozen=True)
class Prediction:
    """Where the exponent lies for D variables: a number, or a band. `strict`: the whole interval has to lie inside."""

    name: str
    band: Callable[[int], Band]
    statement: str
    strict: bool = False

    def text(self, D: int) -> str:
        low, high = self.band(D)
        if low == high:
            return f"{low:.3g}"
        return f"> {low:.3g}" if math.isinf(high) else f"{low:.3g} … {high:.3g}"

    def agrees(self, low: float, high: float, D: int) -> bool:
        """Whether an interval for the exponent meets the band; if `strict`, lies in it."""
        bottom, top = self.band(D)
        if self.strict:
            return bottom < low and high < top
        return low - SLACK <= top and bottom <= high + SLACK


def exactly(exponent: float) -> Band:
    return exponent, exponent


def holder(name: str, alpha: float) -> Prediction:
    return Prediction(f"holder-{name}", lambda D: exactly(-D / alpha), f"M ~ ε^(−D/α), α = {name}, theorem")


def singular(name: str, s: float) -> Prediction:
    return Prediction(f"singular-{name}", lambda D: exactly(-1 / s), f"M ~ ε^(−1/s), s = {name}, estimate")


PREDICTIONS = {
    p.name: p
    for p in (
        Prediction("lipschitz", lambda D: exactly(-float(D)), "M = ∏ ⌈D L_j / (2(1 − η)ε)⌉, theorem"),
        *(holder(*pair) for pair in HOLDER.items()),
        *(singular(*pair) for pair in SINGULAR.items()),
        Prediction(
            "root", lambda D: (0.0, math.inf), "error ~ exp(−b √M), b > 0, reached by gates: theorem", strict=True
        ),
        Prediction("second-order", lambda D: (-D / 2, 0.0), "M no more than ε^(−D/2), estimate"),
        Prediction("analytic", lambda D: (0.0, math.inf), "error ~ exp(−b M^(1/D)), b > 0, estimate", strict=True),
        Prediction("additive", lambda D: (1.0, 1.5), "M = D m(ε/D), m between constant and ε^(−1/2), estimate"),
        Prediction("apart", lambda D: exactly(1.0), "every variable is proved apart"),
        Prediction("free", lambda D: exactly(0.0), "boxes depend on sharpness, not on ε, estimate"),
        Prediction("work", lambda D: exactly(-1.0), "points per second ~ 1/M where units take the time, estimate"),
        Prediction("lattice", lambda D: exactly(-1 / D), "bound = L√D/2·N^(−1/D) and what softness adds, theorem"),
        Prediction("quartered", lambda D: exactly(math.log(4)), "error 4^(−steps − 1), theorem"),
        Prediction("gap", lambda D: (-1 / D, 0.0), "no bound below half the gap between samples, theorem"),
    )
}


def prediction(name: str) -> Prediction | None:
    """The prediction of that name; None for an empty name."""
    if not name:
        return None
    if name not in PREDICTIONS:
        raise InputError(f"a theory among {', '.join(PREDICTIONS)}", repr(name), "choose one, or leave it out")
    return PREDICTIONS[name]
