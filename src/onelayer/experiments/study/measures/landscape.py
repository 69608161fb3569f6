"""Local minima and saddle points (Section II.C): where the gradient of the loss vanishes, and what the Hessian is there.

The loss is the mean square over fixed points plus `decay`·|θ|². Without the decay a Transformer has directions along which
nothing changes (W^Q grows as W^K shrinks, for one). With it what is left is the orthogonal basis of the stream: for a stream of
m numbers, m(m − 1)/2 eigenvalues of the Hessian are 0 at every stationary point, where that turn moves θ at all.

All of this is numerical: gradients and Hessians are exact derivatives in float64, nothing is proved.
"""

import torch
from torch import Tensor
from torch.func import functional_call, grad, jacrev

from ....model.config import LayerConfig
from ....model.transformer import SingleLayerTransformer
from ....target.target import Target
from .construction import TARGET_AXES, target_at
from .registry import Point, Result, measure

D_MODEL = 2
STATIONARY = 1e-9  # largest norm of a gradient that counts as 0
ENOUGH = 1e-12  # norm of a gradient at which steps end
FLAT = 1e-9  # share of the largest eigenvalue: one that is smaller counts as 0
PUSH = 1e-2  # how far a saddle point is left along its steepest way down
MOST_STEPS, MOST_TRIALS = 300, 30


@measure("landscape", **TARGET_AXES, heads=1, width=1, way="descent", decay=1e-3, points=41, seed=0)
def landscape(point: Point) -> Result:
    """A stationary point of a small layer's loss: loss, gradient, eigenvalues of the Hessian below, at and above 0.

    `way` is "descent" (a Newton method that only ever lowers the loss) or "root" (one that lowers the gradient, and so ends at
    minima and saddle points alike). `drop` is by how much a step along the most negative eigenvalue lowers the loss.
    """
    loss = _Loss(target_at(point), point["heads"], point["width"], point["decay"], point["points"], point["seed"])
    theta, steps = _descended(loss) if point["way"] == "descent" else _rooted(loss)
    size = float(loss.gradient(theta).norm())
    values, vectors = torch.linalg.eigh(loss.hessian(theta))
    flat = FLAT * float(values[-1])
    here, away = (float(loss(t)) for t in (theta, theta + PUSH * vectors[:, 0]))
    negative, zero = int((values < -flat).sum()), int((values.abs() <= flat).sum())
    kind = "not stationary" if size > STATIONARY else "saddle point" if negative else "minimum"
    return {
        "parameters": len(theta),
        "kind": kind,
        "loss": here,
        "gradient": size,
        "negative": negative,
        "zero": zero,
        "smallest": float(values[0]),
        "least_positive": float(values[negative + zero]),
        "drop": here - away if negative else 0.0,
        "steps": steps,
    }


class _Loss:
    """The loss of a small layer as a function of all its parameters in one vector."""

    def __init__(self, target: Target, heads: int, width: int, decay: float, points: int, seed: int) -> None:
        config = LayerConfig(
            tokens=target.dimension, features_in=1, features_out=1, d_model=D_MODEL, heads=heads, d_k=1, d_v=1,
            ffn_width=width, activation="gelu", code="learned", readout="mean", anchor_tokens=1,
        )  # fmt: skip
        self.model, self.decay = SingleLayerTransformer(config, seed=seed), decay
        self.shapes = {name: p.shape for name, p in self.model.named_parameters()}
        self.start = torch.cat([p.detach().flatten() for p in self.model.parameters()])
        grid = torch.linspace(0, 1, points, dtype=torch.float64)
        unit = torch.cartesian_prod(*[grid] * target.dimension).reshape(-1, target.dimension)
        self.x, self.y = 2 * unit[..., None] - 1, torch.from_numpy(target(target.domain.points(unit.numpy())))
        self.gradient = grad(self)
        self.hessian = jacrev(self.gradient)

    def __call__(self, theta: Tensor) -> Tensor:
        parts = theta.split([shape.numel() for shape in self.shapes.values()])
        named = {name: part.reshape(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        answers = functional_call(self.model, named, (self.x,))
        return (answers[:, 0] - self.y).square().mean() + self.decay * theta.square().sum()


def _descended(loss: _Loss) -> tuple[Tensor, int]:
    """Newton steps with |λ| + damping in place of the eigenvalues λ: each lowers the loss."""
    theta, damping = loss.start, 1e-3
    for step in range(MOST_STEPS):
        slope, before = loss.gradient(theta), float(loss(theta))
        if float(slope.norm()) < ENOUGH:
            return theta, step
        values, vectors = torch.linalg.eigh(loss.hessian(theta))
        for _ in range(MOST_TRIALS):
            moved = theta - vectors @ (vectors.T @ slope / (values.abs() + damping))
            if float(loss(moved)) < before:
                break
            damping *= 4
        else:
            return theta, step  # as low as rounding lets it be
        theta, damping = moved, max(damping / 4, 1e-14)
    return theta, MOST_STEPS


def _rooted(loss: _Loss) -> tuple[Tensor, int]:
    """Gauss–Newton steps for gradient = 0: each lowers the norm of the gradient."""
    theta, damping = loss.start, 1e-3
    for step in range(MOST_STEPS):
        slope = loss.gradient(theta)
        if float(slope.norm()) < ENOUGH:
            return theta, step
        values, vectors = torch.linalg.eigh(loss.hessian(theta))
        for _ in range(MOST_TRIALS):
            moved = theta - vectors @ (vectors.T @ slope * values / (values.square() + damping))
            if float(loss.gradient(moved).norm()) < float(slope.norm()):
                break
            damping *= 4
        else:
            return theta, step
        theta, damping = moved, max(damping / 10, 1e-28)
    return theta, MOST_STEPS
