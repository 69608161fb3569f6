"""How many units to try next: the sizes and errors seen so far tell the rate at which the error falls."""

import math
from collections.abc import Sequence

SHARPEN_WITHIN = 8.0  # times the goal: reweighting may still lead from there to the goal
LEAST_GROWTH, NEAR_GROWTH, MOST_GROWTH = 0.03, 0.1, 0.25  # shares of the units inserted: near the goal, far from it
HARDLY = 0.9  # share of the error left by units that hardly helped
CAUTION = 0.7  # share of the units that the rate asks for
RECENT = 4  # sizes that tell the rate
STALLED = 0.5  # share of the error that a third more units leave where growing stalls


def stalled(history: Sequence[tuple[int, float]]) -> bool:
    """Whether a third more units left more than half of the error."""
    units, error = history[-1]
    before = [e for n, e in history if 1.3 * n <= units]
    return bool(before) and error > STALLED * before[-1]


def expected_size(history: Sequence[tuple[int, float]], goal: float, d: int) -> int:
    """Where log error, linear in n^(1/d) over the last sizes, would meet the goal; 10⁶ if it does not fall."""
    recent = [(n ** (1 / d), math.log(max(e, 1e-300))) for n, e in history[-RECENT:]]
    known = len(recent) >= 2 and all(math.isfinite(e) for _, e in recent)
    if not known or goal <= 0 or history[-1][1] > HARDLY * history[-2][1]:
        return 10**6
    mean_n, mean_e = (sum(column) / len(recent) for column in zip(*recent, strict=True))
    rate = -sum((n - mean_n) * (e - mean_e) for n, e in recent) / sum((n - mean_n) ** 2 for n, _ in recent)
    if rate <= 0:
        return 10**6
    return math.ceil(min((recent[-1][0] + math.log(history[-1][1] / goal) / rate) ** d, 1e6))


def next_size(history: Sequence[tuple[int, float]], goal: float, d: int) -> int:
    """Most of the way to the size that is expected to meet the goal: 3 to 25 % more units, near the goal 10 % at most."""
    units, error = history[-1]
    growth = MOST_GROWTH if error > SHARPEN_WITHIN * goal else NEAR_GROWTH
    least, most = max(1, round(LEAST_GROWTH * units)), max(1, math.ceil(growth * units))
    return units + min(max(int(CAUTION * (expected_size(history, goal, d) - units)), least), most)
