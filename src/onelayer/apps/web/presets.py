"""Functions to start with: the paper's example, and one of each kind that behaves differently."""

from typing import Any

OPENING: dict[str, Any] = {"formula": "sin(x1) + sin(x2)", "domain": "0:2*pi", "tolerance": 1e-2}  # shown at once
PRESETS: tuple[dict[str, Any], ...] = (
    {"name": "The paper's example", **OPENING},
    {
        "name": "Franke's surface",
        "formula": "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
        " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)",
        "domain": "0:1",
        "tolerance": 1e-2,
    },
    {"name": "A kink", "formula": "abs(x1 - x2)", "domain": "0:1", "tolerance": 1e-2},
    {
        "name": "Sorting 3 numbers",
        "formula": "min(x1, x2, x3); x1 + x2 + x3 - min(x1, x2, x3) - max(x1, x2, x3); max(x1, x2, x3)",
        "domain": "0:1",
        "tolerance": 1e-2,
    },
    {"name": "A boundary layer", "formula": "exp(-50*x1) + x1", "domain": "0:1", "tolerance": 1e-3},
    {"name": "Runge's function", "formula": "1/(1 + 25*x1**2)", "domain": "-1:1", "tolerance": 1e-3},
)
