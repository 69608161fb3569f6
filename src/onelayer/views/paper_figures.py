"""The paper's two figures, drawn from a live layer.

Figure 1, `attention_flow`: every query q_i attends to all keys k_j, and z_i = Σ_j α_ij v_j (Eq. (5)–(7)). Lines run from the
key tokens to the query tokens; width and opacity show the real α_ij.

Figure 2, `passes`: the forward pass with ‖h^l‖ and the backward pass with ‖δ^l‖, δ^l = ∂L/∂h^l, at every stage of the layer.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ..approximation import Approximation
from ..common.checks import is_whole
from ..common.errors import InputError
from ..common.numbers import exact, point
from ..model import program
from ..model.on_tensors import OnTensors
from ..model.passes import both_passes
from ..model.transformer import SingleLayerTransformer
from .comparison import COLOURS
from .scene import has_values
from .style import FONT

if TYPE_CHECKING:
    import plotly.graph_objects as go

FORWARD, BACKWARD = COLOURS["constructed"], COLOURS["trained"]
HEAD_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")  # Okabe and Ito, colour-blind-safe
MOST_HEADS, MOST_TOKENS = 4, 10  # more would be unreadable
FAINTEST = 0.005  # smaller weights are invisible
ARROW = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": "", "arrowhead": 2, "arrowwidth": 2}


def attention_flow(subject: Approximation | SingleLayerTransformer, x: Any, heads: int = MOST_HEADS) -> "go.Figure":
    """Figure 1 at the point x: who attends to whom, and how much, in the `heads` heads that write most into the stream.

    The query tokens are those that are read out. If there are many tokens, those with the largest weights are drawn. The
    `meta` of every line holds its head, query, key (numbered from 0) and weight α_ij.
    """
    import plotly.graph_objects as go

    model, tokens, names, kinds = _subject(subject, x)
    c = model.config
    if not (is_whole(heads) and heads >= 1):
        raise InputError("heads, a whole number ≥ 1", f"{heads!r}", "say how many heads to draw")
    rows = list(range(c.all_tokens))[c.read_rows]
    with torch.no_grad():
        alpha = model.attention(tokens)[0][:, rows]  # Eq. (5): [head, query, key]
        written = _written(model, tokens, alpha)
    chosen = np.sort(np.argsort(-written, kind="stable")[:heads]).tolist()
    weights = alpha[chosen].numpy()
    keys = _heaviest(weights.max(axis=(0, 1)))
    queries = _heaviest(weights.max(axis=(0, 2))) if len(rows) > MOST_TOKENS else list(range(len(rows)))
    figure = go.Figure()
    title = f"Attention flow at x = {_point(tokens)}: α of Eq. (5), {_heads_drawn(chosen, c.heads)}"
    figure.update_layout(**_frame(title))
    width, gap = 1.0, 0.75
    for panel, head in enumerate(chosen):
        left = panel * (width + gap)
        colour = HEAD_COLOURS[panel % len(HEAD_COLOURS)]
        start = {j: (left, _height(n, len(keys))) for n, j in enumerate(keys)}
        to = {i: (left + width, _height(n, len(queries))) for n, i in enumerate(queries)}
        for i in queries:
            for j in keys:
                weight = float(weights[panel, i, j])
                _edge(figure, start[j], to[i], colour, (head, rows[i], j, weight), names)
                if weight >= (0.1 if len(queries) == 1 else 0.5):  # more numbers would hide the lines
                    _number(figure, start[j], to[i], weight)
        _nodes(figure, [(start[j], names[j], "middle left") for j in keys], colour, filled=False)
        results = [(to[i], _result_name(rows[i], names, c.tokens), "middle right") for i in queries]
        _nodes(figure, results, colour, filled=True)
        label = f"<b>head {head + 1}</b>, {kinds[head]}" if kinds else f"<b>head {head + 1}</b>"
        centred = {"x": left + width / 2, "showarrow": False}
        figure.add_annotation(y=1.17, text=label, font={"color": colour, "size": 15}, **centred)
        figure.add_annotation(y=-0.17, text=f"writes {written[head]:.3g}", font={"color": "#555555"}, **centred)
    extent = len(chosen) * (width + gap) - gap
    figure.update_xaxes(range=[-0.42, extent + 0.42])
    figure.update_yaxes(range=[-0.25, 1.28])
    figure.update_layout(width=max(420, 330 * len(chosen)), height=240 + 34 * max(len(keys), len(queries)))
    return figure


def passes(subject: Approximation | SingleLayerTransformer, x: Any, y: Any = None) -> "go.Figure":
    """Figure 2 at the point x: solid arrows forward with ‖h^l‖, dashed arrows backward with ‖δ^l‖, and ‖∂L/∂W^l‖ below.

    The loss is L = ½ Σ (T(x) − y)²; y is f(x) where f can be evaluated, and 0 otherwise.
    """
    import plotly.graph_objects as go

    model, tokens, _, _ = _subject(subject, x)
    goal, said = _goal(subject, model, tokens, y)
    found = both_passes(model, tokens, goal)
    stages = found.stages
    figure = go.Figure()
    title = f"Forward and backward pass at x = {_point(tokens)}: L = ½ Σ (T(x) − y)² = {found.loss:.3g}, {said}"
    figure.update_layout(**_frame(title))
    half = 0.38
    for n, stage in enumerate(stages):
        box = {"x0": n - half, "x1": n + half, "y0": -0.28, "y1": 0.28, "layer": "below"}
        figure.add_shape(type="rect", **box, line={"color": "#444444", "width": 1.5}, fillcolor="#f5f5f5")
        sizes = " × ".join(map(str, stage.activation.shape[1:]))
        figure.add_annotation(x=n, y=0.06, text=f"<b>{stage.name}</b>", showarrow=False)
        figure.add_annotation(x=n, y=-0.13, text=sizes, showarrow=False, font={"size": 12, "color": "#555555"})
        if n:
            figure.add_annotation(x=n - half, y=0.13, ax=n - 1 + half, ay=0.13, arrowcolor=FORWARD, **ARROW)
            _dashed(figure, n - half, n - 1 + half, -0.13)
        learns = any(name in found.gradients for name in stage.weights)
        gradient = f"‖∂L/∂W‖ {_three_digits(found.gradient_norm(stage))}" if learns else ""
        figure.add_annotation(x=n, y=-0.86, text=gradient, showarrow=False, font={"size": 12, "color": "#555555"})
    numbers = {"mode": "text", "x": list(range(len(stages))), "hoverinfo": "skip", "showlegend": False}
    forward, backward = [s.norm for s in stages], [s.error_norm for s in stages]
    for key, norms, at, colour in (("h", forward, 0.48, FORWARD), ("δ", backward, -0.5, BACKWARD)):
        text = [f"‖{key}‖ {_three_digits(norm)}" for norm in norms]
        font = {"color": colour, "size": 14}
        figure.add_trace(go.Scatter(y=[at] * len(stages), text=text, meta=norms, name=key, textfont=font, **numbers))
    for label, at, colour in (("forward →", 0.82, FORWARD), ("← backward, δ = ∂L/∂h", -1.12, BACKWARD)):
        figure.add_annotation(x=(len(stages) - 1) / 2, y=at, text=f"<b>{label}</b>", showarrow=False, font_color=colour)
    figure.update_xaxes(range=[-0.5, len(stages) - 0.5])
    figure.update_yaxes(range=[-1.25, 0.95])
    figure.update_layout(width=172 * len(stages), height=360)
    return figure


def _subject(
    subject: Approximation | SingleLayerTransformer, x: Any
) -> tuple[SingleLayerTransformer, Tensor, list[str], tuple[str, ...]]:
    """(model, x as [1, token, feature], names of all tokens, kinds of all heads) of an approximation or of a bare model."""
    if isinstance(subject, Approximation):
        model, names = subject.model, subject.token_names()
        kinds = tuple(kind for kind, count in subject.facts.heads for _ in range(count))
        batch, _ = subject.description.batch(_numbers(x).to(model.W_E.dtype))
        one = len(batch) == 1
        tokens = subject.as_tokens(batch) if one else batch
    elif isinstance(subject, SingleLayerTransformer):
        model, kinds = subject, ()
        c = model.config
        given = _numbers(x).to(model.W_E.dtype)
        one = given.numel() == c.tokens * c.features_in
        tokens = given.reshape(1, c.tokens, c.features_in) if one else given
        special = [("anchor", c.anchor_tokens), ("memory", c.memory_tokens), ("output", c.output_tokens)]
        names = [f"token {j + 1}" for j in range(c.tokens)]
        names += [name if n == 1 else f"{name} {i + 1}" for name, n in special for i in range(n)]
    else:
        found = type(subject).__name__
        raise InputError("an Approximation or a SingleLayerTransformer", found, "pass what `build` or `load` returned")
    if not one:
        raise InputError("one point", f"numbers of shape {list(tokens.shape)}", "pass one point of the domain")
    return model, tokens, names, kinds if len(kinds) == model.config.heads else ()


def _numbers(x: Any) -> Tensor:
    return x.detach().cpu() if isinstance(x, Tensor) else torch.from_numpy(np.array(x, dtype=np.float64))


def _goal(subject: Any, model: SingleLayerTransformer, tokens: Tensor, y: Any) -> tuple[Tensor, str]:
    """(y of the loss, in the shape of T(x); its description). Entries that hold no output equal T(x), so that δ is 0 there."""
    with torch.no_grad():
        answer = model(tokens)
    places = list(subject.facts.places) if isinstance(subject, Approximation) else list(range(answer.shape[1]))
    evaluable = isinstance(subject, Approximation) and subject.target is not None and has_values(subject.target)
    if y is None and evaluable:
        wanted, said = torch.from_numpy(subject.target(tokens.double().reshape(1, -1).numpy())), "y = f(x)"
    elif y is None:
        wanted, said = torch.zeros(len(places), answer.shape[2]), "y = 0"
    else:
        wanted = _numbers(y)
        said = f"y = {exact(wanted.item())}" if wanted.numel() == 1 else "y as given"
    if wanted.numel() != len(places) * answer.shape[2]:
        asked = f"y with {len(places) * answer.shape[2]} numbers, as T(x) has"
        raise InputError(asked, f"{wanted.numel()}", "give one number for every output")
    goal = answer.clone()
    goal[:, places] = wanted.to(answer.dtype).reshape(1, len(places), -1)
    return goal, said


def _written(model: SingleLayerTransformer, tokens: Tensor, alpha: Tensor) -> np.ndarray:
    """How much each head writes into the stream of the query tokens: ‖Σ_j α_ij v_j W^O‖."""
    c = model.config
    e = model.tokens(tokens)
    v = model._project(program.seen(OnTensors(model), e), "V")[0]
    z = alpha @ v  # Eq. (6): [head, query, d_v]
    added = torch.einsum("hrw,hwm->hrm", z, model.W_O.reshape(c.heads, c.d_v, c.d_model))
    return added.flatten(1).norm(dim=1).numpy()


def _heaviest(weights: np.ndarray) -> list[int]:
    """The tokens with the largest weights, in token order."""
    return np.sort(np.argsort(-weights, kind="stable")[:MOST_TOKENS]).tolist()


def _edge(
    figure: "go.Figure",
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    about: tuple[int, int, int, float],
    names: list[str],
) -> None:
    """One line of Figure 1; a weight too small to see has a line of width 0, so that its number can still be read."""
    import plotly.graph_objects as go

    head, query, key, weight = about
    meta = {"head": head, "query": query, "key": key, "weight": weight}
    seen, text = weight >= FAINTEST, f"head {head + 1}: {names[query]} attends to {names[key]} with α = {weight:.4g}"
    line, opacity = {"color": colour, "width": 1 + 11 * weight if seen else 0}, 0.15 + 0.85 * weight if seen else 0
    look = {"mode": "lines", "line": line, "opacity": opacity, "showlegend": False}
    x, y = zip(start, end, strict=True)
    figure.add_trace(go.Scatter(x=x, y=y, **look, meta=meta, hoverinfo="text", text=text))


def _number(figure: "go.Figure", start: tuple[float, float], end: tuple[float, float], weight: float) -> None:
    """The weight on its line, a third of the way along, where lines to the same token are still apart."""
    x, y = (a + 0.33 * (b - a) for a, b in zip(start, end, strict=True))
    figure.add_annotation(x=x, y=y, text=f"{weight:.2f}", showarrow=False, bgcolor="white", opacity=0.9, font_size=12)


def _nodes(figure: "go.Figure", nodes: list[Any], colour: str, filled: bool) -> None:
    import plotly.graph_objects as go

    places, names, where = zip(*nodes, strict=True)
    x, y = zip(*places, strict=True)
    marker = {"size": 15, "color": colour if filled else "white", "line": {"color": colour, "width": 2.5}}
    labels = {"text": [f"&nbsp;{name}&nbsp;" for name in names], "textposition": where, "hoverinfo": "skip"}
    look = {"mode": "markers+text", "marker": marker, "showlegend": False, "cliponaxis": False}
    figure.add_trace(go.Scatter(x=x, y=y, **labels, **look))


def _dashed(figure: "go.Figure", start: float, end: float, at: float) -> None:
    """A dashed arrow, since plotly's arrows are solid."""
    line = {"color": BACKWARD, "width": 2, "dash": "dash"}
    figure.add_shape(type="line", x0=start, x1=end, y0=at, y1=at, line=line, layer="below")
    figure.add_annotation(x=end, y=at, ax=end + 0.04, ay=at, arrowcolor=BACKWARD, **ARROW)


