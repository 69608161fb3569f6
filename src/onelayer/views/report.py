"""The report: one HTML page that shows an approximation, its heads and its proof. It needs no other file and no network.

    target and layer · error within its bound · heads over the domain · what each head adds at a movable point ·
    the calculation step by step · weights and spectra · training · certificate · size

The page itself evaluates the layer at the chosen point, by the ordinary softmax (assets/layer.js).
"""

import html
from pathlib import Path
from typing import Any

from ..approximation import Approximation
from ..common.atomic import require_new, write_file
from ..common.checks import known_options
from ..common.errors import InputError
from ..deployment.earlier_model import require_no_model_file
from ..experiments.study import Study
from ..sequence_layer import SequenceLayer
from . import certificate_text, sections
from .costs import plan_html, size_table
from .pages import LAYER_SCRIPTS, Page, page_data
from .scene import scenes
from .sequence_page import sequence_page
from .study_page import study_page

LONGEST_TITLE = 300  # characters


@known_options
def report(
    approximation: "Approximation | SequenceLayer | Study", path: str | Path = "report.html", overwrite: bool = False
) -> Path:
    """Write the report of an approximation, a layer for sequences or a study: one self-contained page, complete or absent.

    A file of that name is refused; `overwrite=True` replaces it.
    """
    if not isinstance(approximation, Approximation | SequenceLayer | Study):
        asked, found = "an Approximation, a SequenceLayer or a Study to report on", type(approximation).__name__
        raise InputError(asked, found, "pass what `build` or `load` returned")
    if not isinstance(approximation, Study):
        approximation.require_unchanged()
    path = Path(path)
    if path.is_dir():
        change = f"name a file, such as {path / 'report.html'}"
        raise InputError("a file name for the report", f"{path} is a folder", change)
    require_new(path, overwrite)
    require_no_model_file(path)
    return write_file(path, _page_of(approximation))


def _page_of(shown: Approximation | SequenceLayer | Study) -> str:
    if isinstance(shown, Study):
        return study_page(shown)
    return sequence_page(shown) if isinstance(shown, SequenceLayer) else page(shown)


def page(
    approximation: Approximation, planned: bool = True, lead: str = "", first: tuple[int, ...] | None = None
) -> str:
    """The report as text; `planned` also forecasts the size of the paper's construction, which can take a while.

    `lead` is HTML to begin with, `first` the variables of the scene that comes first.
    """
    figures: dict[str, Any] = {}
    found = tuple(sorted(scenes(approximation), key=lambda scene: scene.drawn != first))
    plan = plan_html(approximation) if planned else ""
    chapters = [
        ("function", "Target and layer", sections.scenes_section(approximation, found, figures)),
        ("heads", "Heads over the domain", sections.heads_section(approximation, figures)),
        ("point", sections.point_title(approximation), sections.point_section(approximation)),
        ("walk", "Step through the calculation", sections.walk_section(approximation)),
        ("weights", "Weights and spectra", sections.weights_section(approximation, figures)),
        ("training", "Training", sections.training_section(approximation, figures)),
        ("certificate", "Certificate", sections.certificate_section(approximation)),
        ("size", "Size and cost", size_table(approximation)._repr_html_() + plan),
    ]
    text = approximation.target_text
    title = text if len(text) <= LONGEST_TITLE else f"{text[:LONGEST_TITLE]} …"
    verdict, headline = approximation.certificate.verdict, html.escape(approximation.certificate.headline)
    statement = html.escape(certificate_text.statement(approximation))
    about = "<p>This page describes one attention layer T, made to stand in for f.</p>"
    intro = f'{lead}{about}\n<p><span class="verdict {verdict}">{headline}</span></p>\n<p>{statement}</p>'
    data, styles = page_data(approximation, found, figures), ("report.css", "walk.css")
    return Page(
        title, "one layer", intro, sections.facts(approximation), chapters, data, LAYER_SCRIPTS, styles
    ).render()
