"""A statement about a layer, judged: PROVED, REFUTED with points that show it, or UNDECIDED.

First a divided difference that contradicts the statement is looked for and proved in balls (`reached`). If there is none, the
derivative that the statement is about is enclosed (`span`) until the enclosure keeps to the limits. Where T is smooth and its
derivative is at least 0 on the domain, divided differences along segments in the domain are at least 0 too, and so on. With
"not" in front the two verdicts change places.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ...common.budget import Budget
from ...common.numbers import at_most, exact, point
from ...common.table import Table
from .reached import points_of, reached
from .real_function import RealFunction
from .span import Enclosure, span
from .statement import Statement

PropertyVerdict = Literal["PROVED", "REFUTED", "UNDECIDED"]
SHOWN = ("T there", "slope between them", "second derivative between them")  # by order
LOOKING = 0.3  # share of the seconds for looking at points
TURNS, CLOSER = 4, 0.1  # attempts, each with this share of the room before
LEAST_ROOM = 1e-9  # share of the width of what was seen: a limit that is approached closer than this is not tried


@dataclass(frozen=True)
class Judgement:
    """What is proved about one property. All of it is about the real function of the stored weights.

    `enclosures` holds, for every output, what is proved of the values, slopes or second derivatives that the property is about.
    `witness` has the one to three points whose values refute it, or prove it if it has "not" in front, at this `output`;
    what they show, a value, slope or second derivative, is proved to lie between the two numbers of `shown`.
    """

    text: str
    verdict: PropertyVerdict
    domain: str
    about: str
    enclosures: tuple[Enclosure, ...]
    witness: tuple[tuple[float, ...], ...] | None = None
    output: int | None = None
    shown: tuple[float, float] | None = None
    reason: str = ""

    @property
    def proved(self) -> bool:
        return self.verdict == "PROVED"

    def table(self) -> Table:
        names = ["" if len(self.enclosures) == 1 else f", output {o + 1}" for o in range(len(self.enclosures))]
        rows: list[tuple[object, ...]] = [("property", self.text), ("verdict", self.verdict), ("domain", self.domain)]
        if self.witness is None or self.output is None or self.shown is None:
            rows += [(f"{self.about}{name}", str(e)) for name, e in zip(names, self.enclosures, strict=True)]
        else:
            low, high = self.shown
            rows += [("witness" if j == 0 else "", point(x)) for j, x in enumerate(self.witness)]
            rows += [(f"{SHOWN[len(self.witness) - 1]}{names[self.output]}", f"[{exact(low)}, {exact(high)}]")]
        rows += [("why", self.reason)] if self.reason else []
        return Table("Property", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def judge(subject: RealFunction, statement: Statement, budget: Budget, seed: int = 0) -> Judgement:
    """The verdict on a statement, within the budget."""
    order, i, domain = statement.order, statement.coordinate, subject.domain
    ends = reached(subject, order, i, budget.share(LOOKING), seed)
    seen = points_of(ends)
    where = str(domain) if domain.within is None or not order else f"segments along {domain.names[i]} within {domain}"
    for o, one in enumerate(ends):
        for found in (one.low, one.high):
            if found is not None and statement.fails(found.below, found.above):
                verdict: PropertyVerdict = "PROVED" if statement.negated else "REFUTED"
                inner = _enclosures(np.full(len(ends), -np.inf), np.full(len(ends), np.inf), seen)
                return Judgement(
                    statement.text, verdict, where, statement.what, inner, found.points, o, (found.below, found.above)
                )
    room = np.array([statement.room(a, b) for a, b in zip(*seen, strict=True)])
    width = seen[1] - seen[0]
    if not (room > LEAST_ROOM * width).all():
        inner = _enclosures(np.full(len(ends), -np.inf), np.full(len(ends), np.inf), seen)
        reason = f"{statement.what} reach the limit, or come within {at_most(max(float(room.min()), 0.0), 2)} of it"
        return Judgement(statement.text, "UNDECIDED", where, statement.what, inner, reason=reason)
    finite = np.where(np.isfinite(room), room, np.maximum(width, 1e-300))

    def settled(low: np.ndarray, high: np.ndarray) -> bool:
        return all(map(statement.holds, low.tolist(), high.tolist()))

    for turn in range(TURNS):  # what was seen may miss the extremes, so that there is less room than it seems
        spanned = span(subject, order, i, seen, budget, finite * CLOSER**turn, settled)
        done = settled(spanned.low, spanned.high)
        if done or spanned.reason or budget.over():
            break
    enclosures = _enclosures(spanned.low, spanned.high, seen)
    if done:
        proved: PropertyVerdict = "REFUTED" if statement.negated else "PROVED"
        return Judgement(statement.text, proved, where, statement.what, enclosures)
    reason = (
        spanned.reason or f"the enclosure of the {statement.what} passes the limit: it is not close enough to decide"
    )
    return Judgement(statement.text, "UNDECIDED", where, statement.what, enclosures, reason=reason)


def _enclosures(low: np.ndarray, high: np.ndarray, seen: tuple[np.ndarray, np.ndarray]) -> tuple[Enclosure, ...]:
    return tuple(Enclosure(*map(float, four)) for four in zip(low, high, *seen, strict=True))
