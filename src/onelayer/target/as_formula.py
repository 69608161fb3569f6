"""A module as a formula, where its operations allow it: then the construction is proved against the module itself.

Sequences of linear maps and of tanh, sigmoid, ReLU, GELU or SiLU become a formula with exactly the numbers of the weights: a
float is a quotient of two whole numbers, so that the formula is the module in exact arithmetic. Networks whose formula would
exceed the parser's limits have none, and neither has a module that may do something else than its classes: hooks, methods of
its own, modes of torch, other kinds of tensors.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeGuard, cast

import numpy as np
import torch
import torch.utils._python_dispatch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize
from torch.utils._device import DeviceContext

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
MADE_BY_TORCH = {
    "__module__",
    "__doc__",
    "__getstate__",
    "__deepcopy__",
}  # in the class of a parametrised module, and its tensors


def formula_of(module: object, names: Sequence[str]) -> str | None:
    """The module in the variables of these names as text, outputs separated by ";"; None if it has no such formula."""
    if not isinstance(module, nn.Module) or _changed_globally() or not all(map(_is_its_class, module.modules())):
        return None
    texts = list(names)
    for part in _parts(module):
        if type(part) is nn.Linear or _is_parametrised_linear(part):
            if not _fixed(part, len(texts)):
                return None
            found = [_affine(w, b, texts) for w, b in zip(part.weight, _bias(part), strict=True)]
            if any(text is None for text in found):
                return None
            texts = [text for text in found if text is not None]
        elif type(part) in ACTIVATIONS and getattr(part, "approximate", "none") == "none":
            texts = [ACTIVATIONS[type(part)].format(text) for text in texts]
        elif not _passes(part):
            return None
        if sum(map(len, texts)) > MAX_CHARACTERS:
            return None
    return "; ".join(texts)


def _changed_globally() -> bool:
    """Whether what modules and functions of torch do is changed from outside: hooks on all modules, modes, autocast."""
    hooks = torch.nn.modules.module
    modes = torch.overrides._get_current_function_mode_stack()
    return bool(
        hooks._global_forward_hooks
        or hooks._global_forward_pre_hooks
        or any(type(mode) is not DeviceContext for mode in modes)  # that of a default device changes no numbers
        or torch.utils._python_dispatch._get_current_dispatch_mode_stack()
        or any(torch.is_autocast_enabled(kind) for kind in ("cpu", "cuda"))
    )


def _is_its_class(module: nn.Module) -> bool:
    """Whether a module does what its class does: no hooks, not compiled, no method replaced on the module itself."""
    replaced = any(callable(getattr(type(module), name, None)) for name in vars(module))
    return not (replaced or module._forward_hooks or module._forward_pre_hooks or module._compiled_call_impl)


def _parts(module: nn.Module) -> list[nn.Module]:
    """The modules in the order in which they act, or the module alone if it is no sequence."""
    if type(module) is not nn.Sequential:
        return [module]
    return [part for child in module for part in _parts(child)]


def _passes(part: nn.Module) -> bool:
    """Whether a module returns its input unchanged."""
    if type(part) is nn.Dropout:
        return not part.training or part.p == 0
    return type(part) is nn.Identity or (type(part) is nn.Flatten and part.start_dim == 1)


def _is_parametrised_linear(part: nn.Module) -> TypeGuard[nn.Linear]:
    """Whether torch made the class of a linear map to compute its weights from others, in one of torch's own ways."""
    kind = type(part)
    if (
        kind.__bases__ != (nn.Linear,)
        or kind.__module__ != parametrize.__name__
        or not parametrize.is_parametrized(part)
    ):
        return False
    lists = cast(nn.ModuleDict, part.parametrizations)
    ways = [way for found in lists.values() for way in cast(nn.ModuleList, found)]
    return set(vars(kind)) <= MADE_BY_TORCH | set(lists) and all(
        type(way).__module__ == parametrizations.__name__ for way in ways
    )


def _fixed(layer: nn.Linear, inputs: int) -> bool:
    """Whether weights and bias are plain tensors of real numbers that fit, the same each time they are read."""
    pairs = ((layer.weight, layer.weight), (_bias(layer), _bias(layer)))
    outputs = len(layer.weight)
    shapes = layer.weight.shape == (outputs, inputs) and _bias(layer).shape == (outputs,)
    return shapes and all(
        type(a) in (Tensor, nn.Parameter)
        and a.is_floating_point()
        and a.layout is torch.strided
        and not a.is_meta
        and torch.equal(a, b)
        for a, b in pairs
    )


def _bias(layer: nn.Linear) -> Tensor:
    return torch.zeros(len(layer.weight)) if layer.bias is None else layer.bias


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
