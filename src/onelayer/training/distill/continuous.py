"""Teachers of real numbers: a layer constructed on a domain, with a certificate, or trained on given inputs."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ...approximation import Approximation
from ...common.budget import Budget
from ...common.errors import InputError
from ...common.numbers import at_least, exact
from ...common.progress import Progress
from ...formula import Formula, evaluate, parse
from ...pipeline import build
from ...target.domain import Domain, domain_of
from ...target.points import uniform_points
from ...target.samples import numbers_of
from ...target.target import Target
from ..descent import train
from ..recipe import Recipe
from .as_formula import formula_of
from .determinism import answer, real_tensor, require_deterministic, require_same_twice
from .fidelity import FidelityMeter
from .result import Distillation, parameters_of, ratio_of_times
from .sequences import unseen

JUDGED = 4096  # points of a domain where fidelity is observed
BATCH = 4096  # inputs that a teacher answers at a time
LEAST_TIME = 0.1  # share of the seconds for the layer itself, however long the teacher takes
REPEATED = 16  # inputs that a teacher answers twice, to see whether it is deterministic


def construct(
    teacher: Any, domain: Any, tolerance: float, progress: Progress | None, options: dict[str, Any]
) -> Distillation:
    """A layer built for the teacher on a domain, with what is proved about it."""
    budget = Budget(options.get("seconds", math.inf))
    _require_teacher(teacher)
    box = domain if isinstance(domain, Domain) else domain_of(domain)
    declared = {"lipschitz", "modulus"} & set(options)
    formula = None if declared else formula_of(teacher, box.names)
    source: Any = formula if formula is not None else as_function(teacher)
    found = build(source, domain, tolerance, progress=progress, **_within(budget, options))
    points = found.domain.points(uniform_points(JUDGED, found.domain.dimension, 77).numpy())
    points = points[found.domain.contains(points)]
    if not len(points):
        raise InputError("a domain with points in it", f"none among {JUDGED:,}", "widen it")
    require_same_twice(lambda: _answers(teacher, _shaped(found, points[:REPEATED])))
    how = f"constructed, {found.facts.method}: {_evidence(found, formula is not None)}"
    if formula is not None:
        rounding = _rounding(teacher, parse(formula, found.domain.names), found, points)
        off = f"its own answers are rounded, by {at_least(rounding, 1)} where seen"
        note = f"the target is the teacher in exact arithmetic; {off}"
        found = replace(found, facts=replace(found.facts, notes=(*found.facts.notes, note)))
    return _judged(teacher, found, _shaped(found, points), how)


def train_on_inputs(
    teacher: Any, inputs: Any, tolerance: float, progress: Progress | None, options: dict[str, Any]
) -> Distillation:
    """A layer trained on the teacher's answers to given inputs; one in ten of them is held out (`validation`)."""
    budget = Budget(options.get("seconds", math.inf))
    _require_teacher(teacher)
    x = numbers_of("inputs", inputs)
    if x.ndim not in (2, 3) or len(x) < 2:
        raise InputError("inputs [N, D] or [N, n, d], at least two", f"shape {list(x.shape)}", "reshape them")
    if options.get("validation") == 0:
        raise InputError("validation, a share above 0", "0", "hold some inputs out to judge by")
    require_same_twice(lambda: _answers(teacher, x[:REPEATED]))
    answers = _answers(teacher, x)
    found = train((x, answers), tolerance=tolerance, progress=progress, **_within(budget, options))
    recipe = Recipe(**{name: options[name] for name in ("seed", "validation") if name in options})
    order = np.random.default_rng(recipe.seed).permutation(len(x))  # as `train` splits them
    count = max(1, round(recipe.validation * len(x)))
    held = order[:count][unseen(x[order[:count]], x[order[count:]])]
    return _judged(teacher, found, x[held], "trained on the teacher's answers: observed, not proved")


def _within(budget: Budget, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the seconds that are left of those given."""
    return options | ({"seconds": max(budget.left, LEAST_TIME * budget.seconds)} if "seconds" in options else {})


def _rounding(teacher: Any, formula: Formula, found: Approximation, points: np.ndarray) -> float:
    """How far the teacher's own answers are from its formula, at some points; refused beyond the tolerance.

    What is proved is proved of the formula, which says nothing about a teacher whose rounding errors are that large.
    """
    theirs = _answers(teacher, _shaped(found, points)).reshape(len(points), -1)
    off = float(np.abs(theirs - np.asarray(evaluate(formula, points)).reshape(len(points), -1)).max(initial=0.0))
    tolerance = found.certificate.tolerance
    if not off <= tolerance:
        wanted = f"a teacher that answers its own formula within {exact(tolerance)}"
        raise InputError(
            wanted, f"answers that are {at_least(off, 3)} away", "use teacher.double(), or declare lipschitz="
        )
    return off


def as_function(teacher: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The teacher as a function of arrays."""

    def answers(x: np.ndarray) -> np.ndarray:
        return _answers(teacher, x)

    name = type(teacher).__name__ if isinstance(teacher, nn.Module) else getattr(teacher, "__qualname__", "teacher")
    answers.__qualname__ = name
    return answers


def _answers(teacher: Any, x: np.ndarray) -> np.ndarray:
    """The teacher's answers, computed in its dtype and on its device, as float64."""
    if not isinstance(teacher, nn.Module):
        return np.asarray(answer(teacher, x), dtype=np.float64)
    first = next(iter(teacher.parameters()), torch.zeros(1, dtype=torch.float64))
    parts = []
    with torch.no_grad():
        for part in np.array_split(x, max(1, -(-len(x) // BATCH))):
            y = real_tensor(answer(teacher, torch.from_numpy(part).to(first.device, first.dtype)), len(part))
            parts.append(y.double().cpu().numpy())
    return np.concatenate(parts)


def _judged(teacher: Any, found: Approximation, x: np.ndarray, how: str) -> Distillation:
    """The layer compared with the teacher, at inputs in the shape that the teacher reads."""
    flat = x.reshape(len(x), -1)
    theirs = _answers(teacher, x).reshape(len(x), -1)
    mine = np.asarray(found(flat), dtype=np.float64).reshape(len(x), -1)
    seen = FidelityMeter()
    seen.add(torch.from_numpy(mine), torch.from_numpy(theirs))
    speed = ratio_of_times(lambda: _answers(teacher, x), lambda: found.fast()(flat), torch.device("cpu"))
    parameters = (parameters_of(teacher), found.parameters)
    return Distillation(found.model, found, seen.result(), parameters, speed, how, found.history)


def _shaped(found: Approximation, x: np.ndarray) -> np.ndarray:
    """Points in the shape that the teacher reads: [N, n, d] for sequences."""
    return x.reshape(len(x), *found.shape) if isinstance(found.target, Target) and found.target.sequence else x


def _evidence(found: Approximation, formula: bool) -> str:
    if formula:
        return "the teacher's operations are a formula"
    target = found.target
    declared = isinstance(target, Target) and target.modulus.kind == "declared"
    return "by the declared Lipschitz constant" if declared else "only observed, no constant was declared"


def _require_teacher(teacher: Any) -> None:
    if not callable(teacher):
        raise InputError("a teacher that can be called", type(teacher).__name__, "pass an nn.Module or a function")
    require_deterministic(teacher)
