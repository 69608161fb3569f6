"""Rates: exponents fitted to results by least squares, with 95 % confidence intervals, beside what theory predicts.

    power         log y = a + b log x
    exponential   log y = a − b x^(1/D), the law of analytic targets
    root          log y = a − b √x, the law of singularities and heads that can move

The interval is Student's, from the scatter of the points around the line: it covers the exponent if that scatter is random.
Repetitions that all agree (seeds that change nothing) count once, and targets of different D are fitted separately.
Counts are whole numbers and laws hold in a limit, so an interval can miss for reasons that more points would not cure.

What theory predicts for a rate, by name, for targets of D variables.

    lipschitz      the theorem's lattice (docs/theory/theorem.md, 3): M = ∏ ⌈D L_j / (2(1 − η)ε)⌉ heads, so M ~ ε^(−D)
    holder-α       the same with |f(x) − f(y)| ≤ L‖x − y‖^α for α = 1/2, 1/3: M ~ ε^(−D/α)
    singular-s     one variable, a singularity like |x|^s, a fixed lattice of heads, values that are free: an error of order
                   M^(−s), as for polynomials of degree M (Bernstein) and splines with M equal pieces, so M ~ ε^(−1/s); s = 1/2,
                   1, 2, 3
    root           the same singularities, heads that can move and be as sharp as they like: error ~ exp(−c √M) for some c > 0, as
                   for rational functions of degree M (Newman, Stahl). docs/theory/sizes.md proves that gates reach it
    second-order   smooth targets, values that are free: an error of order h², so M grows no faster than ε^(−D/2)
    analytic       analytic targets: error ~ exp(−c M^(1/D)) for some c > 0 (docs/build/polished.md)
    additive       a sum over D variables is built one variable at a time, each within ε/D: M = D m(ε/D) with m(ε) between
                   constant and ε^(−1/2) (second-order for one variable), so that M ~ D^b with b between 1 and 3/2
    apart          and is proved one variable at a time: boxes ~ D
    free           the proof's boxes depend on how sharp the layer is, not on the tolerance: exponent 0
    work           every unit is evaluated at every point: points per second ~ 1/M, as long as units are what takes time
    gap            samples of a function with a declared Lipschitz constant: the bound is at least half of what they leave
                   open, so that it falls no faster than the distance between samples, N^(−1/D)
    lattice        samples in context at the centres of cells (docs/theory/prompts.md): the bound is L√D/2·N^(−1/D), and a little
    quartered      every step of the repeated layer for x² divides its error by four: error ~ exp(−b·steps), b = ln 4

The first two and the last two are theorems about constructions, gap is one about every method, root one about what gates can
reach; the others are estimates of what free values reach.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...common.checks import is_number, require_choice, require_whole
from ...common.errors import InputError
from ...common.table import Table
from ...target.sides import MOST_VARIABLES
from .entries import column_of, names_of, require_known, where_of

HOLDER = {"1/2": 1 / 2, "1/3": 1 / 3}
SINGULAR = {"1/2": 1 / 2, "1": 1.0, "2": 2.0, "3": 3.0}
Band = tuple[float, float]
SLACK = 1e-6  # for exponents of exact data, whose intervals have no width


@dataclass(frozen=True)
class Prediction:
    """Where the exponent lies for D variables: a number, or a band. `strict`: the whole interval has to lie inside."""

    name: str
    band: Callable[[int], Band]
    statement: str
    strict: bool = False

    def text(self, D: int) -> str:
        low, high = self.band(D)
        if low == high:
            return f"{low:.3g}"
        return f"> {low:.3g}" if math.isinf(high) else f"{low:.3g} … {high:.3g}"

    def agrees(self, low: float, high: float, D: int) -> bool:
        """Whether an interval for the exponent meets the band; if `strict`, lies in it."""
        bottom, top = self.band(D)
        if self.strict:
            return bottom < low and high < top
        return low - SLACK <= top and bottom <= high + SLACK


def exactly(exponent: float) -> Band:
    return exponent, exponent


def holder(name: str, alpha: float) -> Prediction:
    return Prediction(f"holder-{name}", lambda D: exactly(-D / alpha), f"M ~ ε^(−D/α), α = {name}, theorem")


def singular(name: str, s: float) -> Prediction:
    return Prediction(f"singular-{name}", lambda D: exactly(-1 / s), f"M ~ ε^(−1/s), s = {name}, estimate")


PREDICTIONS = {
    p.name: p
    for p in (
        Prediction("lipschitz", lambda D: exactly(-float(D)), "M = ∏ ⌈D L_j / (2(1 − η)ε)⌉, theorem"),
        *(holder(*pair) for pair in HOLDER.items()),
        *(singular(*pair) for pair in SINGULAR.items()),
        Prediction(
            "root", lambda D: (0.0, math.inf), "error ~ exp(−b √M), b > 0, reached by gates: theorem", strict=True
        ),
        Prediction("second-order", lambda D: (-D / 2, 0.0), "M no more than ε^(−D/2), estimate"),
        Prediction("analytic", lambda D: (0.0, math.inf), "error ~ exp(−b M^(1/D)), b > 0, estimate", strict=True),
        Prediction("additive", lambda D: (1.0, 1.5), "M = D m(ε/D), m between constant and ε^(−1/2), estimate"),
        Prediction("apart", lambda D: exactly(1.0), "every variable is proved apart"),
        Prediction("free", lambda D: exactly(0.0), "boxes depend on sharpness, not on ε, estimate"),
        Prediction("work", lambda D: exactly(-1.0), "points per second ~ 1/M where units take the time, estimate"),
        Prediction("lattice", lambda D: exactly(-1 / D), "bound = L√D/2·N^(−1/D) and what softness adds, theorem"),
        Prediction("quartered", lambda D: exactly(math.log(4)), "error 4^(−steps − 1), theorem"),
        Prediction("gap", lambda D: (-1 / D, 0.0), "no bound below half the gap between samples, theorem"),
    )
}


def prediction(name: str) -> Prediction | None:
    """The prediction of that name; None for an empty name."""
    if not name:
        return None
    if name not in PREDICTIONS:
        raise InputError(f"a theory among {', '.join(PREDICTIONS)}", repr(name), "choose one, or leave it out")
    return PREDICTIONS[name]


LAWS = {"power": "{y} ~ {x}^b", "exponential": "{y} ~ e^(−b·{x}^(1/D))", "root": "{y} ~ e^(−b·√{x})"}
ENTRIES = {"title", "x", "y", "by", "where", "law", "theory", "dimension"}
CONFIDENCE = 0.95
MIN_POINTS = 3  # with different x: two points always lie on a line

Row = Mapping[str, Any]


@dataclass(frozen=True)
class RateSpec:
    """A rate to fit: y against x, one for every combination of `by`, over the rows where `where` holds."""

    x: str
    y: str
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    law: str = "power"
    theory: str = ""
    title: str = ""
    dimension: int = 0  # D in the law and the theory; 0: that of the rows

    @staticmethod
    def read(entry: Mapping[str, Any]) -> "RateSpec":
        """From a table [[rate]]."""
        require_known("entries of [[rate]]", entry, ENTRIES)
        defaults = {"law": "power", "theory": "", "title": ""}
        texts = {key: str(entry.get(key, default)) for key, default in defaults.items()}
        dimension = entry.get("dimension", 0)
        require_whole("dimension", dimension, 0, MOST_VARIABLES)
        x, y = column_of(entry, "x"), column_of(entry, "y")
        spec = RateSpec(x, y, names_of(entry, "by"), where_of(entry), dimension=dimension, **texts)
        require_choice("law", spec.law, LAWS)
        prediction(spec.theory)
        return spec


@dataclass(frozen=True)
class Rate:
    """A fitted exponent with its interval, from this many points; R² is the share of the scatter that the law explains."""

    spec: RateSpec
    group: tuple[tuple[str, Any], ...]
    exponent: float
    low: float
    high: float
    points: int
    r2: float
    dimension: int

    @property
    def prediction(self) -> Prediction | None:
        return prediction(self.spec.theory)

    @property
    def agrees(self) -> bool | None:
        """Whether theory lies in the interval (or on the right side of it); None without a prediction."""
        return None if self.prediction is None else self.prediction.agrees(self.low, self.high, self.dimension)

    @property
    def cells(self) -> tuple[object, ...]:
        law = LAWS[self.spec.law].format(x=self.spec.x, y=self.spec.y)
        theory = "–" if self.prediction is None else self.prediction.text(self.dimension)
        verdict = {None: "–", True: "yes", False: "no"}[self.agrees]
        group = ", ".join(str(value) for _, value in self.group) or "all"
        interval = f"{self.low:.3g} … {self.high:.3g}"
        fit = (f"{self.exponent:.3g}", interval, f"{self.r2:.3f}", self.points)
        return (group, law, *fit, theory, verdict)


COLUMNS = ("points of", "law", "b", "95 % interval", "R²", "points", "theory", "agrees")


def rate_table(rates: Iterable[Rate], title: str = "Fitted rates") -> Table:
    """All rates, one per row."""
    return Table(title, COLUMNS, [rate.cells for rate in rates])


def matching(rows: Iterable[Row], where: Mapping[str, Any]) -> list[Row]:
    """The rows with these values; a list means any of its values."""
    allowed = {key: value if isinstance(value, list) else [value] for key, value in where.items()}
    return [row for row in rows if all(row.get(key) in values for key, values in allowed.items())]


def grouped(rows: Iterable[Row], by: tuple[str, ...]) -> dict[tuple[Any, ...], list[Row]]:
    """Rows grouped by their values of `by`, in order of appearance."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(tuple(row.get(key) for key in by), []).append(row)
    return found


