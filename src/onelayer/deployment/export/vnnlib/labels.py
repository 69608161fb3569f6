"""Labels: properties of a layer that are proved to hold, and others that are proved not to, at known distances from the truth.

The truth is a number: the largest value of T, its smallest, its steepest slope, or sup |T₁ − T₂|. A point shows that it is
at least `seen`, and a proof that it is at most `seen` + 0.2% of a unit. A limit that is a margin beyond it gives a property that
holds, one that is a margin short of it a property that fails. Both are judged by the proof engine (`ol.prove`): what it does not
prove gets no label. The unit is the width of the range for values, and the truth itself for slopes and distances.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from ....common.budget import Budget
from ....common.numbers import exact
from ....proof.properties.judge import Judgement, judge
from ....proof.properties.reached import Ends, reached
from ....proof.properties.real_function import RealFunction
from ....proof.properties.statement import read

MARGINS = (0.01, 0.05, 0.2)  # shares of the unit between a limit and the truth
CLOSE = 0.002  # share of the unit within which the truth is proved to be known
DIGITS = 5  # of a limit, relative to the unit
LEAST_SLOPE = 0.005  # share of the steepest slope: flatter layers are neither called increasing nor not
SECONDS = 10.0  # for one proof
KINDS = ("range", "Lipschitz", "monotone")
Points = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Label:
    """A property, whether it holds, and the statements of the certificate that say so.

    `margin` is the distance of the limit from the truth, which lies between `lower` and `upper`, in units. `witness` has the one
    or two points that contradict a property that fails.
    """

    kind: str
    text: str
    holds: bool
    margin: float
    lower: float
    upper: float
    statements: tuple[str, ...]
    witness: Points | None = None

    @property
    def expected(self) -> str:
        """The answer to the question whether there is a counterexample."""
        return "unsat" if self.holds else "sat"

    def row(self) -> list[str]:
        """Cells of a table: all but the names of files."""
        points = " ; ".join(" ".join(map(exact, x)) for x in self.witness or ())
        numbers = [exact(self.margin), exact(self.lower), exact(self.upper)]
        return [self.expected, self.kind, self.text, *numbers, " ; ".join(self.statements), points]


@dataclass
class Judge:
    """The proof engine, with everything that it proved and what it left open."""

    subject: RealFunction
    seed: int = 0
    proved: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __call__(self, text: str, or_else: bool = False) -> Judgement | None:
        """What is proved, or None, which is noted unless something else may be proved instead."""
        statement = read(text, self.subject.domain.names)
        found = judge(self.subject, statement, Budget(SECONDS), self.seed)
        if not found.proved:
            self.open += [] if or_else else [text]
            return None
        if text not in self.proved:
            self.proved.append(text)
        return found

    def ends(self, order: int, i: int) -> list[Ends]:
        """What is reached of values or slopes, by output."""
        return reached(self.subject, order, i, Budget(SECONDS), self.seed)


@dataclass(frozen=True)
class KnownExtreme:
    """A number that is at least `seen`, or at most if `sign` is −1, and the statements that a limit on it makes."""

    kind: str
    seen: float
    unit: float
    sign: int
    text: Callable[[Decimal], str]  # the property with this limit
    holds: Callable[[Decimal], tuple[str, ...]]  # statements that prove it together
    fails: Callable[[Decimal], tuple[str, ...]]  # statements of which each refutes it

    def limit(self, share: float) -> Decimal:
        """A short decimal that is this share of the unit beyond what was seen."""
        places = DIGITS - 1 - math.floor(math.log10(self.unit))
        value = Decimal(self.seen) + self.sign * Decimal(share) * Decimal(self.unit)
        return value.quantize(Decimal(1).scaleb(-places))

    def labels(self, judge: Judge, least: float) -> Iterator[Label]:
        """One property that holds and one that fails for each margin, where both are proved and more than `least` away."""
        close = self.limit(CLOSE)
        if not all(map(judge, self.holds(close))):
            return
        lower, upper = sorted((self.seen, float(close)))
        for margin in MARGINS:
            if margin * self.unit <= least:
                judge.open.append(f"{self.text(self.limit(margin))}: a margin that rounding could bridge")
                continue
            beyond, short = self.limit(margin), self.limit(-margin)
            if not all(map(judge, self.holds(beyond))):
                continue
            *others, last = self.fails(short)
            tried = ((text, judge(text, or_else=text != last)) for text in (*others, last))
            shown = next(((text, found) for text, found in tried if found and found.witness), None)
            if shown is None:
                continue
            ends = (margin, lower, upper)
            yield Label(self.kind, self.text(beyond), True, *ends, self.holds(beyond))
            yield Label(self.kind, self.text(short), False, *ends, (shown[0],), shown[1].witness)


def labels_of(judge: Judge, kinds: Sequence[str], least: float) -> list[Label]:
    """Labels of one layer: its range, and its slopes along every variable."""
    found = list[Label]()
    low, high = _extremes(judge.ends(0, 0)) if "range" in kinds else (0.0, 0.0)
    if high - low > 0:
        found += _bound("range", high, high - low, 1, "T <= {}").labels(judge, least)
        found += _bound("range", low, high - low, -1, "T >= {}").labels(judge, least)
    for i, name in enumerate(judge.subject.domain.names):
        low, high = _extremes(judge.ends(1, i))
        steepest = max(-low, high)
        if steepest > 0 and "Lipschitz" in kinds:
            found += _bound("Lipschitz", steepest, steepest, 1, f"Lipschitz {{}} in {name}").labels(judge, 0.0)
        if steepest > 0 and "monotone" in kinds:
            found += _monotone(judge, name, low, high)
    return found


def distance_labels(judge: Judge, distance: float, least: float) -> list[Label]:
    """Labels of T₁ − T₂, whose largest absolute value is at least `distance`: |T₁ − T₂| ≤ c."""
    truth = KnownExtreme(
        "equivalence", distance, distance, 1,
        lambda c: f"|T1 - T2| <= {c:f}",
        lambda c: (f"T <= {c:f}", f"T >= {-c:f}"),
        lambda c: (f"not T <= {c:f}", f"not T >= {-c:f}"),
    )  # fmt: skip
    return list(truth.labels(judge, least))


def _bound(kind: str, seen: float, unit: float, sign: int, words: str) -> KnownExtreme:
    def text(c: Decimal) -> str:
        return words.format(f"{c:f}")

    return KnownExtreme(kind, seen, unit, sign, text, lambda c: (text(c),), lambda c: (f"not {text(c)}",))


def _monotone(judge: Judge, name: str, low: float, high: float) -> Iterator[Label]:
    """Whether T increases in a variable, or decreases, whichever is nearer to the truth.

    The margin is how far the slopes are from changing sign, or how far they pass it, as a share of the steepest one.
    """
    rising, steepest = high >= -low, max(-low, high)
    text, slope = (f"increasing in {name}", low) if rising else (f"decreasing in {name}", -high)
    margin, statement = abs(slope) / steepest, text if slope > 0 else f"not {text}"
    if margin >= LEAST_SLOPE and (found := judge(statement)) is not None:
        yield Label("monotone", text, slope > 0, margin, low, high, (statement,), found.witness)


def _extremes(ends: list[Ends]) -> tuple[float, float]:
    """(smallest, largest) that is proved to be reached, over all outputs; (∞, −∞) for nothing."""
    low = [one.low.above for one in ends if one.low is not None]
    return min(low, default=math.inf), max((e.high.below for e in ends if e.high is not None), default=-math.inf)
