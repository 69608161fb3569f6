"""Material: what a layer is trained on and judged by, from a function or from samples, labels or numbers, noisy or not.

A function is sampled on its domain, faces and corners included; it is validated at other points. Given samples are split by
the seed; those held out are never trained on. Inputs stay as they are given: the layer's embedding normalises them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..common.errors import InputError
from ..target.domain import Domain
from ..target.points import fitting_points, uniform_points
from ..target.samples import LARGEST, numbers_of
from ..target.target import Target, target_of
from .recipe import Recipe

SAMPLES = 16_384  # of a function, unless asked otherwise
HELD_OUT = 4_096  # points of a function that the layer is validated at
SPREAD_LEAST = 1e-12  # of its size: a feature or an answer that varies less is taken for constant


@dataclass(frozen=True, eq=False)
class Material:
    """Inputs [sample, token, feature] and answers [sample, out] (or label numbers [sample]), to fit and held out."""

    x: Tensor
    y: Tensor
    held_x: Tensor
    held_y: Tensor
    domain: Domain
    shape: tuple[int, int]
    output_shape: tuple[int, ...]
    target: Target | None = None
    labels: tuple[Any, ...] = ()
    weights: Tensor | None = None  # how much every sample to fit counts
    held_weights: Tensor | None = None  # and every one held out

    @property
    def outputs(self) -> int:
        return len(self.labels) or self.y.shape[1]

    @property
    def at_positions(self) -> bool:
        """Whether there is an answer at every token, so that a layer is read there."""
        return len(self.output_shape) > 1 and self.output_shape[0] == self.shape[0] and not self.labels

    def answers(self) -> tuple[Tensor, Tensor]:
        """(middle, spread) of the answers, for a read-out that starts in the right place; labels have none."""
        if self.labels:
            return torch.zeros(self.outputs, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
        middle = self.y.mean(dim=0)
        if self.at_positions:  # the read-out is the same at every position
            n = self.shape[0]
            middle = middle.reshape(n, -1).mean(dim=0).repeat(n)
        spread = (self.y - middle).square().mean().sqrt()
        size = max(float(self.y.abs().max()), 1e-300)
        return middle, torch.where(spread > SPREAD_LEAST * size, spread, torch.ones_like(spread))[None]


def material_of(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any,
    about: Mapping[str, Any],
    recipe: Recipe,
    samples: int | None = None,
) -> Material:
    """The material of a function (text, callable, Target) or of samples (X, Y), or (X, Y, weights)."""
    if samples is not None and (isinstance(samples, bool) or not isinstance(samples, Integral) or samples < 1):
        raise InputError("samples, a whole number above 0", f"{samples!r}", "say how many samples to fit")
    if isinstance(function, tuple):
        return _given(function, domain, about, recipe, samples)
    if recipe.loss == "cross_entropy":
        raise InputError("samples (X, labels) for loss='cross_entropy'", "a function", "use loss='mse' or 'sup'")
    target = target_of(function, domain, **about)
    if target.data is not None:
        raise InputError("samples as (X, Y)", "a Target made of samples", "pass (X, Y) itself")
    n, d = target.shape

    def drawn(unit: Tensor) -> tuple[Tensor, Tensor]:
        points = target.domain.points(unit.numpy())
        points = points[target.domain.contains(points)]
        return torch.from_numpy(points).reshape(-1, n, d), torch.from_numpy(target(points))

    x, y = drawn(fitting_points(samples or SAMPLES, target.dimension, recipe.seed))
    held_x, held_y = drawn(uniform_points(HELD_OUT, target.dimension, 10_000_019 + recipe.seed))
    if not len(x) or not len(held_x):
        raise InputError("a domain with points in it", "none among the samples", "widen it")
    return Material(x, y, held_x, held_y, target.domain, target.shape, target.output_shape, target)


def _given(
    given: tuple[Any, ...], domain: Any, about: Mapping[str, Any], recipe: Recipe, samples: int | None
) -> Material:
    if len(given) not in (2, 3):
        raise InputError("samples (X, Y), or (X, Y, weights)", f"{len(given)} arrays", "give two or three")
    if domain is not None or set(about) - {"shape"}:
        found = ", ".join(sorted({"domain"} if domain is not None else set(about) - {"shape"}))
        raise InputError("samples alone, and `shape` if they are sequences", found, "leave it out")
    X = _finite("X", given[0])
    if X.ndim not in (2, 3) or not len(X):
        raise InputError("X of shape [N, D] or [N, n, d]", f"shape {list(X.shape)}", "reshape X")
    n, d = _shape(X, about.get("shape"))
    labels, y, output_shape = _answers(given[1], recipe)
    if len(y) != len(X):
        raise InputError("as many answers as samples", f"{len(X)} samples, {len(y)} answers", "make them agree")
    weights = None if len(given) == 2 else _finite("weights", given[2]).reshape(-1)
    if weights is not None and (len(weights) != len(X) or (weights < 0).any() or not weights.any()):
        raise InputError("a weight ≥ 0 for every sample, not all 0", f"{len(weights)} weights", "correct the weights")
    x = X.reshape(len(X), n, d)
    order = np.random.default_rng(recipe.seed).permutation(len(x))
    held = max(1, round(recipe.validation * len(x))) if recipe.validation and len(x) > 1 else 0
    kept = order[held:] if samples is None else order[held : held + samples]
    judged = order[:held] if held else order
    own, others = (None if weights is None else torch.from_numpy(weights[rows]) for rows in (kept, judged))
    if others is not None and not others.any():
        others = None  # they count alike
    fit_x, fit_y, held_x, held_y = (
        torch.from_numpy(np.ascontiguousarray(a)) for a in (x[kept], y[kept], x[judged], y[judged])
    )
    hull = _hull(X.reshape(len(X), -1))
    return Material(fit_x, fit_y, held_x, held_y, hull, (n, d), output_shape, None, labels, own, others)


def _finite(name: str, given: Any) -> np.ndarray:
    found = numbers_of(name, given)
    if not np.isfinite(found).all():
        raise InputError(f"finite numbers as {name}", "NaN or infinity", "leave those samples out")
    if np.abs(found).max(initial=0.0) > LARGEST:
        raise InputError(f"{name} of size at most {LARGEST:g}", f"{np.abs(found).max():.3g}", "scale the samples")
    return found


def _shape(X: np.ndarray, shape: Any) -> tuple[int, int]:
    if shape is not None:
        whole = (
            isinstance(shape, tuple) and len(shape) == 2 and all(isinstance(k, Integral) and int(k) > 0 for k in shape)
        )
        fits = whole and shape[0] * shape[1] == np.prod(X.shape[1:])
        if not fits:
            raise InputError(f"shape (n, d) with n·d = {int(np.prod(X.shape[1:]))}", f"{shape}", "make the two agree")
        return int(shape[0]), int(shape[1])
    return (X.shape[1], X.shape[2]) if X.ndim == 3 else (X.shape[1], 1)


def _answers(Y: Any, recipe: Recipe) -> tuple[tuple[Any, ...], np.ndarray, tuple[int, ...]]:
    """(labels, answers, shape of one answer); answers are label numbers where the loss is cross-entropy."""
    if recipe.loss == "cross_entropy":
        try:
            found = np.asarray(Y)
        except ValueError:  # rows of different lengths
            found = np.empty((0, 0))
        plain = found.dtype.kind in "iubU" or (
            found.dtype.kind == "O" and all(isinstance(v, str | int) for v in found.flat)
        )
        if found.ndim != 1 or not plain or len({type(v) for v in found.tolist()}) > 1:
            raise InputError("one label per sample, whole numbers or texts", f"Y of {found.dtype}", "give labels")
        labels, numbers = np.unique(found, return_inverse=True)
        return tuple(labels.tolist()), numbers.astype(np.int64), (len(labels),)
    y = _finite("Y", Y)
    if not y.ndim:
        raise InputError("an answer for every sample", "one number", "give an array")
    return (), y.reshape(len(y), -1), y.shape[1:] or (1,)


def _hull(X: np.ndarray) -> Domain:
    """The box around the samples, widened a little where they do not vary."""
    low, high = X.min(axis=0), X.max(axis=0)
    flat = ~(high - low > SPREAD_LEAST * np.maximum(np.abs(low), np.abs(high)) + 1e-280)
    room = np.where(flat, np.maximum(np.abs(low), 1.0) * 1e-6, 0.0)
    low, high = (low - room).tolist(), (high + room).tolist()
    ends = tuple((repr(a), repr(b)) for a, b in zip(low, high, strict=True))
    return Domain(tuple(f"x{j + 1}" for j in range(len(low))), tuple(low), tuple(high), ends)
