"""The heads drawn over the domain: where each gate switches and each memory token sits, coloured by its value.

One variable: positions against values. Two: lines, corners and points over the box. More: positions variable by variable for
gates, two chosen variables for tokens. Colours show sign and size of the value on a logarithmic scale.
"""

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..approximation import Approximation
from .figures import signed_log
from .head_map import Gate, HeadMap, Token
from .style import GREY, MENU, SEQUENTIAL, SHADE, SIGNED, styled

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_LINES, MOST_MARKERS = 300, 3000  # units drawn as lines, and as markers; the largest values first
SHADES = 15  # colours of lines
MARGIN = 0.15  # share of a side; units further outside the domain are drawn at its edge
MOST_PAIRS = 15  # of variables, in the menu
MOST_HEADS = 64  # of averaged attention


def heads_figure(approximation: Approximation, found: HeadMap) -> "go.Figure":
    """The figure that fits the units and the dimension."""
    import plotly.graph_objects as go

    D, names = approximation.domain.dimension, approximation.domain.names
    if found.mean is not None:
        tokens = approximation.token_names()
        z = found.mean[:MOST_HEADS]
        heads = [f"head {h + 1}" for h in range(len(z))]
        heat = go.Heatmap(z=z, x=tokens, y=heads, zmin=0, zmax=1, colorscale=SEQUENTIAL, colorbar={"thickness": 12})
        figure = styled(go.Figure(heat), max(300, 26 * len(z) + 120), xaxis={"type": "category", "title": "attends to"})
        return figure.update_yaxes(autorange="reversed", type="category")
    figure = go.Figure()
    if D == 1:
        _draw_line(figure, approximation, found)
        styled(figure, 380, yaxis={"title": "value", "exponentformat": "power"})
    elif D == 2 or not found.gates:
        if D == 2:
            _draw_edges(figure, approximation, found)
        _draw_tokens(figure, found, names)
        if D == 2:
            _draw_corners(figure, approximation, found)
        styled(figure, 520)
    else:
        _draw_strips(figure, found, names)
        _draw_tokens(figure, found, names)
        styled(figure, 140 + 46 * min(D, 24), xaxis_title="share of the interval, 0 to 1")
        _normalise(figure, approximation)
    if D <= 2:
        for axis, j in (("xaxis", 0), ("yaxis", 1))[:D]:
            low, high = approximation.domain.lower[j], approximation.domain.upper[j]
            space = (MARGIN + 0.04) * (high - low)
            figure.update_layout({axis: {"title": names[j], "range": [low - space, high + space], "zeroline": False}})
        (x0, *y0), (x1, *y1) = approximation.domain.lower, approximation.domain.upper
        box: dict[str, Any] = {"y0": y0[0], "y1": y1[0]} if D == 2 else {"y0": 0, "y1": 1, "yref": "y domain"}
        box |= {"x0": x0, "x1": x1, "line": {"color": GREY, "width": 1}, "fillcolor": SHADE}
        figure.add_shape(type="rect", layer="below", **box)
    return figure.update_layout(showlegend=False)


def _marker(values: np.ndarray, size: Any, symbol: Any = "circle") -> dict[str, Any]:
    shade, largest = signed_log(values)
    bar = {"tickvals": [-1, 0, 1], "ticktext": [f"−{largest:.3g}", "0", f"{largest:.3g}"], "thickness": 12}
    look = {"color": shade, "cmin": -1, "cmax": 1, "colorscale": SIGNED}
    look["colorbar"] = bar | {"title": "value"}
    return {**look, "size": size, "symbol": symbol, "line": {"width": 0.5, "color": GREY}}


def _largest(units: "tuple[Any, ...]", most: int) -> list[Any]:
    """The units with the largest values, without those whose value is only rounding."""
    floor = 1e-12 * max((abs(u.value) for u in units), default=0.0)
    return sorted((u for u in units if abs(u.value) > floor), key=lambda u: -abs(u.value))[:most]


