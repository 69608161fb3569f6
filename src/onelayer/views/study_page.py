"""A study as one page: pictures with error bars over seeds, fitted rates against theory, every point, every failure.

The pictures of a study: y against x, one line per group, median and quartiles over seeds and whatever else varies.
"""

import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.checks import is_number
from ..common.numbers import exact
from ..common.table import Table, duration
from ..experiments.study.fitted_rates import COLUMNS, grouped, matching
from ..experiments.study.result import Study
from ..experiments.study.sweep import FigureSpec
from .pages import PLAIN_SCRIPTS, Page, figures_data
from .sections import code_marked, figure_place
from .style import styled

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's colours; a group's first name decides the dash and the mark, all others together the colour
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7d7d7d", "#b5a100")
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "star")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
NAMES = {"tolerance": "tolerance ε", "bound": "bound (proved)", "observed": "observed error"}
NAMES |= {"dimension": "variables D", "boxes": "boxes of the proof", "points_per_second": "points per second"}
NAMES |= {"difference": "largest difference from softmax seen", "trained_observed": "observed error, trained"}
NAMES |= {"theorem_units": "heads of the theorem", "relus": "ReLUs, repeated", "one_pass_relus": "ReLUs, one pass"}
NAMES |= {"count": "found", "least": "needed (proved)", "fresh_error": "error on fresh sequences"}


def study_figures(study: Study) -> "list[tuple[str, go.Figure]]":
    """(title, figure) for each figure of the sweep that has points."""
    found = []
    for spec in study.sweep.figures:
        if (figure := study_figure(study, spec)) is not None:
            found.append((spec.title or f"{', '.join(spec.y)} against {spec.x}", figure))
    return found


def study_figure(study: Study, spec: FigureSpec) -> "go.Figure | None":
    """One picture; None if there is nothing to draw."""
    import plotly.graph_objects as go

    across, up = spec.scale.split("-")
    lines: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for y in spec.y:
        rows = [row for row in matching(study.done, spec.where) if _drawable(row.get(y))]
        rows = [row for row in rows if row.get(spec.x) is not None]
        for values, group in grouped(rows, spec.by).items():
            named = zip(spec.by, values, strict=True)
            words = tuple(_cell(v) if isinstance(v, str) else f"{by} {_cell(v)}" for by, v in named if v is not None)
            name = (*words, NAMES.get(y, y)) if len(spec.y) > 1 else words or (y,)
            points = list(zip(*spread(group, spec.x, y, across == "categories"), strict=True))
            if points := [point for point in points if point[1] > 0 or up != "log"]:  # a log axis has no 0
                lines[name] = tuple(map(list, zip(*points, strict=True)))
    if not lines:
        return None
    figure = go.Figure()
    firsts = list(dict.fromkeys(name[0] for name in lines if len(name) > 1))
    others = list(dict.fromkeys(name[1:] or name for name in lines))
    for name, (x, middle, less, more) in lines.items():
        kind = firsts.index(name[0]) if len(name) > 1 else 0
        colour = COLOURS[others.index(name[1:] or name) % len(COLOURS)]
        bars = {"type": "data", "symmetric": False, "array": more, "arrayminus": less, "thickness": 1.2, "width": 4}
        line = {"color": colour, "width": 1.5, "dash": DASHES[kind % len(DASHES)]}
        marker = {"symbol": MARKS[kind % len(MARKS)], "size": 8, "color": colour}
        mode, error = "markers" if across == "categories" else "lines+markers", bars if any(less) or any(more) else None
        figure.add_trace(
            go.Scatter(x=x, y=middle, error_y=error, mode=mode, name=", ".join(name), line=line, marker=marker)
        )
    kinds = {"log": "log", "linear": "linear", "categories": "category"}
    label = NAMES.get(spec.y[0], spec.y[0]) if len(spec.y) == 1 else ""
    figure.update_xaxes(type=kinds[across], title_text=NAMES.get(spec.x, spec.x), exponentformat="power")
    figure.update_yaxes(type=kinds[up], title_text=label, exponentformat="power")
    if up == "log":
        seen = [v for _, middle, _, _ in lines.values() for v in middle]
        figure.update_yaxes(dtick=1 if max(seen) > 40 * min(seen) else None)
    apart = {"scattermode": "group"} if across == "categories" else {}
    return styled(figure, 460, showlegend=len(lines) > 1, **apart)


