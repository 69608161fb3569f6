"""A teacher as a formula, where its operations allow it: then the construction is proved against the teacher itself.

Sequences of linear maps and of tanh, sigmoid, ReLU, GELU or SiLU become a formula with the very numbers of the weights: a float
is a quotient of two whole numbers, so that the formula is the teacher in exact arithmetic. Networks whose formula would be too
long for the parser's limits have none.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..formula.vocabulary import MAX_CHARACTERS

ACTIVATIONS = {
    nn.Tanh: "tanh({0})",
    nn.Sigmoid: "sigmoid({0})",
    nn.ReLU: "max({0}, 0)",
    nn.SiLU: "({0})*sigmoid({0})",
    nn.GELU: "({0})*(1 + erf(({0})/sqrt(2)))/2",
}
PASSING = (nn.Identity, nn.Dropout)


def formula_of(teacher: object, names: Sequence[str]) -> str | None:
    """The teacher in the variables of these names as text, outputs separated by ";"; None if it has no such formula."""
    if not isinstance(teacher, nn.Module) or (
        teacher.training and any(isinstance(m, nn.Dropout) for m in teacher.modules())
    ):
        return None
    texts = list(names)
    for part in _parts(teacher):
        kind = type(part)
        if isinstance(part, nn.Linear):
            if part.in_features != len(texts):
                return None
            found = [_affine(w, b, texts) for w, b in zip(part.weight, _bias(part), strict=True)]
            if any(text is None for text in found):
                return None
            texts = [text for text in found if text is not None]
        elif kind in ACTIVATIONS and getattr(part, "approximate", "none") == "none":
            texts = [ACTIVATIONS[kind].format(text) for text in texts]
        elif not (isinstance(part, PASSING) or (isinstance(part, nn.Flatten) and part.start_dim == 1)):
            return None
        if sum(map(len, texts)) > MAX_CHARACTERS:
            return None
    return "; ".join(texts)


def _parts(teacher: nn.Module) -> list[nn.Module]:
    """The modules in the order in which they act; the teacher alone if it is not a sequence of them."""
    if type(teacher) is nn.Sequential:
        return [part for child in teacher for part in _parts(child)]
    return [teacher]


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
