"""Training: the same layer by gradient descent, Section II.C. Existence is not learnability: a trained layer is only observed.

    target or samples → material → a fresh (or constructed) layer → torch.optim → the weights that did best on held-out samples

Every random choice is a function of the seed and the step, so that a training that was interrupted goes on from its
checkpoint as if nothing had happened: on a CPU history and weights are equal bit by bit. `ol.certify` proves what can be
proved about the result, as for any other layer.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ..approximation import Approximation, Facts
from ..common.errors import InputError
from ..common.machine import device_of
from ..construction.lemma import Known
from ..layer.arithmetic import arithmetic_of
from ..model.config import Activation, LayerConfig, Norm
from ..model.history import History
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import Certificate
from ..proof.observation import observe
from ..target.decoding import Decoding
from ..target.target import Target, require_tolerance
from .material import Material, material_of
from .recipe import Recipe
from .steps import Run

Progress = Callable[[str, float], None]
LEAST_SCALE = 1e-12  # a feature that varies less than this part of its size is not scaled


def train(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any = None,
    *,
    tolerance: float = 1e-2,
    checkpoint: str | Path | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
    **wishes: Any,
) -> Approximation:
    """A layer trained on a function (as for `build`) or on samples (X, Y).

    `wishes` are heads, width (of the FFN), d_model, activation, norm, alike, init, samples, dtype, device, optimizer, loss;
    schedule, rate, steps, batch, seed, clipping, weight_decay, dropout, validation, every, patience; and those of `Target`.
    `loss="cross_entropy"` takes labels, `loss="sup"` a smooth maximum. `alike=True` normalises all entries of a given input in
    one unit, as for the pixels of an image. `init=approximation` starts from its weights and never returns a layer with a
    larger error on the held-out points.

    `checkpoint` is a file: written as training goes on, and gone on from if it exists. An interrupt, or the end of the
    `seconds`, keeps the best so far. The error is observed; `tolerance` is what it is compared with in the certificate.
    """
    require_tolerance(tolerance)
    if seconds is not None and not (isinstance(seconds, Real) and 0 < seconds < math.inf):
        raise InputError("seconds, finite and above 0", f"{seconds!r}", "say how long training may take")
    if checkpoint is not None and (not isinstance(checkpoint, str | Path) or not Path(checkpoint).name):
        raise InputError("checkpoint, the name of a file", f"{checkpoint!r}", "name a file")
    run = prepared(function, domain, **wishes)
    history = run.train(None if checkpoint is None else Path(checkpoint), seconds, progress)
    return _finished(run, history, tolerance)


def prepared(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any = None,
    *,
    heads: int = 4,
    width: int = 256,
    d_model: int = 64,
    activation: Activation = "gelu",
    norm: Norm = "none",
    alike: bool = False,
    init: "Literal['random'] | Approximation" = "random",
    samples: int | None = None,
    dtype: "str | torch.dtype" = "float32",
    device: str = "cpu",
    optimizer: str = "adam",
    loss: str = "mse",
    **options: Any,
) -> Run:
    """A training that is ready to start, as `train` describes it; `options` are those of `Recipe` and of `Target`."""
    known = set(Recipe.__dataclass_fields__)
    recipe = Recipe(optimizer=optimizer, loss=loss, **{k: v for k, v in options.items() if k in known})  # type: ignore[arg-type]
    about = {k: v for k, v in options.items() if k not in known}
    if not isinstance(init, Approximation) and init != "random":
        raise InputError("init='random' or an Approximation", f"{init!r}", "choose one of the two")
    if isinstance(init, Approximation) and init.target is not None and not isinstance(function, tuple):
        require_same(init, function)
    material = material_of(function, domain, about, recipe, samples)
    if isinstance(init, Approximation):
        require_shapes(init, material)
        model, places = _copy(init, recipe), init.facts.places
    else:
        model = fresh_layer(
            material, recipe, (heads, width, d_model), activation, norm, arithmetic_of(dtype).dtype, alike
        )
        places = tuple(range(model.config.places))
    return Run(model, places, material, recipe, device_of(device), isinstance(init, Approximation))


def fresh_layer(
    material: Material,
    recipe: Recipe,
    size: tuple[int, int, int],
    activation: Activation,
    norm: Norm,
    dtype: torch.dtype,
    alike: bool = False,
) -> SingleLayerTransformer:
    """A layer with random weights for the material: learned codes, features normalised, read at positions or as a mean."""
    heads, width, d_model = size
    n, d = material.shape
    at_positions = material.at_positions
    per_head = -(-d_model // heads) if isinstance(heads, int) and heads > 0 else 1
    config = LayerConfig(
        tokens=n,
        features_in=d,
        features_out=material.outputs // n if at_positions else material.outputs,
        d_model=d_model,
        heads=heads,
        d_k=per_head,
        d_v=per_head,
        ffn_width=width,
        activation=activation,
        dropout=recipe.dropout,
        code="learned",
        norm=norm,
        readout="position" if at_positions else "mean",
        projection_bias=True,
    )
    model = SingleLayerTransformer(config, seed=recipe.seed, dtype=dtype)
    if material.target is not None:
        low, high = (torch.tensor(t, dtype=torch.float64) for t in (material.domain.lower, material.domain.upper))
        middle, spread = (low + high) / 2, (high - low) / 2
    else:
        flat = material.x.reshape(-1, 1) if alike else material.x.flatten(1)
        middle, spread = flat.mean(dim=0), flat.std(dim=0, correction=0)
        size_of = flat.abs().amax(dim=0)
        spread = torch.where(spread > LEAST_SCALE * size_of, spread, torch.ones_like(spread))
    with torch.no_grad():
        model.shift.copy_(middle.expand(n * d).reshape(n, d))
        model.scale.copy_((1 / spread).expand(n * d).reshape(n, d))
    return model


def _finished(run: Run, history: History, tolerance: float) -> Approximation:
    """The Approximation: observed, not proved."""
    material, model = run.material, run.model
    c = model.config
    arithmetic = arithmetic_of(model.W_E.dtype)
    single = np.float32 if arithmetic.name == "float32" else np.float64
    certificate = Certificate(
        tolerance, math.inf, math.nan, 0, "none", str(material.domain), arithmetic.name, weights=model.fingerprint()
    )
    facts = Facts(
        method="trained",
        construction=f"{run.recipe.optimizer}, {run.recipe.loss}",
        layout="position" if c.readout == "position" else c.readout,
        heads=(("trained", c.heads),),
        units=c.heads,
        total=0.0,
        seconds=history.seconds,
        seed=run.recipe.seed,
        places=run.places,
        notes=(f"{history.steps:,} steps, the best after {history.best:,} ({history.stopped})",),
    )
    stored = None
    if material.target is None:
        known = Known(
            kind="data",
            description=f"{len(material.x) + len(material.held_x):,} samples",
            domain=material.domain,
            words=str(material.domain),
            shape=material.shape,
            output_shape=material.output_shape,
            decoding=Decoding("largest", material.labels) if material.labels else None,
        )
        stored = known.record()
    found = Approximation(
        model, material.target, certificate, facts, material.domain, material.shape, material.output_shape,
        stored=stored, history=history,
    )  # fmt: skip
    if material.target is not None:
        seen = observe(
            lambda x: np.asarray(found(x), dtype=np.float64).reshape(len(x), -1), material.target, dtype=single
        )
        certificate = replace(certificate, observed=seen.largest, observed_points=seen.points)
    else:
        certificate = replace(certificate, observed=_held_out(found, run), observed_points=len(material.held_x))
    return replace(found, certificate=certificate)


def _held_out(found: Approximation, run: Run) -> float:
    """The largest error at held-out samples; for labels the share of wrong answers."""
    x, y = run.material.held_x, run.material.held_y
    answers = np.asarray(found(x.flatten(1).numpy()), dtype=np.float64).reshape(len(x), -1)
    if run.material.labels:
        return float((answers.argmax(axis=1) != y.numpy()).mean())
    return float(np.abs(answers - y.numpy()).max())


def _copy(init: Approximation, recipe: Recipe) -> SingleLayerTransformer:
    model = SingleLayerTransformer(replace(init.model.config, dropout=recipe.dropout), dtype=init.model.W_E.dtype)
    model.load_state_dict(init.model.state_dict())
    return model


def require_same(init: Approximation, function: Any) -> None:
    """A construction to start from has the variables of the function."""
    text = function.text if isinstance(function, Target) else function
    assert init.target is not None
    if isinstance(text, str) and init.target.formula is not None and text != init.target.text:
        raise InputError(f"an Approximation of {text}", f"one of {init.target.text}", "build one for the same function")


def require_shapes(init: Approximation, material: Material) -> None:
    """A construction to start from has as many inputs and outputs as the material."""
    c = init.model.config
    own = (c.tokens * c.features_in, len(init.facts.places) * c.features_out)
    wanted = (material.shape[0] * material.shape[1], material.outputs)
    if own != wanted or init.vocabulary is not None:
        asked, found = (f"{i} numbers in and {o} out" for i, o in (wanted, own))
        found = f"{found}" + (", tokens" if init.vocabulary is not None else "")
        raise InputError(f"init, a layer with {asked}", found, "build one for the same function")