def spread(rows: list[Any], x: str, y: str, categories: bool = False) -> tuple[list[Any], ...]:
    """(x, median of y, distance down to the lower quartile, distance up to the upper one), for every x in order."""
    groups = grouped(rows, (x,))
    order = list(groups) if categories else sorted(groups)
    quartiles = np.array([np.quantile([row[y] for row in groups[at]], (0.25, 0.5, 0.75)) for at in order])
    low, middle, high = quartiles.T.tolist()
    less = [m - v for m, v in zip(middle, low, strict=True)]
    return [at[0] for at in order], middle, less, [v - m for m, v in zip(middle, high, strict=True)]


def _drawable(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _cell(value: Any) -> str:
    return exact(value) if isinstance(value, float) else str(value)


MOST_ROWS = 2000  # points on the page; the others are in points.csv
RATE_NOTE = (
    "Least squares on logarithms. The interval is Student's, 95 %, from the scatter around the line. Counts are whole numbers "
    "and laws hold in a limit, so an interval can miss the exponent of the limit. “Agrees” means that theory's exponent "
    "lies in the interval, or on the side of it that theory allows."
)
REPRODUCE = (
    "All points are in points.csv next to this page, with the versions of everything in points.sqlite. The same command"
    " resumes where it stopped and measures nothing twice."
)


def study_page(study: Study) -> str:
    """The report of a study as text."""
    figures = {f"figure-{i + 1}": (title, figure) for i, (title, figure) in enumerate(study_figures(study))}
    sections = [
        ("figures", "Pictures", _figures(figures)),
        ("rates", "Fitted rates and theory", _rates(study)),
        (
            "tables",
            "Tables",
            "".join(f'<div class="scroll" tabindex="0">{t._repr_html_()}</div>' for t in study.tables()),
        ),
        ("failures", "Points that failed", _failures(study)),
        ("points", "Points", _points(study)),
        ("again", "Reproducing it", f"<p>{REPRODUCE}</p>"),
    ]
    data = figures_data({name: figure for name, (_, figure) in figures.items()})
    title, intro = study.sweep.title or study.sweep.name, f"<p>{code_marked(study.sweep.about)}</p>"
    return Page(title, "a study", intro, _facts(study), sections, data, PLAIN_SCRIPTS).render()


def _facts(study: Study) -> list[tuple[str, str]]:
    spent = sum(row["spent"] or 0.0 for row in study.rows)
    agreeing = [rate.agrees for rate in study.rates() if rate.agrees is not None]
    return [
        (f"{len(study.done):,}", "points done"),
        (f"{len(study.failed):,}", "failed"),
        (f"{study.missing:,}", "to do"),
        (duration(spent), "of measuring"),
        *([(f"{sum(agreeing)} of {len(agreeing)}", "rates that agree with theory")] if agreeing else []),
    ]


def _figures(figures: dict[str, tuple[str, Any]]) -> str:
    return "".join(f"<h3>{html.escape(title)}</h3>{figure_place(name, title)}" for name, (title, _) in figures.items())


def _rates(study: Study) -> str:
    parts = []
    for spec in study.sweep.rates:
        mine = [rate for rate in study.rates() if rate.spec is spec]
        if mine:
            title = spec.title or f"{spec.y} against {spec.x}"
            table = Table(title, COLUMNS, [rate.cells for rate in mine])._repr_html_()
            parts.append(f'<div class="scroll" tabindex="0">{table}</div>')
            if mine[0].prediction:
                parts.append(f'<p class="note">Theory: {html.escape(mine[0].prediction.statement)}.</p>')
    if not parts:
        return ""
    if study.sweep.limits:
        parts.append(f"<h3>Where theory and measurement part</h3><p>{code_marked(study.sweep.limits)}</p>")
    return f'<p class="note">{RATE_NOTE}</p>' + "".join(parts)


def _failures(study: Study) -> str:
    if not study.failed:
        return ""
    table = Table("", ("point", "error"), [(_point_name(row), row["error"]) for row in study.failed])
    return f'<div class="scroll" tabindex="0">{table._repr_html_()}</div>'


def _point_name(row: dict[str, Any]) -> str:
    axes = ("target", "tolerance", "method", "samples", "way", "seed")
    return ", ".join(f"{key} {row[key]}" for key in axes if row.get(key) is not None) or row["measure"]


def _points(study: Study) -> str:
    table = study.table()
    short = Table(table.title, table.columns, table.rows[:MOST_ROWS])._repr_html_()
    return (
        f'<details><summary>{len(table.rows)} points</summary><div class="scroll" tabindex="0">{short}</div></details>'
    )
