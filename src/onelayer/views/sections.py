"""The sections of the report, as HTML; their figures are added to a dictionary, by the id of their element."""

import html
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..approximation import Approximation
from ..common.numbers import exact
from ..model.inspection import inspect
from . import certificate_text
from .certificate_text import Shown
from .figures import error_figure, function_figure, history_figure, spectra_figure, weights_figure
from .head_figure import MOST_LINES, MOST_MARKERS, heads_figure
from .head_map import HeadMap, head_map_of
from .scene import Scene, output_names, window
from .slope_figure import slope_error_figure

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_WEIGHTS = 200_000  # parameters a page can hold: two megabytes
MOST_HIDDEN = 60  # hidden units drawn, in assets/picture.js
MOST_SLIDERS = 12  # at the movable point
Number = float | int


def facts(approximation: Shown) -> list[tuple[str, str]]:
    """(value, what it is) for the top of the page."""
    c = approximation.certificate
    return [
        *([(c.tolerance_text, _tolerance_name(approximation))] if c.tolerance_asked else []),
        (c.bound_text, "bound, proved if f is as declared" if c.condition else "bound, proved"),
        (c.observed_text, "observed error"),
        *([(c.slope.bound_text, "bound of slopes, proved")] if c.slope else []),
        *((p.verdict, p.text) for p in c.properties),
        (f"{approximation.facts.units:,}", "units"),
        (f"{approximation.model.config.heads:,}", "heads"),
        (f"{approximation.parameters:,}", "parameters"),
    ]


def _tolerance_name(approximation: Shown) -> str:
    """What the tolerance is: asked for, a share of |f|, or one that comes with the kind of layer."""
    share, about = approximation.certificate.evidence.relative, approximation.description
    if share:
        return f"tolerance: {exact(share.share)} of the smallest |f|"
    fixed = about.kind in ("gallery", "samples") and about.parameters.get("tolerance") is None
    return "tolerance" if fixed else "tolerance asked for"


