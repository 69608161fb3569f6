"""What a page needs to draw an approximation and to compute its layer: figures, scenes and weights, as JSON would have them."""

import base64
import json
from dataclasses import asdict
from importlib import resources
from typing import Any

import numpy as np

from ..approximation import Approximation
from .scene import Scene
from .sections import WEIGHTS, start


def page_data(approximation: Approximation, found: tuple[Scene, ...], figures: dict[str, Any]) -> dict[str, Any]:
    """For assets/picture.js: figures by the place they belong to, the scenes of sliders, the layer."""
    return {
        "figures": {name: json.loads(figure.to_json()) for name, figure in figures.items()},
        "scenes": [scene_record(scene) for scene in found],
        "layer": layer_record(approximation),
    }


def layer_record(approximation: Approximation) -> dict[str, Any] | None:
    """What assets/layer.js needs; None if the weights are too many for a page."""
    if approximation.parameters > WEIGHTS:
        return None
    facts, c = approximation.facts, approximation.model.config
    kinds = [kind for kind, count in facts.heads for _ in range(count)]
    return {
        "config": asdict(c),
        "weights": {name: array_record(t.detach().numpy()) for name, t in approximation.model.state_dict().items()},
        "places": list(facts.places),
        "vocabulary": approximation.vocabulary,
        "kinds": kinds if len(kinds) == c.heads else ["head"] * c.heads,
        "tokens": approximation._token_names(),
        "start": start(approximation),
    }


def scene_record(scene: Scene) -> dict[str, Any]:
    arrays = {"T": scene.T, "error": scene.error}
    if scene.f is not None and np.isfinite(scene.f[~scene.claimed]).any():
        arrays["f"] = scene.f  # else the page takes T less the error
    return {
        "sides": [len(axis) for axis in scene.axes],
        "stops": [stops.tolist() for stops in scene.stops],
        **{name: None if a is None else array_record(_short(a)) for name, a in arrays.items()},
    }


def _short(a: np.ndarray) -> np.ndarray:
    """Single precision, if the numbers fit into it."""
    size = np.abs(a[np.isfinite(a) & (a != 0)])
    fits = size.max(initial=0.0) < 1e30 and size.min(initial=1.0) > 1e-30
    return a.astype(np.float32) if fits else a


def array_record(a: np.ndarray) -> dict[str, Any]:
    content = base64.b64encode(np.ascontiguousarray(a).tobytes()).decode()
    return {"shape": list(a.shape), "dtype": str(a.dtype), "base64": content}


def asset(name: str) -> str:
    """A file of a page, as text."""
    return (resources.files("onelayer.views") / "assets" / name).read_text(encoding="utf-8")


def plotly_source() -> str:
    """Plotly's own JavaScript, from the installed package."""
    from plotly.offline import get_plotlyjs

    return str(get_plotlyjs())
