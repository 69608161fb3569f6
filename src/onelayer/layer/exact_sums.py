"""The stream of one row, and what the feed-forward network and the read-out make of it; sums and products that are exact.

The ways in which a coefficient can arise are counted: a product of matrices gives, besides its value, the number of
non-zero terms of every entry. With one term there is nothing to add, and a product of floats with p and q significant bits
is exact if p + q ≤ 53 or if one of them is a power of two. Digits of one number (`digits`) are added without rounding.
"""

from dataclasses import dataclass, replace

import numpy as np

from ..common.outward import UP, U
from ..model.config import LayerConfig
from .arithmetic import Arithmetic

ROUNDED = 1e-4  # share of all terms of a unit, more than rounding changes in layers that are not very large
SMALLEST = 2.0**-1022  # below this a product may be rounded more than once; nothing we read is that small


def powers_of_two(a: np.ndarray) -> bool:
    """Whether every number is 0 or ± a power of two."""
    return bool(((a == 0) | (np.abs(np.frexp(a)[0]) == 0.5)).all())


def bits(a: np.ndarray) -> np.ndarray:
    """Significant bits of every float: 1 for powers of two (and 0), at most 53."""
    whole = np.abs(np.frexp(a)[0] * 2.0**53).astype(np.int64)
    lowest = np.where(whole == 0, 1, whole & -whole)
    return np.where(whole == 0, 1, 53 - np.frexp(lowest.astype(np.float64))[1] + 1)


def unrounded_sums(left: np.ndarray, right: np.ndarray, arithmetic: Arithmetic) -> np.ndarray:
    """Which entries of left @ right are computed without rounding, in whatever order their terms are added.

    All terms are multiples of g, a power of two, and their absolute values add up to at most g/u: so is every partial sum, and
    multiples of g up to g/u are floats.
    """
    finest = np.full((len(right), len(left), right.shape[-1]), np.inf)
    for i in range(left.shape[1]):
        a, b = left[None, :, i, None], right[:, None, i, :]
        finest = np.minimum(finest, np.where((a != 0) & (b != 0), lowest_bit(a) * lowest_bit(b), np.inf))
    total = np.abs(left) @ np.abs(right) * UP
    return np.asarray((finest >= arithmetic.smallest) & (total <= finest / arithmetic.u))


def lowest_bit(a: np.ndarray) -> np.ndarray:
    """The largest power of two that every float is a multiple of; 1 for 0."""
    exponent = np.frexp(a)[1]
    return np.where(a == 0, 1.0, np.ldexp(1.0, exponent - bits(a)))


