"""A function of one number as a sum of ReLUs: chords between knots, each proved to be close to the function.

Knots are floats of the layer's type. An interval is halved until its chord c is proved to keep |h − c| ≤ the tolerance, by a
Taylor model of h on the interval minus the chord, or by plain bounds of both where the model breaks down. As everywhere, h is
f̃ of `real_balls`: sqrt is continued by 0 where rounding makes its argument a little negative.
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ...common.errors import InputError
from ...common.numbers import exact
from ...common.outward import UP_FEW, UP_MANY, U
from ...formula import Formula, evaluate
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.series import Space, Taylor
from ...formula.tree import Number, Sum, Variable, substituted
from ..gallery.tokens.piecewise_linear import Decoder, Unit, decoder_through

MOST_UNITS = 4096
LOOKED_AT = 257  # points at which the function must have a value


@dataclass(frozen=True)
class Profile:
    """The ReLUs of a function h(base + t) of t, with stored heights, and |h − what they add up to| ≤ `chords` + `stored`."""

    decoder: Decoder
    knots: tuple[float, ...]
    chords: float
    stored: float

    @property
    def steepest(self) -> float:
        """The Lipschitz constant of the sum of ReLUs on the whole line, rounded up."""
        values = [self.decoder(Fraction(t)) for t in self.knots]
        slopes = [
            abs((values[i + 1] - values[i]) / (Fraction(self.knots[i + 1]) - Fraction(self.knots[i])))
            for i in range(len(values) - 1)
        ]
        return float(max(slopes)) * UP_MANY

    @property
    def largest(self) -> float:
        """The most that the ReLUs, without the offset, add up to between the knots, rounded up."""
        return max(abs(float(self.decoder(Fraction(t)) - self.decoder.offset)) for t in self.knots) * UP_MANY

    @property
    def size(self) -> float:
        """Σ |height|·relu between the knots, without the offset: how much is added up."""
        ends = (Fraction(self.knots[0]), Fraction(self.knots[-1]))
        return max(float(self.decoder.size(t) - abs(self.decoder.offset)) for t in ends) * UP_MANY

    @property
    def heights(self) -> float:
        """Σ |height|, rounded up."""
        return float(sum(abs(unit.height) for unit in self.decoder.units)) * UP_MANY


def profile_of(outer: Formula, base: Fraction, ends: tuple[float, float], tolerance: float, dtype: type) -> Profile:
    """ReLUs for t ↦ outer(base + t) between the ends; `dtype` is NumPy's type of the stored numbers."""
    moved = substituted(
        outer.outputs[0], lambda tree: Sum((Variable(1), Number(base))) if tree == Variable(1) else None
    )
    h = Formula("", ("u",), (moved,))
    _require_values(h, ends)
    low, high = _outward(ends[0], dtype, -np.inf), _outward(ends[1], dtype, np.inf)
    high = high if high > low else float(np.nextafter(dtype(low), dtype(np.inf)))
    knots = np.unique([low, float(dtype((low + high) / 2)), high])  # neighbouring floats have no middle
    while True:
        values = _values(h, knots)
        errors = chord_errors(h, knots, values)
        wide = ~(errors <= tolerance)
        if not wide.any():
            break
        middle = (knots[:-1][wide] / 2 + knots[1:][wide] / 2).astype(dtype).astype(float)
        finer = np.unique(np.concatenate([knots, middle]))
        if len(finer) > MOST_UNITS or len(finer) < len(knots) + int(wide.sum()):
            found = f"more than {MOST_UNITS} ReLUs, or a jump"
            raise InputError(f"a function within {exact(tolerance)}", found, "ask for a larger tolerance")
        knots = finer
    nodes = [(Fraction(t), Fraction(float(y))) for t, y in zip(knots.tolist(), values.tolist(), strict=True)]
    planned = decoder_through(nodes, len(nodes) // 2)
    units = tuple(Unit(one.side, one.knot, Fraction(float(dtype(float(one.height))))) for one in planned.units)
    decoder = Decoder(planned.offset, units)
    stored = max(abs(decoder(t) - y) for t, y in nodes)
    return Profile(decoder, tuple(knots.tolist()), float(errors.max()), float(stored) * UP_FEW)


def chord_errors(h: Formula, knots: np.ndarray, values: np.ndarray) -> np.ndarray:
    """A bound on |h − chord| for every interval between neighbouring knots; ∞ where there is none."""
    space = Space(knots[:-1, None], knots[1:, None])
    found: Enclosed = h.tape.run(TaylorAlgebra(space))[0]
    left, right = values[:-1], values[1:]
    c, size = found.model.c.copy(), np.abs(left) + np.abs(right)
    with np.errstate(all="ignore"):
        c[0] -= (left + right) / 2
        c[1] -= (right - left) / 2  # on the interval itself, which the space exceeds by UP_FEW and a step of floats
        step = np.abs(right - left) * (4 * U * np.abs(knots).max() / np.diff(knots) + 2e-12)
        gap = Taylor(space, c, found.model.r + step + 8 * U * (size + np.abs(found.model.c[0])), found.model.a)
        smooth = gap.size()
        plain = np.maximum(found.high - np.minimum(left, right), np.maximum(left, right) - found.low) * UP_FEW
        best = np.fmin(smooth, plain)
    return np.where(np.isnan(best), np.inf, best)


def _outward(end: float, dtype: type, towards: float) -> float:
    """The end as a number of the type, or the next one outside."""
    near = dtype(end)
    inside = float(near) > end if towards < 0 else float(near) < end
    return float(np.nextafter(near, dtype(towards))) if inside else float(near)


def _values(h: Formula, knots: np.ndarray) -> np.ndarray:
    """h at the knots, about; what they miss of it counts in the errors of the chords."""
    found: Enclosed = h.tape.run(TaylorAlgebra(Space(knots[:, None], knots[:, None])))[0]
    with np.errstate(all="ignore"):
        return np.asarray(found.low / 2 + found.high / 2)


def _require_values(h: Formula, ends: tuple[float, float]) -> None:
    """Refuse a function that has no value somewhere between the ends."""
    inside = np.linspace(*ends, LOOKED_AT)[1:-1]
    with np.errstate(all="ignore"):
        values = np.asarray(evaluate(h, inside[:, None]))[:, 0]
    if not np.isfinite(values).all():
        raise InputError("a function with a value for every set", "none for some sets", "choose another domain")
