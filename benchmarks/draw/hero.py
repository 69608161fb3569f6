"""A function, one layer of attention, and the proof, computed: side by side for the README, one by one for the site."""

import colorsys
from functools import cache

import numpy as np
import plotly.graph_objects as go
import torch
from plotly.subplots import make_subplots

import onelayer as ol
from onelayer.common.numbers import at_most
from onelayer.views.comparison import COLOURS
from onelayer.views.style import FONT
from targets import named

TOLERANCE = 1e-2
FINE, LINES = 200, 25  # points along a side of the attention map; lines of the error
LEVELS = 4  # colours are rounded to multiples of it: invisible, and the file is a third smaller
PANELS = {"surface": (0.0, 0.29), "attention": (0.355, 0.615), "error": (0.705, 1.0)}  # in fractions of the width
INK = "#222222"


def hero() -> go.Figure:
    """Franke's function; where each memory token of its layer holds the attention; the error between the proved bounds."""
    approx = _franke()
    target, found = approx.target, approx.certificate
    titles = (
        f"<b>a function and a tolerance</b><br>Franke's function, ε = {TOLERANCE:g}",
        f"<b>one layer of attention</b><br>{approx.units} memory tokens, {approx.parameters} parameters",
        f"<b>{found.verdict}</b><br>|T − f| ≤ {at_most(found.bound, 3)} everywhere, proved",
    )
    figure = make_subplots(rows=1, cols=3, specs=[[{"type": "scene"}, {"type": "xy"}, {"type": "xy"}]])
    _surface(figure, target)
    _attention(figure, approx, 2)
    _error(figure, approx, target, 3)
    middles = [sum(PANELS[name]) / 2 for name in PANELS]
    about = {"xref": "paper", "yref": "paper", "showarrow": False, "xanchor": "center", "yanchor": "bottom"}
    for title, x in zip(titles, middles, strict=True):
        figure.add_annotation(x=x, y=1.04, text=title, font={"size": 20, "color": INK}, **about)
    for x in ((middles[0] + middles[1]) / 2, (middles[1] + middles[2]) / 2):
        figure.add_annotation(x=x, y=1.045, text="➔", font={"size": 34, "color": "#b0b0b0"}, **about)
    figure.update_layout(
        width=1600,
        height=560,
        font=FONT | {"color": INK},
        template="plotly_white",
        paper_bgcolor="white",
        plot_bgcolor="white",
        showlegend=False,
        margin={"l": 10, "r": 30, "t": 100, "b": 50},
    )
    return figure


def surface() -> go.Figure:
    """The first panel alone, without axes and on no background, for the first page of the site."""
    figure = _panel("scene")
    _surface(figure, named("franke").target)
    figure.update_scenes(
        domain={"x": [0, 1], "y": [0, 1]}, xaxis_visible=False, yaxis_visible=False, zaxis_visible=False
    )
    return figure.update_scenes(camera={"eye": {"x": 0.95, "y": 1.1, "z": 0.62}, "center": {"x": 0, "y": 0, "z": -0.1}})


def attention() -> go.Figure:
    """The second panel alone, without axes."""
    figure = _panel("xy")
    _attention(figure, _franke(), 1)
    figure.update_xaxes(visible=False, domain=[0, 1])
    return figure.update_yaxes(visible=False)


def error() -> go.Figure:
    """The third panel alone."""
    figure, approx = _panel("xy"), _franke()
    _error(figure, approx, approx.target, 1)
    margin = {"l": 70, "r": 6, "t": 6, "b": 30}
    figure.update_xaxes(title="", domain=[0, 1])
    figure.update_yaxes(title="")
    figure.update_annotations(font_size=17)
    return figure.update_layout(width=360, height=330, paper_bgcolor="white", margin=margin, font=FONT | {"color": INK})


def _panel(kind: str) -> go.Figure:
    figure = make_subplots(rows=1, cols=1, specs=[[{"type": kind}]])
    edges = dict.fromkeys("lrtb", 0)
    return figure.update_layout(
        width=660, height=600, template="plotly_white", paper_bgcolor="rgba(0,0,0,0)", showlegend=False, margin=edges
    )


@cache
def _franke() -> ol.Approximation:
    return ol.build(named("franke").target, tolerance=TOLERANCE, construction="memory")


