"""Plotly figures of one approximation: f and T, the error within its bound, contributions, weights, training."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..approximation import Approximation
from ..common.numbers import at_most
from ..model.explanation import Explanation
from ..model.history import History
from ..model.inspection import Inspection
from . import style
from .certificate_text import Shown
from .scene import Scene
from .style import styled

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_ENTRIES = 400  # rows and columns drawn of a weight matrix


def function_figure(approximation: Approximation, scene: Scene, output: int = 0) -> "go.Figure":
    """f and T: curves of one variable; of two, surfaces side by side that turn together."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    T, f, names = _at_middle(scene, scene.T, output), _at_middle(scene, scene.f, output), approximation.domain.names
    if len(scene.drawn) == 1:
        figure = go.Figure()
        if f is not None:
            figure.add_trace(go.Scatter(x=scene.axes[0], y=f, name="f", line={"color": style.TARGET, "width": 5}))
        line = {"color": style.LAYER, "width": 2, "dash": "dash"}
        figure.add_trace(go.Scatter(x=scene.axes[0], y=T, name="T, the layer", line=line))
        _add_samples(figure, approximation, output)
        return styled(figure, 400, xaxis_title=names[0], yaxis_title="value", legend={"orientation": "h", "y": 1.12})
    shown = [("f, the target", f)] * (f is not None) + [("T, the layer", T)]
    layout = {"rows": 1, "cols": len(shown), "horizontal_spacing": 0.02}
    figure = make_subplots(specs=[[{"type": "scene"}] * len(shown)], subplot_titles=[t for t, _ in shown], **layout)
    everything = [v[..., output] for v in (scene.f, scene.T) if v is not None]
    low, high = float(np.nanmin(everything)), float(np.nanmax(everything))
    x, y = scene.axes
    for i, (title, z) in enumerate(shown):
        assert z is not None
        surface = go.Surface(
            x=x, y=y, z=z.T, cmin=low, cmax=high, colorscale=style.SEQUENTIAL, name=title, showscale=i + 1 == len(shown)
        )
        figure.add_trace(surface, row=1, col=i + 1)
    more = (high - low) / 10  # labels keep away from the corners
    ends = [low - more, high + more] if high > low else None
    upright = {"title": "", "range": ends, "nticks": 4, "tickfont": {"size": 12}}
    axes = style.surface_axes(_drawn_names(approximation, scene), x, y)
    figure.update_scenes(overwrite=True, **axes, **style.VIEW, zaxis=upright)  # twice as quick as merging
    return styled(figure, 440)


