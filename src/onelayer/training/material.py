"""Material: what a layer is trained on and validated with, from a function or from samples (numbers or labels, noisy or not).

A function is sampled on its domain, faces and corners included; it is validated at other such points. Given samples are split by
the seed; those held out are never trained on. Inputs are not rescaled here: the layer's embedding normalises them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..common.checks import is_whole, require_whole
from ..common.errors import InputError
from ..common.numbers import counted
from ..target.domain import Domain
from ..target.points import fitting_points, judging_points
from ..target.samples import read_samples, read_weights
from ..target.target import Target, target_of
from .recipe import LARGEST_COUNT, Recipe

SAMPLES = 16_384  # points where a function is sampled by default
HELD_OUT = 4_096  # other points of a function, where the layer is validated
CONSTANT_SPREAD = 1e-12  # a feature or an answer that varies by less than this share of its size counts as constant


@dataclass(frozen=True, eq=False)
class Material:
    """Inputs [sample, token, feature] and answers [sample, out] (or label numbers [sample]), fitted and held out."""

    x: Tensor
    y: Tensor
    held_x: Tensor
    held_y: Tensor
    domain: Domain
    shape: tuple[int, int]
    output_shape: tuple[int, ...]
    target: Target | None = None
    labels: tuple[Any, ...] = ()
    weights: Tensor | None = None  # of the fitted samples
    held_weights: Tensor | None = None  # of those held out

    @property
    def outputs(self) -> int:
        return len(self.labels) or self.y.shape[1]

    @property
    def at_positions(self) -> bool:
        """Whether there is an answer at every token, so that the layer is read out at every token."""
        return len(self.output_shape) > 1 and self.output_shape[0] == self.shape[0] and not self.labels

    def answer_scale(self) -> tuple[Tensor, Tensor]:
        """(middle, spread) of the answers, which training shifts and scales to mean 0 and spread 1; (0, 1) for labels."""
        if self.labels:
            return torch.zeros(self.outputs, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
        middle = self.y.mean(dim=0)
        if self.at_positions:  # the read-out is the same at every position
            n = self.shape[0]
            middle = middle.reshape(n, -1).mean(dim=0).repeat(n)
        spread = (self.y - middle).square().mean().sqrt()
        size = max(float(self.y.abs().max()), 1e-300)
        return middle, torch.where(spread > CONSTANT_SPREAD * size, spread, torch.ones_like(spread))[None]


def material_of(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any,
    shape: tuple[int, int] | None,
    recipe: Recipe,
    samples: int | None = None,
) -> Material:
    """The material of a function (formula, callable, Target) or of samples (X, Y) or (X, Y, weights)."""
    if samples is not None:
        require_whole("samples", samples, 1, LARGEST_COUNT)
    if isinstance(function, tuple):
        return _given(function, domain, shape, recipe, samples)
    if recipe.loss == "cross_entropy":
        raise InputError("samples (X, labels) for loss='cross_entropy'", "a function", "use loss='mse' or loss='sup'")
    target = target_of(function, domain, shape=shape)
    if target.data is not None:
        raise InputError("samples as (X, Y)", "a Target made of samples", "pass (X, Y) itself")
    n, d = target.shape

    def drawn(unit: Tensor) -> tuple[Tensor, Tensor]:
        points = target.domain.points(unit.numpy())
        points = points[target.domain.contains(points)]
        return torch.from_numpy(points).reshape(-1, n, d), torch.from_numpy(target(points))

    x, y = drawn(fitting_points(samples or SAMPLES, target.dimension, recipe.seed))
    held_x, held_y = drawn(judging_points(HELD_OUT, target.dimension, 10_000_019 + recipe.seed))
    if not len(x) or not len(held_x):
        raise InputError("a domain with points in it", "none among the samples", "widen it")
    return Material(x, y, held_x, held_y, target.domain, target.shape, target.output_shape, target)


def _given(
    given: tuple[Any, ...], domain: Any, shape: tuple[int, int] | None, recipe: Recipe, samples: int | None
) -> Material:
    if len(given) not in (2, 3):
        raise InputError("samples (X, Y), or (X, Y, weights)", counted(len(given), "array"), "give two or three")
    if domain is not None:
        raise InputError("samples alone, and `shape` if they are sequences", "domain", "leave it out")
    labels, answers = _labels(given[1]) if recipe.loss == "cross_entropy" else ((), given[1])
    X, Y = read_samples(given[0], answers)
    n, d = _shape(X, shape)
    x, y = X.reshape(len(X), n, d), Y.astype(np.int64) if labels else Y.reshape(len(Y), -1)
    output_shape = (len(labels),) if labels else Y.shape[1:] or (1,)
    weights = None if len(given) == 2 else read_weights(given[2], len(X))
    order = np.random.default_rng(recipe.seed).permutation(len(x))
    held = max(1, round(recipe.validation * len(x))) if recipe.validation and len(x) > 1 else 0
    kept = order[held:] if samples is None else order[held : held + samples]
    judged = order[:held] if held else order
    fit_weights, held_weights = (None if weights is None else torch.from_numpy(weights[r]) for r in (kept, judged))
    if held_weights is not None and not held_weights.any():
        held_weights = None  # all count the same
    parts = (x[kept], y[kept], x[judged], y[judged])
    fit_x, fit_y, held_x, held_y = (torch.from_numpy(np.ascontiguousarray(a)) for a in parts)
    flat = X.reshape(len(X), -1)
    low, high = flat.min(axis=0), flat.max(axis=0)
    constant = ~(high - low > CONSTANT_SPREAD * np.maximum(np.abs(low), np.abs(high)) + 1e-280)
    box = box_around(flat, constant)
    return Material(fit_x, fit_y, held_x, held_y, box, (n, d), output_shape, None, labels, fit_weights, held_weights)


def _shape(X: np.ndarray, shape: Any) -> tuple[int, int]:
    if shape is not None:
        D = math.prod(X.shape[1:])
        pair = isinstance(shape, tuple) and len(shape) == 2
        if not (pair and all(is_whole(k) and k > 0 for k in shape) and shape[0] * shape[1] == D):
            raise InputError(f"shape (n, d) with n·d = {D}", f"{shape}", "make the two agree")
        return int(shape[0]), int(shape[1])
    return (X.shape[1], X.shape[2]) if X.ndim == 3 else (math.prod(X.shape[1:]), 1)


def _labels(Y: Any) -> tuple[tuple[Any, ...], np.ndarray]:
    """(the different labels, the number of the label of each sample)."""
    try:
        found = np.asarray(Y)
    except ValueError:  # rows of different lengths
        found = np.empty((0, 0))
    kind = found.dtype.kind
    plain = kind in "iubU" or (kind == "O" and all(isinstance(v, str | int) for v in found.flat))
    if found.ndim != 1 or not plain or len({type(v) for v in found.tolist()}) > 1:
        raise InputError("one label per sample, whole numbers or texts", f"Y of {found.dtype}", "give labels")
    labels, numbers = np.unique(found, return_inverse=True)
    return tuple(labels.tolist()), numbers


def box_around(x: np.ndarray, constant: np.ndarray) -> Domain:
    """The smallest box around samples [sample, coordinate], slightly wider along the coordinates that are constant."""
    low, high = x.min(axis=0), x.max(axis=0)
    widening = np.where(constant, np.maximum(np.abs(low), 1.0) * 1e-6, 0.0)
    lower, upper = (low - widening).tolist(), (high + widening).tolist()
    ends = tuple((repr(a), repr(b)) for a, b in zip(lower, upper, strict=True))
    return Domain(tuple(f"x{j + 1}" for j in range(len(lower))), tuple(lower), tuple(upper), ends)
