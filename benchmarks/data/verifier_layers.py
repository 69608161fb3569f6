"""Layers, and pairs of layers, about which verifiers are asked (`benchmarks/measure/verifiers.py`)."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.certificate import unproved

MARGINS = (0.01, 0.05, 0.2)
UNIT = [(0, 1)]


@dataclass(frozen=True)
class Case:
    """A layer, perhaps beside another one, and the kinds of questions about it."""

    name: str
    make: Callable[[], tuple[Approximation, Approximation | None]]
    kinds: tuple[str, ...] = ("range", "Lipschitz", "monotone")


def cases() -> list[Case]:
    """All of them, in order."""
    return [*_single(), *_monotone(), *_pairs()]


def _built(formula: str, domain: Any, eps: float, **how: Any) -> Callable[[], tuple[Approximation, None]]:
    return lambda: (ol.build(formula, domain, eps, **how), None)


def _single() -> Iterator[Case]:
    """Gates, memory tokens, a kink, a steep step, hinges; one to three variables."""
    yield Case("sine", _built("sin(3*x1)", UNIT, 1e-2))
    yield Case("product", _built("x1*x2", UNIT * 2, 1e-2))
    yield Case("three", _built("x1*x2 + sin(x3)", UNIT * 3, 3e-2))
    yield Case("step", _built("1/(1 + exp(-200*(x1 - 0.5)))", UNIT, 1e-2))
    yield Case("kink", _built("abs(x1 - 0.25)", UNIT, 1e-3))
    yield Case("memory", _built("exp(-20*(x1 - 0.5)^2)*x2", UNIT * 2, 1e-2, construction="memory"))
    yield Case("step-memory", _built("1/(1 + exp(-200*(x1 - 0.5)))", UNIT, 2e-2, construction="memory"))
    yield Case("step-heads", _built("1/(1 + exp(200*(x1 - 0.5)))", UNIT, 1e-2, layout="heads"))
    yield Case("larger", _built("max(x1, x2)", UNIT * 2, 1e-2), ("range",))
    yield Case("hinges", _built("sin(3*x1)", UNIT, 2e-2, method="solved", units=2, hinges=6), ("range",))


def _monotone() -> Iterator[Case]:
    """Layers whose smallest slope is a margin of the largest above 0, or below: x³ + cx, its mirror image, and xy + cx."""
    for share in MARGINS:
        for sign in (1, -1):
            name = f"{round(100 * share)}-{'rising' if sign > 0 else 'turning'}"
            c = sign * share / (1 - sign * share)  # c/(1 + c) is the share
            # slopes of f: 3x² + 3c up to 3 + 3c, and y + c up to 1 + c
            yield _sloped(f"cube-{name}", f"x1^3 + {3 * c:.6f}*x1", [(-1, 1)], 3 * abs(c))
            yield _sloped(f"mirrored-{name}", f"-x1^3 - {3 * c:.6f}*x1", [(-1, 1)], 3 * abs(c))
            yield _sloped(f"mixed-{name}", f"x1*x2 + {c:.6f}*x1", UNIT * 2, abs(c))


def _sloped(name: str, formula: str, domain: Any, smallest: float) -> Case:
    return Case(name, _built(formula, domain, 1e-2, slope_tolerance=smallest / 8), ("monotone",))


def _pairs() -> Iterator[Case]:
    """ε-equivalence: float32 weights, a pruned copy, and a student of fewer units that was fitted to its teacher."""
    sources = {
        "sine": ("sin(3*x1)", UNIT, 1e-4, 3e-2),
        "product": ("x1*x2", UNIT * 2, 1e-3, 5e-2),
        "ridge": ("exp(-x1*x2)*x2", UNIT * 2, 1e-3, 5e-2),
        "sum": ("sin(3*x1) + cos(2*x2)/4", UNIT * 2, 1e-3, 5e-2),
    }
    for name, (formula, domain, eps, coarse) in sources.items():

        def teacher(formula: str = formula, domain: Any = domain, eps: float = eps) -> Approximation:
            return ol.build(formula, domain, eps)

        def student(teacher: Any = teacher, domain: Any = domain, coarse: float = coarse) -> tuple[Any, Any]:
            first = teacher()
            return first, ol.build(lambda x: first(x), domain, coarse, lipschitz=100.0, seconds=20.0)

        yield Case(f"{name}-float32", lambda teacher=teacher: _beside(teacher(), rounded))
        yield Case(f"{name}-pruned", lambda teacher=teacher: _beside(teacher(), pruned))
        yield Case(f"{name}-student", student)


def _beside(
    first: Approximation, change: Callable[[Approximation], SingleLayerTransformer]
) -> tuple[Approximation, Approximation]:
    """A layer and a changed copy of it, about which nothing is proved."""
    model = change(first)
    return first, replace(first, model=model, certificate=unproved(model, 1.0, str(first.domain)))


def rounded(layer: Approximation) -> SingleLayerTransformer:
    """Weights rounded to float32, kept as float64."""
    return copy.deepcopy(layer.model).float().double()


def pruned(layer: Approximation) -> SingleLayerTransformer:
    """Without the head whose absence changes the answers least, at random points."""
    x = layer.domain.points(np.random.default_rng(0).random((500, layer.domain.dimension)))
    c, found = layer.model.config, list[tuple[float, int, SingleLayerTransformer]]()
    for head in range(c.heads):
        model = copy.deepcopy(layer.model)
        with torch.no_grad():
            model.W_O[head * c.d_v : (head + 1) * c.d_v] = 0
            change = (
                layer.values_of(model, torch.from_numpy(x)) - layer.values_of(layer.model, torch.from_numpy(x))
            ).abs()
        found.append((float(change.max()), head, model))
    return min(found, key=lambda one: one[:2])[2]
