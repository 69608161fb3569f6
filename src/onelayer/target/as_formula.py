"""A module as a formula, where its operations allow it: then the construction is proved against the module itself.

Sequences of linear maps and of tanh, sigmoid, ReLU, GELU or SiLU become a formula with exactly the numbers of the weights: a
float is a quotient of two whole numbers, so that the formula is the module in exact arithmetic. Networks whose formula would
exceed the parser's limits have none.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..formula import evaluate
from ..formula.vocabulary import MAX_CHARACTERS
from .points import uniform_points

if TYPE_CHECKING:
    from .target import Target

SEEN = 4096  # points where a module is compared with its formula

ACTIVATIONS = {
    nn.Tanh: "tanh({0})",
    nn.Sigmoid: "sigmoid({0})",
    nn.ReLU: "max({0}, 0)",
    nn.SiLU: "({0})*sigmoid({0})",
    nn.GELU: "({0})*(1 + erf(({0})/sqrt(2)))/2",
}


def formula_of(module: object, names: Sequence[str]) -> str | None:
    """The module in the variables of these names as text, outputs separated by ";"; None if it has no such formula."""
    if not isinstance(module, nn.Module):
        return None
    texts = list(names)
    parts = _parts(module)
    for part in parts or ():
        kind = parametrize.type_before_parametrizations(part)
        if isinstance(part, nn.Linear) and kind is nn.Linear:
            if part.in_features != len(texts) or not _fixed(part):
                return None
            found = [_affine(w, b, texts) for w, b in zip(part.weight, _bias(part), strict=True)]
            if any(text is None for text in found):
                return None
            texts = [text for text in found if text is not None]
        elif kind in ACTIVATIONS and getattr(part, "approximate", "none") == "none":
            texts = [ACTIVATIONS[kind].format(text) for text in texts]
        elif not _passes(part):
            return None
        if sum(map(len, texts)) > MAX_CHARACTERS:
            return None
    return None if parts is None else "; ".join(texts)


def _parts(teacher: nn.Module) -> list[nn.Module] | None:
    """The modules in the order in which they act, or the teacher alone if it is no sequence.

    None if one of them does not do what its class does: it has hooks, or another `forward`.
    """
    if "forward" in vars(teacher) or teacher._forward_hooks or teacher._forward_pre_hooks:
        return None
    if type(teacher) is not nn.Sequential:
        return [teacher]
    found = [_parts(child) for child in teacher]
    return None if None in found else [part for parts in found for part in parts or ()]


def _passes(part: nn.Module) -> bool:
    """Whether a module returns its input unchanged."""
    if type(part) is nn.Dropout:
        return not part.training or part.p == 0
    return type(part) is nn.Identity or (type(part) is nn.Flatten and part.start_dim == 1)


def _fixed(layer: nn.Linear) -> bool:
    """Whether the weights are real numbers, the same each time they are read: a parametrisation computes them anew."""
    pairs = ((layer.weight, layer.weight), (_bias(layer), _bias(layer)))
    return all(a.is_floating_point() and not a.is_meta and torch.equal(a, b) for a, b in pairs)


def _bias(layer: nn.Linear) -> Tensor:
    return torch.zeros(layer.out_features) if layer.bias is None else layer.bias


def _affine(weights: Tensor, bias: Tensor, texts: list[str]) -> str | None:
    numbers = [float(v) for v in (*weights.detach(), bias.detach())]
    if not all(abs(v) < 1e30 and (v == 0 or abs(v) > 1e-30) for v in numbers):
        return None
    terms = [f"{_exact(w)}*({text})" for w, text in zip(numbers[:-1], texts, strict=True) if w]
    return " + ".join([*terms, _exact(numbers[-1])])


def _exact(value: float) -> str:
    """A float as a quotient of whole numbers."""
    top, bottom = value.as_integer_ratio()
    return f"({top}/{bottom})"


def rounding_seen(target: "Target") -> float:
    """How far a module's own answers are from its formula, at random points; 0 for a target that is no module.

    What is proved is proved of the formula: it says nothing about a module whose own rounding is that large.
    """
    if target.formula is None or target.function is None:
        return 0.0
    x = target.domain.points(uniform_points(SEEN, target.dimension, 77).numpy())
    x = x[target.domain.contains(x)]
    own, exact = target.function(x, target.output_shape), np.asarray(evaluate(target.formula, x))
    return float(np.abs(own - exact.reshape(own.shape)).max(initial=0.0))
