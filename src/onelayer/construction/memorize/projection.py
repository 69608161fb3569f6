"""The projection: one direction u along which samples are far enough apart, or agree where they are close.

Random directions are drawn, and each is judged by what the proof (`residual`) will say of it, up to a constant that all share:

    γ_(N/2+2)·G + δ·L      G the sum of |a_i||z − k_i| at the outermost samples, L the steepest slope, δ the rounding of z

The directions are drawn from a private generator; the smaller the dataset, the more of them are tried.
"""

import math

import numpy as np
import torch
from jaxtyping import Float

from ...layer.arithmetic import Arithmetic
from ...layer.assemble.frame import Frame
from .dataset import Dataset
from .interpolation import slopes_between
from .residual import gamma

WORK = 2**26  # numbers that all trials together may look at: about two seconds
TRIALS = (16, 512)  # the fewest and the most directions tried
STEEPEST_SCALE = {torch.float64: 500, torch.float32: 60}  # powers of 2: what underflows stays below rounding


def frame_around(samples: Dataset, arithmetic: Arithmetic) -> Frame:
    """Normalisation of every coordinate to about [−½, ½], by powers of 2; coordinates that never change become 0."""
    low, high = samples.x.min(axis=0), samples.x.max(axis=0)
    _, exponent = np.frexp(high - low)
    scale = np.ldexp(1.0, np.where(high > low, np.minimum(-exponent, STEEPEST_SCALE[arithmetic.dtype]), 0))
    shift = torch.from_numpy(low + (high - low) / 2).to(arithmetic.dtype).double()
    return Frame(tuple(shift.tolist()), tuple(scale.tolist()))


def direction_of(
    samples: Dataset, frame: Frame, arithmetic: Arithmetic, seed: int
) -> tuple[Float[np.ndarray, "token feature"], int]:
    """(the best of many random directions, how many were tried); Σ|u| is about 1."""
    hat = frame(torch.from_numpy(samples.x).to(arithmetic.dtype)).double().numpy()
    N, D = hat.shape
    trials = min(max(WORK // (N * (8 * samples.y.shape[1] + D)), TRIALS[0]), TRIALS[1])
    rng = np.random.default_rng(seed)
    best, least = np.zeros(D), math.inf
    for start in range(0, trials, TRIALS[0]):
        drawn = rng.standard_normal((min(TRIALS[0], trials - start), D))
        drawn /= np.abs(drawn).sum(axis=1, keepdims=True)
        drawn = torch.from_numpy(drawn).to(arithmetic.dtype).double().numpy()
        z = torch.from_numpy(drawn @ hat.T).to(arithmetic.dtype).double().numpy()
        for u, projected in zip(drawn, z, strict=True):
            judged = forecast(projected, samples, arithmetic)
            if judged < least or not best.any():
                best, least = u, judged
    return best.reshape(samples.tokens), trials


def forecast(z: Float[np.ndarray, " sample"], samples: Dataset, arithmetic: Arithmetic) -> float:
    """Roughly the residual that the projections z lead to; infinite where samples with different answers coincide."""
    order = np.argsort(z)
    knots, y = z[order], samples.y[order]
    N, c = len(z), len(z) // 2
    if N == 1:
        return 0.0
    if ((np.diff(knots) == 0) & (np.diff(y, axis=0) != 0).any(axis=1)).any():
        return math.inf
    slope = slopes_between(knots, y)
    turn = np.abs(np.diff(slope, axis=0))
    right = (knots[-1] - knots[c + 1 : -1]) @ turn[c:] + np.abs(slope[c : c + 1]).sum(axis=0) * (knots[-1] - knots[c])
    left = (knots[1:c] - knots[0]) @ turn[: c - 1] + np.abs(slope[c - 1]) * (knots[c] - knots[0])
    n, d = samples.tokens
    G = float(np.maximum(left, right).max())
    delta = float(gamma(np.array(d + n), arithmetic.u)) * float(np.abs(knots[[0, -1]]).max())
    return float(gamma(np.array(N // 2 + 2), arithmetic.u)) * G + delta * float(np.abs(slope).max())
