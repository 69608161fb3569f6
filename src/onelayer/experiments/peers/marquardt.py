"""A tanh perceptron by Levenberg–Marquardt, the strongest network peer: second-order steps on all samples, in float64.

A step s solves (JᵀJ + λC) s = −Jᵀr by Cholesky, where C is the diagonal of JᵀJ plus a little of its mean; λ falls after a
step that lowers ‖r‖² as predicted and rises after one that does not. Depths race in rounds, the first on fewer samples; the
worst drops out after each. Once the best has stalled, fresh starts use up the time.
"""

import math

import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from ...target.target import Target
from .descent import seeded, stored_numbers
from .perceptron import Widths, hidden, perceptron, shapes
from .task import Clock, FittedPeer, samples_of

MAX_DAMPING = 1e12  # beyond it no step helps
MEAN_CURVATURE_SHARE = 1e-3  # of the mean curvature, added to each parameter's own in the damping
STALL_STEPS, STALL_GAIN = 50, 1e-3  # stalled: this many steps lower ‖r‖² by less than this share
TRIAL_THINNING = 3  # the first round sees one sample in three, but at least two per parameter
ROUND_SHARE = 0.12  # of the time, for every depth in a round
JACOBIAN_ENTRIES = 2**23  # held at a time


class Marquardt:
    """Levenberg–Marquardt on one network; call `run` again to continue, on the same samples or on others."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.damping, self.growth = 1e-2, 2.0
        self.names = [name for name, _ in model.named_parameters()]
        self.shapes = [p.shape for p in model.parameters()]
        self.theta = torch.cat([p.detach().flatten() for p in model.parameters()])
        self.steps = 0
        self.jacobian = vmap(jacrev(self.answer), (None, 0))

    def parts(self, theta: Tensor) -> list[Tensor]:
        split = theta.split([shape.numel() for shape in self.shapes])
        return [part.reshape(shape) for part, shape in zip(split, self.shapes, strict=True)]

    def answer(self, theta: Tensor, x: Tensor) -> Tensor:
        out: Tensor = functional_call(self.model, dict(zip(self.names, self.parts(theta), strict=True)), (x,))
        return out

    def squares(self, theta: Tensor, x: Tensor, y: Tensor) -> float:
        with torch.no_grad():
            found = float((self.answer(theta, x) - y).square().sum())
        return found if math.isfinite(found) else math.inf

    def run(self, x: Tensor, y: Tensor, seconds: float) -> None:
        """Take steps until the time is up or they stall, then copy the parameters into the model."""
        clock, history = Clock(seconds), [self.squares(self.theta, x, y)]
        while len(history) <= STALL_STEPS or history[-1] < (1 - STALL_GAIN) * history[-1 - STALL_STEPS]:
            after = self.step(x, y, history[-1], clock)
            if after is None:
                break
            history.append(after)
        self.steps += len(history) - 1
        with torch.no_grad():
            for p, part in zip(self.model.parameters(), self.parts(self.theta), strict=True):
                p.copy_(part)

    def step(self, x: Tensor, y: Tensor, before: float, clock: Clock) -> float | None:
        """Take one step that lowers ‖r‖² and return the new ‖r‖²; None when the time is up or no step helps.

        The damping follows the ratio of the gain to what the linear model predicts (Nielsen's rule).
        """
        normal = self.normal_equations(x, y, clock)
        if normal is None:
            return None
        gram, slope = normal
        curvature = gram.diagonal() + MEAN_CURVATURE_SHARE * gram.diagonal().mean()
        while self.damping <= MAX_DAMPING and clock.left > 0:
            factor, failed = torch.linalg.cholesky_ex(gram + torch.diag(self.damping * curvature))
            if not failed:
                move = torch.cholesky_solve(slope[:, None], factor)[:, 0]
                after = self.squares(self.theta - move, x, y)
                predicted = float(2 * slope @ move - move @ (gram @ move))
                if after < before and predicted > 0:
                    self.theta = self.theta - move
                    share = (before - after) / predicted
                    self.damping = max(self.damping * max(0.1, 1 - (2 * share - 1) ** 3), 1e-16)
                    self.growth = 2.0
                    return after
            self.damping *= self.growth
            self.growth *= 2
        return None

    def normal_equations(self, x: Tensor, y: Tensor, clock: Clock) -> tuple[Tensor, Tensor] | None:
        """(JᵀJ, Jᵀr), summed over parts of the samples; None if the time runs out first."""
        P = len(self.theta)
        gram, slope = self.theta.new_zeros(P, P), self.theta.new_zeros(P)
        rows = max(1, JACOBIAN_ENTRIES // (P * y.shape[1]))
        for part, wanted in zip(x.split(rows), y.split(rows), strict=True):
            if clock.left == 0:
                return None
            J = self.jacobian(self.theta, part).reshape(-1, P).detach()
            with torch.no_grad():
                r = (self.answer(self.theta, part) - wanted).flatten()
                gram.addmm_(J.T, J)
                slope.addmv_(J.T, r)
        return gram, slope


def fit(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    """Best of depths and restarts; None if no shape matches the budget."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    x, y = samples.x, samples.y
    candidates = shapes(target.dimension, target.outputs, parameters)
    if not candidates:
        return None
    count = min(len(x), max(len(x) // TRIAL_THINNING, 2 * parameters))
    some = torch.randperm(len(x), generator=torch.Generator().manual_seed(seed))[:count]
    runs: list[Marquardt] = []

    def start(widths: Widths) -> Marquardt:
        make = lambda: perceptron(target.dimension, widths, target.outputs, nn.Tanh)  # noqa: E731
        runs.append(Marquardt(seeded(make, seed + len(runs))))
        runs[-1].run(x[some], y[some], min(clock.left, ROUND_SHARE * seconds))
        return runs[-1]

    racing = [(widths, start(widths)) for widths in candidates]
    while len(racing) > 1:
        racing = sorted(racing, key=lambda entry: samples.pool_error(entry[1].model))[:-1]
        for _, run in racing:
            run.run(x, y, clock.left if len(racing) == 1 else min(clock.left, ROUND_SHARE * seconds))
    while clock.left > ROUND_SHARE * seconds:
        start(racing[0][0]).run(x, y, clock.left)
    model = min((run.model for run in runs), key=samples.pool_error)
    note = f"hidden {hidden(model)}, {len(runs)} starts, {sum(run.steps for run in runs)} steps; {clock.end}"
    return FittedPeer(samples.function(model), stored_numbers(model), clock.spent, note)
