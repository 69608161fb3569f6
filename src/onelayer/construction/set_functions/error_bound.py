"""The lemma about set functions: a bound on |T − f| for every set of 1 to N numbers between the ends, rounding included.

Write u for the unit round-off, κ for the relative error of exp, r for the largest |x̂|. Sums of n ≤ N terms are added up in
any order, padding included, and everything is bounded for n numbers by what it is for N.

Numbers. The scale is a power of two: x̂ is off by η = ur, and by what underflows.

Exponential heads. With scores βx̂_j on the numbers and A on the anchor let E_j = e^(βx̂_j − A) and S = Σ E_j ≤ N e^(|β|r − A).
A computed weight is E_j(1 + ζ) with

    |ζ| ≤ exp(1.02(Θ + κ + S + (N + 6)u)) − 1,      Θ = |β|η + u|β|r + u(A + |β|r) + κ.

Θ is for the exponent (x̂, the product, the difference to A, which is the largest score) and for exp; κ, S and (N + 2)u are for
the normaliser, exactly 1 + S and computed as a sum of positive terms; 2u for the division. So what makes a head linear in
Σ e^(βx̂_j), leaving out S, is one of the relative errors. They are relative because all terms are positive and A + |β|r is
within the range of exponents. Products with the values 1 and x̂_j and their sum make it Λ = (1 + ζ)(1 + 1.02(N + 3)u) − 1.

Sums. Σ_j φ(x_j) is computed within n·e_φ,

    e_φ = ε_φ + Σ_l e^(|β_l|r) (|c_l|Λ_l + |d_l|(Λ_l r + (1 + Λ_l)η)) + 1.02(2H + 9)u·amplitude·(1 + max Λ),

ε_φ being the error of the exponential sum (by enclosure) and H the number of heads; 6u are for stored coefficients.

Means. Scores are equal: weights, products and sum are within `average_error`, and the mean of x̂ within that times r, and η.

Maxima. β is a power of two, so that scores are exact. Short by at most W((N − 1)/e)/β, to which rounding adds e^(2H) − 1 of
it, H = (the distance at which exp vanishes)u + 2κ; the rest of the rounding is as for a mean.

Terms. A term h(ℓ) of a linear form ℓ = Σ w_v v of inputs is computed as D(ℓ'), D being the stored sum of ReLUs. ReLUs go on
beyond the outermost knots, so that D has one Lipschitz constant L on the line; ℓ itself lies between the outermost knots:

    |D(ℓ') − h(ℓ)| ≤ chords + stored + L Σ |w_v| e_v,

where chords bounds h minus its chords (by enclosure), and stored what rounding the heights does (in exact arithmetic).

Averages. With S' within n·e_φ of Σ φ(x_j) and n' within n·e_n of n the units are relu(±(S' − tn')) = n' relu(±(S'/n' − t)).
They add up to n'D°(S'/n'), D° being D less its offset. After the division by n that is D°(m), m the average, within

    L (1 + e_n)/(1 − e_n) (e_φ + |m|e_n) + e_n max|D°|.

At later positions a number that outweighs everything else makes these units exactly 0. Several averages: S' is a linear form.

Network. The argument of a unit with V inputs is off by 1.02(V + 4)u(Σ|w_v v| + |knot|), which counts Σ|heights| times. The sum
over the K units of all terms adds (K + 2)u of what is added up, the offset 4u, a mean read-out (N + 3)u. For averages all
of this is proportional to n, and divided by it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from ...common.outward import UP_MANY
from ...layer.affine_layer import GAP
from ...layer.heads import shortfall
from ..gallery.tokens.weights import average_error, rounded_up
from ..lemma import Lemma
from .design import Computed, Design
from .exponential_sums import COUNT, ExponentialSum
from .network_inputs import Input

SLACK = 1.02  # γ_k ≤ 1.02·ku, and the squares of small numbers
STATEMENT = (
    "sums over the set are linear in exponential heads, maxima are max-heads, and ReLUs interpolate functions of them; every"
    " error is bounded for n numbers by what it is for the largest n, see construction/set_functions/error_bound.py"
)


@dataclass(frozen=True)
class Inaccuracy:
    """How far an input is off: by its approximation, and by rounding. Sums: per number of the set."""

    approximation: float
    rounding: float

    @property
    def total(self) -> float:
        return self.approximation + self.rounding


def lemma_of(design: Design, ridges: float) -> Lemma:
    """The bound and its terms; `ridges` is what ridge polynomials are off by."""
    if not _within_range(design):
        return Lemma("nothing is proved: exponents leave the range of floats", {"unproved": math.inf})
    d, u = design, design.arithmetic.u
    terms = dict.fromkeys(("piecewise linear", "exponential sums", "smooth maximum", "stored numbers"), 0.0)
    rounding = size = 0.0
    for one in d.computed:
        terms["piecewise linear"] += one.profile.chords
        terms["stored numbers"] += one.profile.stored
        approximation, rounded, own = _term_error(d, one)
        for name, value in approximation.items():
            terms[name] += value
        rounding, size = rounding + rounded, size + own
    stored = Fraction(float(d.dtype(float(d.offset))))
    terms["stored numbers"] += float(abs(stored - d.offset)) * UP_MANY
    steps = d.units + 2 + 4 + (d.longest + 3 if d.readout == "mean" else 0)
    underflow = 64 * d.arithmetic.smallest * (d.units + 1) * d.longest * (1 + _heights(d))
    rounding += SLACK * steps * u * (size + abs(float(d.offset))) + underflow
    if ridges:
        terms["ridge polynomials"] = ridges
    found = {name: value * UP_MANY for name, value in terms.items() if value}
    return Lemma(STATEMENT, found | {"rounding": rounding * UP_MANY})


def _term_error(d: Design, one: Computed) -> tuple[dict[str, float], float, float]:
    """(what approximations of the inputs count for, rounding, how much the units add up to) of a term."""
    term, profile, u = one.term, one.profile, d.arithmetic.u
    names = ("exponential sums", "smooth maximum")
    approximation, moved, seen = dict.fromkeys(names, 0.0), 0.0, 0.0
    many = 1 if term.averaged else d.longest
    for w, v in zip(map(abs, term.weights), term.inputs, strict=True):
        error, factor = input_error(d, v), w * (many if v.summed else 1 / d.frame.scale)
        approximation[names[0] if v.summed else names[1]] += factor * error.approximation
        moved += factor * error.rounding
        base = 0.0 if v.summed else abs(d.frame.shift)
        seen += w * (max(abs(v.low), abs(v.high)) + base) + factor * error.total
    knots = max(map(abs, profile.knots))
    growth = 1.0
    if term.averaged:
        count = input_error(d, None).total
        growth = (1 + count) / (1 - count) if count < 0.5 else math.inf
        moved += knots * count
    steepest = profile.steepest * growth
    approximation = {name: steepest * value for name, value in approximation.items()}
    argument = SLACK * (len(term.inputs) + 4) * u * (seen + knots) * growth
    shift = moved + sum(approximation.values()) / steepest if steepest else moved
    rounding = steepest * moved + profile.heights * argument
    if term.averaged:
        rounding += input_error(d, None).total * profile.largest
    size = (profile.size + profile.heights * (shift + argument)) * growth
    return approximation, rounding, size


def input_error(d: Design, v: Input | None) -> Inaccuracy:
    """How far an input of the stream is off; None is n."""
    a, N, r, eta = d.arithmetic, d.longest, d.frame.reach, numbers_error(d)
    if v is None:
        return Inaccuracy(0.0, _sum_rounding(d, COUNT))
    if v.source == "own":
        return Inaccuracy(0.0, eta)
    if v.summed:
        return Inaccuracy(d.sums[v].error, _sum_rounding(d, d.sums[v]))
    average = rounded_up(average_error(N + 2, a)) * r + eta * SLACK + N * a.smallest
    if v.source == "mean":
        return Inaccuracy(0.0, average)
    short, H = shortfall(N) / d.sharpness * UP_MANY, GAP[a.dtype] * a.u + 2 * a.exp_error
    return Inaccuracy(short, math.expm1(2 * H) * short + average)


def numbers_error(d: Design) -> float:
    """η: how far a computed x̂ is off."""
    return d.arithmetic.u * d.frame.reach + d.arithmetic.lost(d.frame.scale)


def _sum_rounding(d: Design, found: ExponentialSum) -> float:
    """e_φ − ε_φ, per number of the set."""
    a, N, r, eta = d.arithmetic, d.longest, d.frame.reach, numbers_error(d)
    total, largest = 0.0, 0.0
    for beta, c, slope in zip(found.sharpness, found.constants, found.slopes, strict=True):
        A = d.anchor_score(beta)
        reach = abs(beta) * r
        theta = abs(beta) * eta + a.u * reach + a.u * (A + reach) + a.exp_error
        crowd = N * math.exp(reach - A)
        zeta = math.expm1(SLACK * (theta + a.exp_error + crowd + (N + 6) * a.u))
        lam = (1 + zeta) * (1 + SLACK * (N + 3) * a.u) - 1
        total += math.exp(reach) * (abs(c) * lam + abs(slope) * (lam * r + (1 + lam) * eta))
        total += N * a.smallest * abs(slope) * math.exp(A)
        largest = max(largest, lam)
    stored = SLACK * (2 * len(d.exponential) + 9) * a.u * found.amplitude(r) * (1 + largest)
    return (total + stored) * UP_MANY


def _within_range(d: Design) -> bool:
    """Whether all exponents of exponential heads are normal numbers, and scores and sums far from overflow."""
    a = d.arithmetic
    exponents = [d.anchor_score(beta) + abs(beta) * d.frame.reach for beta in d.exponential]
    sizes = [d.sums[v].amplitude(d.frame.reach) * math.exp(60.0) for v in d.inputs if v.summed]
    knots = [max(map(abs, one.profile.knots)) * one.profile.heights for one in d.computed]
    large = max([d.longest * d.silence, abs(d.masked), *knots, *(d.longest * size for size in sizes)])
    return max(exponents, default=0.0) < a.largest - 5 and large < a.overflow / 64


def _heights(d: Design) -> float:
    return math.fsum(one.profile.heights for one in d.computed)
