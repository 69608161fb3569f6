"""The format of stored weights: from a model to the tensors of a file and back, exactly.

    float64, float32   tensors as they are
    bfloat16           every tensor as bfloat16
    int8               every matrix as int8, and beside it NAME.exponent, int8: number = q·2^exponent of its column; all other
                       tensors as float32

A model that is read from bfloat16 or int8 is a float32 model whose numbers are those of the file.
"""

from typing import Any, Literal

import torch
from torch import Tensor

from ..common.errors import InputError
from ..model.transformer import SingleLayerTransformer
from .arithmetic import FLOAT32, Arithmetic, arithmetic_of
from .grid import BFLOAT16, GRIDS, INT8, MATRICES, Grid, exponents

Weights = Literal["int8"]
EXPONENT = ".exponent"


def format_of(dtype: Any, weights: str | None) -> tuple[Arithmetic, Grid | None]:
    """(arithmetic, grid of the weights) of `dtype` and `weights`; None where the weights are the arithmetic's own numbers."""
    if weights not in (None, "int8"):
        raise InputError("weights, int8 or nothing", f"{weights!r}", "leave `weights` out, or choose a `dtype`")
    half = dtype in ("bfloat16", torch.bfloat16)
    if half and weights is not None:
        raise InputError("one format of weights", "dtype='bfloat16' and weights='int8'", "leave one of them out")
    if half:
        return FLOAT32, BFLOAT16
    arithmetic = arithmetic_of(dtype)
    return (arithmetic, None) if weights is None else (FLOAT32, INT8)


def packed(model: SingleLayerTransformer, name: str) -> dict[str, Tensor]:
    """The tensors of a file in the format of that name; the model's numbers must be on its grid."""
    state = {key: t.detach().cpu().contiguous() for key, t in model.state_dict().items()}
    grid = GRIDS.get(name)
    if grid not in (BFLOAT16, INT8):
        return state
    if not grid.contains(model):
        change = f"build with {'dtype' if grid is BFLOAT16 else 'weights'}={grid.name!r}"
        raise InputError(f"weights that are {grid.name} numbers", "others", change)
    if grid is BFLOAT16:
        return {key: t.to(torch.bfloat16) for key, t in state.items()}
    found: dict[str, Tensor] = {}
    for key, t in state.items():
        found[key] = t
        if key in MATRICES:
            exponent = exponents(t)
            found[key] = (t.double() / torch.exp2(exponent)).to(torch.int8)
            found[key + EXPONENT] = exponent.to(torch.int8)
    return found


def unpacked(tensors: dict[str, Tensor]) -> tuple[dict[str, Tensor], str]:
    """(the model's tensors, the name of their format)."""
    kinds = {t.dtype for t in tensors.values()}
    if kinds == {torch.bfloat16}:
        return {key: t.to(torch.float32) for key, t in tensors.items()}, "bfloat16"
    if torch.int8 not in kinds:
        return tensors, "float32" if kinds == {torch.float32} else "float64"
    found: dict[str, Tensor] = {}
    for key, t in tensors.items():
        if key.endswith(EXPONENT):
            continue
        if t.dtype == torch.int8:
            t = (t.double() * torch.exp2(tensors[key + EXPONENT].double())).to(torch.float32)
        found[key] = t
    return found, "int8"


def stored_as(model: SingleLayerTransformer, name: str) -> str:
    """The name of a format, if the numbers of the model are on its grid and need it; else nothing."""
    grid = GRIDS.get(name)
    return (
        name if grid in (BFLOAT16, INT8) and arithmetic_of(model.W_E.dtype) is FLOAT32 and grid.contains(model) else ""
    )


def size_of(model: SingleLayerTransformer, name: str) -> int:
    """The bytes of all stored numbers in a format."""
    return sum(t.numel() * t.element_size() for t in packed(model, name).values())