def error_figure(approximation: Approximation, scene: Scene, output: int = 0) -> "go.Figure | None":
    """T − f, signed, with the certified band ±bound; None where f is unknown."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    whole, bound = scene.error, approximation.certificate.bound
    error = _at_middle(scene, whole, output)
    if error is None or whole is None:
        return None
    names = approximation.domain.names
    proved = math.isfinite(bound)
    believed = " if f is as declared" if approximation.certificate.condition else ""
    label = f"±bound {approximation.certificate.bound_text}, proved{believed}" if proved else ""
    if len(scene.drawn) == 1:
        figure = go.Figure(go.Scatter(x=scene.axes[0], y=error, name="T − f", line={"color": style.LAYER, "width": 2}))
        if proved:
            figure.add_hrect(-bound, bound, fillcolor=style.BOUND, opacity=0.12, line_width=0)
            figure.add_hline(bound, line={"color": style.BOUND, "width": 2}, annotation_text=label)
            figure.add_hline(-bound, line={"color": style.BOUND, "width": 2})
        tick = {"exponentformat": "power"}
        return styled(figure, 340, xaxis_title=names[0], yaxis={"title": "T − f", **tick})
    limit = bound if proved else float(np.nanmax(np.abs(error)))
    x, y = scene.axes
    specs = [[{"type": "xy"}, {"type": "scene"}]]
    title = ["T − f, coloured from −bound to +bound" if proved else "T − f", label]
    figure = make_subplots(rows=1, cols=2, specs=specs, subplot_titles=title, horizontal_spacing=0.06)
    bar = {"exponentformat": "power", "len": 0.9, "x": 0.475, "thickness": 12}
    colours = style.error_colours()
    heat = go.Heatmap(x=x, y=y, z=error.T, zmin=-limit, zmax=limit, colorbar=bar, name="T − f", **colours)
    figure.add_trace(heat, row=1, col=1)
    surface = go.Surface(x=x, y=y, z=error.T, cmin=-limit, cmax=limit, showscale=False, name="T − f", **colours)
    figure.add_trace(surface, row=1, col=2)
    if proved:
        for sign in (-1, 1):
            plane = np.full((2, 2), sign * bound)
            sheet = {
                "opacity": 0.25,
                "showscale": False,
                "colorscale": [[0, style.BOUND], [1, style.BOUND]],
                "hoverinfo": "skip",
            }
            figure.add_trace(go.Surface(x=x[[0, -1]], y=y[[0, -1]], z=plane, **sheet), row=1, col=2)
    figure.update_xaxes(title_text=names[scene.drawn[0]], row=1, col=1)
    figure.update_yaxes(title_text=names[scene.drawn[1]], row=1, col=1)
    reach = 1.15 * max(limit, float(np.nanmax(np.abs(whole), initial=0.0)))
    upright = {
        "title": "",
        "exponentformat": "power",
        "tickvals": style.inner_ticks(-reach, reach),
        "tickfont": {"size": 12},
    }
    axes = style.surface_axes(_drawn_names(approximation, scene), x, y)
    figure.update_scenes(
        overwrite=True, **axes, **style.VIEW, zaxis={**upright, "range": [-reach, reach] if reach > 0 else None}
    )
    return styled(figure, 440)


def overview_figure(approximation: Approximation, scene: Scene, output: int = 0) -> "go.Figure":
    """T above or next to T − f, flat: the picture for a notebook."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    T, error = _at_middle(scene, scene.T, output), _at_middle(scene, scene.error, output)
    names, bound = approximation.domain.names, approximation.certificate.bound
    if len(scene.drawn) == 1:
        parts = [function_figure(approximation, scene, output), error_figure(approximation, scene, output)]
        figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.6, 0.4], vertical_spacing=0.08)
        for row, part in enumerate(parts, start=1):
            for trace in part.data if part is not None else ():
                figure.add_trace(trace, row=row, col=1)
        if error is not None and math.isfinite(bound):
            figure.add_hrect(-bound, bound, fillcolor=style.BOUND, opacity=0.15, line_width=0, row=2, col=1)
        figure.update_yaxes(title_text="T − f", exponentformat="power", row=2, col=1)
        return styled(figure, 560, xaxis2_title=names[0])
    x, y = scene.axes
    pictures: list[tuple[str, np.ndarray | None, dict[str, Any]]] = [
        ("T, the layer", T, {"colorscale": style.SEQUENTIAL})
    ]
    if error is not None:
        limit = bound if math.isfinite(bound) else float(np.nanmax(np.abs(error)))
        shades = {**style.error_colours(), "zmin": -limit, "zmax": limit}
        within = approximation.certificate.bound_text if math.isfinite(bound) else f"{at_most(limit)}, observed"
        pictures.append((f"T − f within ±{within}", error, shades))
    n = len(pictures)
    figure = make_subplots(rows=1, cols=n, subplot_titles=[title for title, _, _ in pictures], horizontal_spacing=0.16)
    for i, (title, z, shades) in enumerate(pictures):
        assert z is not None
        bar = {"thickness": 12, "x": (i + 1) / n - (0.07 if i + 1 < n else -0.01), "exponentformat": "power"}
        figure.add_trace(go.Heatmap(x=x, y=y, z=z.T, name=title, colorbar=bar, **shades), row=1, col=i + 1)
    figure.update_xaxes(title_text=names[scene.drawn[0]]).update_yaxes(title_text=names[scene.drawn[1]])
    return styled(figure, 420)


def explanation_figure(found: Explanation, output: int = 0, most: int = 14) -> "go.Figure":
    """T(x) as the running sum of the heads' contributions: the largest first, then the others and the rest."""
    import plotly.graph_objects as go

    own = found.contributions[:, output]
    order = np.argsort(-np.abs(own), kind="stable")
    names = [f"{found.kinds[h]} {h + 1}" for h in order[:most]]
    values = own[order[:most]].tolist()
    if len(order) > most:
        names.append(f"{len(order) - most} others")
        values.append(float(own[order[most:]].sum()))
    values += [float(found.rest[output]), float(found.value[output])]
    measure = ["relative"] * (len(values) - 1) + ["total"]
    colours = {
        "increasing": style.LAYER,
        "decreasing": style.TARGET,
        "totals": style.BOUND,
    }  # as in every picture: red adds
    look: dict[str, Any] = {name: {"marker": {"color": colour}} for name, colour in colours.items()}
    fall = go.Waterfall(orientation="h", y=[*names, "rest", "T(x)"], x=values, measure=measure, **look)
    figure = styled(go.Figure(fall), 120 + 24 * len(values), xaxis_title="running sum of the contributions")
    return figure.update_yaxes(autorange="reversed", type="category")


