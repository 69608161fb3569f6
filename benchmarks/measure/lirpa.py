"""Bounds by auto_LiRPA for the one-network questions of folders that `onelayer export --to vnnlib` wrote, as JSON.

Runs without onelayer, in an environment of its own: auto_LiRPA from PyPI asks for torch below 1.13.

    python lirpa.py FOLDER … > lirpa.json
"""

import argparse
import contextlib
import csv
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch import Tensor, nn

METHODS: dict[str, dict[str, str]] = {  # options of BoundedModule
    "IBP": {},
    "CROWN": {"conv_mode": "matrix"},
    "IBP, softmax as one step": {"softmax": "interval"},
}
SLICES = (1, 64)  # boxes that the domain is cut into, about
_END = re.compile(r"\(assert \((>=|<=) X\[0, (\d+)\] (-?[\d.]+)\)\)")


class Interpreted(nn.Module):
    """The static graph of a layer as a torch module, x [batch, D] → y [batch, m]."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        graph = onnx.load(str(path)).graph
        self.nodes = [(n.op_type, list(n.input), n.output[0]) for n in graph.node]
        self.numbers = {t.name: torch.from_numpy(numpy_helper.to_array(t).copy()) for t in graph.initializer}
        self.some_parameter = nn.Parameter(torch.zeros(1))  # CROWN takes dtype and device from a parameter

    def forward(self, x: Tensor) -> Tensor:
        values: dict[str, Tensor] = {"x": x.unsqueeze(1)}
        for kind, names, output in self.nodes:
            a, b = values.get(names[0]), values.get(names[1]) if len(names) > 1 else None
            fixed = self.numbers.get(names[1] if a is not None else names[0]) if len(names) > 1 else None
            values[output] = self._step(kind, a, b, fixed)
        return values["y"].flatten(1) + 0 * self.some_parameter

    @staticmethod
    def _step(kind: str, a: Tensor | None, b: Tensor | None, fixed: Tensor | None) -> Tensor:
        if kind == "Reshape":
            return a.reshape(-1, *fixed.tolist())
        if kind == "Transpose":
            return a.transpose(1, 2)
        if kind == "Softmax":
            return torch.softmax(a, dim=-1)
        if kind == "Relu":
            return torch.relu(a)
        if kind == "Add":
            return a + b if a is not None and b is not None else (a if a is not None else b) + fixed
        if kind != "MatMul":
            raise ValueError(f"an operator that our networks do not have: {kind}")
        if a is not None and b is not None:
            return a.matmul(b)
        return a.matmul(fixed) if a is not None else b.transpose(1, 2).matmul(fixed.t()).transpose(1, 2)


def boxes_of(text: str, slices: int) -> tuple[np.ndarray, np.ndarray]:
    """The domain of a question, cut into about this many boxes."""
    ends: dict[int, list[float]] = {}
    for sign, i, number in _END.findall(text):
        ends.setdefault(int(i), [0.0, 0.0])[sign == "<="] = float(number)
    sides, parts = [ends[i] for i in sorted(ends)], max(1, round(slices ** (1 / len(ends))))
    cuts = [np.linspace(low, high, parts + 1) for low, high in sides]
    low, high = (np.stack(np.meshgrid(*part, indexing="ij"), -1).reshape(-1, len(sides))
                 for part in ([c[:-1] for c in cuts], [c[1:] for c in cuts]))  # fmt: skip
    return low, high


def bounds(path: Path, text: str, method: str, slices: int) -> tuple[float, float]:
    """(lower, upper) of all outputs over the domain, as auto_LiRPA has them."""
    from auto_LiRPA import BoundedModule, BoundedTensor
    from auto_LiRPA.perturbations import PerturbationLpNorm

    low, high = (torch.from_numpy(t) for t in boxes_of(text, slices))
    middle = (low + high) / 2
    module = Interpreted(path)
    bounded = BoundedModule(module, middle[:1], bound_opts=METHODS[method], verbose=False)
    x = BoundedTensor(middle, PerturbationLpNorm(norm=np.inf, x_L=low, x_U=high))
    below, above = bounded.compute_bounds(x=(x,), method=method.split(",")[0])
    return float(below.min()), float(above.max())


def main() -> None:
    torch.set_default_dtype(torch.float64)
    found: list[dict[str, Any]] = []
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    for folder in parser.parse_args().folders:
        with (folder / "instances.csv").open() as file:
            rows = list(csv.DictReader(file))
        name = "difference.onnx" if (folder / "difference.onnx").exists() else "model.onnx"
        text = (folder / (rows[0]["difference_vnnlib"] or rows[0]["vnnlib"])).read_text()
        for method in METHODS:
            for slices in SLICES:
                started, entry = time.process_time(), {"folder": folder.name, "method": method, "slices": slices}
                try:
                    with contextlib.redirect_stdout(io.StringIO()):
                        low, high = bounds(folder / name, text, method, slices)
                    entry |= {"lower": low, "upper": high}
                except Exception as error:
                    entry |= {"error": f"{type(error).__name__}: {str(error)[:100]}"}
                found.append(entry | {"seconds": time.process_time() - started})
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
