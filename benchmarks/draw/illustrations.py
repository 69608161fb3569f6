"""One picture each for the tutorial, the gallery, the theorem and the certificate, drawn from layers that are built on the spot.

They are narrow and their type is large: a phone shows them at half their size.
"""

import numpy as np
import plotly.graph_objects as go
import torch
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots

import onelayer as ol
from onelayer.common.numbers import at_most
from onelayer.views.style import BOUND, FONT, LAYER, SEQUENTIAL, TARGET, error_colours
from targets import named

WIDTH, TYPE = 620, 17
LINES = 25  # of an error
INK, QUIET = "#222222", "#8c8c8c"


def tutorial() -> go.Figure:
    """The layer of the tutorial's first section, and its error between the proved bounds and the tolerance."""
    approx = ol.build("exp(-x1) * cos(3*x2)", domain=[(0, 1)] * 2, tolerance=1e-4)
    bound, tolerance = approx.certificate.bound, approx.certificate.tolerance
    titles = (f"T(x), a layer of {approx.units} heads", f"T − f, along {LINES} lines")
    figure = make_subplots(cols=2, subplot_titles=titles, horizontal_spacing=0.16)
    side = np.linspace(0, 1, 61)
    figure.add_trace(_contours(side, _on(side, approx), {"colorscale": SEQUENTIAL}, (-0.9, 0.9, 0.2)), row=1, col=1)
    for height in np.linspace(0, 1, LINES):
        points = np.stack([side, np.full_like(side, height)], axis=1)
        line = {"color": LAYER, "width": 0.8}
        error = approx(points) - approx.target(points)[:, 0]
        figure.add_trace(go.Scatter(x=side, y=error, mode="lines", line=line), row=1, col=2)
    for level, name, colour in ((bound, f"bound {at_most(bound, 3)}", BOUND), (tolerance, f"ε = {tolerance:g}", QUIET)):
        for sign in (-1, 1):
            line = {"color": colour, "width": 2.5, "dash": "dot" if colour == QUIET else "solid"}
            edge = go.Scatter(x=[0, 1], y=[sign * level] * 2, mode="lines", line=line)
            figure.add_trace(edge, row=1, col=2)
        about = {"showarrow": False, "xanchor": "right", "yshift": 12, "font": {"color": colour}}
        figure.add_annotation(x=1, y=level, text=name, row=1, col=2, **about)
    figure.update_xaxes(title="x1", row=1, col=2)
    figure.update_yaxes(range=[-1.3 * tolerance, 1.35 * tolerance], exponentformat="power", row=1, col=2)
    return _framed(figure, "x1", "x2")


def theorem() -> go.Figure:
    """One head of the theorem's layer over the square, and the layer for sin x beside the steps whose average it is."""
    waves = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.5, method="representative")
    titles = ("one head: a soft corner", "many heads: averaged steps")
    figure = make_subplots(cols=2, subplot_titles=titles, horizontal_spacing=0.14)
    side = np.linspace(0, 2 * np.pi, 61)
    fires = _gate(waves, side, waves.units // 2)  # the cell in the middle
    figure.add_trace(_contours(side, fires, {"colorscale": "Blues"}, (0.1, 0.9, 0.1)), row=1, col=1)

    target, ends, fine = "sin(x1)", [(0, "2*pi")], np.linspace(0, 2 * np.pi, 401)
    approx = ol.build(target, ends, 0.5, method="representative")
    (cells,) = ol.plan(target, ends, 0.5, method="representative").counts
    f, bound = np.sin(fine), approx.certificate.bound
    edges = np.linspace(0, 2 * np.pi, cells + 1)
    values = np.sin((edges[1:] + edges[:-1]) / 2)
    band = {"x": [*fine, *fine[::-1]], "y": [*(f + bound), *(f - bound)[::-1]], "fill": "toself", "mode": "none"}
    figure.add_trace(go.Scatter(**band, fillcolor="rgba(0, 158, 115, 0.15)", name=f"f ± {bound:.3g}"), row=1, col=2)
    steps = {"x": edges, "y": [*values, values[-1]], "line": {"shape": "hv", "color": QUIET, "width": 1.6}}
    figure.add_trace(go.Scatter(**steps, mode="lines", name="steps s"), row=1, col=2)
    for y, name, colour in ((f, "f = sin x", TARGET), (approx(fine[:, None]), f"T, {approx.units} heads", LAYER)):
        figure.add_trace(go.Scatter(x=fine, y=y, mode="lines", name=name, line={"color": colour, "width": 3}), 1, 2)
    figure.update_xaxes(title="x", row=1, col=2)
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.2, "x": 1, "xanchor": "right"})
    return _framed(figure, "x1", "x2", height=430)