def _surface(figure: go.Figure, target: ol.Target) -> None:
    side = np.linspace(0, 1, 81)
    x, y = np.meshgrid(side, side)
    z = target(np.stack([x.ravel(), y.ravel()], axis=1)).reshape(x.shape)
    lines = {"show": True, "start": 0.1, "end": 1.2, "size": 0.1, "color": "white", "width": 1}
    figure.add_trace(
        go.Surface(x=x, y=y, z=z, colorscale="Cividis", showscale=False, contours={"z": lines}), row=1, col=1
    )
    quiet = {"showbackground": False, "gridcolor": "#dddddd", "nticks": 4, "title_font_size": 15}
    figure.update_scenes(
        xaxis=quiet | {"title": "x1"},
        yaxis=quiet | {"title": "x2"},
        zaxis=quiet | {"title": "f", "tickvals": [0.5, 1]},
        aspectratio={"x": 1, "y": 1, "z": 0.62},
        camera={"eye": {"x": 1.12, "y": 1.28, "z": 0.72}, "center": {"x": 0.02, "y": 0.02, "z": -0.12}},
        domain={"x": PANELS["surface"], "y": [0, 1]},
    )


def _attention(figure: go.Figure, approx: ol.Approximation, column: int) -> None:
    """Every token has a colour; a point has the mixture of colours in which its query attends to the tokens."""
    side = np.linspace(0, 1, FINE)
    x, y = np.meshgrid(side, side)
    points = torch.from_numpy(np.stack([x.ravel(), y.ravel()], axis=1)).unsqueeze(1)
    with torch.no_grad():
        alpha = approx.model.attention(points)[:, 0, 0].numpy()  # the memory head: [point, token]
    share = alpha.mean(axis=0)
    order = np.argsort(-share)
    colours = np.zeros((alpha.shape[1], 3))
    for place, token in enumerate(order):  # hues by the golden angle: neighbours in size differ most
        colours[token] = colorsys.hls_to_rgb(0.58 + 0.381966 * place, 0.42 + 0.26 * (place % 3) / 2, 0.62)
    colours *= 255
    mixed = (alpha @ colours).reshape(FINE, FINE, 3)
    image = (LEVELS * (mixed / LEVELS).round()).clip(0, 255).astype(np.uint8)
    step = side[1]
    figure.add_trace(go.Image(z=image, x0=0, dx=step, y0=0, dy=step), row=1, col=column)
    for token in order:  # where it is ahead of all others
        others = np.delete(alpha, token, axis=1).max(axis=1)
        ahead = np.log((alpha[:, token] + 1e-300) / others).reshape(FINE, FINE)
        if (ahead > 0).any():
            line = {"color": "white", "width": 1.8}
            level = {"start": 0, "end": 0, "size": 1, "coloring": "none"}
            edge = go.Contour(x=side, y=side, z=ahead, contours=level, line=line, showscale=False)
            figure.add_trace(edge, row=1, col=column)
    figure.update_xaxes(
        title="x1 (colour: the tokens attended to)",
        range=[0, 1],
        domain=PANELS["attention"],
        nticks=4,
        showgrid=False,
        row=1,
        col=column,
    )
    figure.update_yaxes(title="x2", range=[0, 1], nticks=4, showgrid=False, title_standoff=8, row=1, col=column)


def _error(figure: go.Figure, approx: ol.Approximation, target: ol.Target, column: int) -> None:
    """T − f along lines of constant x2, between the bounds that are proved."""
    bound = approx.certificate.bound
    side = np.linspace(0, 1, 301)
    band = {"x": [0, 1, 1, 0], "y": [-bound, -bound, bound, bound], "fill": "toself", "mode": "none"}
    figure.add_trace(go.Scatter(**band, fillcolor="rgba(27, 120, 55, 0.1)"), row=1, col=column)
    for n, height in enumerate(np.linspace(0, 1, LINES)):
        points = np.stack([side, np.full_like(side, height)], axis=1)
        error = approx(points) - target(points)[:, 0]
        shade = int(40 + 130 * n / LINES)
        line = {"width": 1, "color": f"rgba({shade}, {shade - 25}, {shade + 40}, 0.75)"}
        figure.add_trace(go.Scatter(x=side, y=error, line=line), row=1, col=column)
    for sign in (-1, 1):
        edge = {"color": COLOURS["constructed"], "width": 3}
        figure.add_trace(go.Scatter(x=[0, 1], y=[sign * bound] * 2, mode="lines", line=edge), row=1, col=column)
        figure.add_annotation(
            x=1.0,
            y=sign * bound,
            text=f"{'+' if sign > 0 else '−'}{at_most(bound, 3)}",
            showarrow=False,
            xanchor="right",
            yshift=sign * 14,
            font={"color": COLOURS["constructed"], "size": 16},
            row=1,
            col=column,
        )
    axis = {"nticks": 5, "showgrid": False, "row": 1, "col": column}
    figure.update_xaxes(title=f"x1, one line for each of {LINES} x2", range=[0, 1], domain=PANELS["error"], **axis)
    figure.update_yaxes(title="T − f", range=[-1.25 * bound, 1.25 * bound], zeroline=False, title_standoff=6, **axis)