def spectra_figure(found: Inspection) -> "go.Figure":
    """Singular values of every weight matrix, largest first."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for view in found.matrices:
        sigma = np.where(view.singular_values > 1e-14 * view.spectral, view.singular_values, np.nan)
        text = f"{view.name}: {view.role}, rank {view.rank}"
        x = np.arange(1, len(sigma) + 1)
        figure.add_trace(go.Scatter(x=x, y=sigma, mode="lines+markers", name=view.name, text=text))
    axis = {"type": "log", "exponentformat": "power", "nticks": 7}
    most = max((len(view.singular_values) for view in found.matrices), default=0)
    index = {"title": "index", "dtick": 1 if most <= 10 else None}
    return styled(figure, 400, yaxis={"title": "singular value", **axis}, xaxis=index)


def weights_figure(approximation: Shown, found: Inspection) -> "go.Figure":
    """One weight matrix at a time, chosen from a menu; colours show sign and size on a logarithmic scale."""
    import plotly.graph_objects as go

    figure = go.Figure()
    buttons: list[dict[str, Any]] = []
    state = approximation.model.state_dict()
    for i, view in enumerate(found.matrices):
        t = state[view.name].detach().double()
        matrix = (t.transpose(0, 1).flatten(1) if t.ndim == 3 else t).numpy()[:MOST_ENTRIES, :MOST_ENTRIES]
        z, largest = signed_log(matrix)
        cut = "" if matrix.shape == view.shape else f", the first {matrix.shape[0]}×{matrix.shape[1]} entries"
        heat = go.Heatmap(
            z=z, text=np.vectorize(lambda v: f"{v:.4g}")(matrix) if matrix.size <= 20_000 else None, visible=i == 0, zmin=-1,
            zmax=1, colorscale=style.DIVERGING, reversescale=True, hovertemplate="row %{y}, column %{x}: %{text}<extra></extra>",
            colorbar={"tickvals": [-1, 0, 1], "ticktext": [f"−{largest:.3g}", "0", f"{largest:.3g}"], "thickness": 12},
        )  # fmt: skip
        figure.add_trace(heat)
        seen = [j == i for j in range(len(found.matrices))]
        text = f"{view.name}, {view.role}: {view.shape[0]}×{view.shape[1]}, rank {view.rank}{cut}"
        buttons.append({"label": view.name, "method": "update", "args": [{"visible": seen}, {"title.text": text}]})
    menu = {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom", **style.MENU}
    figure.update_yaxes(autorange="reversed", showticklabels=False).update_xaxes(showticklabels=False)
    title = {"text": buttons[0]["args"][1]["title.text"], "font": {"size": 13}, "x": 0.02, "y": 0.98, "yanchor": "top"}
    return styled(figure, 400, title=title).update_layout(updatemenus=[menu], margin={"t": 84})


def history_figure(history: History) -> "go.Figure":
    """Loss and held-out errors in training, step by step; the step whose weights were kept is marked."""
    import plotly.graph_objects as go

    steps = [m.step for m in history.moments]
    lines = [
        ("loss", "loss", style.GREY),
        ("validated", "largest held-out error", style.LAYER),
        ("rmse", "held-out RMSE", style.TARGET),
    ]
    figure = go.Figure()
    for name, label, colour in lines:
        y = [getattr(m, name) if getattr(m, name) > 0 else None for m in history.moments]
        figure.add_trace(go.Scatter(x=steps, y=y, name=label, line={"color": colour}))
    figure.add_vline(history.best, line={"color": style.BOUND, "dash": "dot"}, annotation_text="kept")
    axis = {"type": "log", "exponentformat": "power"}
    return styled(figure, 360, xaxis_title="step", yaxis=axis, legend={"orientation": "h", "y": 1.15})


def signed_log(values: np.ndarray) -> tuple[np.ndarray, float]:
    """(numbers in [−1, 1] that show sign and size over six decades, the size that becomes 1)."""
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    size = np.log10(np.maximum(np.abs(values) / largest, 1e-6)) / 6 + 1
    return np.sign(values) * size, largest


def _drawn_names(approximation: Approximation, scene: Scene) -> tuple[str, str]:
    names = approximation.domain.names
    return names[scene.drawn[0]], names[scene.drawn[1]]


def _at_middle(scene: Scene, values: np.ndarray | None, output: int) -> np.ndarray | None:
    return None if values is None else values[scene.middle][..., output]


def _add_samples(figure: "go.Figure", approximation: Approximation, output: int) -> None:
    """The samples themselves, where f is known through data."""
    import plotly.graph_objects as go

    target = approximation.target
    if target is None or target.data is None:
        return
    for name, chosen, colour in (
        ("fitted", target.data.fitted, style.TARGET),
        ("held out", target.data.held_out, style.GREY),
    ):
        x, y = target.data.x[chosen, 0], target.data.y[chosen, output]
        figure.add_trace(go.Scatter(x=x, y=y, mode="markers", name=name, marker={"color": colour, "size": 5}))