def _draw_line(figure: "go.Figure", approximation: Approximation, found: HeadMap) -> None:
    """Positions against values; those far outside are drawn at the edge, and their text says where they are."""
    import plotly.graph_objects as go

    places = [(g.at[0], g.value, f"gate, opens {'upwards' if g.opens[0] > 0 else 'downwards'}, sharpness {g.sharpness:.3g}",
               "triangle-right" if g.opens[0] > 0 else "triangle-left") for g in found.gates if g.at]  # fmt: skip
    places += [(t.at[0], t.value, f"memory token, weight up to {t.weight:.2g}", "circle") for t in found.tokens]
    places += [(e.level / e.normal[0], e.value, "edge", "diamond") for e in found.edges if e.normal[0]]
    places = sorted(places, key=lambda p: -abs(p[1]))[:MOST_MARKERS]
    if not places:
        return
    where, y, text, symbol = zip(*places, strict=True)
    low, high = approximation.domain.lower[0], approximation.domain.upper[0]
    x = np.clip(where, low - MARGIN * (high - low), high + MARGIN * (high - low)).tolist()
    stems: dict[str, Any] = {"mode": "lines", "line": {"color": "#bbb", "width": 1}, "hoverinfo": "skip"}
    across, up = [v for p in x for v in (p, p, None)], [v for c in y for v in (0, c, None)]
    figure.add_trace(go.Scatter(x=across, y=up, **stems))
    marker = _marker(np.array(y), 11, symbol)
    hover = "x = %{customdata:.6g}<br>value %{y:.4g}<br>%{text}<extra></extra>"
    own = {"text": text, "customdata": where, "hovertemplate": hover}
    figure.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, **own))


def _draw_corners(figure: "go.Figure", approximation: Approximation, found: HeadMap) -> None:
    """Gates of two variables: both arms of the corner where it opens; of one variable: a line across the box."""
    import plotly.graph_objects as go

    gates: list[Gate] = _largest(found.gates, MOST_LINES)
    d = approximation.domain
    ends = [(a - MARGIN * (b - a), b + MARGIN * (b - a)) for a, b in zip(d.lower, d.upper, strict=True)]
    shade, _ = signed_log(np.array([g.value for g in gates]))
    bins = np.clip(((shade + 1) / 2 * SHADES).astype(int), 0, SHADES - 1)
    for b in np.unique(bins).tolist():
        xs: list[float | None] = []
        ys: list[float | None] = []
        for g in (g for g, own in zip(gates, bins, strict=True) if own == b):
            at = {j: min(max(v, ends[j][0]), ends[j][1]) for j, v in g.at.items()}
            far = [ends[j][1] if g.opens.get(j, 1) > 0 else ends[j][0] for j in (0, 1)]
            if len(at) == 2:
                xs += [far[0], at[0], at[0], None]
                ys += [at[1], at[1], far[1], None]
            elif 0 in at:
                xs += [at[0], at[0], None]
                ys += [*ends[1], None]
            elif 1 in at:
                xs += [*ends[0], None]
                ys += [at[1], at[1], None]
        line = {"color": _shade((b + 0.5) / SHADES), "width": 2}
        figure.add_trace(go.Scatter(x=xs, y=ys, mode="lines", line=line, hoverinfo="skip"))
    shown: list[Gate] = [g for g in _largest(found.gates, MOST_MARKERS) if g.at]
    if shown:
        x = [_placed(g, 0, i / len(shown), *ends[0]) for i, g in enumerate(shown)]
        y = [_placed(g, 1, i / len(shown), *ends[1]) for i, g in enumerate(shown)]
        about = "gate, value {:.4g}, sharpness {:.3g}<br>opens {}"
        text = [about.format(g.value, g.sharpness, _opening(g, d.names)) for g in shown]
        marker = _marker(np.array([g.value for g in shown]), 9 if len(shown) < 400 else 5)
        hover = {"text": text, "hovertemplate": "%{text}<extra></extra>"}
        figure.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, **hover))


def _placed(gate: Gate, j: int, share: float, low: float, high: float) -> float:
    """Where a gate's mark is: at its corner; if it does not depend on x_j, somewhere along its line, each at another place."""
    return min(max(gate.at[j], low), high) if j in gate.at else low + (high - low) * (share + 0.05)


def _opening(gate: Gate, names: tuple[str, ...]) -> str:
    return ", ".join(f"{names[j]} {'≥' if gate.opens[j] > 0 else '≤'} {at:.5g}" for j, at in gate.at.items())


