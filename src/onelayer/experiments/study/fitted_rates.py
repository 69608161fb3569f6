"""Rates: exponents fitted to results by least squares, with 95 % confidence intervals, beside what theory predicts.

    power         log y = a + b log x
    exponential   log y = a − b x^(1/D), the law of analytic targets
    root          log y = a − b √x, the law of singularities and heads that can move

The interval is Student's, from the scatter of the points around the line: it covers the exponent if that scatter is random.
Repetitions that all agree (seeds that change nothing) count once, and targets of different D are fitted separately.
Counts are whole numbers and laws hold in a limit, so an interval can miss for reasons that more points would not cure.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...common.checks import is_number, require_choice, require_whole
from ...common.table import Table
from ...target.sides import MOST_VARIABLES
from .entries import column_of, names_of, require_known, where_of
from .theory import Prediction, prediction

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
