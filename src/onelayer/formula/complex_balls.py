"""Complex enclosures that prove analyticity.

For a box B ⊂ ℂ^D (a product of complex balls) a finite result proves two things: there is an analytic function on an
open neighbourhood of B that equals the formula at the real points of B, and its values on B lie in the result. A
non-finite result proves nothing.

  sqrt, log, powers   principal branch, the argument misses (−∞, 0]
  log1p               the argument misses (−∞, −1]
  softplus            |Im z| < π
  cbrt                Re z > 0, or Re z < 0: then −∛(−z)
  atan2(y, x)         Re x > 0, or Re y strictly apart from 0
  asin, acos          the argument misses (−∞, −1] ∪ [1, ∞)
  atan                the argument misses ±i·[1, ∞)
  1/z, tan, tanh, σ   no pole in the box
  abs, min, max, <    decided by real parts that are strictly apart on the whole box: |z| is z where Re z > 0 and −z
                      where Re z < 0, `where` is the one branch that its condition selects; else non-finite

Not guaranteed: tightness on wide boxes (balls are rectangles with a midpoint and radii).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from math import nan
from typing import TypeAlias

from flint import acb, arb, ctx

from ..common.errors import InputError
from ..common.numbers import counted
from .derived import continued
from .expression import Formula
from .functions import FUNCTIONS
from .real_balls import PRECISION, Truth, Undefined, complement, conjunction, disjunction
from .tape import Algebra

NOWHERE = acb(arb(nan), arb(nan))  # no enclosure

Map: TypeAlias = Callable[[acb], acb]


def _misses_cut(z: acb) -> bool:
    """Whether z misses (−∞, 0]."""
    return bool(z.real > 0) or not z.imag.contains(0)


def _off(cut_missed: Callable[[acb], bool], function: Map) -> Map:
    return lambda z: function(z) if z.is_finite() and cut_missed(z) else NOWHERE


def _misses_real_cuts(z: acb) -> bool:
    """Whether z misses (−∞, −1] ∪ [1, ∞)."""
    return bool(z.real > -1 and z.real < 1) or not z.imag.contains(0)


def _misses_imaginary_cuts(z: acb) -> bool:
    """Whether z misses ±i·[1, ∞)."""
    return bool(z.imag > -1 and z.imag < 1) or not z.real.contains(0)


def _strip_bound(height: arb) -> arb | None:
    """max(1, tan h) ≥ |tanh(x + iy)| for all |y| ≤ h, if h < π/2: |tanh|² = (sinh²x + sin²y)/(sinh²x + cos²y)."""
    if not height < arb.pi() / 2:
        return None
    slope = height.tan().upper()
    return slope if slope > 1 else arb(1)


def _hyperbolic_tangent(z: acb) -> acb:
    value = z.tanh()
    bound = _strip_bound(z.imag.abs_upper())
    if bound is None or (value.is_finite() and value.abs_upper() <= bound):
        return value
    side = arb(0, bound)
    return acb(side, side) if z.is_finite() else NOWHERE


def _sigmoid(z: acb) -> acb:
    growth = (z if z.real < 0 else -z).exp()
    value = (growth if z.real < 0 else 1) / (1 + growth)
    bound = _strip_bound((z.imag / 2).abs_upper())
    if bound is None or (value.is_finite() and value.abs_upper() <= (1 + bound) / 2):
        return value
    side = arb(0, (bound / 2).upper())
    return acb(side + arb(1) / 2, side) if z.is_finite() else NOWHERE


def _arcsine(z: acb) -> acb:
    """asin on a ball that misses its cuts; where flint gives up, the mean value form asin(c) + (z − c)·asin′(z).

    The ball is convex and the enclosure of asin′ = 1/(√(1 − z)·√(1 + z)) is convex, so the form encloses.
    """
    value = z.asin()
    if value.is_finite():
        return value
    centre = acb(z.real.mid(), z.imag.mid())
    return centre.asin() + (z - centre) / ((1 - z).sqrt(analytic=True) * (1 + z).sqrt(analytic=True))


def _cardinal_sine(z: acb) -> acb:
    """sinc, entire: flint's enclosure, or the mean value form with |sinc′(z)| ≤ |z|·cosh(Im z)/3, whichever is smaller.

    sinc′(z) = −∫t sin(tz)dt over [0, 1], and |sin(tz)| ≤ t|z|·cosh(t·Im z).
    """
    value = z.sinc()
    centre = acb(z.real.mid(), z.imag.mid())
    reach = (z - centre).abs_upper() * z.abs_upper() * z.imag.abs_upper().cosh() / 3
    around = centre.sinc() + acb(arb(0, 1), arb(0, 1)) * reach
    smaller = not value.is_finite() or (around.is_finite() and around.rad() < value.rad())
    return around if smaller else value


def _relative_exponential(z: acb) -> acb:
    """(e^z − 1)/z = e^(z/2)·sinc(iz/2)."""
    return (z / 2).exp() * _cardinal_sine(z * acb(0, 1) / 2)


def _slope(name: str, z: acb) -> acb:
    """sinc′ or exprel′ by the mean value form, from −c/3·₀F₁(5/2; −c²/4) or ½·₁F₁(2; 3; c) at the centre c of the ball.

    |sinc″(z)| = |∫t² cos(tz)dt| ≤ cosh(Im z)/3, |exprel″(z)| = |∫t² e^(tz)dt| ≤ max(1, e^Re z)/3, the integrals over [0, 1].
    """
    centre = acb(z.real.mid(), z.imag.mid())
    if name == "sinc":
        at, steepest = -centre / 3 * (-centre * centre / 4).hypgeom_0f1(acb(2.5)), z.imag.abs_upper().cosh()
    else:
        at, steepest = centre.hypgeom_1f1(acb(2), acb(3)) / 2, 1 + z.real.upper().exp()
    return at + acb(arb(0, 1), arb(0, 1)) * ((z - centre).abs_upper() * steepest / 3).abs_upper()


def _softplus(z: acb) -> acb:
    """log(1 + e^z) in the strip |Im z| < π, where e^z is never a number ≤ −1; else by the mean value form with slope σ."""
    if not (z.is_finite() and z.imag.abs_upper() < arb.pi()):
        return NOWHERE
    right = bool(z.real > 0)
    grown = 1 + (-z if right else z).exp()
    if _misses_cut(grown):
        value = grown.log(analytic=True)
        return z + value if right else value
    centre = acb(z.real.mid(), z.imag.mid())
    far = bool(centre.real > 0)
    at_centre = (1 + (-centre if far else centre).exp()).log(analytic=True) + (centre if far else 0)
    return at_centre + (z - centre) * _sigmoid(z)


def _cube_root(z: acb) -> acb:
    third = acb(arb(1) / 3)
    if z.real > 0:
        return z.pow(third, analytic=True)
    return -(-z).pow(third, analytic=True) if z.real < 0 else NOWHERE


def _angle(y: acb, x: acb) -> acb:
    """atan2(y, x), continued from the real points of the box."""
    if not (y.is_finite() and x.is_finite()):
        return NOWHERE
    atan = _MAPS["atan"]
    if x.real > 0:
        return atan(y / x)
    if y.real > 0 or y.real < 0:
        return (acb.pi() / 2 if y.real > 0 else -acb.pi() / 2) - atan(x / y)
    return NOWHERE


def _absolute(z: acb) -> acb:
    return z if z.real > 0 else -z if z.real < 0 else NOWHERE


_MAPS: dict[str, Map] = {
    "sin": acb.sin,
    "cos": acb.cos,
    "tan": acb.tan,
    "exp": acb.exp,
    "log": _off(_misses_cut, lambda z: z.log(analytic=True)),
    "sqrt": _off(_misses_cut, lambda z: z.sqrt(analytic=True)),
    "tanh": _hyperbolic_tangent,
    "sinh": acb.sinh,
    "cosh": acb.cosh,
    "atan": _off(_misses_imaginary_cuts, acb.atan),
    "asin": _off(_misses_real_cuts, _arcsine),
    "acos": _off(_misses_real_cuts, lambda z: acb.pi() / 2 - _arcsine(z)),
    "sigmoid": _sigmoid,
    "erf": acb.erf,
    "expm1": acb.expm1,
    "log1p": _off(lambda z: _misses_cut(1 + z), acb.log1p),
    "softplus": _softplus,
    "sinc": _cardinal_sine,
    "exprel": _relative_exponential,
    "cbrt": _cube_root,
    "abs": _absolute,
    "sqr": lambda z: z * z,
}
_MAPS = {name: partial(continued, f) for name, f in FUNCTIONS.items()} | _MAPS  # what is written above is sharper


class ComplexAlgebra(Algebra[acb, Truth]):
    """Complex balls at the current precision over one box; non-finite means not proved analytic."""

    def __init__(self, box: Sequence[acb]) -> None:
        self.box = box
        self.key = ctx.prec

    def number(self, value: Fraction) -> acb:
        return acb(arb(value.numerator) / value.denominator)

    def constant(self, name: str) -> acb:
        return acb(arb.pi() if name == "pi" else arb.const_e())

    def variable(self, index: int) -> acb:
        return self.box[index - 1]

    def sum(self, terms: Sequence[acb]) -> acb:
        return _finite(sum(terms[1:], terms[0]))

    def negation(self, operand: acb) -> acb:
        return -operand

    def product(self, factors: Sequence[acb]) -> acb:
        result = factors[0]
        for factor in factors[1:]:
            result = result * factor
        return _finite(result)

    def quotient(self, dividend: acb, divisor: acb) -> acb:
        return _finite(dividend / divisor)

    def integer_power(self, exponent: int, base: acb) -> acb:
        if not base.is_finite():
            return NOWHERE
        return _finite(base * base if exponent == 2 else base**exponent)

    def rational_power(self, exponent: Fraction, base: acb) -> acb:
        if not (base.is_finite() and _misses_cut(base)):
            return NOWHERE
        return _finite(base.pow(acb(arb(exponent.numerator) / exponent.denominator), analytic=True))

    def power(self, base: acb, exponent: acb) -> acb:
        return _finite((exponent * _MAPS["log"](base)).exp())

    def call(self, name: str, arguments: Sequence[acb]) -> acb:
        if name in ("min", "max"):
            return _extreme(arguments, largest=name == "max")
        return _finite(_angle(*arguments) if name == "atan2" else _MAPS[name](arguments[0]))

    def slope_of(self, name: str, dividend: acb, argument: acb) -> acb:
        if not (dividend.is_finite() and argument.is_finite()):
            return NOWHERE
        whole, around = dividend / argument, _slope(name, argument)
        smaller = not whole.is_finite() or (around.is_finite() and around.rad() < whole.rad())
        return _finite(around if smaller else whole)

    def where(self, condition: Truth, yes: acb, no: acb) -> acb:
        return NOWHERE if condition is None or isinstance(condition, Undefined) else yes if condition else no

    def comparison(self, relation: str, left: acb, right: acb) -> Truth:
        if not (left.is_finite() and right.is_finite()):
            return Undefined()
        below, above = bool(left.real < right.real), bool(left.real > right.real)
        return (below if relation in ("<", "<=") else above) if below or above else None

    def conjunction(self, parts: Sequence[Truth]) -> Truth:
        return conjunction(parts)

    def disjunction(self, parts: Sequence[Truth]) -> Truth:
        return disjunction(parts)

    def complement(self, part: Truth) -> Truth:
        return complement(part)


def _finite(z: acb) -> acb:
    return z if z.is_finite() else NOWHERE


def _extreme(arguments: Sequence[acb], largest: bool) -> acb:
    """The argument whose real part is strictly the smallest (largest) on the whole box."""
    if not all(z.is_finite() for z in arguments):
        return NOWHERE
    for place, z in enumerate(arguments):
        others = [other for index, other in enumerate(arguments) if index != place]
        if all((z.real > other.real) if largest else (z.real < other.real) for other in others):
            return z
    return NOWHERE


def enclose_complex(formula: Formula, box: Sequence[acb], prec: int = PRECISION) -> list[acb]:
    """For every output a complex ball; if finite, the output is analytic on the box and its values lie in the ball."""
    if len(box) < formula.dimension:
        asked = f"a box with {counted(formula.dimension, 'side')}"
        raise InputError(asked, counted(len(box), "side"), "give one ball per variable")
    with ctx.workprec(prec):
        sides = [_finite(acb(side)) for side in box]
        values: list[acb] = formula.tape.run(ComplexAlgebra(sides))
        return values
