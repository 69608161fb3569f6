"""Regression in context: samples as the prompt of the frozen layer, the proved bound, and functions that come close to it."""

import math

import numpy as np

from ....construction.prompts.fill_distance import fill_distance
from ....construction.prompts.nadaraya_watson import in_context
from ....target.domain import Domain, domain_of
from ....target.points import uniform_points
from ...peers.task import TEST_SEED
from .registry import Point, Result, measure

TESTED = 2000  # points in the box, beside the point that is farthest from all samples …
MIDDLES = 1000  # … and up to this many middles between samples
DIRECTION = np.array([0.6, 0.8, 0.0])


@measure("context", dimension=1, samples=int, spread="lattice", sharpness=0.0, seed=0)
def context(point: Point) -> Result:
    """Samples of functions with slopes up to 1 on the unit box as a prompt: bound, the least that any method can promise, errors.

    `spread` is "lattice" (centres of N^(1/D) cells a side) or "random"; `sharpness` above 0 is β in place of the derived one.
    `valley` is the distance to the nearest sample, so 0 at all of them; `cone`, `wave` and `plane` know nothing of the samples.
    """
    D, domain = point["dimension"], domain_of([(0, 1)] * point["dimension"])
    X = samples_of(domain, point["samples"], point["spread"], point["seed"])
    _, hole = fill_distance(domain, X)
    order = np.lexsort(X.T)
    middles = (X[order][1:] + X[order][:-1])[:: 1 + len(X) // MIDDLES] / 2
    x = np.concatenate([uniform_points(TESTED, D, TEST_SEED).numpy(), middles, hole[None]])
    errors, bound = {}, math.nan
    for name, (at_samples, at_points) in functions_of(X, x).items():
        layer = in_context(X, at_samples, domain, 1.0, 1.0, point["sharpness"] or None)
        errors[name] = float(np.abs(np.asarray(layer(x)) - at_points).max())
        bound = np.fmax(bound, layer.certificate.bound)  # they differ by the rounding of values alone
    least = float(_distances(hole[None], X).min())
    return {"samples": len(X), "bound": float(bound), "least": least, "observed": max(errors.values()), **errors}


def samples_of(domain: Domain, count: int, spread: str, seed: int) -> np.ndarray:
    """Where the samples are: random, or at the centres of cells, as many as come nearest to the count."""
    D = domain.dimension
    if spread == "random":
        return domain.points(np.random.default_rng(seed).random((count, D)))
    n = max(2, round(count ** (1 / D)))
    axis = (np.arange(n) + 0.5) / n
    return np.stack(np.meshgrid(*[axis] * D, indexing="ij"), axis=-1).reshape(-1, D)


def functions_of(X: np.ndarray, x: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Functions with slopes up to 1, at the samples and at points."""
    u, p = DIRECTION[: X.shape[1]], np.full((1, X.shape[1]), 1 / math.pi)
    u = u / np.linalg.norm(u)
    return {
        "valley": (np.zeros(len(X)), _distances(x, X).min(axis=1)),
        "cone": (_distances(X, p)[:, 0], _distances(x, p)[:, 0]),
        "wave": (np.sin(9 * X @ u) / 9, np.sin(9 * x @ u) / 9),
        "plane": (X @ u, x @ u),
    }


def _distances(x: np.ndarray, X: np.ndarray) -> np.ndarray:
    from scipy.spatial.distance import cdist  # slow to import

    return np.asarray(cdist(x, X))
