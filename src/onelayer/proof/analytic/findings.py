"""What boxes with proved ranges say of one group's box: the range of T − f, and the box that decides it."""

from typing import Any

import numpy as np

from ..boxes import Patch
from ..certificate import Box
from .summand import Summand


class Findings:
    """Boxes that cover one group's box: lower, upper [box, coordinate], low ≤ g ≤ high [box, out], degrees [box]."""

    summand: Summand
    boxes: Any  # None if nothing is proved

    @property
    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """low ≤ g ≤ high everywhere, per output."""
        if self.boxes is None:
            m = len(self.summand.form.bias)
            return np.full(m, -np.inf), np.full(m, np.inf)
        return self.boxes.low.min(axis=0), self.boxes.high.max(axis=0)

    @property
    def worst(self) -> Box | None:
        """The box that decides the bound."""
        if self.boxes is None:
            return None
        at = int(np.maximum(self.boxes.high, -self.boxes.low).max(axis=1).argmax())
        return Box(self.summand.group, tuple(self.boxes.lower[at].tolist()), tuple(self.boxes.upper[at].tolist()))

    @property
    def patch(self) -> Patch | None:
        b = self.boxes
        return None if b is None else Patch(self.summand.group, b.lower, b.upper, b.low, b.high)

    @property
    def degree(self) -> int:
        return 0 if self.boxes is None else int(self.boxes.degrees.max())