def _height(n: int, of: int) -> float:
    """From 1 at the top down to 0; one alone is in the middle."""
    return 0.5 if of == 1 else 1 - n / (of - 1)


def _result_name(token: int, names: list[str], data: int) -> str:
    """What a token receives: z_i for the i-th data token, z for an output token."""
    return f"z<sub>{token + 1}</sub>" if token < data else names[token].replace("output", "z")


def _three_digits(value: float) -> str:
    """Three digits, without an exponent where that is shorter."""
    return f"{value:,.0f}" if 1000 <= value < 1e6 else f"{value:.3g}"


def _point(tokens: Tensor) -> str:
    numbers = tokens.flatten().tolist()
    return point(numbers) if len(numbers) <= 6 else point(numbers[:6]).replace(")", ", …)")


def _heads_drawn(chosen: list[int], heads: int) -> str:
    if len(chosen) == heads:
        return "all heads" if heads > 1 else "the one head"
    return f"the {len(chosen)} of {heads} heads that write most"


def _frame(title: str) -> dict[str, Any]:
    """The frame of a drawing without axes."""
    axis, margin = {"visible": False, "fixedrange": True}, {"l": 20, "r": 20, "t": 60, "b": 20}
    heading = {"text": title, "font": {"size": 16}}
    return {"title": heading, "font": FONT, "template": "plotly_white", "xaxis": axis, "yaxis": axis, "margin": margin}
