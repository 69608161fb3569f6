"""Ascent: from the worst points seen to worse ones, along faces too, by evaluations alone.

In many variables random points miss the largest error, which mostly lies on a face, an edge or a corner of the box. A round
has two batches. The first moves each coordinate of each point alone: two steps either way, and to both ends of its side. The
second makes the best of these moves together: the best one, the best two, …, all of them, and all of them with other
lengths; and random moves of all sizes, which find narrow ridges. From round to round steps become shorter and points fewer.

The very worst points can be `polished`: in the first rounds a coordinate is tried along its whole side, which finds the
largest value of a sum of functions of one variable each; in the last ones the steps are short.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from ..target.domain import Domain

ROUNDS = 4
STARTS, LEAST_KEPT = 80, 20  # points in the first round, half as many in the next, at least these
FIRST_STEP, SHORTER = 0.3, 0.4  # share of the sides; factor from round to round
STEPS = (1.0, 0.2, -0.2, -1.0)  # times the step of the round
LENGTHS = (0.25, 0.5, 2.0, 4.0)  # of the move along all coordinates
RANDOM_MOVES = 12  # of each point
RANDOM_SIZES = (-7.0, -1.0)  # powers of ten of the sides, evenly
MOST_COORDINATES = 16  # moved alone in one round: random ones where there are more
POLISHED, ALONG_SIDE, WHOLE_ROUNDS = 2, 64, 3  # points that are polished, as a rule; values along a side, first rounds
POLISHING_STEPS = (1e-2, 2e-3, 4e-4, 8e-5)  # share of the sides, in the others

Points = Float[np.ndarray, "point coordinate"]
Errors = Float[np.ndarray, " point"]
Worst = tuple[Float[np.ndarray, "kept coordinate"], Float[np.ndarray, " kept"]]


def ascend(
    errors_at: Callable[[np.ndarray], np.ndarray],
    points: Points,
    errors: Errors,
    domain: Domain,
    seed: int = 0,
    single: bool = False,
) -> Worst:
    """(points, their errors), worst first, found by climbing from the worst of the given points.

    `errors_at` is called twice a round with points of the box, float32 numbers if `single`; it answers −∞ where a point does
    not count. The climb ends where an error is NaN, with that point alone.
    """
    rng, step, D = np.random.default_rng(seed), FIRST_STEP, domain.dimension
    for turn in range(ROUNDS):
        points, errors = worst_first(points, errors, max(STARTS >> turn, LEAST_KEPT))
        alone, seen = points, errors
        for joint in (False, True):
            if joint:
                moved = (_joint_moves(points, errors, alone, seen), _random_moves(points, domain, rng))
                tried = np.concatenate(moved, axis=1)
            else:
                tried = _single_moves(points, domain, step, rng)
            placed = domain.nearest(tried.reshape(-1, D), single)
            found = errors_at(placed)
            if np.isnan(found).any():
                return placed[np.isnan(found)][:1], found[np.isnan(found)][:1]
            alone, seen = placed.reshape(tried.shape), found.reshape(tried.shape[:-1])
        points, errors = _moved_up(points, errors, alone, seen)
        step *= SHORTER
    return worst_first(points, errors, len(points))


def polished(
    errors_at: Callable[[np.ndarray], np.ndarray],
    points: Points,
    domain: Domain,
    single: bool = False,
    count: int = POLISHED,
) -> Worst:
    """The first of these points moved uphill, and their errors: scans along whole sides, then shorter and shorter steps."""
    rng, points = np.random.default_rng(0), points[:count]
    errors = errors_at(points)

    def placed(tried: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        at = domain.nearest(tried.reshape(-1, domain.dimension), single)
        return at.reshape(tried.shape), np.nan_to_num(errors_at(at), nan=-np.inf).reshape(tried.shape[:-1])

    for step in (*(None,) * WHOLE_ROUNDS, *POLISHING_STEPS):
        if step is None:
            some = (np.arange(ALONG_SIDE)[:, None] + rng.random((len(points), 1, domain.dimension))) / ALONG_SIDE
            along = domain.points(some.reshape(-1, domain.dimension)).reshape(some.shape)
            tried = _each_moved(points, along, rng)
        else:
            tried = _single_moves(points, domain, step, rng)
        tried, seen = placed(tried)
        points, errors = _moved_up(points, errors, *placed(_joint_moves(points, errors, tried, seen)))
    return worst_first(points, errors, len(points))


def worst_first(points: Points, errors: Errors, count: int) -> Worst:
    """At most `count` different points, those with the largest errors, in falling order."""
    if len(errors) > 4 * count:  # these alone are sorted
        few = np.flatnonzero(errors >= np.partition(errors, -4 * count)[-4 * count])
        points, errors = points[few], errors[few]
    order = np.argsort(-errors, kind="stable")[: 4 * count]
    _, first = np.unique(points[order], axis=0, return_index=True)
    order = order[np.sort(first)][:count]
    return points[order], errors[order]


def _moved_up(points: Points, errors: Errors, tried: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each point at the best place that was tried for it, [point, trial, coordinate], if that is worse than where it is."""
    best = np.arange(len(points)), seen.argmax(axis=1)
    better = seen[best] > errors
    return np.where(better[:, None], tried[best], points), np.maximum(seen[best], errors)


def _single_moves(points: Points, domain: Domain, step: float, rng: np.random.Generator) -> np.ndarray:
    """Each point with one coordinate moved, [point, chosen coordinate, move, coordinate]."""
    n, D = points.shape
    steps = points[:, None] + step * np.outer(STEPS, domain.sides)
    ends = np.broadcast_to(np.array([domain.lower, domain.upper]), (n, 2, D))
    return _each_moved(points, np.concatenate([steps, ends], axis=1), rng)


def _each_moved(points: Points, values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Each point with one coordinate set to one of its values, [point, move, coordinate]; as `_single_moves` returns them."""
    D = points.shape[1]
    chosen = rng.permuted(np.tile(np.arange(D), (len(points), 1)), axis=1)[:, :MOST_COORDINATES]
    moved = np.eye(D, dtype=bool)[chosen]
    return np.where(moved[:, :, None], values[:, None], points[:, None, None])


def _joint_moves(points: Points, errors: Errors, alone: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Each point with the best single moves made together, [point, trial, coordinate]."""
    best = seen.argmax(axis=2)[..., None]
    gain = np.take_along_axis(seen, best, axis=2)[..., 0] - errors[:, None]
    places = np.take_along_axis(alone, best[..., None], axis=2)[:, :, 0]  # [point, chosen coordinate, coordinate]
    moved = (places != points[:, None]) & (gain > 0)[..., None]
    goal = np.where(moved.any(axis=1), np.where(moved, places, 0.0).sum(axis=1), points)
    order = np.argsort(-gain, axis=1, kind="stable")[..., None]
    made = np.logical_or.accumulate(np.take_along_axis(moved, order, axis=1), axis=1)
    together = np.where(made, goal[:, None], points[:, None])
    stretched = points[:, None] + np.array(LENGTHS)[:, None] * (goal - points)[:, None]
    return np.concatenate([together, stretched], axis=1)


def _random_moves(points: Points, domain: Domain, rng: np.random.Generator) -> np.ndarray:
    """Each point with all coordinates moved a little, [point, trial, coordinate]."""
    sizes = 10 ** rng.uniform(*RANDOM_SIZES, size=(len(points), RANDOM_MOVES, 1))
    return points[:, None] + sizes * domain.sides * rng.normal(size=(len(points), RANDOM_MOVES, domain.dimension))
