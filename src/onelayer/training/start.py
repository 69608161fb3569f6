"""What a training starts from: a fresh layer for its material, or a copy of an Approximation that fits it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.machine import device_of
from ..formula import parse
from ..layer.arithmetic import arithmetic_of
from ..model.config import Activation, Attention, LayerConfig, Norm
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
from .material import CONSTANT_SPREAD, Material, material_of
from .recipe import Recipe
from .steps import LayerTraining


@dataclass(frozen=True, kw_only=True)
class StartingLayer:
    """The layer that training starts from: one of this shape with random weights, or a copy of `init`."""

    heads: int = 4
    width: int = 256
    d_model: int = 64
    activation: Activation = "gelu"
    norm: Norm = "none"
    attention: Attention = "softmax"
    window: int = 0
    shared_scale: bool = False
    init: "Literal['random'] | Approximation" = "random"
    dtype: "str | torch.dtype" = "float32"


def prepare(
    function: "str | Callable[[Any], Any] | tuple[Any, ...] | Target",
    domain: Any,
    recipe: Recipe,
    start: StartingLayer,
    *,
    samples: int | None = None,
    device: str = "cpu",
    shape: tuple[int, int] | None = None,
) -> LayerTraining:
    """A training that is ready for its first step."""
    init = start.init
    if not isinstance(init, Approximation) and init != "random":
        found = f"{init!r}" if isinstance(init, str) else type(init).__name__
        raise InputError("init='random' or an Approximation", found, "choose one of the two")
    if isinstance(init, Approximation):
        _require_same_function(init, function)
    material = material_of(function, domain, shape, recipe, samples)
    if isinstance(init, Approximation):
        _require_shapes(init, material)
        model, places = _copy(init, recipe), init.facts.places
    else:
        model = fresh_layer(material, recipe, start)
        places = tuple(range(model.config.places))
    return LayerTraining(model, places, material, recipe, device_of(device), isinstance(init, Approximation))


def fresh_layer(material: Material, recipe: Recipe, start: StartingLayer) -> SingleLayerTransformer:
    """A layer with random weights for the material: learned codes, features normalised, read at positions or as a mean."""
    heads, d_model = start.heads, start.d_model
    n, d = material.shape
    at_positions = material.at_positions
    per_head = -(-d_model // heads) if isinstance(heads, int) and heads > 0 else 1
    config = LayerConfig(
        tokens=n, features_in=d, features_out=material.outputs // n if at_positions else material.outputs,
        d_model=d_model, heads=heads, d_k=per_head, d_v=per_head, ffn_width=start.width, activation=start.activation,
        dropout=recipe.dropout, code="learned", norm=start.norm, readout="position" if at_positions else "mean",
        projection_bias=True, attention=start.attention, window=start.window,
    )  # fmt: skip
    model = SingleLayerTransformer(config, seed=recipe.seed, dtype=arithmetic_of(start.dtype).dtype)
    if material.target is not None:
        low, high = (torch.tensor(t, dtype=torch.float64) for t in (material.domain.lower, material.domain.upper))
        middle, spread = (low + high) / 2, (high - low) / 2
    else:
        flat = material.x.reshape(-1, 1) if start.shared_scale else material.x.flatten(1)
        middle, spread = flat.mean(dim=0), flat.std(dim=0, correction=0)
        size = flat.abs().amax(dim=0)
        spread = torch.where(spread > CONSTANT_SPREAD * size, spread, torch.ones_like(spread))
    with torch.no_grad():
        model.shift.copy_(middle.expand(n * d).reshape(n, d))
        model.scale.copy_((1 / spread).expand(n * d).reshape(n, d))
    return model


def _copy(init: Approximation, recipe: Recipe) -> SingleLayerTransformer:
    model = SingleLayerTransformer(replace(init.model.config, dropout=recipe.dropout), dtype=init.model.W_E.dtype)
    model.load_state_dict(init.model.state_dict())
    return model


def _require_same_function(init: Approximation, function: Any) -> None:
    """An Approximation to start from is of the same formula, where there are two to compare."""
    text, own = function.text if isinstance(function, Target) else function, init.target
    if not isinstance(text, str) or own is None or own.formula is None:
        return
    if parse(text, own.formula.names).text != own.text:
        raise InputError(f"an Approximation of {text}", f"one of {own.text}", "build one for the same function")


def _require_shapes(init: Approximation, material: Material) -> None:
    """An Approximation to start from has as many inputs and outputs as the material."""
    c = init.model.config
    own = (c.tokens * c.features_in, len(init.facts.places) * c.features_out)
    wanted = (material.shape[0] * material.shape[1], material.outputs)
    if own != wanted or init.vocabulary is not None:
        asked, found = (f"{i} numbers in and {o} out" for i, o in (wanted, own))
        found += ", tokens" if init.vocabulary is not None else ""
        raise InputError(f"init, a layer with {asked}", found, "build one for the same function")
