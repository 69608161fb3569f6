"""The heavy work, as events: a layer is built, proved and shown, or one of the same size is trained beside it."""

import base64
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ...common.errors import InputError
from ...construction.representative.construction import plan_representative
from ...experiments.compare import layer_size
from ...pipeline import build
from ...proof.boxes import covering
from ...target.target import Target
from ...training.recipe import Recipe
from ...training.start import StartingLayer, prepare
from ...training.steps import LayerTraining
from ...views.pages import array_record
from ...views.scene import window
from .input import Wish
from .limits import Limits
from .view import folder_of, view

Emit = Callable[[dict[str, Any]], None]
OFTEN = 0.05  # seconds between two reports of progress
BOXES = 20_000  # boxes of a proof that a page gets
LINE, SQUARE = 201, 41  # points along a variable where a trained layer is drawn
SCATTERED = 2000  # points of the whole domain where its error is looked at too: a picture may show one slice of it
STEPS, EVERY = 4000, 50


def build_job(wish: Wish, limits: Limits, emit: Emit) -> None:
    """Events: progress …, result (everything that is shown), folder (a zip), covering (the boxes of the proof)."""
    started, spoken = time.perf_counter(), 0.0

    def progress(stage: str, share: float) -> None:
        nonlocal spoken
        if time.perf_counter() - spoken >= OFTEN:
            spoken = time.perf_counter()
            emit({"event": "progress", "stage": stage, "share": min(max(float(share), 0.0), 1.0)})

    target = Target(wish.formula, wish.sides)
    if wish.method == "representative":
        planned = plan_representative(target, wish.tolerance).units
        if planned > limits.units:
            found = f"the paper's construction takes {planned:,}"
            raise InputError(f"at most {limits.units:,} units here", found, "enlarge ε, or choose another method")
    approximation = build(
        target,
        None,
        wish.tolerance,
        method=wish.method,  # type: ignore[arg-type]
        construction=wish.construction,  # type: ignore[arg-type]
        dtype=wish.dtype,
        units=wish.units,
        seconds=limits.search,
        progress=progress,
    )
    built = time.perf_counter() - started
    shown = view(approximation)
    emit(
        {
            "event": "result",
            "code": wish.code(limits),
            "built": built,
            "seconds": time.perf_counter() - started,
            **shown,
        }
    )
    emit({"event": "folder", "zip": base64.b64encode(folder_of(approximation)).decode()})
    boxes = covering(approximation)
    emit({"event": "covering", "covering": None if boxes is None else boxes.record(BOXES)})


def train_job(wish: Wish, parameters: int, limits: Limits, emit: Emit) -> None:
    """Events: moment (step, largest error, T − f on a grid) …, then trained."""
    target = Target(wish.formula, wish.sides)
    size = layer_size(target, parameters)
    if size is None:
        raise InputError("a layer of as many parameters", f"no size has about {parameters:,}", "build another layer")
    heads, width, d_model = size
    axes, x = _grid(target)
    drawn, others = len(x), np.random.default_rng(0).random((SCATTERED, target.dimension))
    x = np.concatenate([x, target.domain.points(others)])
    f, started = target.values(x), time.perf_counter()
    start = StartingLayer(heads=heads, width=width, d_model=d_model, dtype="float64")
    run = prepare(target, None, Recipe(steps=STEPS, every=EVERY), start)
    own = run.model.parameter_count
    emit({"event": "size", "heads": heads, "width": width, "d_model": d_model, "parameters": own, "steps": STEPS})

    def moment(stage: str, share: float) -> None:
        T = _values(run, x)
        if not np.isfinite(T).all():
            raise InputError(
                "a training that converges", "numbers that are not finite", "train once more, or not at all"
            )
        error = T - f
        emit(
            {
                "event": "moment",
                "stage": stage,
                "share": share,
                "step": round(share * STEPS),
                "largest": float(np.nanmax(np.abs(error))),
                "seconds": time.perf_counter() - started,
                "axes": [axis.tolist() for axis in axes],
                "error": array_record(error[:drawn, 0].astype(np.float32)),
            }
        )

    run.train(None, limits.seconds / 2, moment)
    emit({"event": "trained", "seconds": time.perf_counter() - started})


def _grid(target: Target) -> tuple[list[np.ndarray], np.ndarray]:
    """Axes of the first one or two variables, and points with the others at the centre."""
    low, high = window(target.domain)
    drawn = min(target.dimension, 2)
    axes = [np.linspace(low[j], high[j], LINE if drawn == 1 else SQUARE) for j in range(drawn)]
    grid = np.meshgrid(*axes, indexing="ij")
    x = np.tile(low + (high - low) / 2, (grid[0].size, 1))
    for j, values in enumerate(grid):
        x[:, j] = values.ravel()
    return axes, x


def _values(run: LayerTraining, x: np.ndarray) -> np.ndarray:
    """T of a layer that is being trained, in the units of the answers."""
    c = run.model.config
    given = torch.from_numpy(x).to(run.model.W_E.dtype).reshape(-1, c.tokens, c.features_in)
    with torch.no_grad():
        out = run.model.eval()(given)[:, list(run.places)].flatten(1) * run.spread + run.middle
    return np.asarray(out.double().numpy())
