"""Weights in C as bfloat16 or int8, widened where they are used, without rounding.

An array NAME becomes arrays NAME_1, NAME_2, … of its digits and a macro NAME(i), which adds them up: uint16_t with the upper half
of a float, or int8_t with a power of two for each column. An array that three digits do not hold stays an array of floats.
"""

import re

import numpy as np
import torch

from ...layer.grid import BFLOAT16, GRIDS, INT8, MOST_DIGITS, Grid, exponents
from .c_text import array

PER_LINE = 12
WIDENED = """/* the float whose upper half is h */
static real widened(uint16_t h)
{
    union {
        uint32_t bits;
        float number;
    } v;
    v.bits = (uint32_t)h << 16;
    return v.number;
}
"""


def stored_array(name: str, values: np.ndarray, suffix: str, stored: str) -> str:
    """The array in the format `stored`, if it has one; then it is used as NAME(i)."""
    grid = GRIDS.get(stored)
    digits = _digits(values, grid) if grid in (BFLOAT16, INT8) and values.size else None
    if digits is None:
        return array(name, values, suffix)
    text, terms = "", []
    columns = values.shape[-1]
    for i, digit in enumerate(digits, start=1):
        flat = digit.reshape(-1)
        if grid is BFLOAT16:
            whole = flat.astype(np.float32).view(np.uint32) >> 16
            text += _whole(f"{name}_{i}", "uint16_t", [f"0x{h:04x}" for h in whole.tolist()])
            terms.append(f"widened({name}_{i}[i])")
            continue
        steps = 2.0 ** exponents(torch.from_numpy(flat.reshape(-1, columns)))[0].numpy()
        whole = (flat.reshape(-1, columns) / steps).astype(np.int64).reshape(-1)
        text += _whole(f"{name}_{i}", "int8_t", list(map(str, whole.tolist())))
        step = f"{float(steps[0]).hex()}{suffix}"
        if len(set(steps.tolist())) > 1:
            text += array(f"{name}_STEPS_{i}", steps, suffix)
            step = f"{name}_STEPS_{i}[(i) % {columns}]"
        terms.append(f"(real){name}_{i}[i] * {step}")
    return text + f"#define {name}(i) ({' + '.join(terms)})\n"


def with_macros(body: str) -> str:
    """The source with NAME[…] written as NAME(…) for all macros, and what these need before it."""
    names = re.findall(r"^#define (\w+)\(i\) ", body, re.MULTILINE)
    for name in names:
        body = _called(body, name)
    if not names:
        return body
    return "#include <stdint.h>\n\n" + (WIDENED + "\n" if "widened(" in body else "") + body


def _called(body: str, name: str) -> str:
    """Every NAME[…] as NAME(…), with the bracket that closes it."""
    found, end = [], 0
    for match in re.finditer(rf"\b{name}\[", body):
        depth, at = 1, match.end()
        while depth:
            depth += {"[": 1, "]": -1}.get(body[at], 0)
            at += 1
        found += [body[end : match.start()], f"{name}(", body[match.end() : at - 1], ")"]
        end = at
    return "".join(found) + body[end:]


def _digits(values: np.ndarray, grid: Grid) -> list[np.ndarray] | None:
    """As few digits as add up to all values exactly; None if there are too many."""
    t = torch.from_numpy(np.ascontiguousarray(values, dtype=np.float64)).reshape(
        -1, values.shape[-1] if values.ndim else 1
    )
    for count in range(1, MOST_DIGITS + 1):
        columns = [grid.digits(t[:, j], count) for j in range(t.shape[1])]
        found = [torch.stack([column[i] for column in columns], dim=1) for i in range(count)]
        if bool((torch.stack(found).sum(dim=0) == t).all()):
            return [digit.reshape(values.shape).numpy() for digit in found]
    return None


def _whole(name: str, kind: str, cells: list[str]) -> str:
    lines = [", ".join(cells[i : i + PER_LINE]) for i in range(0, len(cells), PER_LINE)]
    return f"static const {kind} {name}[{len(cells)}] = {{\n    " + ",\n    ".join(lines) + "\n};\n"
