"""One look for all pictures: colours that colour-blind readers can tell apart, one font, quiet axes."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go

FONT = {"family": "system-ui, sans-serif", "size": 14}
TARGET, LAYER, BOUND = "#0072b2", "#d55e00", "#009e73"  # Okabe and Ito's blue, vermilion, green
SEQUENTIAL, DIVERGING = "Viridis", "RdBu"
GREY = "#8c8c8c"
SHADE = "rgba(110, 125, 145, 0.09)"  # a domain, on light and dark pages
VIEW: dict[str, Any] = {  # of surfaces: the whole box and its labels fit in the picture
    "aspectmode": "manual",
    "aspectratio": {"x": 1, "y": 1, "z": 0.7},
    "camera": {"eye": {"x": 1.45, "y": 1.45, "z": 0.95}, "center": {"x": 0, "y": 0, "z": -0.12}},
}


def error_colours() -> dict[str, Any]:
    """How every map of T − f is coloured: negative blue, positive red. A list: plotly.js means another scale by the name."""
    from plotly.colors import get_colorscale

    return {"colorscale": get_colorscale(DIVERGING), "reversescale": True}


def styled(figure: "go.Figure", height: int, **layout: Any) -> "go.Figure":
    """The figure with our font, margins and template; it fills the available width."""
    margin = {"l": 56, "r": 16, "t": 40 if "title" in layout else 28, "b": 48}
    figure.update_layout(template="plotly_white", font=FONT, height=height, margin=margin, **layout)
    return figure
