"""Functions of one number as exponential sums, φ(x) ≈ Σ_l (c_l + d_l x̂) e^(β_l x̂), whose sums over a set are linear in heads.

A head with score βx̂ on the numbers and A on the anchor, whose values are 0, outputs

    Σ_j v_j e^(βx̂_j − A) / (1 + S),      S = Σ_j e^(βx̂_j − A),

which is e^(−A) Σ_j v_j e^(βx̂_j) up to the relative error S, as small as one likes. Its values v_j are 1 and x̂_j. So sums
over sets of any size of such functions are linear combinations of heads. The sharpnesses β are multiples of one step, and the
coefficients are solved for by least squares; among the fits that are good enough the one with the fewest heads is taken, and
then the one that cancels least. |φ − Σ| is bounded by enclosing the difference, which is itself a formula.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...common.errors import InputError
from ...common.numbers import at_most
from ...common.outward import UP_MANY
from ...formula import Formula, evaluate, to_text
from ...formula.tree import Call, Negation, Node, Number, Product, Sum, Variable
from .closeness import largest_size

STEPS = (0.25, 0.5, 1.0, 2.0, 4.0)  # between the sharpnesses
MOST_HEADS = 17
CUTS = (1e-15, 1e-13, 1e-11, 1e-9, 1e-7)  # singular values below this share are left out: they make terms cancel
SHARPEST = 24.0  # |βx̂|; float32 has exponents up to 85
POINTS = 400
FIT_SHARE = 0.8  # share of the tolerance allowed where the fit is looked at


@dataclass(frozen=True)
class Normalisation:
    """x̂ = (x − shift)·scale with a power of two as scale, |x̂| ≤ reach."""

    shift: float
    scale: float
    reach: float

    @property
    def tree(self) -> Node:
        moved = Sum((Variable(1), Number(-Fraction(self.shift))))
        return Product((Number(Fraction(self.scale)), moved))


@dataclass(frozen=True)
class ExponentialSum:
    """Σ_l (constants_l + slopes_l x̂) e^(sharpness_l x̂), within `error` of the function it stands for."""

    sharpness: tuple[float, ...]
    constants: tuple[float, ...]
    slopes: tuple[float, ...]
    error: float

    def amplitude(self, reach: float) -> float:
        """Σ_l (|c_l| + |d_l| reach) e^(|β_l| reach), rounded up: how large the terms are that cancel."""
        terms = zip(self.sharpness, self.constants, self.slopes, strict=True)
        return math.fsum((abs(c) + abs(d) * reach) * math.exp(abs(b) * reach) for b, c, d in terms) * UP_MANY

    def tree(self, frame: Normalisation) -> Node:
        """The formula of x."""
        x = frame.tree
        terms: list[Node] = []
        for b, c, d in zip(self.sharpness, self.constants, self.slopes, strict=True):
            factor = Sum((Number(Fraction(c)), Product((Number(Fraction(d)), x))))
            terms.append(Product((factor, Call("exp", (Product((Number(Fraction(b)), x)),)))) if b else factor)
        return Sum(tuple(terms)) if len(terms) > 1 else terms[0]


COUNT = ExponentialSum((0.0,), (1.0,), (0.0,), 0.0)  # φ = 1: the sum is the size of the set


def exponential_sum(
    inner: Formula, ends: tuple[float, float], frame: Normalisation, tolerance: float, weight: float
) -> ExponentialSum:
    """The sum with the fewest heads within the tolerance; `weight` is what rounding makes of a unit of amplitude.

    Where rounding is too much in all of them, it is the best one.
    """
    best: ExponentialSum | None = None
    seen = math.inf
    for heads in range(1, MOST_HEADS + 1, 2):
        fits = [_fit(inner, ends, frame, step, heads, cut) for step in STEPS for cut in CUTS]
        usable = [fit for fit in fits if fit is not None]
        seen = min([seen, *(fit.error for fit in usable)])
        good = [fit for fit in usable if fit.error <= FIT_SHARE * tolerance]
        if not good:
            continue
        least = min(good, key=lambda fit: fit.amplitude(frame.reach))
        proved = _proved(least, inner, ends, frame, tolerance)
        if best is None or _cost(proved, weight, frame) < _cost(best, weight, frame):
            best = proved
        if proved.error <= tolerance and weight * proved.amplitude(frame.reach) <= tolerance:
            return proved
    if best is None:
        text = to_text(inner.outputs[0], ("x",))
        raise InputError(
            f"{text} within {at_most(tolerance, 2)} as a sum of exponentials, so that sums over sets are heads",
            f"{at_most(seen, 2)} with {MOST_HEADS} heads",
            "ask for a larger tolerance, or choose a smoother function inside",
        )
    return best


def _cost(fit: ExponentialSum, weight: float, frame: Normalisation) -> float:
    return fit.error + weight * fit.amplitude(frame.reach)


def _fit(
    inner: Formula, ends: tuple[float, float], frame: Normalisation, step: float, heads: int, cut: float
) -> ExponentialSum | None:
    """Least squares at Chebyshev's points; its `error` is what is seen there and between."""
    sharpness = step * (np.arange(heads) - heads // 2)
    if heads == 1 and (step, cut) != (STEPS[0], CUTS[0]):
        return None
    if np.abs(sharpness).max() * frame.reach > SHARPEST:
        return None
    at = np.cos(np.pi * np.arange(2 * POINTS + 1) / (2 * POINTS))
    x = np.clip(ends[0] + (ends[1] - ends[0]) * (at + 1) / 2, *ends)
    y = np.asarray(evaluate(inner, x[:, None]))[:, 0]
    scaled = (x - frame.shift) * frame.scale
    sizes = np.exp(np.abs(sharpness) * frame.reach)
    columns = np.exp(sharpness * scaled[:, None]) / sizes
    table = np.concatenate([columns, columns * scaled[:, None]], axis=1)
    found = np.linalg.lstsq(table[::2], y[::2], rcond=cut)[0]
    error = float(np.abs(table @ found - y).max())
    if not math.isfinite(error):
        return None
    constants, slopes = found[:heads] / sizes, found[heads:] / sizes
    return ExponentialSum(tuple(sharpness.tolist()), tuple(constants.tolist()), tuple(slopes.tolist()), error)


def _proved(
    fit: ExponentialSum, inner: Formula, ends: tuple[float, float], frame: Normalisation, tolerance: float
) -> ExponentialSum:
    """The same with a proved error, at most the tolerance if possible."""
    difference = Sum((inner.outputs[0], Negation(fit.tree(frame))))
    error = largest_size(Formula("", ("x",), (difference,)), [ends], tolerance)
    return ExponentialSum(fit.sharpness, fit.constants, fit.slopes, error)
