"""Moving: the gates of a regression are turned and shifted, the values following them (variable projection).

For given gates the best values are a linear solve; what is left is a function of directions and offsets alone, whose gradient is
that of the squared error with the values held fixed (they are optimal). It is minimised by L-BFGS. How many gates, how much
shrinkage and how many iterations: by the error in five-fold cross-validation, against that of the layer that was solved.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Float

from .regression import SHRINKAGES, Fitted, Gating, clearly_less, drawn, solve_values, standardised
from .rows import Rows

FOLDS = 5
FEWEST = 4 * FOLDS  # samples, below which nothing is moved
SIZES = (4, 16)  # gates that can be moved: they fit so much better than random ones that few are enough
SHRINKAGE = tuple(SHRINKAGES[(SHRINKAGES > 5e-5) & (SHRINKAGES < 0.2)][::4])  # one to a decade
ITERATIONS = 60


def moved(rows: Rows, start: Fitted, units: int | None, alpha: float | None, seed: int) -> Fitted:
    """A fit with moved gates if cross-validation clearly prefers it, else the one it started from."""
    if len(rows) < FEWEST or units == 0:
        return start
    folds = np.random.default_rng(seed).permutation(len(rows)) % FOLDS
    sizes = SIZES if units is None else (units,)
    alphas = tuple(rows.total * s for s in SHRINKAGE) if alpha is None else (float(alpha),)
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
    fitted = solve_values(rows, _path(rows, drawn(rows, size, 1.0, seed), a, k)[-1], np.array([a]))
    fitted = replace(fitted, held_out=held)
    return fitted if clearly_less(fitted.errors(rows), start.errors(rows)) else start


def _validated(
    rows: Rows, folds: np.ndarray, size: int, alpha: float, seed: int
) -> Float[np.ndarray, "iteration sample out"]:
    """The error of every sample, in units of the answers' spread, when its fold is held out: after every iteration."""
    errors = np.zeros((ITERATIONS + 1, *rows.y.shape))
    _, spread = rows.answer_units
    for fold in range(FOLDS):
        held, kept = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        part = rows.picked(kept)
        share = part.total / rows.total
        middle, per_spread = part.units
        mean, own = part.answer_units
        z = (rows.x[held] - middle) * per_spread
        path = _path(part, drawn(part, size, 1.0, seed), alpha * share, ITERATIONS)
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
        rest = Y - F @ values
        value = float((share * rest**2).sum() + alpha / rows.total * (values**2).sum())
        gates = features[:, D:] / own.factor
        pull = -2 * own.factor * (share * rest) @ values[D:].T * gates * (1 - gates)  # d value / d (a·z + b)
        return value, np.concatenate([((pull.T @ z) * kept).ravel(), pull.sum(axis=0)])

    path = [start]
    first = np.concatenate([start.directions.ravel(), start.offsets])
    if iterations:
        minimize(
            objective, first, jac=True, method="L-BFGS-B",
            callback=lambda parameters: path.append(gating(parameters.copy())), options={"maxiter": iterations},
        )  # fmt: skip
    return path
