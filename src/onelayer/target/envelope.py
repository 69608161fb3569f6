"""Envelope: what samples and Lipschitz constants say about f everywhere (McShane 1934, Whitney 1934).

If |f(x) − f(x')| ≤ Σ_j L_j |x_j − x'_j| =: d(x, x') and |f(x_i) − y_i| ≤ e_i, then at every x

    max_i (y_i − e_i − d(x, x_i))  ≤  f(x)  ≤  min_i (y_i + e_i + d(x, x_i)),

and nothing better can be said: both sides are themselves functions with these constants through the samples. Half the gap
between them, the radius, is how far f is left open; it is at most e_i + d(x, x_i) for every i. One constant for all
coordinates means that constant along each of them, as everywhere in this library.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from ..common.errors import InputError
from ..common.numbers import at_least, exact
from ..common.outward import UP_FEW, U
from .domain import Domain
from .samples import Data

MOST_SAMPLES = 50_000  # every pair of samples is compared
AT_ONCE = 2**19  # distances held at a time
TINY = 1e-300  # covers every underflow
RANDOM_POINTS = 2_000  # at which the largest radius is looked for
FITTING_SHARE = 0.25  # share of the tolerance that T always gets


@dataclass(frozen=True, eq=False)
class Envelope:
    """The samples with f(x_i) in [low_i, high_i], and the constants L_j in the units of x."""

    data: Data
    lipschitz: tuple[float, ...]
    low: Float[np.ndarray, "sample out"]
    high: Float[np.ndarray, "sample out"]

    def __call__(
        self, points: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, "point out"], Float[np.ndarray, "point out"]]:
        """(values, radius): the middle of the envelope and half its width, |f − values| ≤ radius proved for floats.

        The smallest computed sum high_i + d_i is attained at a true sample, so the true upper side is at most that sum
        plus its own rounding: D + 1 roundings of d_i ≤ |sum| + |high_i|, and one of the sum. The lower side likewise.
        """
        shape = (len(points), self.low.shape[1])
        lower, upper = np.empty(shape), np.empty(shape)
        with np.errstate(all="ignore"):  # what overflows ends as an infinite radius
            for at, d in self._distances(points):
                for o in range(shape[1]):
                    lower[at, o] = (self.low[:, o] - d).max(axis=1)
                    upper[at, o] = (self.high[:, o] + d).min(axis=1)
            largest = max(float(np.abs(self.low).max()), float(np.abs(self.high).max()))
            roundings = 2 * (points.shape[1] + 5) * U
            lower -= roundings * (np.abs(lower) + largest) + TINY
            upper += roundings * (np.abs(upper) + largest) + TINY
            values = lower + (upper - lower) / 2
            radius = np.maximum(np.abs(upper - values), np.abs(values - lower)) * UP_FEW + TINY
        return values, np.where(np.isfinite(radius), radius, np.inf)

    def require_consistent(self) -> None:
        """Refuse samples that contradict the constants; the pair that does so most is named."""
        worst, pair = 0.0, (0, 0)
        for at, d in self._distances(self.data.x):
            for o in range(self.low.shape[1]):
                excess = self.low[at, o, None] - self.high[None, :, o] - d * UP_FEW
                most = int(excess.argmax())
                if excess.flat[most] > worst:
                    worst, pair = float(excess.flat[most]), (at.start + most // len(self.data), most % len(self.data))
        if worst == 0.0:
            return
        i, k = pair
        apart = float(np.abs(self.data.y[i] - self.data.y[k]).max())
        first, second = self.data.rows[i], self.data.rows[k]
        allowed = float(np.abs(self.data.x[i] - self.data.x[k]) @ np.array(self.lipschitz))
        factor = self._factor()
        larger = f"constants {factor:.4g} times as large fit the samples" if np.isfinite(factor) else "larger constants"
        raise InputError(
            f"samples that obey the declared Lipschitz constants {', '.join(map(exact, self.lipschitz[:8]))}",
            f"samples {first} and {second}, whose values differ by {exact(apart)} where {exact(allowed)} is allowed",
            f"{larger}; or declare evaluation_error",
        )

    def _factor(self) -> float:
        """The smallest factor by which the constants must grow to fit all samples, rounded up."""
        factor = 0.0
        with np.errstate(all="ignore"):
            for at, d in self._distances(self.data.x):
                for o in range(self.low.shape[1]):
                    excess = self.low[at, o, None] - self.high[None, :, o]
                    factor = max(factor, float(np.where(excess > 0, excess / d, 0.0).max()))
        return float(f"{factor * 1.0005:.4g}")

    def largest_radius(self, domain: Domain) -> float:
        """The largest radius found at random points and corners of the domain."""
        from .points import uniform_points

        points = domain.points(uniform_points(RANDOM_POINTS, domain.dimension, 0).numpy())
        return float(self(points[domain.contains(points)])[1].max(initial=0.0))

    def _distances(self, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        """d(x, x_i) for some points at a time, [point, sample]."""
        cdist = spatial().distance.cdist
        weights, step = np.array(self.lipschitz), max(1, AT_ONCE // len(self.data))
        for start in range(0, len(points), step):
            at = slice(start, min(start + step, len(points)))
            yield at, cdist(points[at], self.data.x, "cityblock", w=weights)


def envelope_of(data: Data, lipschitz: tuple[float, ...]) -> Envelope:
    """The envelope of consistent samples."""
    if len(data) > MOST_SAMPLES:
        wanted = f"at most {MOST_SAMPLES:,} samples with a Lipschitz constant"
        raise InputError(wanted, f"{len(data):,}", "thin them out, or leave the constant out")
    low, high = np.nextafter(data.y - data.radius, -np.inf), np.nextafter(data.y + data.radius, np.inf)
    envelope = Envelope(data, lipschitz, low, high)
    envelope.require_consistent()
    return envelope


def fitting_tolerance(uncertainty: float, tolerance: float) -> float:
    """The tolerance less the uncertainty of f, for the error of T; all of it where the uncertainty is larger: hopeless."""
    return max(tolerance - uncertainty, FITTING_SHARE * tolerance) if uncertainty <= tolerance else tolerance


def uncertainty_notes(uncertainty: float, tolerance: float) -> tuple[str, ...]:
    """A note where f is uncertain by more than the tolerance: no layer can be certified then."""
    if uncertainty <= tolerance:
        return ()
    found = f"the samples and the Lipschitz constants leave f open by ±{at_least(uncertainty, 3)} somewhere"
    return (f"{found}: more samples there, or smaller constants, or a larger tolerance",)


def estimated_slopes(data: Data) -> tuple[float, ...]:
    """1.5 times the steepest slope between neighbouring samples, in units of the sides: an estimate, not a bound."""
    sides = np.ptp(data.x, axis=0)
    sides = np.where(sides > 0, sides, 1.0)
    tree = spatial().cKDTree(data.x / sides)
    apart, near = tree.query(data.x / sides, k=min(len(data), 2 * len(sides) + 1), p=1)
    change = np.abs(data.y[near[:, 1:]] - data.y[:, None]).max(axis=2)  # the nearest sample is the sample itself
    steepest = float((change / np.maximum(apart[:, 1:], TINY)).max())
    return tuple((1.5 * steepest / sides).tolist())


def spatial() -> Any:
    """SciPy's distances and trees; importing them changes the warning filters, which are restored."""
    with warnings.catch_warnings():
        import scipy.spatial

        return scipy.spatial
