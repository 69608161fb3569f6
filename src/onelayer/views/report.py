"""The report: one HTML page that shows an approximation, its heads and its proof. It needs nothing else, and no network.

    target and layer · error within its bound · heads over the domain · the layer at a point that can be moved ·
    weights and spectra · training · certificate · size

The page evaluates the layer itself at the chosen point, by the ordinary softmax (assets/layer.js).
"""

import base64
import html
import json
import math
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from ..approximation import Approximation
from ..atomic import written
from ..errors import InputError
from ..inspect import inspect
from . import words
from .figures import error_figure, function_figure, history_figure, spectra_figure, weights_figure
from .headfigure import LINES, MARKERS, heads_figure
from .headmap import headmap
from .scene import Scene, output_names, scenes, window
from .size import plan_table, size_table

if TYPE_CHECKING:
    import plotly.graph_objects as go

WEIGHTS = 200_000  # parameters that a page can hold: two megabytes
TITLE = 300  # characters
HIDDEN = 60  # hidden units that are drawn, in assets/report.js
SLIDERS = 12  # variables with a slider at the movable point


def report(approximation: Approximation, path: str | Path = "report.html") -> Path:
    """Write the report of an approximation: one self-contained page, complete or absent."""
    if not isinstance(approximation, Approximation):
        raise InputError(
            "an Approximation to report on", type(approximation).__name__, "pass what `build` or `load` gave"
        )
    path = Path(path)
    if path.is_dir():
        raise InputError(
            "a file name for the report", f"{path} is a folder", f"name a file, such as {path / 'report.html'}"
        )
    return written(path, page(approximation))


def page(approximation: Approximation) -> str:
    """The report as text."""
    figures: dict[str, Any] = {}
    found = scenes(approximation)
    sections = [
        ("function", "Target and layer", _scenes(approximation, found, figures)),
        ("heads", "Heads over the domain", _heads(approximation, figures)),
        ("point", "The layer at one point", _point(approximation)),
        ("weights", "Weights and spectra", _weights(approximation, figures)),
        ("training", "Training", _training(approximation, figures)),
        ("certificate", "Certificate", _certificate(approximation)),
        ("size", "Size and cost", size_table(approximation)._repr_html_() + plan_table(approximation)),
    ]
    shown = [(name, title, body) for name, title, body in sections if body]
    c = approximation.certificate
    data = {
        "figures": {name: json.loads(figure.to_json()) for name, figure in figures.items()},
        "scenes": [_scene_record(scene) for scene in found],
        "layer": _layer_record(approximation),
    }
    return Template(_asset("report.html")).substitute(
        title=html.escape(_title(approximation)),
        verdict=c.verdict,
        statement=html.escape(words.statement(approximation)),
        facts=_facts(approximation),
        nav="".join(f'<a href="#{name}">{html.escape(title)}</a>' for name, title, _ in shown),
        body="".join(
            f'<section id="{name}"><h2>{html.escape(title)}</h2>{body}</section>' for name, title, body in shown
        ),
        css=_asset("report.css"),
        plotly=_plotly(),
        layer=_asset("layer.js"),
        script=_asset("report.js"),
        data=json.dumps(data, allow_nan=False, ensure_ascii=False).replace("<", "\\u003c"),
    )


def _title(approximation: Approximation) -> str:
    text = approximation.target.text if approximation.target else approximation._described()[1]
    return text if len(text) <= TITLE else f"{text[:TITLE]} …"


def _facts(approximation: Approximation) -> str:
    c = approximation.certificate
    bound = f"{c.bound:.4g}" if math.isfinite(c.bound) else "none"
    rows = [
        (f"{c.tolerance:.4g}", "tolerance asked for"),
        (bound, "bound, proved"),
        (f"{c.observed:.4g}", "observed error"),
        (f"{approximation.units:,}", "units"),
        (f"{approximation.model.config.heads:,}", "heads"),
        (f"{approximation.parameters:,}", "parameters"),
    ]
    return "".join(f'<div class="fact"><b>{html.escape(v)}</b><span>{html.escape(k)}</span></div>' for v, k in rows)


