"""A study as one page: pictures with error bars over seeds, fitted rates beside theory, every point, every failure."""

import html
import json
from importlib import resources
from string import Template
from typing import Any

from ..common.table import Table
from ..experiments.study.rates import COLUMNS
from ..experiments.study.result import Study
from ..experiments.study.words import duration
from .study_figure import study_figures

ROWS = 2000  # of points on the page; the others are in points.csv
RATE_WORDS = (
    "Least squares on logarithms. The interval is Student's, 95 %, from the scatter around the line; counts are whole numbers "
    "and laws hold in a limit, so that an interval can miss what holds in the limit. “Agrees” means that theory's exponent "
    "lies in the interval, or on the side of it that theory allows."
)


def study_page(study: Study) -> str:
    """The report of a study as text."""
    figures = {f"figure-{i + 1}": (title, figure) for i, (title, figure) in enumerate(study_figures(study))}
    sections = [
        ("figures", "Pictures", _figures(figures)),
        ("rates", "Fitted rates and theory", _rates(study)),
        ("tables", "Tables", "".join(f'<div class="scroll">{t._repr_html_()}</div>' for t in study.tables())),
        ("failures", "Points that failed", _failures(study)),
        ("points", "Points", _points(study)),
        ("again", "To do it again", _again(study)),
    ]
    shown = [(name, title, body) for name, title, body in sections if body]
    assets = resources.files("onelayer.views") / "assets"
    from plotly.offline import get_plotlyjs

    data = {"figures": {name: json.loads(figure.to_json()) for name, (_, figure) in figures.items()}}
    return Template((assets / "study.html").read_text(encoding="utf-8")).substitute(
        title=html.escape(study.sweep.title or study.sweep.name),
        about=html.escape(study.sweep.about),
        facts=_facts(study),
        nav="".join(f'<a href="#{name}">{html.escape(title)}</a>' for name, title, _ in shown),
        body="".join(f'<section id="{name}"><h2>{html.escape(t)}</h2>{body}</section>' for name, t, body in shown),
        css=(assets / "report.css").read_text(encoding="utf-8"),
        plotly=get_plotlyjs(),
        data=json.dumps(data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _facts(study: Study) -> str:
    spent = sum(row["spent"] or 0.0 for row in study.rows)
    agreeing = [rate.agrees for rate in study.rates() if rate.agrees is not None]
    facts = [
        ("points done", f"{len(study.done):,}"),
        ("failed", f"{len(study.failed):,}"),
        ("to do", f"{study.missing:,}"),
        ("of measuring", duration(spent)),
        *([("rates that agree with theory", f"{sum(agreeing)} of {len(agreeing)}")] if agreeing else []),
    ]
    return "".join(f'<div class="fact"><b>{value}</b><span>{name}</span></div>' for name, value in facts)


def _figures(figures: dict[str, tuple[str, Any]]) -> str:
    return "".join(
        f'<h3>{html.escape(title)}</h3><div class="figure" id="{name}"></div>' for name, (title, _) in figures.items()
    )


def _rates(study: Study) -> str:
    parts = []
    for asked in study.sweep.rates:
        mine = [rate for rate in study.rates() if rate.asked is asked]
        if mine:
            title = asked.title or f"{asked.y} against {asked.x}"
            table = Table(title, COLUMNS, [rate.cells for rate in mine])._repr_html_()
            theory = (
                f'<p class="note">Theory: {html.escape(mine[0].prediction.words)}.</p>' if mine[0].prediction else ""
            )
            parts.append(f'<div class="scroll">{table}</div>{theory}')
    if not parts:
        return ""
    where = (
        f"<h3>Where theory and measurement part</h3><p>{html.escape(study.sweep.limits)}</p>"
        if study.sweep.limits
        else ""
    )
    return f'<p class="note">{RATE_WORDS}</p>' + "".join(parts) + where


def _failures(study: Study) -> str:
    if not study.failed:
        return ""
    named = [(_named(row), row["error"]) for row in study.failed]
    return f'<div class="scroll">{Table("", ("point", "error"), list(named))._repr_html_()}</div>'


def _named(row: dict[str, Any]) -> str:
    axes = ("target", "tolerance", "method", "samples", "way", "seed")
    return ", ".join(f"{key} {row[key]}" for key in axes if row.get(key) is not None) or row["measure"]


def _points(study: Study) -> str:
    table = study.table()
    short = Table(table.title, table.columns, table.rows[:ROWS])
    return (
        f'<details><summary>{len(table.rows)} points</summary><div class="scroll">{short._repr_html_()}</div></details>'
    )


def _again(study: Study) -> str:
    versions = "All points are in points.csv beside this page, with the versions of everything in points.sqlite."
    return f"<p>{versions} The same command goes on where it ended, and measures nothing twice.</p>"
