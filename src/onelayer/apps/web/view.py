"""What the page shows of an approximation: sections of the report, and its folder."""

import io
import math
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from ...approximation import Approximation
from ...views import certificate_text
from ...views.pages import facts_html, page_data
from ...views.scene import scenes, window
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
        "names": list(approximation.domain.names),
        "ends": [end.tolist() for end in window(approximation.domain)],
        "drawn": [list(scene.drawn) for scene in found],
    }


def folder_of(approximation: Approximation) -> bytes:
    """The model folder as a zip file."""
    content = io.BytesIO()
    with tempfile.TemporaryDirectory() as place, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        folder = approximation.save(Path(place) / "layer")
        for path in sorted(folder.iterdir()):
            archive.write(path, f"layer/{path.name}")
    return content.getvalue()
