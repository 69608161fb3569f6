"""The pictures of a study: y against x, one line per group, median and quartiles over seeds and whatever else varies."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.checks import is_number
from ..common.numbers import exact
from ..experiments.study.fitted_rates import grouped, matching
from ..experiments.study.result import Study
from ..experiments.study.sweep import FigureSpec
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
