"""Rank and capacity (Section II.A): a layer whose heads are cut down to a smaller rank."""

from functools import lru_cache

import numpy as np
import torch

from ....approximation import Approximation
from ....model.transformer import SingleLayerTransformer
from ....pipeline import build
from ....proof.circuit.truncation import truncated
from ....target.points import fitting_points
from ....training.descent import train
from ...peers.task import TEST_SEED
from .construction import TARGET_AXES, target_at
from .registry import Point, Result, measure

POINTS = 4096
HEADS, WIDTH, D_MODEL = 4, 32, 16  # of a trained layer


@measure("rank", **TARGET_AXES, way="constructed", circuit="OV", rank=int, tolerance=1e-3, steps=1000, seed=0)
def rank(point: Point) -> Result:
    """Every head's QK or OV circuit truncated to a rank: observed error, |T' − T| observed and bounded, σ cut off.

    `way` is "constructed" (polished, certified within the tolerance) or "trained" (4 heads of width 4, Adam).
    """
    target = target_at(point)
    layer = _layer(*(point[name] for name in ("formula", "domain", "way", "tolerance", "steps", "seed")))
    cut = truncated(layer.model, layer.domain, point["circuit"], point["rank"])
    x = target.domain.points(fitting_points(POINTS, target.dimension, TEST_SEED).numpy())
    before, after = (_answers(m, layer.facts.places, x) for m in (layer.model, cut.model))
    return {
        "verdict": layer.certificate.verdict,
        "heads": layer.model.config.heads,
        "cut_off": cut.cut_off,
        "bound": cut.bound,
        "changed": float(np.abs(after - before).max()),
        "observed": float(np.abs(after - target(x)).max()),
    }


@lru_cache(maxsize=2)
def _layer(formula: str, domain: str, way: str, tolerance: float, steps: int, seed: int) -> Approximation:
    """The layer that is cut down, once for all ranks."""
    target = target_at({"formula": formula, "domain": domain, "margin": 0.0})
    if way == "constructed":
        return build(target, tolerance=tolerance, seed=seed)
    size = {"heads": HEADS, "width": WIDTH, "d_model": D_MODEL}
    return train(target, tolerance=tolerance, steps=steps, seed=seed, dtype="float64", **size)  # type: ignore[arg-type]


def _answers(model: SingleLayerTransformer, places: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    c = model.config
    with torch.no_grad():
        rows = model(torch.from_numpy(x).reshape(-1, c.tokens, c.features_in))
    return np.asarray(rows[:, list(places)].flatten(1).numpy())