def _scenes(approximation: Approximation, found: tuple[Scene, ...], figures: "dict[str, go.Figure]") -> str:
    """f and T, then T − f, for every scene, with sliders for the variables that are not drawn."""
    if not found:
        return (
            "<p>Inputs are token numbers: there is nothing to draw between them. The layer at one point is below.</p>"
        )
    names, parts = approximation.domain.names, []
    for number, scene in enumerate(found):
        drawn = " and ".join(names[j] for j in scene.drawn)
        still = approximation.domain.dimension - len(scene.drawn) - len(scene.moved)
        note = f" ({still} other variables stand at the centre of the domain)" if still else ""
        title = f"<h3>{html.escape(drawn)}{note}</h3>" if len(found) > 1 or note else ""
        inputs = "".join(
            _slider(names[j], 0, len(stops) - 1, 1, len(stops) // 2, f"{stops[len(stops) // 2]:.4g}")
            for j, stops in zip(scene.moved, scene.stops, strict=True)
        )
        inputs += _outputs(approximation)
        parts.append(
            f'{title}<form id="scene-{number}">{inputs}</form><div class="figure" id="function-{number}"></div>'
        )
        figures[f"function-{number}"] = function_figure(approximation, scene)
        error = error_figure(approximation, scene)
        if error is not None:
            figures[f"error-{number}"] = error
            parts.append(f'<h3>The error T − f</h3><div class="figure" id="error-{number}"></div>')
    asked = found[0].f is not None
    parts.append(
        f'<p class="note">{html.escape(words.observation(approximation))}'
        + ("" if asked else " f itself is not at hand here, so that T is drawn alone.")
        + "</p>"
    )
    return "".join(parts)


def _heads(approximation: Approximation, figures: "dict[str, go.Figure]") -> str:
    found = headmap(approximation)
    if found.mean is None and not (found.gates or found.edges or found.tokens):
        return "<p>The layer has no units: its heads read the input, and the read-out is affine.</p>"
    figures["headmap"] = heads_figure(approximation, found)
    if found.mean is not None:
        text = "Attention weights of every head, averaged over random inputs, at the first place that is read."
    elif found.tokens:
        text = "Every memory token where its attention weight is, on average; large where it gets much weight."
    else:
        text = (
            "Every gate where it switches: the anchor gets the weight on one side, a data token on the other. Triangles point"
            " to where it opens, lines and corners are where it switches; those far outside the domain are drawn at the rim."
        )
    count = len(found.gates) + len(found.edges) + len(found.tokens)
    most = MARKERS if found.mean is None else math.inf
    text += " Colour is the value, on a logarithmic scale of both signs." if found.mean is None else ""
    text += f" The {most:,} largest of {count:,} are drawn." if count > most else ""
    text += f" Lines are drawn for the {LINES} largest." if len(found.gates) > LINES and found.mean is None else ""
    story = f"<p>{html.escape(approximation.facts.story)}</p>" if approximation.facts.story else ""
    return f'{story}<p>{html.escape(text)}</p><div class="figure" id="headmap"></div>'


def _point(approximation: Approximation) -> str:
    """Sliders, the value with its band, attention weights, contributions, hidden units."""
    if approximation.parameters > WEIGHTS:
        text = f"A page holds at most {WEIGHTS:,} weights; this layer has {approximation.parameters:,}."
        return f"<p>{text} In Python, <code>approx.explain(x)</code> shows the same at any point.</p>"
    d, ends = approximation.domain, [end.tolist() for end in window(approximation.domain)]
    inputs = []
    for j in range(min(d.dimension, SLIDERS)):
        whole = approximation.vocabulary is not None
        low, high = (0.0, float((approximation.vocabulary or 1) - 1)) if whole else (ends[0][j], ends[1][j])
        inputs.append(_slider(d.names[j], low, high, 1 if whole else "any", _start(approximation)[j], "", j))
    more = d.dimension - SLIDERS
    note = f'<p class="note">{more} more variables stand still.</p>' if more > 0 else ""
    band = words.band(approximation)
    band = f'<p class="note">{html.escape(band)} The page computes in double precision.</p>' if band else ""
    c = approximation.model.config
    linear = c.activation == "relu" and c.norm == "none" and c.readout != "mean"
    sums = (
        "<h3>What every head adds</h3><p class='note'>The network is affine near x, so the heads' contributions and the rest"
        " (biases, residual stream) add up to T(x).</p><div class='figure' id='sum'></div>"
        if linear
        else f"<p class='note'>Activation {c.activation}, norm {c.norm}, read-out {c.readout}: heads do not simply add up.</p>"
    )
    return (
        f'<form id="movable">{"".join(inputs)}{_outputs(approximation)}</form>{note}<p id="value"></p>{band}'
        f"<div class='columns'><div>{sums}</div><div><h3>Attention weights, Eq. (5)</h3><div class='figure' id='attention'></div>"
        f"<h3>The feed-forward network</h3><p class='note'>{html.escape(_network(approximation))}</p>"
        "<div class='figure' id='hidden'></div></div></div>"
    )


def _network(approximation: Approximation) -> str:
    c = approximation.model.config
    around = "with" if c.residual else "without"
    cut = f", the first {HIDDEN} drawn" if c.ffn_width > HIDDEN else ""
    return f"{c.ffn_width:,} hidden units ({c.activation}), {around} a residual around them{cut}."


def _weights(approximation: Approximation, figures: "dict[str, go.Figure]") -> str:
    found = inspect(approximation.model)
    figures["matrices"], figures["spectra"] = weights_figure(approximation, found), spectra_figure(found)
    tables = f'<div class="scroll">{found.matrix_table()._repr_html_()}{found.head_table()._repr_html_()}</div>'
    return (
        '<div class="columns"><div class="figure" id="matrices"></div><div class="figure" id="spectra"></div></div>'
        f"<details><summary>Tables of matrices and circuits</summary>{tables}</details>"
    )


def _training(approximation: Approximation, figures: "dict[str, go.Figure]") -> str:
    if approximation.history is None or not approximation.history.moments:
        return ""
    figures["history"] = history_figure(approximation.history)
    return f'<p>Stopped: {html.escape(approximation.history.stopped)}.</p><div class="figure" id="history"></div>'


def _certificate(approximation: Approximation) -> str:
    c = approximation.certificate
    spoken = [words.statement(approximation), words.method(c), words.observation(approximation)]
    assumed = "".join(f"<li>{html.escape(a)}</li>" for a in c.assumptions)
    evidence = words.evidence_table(c)
    return (
        "".join(f"<p>{html.escape(text)}</p>" for text in spoken)
        + (f"<h3>What it assumes</h3><ul>{assumed}</ul>" if assumed else "")
        + f"<h3>Check it again</h3><p>{_code(words.recheck(approximation))}</p>"
        + '<details><summary>All fields of the certificate</summary><div class="scroll">'
        + f"{c.table()._repr_html_()}{evidence._repr_html_() if evidence.rows else ''}</div></details>"
    )


def _slider(
    name: str,
    low: float | int,
    high: float | int,
    step: int | str,
    value: float | int,
    shown: str,
    variable: int | None = None,
) -> str:
    data = "" if variable is None else f' data-variable="{variable}"'
    ends = f'min="{low!r}" max="{high!r}" step="{step}" value="{value!r}"'
    label = html.escape(name)
    slider = f'<input type="range" {ends}{data} aria-label="{label}">'
    return f"<label><span>{label}</span>{slider}<output{data}>{shown}</output></label>"


def _outputs(approximation: Approximation) -> str:
    names = output_names(approximation)
    if len(names) == 1:
        return ""
    options = "".join(f'<option value="{o}">{html.escape(name)}</option>' for o, name in enumerate(names))
    return f'<label><span>shown</span><select aria-label="output">{options}</select></label>'


def _start(approximation: Approximation) -> list[float]:
    """Where the movable point starts: off the centre, where symmetric things would hide; tokens 0, 1, 2, …"""
    d = approximation.domain
    if approximation.vocabulary is not None:
        return [float(j % approximation.vocabulary) for j in range(d.dimension)]
    share = 0.5 + 0.15 * np.cos(1.0 + 2.0 * np.arange(d.dimension))
    low, high = window(d)
    return [float(v) for v in low + share * (high - low)]


def _layer_record(approximation: Approximation) -> dict[str, Any] | None:
    """What assets/layer.js needs; None if the weights are too many for a page."""
    if approximation.parameters > WEIGHTS:
        return None
    facts, c = approximation.facts, approximation.model.config
    kinds = [kind for kind, count in facts.heads for _ in range(count)]
    return {
        "config": asdict(c),
        "weights": {name: _array(t.detach().numpy()) for name, t in approximation.model.state_dict().items()},
        "places": list(facts.places),
        "vocabulary": approximation.vocabulary,
        "kinds": kinds if len(kinds) == c.heads else ["head"] * c.heads,
        "tokens": approximation._token_names(),
        "start": _start(approximation),
    }


def _scene_record(scene: Scene) -> dict[str, Any]:
    arrays = {"T": scene.T, "error": scene.error}
    return {
        "sides": [len(axis) for axis in scene.axes],
        "stops": [stops.tolist() for stops in scene.stops],
        **{name: None if a is None else _array(_short(a)) for name, a in arrays.items()},
    }


def _short(a: np.ndarray) -> np.ndarray:
    """Single precision, if the numbers fit into it."""
    size = np.abs(a[np.isfinite(a) & (a != 0)])
    fits = size.max(initial=0.0) < 1e30 and size.min(initial=1.0) > 1e-30
    return a.astype(np.float32) if fits else a


def _array(a: np.ndarray) -> dict[str, Any]:
    content = base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()
    return {"shape": list(a.shape), "dtype": str(a.dtype), "base64": content}


def _code(text: str) -> str:
    """Text with `code` in it."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))


def _asset(name: str) -> str:
    return (resources.files("onelayer.views") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
