"""The fill distance of samples: how far a point of a box can be from the nearest of them, sup_x min_j |x − x_j|.

No method knows more: a function that is 0 at all samples may be as large as its steepest slope times this, or as small.
"""

import numpy as np
from jaxtyping import Float

from ...common.outward import UP, U
from ...target.domain import Domain

CLOSE = 1e-4  # share: how far above the true value the bound may be


def fill_distance(
    domain: Domain, x: Float[np.ndarray, "sample coordinate"]
) -> tuple[float, Float[np.ndarray, " coordinate"]]:
    """(a proved upper bound of sup_x min_j |x − x_j| over the box, a point where it is nearly reached), by bisection.

    In a box with centre c and half-widths r no point is farther from x_j than √Σ_i (|c_i − x_ji| + r_i)². That holds for every
    j, so that it does not matter whether the sample that the tree calls nearest to c is.
    """
    from scipy.spatial import cKDTree  # slow to import

    tree = cKDTree(x)
    low, high = np.array(domain.lower), np.array(domain.upper)
    gap = 4 * U * float(np.abs([low, high]).max())  # more than rounding moves a centre: boxes overlap by it
    centres, halves = ((low + high) / 2)[None], ((high - low) / 2 * UP + gap)[None]
    reached, hole, finest = 0.0, centres[0], 0.0
    while len(centres):
        distance, nearest = tree.query(centres)
        best = int(distance.argmax())
        if distance[best] > reached:
            reached, hole = float(distance[best]), np.clip(centres[best], low, high)
        far = np.sqrt(((np.abs(centres - x[nearest]) + halves) ** 2).sum(axis=1)) * UP
        if halves.max() <= 4 * gap:  # floats do not resolve smaller boxes
            finest = float(far.max())
            break
        left = far > (1 + CLOSE) * reached
        centres, halves = _halved(centres[left], halves[left], gap)
    return max((1 + CLOSE) * reached * UP, finest), hole


def _halved(centres: np.ndarray, halves: np.ndarray, gap: float) -> tuple[np.ndarray, np.ndarray]:
    """Both halves of every box, cut across its longest side, each wider by the gap that rounding may leave."""
    rows, axis = np.arange(len(halves)), halves.argmax(axis=1)
    step, halves = np.zeros_like(halves), halves.copy()
    halves[rows, axis] /= 2
    step[rows, axis] = halves[rows, axis]
    halves[rows, axis] += gap
    return np.concatenate([centres - step, centres + step]), np.concatenate([halves, halves])
