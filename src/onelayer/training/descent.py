"""Training: the same layer by gradient descent, Section II.C. Existence is not learnability: a trained layer is only observed.

    target or samples → material → a fresh (or constructed) layer → torch.optim → the weights that did best on held-out samples

Every random choice is a function of the seed and the step, so that an interrupted training resumes from its checkpoint as if
it had never stopped: on a CPU history and weights are equal bit by bit. `ol.certify` proves what can be proved about the
result, as for any other layer.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..approximation import Approximation
from ..common.budget import Budget
from ..common.checks import known_options
from ..common.progress import Progress
from ..layer.arithmetic import arithmetic_of
from ..layer.facts import Facts
from ..model.config import Activation, Attention, Norm
from ..model.history import History
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import Certificate, unproved
from ..proof.observation import observe
from ..target.decoding import Decoding
from ..target.description import Description
from ..target.domain import Domain
from ..target.target import Target, require_tolerance
from .checkpoint import require_limits
from .material import Material
from .recipe import Loss, Optimizer, Recipe, Schedule
from .start import StartingLayer, prepare
from .steps import LayerTraining


@known_options
def train(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any = None,
    tolerance: float = 1e-2,
    *,
    heads: int = 4,
    width: int = 256,
    d_model: int = 64,
    activation: Activation = "gelu",
    norm: Norm = "none",
    attention: Attention = "softmax",
    window: int = 0,
    shared_scale: bool = False,
    init: "Literal['random'] | Approximation" = "random",
    samples: int | None = None,
    optimizer: Optimizer = "adam",
    loss: Loss = "mse",
    schedule: Schedule = "cosine",
    rate: float | None = None,
    steps: int = 5000,
    batch: int = 256,
    warm_up: float = 0.05,
    clipping: float = 1.0,
    weight_decay: float = 0.0,
    dropout: float = 0.0,
    validation: float = 0.1,
    every: int = 250,
    patience: int | None = None,
    seed: int = 0,
    dtype: "str | torch.dtype" = "float32",
    device: str = "cpu",
    seconds: float | None = None,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    shape: tuple[int, int] | None = None,
) -> Approximation:
    """A layer trained on a function (as for `build`) or on samples (X, Y) or (X, Y, weights).

    The layer has `heads` heads, a feed-forward network of `width` units and a stream of `d_model` numbers. `attention` is that
    of `LayerConfig`: "softmax", or what stands in its place, "local" with its `window`. A function is sampled
    at `samples` points; of given samples the share `validation` is held out. `shared_scale=True` normalises all entries of
    a given input by the same numbers, as for the pixels of an image. `init=approximation` starts from its weights and
    never returns a layer with a larger error on the held-out points.

    `loss` is "mse", "sup" (a smooth maximum) or, for labels, "cross_entropy"; `optimizer` is "adam", "sgd" or "momentum". The
    `rate` rises during the share `warm_up` of the steps, then falls as half a cosine or stays (`schedule="constant"`). The layer
    is validated every `every` steps; training stops after `patience` validations without progress. `clipping` limits the
    norm of a gradient (0: no limit).

    `checkpoint` is a file, written during training; if it exists, training resumes from it. An interrupt, or the end of the
    `seconds`, keeps the best so far. The error is observed; the certificate compares it with `tolerance`. `shape`
    is that of a sequence; everything else that is known about a function goes into a `Target`.
    """
    require_tolerance(tolerance)
    require_limits(seconds, checkpoint)
    budget = Budget(math.inf if seconds is None else seconds)
    recipe = Recipe(
        optimizer=optimizer, loss=loss, schedule=schedule, rate=rate, steps=steps, batch=batch, seed=seed, warm_up=warm_up,
        clipping=clipping, weight_decay=weight_decay, dropout=dropout, validation=validation, every=every, patience=patience,
    )  # fmt: skip
    start = StartingLayer(
        heads=heads, width=width, d_model=d_model, activation=activation, norm=norm, attention=attention, window=window,
        shared_scale=shared_scale, init=init, dtype=dtype,
    )  # fmt: skip
    training = prepare(function, domain, recipe, start, shape=shape, samples=samples, device=device)
    history = training.train(None if checkpoint is None else Path(checkpoint), budget, progress)
    return _finished(training, history, tolerance)


def _finished(training: LayerTraining, history: History, tolerance: float) -> Approximation:
    """The Approximation: observed, not proved."""
    material, model = training.material, training.model
    c = model.config
    arithmetic = arithmetic_of(model.W_E.dtype)
    dtype = np.float32 if arithmetic.name == "float32" else np.float64
    certificate = unproved(model, tolerance, str(material.domain))
    recipe, note = training.recipe, f"{history.steps:,} steps, the best after {history.best:,} ({history.stopped})"
    facts = Facts(
        method="trained", construction=f"{recipe.optimizer}, {recipe.loss}", layout=c.readout, units=c.heads,
        heads=(("trained", c.heads),), seconds=history.seconds, seed=recipe.seed, places=training.places, notes=(note,),
    )  # fmt: skip
    shapes = (material.domain, material.shape, material.output_shape)
    if material.target is None:
        count = len(material.x) + len(material.held_x)
        found = approximation_of_samples(model, certificate, facts, *shapes, count, material.labels, history)
        observed, points = _held_out(found, material), len(material.held_x)
    else:
        found = Approximation.of(model, material.target, certificate, facts, history)
        seen = observe(
            lambda x: np.asarray(found(x), dtype=np.float64).reshape(len(x), -1), material.target, dtype=dtype
        )
        observed, points = seen.largest, seen.points
    return replace(found, certificate=replace(certificate, observed=observed, observed_points=points))


def approximation_of_samples(
    model: SingleLayerTransformer,
    certificate: Certificate,
    facts: Facts,
    box: Domain,
    shape: tuple[int, int],
    output_shape: tuple[int, ...],
    count: int,
    labels: tuple[Any, ...] = (),
    history: History | None = None,
) -> Approximation:
    """The Approximation of `count` samples, which are described but not kept."""
    decoding, text = Decoding("largest", labels) if labels else None, f"{count:,} samples"
    description = Description(
        kind="data", text=text, domain=box, shape=shape, output_shape=output_shape, decoding=decoding
    )
    return Approximation(model, certificate, facts, description, history=history)


def _held_out(found: Approximation, material: Material) -> float:
    """The largest error at held-out samples; for labels the share of wrong answers."""
    x, y = material.held_x, material.held_y
    answers = np.asarray(found(x.flatten(1).numpy()), dtype=np.float64).reshape(len(x), -1)
    if material.labels:
        return float((answers.argmax(axis=1) != y.numpy()).mean())
    return float(np.abs(answers - y.numpy()).max())
