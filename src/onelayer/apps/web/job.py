"""The work of a job, reported as events: build, prove and show a layer, or train one of the same size.

What the page shows of an approximation: sections of the report, and its folder.
"""

import base64
import contextlib
import io
import math
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.budget import Budget
from ...common.errors import InputError
from ...construction.coarse import coarse_layer
from ...construction.methods import facts_of
from ...construction.representative.layer import plan_representative
from ...construction.request import Found, Request
from ...experiments.matched_size import layer_size
from ...pipeline import assembled, build
from ...proof.certificate import unproved
from ...target.target import Target
from ...training.recipe import Recipe
from ...training.start import StartingLayer, prepare
from ...training.steps import LayerTraining
from ...views import certificate_text
from ...views.pages import array_record, facts_html, page_data
from ...views.scene import Scene, scenes, window
from ...views.sections import certificate_section, facts, heads_section, point_section, scenes_section
from ...views.style import error_colours
from .input import LayerSpec
from .limits import VisitorLimits


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


Emit = Callable[[dict[str, Any]], None]
PROGRESS_SECONDS = 0.05  # at least, between two reports of progress
MOST_BOXES = 20_000  # boxes of a proof sent to a page
LINE_POINTS, SQUARE_POINTS = 201, 41  # along a variable where a trained layer is drawn
SCATTERED_POINTS = 2000  # all over the domain, where its error is observed too: a picture may show only one slice
STEPS, STEPS_PER_EVENT = 4000, 50  # of training


def build_job(spec: LayerSpec, limits: VisitorLimits, emit: Emit, coarse: bool = False) -> None:
    """Events: coarse (if asked for), progress …, result (everything shown), folder (zipped), covering (boxes of the proof)."""
    started, reported = time.perf_counter(), 0.0

    def progress(stage: str, share: float) -> None:
        nonlocal reported
        if time.perf_counter() - reported >= PROGRESS_SECONDS:
            reported = time.perf_counter()
            emit({"event": "progress", "stage": stage, "share": min(max(float(share), 0.0), 1.0)})

    target = Target(spec.formula, spec.sides)
    if coarse:
        with contextlib.suppress(InputError, ArithmeticError, RuntimeError, ValueError):  # building says what is wrong
            emit({"event": "coarse", **coarse_view(coarse_approximation(target, spec.tolerance))})
    if spec.method == "representative":
        planned = plan_representative(target, spec.tolerance).units
        if planned > limits.units:
            found = f"the paper's construction takes {planned:,}"
            raise InputError(f"at most {limits.units:,} units here", found, "enlarge ε, or choose another method")
    options: dict[str, Any] = {"method": spec.method, "construction": spec.construction, "dtype": spec.dtype}
    options |= {"slope_tolerance": spec.slope_tolerance, "properties": spec.statements}
    options |= {"units": spec.units, "seconds": limits.build, "progress": progress}
    approximation = build(target, None, spec.tolerance, **options)
    built = time.perf_counter() - started
    shown, seconds = view(approximation), time.perf_counter() - started
    emit({"event": "result", "code": spec.code(limits), "built": built, "seconds": seconds, **shown})
    emit({"event": "folder", "zip": base64.b64encode(folder_of(approximation)).decode()})
    boxes = approximation.covering()
    emit({"event": "covering", "covering": None if boxes is None else boxes.record(MOST_BOXES)})


def coarse_approximation(target: Target, tolerance: float) -> Approximation:
    """A layer that is there at once, about which nothing is proved."""
    request = Request(target, tolerance).checked()
    found = Found(coarse_layer(request), request.frame)
    model = assembled(request, found.layer, found.frame)
    certificate = unproved(model, tolerance, str(target.domain))
    return Approximation.of(model, target, certificate, facts_of(found, request))


def train_job(spec: LayerSpec, parameters: int, limits: VisitorLimits, emit: Emit) -> None:
    """Events: size, moment (step, largest error, T − f on a grid) …, trained."""
    target = Target(spec.formula, spec.sides)
    size = layer_size(target, parameters)
    if size is None:
        raise InputError(f"a layer of about {parameters:,} parameters", "no such size", "build another layer")
    shape: dict[str, Any] = dict(zip(("heads", "width", "d_model"), size, strict=True))
    axes, x = _grid(target)
    drawn, others = len(x), np.random.default_rng(0).random((SCATTERED_POINTS, target.dimension))
    x = np.concatenate([x, target.domain.points(others)])
    f, started = target.values(x), time.perf_counter()
    start = StartingLayer(**shape, dtype="float64")
    run = prepare(target, None, Recipe(steps=STEPS, every=STEPS_PER_EVENT), start)
    emit({"event": "size", **shape, "parameters": run.model.parameter_count, "steps": STEPS})

    def moment(stage: str, share: float) -> None:
        T = _values(run, x)
        if not np.isfinite(T).all():
            raise InputError("training that converges", "numbers that are not finite", "train again, or not at all")
        error = T - f
        event: dict[str, Any] = {"event": "moment", "stage": stage, "share": share, "step": round(share * STEPS)}
        event |= {"largest": float(np.nanmax(np.abs(error))), "seconds": time.perf_counter() - started}
        event |= {"axes": [axis.tolist() for axis in axes]}
        emit(event | {"error": array_record(error[:drawn, 0].astype(np.float32))})

    run.train(None, Budget(limits.seconds / 2), moment)
    emit({"event": "trained", "seconds": time.perf_counter() - started})


def _grid(target: Target) -> tuple[list[np.ndarray], np.ndarray]:
    """Axes of the first one or two variables, and points with the others at the centre."""
    low, high = window(target.domain)
    drawn = min(target.dimension, 2)
    axes = [np.linspace(low[j], high[j], LINE_POINTS if drawn == 1 else SQUARE_POINTS) for j in range(drawn)]
    grid = np.meshgrid(*axes, indexing="ij")
    x = np.tile(low + (high - low) / 2, (grid[0].size, 1))
    for j, values in enumerate(grid):
        x[:, j] = values.ravel()
    return axes, x


def _values(run: LayerTraining, x: np.ndarray) -> np.ndarray:
    """T of a layer in training, in the units of f."""
    c = run.model.config
    given = torch.from_numpy(x).to(run.model.W_E.dtype).reshape(-1, c.tokens, c.features_in)
    with torch.no_grad():
        out = run.model.eval()(given)[:, list(run.places)].flatten(1) * run.spread + run.middle
    return np.asarray(out.double().numpy())
