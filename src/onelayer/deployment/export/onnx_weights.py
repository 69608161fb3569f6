"""Constants of an ONNX graph as bfloat16 or int8, widened to float32 in the graph without rounding.

bfloat16 is widened by Cast, int8 by Cast and Mul with the powers of two of the columns. DequantizeLinear says the same, but ONNX
Runtime 1.31 fuses it with the MatMul that follows and rounds the other factor to 8 bits: answers were off by 10. A constant
that has other numbers, such as a bias beside int8 weights, stays float32.
"""

from typing import Any

import numpy as np
import torch

from ...layer.grid import BFLOAT16, INT8, MATRICES, exponents, to_bits

BFLOAT16_TYPE, FLOAT_TYPE = 16, 1  # ONNX's numbers for them
NARROW = "_stored"  # behind the name of a weight: its narrow numbers
STEPS = "_steps"  # and the powers of two of its columns


def low_constants(onnx: Any, constants: dict[str, np.ndarray], stored: str) -> tuple[list[Any], list[Any]]:
    """(nodes that widen, initialisers): every float constant in the format `stored` if all of its numbers are on the grid."""
    nodes, found = list[Any](), list[Any]()
    for name, value in constants.items():
        if stored == "bfloat16" and _is_bfloat16(value):
            bits = value.view(np.uint32) >> 16
            raw = bits.astype("<u2").tobytes()
            found.append(onnx.helper.make_tensor(name + NARROW, BFLOAT16_TYPE, value.shape, raw, raw=True))
            nodes.append(onnx.helper.make_node("Cast", [name + NARROW], [name], name=name + "_widened", to=FLOAT_TYPE))
        elif stored == "int8" and (whole := _whole(name, value)) is not None:
            numbers, steps = whole
            found.append(onnx.numpy_helper.from_array(numbers, name + NARROW))
            found.append(onnx.numpy_helper.from_array(steps, name + STEPS))
            cast = name + "_whole"
            nodes.append(onnx.helper.make_node("Cast", [name + NARROW], [cast], name=cast, to=FLOAT_TYPE))
            nodes.append(onnx.helper.make_node("Mul", [cast, name + STEPS], [name], name=name + "_widened"))
        else:
            found.append(onnx.numpy_helper.from_array(value, name))
    return nodes, found


def _is_bfloat16(value: np.ndarray) -> bool:
    if value.dtype != np.float32 or not value.size:
        return False
    t = torch.from_numpy(value)
    return bool((to_bits(t, BFLOAT16.bits) == t).all())


def _whole(name: str, value: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """(int8 numbers, steps) of a matrix, if its columns are on the grid."""
    if value.dtype != np.float32 or value.ndim != 2 or name not in MATRICES or not value.size:
        return None
    t = torch.from_numpy(value)
    if not bool((INT8.rounded(name, t) == t).all()):
        return None
    steps = torch.exp2(exponents(t))
    return (t.double() / steps).to(torch.int8).numpy(), steps[0].to(torch.float32).numpy()
