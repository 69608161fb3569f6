"""The files that pages are made of: scripts and styles in assets/, and plotly's own script."""

from importlib import resources


def asset(name: str) -> str:
    """The text of a file in assets/."""
    return (resources.files("onelayer.views") / "assets" / name).read_text(encoding="utf-8")


def plotly_source() -> str:
    """Plotly's JavaScript, with the trace types that our pages draw; assets/plotly/build.mjs makes it."""
    return asset("plotly/plotly.min.js")
