"""A study as one page: pictures with error bars over seeds, fitted rates against theory, every point, every failure."""

import html
from typing import Any

from ..common.table import Table, duration
from ..experiments.study.fitted_rates import COLUMNS
from ..experiments.study.result import Study
from .pages import PLAIN_SCRIPTS, Page, figures_data
from .sections import code_marked, figure_place
from .study_figure import study_figures

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
