"""Polishing: keys and offsets change too. Variable projection by Levenberg–Marquardt, then toward the smallest maximum.

For given parameters θ of the heads the best coefficients c are a least-squares solution (Golub and Pereyra 1973), so that

    F(θ) = min_c Σ_i w_i |y_i − Φ(θ, x_i) c|² + μ|c|²

is a function of θ alone. With Q R = [√w Φ; √μ 1] the Gauss–Newton model of F (in Kaufman's simplification) has the Jacobian
(1 − QQᵀ)[√w ∂(Φ c)/∂θ; 0]: two products and one Cholesky factor of its Gram matrix per step, no loop over units or points.
μ = |r|² M / cap² follows the residual and keeps Σ|c| near or below `cap`; parameters stay within ±`reach`.

`sharpen` then lowers the maximum: Lawson's weights w_i ← w_i |r_i|, with the worst points of a pool added, a few steps of the
above each time. Errors are *observed* on points; they prove nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor

from .families import Family, centring

RIDGE = 1e-18  # per point, before the residual is known
FIRST_STEPS = 15  # after these, stop …
WINDOW, LEAST_PROGRESS = 8, 0.05  # … when this many steps lower the squares by less than this share
ROUNDS = 6  # of reweighting
CLOSE = 1.2  # times what is enough: as many rounds again
GIVE_UP_FACTOR = 1.6  # give up when the error is still above this many times what is enough after the first round
DAMPING_GROWTH, LEAST_DAMPING_FACTOR = 4.0, 0.15  # after a failure; after a success, at least
MOST_FAILURES = 13  # of one step
AT_ONCE = 2**22  # numbers held at a time on the pool


@dataclass(frozen=True)
class FitSamples:
    """Points with values and weights to fit on, and a larger pool to look for the worst error on."""

    points: Float[Tensor, "point coordinate"]
    values: Float[Tensor, "point out"]
    weights: Float[Tensor, " point"]
    pool: Float[Tensor, "pool coordinate"]
    pool_values: Float[Tensor, "pool out"]

    @cached_property
    def root(self) -> Float[Tensor, "point 1"]:
        """√w."""
        return self.weights.sqrt()[:, None]

    def joined(self, points: Tensor, values: Tensor, weight: float) -> "FitSamples":
        """With more points to fit on."""
        return replace(
            self,
            points=torch.cat([self.points, points]),
            values=torch.cat([self.values, values]),
            weights=torch.cat([self.weights, self.weights.new_full((len(points),), weight)]),
        )


@dataclass(frozen=True)
class StepLimits:
    """The limits of a fit: Σ|c|, the size of parameters, the error that is enough, and when to stop."""

    cap: float
    reach: float
    enough: float
    over: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class Fit:
    """Parameters, coefficients, the largest error and F on the points, and the largest error on the pool (∞ until known)."""

    theta: Float[Tensor, "unit width"]
    coefficients: Float[Tensor, "feature out"]
    fitted: float
    squares: float = math.inf
    observed: float = math.inf

    @property
    def units(self) -> int:
        return len(self.theta)

    @property
    def total(self) -> float:
        return float(self.coefficients.abs().sum(dim=0).max())


@dataclass(frozen=True)
class _State:
    """θ with everything that follows from it."""

    theta: Tensor
    heads: Tensor  # attention weights
    c: Tensor
    Q: Tensor
    residual: Tensor  # weighted, [point, out]
    squares: float
    size: float  # |c|²

    def cost(self, penalty: float) -> float:
        return self.squares + penalty * self.size


def _state(family: Family, theta: Tensor, samples: FitSamples, penalty: float) -> _State:
    heads, root = family.weights(theta, samples.points), samples.root
    phi = family.features(samples.points, heads) * root
    n, K = phi.shape
    Q, R = torch.linalg.qr(torch.cat([phi, math.sqrt(penalty) * torch.eye(K, dtype=phi.dtype, device=phi.device)]))
    values = samples.values * root
    c = torch.linalg.solve_triangular(R, Q[:n].T @ values, upper=True)
    residual = values - phi @ c
    return _State(theta, heads, c, Q, residual, float(residual.square().sum()), float(c.square().sum()))


def polish(family: Family, theta: Tensor, samples: FitSamples, limits: StepLimits, iterations: int = 100) -> Fit:
    """θ moved to a (local) minimum of F; stops early when it is good enough, no longer improves, or time is up."""
    n = len(samples.points)
    size = float(samples.values.abs().max()) or 1.0  # with values of size 1 squares neither vanish nor overflow
    samples = replace(samples, values=samples.values / size)
    limits = replace(limits, cap=limits.cap / size, enough=limits.enough / size)

    def penalty_of(squares: float) -> float:
        return max((math.sqrt(squares) / limits.cap) ** 2 * len(theta), 1e-30)

    state = _state(family, theta, samples, RIDGE * n)
    penalty = penalty_of(state.squares)
    state = _state(family, theta, samples, penalty)
    damping, history = 1e-2, [state.squares]
    for turn in range(iterations):
        if _good(state, samples, limits) or limits.over():
            break
        gram, slope, A = _normal_equations(family, state, samples)
        if A is None:  # what would leave ±reach stays
            flat = state.theta.reshape(-1, 1)
            free = ((flat.abs() < limits.reach) | (flat * slope <= 0)).to(slope)
            gram, slope = gram * free * free.T, slope * free
        diagonal = gram.diagonal().clamp_min(1e-14 * float(gram.diagonal().max()))
        better: _State | None = None
        for _ in range(MOST_FAILURES):
            if limits.over():
                break
            factor, failed = torch.linalg.cholesky_ex(gram + torch.diag(damping * diagonal))
            if not int(failed):
                move = torch.cholesky_solve(slope, factor)
                step = move if A is None else torch.einsum("uij,uj->ui", A, move.reshape(state.theta.shape))
                candidate = _state(family, theta_moved(state.theta, step, limits.reach), samples, penalty)
                if candidate.cost(penalty) < state.cost(penalty):
                    better = candidate
                    break
            damping *= DAMPING_GROWTH
        if better is None:
            break
        expected = float((move * (damping * diagonal[:, None] * move + slope)).sum())  # what the linear model predicted
        gain = (state.cost(penalty) - better.cost(penalty)) / max(expected, 1e-300)
        gain = min(gain, 1.0)  # a larger gain means no more, and its cube could overflow
        state, damping = better, max(damping * max(LEAST_DAMPING_FACTOR, 1 - (2 * gain - 1) ** 3), 1e-13)
        penalty = penalty_of(state.squares)
        history.append(state.squares)
        if turn >= FIRST_STEPS and history[-1] > (1 - LEAST_PROGRESS) * history[-1 - WINDOW]:
            break
    fitted = size * float(_errors(state, samples).max())
    return Fit(state.theta, size * state.c, fitted, size**2 * state.cost(penalty))


def theta_moved(theta: Tensor, step: Tensor, reach: float) -> Tensor:
    return (theta + step.reshape(theta.shape)).clamp(-reach, reach)


def _normal_equations(family: Family, state: _State, samples: FitSamples) -> tuple[Tensor, Tensor, Tensor | None]:
    """(JᵀJ, Jᵀr, A) of the projected Jacobian. As Qᵀ[r; −√μ c] = 0, the slope needs no projection.

    With A (`centring`) they are those of J A: a step in these coordinates is A times as large in θ.
    """
    n = len(samples.points)
    J = family.jacobian(samples.points, state.heads, state.c).mul_(samples.root)
    A = centring(family, J) if family.graded else None
    if A is not None:
        J = torch.einsum("onui,uij->onuj", J.unflatten(2, A.shape[:2]), A).flatten(2)
    Q, J, residual = state.Q[:n], J.mT, state.residual.T[..., None]
    slope, along = (J @ residual).sum(dim=0), J @ Q
    J.baddbmm_(along, Q.T.expand(len(J), -1, -1), alpha=-1)  # in place: memory is what takes time here
    rows, below = (t.transpose(0, 1).flatten(1) for t in (J, along @ state.Q[n:].T))
    return rows @ rows.T + below @ below.T, slope, A


def _errors(state: _State, samples: FitSamples) -> Tensor:
    return (state.residual.abs() / samples.root).amax(dim=1)


def _good(state: _State, samples: FitSamples, limits: StepLimits) -> bool:
    return float(_errors(state, samples).max()) <= limits.enough


def errors_at(family: Family, fit: Fit, x: Tensor, y: Tensor) -> Float[Tensor, " point"]:
    """|T − f| at points, the largest over the outputs; a NaN counts as infinite."""
    rows = max(1, AT_ONCE // (fit.theta.numel() + len(fit.coefficients)))
    parts = [
        (family.features(a, family.weights(fit.theta, a)) @ fit.coefficients - b).abs().amax(dim=1)
        for a, b in zip(x.split(rows), y.split(rows), strict=True)
    ]
    return torch.cat(parts).nan_to_num(nan=torch.inf)


def sharpen(
    family: Family, fit: Fit, samples: FitSamples, limits: StepLimits, rounds: int = ROUNDS
) -> tuple[Fit, FitSamples]:
    """The best fit on the pool among those with Lawson's weights, and the samples with the points added to them."""
    found = errors_at(family, fit, samples.pool, samples.pool_values)
    best = fit = replace(fit, observed=float(found.max()))
    for turn in range(2 * rounds):
        far = turn > 0 and best.observed > (GIVE_UP_FACTOR if turn < rounds else CLOSE) * limits.enough > 0
        if best.observed <= limits.enough or far or limits.over():
            break
        if float(found.max()) > 1.1 * fit.fitted:
            worst = found.topk(min(len(found), max(len(samples.points) // 12, 8))).indices
            samples = samples.joined(samples.pool[worst], samples.pool_values[worst], float(samples.weights.mean()))
        seen = errors_at(family, fit, samples.points, samples.values)
        weights = samples.weights * (seen / seen.mean().clamp_min(1e-300)).clamp_min(0.1)
        samples = replace(samples, weights=weights / weights.mean())
        fit = polish(family, fit.theta, samples, replace(limits, enough=0.8 * limits.enough), iterations=20)
        found = errors_at(family, fit, samples.pool, samples.pool_values)
        fit = replace(fit, observed=float(found.max()))
        best = min(best, fit, key=lambda f: f.observed)
    return best, samples
