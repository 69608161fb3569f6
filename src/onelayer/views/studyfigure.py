"""The pictures of a study: y against x, one line per group, median and quartiles over seeds and whatever else is left."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..study.rates import grouped, matching
from ..study.result import Study
from ..study.sweep import Figure
from .style import GREY, styled

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Okabe and Ito's colours; from the ninth line on they come again with other marks
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#b5a100")
MARKS = ("circle", "square", "diamond", "triangle-up", "x", "star")
NAMES = {
    "tolerance": "tolerance ε",
    "bound": "bound (proved)",
    "observed": "observed error",
    "dimension": "variables D",
    "boxes": "boxes of the proof",
    "points_per_second": "points per second",
    "difference": "largest difference from softmax seen",
}


def study_figures(study: Study) -> "list[tuple[str, go.Figure]]":
    """(title, figure) for everything that the sweep wants drawn and that has points."""
    found = []
    for asked in study.sweep.figures:
        if (figure := study_figure(study, asked)) is not None:
            found.append((asked.title or f"{asked.y} against {asked.x}", figure))
    return found


def study_figure(study: Study, asked: Figure) -> "go.Figure | None":
    """One picture; None if there is nothing to draw."""
    import plotly.graph_objects as go

    rows = [row for row in matching(study.done, asked.where) if _drawable(row.get(asked.y), asked.scale)]
    rows = [row for row in rows if row.get(asked.x) is not None]
    if not rows:
        return None
    across, up = asked.scale.split("-")
    figure = go.Figure()
    for i, (values, group) in enumerate(grouped(rows, asked.by).items()):
        x, middle, less, more = spread(group, asked.x, asked.y, across == "categories")
        colour = COLOURS[i % len(COLOURS)]
        bars = {"type": "data", "symmetric": False, "array": more, "arrayminus": less, "thickness": 1.2, "width": 4}
        figure.add_trace(
            go.Scatter(
                x=x,
                y=middle,
                error_y=bars if any(less) or any(more) else None,
                mode="markers" if across == "categories" else "lines+markers",
                name=", ".join(_cell(v) for v in values) or asked.y,
                line={"color": colour, "width": 1.5},
                marker={"symbol": MARKS[(i // len(COLOURS)) % len(MARKS)], "size": 8, "color": colour},
            )
        )
    if asked.y in ("observed", "bound") and asked.x == "tolerance":
        ends = [min(row[asked.x] for row in rows), max(row[asked.x] for row in rows)]
        figure.add_trace(
            go.Scatter(x=ends, y=ends, mode="lines", name="the tolerance", line={"color": GREY, "dash": "dot"})
        )
    kinds = {"log": "log", "linear": "linear", "categories": "category"}
    figure.update_xaxes(type=kinds[across], title_text=NAMES.get(asked.x, asked.x), exponentformat="power")
    figure.update_yaxes(type=kinds[up], title_text=NAMES.get(asked.y, asked.y), exponentformat="power")
    return styled(figure, 460, showlegend=True, legend={"orientation": "v"})


def spread(
    rows: list[Any], x: str, y: str, categories: bool = False
) -> tuple[list[Any], list[float], list[float], list[float]]:
    """(x, median of y, down to the lower quartile, up to the upper one), for every x in order."""
    groups = grouped(rows, (x,))
    order = list(groups) if categories else sorted(groups)
    quartiles = np.array([np.quantile([row[y] for row in groups[at]], (0.25, 0.5, 0.75)) for at in order])
    low, middle, high = quartiles.T.tolist()
    less = [m - v for m, v in zip(middle, low, strict=True)]
    return [at[0] for at in order], middle, less, [v - m for m, v in zip(middle, high, strict=True)]


def _drawable(value: Any, scale: str) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return number and (value > 0 or not scale.endswith("log"))


def _cell(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
