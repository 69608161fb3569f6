"""One look for all pictures: colours that colour-blind readers can tell apart, one font, quiet axes."""

import functools
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

FONT = {"family": "system-ui, sans-serif", "size": 14}
TARGET, LAYER, BOUND = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's blue, vermilion, green
SEQUENTIAL, DIVERGING = "Viridis", "RdBu"
GREY = "#8c8c8c"
DRAWN = ("bar", "heatmap", "scatter", "surface")  # traces with a look of their own in the template
SIGNED = [[0.0, TARGET], [0.5, "#a3a3a3"], [1.0, LAYER]]  # negative to positive, for marks on light and dark pages
EDGE = 0.08  # share of an axis at each end that has no label
SHADE = "rgba(110, 125, 145, 0.09)"  # a domain, on light and dark pages
VIEW: dict[str, Any] = {  # of surfaces: the whole box and its labels fit in the picture
    "aspectmode": "manual",
    "aspectratio": {"x": 1, "y": 1, "z": 0.7},
    "camera": {"eye": {"x": 1.4, "y": 1.4, "z": 0.92}, "center": {"x": 0, "y": 0, "z": -0.12}},
}
MENU = {"bgcolor": "#f4f6f8", "font": {"color": "#1c2430"}}  # of a menu in a picture, on light and dark pages


def inner_ticks(low: float, high: float, most: int = 4) -> list[float]:
    """Round numbers well inside an interval: labels of a surface's axes keep away from its corners, where they would meet."""
    span = high - low
    if not 0 < span < math.inf:
        return []
    power = 10.0 ** math.floor(math.log10(span))
    for step in (power * k / 10 for k in (1, 2, 2.5, 5, 10, 20, 25, 50)):
        first, last = math.ceil((low + EDGE * span) / step), math.floor((high - EDGE * span) / step)
        if last - first < most:
            return [round(k * step, 12 - math.floor(math.log10(step))) for k in range(first, last + 1)]
    return []


def surface_axes(names: tuple[str, str], x: Any, y: Any) -> dict[str, Any]:
    """The two lower axes of a surface over points x and y."""
    small = {"tickfont": {"size": 12}}
    sides = (("xaxis", names[0], x), ("yaxis", names[1], y))
    return {s: {"title": {"text": n}, "tickvals": inner_ticks(float(v[0]), float(v[-1])), **small} for s, n, v in sides}


def error_colours() -> dict[str, Any]:
    """How every map of T − f is coloured: negative blue, positive red. A list: plotly.js means another scale by the name."""
    from plotly.colors import get_colorscale

    return {"colorscale": get_colorscale(DIVERGING), "reversescale": True}


@functools.cache
def _template() -> "go.layout.Template":
    """Plotly's white look for what we draw, without that of twenty other kinds of picture: quicker, and smaller pages."""
    import plotly.graph_objects as go
    from plotly.io import templates

    white = templates["plotly_white"].to_plotly_json()
    layout = {name: part for name, part in white["layout"].items() if name not in ("geo", "polar", "ternary")}
    return go.layout.Template(layout=layout, data={kind: white["data"][kind] for kind in DRAWN})


def styled(figure: "go.Figure", height: int, **layout: Any) -> "go.Figure":
    """The figure with our font, margins and template; it fills the available width."""
    margin = {"l": 56, "r": 16, "t": 40 if "title" in layout else 28, "b": 48}
    figure.update_layout(template=_template(), font=FONT, height=height, margin=margin, **layout)
    return figure
