"""The report: one HTML page that shows an approximation, its heads and its proof. It needs nothing else, and no network.

    target and layer · error within its bound · heads over the domain · the layer at a point that can be moved ·
    weights and spectra · training · certificate · size

The page evaluates the layer itself at the chosen point, by the ordinary softmax (assets/layer.js).
"""

import html
import json
from pathlib import Path
from string import Template
from typing import Any

from ..approximation import Approximation
from ..common.atomic import written
from ..common.errors import InputError
from ..experiments.study import Study
from . import certificate_text
from .costs import plan_table, size_table
from .pages import asset, page_data, plotly_source
from .scene import scenes
from .sections import (
    certificate_section,
    facts,
    heads_section,
    point_section,
    scenes_section,
    training_section,
    weights_section,
)
from .study_page import study_page

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
    return Template(asset("report.html")).substitute(
        title=html.escape(_title(approximation)),
        verdict=c.verdict,
        statement=html.escape(certificate_text.statement(approximation)),
        facts=facts(approximation),
        nav="".join(f'<a href="#{name}">{html.escape(title)}</a>' for name, title, _ in shown),
        body="".join(
            f'<section id="{name}"><h2>{html.escape(title)}</h2>{body}</section>' for name, title, body in shown
        ),
        css=asset("report.css"),
        plotly=plotly_source(),
        layer=asset("layer.js"),
        picture=asset("picture.js"),
        script=asset("report.js"),
        data=json.dumps(page_data(approximation, found, figures), allow_nan=False, ensure_ascii=False).replace(
            "<", "\\u003c"
        ),
    )


def _title(approximation: Approximation) -> str:
    text = approximation.target.text if approximation.target else approximation._described()[1]
    return text if len(text) <= TITLE else f"{text[:TITLE]} …"
