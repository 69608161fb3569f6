"""Plotly's script in the package draws every trace type that our pages ask for."""

import re
from pathlib import Path

import onelayer
from onelayer.views.page_files import plotly_source

SOURCE = Path(onelayer.__file__).parent
DRAWN = re.compile(
    r'type: "(\w+)", (?:z|x|y|orientation)\b|go\.(Bar|Heatmap|Scatter\w*|Surface|Waterfall|Contour|Mesh3d|Histogram)\('
)


def trace_types() -> set[str]:
    """Trace types named in our scripts and figures."""
    files = [*SOURCE.rglob("*.py"), *(file for file in SOURCE.rglob("*.js") if "plotly" not in file.parts)]
    found = (DRAWN.findall(file.read_text(encoding="utf-8")) for file in files)
    return {(script or figure).lower() for pairs in found for script, figure in pairs}


def test_every_trace_type_is_in_the_script() -> None:
    banner = plotly_source().splitlines()[0]
    held = re.search(r"plotly\.js v[\d.]+: ([\w, ]+)\.", banner)
    assert held is not None, banner
    drawn = trace_types()
    assert {"bar", "heatmap", "surface", "waterfall"} <= drawn
    assert drawn <= set(held[1].split(", "))


def test_the_script_carries_its_licence() -> None:
    licence = (SOURCE / "views" / "assets" / "plotly" / "LICENSE").read_text()
    assert "MIT" in licence
    assert "MIT license" in plotly_source().splitlines()[0]
