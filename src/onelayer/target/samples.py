"""Data: noiseless samples (x_i, y_i) of a function that cannot be evaluated anywhere else.

Samples are split once, by their own seed: nine in ten are fitted, the others are held out and only ever used to
observe the error. Equal samples count once; the same x with two different y is noise and is refused. "Noiseless" means
within the declared evaluation error, and a few units in the last place, of f.
"""

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from ..common.checks import LARGEST_SEED, require_whole
from ..common.errors import InputError
from ..common.numbers import counted, exact
from .domain import Domain
from .sides import MOST_VARIABLES

HELD_OUT = 10  # one sample in this many
ROUNDING = 2.0**-51  # share of |y|, four unit round-offs: a value this close to f(x) is called noiseless
LARGEST = 1e150  # as for the ends of a domain
CORNERS = 6  # with up to this many coordinates, the samples nearest to all corners are fitted


@dataclass(frozen=True, eq=False)
class Data:
    """Distinct samples in the order given; `rows` are their row numbers in X."""

    x: Float[np.ndarray, "sample coordinate"]
    y: Float[np.ndarray, "sample out"]
    rows: Int[np.ndarray, " sample"]
    shape: tuple[int, int] | None  # (n, d) if x was given as sequences
    output_shape: tuple[int, ...]
    error: float  # declared: how far a value may be from f
    seed: int  # of the split
    sha256: tuple[str, str]  # of X and Y as given, as little-endian float64 in row order

    def __len__(self) -> int:
        return len(self.x)

    def __str__(self) -> str:
        return f"{len(self):,} samples of {self.x.shape[1]} variable{'s' * (self.x.shape[1] > 1)}"

    @property
    def radius(self) -> Float[np.ndarray, "sample out"]:
        """How far f(x_i) may be from y_i."""
        return np.nextafter(self.error + ROUNDING * np.abs(self.y), np.inf)

    @cached_property
    def held_out(self) -> Int[np.ndarray, " held"]:
        """Samples that are never fitted: one in ten, at least one, at random; extreme ones only if there are no others."""
        free = np.setdiff1d(np.arange(len(self)), self.extremes)
        free = free if len(free) else np.arange(len(self))
        count = min(max(1, len(self) // HELD_OUT), len(free))
        return np.sort(np.random.default_rng(self.seed).permutation(free)[:count])

    @cached_property
    def fitted(self) -> Int[np.ndarray, " fitted"]:
        """All other samples."""
        return np.setdiff1d(np.arange(len(self)), self.held_out)

    @cached_property
    def extremes(self) -> Int[np.ndarray, " extreme"]:
        """The first and the last sample along every coordinate and, in few coordinates, those farthest into each corner."""
        found = [self.x.argmin(axis=0), self.x.argmax(axis=0)]
        D = self.x.shape[1]
        if D <= CORNERS:
            spread = np.ptp(self.x, axis=0)
            unit = (self.x - self.x.min(axis=0)) / np.where(spread > 0, spread, 1.0)
            signs = np.array(list(itertools.product((-1.0, 1.0), repeat=D)))
            found.append((unit @ signs.T).argmax(axis=0))
        return np.unique(np.concatenate(found))

    def draw(self, count: int, seed: int) -> Int[np.ndarray, " drawn"]:
        """At most `count` of the fitted samples at random, extreme ones first."""
        rng = np.random.default_rng(seed)
        first = np.intersect1d(self.fitted, self.extremes)
        others = np.setdiff1d(self.fitted, first)
        return np.concatenate([rng.permutation(first), rng.permutation(others)])[:count]

    def at(
        self, x: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, "point out"], Float[np.ndarray, "point out"]]:
        """(values, radius) at points that are samples; NaN and ∞ elsewhere."""
        place = np.array([self._place.get(point.tobytes(), -1) for point in np.ascontiguousarray(x + 0.0)], int)
        known = (place >= 0)[:, None]
        return np.where(known, self.y[place], np.nan), np.where(known, self.radius[place], np.inf)

    def box(self) -> list[tuple[float, float]]:
        """The smallest box around the samples."""
        low, high = self.x.min(axis=0), self.x.max(axis=0)
        flat = np.flatnonzero(~(high - low > 1e-290))
        if len(flat):
            name = f"x{flat[0] + 1}"
            found = f"{name} = {exact(low[flat[0]])} in all of them"
            raise InputError(f"samples that differ in {name}", found, f"leave {name} out, or give a domain")
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def sequence_shape(self, given: tuple[int, int] | None) -> tuple[int, int] | None:
        """(n, d) as X has it, or as given where X does not say."""
        if self.shape is None or given is None:
            return self.shape if given is None else given
        if tuple(given) != self.shape:
            raise InputError(f"shape {self.shape}, as X has it", f"{given}", "leave shape out, or reshape X")
        return self.shape

    def require_inside(self, domain: Domain) -> None:
        """Refuse samples outside the domain."""
        if self.x.shape[1] != domain.dimension:
            found = f"samples of {self.x.shape[1]} variables"
            raise InputError(f"samples of {domain.dimension} variables, as the domain has", found, "make the two agree")
        outside = np.flatnonzero(~domain.contains(self.x))
        if len(outside):
            found = f"sample {self.rows[outside[0]]} at x = {self.x[outside[0]].tolist()[:8]}"
            raise InputError(f"samples in the domain {domain}", found, "widen the domain, or leave the sample out")

    def record(self) -> dict[str, object]:
        """What a model folder says about the data; the samples themselves are not stored."""
        return {
            "samples": len(self),
            "held_out": len(self.held_out),
            "split": self.seed,
            "sha256": {"x": self.sha256[0], "y": self.sha256[1]},
        }

    @cached_property
    def _place(self) -> dict[bytes, int]:
        return {point.tobytes(): i for i, point in enumerate(self.x)}


def data_of(pair: tuple[Any, ...], error: float = 0.0, seed: int = 0) -> Data:
    """Data from (X, Y): X [N], [N, D] or [N, n, d], Y [N] or [N, …], NumPy or torch."""
    if len(pair) != 2:
        raise InputError("data as a pair (X, Y)", f"a tuple of {len(pair)}", "give inputs and outputs")
    X, Y = read_samples(*pair)
    if math.prod(X.shape[1:]) > MOST_VARIABLES:
        raise InputError(f"at most {MOST_VARIABLES} variables", f"{math.prod(X.shape[1:])}", "use fewer variables")
    if len(X) < 2:
        raise InputError("at least 2 samples", f"{len(X)}", "give more data")
    x, y = X.reshape(len(X), -1), Y.reshape(len(Y), -1)
    require_whole("split", seed, 0, LARGEST_SEED)
    rows = _distinct(x, y, error)
    if len(rows) < 2:
        raise InputError("at least 2 different samples", f"{len(rows)}", "give more data")
    x, y = x[rows], y[rows]
    for array in (x, y):
        array.setflags(write=False)
    shape = (X.shape[1], X.shape[2]) if X.ndim == 3 else None
    sums = tuple(hashlib.sha256(array.astype("<f8").tobytes()).hexdigest() for array in (X, Y))
    return Data(x, y, rows, shape, Y.shape[1:] or (1,), float(error), int(seed), (sums[0], sums[1]))


def require_function(data: Data | None, option: str) -> None:
    """Refuse samples where f must be evaluated at any point."""
    if data is not None:
        wanted = f"{option}, which needs a function that can be evaluated anywhere"
        raise InputError(wanted, str(data), "use method='solved', or give a formula")


def read_samples(
    X: Any, Y: Any, largest: float = LARGEST, row_names: Sequence[str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Samples as arrays of float64: X [N], [N, D] or [N, n, d] and Y [N] or [N, …], NumPy, torch or lists.

    Checked: at least one sample, as many answers as inputs, and every number finite and at most `largest` in size.
    """
    x, y = numbers_of("X", X), numbers_of("Y", Y)
    if x.ndim not in (1, 2, 3) or y.ndim == 0 or 0 in x.shape or 0 in y.shape[1:]:
        found = f"X of shape {list(x.shape)} and Y of shape {list(y.shape)}"
        raise InputError("X [N, D] or [N, n, d] and Y [N] or [N, …] with N ≥ 1", found, "reshape the data")
    if len(x) != len(y):
        found = f"{counted(len(x), 'input')} and {counted(len(y), 'answer')}"
        raise InputError("as many answers as inputs", found, "make the two agree")
    if row_names is not None and len(row_names) != len(x):
        found = f"{counted(len(row_names), 'name')}, {counted(len(x), 'row')}"
        raise InputError("a name for every row", found, "make the two agree")
    for name, array in (("X", x.reshape(len(x), -1)), ("Y", y.reshape(len(y), -1))):
        bad = ~(np.abs(array) <= largest)
        if bad.any():
            row = int(bad.any(axis=1).argmax())
            found = f"{exact(array[row][bad[row]][0])} in {name}, {row_name(row, row_names)}"
            change = "leave such samples out, or use other units"
            raise InputError(f"finite numbers, at most {exact(largest)} in size", found, change)
    return x, y


def read_weights(weights: Any, count: int) -> Float[np.ndarray, " sample"]:
    """A weight for each of `count` samples: finite, not negative, not all zero."""
    w = numbers_of("weights", weights).reshape(-1)
    if len(w) != count:
        found = f"{counted(len(w), 'weight')}, {counted(count, 'sample')}"
        raise InputError("a weight for every sample", found, "make the two agree")
    bad = w[~((w >= 0) & (w <= LARGEST))]
    if len(bad) or not w.any():
        found = exact(bad[0]) if len(bad) else "zero everywhere"
        raise InputError(f"weights ≥ 0, at most {exact(LARGEST)} and not all zero", found, "correct the weights")
    return w


def row_name(row: int, row_names: Sequence[str] | None) -> str:
    """The name of a sample in messages."""
    return f"row {row}" if row_names is None else row_names[row]


def numbers_of(name: str, given: Any) -> np.ndarray:
    """A copy as float64; −0 becomes 0, so that equal numbers have equal bytes."""
    try:
        array = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except (TypeError, ValueError) as error:
        raise InputError(f"numbers as {name}", " ".join(str(error).split())[:100], "pass an array") from None
    if array.dtype.kind not in "fiub":
        kind = f"{type(given).__name__} of {array.dtype}"
        raise InputError(f"real numbers as {name}", kind, "pass an array of floats")
    found = array.astype(np.float64, order="C") + 0.0
    long = name == "X" and array.dtype.itemsize >= 8
    if long and not np.array_equal(found.astype(np.longdouble), array, equal_nan=True):
        wide = f"longer numbers ({array.dtype})"
        raise InputError("X that float64 holds exactly", wide, "round X before f is evaluated")
    return found


def _distinct(x: np.ndarray, y: np.ndarray, error: float) -> np.ndarray:
    """The first of every set of equal samples; the same x with another y is refused."""
    first: dict[bytes, int] = {}
    for i, point in enumerate(x):
        k = first.setdefault(point.tobytes(), i)
        if k != i and np.abs(y[i] - y[k]).max() > 2 * error:
            found = f"samples {k} and {i} have the same x, and y = {y[k].tolist()[:8]} and {y[i].tolist()[:8]}"
            raise InputError("noiseless data", found, "keep one of the two, or declare evaluation_error")
    return np.array(list(first.values()), int)
