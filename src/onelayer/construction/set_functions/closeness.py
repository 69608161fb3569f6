"""How far a formula, a difference of two functions say, can be from 0 on a box: Taylor models on boxes that are halved."""

import numpy as np

from ...formula import Formula
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.series import Space

MOST_BOXES = 40_000


def largest_size(formula: Formula, box: list[tuple[float, float]], enough: float) -> float:
    """A bound on |f| on the box: at most `enough` if that is proved with `MOST_BOXES` boxes, else the best bound found."""
    lower, upper = (np.array([[side[end] for side in box]]) for end in (0, 1))
    worst, examined = 0.0, 0
    while True:
        found: Enclosed = formula.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
        sizes = np.maximum(np.abs(found.low), np.abs(found.high))
        sizes[np.isnan(sizes)] = np.inf
        examined += len(sizes)
        wide = sizes > enough
        worst = max(worst, float(sizes[~wide].max(initial=0.0)))
        if not wide.any():
            return worst
        if examined + 2 * int(wide.sum()) > MOST_BOXES:
            return float(sizes.max())
        lower, upper = _halved(lower[wide], upper[wide])


def _halved(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every box cut in half along every side."""
    for axis in range(lower.shape[1]):
        middle = (lower[:, axis] + upper[:, axis]) / 2
        first, second = upper.copy(), lower.copy()
        first[:, axis] = second[:, axis] = middle
        lower, upper = np.concatenate([lower, second]), np.concatenate([first, upper])
    return lower, upper
