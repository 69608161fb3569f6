"""Polished regression: the gates are turned and shifted, and the values follow them (variable projection).

For given gates the best values are a linear solve. That leaves a function of directions and offsets alone, whose gradient is that
of the squared error with the values held fixed (they are optimal); L-BFGS minimises it. Five-fold cross-validation chooses the
number of gates, the shrinkage and the number of iterations, and whether the result replaces the solved layer.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from .regression import SHRINKAGES, Gating, RidgeFit, clearly_less, random_gates, solve_values, standardised
from .rows import Rows

FOLDS = 5
FEWEST_SAMPLES = 4 * FOLDS  # with fewer samples the gates stay where they are
POLISHED_SIZES = (4, 16)  # numbers of gates to choose from: few are enough, since they fit much better than random ones
POLISHED_SHRINKAGES = tuple(SHRINKAGES[(SHRINKAGES > 5e-5) & (SHRINKAGES < 0.2)][::4])  # one per decade
ITERATIONS = 60


def polished_fit(rows: Rows, start: RidgeFit, units: int | None, alpha: float | None, seed: int) -> RidgeFit:
    """A fit with polished gates if cross-validation clearly prefers it, else `start`."""
    if len(rows) < FEWEST_SAMPLES or units == 0:
        return start
    folds = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    sizes = POLISHED_SIZES if units is None else (units,)
    alphas = tuple(rows.total * s for s in POLISHED_SHRINKAGES) if alpha is None else (float(alpha),)
    best: tuple[float, int, float, int, Float[np.ndarray, "sample out"]] | None = None
    for size in sizes:
        for a in alphas:
            held_out = _validated(rows, folds, size, a, seed)
            errors = (held_out**2).sum(axis=2) @ rows.weights
            k = int(errors.argmin())
            if best is None or errors[k] < best[0]:
                best = float(errors[k]), size, a, k, held_out[k]
    assert best is not None
    _, size, a, k, held = best
    fitted = solve_values(rows, _path(rows, random_gates(rows, size, 1.0, seed), a, k)[-1], np.array([a]))
    fitted = replace(fitted, held_out=held)
    return fitted if clearly_less(fitted.errors(rows), start.errors(rows)) else start


def _validated(
    rows: Rows, folds: np.ndarray, size: int, alpha: float, seed: int
) -> Float[np.ndarray, "iteration sample out"]:
    """The error of every sample after every iteration when its fold is held out, in units of the answers' spread."""
    errors = np.zeros((ITERATIONS + 1, *rows.y.shape))
    _, spread = rows.answer_units
    for fold in range(FOLDS):
        held, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        part = rows.picked(kept)
        share = part.total / rows.total
        middle, per_spread = part.units
        mean, own = part.answer_units
        z = (rows.x[held] - middle) * per_spread
        path = _path(part, random_gates(part, size, 1.0, seed), alpha * share, ITERATIONS)
        for k in range(ITERATIONS + 1):
            gating = path[min(k, len(path) - 1)]
            fitted = solve_values(part, gating, np.array([alpha * share]))
            given = mean + own * (fitted.bias + gating.features(z) @ fitted.values)
            errors[k, held] = (rows.y[held] - given) / spread
    return errors


def _path(rows: Rows, start: Gating, alpha: float, iterations: int) -> list[Gating]:
    """The gates before the first iteration and after each."""
    from scipy.linalg import solve
    from scipy.optimize import minimize

    z, y = standardised(rows)
    R, D = start.directions.shape
    share = (rows.weights / rows.total)[:, None]
    kept = rows.units[1] > 0  # constant coordinates have no direction

    def gating(parameters: np.ndarray) -> Gating:
        return Gating(parameters[: R * D].reshape(R, D), parameters[R * D :], start.sharpness)

    def objective(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """(the penalised error with the best values, its gradient)."""
        own = gating(parameters)
        features = own.features(z)
        F, Y = features - share.T @ features, y - share.T @ y
        gram = F.T @ (share * F)
        gram[np.diag_indices_from(gram)] += alpha / rows.total
        values = solve(gram, F.T @ (share * Y), assume_a="pos")
        residual = Y - F @ values
        value = float((share * residual**2).sum() + alpha / rows.total * (values**2).sum())
        gates = features[:, D:] / own.factor
        pull = -2 * own.factor * (share * residual) @ values[D:].T * gates * (1 - gates)  # d value / d (a·z + b)
        return value, np.concatenate([((pull.T @ z) * kept).ravel(), pull.sum(axis=0)])

    path = [start]
    first = np.concatenate([start.directions.ravel(), start.offsets])
    if iterations:
        minimize(
            objective, first, jac=True, method="L-BFGS-B",
            callback=lambda parameters: path.append(gating(parameters.copy())), options={"maxiter": iterations},
        )  # fmt: skip
    return path
