"""VNN-LIB 2.0 questions put to Marabou: any number of networks, any linear assertions."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

Terms = tuple[dict[tuple[str, int], float], float]  # coefficients of (variable, flat index), constant


def answer(paths: list[Path], question: Path, seconds: int, slices: int = 1) -> tuple[str, dict[str, list[float]]]:
    """(sat, unsat, unknown or what else Marabou said; the inputs of a counterexample).

    A disjunction becomes several queries. With `slices` the first input is cut into about so many boxes, each a query.
    """
    import vnnlib

    query = vnnlib.parse_query_file(str(question))
    model = joined(query, paths)
    cases = [list(itertools.chain(*c)) for c in itertools.product(*(a.expr.to_dnf() for a in query.assertions))]
    started, found = time.perf_counter(), set[str]()
    for case in cases:
        for cut in boxes(query, case, slices):
            left = seconds - (time.perf_counter() - started)
            if left < 1:
                return "timeout", {}
            said, x = solved(model, query, case, cut, int(left))
            if said == "sat":
                return said, x
            found.add(said)
    return found.pop() if len(found) == 1 else "unknown", {}


def joined(query: Any, paths: list[Path]) -> Any:
    """One ONNX model of all networks: the inputs and outputs of network f are f_x and f_y. A copy (equal-to) is read again."""
    import onnx

    given, merged = iter(paths), None
    models: dict[str, Any] = {}
    for network in query.networks:
        same = network.equal_to
        models[network.name] = models[same] if same else onnx.load(str(next(given)))
        one = onnx.compose.add_prefix(models[network.name], f"{network.name}_")
        merged = one if merged is None else onnx.compose.merge_models(merged, one, io_map=[])
    return merged


def solved(
    model: Any, query: Any, case: list[Any], cut: dict[Any, Any], seconds: int
) -> tuple[str, dict[str, list[float]]]:
    """What Marabou says to one conjunction."""
    import tempfile

    import onnx
    from maraboupy import Marabou

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        onnx.save(model, str(path))
        net = Marabou.read_onnx(str(path))
    variables: dict[tuple[str, int], int] = {}
    names = [n.name for n in query.networks]
    inputs = dict(zip([i.name for i in model.graph.input], net.inputVars, strict=True))
    outputs = dict(zip([o.name for o in model.graph.output], net.outputVars, strict=True))
    for name, network in zip(names, query.networks, strict=True):
        for kind, defined in ((inputs[f"{name}_x"], network.inputs[0]), (outputs[f"{name}_y"], network.outputs[0])):
            variables |= {(defined.name, i): int(v) for i, v in enumerate(np.ravel(kind))}
    for comparison in case:
        weights, constant, sign = linear(comparison)
        if len(weights) == 1:
            ((variable, weight),) = weights.items()
            limit, at = -constant / weight, variables[variable]
            upper = (sign == "<=") == (weight > 0)
            if sign == "==" or upper:
                net.setUpperBound(at, min(limit, net.upperBounds.get(at, limit)))
            if sign == "==" or not upper:
                net.setLowerBound(at, max(limit, net.lowerBounds.get(at, limit)))
            continue
        at, factors = [variables[v] for v in weights], list(weights.values())
        if sign == "==":
            net.addEquality(at, factors, -constant)
        else:
            flip = 1.0 if sign == "<=" else -1.0
            net.addInequality(at, [flip * f for f in factors], -flip * constant)
    for variable, (low, high) in cut.items():
        net.setLowerBound(variables[variable], low)
        net.setUpperBound(variables[variable], high)
    options = Marabou.createOptions(timeoutInSeconds=seconds, verbosity=0)
    try:
        said, values, _ = net.solve(options=options, verbose=False)
    except RuntimeError as error:
        return f"error: {str(error)[:60]}", {}
    found = {
        d.inputs[0].name: [values[variables[d.inputs[0].name, i]] for i in range(d.inputs[0].shape[-1])]
        for d in query.networks
    } if said == "sat" else {}  # fmt: skip
    return said.lower(), found


def linear(comparison: Any) -> tuple[dict[tuple[str, int], float], float, str]:
    """Σ weight·variable + constant (sign) 0, the sign one of <=, >=, ==.

    Strict signs become their closures, as Marabou has no others.
    """
    sides = [side.to_linear_expr() for side in (comparison.lhs, comparison.rhs)]
    weights: dict[tuple[str, int], float] = {}
    for factor, side in zip((1.0, -1.0), sides, strict=True):
        for term in side.terms:
            index = (term.var.name, int(np.ravel_multi_index(term.var.indices, term.var.shape)))
            weights[index] = weights.get(index, 0.0) + factor * term.coeff
    names = {"LessThan": "<=", "LessEqual": "<=", "GreaterThan": ">=", "GreaterEqual": ">=", "Equal": "=="}
    kept = {v: w for v, w in weights.items() if w}
    return kept, sides[0].constant - sides[1].constant, names[type(comparison).__name__]


def boxes(query: Any, case: list[Any], slices: int) -> Iterator[dict[Any, Any]]:
    """The domain of the first input in about so many boxes; one box without ends for a single slice."""
    if slices == 1:
        yield {}
        return
    name = query.networks[0].inputs[0].name
    ends: dict[tuple[str, int], list[float]] = {}
    for comparison in case:
        weights, constant, sign = linear(comparison)
        if len(weights) == 1 and next(iter(weights))[0] == name:
            ((variable, weight),) = weights.items()
            ends.setdefault(variable, [0.0, 0.0])[sign == "<="] = -constant / weight
    parts = max(1, round(slices ** (1 / len(ends))))
    cuts = [list(itertools.pairwise(np.linspace(*pair, parts + 1).tolist())) for pair in ends.values()]
    for chosen in itertools.product(*cuts):
        yield dict(zip(ends, chosen, strict=True))
