"""Teachers of real numbers: constructed on a domain, with a certificate; or trained on given inputs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import nn

from ..approximation import Approximation
from ..build import build
from ..domain import Domain, domain_of
from ..errors import InputError
from ..sample import uniform_points
from ..target import Target
from ..train import train
from .distillation import Distillation, parameters_of, ratio_of_times
from .expression import formula_of
from .fidelity import Comparing

Progress = Callable[[str, float], None]
JUDGED = 4096  # points at which fidelity is observed on a domain
AT_ONCE = 4096


def constructed(
    teacher: Any, domain: Any, tolerance: float, progress: Progress | None, wishes: dict[str, Any]
) -> Distillation:
    """A layer built for the teacher on a domain; proved as far as the teacher is known."""
    _require_teacher(teacher)
    box = domain if isinstance(domain, Domain) else domain_of(domain)
    declared = {"lipschitz", "modulus"} & set(wishes)
    formula = None if declared else formula_of(teacher, box.names)
    source: Any = formula if formula is not None else asked(teacher)
    found = build(source, domain, tolerance, progress=progress, **wishes)
    how = f"constructed, {found.facts.method}: {_known(found, formula is not None)}"
    if formula is not None:
        note = "the target is the teacher in exact arithmetic; its own answers are rounded"
        found = replace(found, facts=replace(found.facts, notes=(*found.facts.notes, note)))
    points = found.domain.points(uniform_points(JUDGED, found.domain.dimension, 77).numpy())
    points = points[found.domain.contains(points)]
    return _judged(teacher, found, points, how)


def trained(
    teacher: Any, inputs: Any, tolerance: float, progress: Progress | None, wishes: dict[str, Any]
) -> Distillation:
    """A layer trained on the teacher's answers to given inputs; one in ten of them is held out (`validation`)."""
    _require_teacher(teacher)
    try:
        x = np.asarray(inputs.detach().cpu() if isinstance(inputs, torch.Tensor) else inputs, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError("inputs, an array of numbers", f"{error}", "pass [N, D] or [N, n, d]") from None
    if x.ndim not in (2, 3) or len(x) < 2:
        raise InputError("inputs [N, D] or [N, n, d], at least two", f"shape {list(x.shape)}", "reshape them")
    seed, share = int(wishes.get("seed", 0)), float(wishes.get("validation", 0.1))
    order = np.random.default_rng(seed).permutation(len(x))  # as `train` splits them
    held = order[: max(1, round(share * len(x)))] if share else order
    y = _answers(teacher, x)
    found = train((x, y), tolerance=tolerance, progress=progress, **wishes)
    return _judged(
        teacher, found, x[held].reshape(len(held), -1), "trained on the teacher's answers: observed, not proved"
    )


def asked(teacher: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The teacher as a function of arrays."""

    def answers(x: np.ndarray) -> np.ndarray:
        return _answers(teacher, x)

    answers.__qualname__ = (
        type(teacher).__name__ if isinstance(teacher, nn.Module) else getattr(teacher, "__qualname__", "teacher")
    )
    return answers


def _answers(teacher: Any, x: np.ndarray) -> np.ndarray:
    """What the teacher answers, in its own dtype and on its own device, as float64."""
    if not isinstance(teacher, nn.Module):
        return np.asarray(teacher(x), dtype=np.float64)
    first = next(iter(teacher.parameters()), torch.zeros(1, dtype=torch.float64))
    parts = []
    with torch.no_grad():
        for part in np.array_split(x, max(1, -(-len(x) // AT_ONCE))):
            y = teacher(torch.from_numpy(part).to(first.device, first.dtype))
            parts.append(y.double().cpu().numpy())
    return np.concatenate(parts)


def _judged(teacher: Any, found: Approximation, x: np.ndarray, how: str) -> Distillation:
    shaped = x.reshape(len(x), *found.shape) if found.target is None or found.target.sequence else x
    theirs = _answers(teacher, shaped).reshape(len(x), -1)
    mine = np.asarray(found(x), dtype=np.float64).reshape(len(x), -1)
    seen = Comparing()
    seen.add(torch.from_numpy(mine), torch.from_numpy(theirs))
    speed = ratio_of_times(lambda: _answers(teacher, shaped), lambda: found.fast()(x), torch.device("cpu"))
    parameters = (parameters_of(teacher), found.parameters)
    return Distillation(found.model, found, seen.result(), parameters, speed, how, found.history)


def _known(found: Approximation, formula: bool) -> str:
    if formula:
        return "the teacher's operations are a formula"
    target = found.target
    declared = isinstance(target, Target) and target.modulus.kind == "declared"
    return "by the declared Lipschitz constant" if declared else "only observed, no constant was declared"


def _require_teacher(teacher: Any) -> None:
    if not callable(teacher):
        raise InputError("a teacher that can be called", type(teacher).__name__, "pass an nn.Module or a function")
    if isinstance(teacher, nn.Module) and teacher.training and any(m.training for m in teacher.modules() if _random(m)):
        raise InputError("a teacher that answers the same each time", "dropout in training mode", "call teacher.eval()")


def _random(module: nn.Module) -> bool:
    return isinstance(module, nn.Dropout) and module.p > 0
