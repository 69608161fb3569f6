"""What the page shows of an approximation: sections of the report, and its folder."""

import io
import math
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ...approximation import Approximation
from ...views import certificate_text
from ...views.pages import facts_html, page_data
from ...views.scene import Scene, scenes, window
from ...views.sections import certificate_section, facts, heads_section, point_section, scenes_section
from ...views.style import error_colours


def view(approximation: Approximation) -> dict[str, Any]:
    """Sections as HTML, figures, scenes and weights as numbers."""
    figures: dict[str, Any] = {}
    found = scenes(approximation)
    sections = {
        "function": scenes_section(approximation, found, figures),
        "heads": heads_section(approximation, figures),
        "point": point_section(approximation),
        "certificate": certificate_section(approximation),
    }
    c = approximation.certificate
    return {
        "verdict": c.verdict,
        "headline": c.headline,
        "statement": certificate_text.statement(approximation),
        "facts": facts_html(facts(approximation)),
        "sections": sections,
        "data": page_data(approximation, found, figures),
        "tolerance": c.tolerance,
        "bound": c.bound if math.isfinite(c.bound) else None,
        "bound_text": c.bound_text,
        "slope_text": c.slope.bound_text if c.slope and math.isfinite(c.slope.bound) else None,
        "observed": c.observed if math.isfinite(c.observed) else None,
        "observed_text": c.observed_text,
        "colours": error_colours(),
        "units": approximation.units,
        "parameters": approximation.parameters,
        "outputs": math.prod(approximation.output_shape),
        **_axes(approximation, found),
    }


def coarse_view(approximation: Approximation) -> dict[str, Any]:
    """The first picture of a layer about which nothing is proved; its error is observed at the points of that picture only."""
    figures: dict[str, Any] = {}
    found = scenes(approximation)[:1]
    assert found[0].error is not None  # a formula has values
    errors = np.abs(found[0].error[np.isfinite(found[0].error)])
    seen = replace(approximation.certificate, observed=float(errors.max()), observed_points=len(errors))
    approximation = replace(approximation, certificate=seen)
    return {
        "sections": {"function": scenes_section(approximation, found, figures, errors=False)},
        "data": page_data(approximation, found, figures) | {"layer": None},
        "facts": facts_html([("–", "bound: not proved"), *facts(approximation)[2:]]),
        "bound": None,
        "units": approximation.units,
        "outputs": math.prod(approximation.output_shape),
        **_axes(approximation, found),
    }


def _axes(approximation: Approximation, found: tuple[Scene, ...]) -> dict[str, Any]:
    """Names and ends of the variables, and which of them each picture draws."""
    ends = [end.tolist() for end in window(approximation.domain)]
    return {"names": list(approximation.domain.names), "ends": ends, "drawn": [list(scene.drawn) for scene in found]}


def folder_of(approximation: Approximation) -> bytes:
    """The model folder as a zip file."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        folder = approximation.save(Path(place) / "layer")
        for path in sorted(folder.iterdir()):
            archive.write(path, f"layer/{path.name}")
    return content.getvalue()
