"""History: the validations of a training, in order."""

import math
from dataclasses import dataclass, field
from typing import Any

from ..common.numbers import at_least
from ..common.table import Table


@dataclass(frozen=True)
class Moment:
    """One validation: the step, the mean loss since the last one, and how the layer did on held-out samples."""

    step: int
    loss: float
    validated: float  # the largest held-out error; for labels, the share of wrong answers
    rmse: float  # root mean square of the held-out errors; for labels, the cross-entropy
    rate: float


@dataclass(frozen=True)
class History:
    """All validations in order; `best` is the step whose weights were kept. `seconds` does not count for equality."""

    moments: tuple[Moment, ...] = ()
    best: int = 0
    stopped: str = "all steps made"
    seconds: float = field(default=0.0, compare=False)

    @property
    def steps(self) -> int:
        return self.moments[-1].step if self.moments else 0

    @property
    def smallest_error(self) -> float:
        """The smallest validated error."""
        return min((moment.validated for moment in self.moments), default=math.inf)

    def table(self, most: int = 20) -> Table:
        """The validations, thinned out to at most `most`."""
        table = Table("History of the training", ("step", "loss", "largest held-out error", "RMSE", "rate"))
        stride = max(1, -(-len(self.moments) // most))
        for moment in [*self.moments[::-1][::stride]][::-1]:
            loss, rmse, rate = (f"{v:.4g}" for v in (moment.loss, moment.rmse, moment.rate))
            table.rows.append((f"{moment.step:,}", loss, at_least(moment.validated), rmse, rate))
        table.rows.append((f"best: {self.best:,}", self.stopped, f"{self.seconds:.1f} s", "", ""))
        return table

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def record(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "best": self.best,
            "stopped": self.stopped,
            "seconds": self.seconds,
            "moments": [vars(moment) for moment in self.moments],
        }
