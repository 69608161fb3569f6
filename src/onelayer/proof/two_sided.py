"""What is known of sup |T − f|, or another norm: both ends, where the lower one is attained, and how it is said."""

import math
from dataclasses import dataclass, replace

from ..common.numbers import at_least, at_most, exact, point
from ..common.table import Table
from .certificate import Method

LAYER = "the layer"
DIGITS = 6  # that are printed, or more where the two ends are closer than that


@dataclass(frozen=True)
class Supremum:
    """lower ≤ sup |T − f| ≤ upper, or another norm, both proved; at the point, if there is one, |T − f| ≥ lower. upper is ∞
    where nothing was proved.

    `compared` names the two: the layer and its target, or two formulas as they were given.
    """

    lower: float
    upper: float
    point: tuple[float, ...] | None
    accuracy: float  # asked for
    method: Method
    boxes: int
    domain: str
    compared: tuple[str, str]
    assumptions: tuple[str, ...] = ()
    norm: str = "Supremum"  # of |T − f|; or the "Root mean square"
    weight: str = ""  # w, where the two ends are those of |T − f|/w

    @property
    def reached(self) -> bool:
        """Whether upper ≤ (1 + accuracy)·lower."""
        return math.isfinite(self.upper) and self.upper <= (1 + self.accuracy) * self.lower

    def unless_contradicted(self) -> "Supremum":
        """This, or one without an upper end where the two ends contradict each other: then one of our proofs is wrong."""
        if not self.lower > self.upper:
            return self
        mistake = (
            f"contradicted: at least {exact(self.lower)} and at most {exact(self.upper)} were proved; please report it"
        )
        return replace(self, upper=math.inf, assumptions=(*self.assumptions, mistake))

    @property
    def apart(self) -> float:
        """upper/lower − 1; ∞ where one of the two is missing."""
        return self.upper / self.lower - 1 if 0 < self.lower <= self.upper else math.inf

    def table(self) -> Table:
        digits = DIGITS if not 0 < self.apart < 1 else min(max(DIGITS, 2 - math.floor(math.log10(self.apart))), 17)
        first, second = ("T", "f") if self.compared[0] == LAYER else ("p", "q")
        low = at_least(self.lower, digits) + (f", at {point(self.point)}" if self.point is not None else "")
        high = (
            at_most(self.upper, digits) if math.isfinite(self.upper) else "no upper bound was found in the time given"
        )
        share = f": {at_most(100 * self.apart, 2)}% apart" if math.isfinite(self.apart) else ""
        rows: list[tuple[object, ...]] = [
            (first, self.compared[0]),
            (second, self.compared[1]),
            *([("w", self.weight)] if self.weight else []),
            ("domain", self.domain),
            ("at least (proved)", low if self.lower else f"0: {first} and {second} were not told apart"),
            ("at most (proved)", f"{high}{share}"),
            *([] if self.reached else [("accuracy", f"{100 * self.accuracy:.4g}% was asked for and not reached")]),
            *(("assumes", a) for a in self.assumptions),
        ]
        return Table(f"{self.norm} of |{first} − {second}|{'/w' if self.weight else ''}", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
