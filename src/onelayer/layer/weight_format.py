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
from .arithmetic import FLOAT32, FLOAT64, Arithmetic, arithmetic_of
from .grid import BFLOAT16, GRIDS, INT8, MATRICES, Grid, exponents

Weights = Literal["int8"]
EXPONENT = ".exponent"


def format_of(dtype: Any, weights: str | None) -> tuple[Arithmetic, Grid | None]:
    """(arithmetic, grid of the weights) of `dtype` and `weights`; None where the weights are the arithmetic's own numbers.

    No dtype is float64, and beside int8 weights float32, in which they run.
    """
    if weights not in (None, "int8"):
        raise InputError(
            "weights='int8', or no `weights`", f"{weights!r}", "leave it out, or use dtype='bfloat16' or 'float32'"
        )
    whole = weights is not None
    if dtype in ("bfloat16", torch.bfloat16) and not whole:
        return FLOAT32, BFLOAT16
    try:
        arithmetic = (FLOAT32 if whole else FLOAT64) if dtype is None else arithmetic_of(dtype)
    except InputError:
        arithmetic = None
    if whole and arithmetic is not FLOAT32:
        raise InputError("float32, the arithmetic of weights='int8'", f"dtype={_name(dtype)}", "leave `dtype` out")
    if arithmetic is None:
        raise InputError(
            "dtype, float64, float32 or bfloat16", _name(dtype), "choose one of them; int8 is weights='int8'"
        )
    return arithmetic, INT8 if whole else None


def _name(dtype: Any) -> str:
    return repr(str(dtype).removeprefix("torch."))


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
