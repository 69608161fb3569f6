"""A comparison as a figure, and as a page that works offline."""

import html
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..common.atomic import require_new, write_file
from ..common.numbers import at_least, exact
from .pages import PLAIN_SCRIPTS, Page, figures_data
from .sections import figure_place
from .style import FONT

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..experiments.compare import Comparison, Entrant

COLOURS = {"constructed": "#1b7837", "warm-started": "#7fbf7b", "trained": "#a05cb0", "peer": "#8c8c8c"}


def comparison_figure(found: "Comparison") -> "go.Figure":
    """Observed errors of all entrants, proved bounds as marks, and errors against size and samples if these were measured."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    more = [(rows, axis) for rows, axis in ((found.growth, "parameters"), (found.samples, "samples")) if rows]
    titles = ["observed error", *(f"error against {axis}" for _, axis in more)]
    ran = [e for e in found.entrants if not math.isnan(e.observed)][::-1]
    rows = 1 + len(more)
    heights = [36 * len(ran) + 60, *(340 for _ in more)]
    between = 0.3 / rows if more else 0.0
    figure = make_subplots(rows=rows, cols=1, subplot_titles=titles, row_heights=heights, vertical_spacing=between)
    for kind, colour in COLOURS.items():
        mine = [e for e in ran if e.kind == kind]
        about = [f"{e.parameters:,} parameters, {e.seconds:.1f} s<br>{e.note}" for e in mine]
        bar = go.Bar(x=[e.observed for e in mine], y=[e.name for e in mine], orientation="h", name=kind)
        bar.update(marker_color=colour, text=[at_least(e.observed, 2) for e in mine], hovertext=about)
        figure.add_trace(bar, row=1, col=1)
    proved = [e for e in ran if math.isfinite(e.bound)]
    marker = {"symbol": "line-ns-open", "size": 22, "color": "#e69f00", "line": {"width": 3}}
    x, y = [e.bound for e in proved], [e.name for e in proved]
    marks = go.Scatter(x=x, y=y, mode="markers", marker=marker, name="bound (proved)")
    marks.update(text=[f"bound {e.bound_text}" for e in proved], hoverinfo="text+name")
    figure.add_trace(marks, row=1, col=1)
    figure.update_yaxes(categoryorder="array", categoryarray=[e.name for e in ran], row=1, col=1)
    figure.update_xaxes(type="log", exponentformat="power", row=1, col=1)
    for i, (entrants, axis) in enumerate(more, start=2):
        for name, kind, line in _lines(entrants):
            x = [e.parameters if axis == "parameters" else e.size for e in line]
            look = {"color": COLOURS[kind], "dash": "dot" if "FFN" in name else "solid"}
            trace = go.Scatter(x=x, y=[e.observed for e in line], mode="lines+markers", name=name, line=look)
            figure.add_trace(trace, row=i, col=1)
        figure.update_xaxes(type="log", dtick=1, title_text=axis, row=i, col=1)
        figure.update_yaxes(type="log", title_text="observed error", dtick=1, exponentformat="power", row=i, col=1)
    height = int(sum(heights) * (1.3 if more else 1.0)) + 140
    figure.update_layout(
        title=f"{found.title}; on {found.domain}",
        height=height,
        width=980,
        font=FONT,
        template="plotly_white",
        bargap=0.35,
    )
    return figure


def _lines(entrants: "tuple[Entrant, ...]") -> "list[tuple[str, str, list[Entrant]]]":
    """Entrants of a series that differ in size only, as (name, kind, entrants)."""
    lines: dict[str, list[Entrant]] = {}
    for e in entrants:
        name = " ".join(word for word in e.name.split() if not word.isdigit())
        lines.setdefault(name, []).append(e)
    return [(name, line[0].kind, line) for name, line in lines.items()]


def comparison_page(found: "Comparison") -> str:
    """The comparison as one page: the picture, and every number in tables."""
    figure = comparison_figure(found).update_layout(title=None, width=None, margin={"t": 60})
    alt = "Bars: the observed error of every entrant. Marks: proved bounds. The tables below hold the numbers."
    best, built = found.best("trained", "warm-started", "peer"), found.best("constructed")
    facts = [(exact(found.tolerance), "tolerance asked for"), (f"{len(found.entrants):,}", "entrants")]
    if built is not None:
        facts.append((built.bound_text, "bound, proved, constructed"))
        facts.append((at_least(built.observed, 2), "observed error, constructed"))
    if best is not None:
        facts.append((at_least(best.observed, 2), f"observed error, {best.name}: the best of the others"))
    tables = "".join(f'<div class="scroll" tabindex="0">{table._repr_html_()}</div>' for table in found.tables())
    about = "All entrants have about the same number of parameters and are judged at the same points. Only a bound is proved."
    if found.condition:
        about += f" Bounds are proved if {found.condition}."
    intro = f"<p>On {html.escape(found.domain)}.</p><p>{html.escape(about)}</p>"
    sections = [("errors", "Errors", figure_place("comparison", alt)), ("tables", "Tables", tables)]
    data = figures_data({"comparison": figure})
    return Page(found.target, "a comparison", intro, facts, sections, data, PLAIN_SCRIPTS).render()


def write_page(found: "Comparison", path: Path, overwrite: bool = False) -> Path:
    """The comparison as one self-contained HTML file; complete or absent. `overwrite=True` replaces a file of that name."""
    require_new(path, overwrite)
    return write_file(path, comparison_page(found))
