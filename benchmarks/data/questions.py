"""A folder of labelled questions, checked again from its files alone, and the assertions of VNN-LIB at a point."""

import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import onelayer as ol
from onelayer.deployment.export.onnx import packages
from onelayer.deployment.export.vnnlib import REAL, query
from onelayer.deployment.export.vnnlib.static_graph import StaticGraph
from onelayer.deployment.folder import load_approximation, model_of
from onelayer.layer.side_by_side import side_by_side

Row = dict[str, str]


def rows_of(folder: Path) -> list[Row]:
    """The table of a folder."""
    with (folder / "instances.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def problems(folder: Path, seconds: float = 120.0, check: Callable[..., Any] = ol.check) -> list[str]:
    """What is wrong with the labels of a folder; nothing if `check` proves them all and all files say the same."""
    verdict = check(folder, seconds)
    found = [] if verdict.verdict == "VALID" else [f"{folder.name}: {verdict}"]
    record = json.loads((folder / "certificate.json").read_text())
    proved = {p["text"] for p in record["properties"] if p["verdict"] == "PROVED"}
    rows = rows_of(folder)
    found += networks_apart(folder)
    for row in rows:
        found += [f"{folder.name}/{row['vnnlib']}: {problem}" for problem in _row(folder, row, proved)]
    return found


def networks_apart(folder: Path) -> list[str]:
    """Networks that are not those of the checked weights, byte by byte; two layers whose difference is another one."""
    onnx, _ = packages()
    certified = load_approximation(folder)
    models = {"model": certified.model}
    if (folder / "difference.onnx").exists():
        models = {name: model_of((folder / f"{name}.safetensors").read_bytes())[0] for name in ("first", "second")}
        if side_by_side(*models.values()).fingerprint() != certified.model.fingerprint():
            return [f"{folder.name}: the certified layer is not the difference of the two"]
        models["difference"] = certified.model
    found = []
    for name, model in models.items():
        again = StaticGraph(model.double(), certified.facts.places).built(onnx).SerializeToString()
        if again != (folder / f"{name}.onnx").read_bytes():
            found.append(f"{folder.name}: {name}.onnx has other weights than those that were checked")
    return found


def _row(folder: Path, row: Row, proved: set[str]) -> list[str]:
    """Problems of one question: what proves it, its files, and its witness."""
    certified, text, statements = load_approximation(folder), row["property"], row["proved"].split(" ; ")
    found = [] if set(statements) <= proved else ["the certificate does not hold what proves the answer"]
    outputs = math.prod(certified.output_shape)
    if row["kind"] == "equivalence":
        c = query.limit_of(text)
        sure, shown = {f"T <= {c:f}", f"T >= {-c:f}"}, {f"not T <= {c:f}", f"not T >= {-c:f}"}
        files = {row["vnnlib"]: query.apart(c, certified.domain, outputs)}
        files[row["difference_vnnlib"]] = query.beyond(c, certified.domain, outputs)
    else:
        sure, shown = {text}, {f"not {text}"}
        files = {row["vnnlib"]: query.counterexample(text, certified.domain, outputs)}
    answered = sure <= set(statements) if row["expected"] == "unsat" else shown & set(statements)
    found += [] if answered else ["the answer is not what was proved"]
    for name, content in files.items():
        if (folder / name).read_text() != f"; {text}\n; {REAL}\n{content}":
            found.append(f"{name} asks something else")
    if row["expected"] == "sat" and not holds(folder, row):
        found.append("the witness does not answer the question")
    return found


def holds(folder: Path, row: Row) -> bool:
    """Whether the witness satisfies all assertions of the file, with the outputs that ONNX Runtime gives."""
    import vnnlib

    points = [[float(x) for x in point.split()] for point in row["witness"].split(" ; ")]
    asked = vnnlib.parse_query_file(str(folder / row["vnnlib"]))
    return satisfied(asked, [folder / name for name in row["networks"].split()], points)


def satisfied(asked: Any, paths: list[Path], points: list[list[float]]) -> bool:
    """Whether inputs, one point for each network or one for all of them, satisfy all assertions."""
    _, runtime = packages()
    given, used, values = iter(paths), dict[str, Path](), dict[str, np.ndarray]()
    for i, network in enumerate(asked.networks):
        used[network.name] = used[network.equal_to] if network.equal_to else next(given)
        x = np.array([points[min(i, len(points) - 1)]])
        session = runtime.InferenceSession(str(used[network.name]), providers=["CPUExecutionProvider"])
        values[network.inputs[0].name] = x
        values[network.outputs[0].name] = session.run(["y"], {"x": x})[0]
    return all(_true(a.expr, values) for a in asked.assertions)


def _true(node: Any, values: dict[str, np.ndarray]) -> bool:
    kind = type(node).__name__
    if kind in ("And", "Or"):
        return (all if kind == "And" else any)(_true(part, values) for part in node.args)
    a, b = _number(node.lhs, values), _number(node.rhs, values)
    return {"LessThan": a < b, "LessEqual": a <= b, "GreaterThan": a > b, "GreaterEqual": a >= b, "Equal": a == b}[kind]


def _number(node: Any, values: dict[str, np.ndarray]) -> float:
    linear = node.to_linear_expr()
    terms = (t.coeff * float(values[t.var.name][tuple(t.var.indices)]) for t in linear.terms)
    return float(linear.constant) + sum(terms)