def fit_rates(rows: Iterable[Row], spec: RateSpec) -> list[Rate]:
    """The rate of every group that has enough points."""
    found = []
    chosen = matching(rows, spec.where)
    by = (*spec.by, "dimension") if _mixed(chosen, spec) else spec.by
    for values, group in grouped(chosen, by).items():
        usable = [row for row in group if _positive(row.get(spec.x)) and _positive(row.get(spec.y))]
        usable = without_repeats(usable, spec.x, spec.y)
        if len({row[spec.x] for row in usable}) < MIN_POINTS:
            continue
        D = spec.dimension or int(usable[0].get("dimension") or 1)
        x = np.array([row[spec.x] for row in usable], dtype=np.float64)
        y = np.log(np.array([row[spec.y] for row in usable], dtype=np.float64))
        along = np.log(x) if spec.law == "power" else -np.sqrt(x) if spec.law == "root" else -(x ** (1 / D))
        slope, half, r2 = fit_line(along, y)
        label = tuple(zip(by, values, strict=True))
        found.append(Rate(spec, label, slope, slope - half, slope + half, len(usable), r2, D))
    return found


def without_repeats(rows: list[Row], x: str, y: str) -> list[Row]:
    """One row per x, if rows with the same x always agree: seeds that change nothing are no further evidence."""
    by_x = {row[x]: row for row in rows}
    return list(by_x.values()) if all(row[y] == by_x[row[x]][y] for row in rows) else rows


def _mixed(rows: list[Row], spec: RateSpec) -> bool:
    """Whether a group mixes dimensions: a law or a theory is about one, unless it is about the dimension itself."""
    if spec.dimension or "dimension" in (spec.x, *spec.by):
        return False
    return any(len({row.get("dimension") for row in group}) > 1 for group in grouped(rows, spec.by).values())


def fit_line(x: np.ndarray, y: np.ndarray) -> tuple[float, float, float]:
    """(slope, half the width of its confidence interval, R²) of a straight line through the points, by least squares."""
    from scipy import stats

    if np.ptp(y) == 0:
        return 0.0, 0.0, 1.0
    fit = stats.linregress(x, y)
    half = stats.t.ppf(0.5 + CONFIDENCE / 2, len(x) - 2) * fit.stderr
    return float(fit.slope), float(half), float(fit.rvalue**2)


def _positive(value: Any) -> bool:
    return is_number(value) and 0 < value < math.inf
