"""What rounding does to the weights of a head whose scores are exact.

Of m tokens, k have the largest score and the others lie at least 800 below it. Exactly, each of the k has weight 1/k up to
e^(−800). The computed softmax subtracts the largest score, takes exponentials, adds them up and divides:

    e_j ∈ 1 ± κ         for the k tokens: exp(0), within κ = 2·exp_ulps·u (that it is 1 exactly is not used)
    0 ≤ e_j ≤ 2·smallest for the others: e^(−799) is below the smallest normal number; together they are less than u
    sum                  relative error at most γ_(m−1) = (m−1)u/(1 − (m−1)u), in any order: all terms are positive
    quotient             two roundings: a reciprocal and a product, or one division

so that a computed weight of the k is (1 + η)/k with

    −η ≤ 1 − (1−κ)(1−u)² / ((1+κ+u)(1+γ)),      η ≤ (1+κ)(1+u)² / ((1−κ)(1−γ)) − 1,

and one of the others is at most 4·smallest. All of this is evaluated in exact rational arithmetic.

A leader alone, k = 1, is better off. The others together are less than a quarter unit in the last place of e_1, so that adding
them, in any order, leaves e_1 as it is. The weight is e_1/e_1 up to the two roundings of the quotient, or e'_1/e_1 where the
exponential is computed twice: off by η_1 = (1+κ)(1+u)²/(1−κ) − 1 at most, whatever m is.
"""

import math
from fractions import Fraction

from ....layer.arithmetic import Arithmetic


def exact_gamma(count: int, u: Fraction) -> Fraction:
    """γ_count = count·u/(1 − count·u), exactly: the relative error of this many roundings in a row."""
    return count * u / (1 - count * u)


def weight_error(tokens: int, arithmetic: Arithmetic) -> Fraction:
    """η: the relative error of a weight 1/k among this many tokens, whatever k is."""
    u, kappa = Fraction(arithmetic.u), Fraction(arithmetic.exp_error)
    summed = exact_gamma(tokens, u)
    above = (1 + kappa) * (1 + u) ** 2 / ((1 - kappa) * (1 - summed)) - 1
    below = 1 - (1 - kappa) * (1 - u) ** 2 / ((1 + kappa + u) * (1 + summed))
    return max(above, below)


def leader_error(arithmetic: Arithmetic) -> Fraction:
    """η_1: what the weight of a token that leads alone is off by. What it passes on of a value ±1 is ± its weight, exactly."""
    u, kappa = Fraction(arithmetic.u), Fraction(arithmetic.exp_error)
    return (1 + kappa) * (1 + u) ** 2 / (1 - kappa) - 1


def average_error(tokens: int, arithmetic: Arithmetic) -> Fraction:
    """Relative error of Σ_j α_j v_j over the k tokens, with values v_j ≥ 0: weights, products, and their sum in any order."""
    return (1 + weight_error(tokens, arithmetic)) * (1 + exact_gamma(tokens + 1, Fraction(arithmetic.u))) - 1


def masked_error(tokens: int, largest: float, arithmetic: Arithmetic) -> float:
    """What all the other tokens can add, their values being at most `largest`; rounded up generously."""
    return 8 * tokens * max(1.0, largest) * arithmetic.smallest


def rounded_up(x: Fraction) -> float:
    """A float that is at least x ≥ 0."""
    return math.nextafter(float(x), math.inf) if x else 0.0
