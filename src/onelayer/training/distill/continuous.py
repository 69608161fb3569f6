"""Teachers of real numbers: a layer constructed on a domain, with a certificate, or trained on given inputs."""

import math
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.budget import Budget
from ...common.errors import InputError
from ...common.progress import Progress
from ...pipeline import build
from ...target.callables import Batched
from ...target.determinism import require_same_twice
from ...target.points import judging_points
from ...target.samples import numbers_of
from ..descent import train
from ..recipe import Recipe
from .fidelity import FidelityMeter
from .result import Distillation, parameters_of, ratio_of_times
from .sequences import unseen

JUDGED = 4096  # points of a domain where fidelity is observed
LEAST_TIME = 0.1  # share of the seconds for the layer itself, however long the teacher takes
REPEATED = 16  # inputs that a teacher answers twice, to see whether it is deterministic


def construct(teacher: Any, domain: Any, tolerance: float, progress: Progress | None) -> Distillation:
    """A layer built for the teacher on a domain, with what is proved about it."""
    _require_teacher(teacher)
    return judge_built(teacher, build(teacher, domain, tolerance, progress=progress))


def judge_built(teacher: Any, found: Approximation) -> Distillation:
    """A layer that was built for the teacher, compared with it."""
    own = found.target.function if found.target is not None else None
    if own is None or own.function is not teacher:
        change = "build it: ol.build(teacher, domain, tolerance)"
        raise InputError("an approximation of the teacher itself", f"one of {found.target_text[:80]}", change)
    points = found.domain.points(judging_points(JUDGED, found.domain.dimension, 77).numpy())
    points = points[found.domain.contains(points)]
    if not len(points):
        raise InputError("a domain with points in it", f"none among {JUDGED:,}", "widen it")
    points = points.reshape(len(points), *found.shape) if found.description.sequence else points
    require_same_twice(lambda: own.answers(points[:REPEATED]))
    return _judged(teacher, found, points, f"constructed, {found.facts.method}: {_evidence(found)}")


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
    answers = Batched(teacher).answers
    require_same_twice(lambda: answers(x[:REPEATED]))
    found = train((x, answers(x)), tolerance=tolerance, progress=progress, **_within(budget, options))
    recipe = Recipe(**{name: options[name] for name in ("seed", "validation") if name in options})
    order = np.random.default_rng(recipe.seed).permutation(len(x))  # as `train` splits them
    count = max(1, round(recipe.validation * len(x)))
    held = order[:count][unseen(x[order[:count]], x[order[count:]])]
    return _judged(teacher, found, x[held], "trained on the teacher's answers: observed, not proved")


def _within(budget: Budget, options: dict[str, Any]) -> dict[str, Any]:
    """The options, with the seconds that are left of those given."""
    return options | ({"seconds": max(budget.left, LEAST_TIME * budget.seconds)} if "seconds" in options else {})


def _judged(teacher: Any, found: Approximation, x: np.ndarray, how: str) -> Distillation:
    """The layer compared with the teacher, at inputs in the shape that the teacher reads."""
    flat, answers = x.reshape(len(x), -1), Batched(teacher).answers
    theirs = answers(x).reshape(len(x), -1)
    mine = np.asarray(found(flat), dtype=np.float64).reshape(len(x), -1)
    seen = FidelityMeter()
    seen.add(torch.from_numpy(mine), torch.from_numpy(theirs))
    speed = ratio_of_times(lambda: answers(x), lambda: found.fast()(flat), torch.device("cpu"))
    parameters = (parameters_of(teacher), found.parameters)
    return Distillation(found.model, found, seen.result(), parameters, speed, how, found.history)


def _evidence(found: Approximation) -> str:
    target = found.target
    assert target is not None
    if target.formula is not None:
        return "the teacher's operations are a formula"
    declared = target.modulus.kind == "declared"
    return "by the declared Lipschitz constant" if declared else "only observed, no constant was declared"


def _require_teacher(teacher: Any) -> None:
    if not callable(teacher):
        raise InputError("a teacher that can be called", type(teacher).__name__, "pass an nn.Module or a function")
