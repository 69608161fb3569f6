"""Numbers as C source."""

import numpy as np

PER_LINE = 4
MOST_STACK = 2**22  # bytes of numbers on the stack while one point is evaluated


def array(name: str, values: np.ndarray, suffix: str) -> str:
    """`static const real NAME[…] = {…};` in row order, as hexadecimal floats: exact, or rounded to float32 if `suffix` is f."""
    flat = np.asarray(values).astype(np.float32 if suffix else np.float64).ravel().tolist()
    cells = [value.hex() + suffix for value in flat]
    lines = [", ".join(cells[i : i + PER_LINE]) for i in range(0, len(cells), PER_LINE)]
    return f"static const real {name}[{len(flat)}] = {{\n    " + ",\n    ".join(lines) + "\n};\n"
