"""The error of slopes, ∂T/∂x_i − ∂f/∂x_i, within its proved band: a curve of one variable, or a map for each of the first two."""

import math
from typing import TYPE_CHECKING

import numpy as np

from ..approximation import Approximation
from ..common.numbers import at_most
from ..proof.slopes import slopes_at, slopes_of
from ..target.margin import in_scope
from .scene import window
from .style import BOUND, LAYER, error_colours, styled

if TYPE_CHECKING:
    import plotly.graph_objects as go

CURVE_POINTS, MAP_POINTS = 601, 61  # along a side


def slope_error_figure(approximation: Approximation, output: int = 0) -> "go.Figure | None":
    """None where no slopes were asked for. Other variables stay at the centre of the domain."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    slope, target = approximation.certificate.slope, approximation.target
    slopes = None if slope is None or target is None else slopes_of(target)
    if slope is None or slopes is None:
        return None
    D, names = approximation.domain.dimension, approximation.domain.names
    low, high = window(approximation.domain)
    drawn = min(D, 2)
    axes = [np.linspace(low[j], high[j], CURVE_POINTS if D == 1 else MAP_POINTS) for j in range(drawn)]
    grid = np.meshgrid(*axes, indexing="ij")
    x = np.tile(low + (high - low) / 2, (grid[0].size, 1))
    for j, values in enumerate(grid):
        x[:, j] = values.ravel()
    claimed, error = in_scope(slopes, x), np.full((len(x), D), np.nan)
    own = slopes_at(approximation.model, approximation.facts.places)(x[claimed]) - slopes.values(x[claimed])
    error[claimed] = own.reshape(len(own), -1, D)[:, output]
    proved = math.isfinite(slope.bound)
    label = f"±bound {at_most(slope.bound, limit=slope.tolerance)}, proved" if proved else ""
    if D == 1:
        title = f"slope of T − f along {names[0]}"
        figure = go.Figure(go.Scatter(x=axes[0], y=error[:, 0], name=title, line={"color": LAYER, "width": 2}))
        if proved:
            figure.add_hrect(-slope.bound, slope.bound, fillcolor=BOUND, opacity=0.12, line_width=0)
            figure.add_hline(slope.bound, line={"color": BOUND, "width": 2}, annotation_text=label)
            figure.add_hline(-slope.bound, line={"color": BOUND, "width": 2})
        return styled(figure, 340, xaxis_title=names[0], yaxis={"title": title, "exponentformat": "power"})
    limit = slope.bound if proved else float(np.nanmax(np.abs(error)))
    titles = [f"slope of T − f along {names[j]}" for j in range(drawn)]
    figure = make_subplots(rows=1, cols=2, subplot_titles=titles, horizontal_spacing=0.1)
    for j in range(drawn):
        z = error[:, j].reshape(grid[0].shape).T
        shades = {**error_colours(), "zmin": -limit, "zmax": limit, "showscale": j + 1 == drawn}
        bar = {"exponentformat": "power", "thickness": 12, "title": label}
        figure.add_trace(go.Heatmap(x=axes[0], y=axes[1], z=z, name=titles[j], colorbar=bar, **shades), 1, j + 1)
    figure.update_xaxes(title_text=names[0]).update_yaxes(title_text=names[1])
    return styled(figure, 420)