def summed(
    left: np.ndarray, right: np.ndarray, arithmetic: Arithmetic | None = None, significant: int = 53
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(left @ right, non-zero terms, exact): left [token, model], right [head, model, width] → [head, token, width].

    Given the arithmetic that they are computed in, several terms that are added without rounding count as one. A product is
    exact if it has no more than this many `significant` bits.
    """
    ways = (left != 0).astype(np.int64) @ (right != 0).astype(np.int64)
    if arithmetic is not None and (ways > 1).any():
        ways = np.where(unrounded_sums(left, right, arithmetic), np.minimum(ways, 1), ways)
    found = left @ right
    inexact = np.zeros(ways.shape, dtype=bool)
    if not (powers_of_two(left) or powers_of_two(right)):
        for i in range(left.shape[1]):
            both = (left[None, :, i, None] != 0) & (right[:, None, i, :] != 0)
            a, b = bits(left[None, :, i, None]), bits(right[:, None, i, :])
            inexact |= both & ~((a + b <= significant) | (a == 1) | (b == 1))
    exact = (ways <= 1) & ~inexact & ((found == 0) == (ways == 0)) & ((found == 0) | (np.abs(found) >= SMALLEST))
    return found, ways, exact


def product(
    v: np.ndarray, ways: np.ndarray, exact: np.ndarray, W: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(v @ W, its errors, [head, token]: whether all entries have one way and exact factors); v [head, token, width]."""
    paths = ways @ (W != 0).astype(np.int64)
    unclear = (~exact).astype(np.int64) @ (W != 0).astype(np.int64)
    found = v @ W
    free = np.zeros(found.shape, dtype=bool)
    for i in range(v.shape[-1]):
        a, b = bits(v[..., i])[..., None], bits(W[:, None, i, :])
        free |= (v[..., i] != 0)[..., None] & (W[:, None, i, :] != 0) & ((a + b <= 53) | (a == 1) | (b == 1))
    error = np.where((found == 0) & (paths == 0) | free, 0.0, U * np.abs(found) * UP)
    normal = (found == 0) == (paths == 0)
    normal &= (found == 0) | (np.abs(found) >= SMALLEST)
    fine = ((paths <= 1) & (unclear == 0) & normal & np.isfinite(found)).all(axis=-1)
    return found, error, fine


def meets_itself(used: np.ndarray, W_O: np.ndarray, A: np.ndarray) -> np.ndarray:
    """[head]: whether a head reaches an output in several ways, by the columns of its values in use and stream coordinates.

    Its tokens may go different ways, too: what each way carries is added up over all heads, and cancels only afterwards.
    """
    ways: np.ndarray = used.astype(np.int64)[:, None] @ (W_O != 0).astype(np.int64) @ (A != 0).astype(np.int64)
    return ways[:, 0].max(axis=-1) > 1


def underflow(w: dict[str, np.ndarray], c: LayerConfig, smallest: float) -> np.ndarray:
    """Per output: what products below the smallest normal number can do, each followed to the end in absolute values."""
    v = smallest * np.abs(w["W_V"]).sum(axis=1) + (c.d_model + 1) * smallest  # [head, width]: x̂·W_E, and values
    z = v.flatten() + (c.all_tokens + 2) * smallest
    h = z @ np.abs(w["W_O"]) + (c.heads * c.d_v + 2) * smallest
    u = h @ np.abs(w["W_1"]) + (c.d_model + 1) * smallest
    f = u @ np.abs(w["W_2"]) + h + (c.ffn_width + 2) * smallest
    return np.asarray((f @ np.abs(w["W_R"]) + (c.d_model + 1) * smallest) * 2)


def every_way(w: dict[str, np.ndarray], c: LayerConfig, off: np.ndarray) -> np.ndarray:
    """Per output: what numbers of size `off` in the stream [model] can do, through all units, silent ones and hinges included.

    A ReLU moves at most as much as its argument, whatever that is.
    """
    moved = (off @ np.abs(w["W_1"])) @ np.abs(w["W_2"]) + (off if c.residual else 0.0)
    return np.asarray(moved @ np.abs(w["W_R"]) * UP)


@dataclass(frozen=True)
class Stream:
    """The affine part of a row's stream after attention, constant + x̂·linear, and what is uncertain about it."""

    constant: np.ndarray  # [model]
    linear: np.ndarray  # [coordinate, model]
    sizes: np.ndarray  # [model]: sum of the absolute values of all terms, on the box
    gathered: np.ndarray  # [model]: those of them that are constants of heads, which all heads are added up with
    terms: np.ndarray  # [model]: how many constants and slopes are added up
    error: np.ndarray  # [model], on the box

    @staticmethod
    def of_row(constant: np.ndarray, slopes: np.ndarray, row: int, c: LayerConfig, edge: float) -> "Stream":
        """The residual of a row (zero without residuals)."""
        f, D = c.features_in, c.tokens * c.features_in
        linear = np.zeros((D, c.d_model))
        kept = constant if c.residual else np.zeros_like(constant)
        if c.residual and row < c.tokens:
            linear[row * f : (row + 1) * f] = slopes
        terms = (kept != 0).astype(np.int64) + (linear != 0).sum(axis=0)
        sizes = np.abs(kept) + np.abs(linear).sum(axis=0) * edge
        return Stream(kept, linear, sizes, np.zeros(c.d_model), terms, np.zeros(c.d_model))

    def with_heads(
        self,
        values: np.ndarray,
        moves: np.ndarray,
        values_error: np.ndarray,
        moves_error: np.ndarray,
        alone: np.ndarray,
        token: np.ndarray,
        data: int,
        features: int,
        edge: float,
    ) -> "Stream":
        """With the heads that attend to one token: its value, affine in x̂."""
        constant, linear, sizes = self.constant.copy(), self.linear.copy(), self.sizes.copy()
        gathered, terms, error = self.gathered.copy(), self.terms.copy(), self.error.copy()
        for h in np.flatnonzero(alone).tolist():
            t = int(token[h])
            constant += values[h, t]
            gathered += np.abs(values[h, t])
            sizes += np.abs(values[h, t])
            terms += values[h, t] != 0
            error += values_error[h, t]
            if t < data:
                linear[t * features : (t + 1) * features] += moves[h]
                sizes += np.abs(moves[h]).sum(axis=0) * edge
                terms += (moves[h] != 0).sum(axis=0)
                error += moves_error[h].sum(axis=0) * edge
        inexact = terms > (constant != 0).astype(np.int64) + (linear != 0).sum(axis=0)
        error = error + np.where(inexact, terms * U * sizes * UP, 0.0)
        return replace(
            self, constant=constant, linear=linear, sizes=sizes, gathered=gathered, terms=terms, error=error * UP
        )


@dataclass(frozen=True)
class Passed:
    """What FFN and read-out make of a stream h: h·matrix + constant, affine part x̂·linear, and hinges."""

    matrix: np.ndarray  # [model, out], zeros and powers of two for all that heads move
    constant: np.ndarray  # [out]
    linear: np.ndarray  # [coordinate, out]
    error: np.ndarray  # [out]
    passed: np.ndarray  # [out]: constants added and subtracted again, in absolute value
    constants: np.ndarray  # [out]: likewise, of heads with one token
    directions: np.ndarray
    offsets: np.ndarray
    hinge_values: np.ndarray
    steps: int


def feed_forward(
    w: dict[str, np.ndarray],
    c: LayerConfig,
    stream: Stream,
    moving: np.ndarray,
    bound: np.ndarray,
    edge: float,
    u: float,
) -> Passed | None:
    """The FFN on a stream whose heads move the coordinates `moving` by at most `bound`; None if it is not piecewise linear."""
    W_1, b_1, W_2, b_2, W_R, b_R = (w[name] for name in ("W_1", "b_1", "W_2", "b_2", "W_R", "b_R"))
    matters = (W_2 != 0).any(axis=1)
    size = bound + np.abs(stream.linear).sum(axis=0) * edge + stream.error
    middle = stream.constant @ W_1 + b_1
    around = size @ np.abs(W_1)
    share = max(ROUNDED, 4 * (c.all_tokens + c.heads * c.d_v + c.d_model + 16) * u)
    around = (around + share * (around + stream.sizes @ np.abs(W_1) + np.abs(b_1))) * UP
    carried = moving | (stream.linear != 0).any(axis=0)
    plain = np.array([powers_of_two(column) for column in W_1[carried].T], dtype=bool)
    linear = matters & (middle > around) & plain
    silent = matters & (middle < -around)
    open_ = np.flatnonzero(matters & ~linear & ~silent).tolist()
    partner: dict[bytes, int] = {}
    for i in open_:
        key = np.concatenate([W_1[:, i], b_1[i : i + 1], W_2[i]])
        other = partner.pop((-key + 0.0).tobytes(), None)
        if other is None:
            partner[(key + 0.0).tobytes()] = i
        else:
            linear[other] = True  # relu(z) − relu(−z) = z
    hinges = sorted(partner.values())
    units = np.flatnonzero(linear)
    inner, outer = W_1[:, units], W_2[units] @ W_R
    outer_ways = (W_2[units] != 0).astype(np.int64) @ (W_R != 0).astype(np.int64)
    if (outer_ways > 1).any() or (np.abs(outer[outer_ways > 0]) < SMALLEST).any():
        return None  # what cancels there is rounded all the same
    ways = (inner != 0).astype(np.int64) @ outer_ways
    matrix = inner @ outer
    if (np.abs(matrix[carried]) < SMALLEST)[ways[carried] == 1].any():
        return None
    if c.residual:
        matrix = matrix + W_R
        ways = ways + (W_R != 0)
    straight = _straight(w, stream, moving)
    if (ways[carried] > 1).any() or not powers_of_two(matrix[carried & ~straight]):
        return None
    if not (powers_of_two(W_R[~straight]) and powers_of_two(W_2[units]) and plain[units].all()):
        return None
    slopes = stream.linear[:, straight, None] * matrix[straight]
    if not ((np.abs(slopes) >= SMALLEST) | (stream.linear[:, straight, None] == 0) | (matrix[straight] == 0)).all():
        return None
    constants = [(stream.constant @ inner + b_1[units]) @ outer, b_2 @ W_R, b_R]
    sizes = (
        (stream.sizes @ np.abs(inner) + np.abs(b_1[units])) @ np.abs(outer) + np.abs(b_2) @ np.abs(W_R) + np.abs(b_R)
    )
    terms = [(stream.constant != 0) @ (inner != 0).astype(np.int64) + (b_1[units] != 0), (b_2 != 0), (b_R != 0)]
    count = terms[0] @ (outer != 0).astype(np.int64) + terms[1] @ (W_R != 0).astype(np.int64) + terms[2]
    if c.residual:
        constants.append(stream.constant @ W_R)
        sizes = sizes + stream.sizes @ np.abs(W_R)
        count = count + (stream.constant != 0) @ (W_R != 0).astype(np.int64)
    constant = np.sum(constants, axis=0)
    rounded = (count > 1) | (not powers_of_two(inner[stream.constant != 0])) | (sizes < SMALLEST)
    every_way = np.abs(inner) @ np.abs(outer) + (np.abs(W_R) if c.residual else 0.0)  # which may cancel in the matrix
    error = stream.error @ every_way + np.where(rounded & (sizes > 0), (count + 4) * U * sizes + SMALLEST, 0.0)
    found = _hinges(W_1[:, hinges], b_1[hinges], W_2[hinges] @ W_R, stream, moving)
    if found is None or ((W_2[hinges] != 0).astype(np.int64) @ (W_R != 0).astype(np.int64) > 1).any():
        return None
    meeting = int((carried[:, None] & (matrix != 0)).sum(axis=0).max(initial=1))  # coordinates that are added up
    steps = int(count.max(initial=0)) + len(hinges) + meeting - 1
    passed = np.where(count > 1, sizes, 0.0)
    several = stream.terms > (stream.constant != 0).astype(np.int64) + (stream.linear != 0).sum(axis=0)
    constants = np.where(several, stream.sizes, 0.0) @ every_way * UP
    constants = constants + np.where(count > 1, np.where(several, 0.0, stream.gathered) @ every_way, 0.0) * UP
    twice = ((stream.linear != 0).astype(np.int64) @ (matrix != 0).astype(np.int64) > 1).any(axis=0)
    meeting_slopes = np.where(twice, stream.sizes @ every_way, 0.0)  # one x̂ along several coordinates may cancel
    error, constants = error + (c.d_model + 4) * U * meeting_slopes, constants + meeting_slopes * UP
    return Passed(matrix, constant, stream.linear @ matrix, error * UP, passed, constants, *found, steps)


def _straight(w: dict[str, np.ndarray], stream: Stream, moving: np.ndarray) -> np.ndarray:
    """The coordinates that hold x̂ times a power of two and nothing else: what the read-out makes of them may be any float.

    No head moves them, no constant is added to them and the FFN does not write to them; so a slope is one exact product.
    """
    alone = stream.terms == (stream.linear != 0).sum(axis=0)
    powers = np.array([powers_of_two(column) for column in stream.linear.T], dtype=bool)
    written = (w["W_2"] != 0).any(axis=0) | (w["b_2"] != 0)
    nothing_else = (stream.constant == 0) & (stream.error == 0) & ~moving & ~written
    return np.asarray((stream.linear != 0).any(axis=0) & alone & powers & nothing_else)


def _hinges(
    inner: np.ndarray, b: np.ndarray, outer: np.ndarray, stream: Stream, moving: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """(directions, offsets, values) of units whose pre-activation is affine; None if one is not, or is not known exactly."""
    used = (inner != 0).any(axis=1)
    if (moving & used).any() or (stream.error[used] != 0).any() or (stream.constant[used] != 0).any():
        return None
    ways = (stream.linear != 0).astype(np.int64) @ (inner != 0).astype(np.int64)
    if (ways > 1).any() or not powers_of_two(stream.linear[:, used]):
        return None
    return (stream.linear @ inner).T.copy(), b.copy(), outer
