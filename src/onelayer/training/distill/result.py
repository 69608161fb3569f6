"""The result of a distillation: the student, how faithful it is, and what was gained."""

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...approximation import Approximation
from ...common.errors import InputError
from ...common.numbers import at_least
from ...common.table import Table
from ...deployment.student_folder import save_student
from ...model.history import History
from ...model.token_encoder import TokenEncoder
from .fidelity import Fidelity

TIMINGS = 7  # of which the median counts


@dataclass(frozen=True, eq=False)
class Distillation:
    """The student (an ordinary module of one layer) and, for real inputs, its Approximation, certified or not."""

    student: nn.Module
    approximation: Approximation | None
    fidelity: Fidelity
    parameters: tuple[int, int]  # of teacher and student
    speed_up: float  # the teacher's time over the student's, on the same inputs and device
    how: str
    history: History | None = field(default=None)

    def __call__(self, *given: Any) -> Any:
        """What the student answers."""
        return self.approximation(*given) if self.approximation is not None else self.student(*given)

    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write what `ol.load` reads: the folder of the Approximation, or of the layer over tokens and its fidelity.

        A folder that holds something is refused; `overwrite=True` replaces the model in it and leaves all other files alone.
        """
        folder = Path(folder).absolute()
        if self.approximation is not None:
            return self.approximation.save(folder, overwrite)
        if not isinstance(self.student, TokenEncoder):
            raise InputError("a student made by `distill`", type(self.student).__name__, "save its state_dict yourself")
        return save_student(self.student, self.record(), folder, overwrite)

    def record(self) -> dict[str, Any]:
        """For JSON; numbers that are not finite become None."""
        teacher, student = self.parameters
        about = {"how": self.how, "teacher_parameters": teacher, "parameters": student, "speed_up": self.speed_up}
        found = about | asdict(self.fidelity) | {"explained": self.fidelity.explained}
        return {key: None if isinstance(v, float) and not math.isfinite(v) else v for key, v in found.items()}

    def table(self) -> Table:
        f = self.fidelity
        rows: list[tuple[object, ...]] = [
            ("how", self.how),
            ("parameters of the teacher", f"{self.parameters[0]:,}"),
            ("parameters of the student", f"{self.parameters[1]:,}"),
            ("speed-up", f"{self.speed_up:.3g}"),
            ("largest difference (observed)", at_least(f.sup)),
            ("RMSE", f"{f.rmse:.4g} of a spread of {f.spread:.4g}"),
            ("variance explained", f"{f.explained:.4f}"),
            ("cosine", f"{f.cosine:.4f}"),
            *([("same largest answer", f"{f.agreement:.4f}")] if f.agreement is not None else []),
            ("at held-out answers", f"{f.answers:,}"),
        ]
        if self.approximation is not None:
            c = self.approximation.certificate
            rows += [("verdict", c.headline), ("tolerance, bound", f"{c.tolerance_text}, {c.stated_bound}")]
            rows += [("assumes", assumption) for assumption in c.assumptions]
            rows += [("note", note) for note in self.approximation.facts.notes]
        return Table("Distillation into one layer", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def ratio_of_times(teacher: Callable[[], Any], student: Callable[[], Any], device: torch.device) -> float:
    """The teacher's time over the student's: the median of several measurements side by side."""

    def seconds(work: Callable[[], Any]) -> float:
        started = time.perf_counter()
        with torch.no_grad():
            work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        return time.perf_counter() - started

    seconds(teacher), seconds(student)
    return statistics.median(seconds(teacher) / max(seconds(student), 1e-9) for _ in range(TIMINGS))


def parameters_of(module: object) -> int:
    """How many numbers a module stores, shared ones counted once; 0 for a function."""
    if not isinstance(module, nn.Module):
        return 0
    return sum(t.numel() for t in {id(t): t for t in (*module.parameters(), *module.buffers())}.values())