def certificate() -> go.Figure:
    """The error of a layer for Franke's function, and the boxes of its proof, coloured by what is proved on each."""
    approx = ol.build(named("franke").target, tolerance=1e-3)
    boxes = approx.covering()
    (patch,), extra = boxes.patches, float(boxes.extra.max())
    proved = 1e3 * (np.maximum(patch.high, -patch.low).max(axis=1) + extra)
    assert proved.max() <= 1e3 * approx.certificate.tolerance
    titles = ("T − f, × 1000", f"{len(patch)} boxes, proved")
    figure = make_subplots(cols=2, subplot_titles=titles, horizontal_spacing=0.24)
    side = np.linspace(0, 1, 61)
    error = 1e3 * (_on(side, approx) - _on(side, approx.target))
    bar = {"len": 1, "thickness": 12, "x": 0.39, "outlinewidth": 0}
    figure.add_trace(_contours(side, error, error_colours(), (-0.75, 0.75, 0.25), bar), row=1, col=1)
    most = 1e3 * approx.certificate.tolerance
    for colour, lower, upper in zip(
        sample_colorscale(SEQUENTIAL, (proved / most).tolist()), patch.lower, patch.upper, strict=True
    ):
        (a, b), (c, d) = lower, upper
        corners = {
            "x": [a, c, c, a, a],
            "y": [b, b, d, d, b],
            "mode": "lines",
            "line": {"color": "white", "width": 1.2},
        }
        figure.add_trace(go.Scatter(**corners, fill="toself", fillcolor=colour), row=1, col=2)
    scale = {"colorscale": SEQUENTIAL, "cmin": 0, "cmax": most, "color": [0], "opacity": 0, "showscale": True}
    scale["colorbar"] = {"thickness": 12, "x": 1.01, "outlinewidth": 0, "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    scale["colorbar"]["ticktext"] = ["0", "0.25", "0.5", "0.75", "ε"]
    figure.add_trace(go.Scatter(x=[0.5], y=[0.5], mode="markers", marker=scale), row=1, col=2)
    figure.update_xaxes(title="x1", range=[0, 1], row=1, col=2)
    figure.update_yaxes(range=[0, 1], row=1, col=2)
    return _framed(figure, "x1", "x2")


def gallery() -> go.Figure:
    """Attention weights of four layers of the gallery, each at one input."""
    numbers, letters = [0.6, 0.3, 0.8, 0.2, 0.9, 0.5], [0, 1, 0, 2, 1, 0]
    size = len(numbers)
    one_hot = torch.eye(3, dtype=torch.float64)[letters][None]
    column = torch.tensor(numbers, dtype=torch.float64)[None, :, None]
    shown = [f"{v:g}" for v in numbers]
    entries = (
        ("maximum", ol.gallery.maximum(size), column, shown),
        ("running maximum", ol.gallery.running_max(size), column, shown),
        ("reverse", ol.gallery.reverse(size), column, shown),
        ("histogram", ol.gallery.histogram(size, vocabulary=3), one_hot, ["ABC"[v] for v in letters]),
    )
    figure = make_subplots(rows=2, cols=2, subplot_titles=[e[0] for e in entries], vertical_spacing=0.16)
    for place, (_, approx, x, names) in enumerate(entries):
        with torch.no_grad():
            alpha = approx.model.attention(x)[0, 0].numpy()[:size]
        specials = ["✱"] * (alpha.shape[1] - size)  # anchor and output tokens
        where = {"row": place // 2 + 1, "col": place % 2 + 1}
        look = {"colorscale": "Blues", "zmin": 0, "zmax": 1, "showscale": False, "xgap": 2, "ygap": 2}
        text = [[f"{v:.2g}" if v > 0.005 else "" for v in row] for row in alpha]
        figure.add_trace(go.Heatmap(z=alpha, text=text, texttemplate="%{text}", **look), **where)
        ticks = {"showgrid": False, "tickmode": "array", "ticklen": 0}
        every = names + specials
        figure.update_xaxes(tickvals=list(range(len(every))), ticktext=every, tickangle=0, **ticks, **where)
        figure.update_yaxes(tickvals=list(range(size)), ticktext=names, autorange="reversed", **ticks, **where)
    return _framed(figure, "", "", height=620)


def _on(side: np.ndarray, function: ol.Approximation | ol.Target) -> np.ndarray:
    """Values on the square grid over the side, [x2, x1]."""
    x, y = np.meshgrid(side, side)
    return np.asarray(function(np.stack([x.ravel(), y.ravel()], axis=1))).reshape(x.shape)


def _gate(approx: ol.Approximation, side: np.ndarray, head: int) -> np.ndarray:
    """How much of one head's attention the anchor has, on the square grid over the side."""
    x, y = np.meshgrid(side, side)
    points = torch.from_numpy(np.stack([x.ravel(), y.ravel()], axis=1)).unsqueeze(2)
    with torch.no_grad():
        parts = [approx.model.attention(part)[:, head, -1, 2] for part in points.split(500)]
    return torch.cat(parts).numpy().reshape(x.shape)


def _contours(
    side: np.ndarray, z: np.ndarray, colours: dict, levels: tuple[float, float, float], bar: dict | None = None
) -> go.Contour:
    start, end, step = levels
    ring = {"start": start, "end": end, "size": step}
    line = {"width": 0.6, "color": "rgba(255, 255, 255, 0.7)"}
    scale = {"colorbar": bar} if bar else {"showscale": False}
    return go.Contour(x=side, y=side, z=z, contours=ring, line=line, **scale, **colours)


def _framed(figure: go.Figure, x: str, y: str, height: int = 350) -> go.Figure:
    figure.update_xaxes(title=x, row=1, col=1)
    figure.update_yaxes(title=y, title_standoff=4, row=1, col=1)
    figure.update_xaxes(showgrid=False, nticks=5)
    figure.update_yaxes(showgrid=False, zeroline=False, nticks=5)
    figure.update_annotations(font_size=TYPE)
    if not figure.layout.showlegend:
        figure.update_layout(showlegend=False)
    margin = {"l": 60, "r": 20, "t": 44, "b": 50}
    font = FONT | {"size": TYPE - 2, "color": INK}
    figure.update_layout(width=WIDTH, height=height, font=font, template="plotly_white", margin=margin)
    return figure