def scenes_section(
    approximation: Approximation, found: tuple[Scene, ...], figures: "dict[str, go.Figure]", errors: bool = True
) -> str:
    """f and T, then T − f, for every scene, with sliders for variables that are not drawn.

    Without `errors` there is room for T − f, but no figure.
    """
    if not found:
        return "<p>Inputs are token numbers, with nothing to draw between them. See the sliders below.</p>"
    names, parts = approximation.domain.names, []
    for number, scene in enumerate(found):
        drawn = " and ".join(names[j] for j in scene.drawn)
        fixed = approximation.domain.dimension - len(scene.drawn) - len(scene.sliders)
        note = f" ({_others(fixed, 'other')} at the centre of the domain)" if fixed else ""
        title = f"<h3>{html.escape(drawn)}{note}</h3>" if len(found) > 1 or note else ""
        inputs = "".join(
            _slider(names[j], 0, len(stops) - 1, 1, len(stops) // 2, exact(stops[len(stops) // 2]))
            for j, stops in zip(scene.sliders, scene.stops, strict=True)
        )
        inputs += _outputs(approximation)
        form = f'{title}<form id="scene-{number}">{inputs}</form>'
        shown = "curves" if len(scene.drawn) == 1 else "surfaces"
        both = "f, the target, and T, the layer, as" if scene.f is not None else "T, the layer, as"
        parts.append(form + figure_place(f"function-{number}", f"{both} {shown} over {drawn}"))
        figures[f"function-{number}"] = function_figure(approximation, scene)
        if errors and (error := error_figure(approximation, scene)) is not None:
            figures[f"error-{number}"] = error
        if scene.error is not None:
            c = approximation.certificate
            alt = f"The error T − f over {drawn}" + (f", within ±{c.bound_text}" if math.isfinite(c.bound) else "")
            parts.append("<h3>The error T − f</h3>" + figure_place(f"error-{number}", alt))
    slopes = slope_error_figure(approximation)
    if slopes is not None:
        figures["slopes"] = slopes
        parts.append(
            "<h3>The error of the slopes</h3>" + figure_place("slopes", "The slopes of T − f, within their bound")
        )
    note = certificate_text.observation(approximation)
    note += "" if found[0].f is not None else " f itself is not available here, so only T is drawn."
    return "".join(parts) + f'<p class="note">{html.escape(note + _drawn_as_f(approximation))}</p>'


def _others(count: int, word: str) -> str:
    return f"{count} {word} variable is" if count == 1 else f"{count} {word} variables are"


def _drawn_as_f(approximation: Approximation) -> str:
    """What a picture of f does not say."""
    target, margin = approximation.target, approximation.certificate.margin
    if target is not None and target.envelope is not None:
        return " The f drawn is the middle of what the samples and the declared constants allow; the bound covers all of that."
    if target is None or not margin:
        return ""
    return f" Within {exact(margin)} of a jump of f nothing is claimed, and no error is drawn."


def heads_section(approximation: Approximation, figures: "dict[str, go.Figure]") -> str:
    found = head_map_of(approximation)
    if found.mean is None and not (found.gates or found.edges or found.tokens):
        return "<p>The layer has no units: its heads read the input, and the read-out is affine.</p>"
    figures["headmap"] = heads_figure(approximation, found)
    if found.mean is not None:
        text = "Attention weights of every head, averaged over random inputs, at the first token that is read out."
    else:
        text = " ".join(_legend(approximation, found))
    count = len(found.gates) + len(found.edges) + len(found.tokens)
    most = MOST_MARKERS if found.mean is None else math.inf
    first = ", what it adds to the first output," if math.prod(approximation.output_shape) > 1 else ""
    coloured = found.gates or found.tokens
    text += f" Colour is the value{first} on a logarithmic scale of both signs." if coloured else ""
    text += f" The {most:,} largest of {count:,} are drawn." if count > most else ""
    lines = len(found.gates) > MOST_LINES and found.mean is None
    text += f" Lines are drawn for the {MOST_LINES} largest." if lines else ""
    story = f"<p>{html.escape(approximation.facts.story)}</p>" if approximation.facts.story else ""
    return f"{story}<p>{html.escape(text)}</p>" + figure_place(
        "headmap", "Where the heads act: every gate, token or weight"
    )


def _legend(approximation: Approximation, found: HeadMap) -> Iterator[str]:
    """What the marks in the picture mean, kind by kind."""
    D = approximation.domain.dimension
    if found.tokens:
        yield "Each memory token is drawn at the mean position of its attention weight, larger the more weight it gets."
    if found.gates:
        constant = "the anchor" if approximation.model.config.anchor_tokens else "the constant token “output”"
        drawn = "Lines and corners mark these places" if D == 2 else "Triangles point to where it opens"
        yield f"Each gate is drawn where it switches: {constant} gets the weight on one side, a data token on the other."
        yield f"{drawn}; those far outside the domain are drawn at the edge."
    if found.edges and D <= 2:
        yield f"{'Dotted lines' if D == 2 else 'Diamonds'} are where two tokens of a max-head or a ridge have equal weight."
    elif found.edges:
        yield f"{len(found.edges):,} planes of equal weight, of max-heads and ridges, are not drawn."


def point_title(approximation: Approximation) -> str:
    """The title of that section: only some layers are sums of their heads."""
    return "What each head adds" if _adds_up(approximation) else "The heads at one point"


def _adds_up(approximation: Approximation) -> bool:
    c = approximation.model.config
    return c.activation == "relu" and c.norm == "none" and c.readout != "mean"


def why_not_on_page(approximation: Approximation) -> str:
    """Why a page cannot compute the layer; empty if it can."""
    c = approximation.model.config
    if c.attention not in ("softmax", "fused"):
        return f"A page computes softmax attention alone; this layer has {c.attention} attention."
    if approximation.parameters > MOST_WEIGHTS:
        return f"A page holds at most {MOST_WEIGHTS:,} weights; this layer has {approximation.parameters:,}."
    return ""


def point_section(approximation: Approximation) -> str:
    """Sliders, the value and what is proved about it, attention weights, contributions, hidden units."""
    if text := why_not_on_page(approximation):
        return f"<p>{text} In Python, <code>approx.explain(x)</code> shows the same at any point.</p>"
    d, (low, high), start = approximation.domain, slider_ends(approximation), start_point(approximation)
    step: int | str = "any" if approximation.vocabulary is None else 1
    shown = range(min(d.dimension, MOST_SLIDERS))
    inputs = [_slider(d.names[j], low[j], high[j], step, start[j], "", j) for j in shown]
    more = d.dimension - MOST_SLIDERS
    note = f'<p class="note">{_others(more, "more")} fixed.</p>' if more > 0 else ""
    band = certificate_text.band(approximation)
    band = f'<p class="note">{html.escape(band)} The page computes in double precision.</p>' if band else ""
    c = approximation.model.config
    sums = (
        "<h3>The running sum</h3><p class='note'>The network is affine near x, so the heads' contributions and the rest"
        " (biases, residual stream) add up to T(x).</p>"
        + figure_place("sum", "What every head adds to T(x), as a running sum")
        if _adds_up(approximation)
        else f"<p class='note'>Activation {c.activation}, norm {c.norm}, read-out {c.readout}: heads do not simply add up.</p>"
    )
    attention = figure_place("attention", "Attention weights of the heads")
    return (
        f'<form id="movable">{"".join(inputs)}{_outputs(approximation)}</form>{note}<p id="value"></p>{band}'
        f"<div class='columns'><div>{sums}</div><div><h3>Attention weights, Eq. (5)</h3>{attention}"
        f"<h3>The feed-forward network</h3>{_network(approximation)}</div></div>"
    )


def walk_section(approximation: Approximation) -> str:
    """Where assets/walk.js takes the movable point through the layer, step by step."""
    if why_not_on_page(approximation):
        return ""
    text = "Follow the point from its numbers to T(x), one step at a time. The page computes every number from the weights."
    return f'<p>{text}</p><div id="walk-place"></div>'


def _network(approximation: Approximation) -> str:
    """The hidden units at the point, or that there is nothing to see: a network without outgoing weights adds 0 everywhere."""
    c, model = approximation.model.config, approximation.model
    if c.residual and not (model.W_2.any() or model.b_2.any()):
        return "<p>The feed-forward network is not needed for this function: it adds 0.</p>"
    around = "with" if c.residual else "without"
    cut = f", the first {MOST_HIDDEN} are drawn" if c.ffn_width > MOST_HIDDEN else ""
    text = f"{c.ffn_width:,} hidden units ({c.activation}), {around} a residual around them{cut}."
    return f"<p class='note'>{html.escape(text)}</p>" + figure_place("hidden", "Hidden units")


def weights_section(approximation: Shown, figures: "dict[str, go.Figure]") -> str:
    found = inspect(approximation.model)
    figures["matrices"], figures["spectra"] = weights_figure(approximation, found), spectra_figure(found)
    tables = (
        f'<div class="scroll" tabindex="0">{found.matrix_table()._repr_html_()}{found.head_table()._repr_html_()}</div>'
    )
    return (
        f'<div class="columns">{figure_place("matrices", "One weight matrix, chosen from a menu, entry by entry")}'
        f"{figure_place('spectra', 'Singular values of every weight matrix, largest first')}</div>"
        f"<details><summary>Tables of matrices and circuits</summary>{tables}</details>"
    )


def training_section(approximation: Approximation, figures: "dict[str, go.Figure]") -> str:
    if approximation.history is None or not approximation.history.moments:
        return ""
    figures["history"] = history_figure(approximation.history)
    return f"<p>Stopped: {html.escape(approximation.history.stopped)}.</p>" + figure_place(
        "history", "Loss and held-out errors, step by step"
    )


def certificate_section(approximation: Shown) -> str:
    c = approximation.certificate
    sentences = [certificate_text.statement(approximation), certificate_text.method(c)]
    sentences.append(certificate_text.observation(approximation))
    assumed = "".join(f"<li>{html.escape(a)}</li>" for a in c.assumptions)
    evidence = certificate_text.evidence_table(c)
    return (
        "".join(f"<p>{html.escape(text)}</p>" for text in sentences)
        + (f"<h3>What it assumes</h3><ul>{assumed}</ul>" if assumed else "")
        + f"<h3>Check it again</h3><p>{code_marked(certificate_text.how_to_check(approximation))}</p>"
        + '<details><summary>All fields of the certificate</summary><div class="scroll" tabindex="0">'
        + f"{c.table()._repr_html_()}{evidence._repr_html_() if evidence.rows else ''}</div></details>"
    )


def figure_place(name: str, alt: str) -> str:
    """Where a figure is drawn, with what it shows in words."""
    return f'<div class="figure" id="{name}" role="figure" aria-label="{html.escape(alt)}"></div>'


def _slider(
    name: str, low: Number, high: Number, step: int | str, value: Number, shown: str, variable: int | None = None
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


def start_point(approximation: Approximation) -> list[float]:
    """Where the movable point starts: off the centre, where symmetry would hide things; tokens 0, 1, 2, …"""
    d = approximation.domain
    if approximation.vocabulary is not None:
        return [float(j % approximation.vocabulary) for j in range(d.dimension)]
    share = 0.5 + 0.15 * np.cos(1.0 + 2.0 * np.arange(d.dimension))
    low, high = window(d)
    return [float(v) for v in low + share * (high - low)]


def slider_ends(approximation: Approximation) -> tuple[list[float], list[float]]:
    """Where the movable point can go along every variable; tokens are whole numbers."""
    if approximation.vocabulary is not None:
        D = approximation.domain.dimension
        return [0.0] * D, [float(approximation.vocabulary - 1)] * D
    low, high = window(approximation.domain)
    return low.tolist(), high.tolist()


def code_marked(text: str) -> str:
    """Escaped text, with `code` marked up."""
    parts = html.escape(text).split("`")
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts))
