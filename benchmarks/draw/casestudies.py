"""Pictures of the case studies in cases.md, each computed from layers that are built, trained or proved on the spot."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

import onelayer as ol
from onelayer.experiments.matched_size import layer_size
from onelayer.views.comparison import COLOURS
from onelayer.views.style import FONT
from targets import named

METHODS = {"representative": "#8c8c8c", "solved": COLOURS["warm-started"], "polished": COLOURS["constructed"]}
PLACES = {"representative": "middle left", "solved": "top center", "polished": "bottom center"}
STEPS = 6000  # of each training


def size() -> go.Figure:
    """Units against tolerance: the paper's construction (planned: its size is exact), solved values, polished layers."""
    target = named("sin-sum").target
    figure = go.Figure()
    runs = {"representative": (0.5, 0.2, 0.1, 0.03, 0.01), "solved": (0.1, 1e-2, 1e-3, 1e-4, 1e-5)}
    runs["polished"] = (0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
    for method, tolerances in runs.items():
        if method == "representative":
            units = [ol.plan(target, tolerance=eps, method=method).units for eps in tolerances]
        else:
            built = [ol.build(target, tolerance=eps, method=method) for eps in tolerances]
            assert all(a.certificate.verdict == "CERTIFIED" for a in built)
            units = [a.units for a in built]
        name = f"{method}, as planned" if method == "representative" else f"{method}, CERTIFIED"
        line = {"color": METHODS[method], "width": 3}
        trace = go.Scatter(x=list(tolerances), y=units, mode="lines+markers+text", name=name, line=line)
        trace.update(text=[f"{n:,} " for n in units], textposition=PLACES[method], marker={"size": 9})
        figure.add_trace(trace)
    figure.update_xaxes(title="tolerance ε", type="log", autorange="reversed", exponentformat="power", dtick=1)
    figure.update_yaxes(title="units", type="log", exponentformat="power", dtick=1, range=[0.2, 6.3])
    return _framed(figure, "How large one layer for sin x1 + sin x2 has to be")


def training() -> go.Figure:
    """The largest error seen during training against time, beside the constructed layer with as many parameters."""
    target = named("sin-sum").target
    built = ol.build(target, tolerance=1e-6)
    figure = go.Figure()
    longest = 0.0
    shape = layer_size(target, built.parameters)
    assert shape is not None
    heads, width, d_model = shape
    rivals = {"adam": COLOURS["trained"], "momentum": "#af8dc3"}
    for optimizer, colour in rivals.items():
        trained = ol.train(
            target, optimizer=optimizer, steps=STEPS, every=60, heads=heads, d_model=d_model, width=width
        )
        history = trained.history
        assert history is not None
        pace = history.seconds / history.steps
        figure.add_trace(
            go.Scatter(
                x=[pace * moment.step for moment in history.moments],
                y=np.minimum.accumulate([moment.validated for moment in history.moments]),
                name=f"trained, {optimizer}: {trained.parameters} parameters, observed",
                line={"color": colour, "width": 3},
            )
        )
        longest = max(longest, history.seconds)
    figure.add_trace(
        go.Scatter(
            x=[built.facts.seconds, longest],
            y=[built.certificate.bound] * 2,
            mode="lines+markers",
            name=f"constructed: {built.parameters} parameters, proved",
            line={"color": COLOURS["constructed"], "width": 3},
            marker={"size": [14, 0], "symbol": "diamond"},
        )
    )
    figure.update_xaxes(title="seconds")
    figure.update_yaxes(title="largest error", type="log", exponentformat="power", dtick=1)
    return _framed(figure, "Training and construction with as many parameters: sin x1 + sin x2")


def sorting() -> go.Figure:
    """All heads of the layer that sorts four numbers: what each attends to at one point, and what it adds to which output."""
    approx, x = ol.gallery.sort(4, tolerance=1e-6), [0.3, 0.9, 0.5, 0.1]
    equal = approx.explain([0.5] * 4).weights[0][:, :4]  # all numbers equal: a head attends evenly to its own
    names = ["max(" + ", ".join(f"x{j + 1}" for j in np.flatnonzero(row > 1e-9)) + ")" for row in equal]
    found = approx.explain(x)
    titles = ("attention α", f"adds to the outputs (the rest is {found.rest.mean():.2g})")
    figure = make_subplots(cols=2, subplot_titles=titles, horizontal_spacing=0.08)
    numbers = [f"x{j + 1} = {v:g}" for j, v in enumerate(x)]
    outputs = [f"{name}: {v:.2g}" for name, v in zip(("1st", "2nd", "3rd", "4th"), found.value, strict=True)]
    share, reach = found.weights[0][:, :4], float(np.abs(found.contributions).max())
    figure.add_trace(_map(share, numbers, names, "Greens", (0, 1)), row=1, col=1)
    figure.add_trace(_map(found.contributions, outputs, names, "PRGn", (-reach, reach)), row=1, col=2)
    figure.update_yaxes(autorange="reversed", showgrid=False)
    figure.update_yaxes(showticklabels=False, row=1, col=2)
    figure.update_xaxes(showgrid=False)
    return _framed(figure, f"Sorting ({', '.join(f'{v:g}' for v in x)}) in one layer of {len(names)} heads", height=620)


def tightness() -> go.Figure:
    """How close bounds are to observed errors on named targets, both as shares of the tolerance."""
    runs = (("sin-sum", 1e-4), ("runge-1d", 1e-4), ("branin", 1e-3), ("franke", 1e-3), ("sine-of-product", 1e-3))
    built = [(named(name).title, ol.build(named(name).target, tolerance=eps)) for name, eps in runs][::-1]
    names = [f"{title}, ε = {approx.certificate.tolerance:g}, {approx.units} units" for title, approx in built]
    seen, proved = (
        [getattr(a.certificate, what) / a.certificate.tolerance for _, a in built] for what in ("observed", "bound")
    )
    figure = go.Figure()
    bars = {"orientation": "h", "marker_color": COLOURS["warm-started"], "width": 0.45}
    figure.add_trace(go.Bar(x=seen, y=names, name="observed error", **bars))
    marker = {"symbol": "line-ns-open", "size": 30, "color": COLOURS["constructed"], "line": {"width": 4}}
    figure.add_trace(go.Scatter(x=proved, y=names, mode="markers", name="bound (proved)", marker=marker))
    figure.add_vline(1, line={"color": "#222222", "width": 2, "dash": "dot"}, annotation_text="tolerance")
    figure.update_xaxes(title="share of the tolerance", range=[0, 1.1])
    return _framed(figure, "Observed error ≤ proved bound ≤ tolerance")


def _map(z: np.ndarray, x: list[str], y: list[str], colours: str, ends: tuple[float, float]) -> go.Heatmap:
    text = [[f"{v:.2g}" if abs(v) > 5e-3 else "" for v in row] for row in z]
    look = {"colorscale": colours, "zmin": ends[0], "zmax": ends[1], "showscale": False, "xgap": 2, "ygap": 2}
    return go.Heatmap(z=z, x=x, y=y, text=text, texttemplate="%{text}", **look)


def _framed(figure: go.Figure, title: str, height: int = 460) -> go.Figure:
    legend = {"orientation": "h", "y": -0.2, "x": 0.5, "xanchor": "center"}
    figure.update_layout(title=title, width=860, height=height, font=FONT, template="plotly_white", legend=legend)
    return figure