def _draw_edges(figure: "go.Figure", approximation: Approximation, found: HeadMap) -> None:
    import plotly.graph_objects as go

    d = approximation.domain
    for e in _largest(found.edges, MOST_LINES):
        points = _crossing(np.array(e.normal), e.level, d.lower, d.upper)
        if len(points) == 2:
            (x0, y0), (x1, y1) = points
            text = f"equal weights, value {e.value:.4g}"
            line = {"color": GREY, "width": 1.5, "dash": "dot"}
            figure.add_trace(go.Scatter(x=[x0, x1], y=[y0, y1], mode="lines", line=line, text=text, hoverinfo="text"))


def _crossing(normal: np.ndarray, level: float, low: Any, high: Any) -> list[tuple[float, float]]:
    """The two points where the line normal·x = level crosses the sides of a rectangle, if it does."""
    found: list[tuple[float, float]] = []
    for j, end in itertools.product((0, 1), (low, high)):
        other = 1 - j
        if normal[other]:
            v = (level - normal[j] * end[j]) / normal[other]
            if low[other] <= v <= high[other]:
                found.append((end[j], v) if j == 0 else (v, end[j]))
    found = sorted(set(found))
    return [found[0], found[-1]] if len(found) >= 2 else []


def _draw_tokens(figure: "go.Figure", found: HeadMap, names: tuple[str, ...]) -> None:
    """Memory tokens in two variables, chosen from a menu if there are more."""
    import plotly.graph_objects as go

    tokens: list[Token] = _largest(found.tokens, MOST_MARKERS)
    if not tokens:
        return
    at = np.array([t.at for t in tokens])
    size = 5 + 9 * np.array([t.weight for t in tokens])
    text = [f"memory token, value {t.value:.4g}<br>weight up to {t.weight:.3g}" for t in tokens]
    marker = _marker(np.array([t.value for t in tokens]), size)
    hover = {"text": text, "hovertemplate": "%{text}<br>(%{x:.4g}, %{y:.4g})<extra></extra>"}
    figure.add_trace(go.Scatter(x=at[:, 0], y=at[:, 1], mode="markers", marker=marker, **hover))
    if at.shape[1] > 2:
        pairs = list(itertools.islice(itertools.combinations(range(at.shape[1]), 2), MOST_PAIRS))
        buttons = [
            {"label": f"{names[i]}, {names[j]}", "method": "update",
             "args": [{"x": [at[:, i]], "y": [at[:, j]]}, {"xaxis.title.text": names[i], "yaxis.title.text": names[j]}]}
            for i, j in pairs
        ]  # fmt: skip
        menu = {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.12, "yanchor": "bottom", **MENU}
        figure.update_layout(updatemenus=[menu], xaxis_title=names[0], yaxis_title=names[1])


def _draw_strips(figure: "go.Figure", found: HeadMap, names: tuple[str, ...]) -> None:
    """Gates of many variables: a strip for each variable, a mark wherever a gate switches."""
    import plotly.graph_objects as go

    gates: list[Gate] = _largest(found.gates, MOST_MARKERS)
    marks = [(g.at[j], names[j], g) for g in gates for j in g.at]
    text = [f"gate of {len(g.at)} variables, value {g.value:.4g}<br>opens {_opening(g, names)}" for _, _, g in marks]
    symbol = [("triangle-right" if g.opens[names.index(n)] > 0 else "triangle-left") for _, n, g in marks]
    marker = _marker(np.array([g.value for _, _, g in marks]), 11, symbol)
    hover = {"text": text, "hovertemplate": "%{text}<extra></extra>"}
    x, y = [m[0] for m in marks], [m[1] for m in marks]
    figure.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, **hover))
    figure.add_vrect(0, 1, fillcolor=SHADE, line={"color": GREY, "width": 1}, layer="below")
    figure.update_yaxes(type="category", categoryorder="array", categoryarray=list(names)[::-1])


def _normalise(figure: "go.Figure", approximation: Approximation) -> None:
    """Positions of the strips as fractions of each variable's interval."""
    d, strips = approximation.domain, figure.data[0]
    where = {n: (a, b - a) for n, a, b in zip(d.names, d.lower, d.upper, strict=True)}
    share = [(x - where[n][0]) / where[n][1] for x, n in zip(strips.x, strips.y, strict=True)]
    strips.x = np.clip(share, -MARGIN, 1 + MARGIN)


def _shade(share: float) -> str:
    from plotly.colors import sample_colorscale

    return str(sample_colorscale(SIGNED, [share])[0])
