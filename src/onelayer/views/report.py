"""The report: one HTML page that shows an approximation, its heads and its proof. It needs nothing else, and no network.

    target and layer · error within its bound · heads over the domain · the layer at a point that can be moved ·
    weights and spectra · training · certificate · size

The page evaluates the layer itself at the chosen point, by the ordinary softmax (assets/layer.js).
"""

import base64
import html
import json
from dataclasses import asdict
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from ..approximation import Approximation
from ..atomic import written
from ..errors import InputError
from ..study import Study
from . import words
from .scene import Scene, scenes
from .sections import (
    WEIGHTS,
    certificate_section,
    facts,
    heads_section,
    point_section,
    scenes_section,
    start,
    training_section,
    weights_section,
)
from .size import plan_table, size_table
from .study import study_page

TITLE = 300  # characters


def report(approximation: "Approximation | Study", path: str | Path = "report.html") -> Path:
    """Write the report of an approximation, or of a study: one self-contained page, complete or absent."""
    if not isinstance(approximation, Approximation | Study):
        raise InputError(
            "an Approximation or a Study to report on", type(approximation).__name__, "pass what `build` or `load` gave"
        )
    if not isinstance(path, str | Path):
        raise InputError("a file name for the report", f"{path!r}", "name a file, such as report.html")
    if isinstance(approximation, Approximation):
        approximation.require_unchanged()
    path = Path(path)
    if path.is_dir():
        raise InputError(
            "a file name for the report", f"{path} is a folder", f"name a file, such as {path / 'report.html'}"
        )
    return written(path, study_page(approximation) if isinstance(approximation, Study) else page(approximation))


def page(approximation: Approximation) -> str:
    """The report as text."""
    figures: dict[str, Any] = {}
    found = scenes(approximation)
    sections = [
        ("function", "Target and layer", scenes_section(approximation, found, figures)),
        ("heads", "Heads over the domain", heads_section(approximation, figures)),
        ("point", "The layer at one point", point_section(approximation)),
        ("weights", "Weights and spectra", weights_section(approximation, figures)),
        ("training", "Training", training_section(approximation, figures)),
        ("certificate", "Certificate", certificate_section(approximation)),
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
        facts=facts(approximation),
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
        "start": start(approximation),
    }


def _scene_record(scene: Scene) -> dict[str, Any]:
    arrays = {"T": scene.T, "error": scene.error}
    if scene.f is not None and np.isfinite(scene.f[~scene.claimed]).any():
        arrays["f"] = scene.f  # else the page takes T less the error
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


def _asset(name: str) -> str:
    return (resources.files("onelayer.views") / "assets" / name).read_text(encoding="utf-8")


def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
