"""Constructed layers: how large they are, what is proved, at what cost."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from ....approximation import Approximation
from ....common.budget import Budget
from ....common.outward import UP_FEW
from ....construction.request import SEARCH_TIME, Request
from ....construction.solved.layer import solved_layer
from ....layer.assemble import outputs_of
from ....layer.assemble.gates import gate_config
from ....layer.layer import Layer
from ....layer.reading import form_of_model
from ....model.transformer import SingleLayerTransformer
from ....pipeline import assembled, build, supremum
from ....proof.certificate import Certificate
from ....proof.counting import bits_of_class
from ....proof.least_units import KINDS, least_units, units_of
from ....target.naming import spread
from ....target.sides import read_domain
from ....target.target import Target
from .registry import Point, Result, measure

TARGET_AXES: dict[str, Any] = {"target": str, "formula": str, "domain": str, "margin": 0.0}
SMALL = 1e-9  # a tolerance that is out of reach: the size decides
ACCURACY = 0.1  # of a supremum: its upper end is at most this share above its lower one
BUILD_AXES = ("tolerance", "method", "construction", "dtype", "seed")  # options of `build`
CONSTRUCT_AXES: dict[str, Any] = {
    **TARGET_AXES, "tolerance": float, "method": "polished", "construction": "auto", "dtype": "float64", "units": 0, "seed": 0,
    "seconds": 60.0,
}  # fmt: skip


def target_at(point: Point) -> Target:
    """The target of a point; a single interval stands for every variable."""
    return _target(point["formula"], point["domain"], point["margin"])


@lru_cache(maxsize=8)
def _target(formula: str, domain: str, margin: float) -> Target:
    return Target(formula, spread(read_domain(domain), formula), margin=margin)


def seconds_at(point: Point) -> float:
    """The seconds of a build whose search may take those of the point; its proof may take as long again."""
    return float(point["seconds"]) / SEARCH_TIME


def build_at(point: Point, target: Target, units: int | None = None) -> Approximation:
    """The layer built for the target of a point."""
    options = {axis: point[axis] for axis in BUILD_AXES}
    return build(target, units=units, seconds=seconds_at(point), **options)


def boxes_of(certificate: Certificate) -> int:
    """How many boxes the proof looked at; 0 for the theorem, which needs none."""
    found = certificate.evidence.boxes or 0
    return int(sum(found)) if isinstance(found, list | tuple) else int(found)


def facts_of(found: Approximation) -> Result:
    """What is counted, proved and observed about a layer."""
    c = found.certificate
    return {
        "units": found.units,
        "heads": sum(count for _, count in found.facts.heads),
        "parameters": found.parameters,
        "bound": c.bound,
        "observed": c.observed,
        "verdict": c.verdict,
        "proof": c.method,
        "boxes": boxes_of(c),
        "total": found.facts.total,
    }


def gates_and_hinges(target: Target, point: Point, units: int, hinges: int = 0) -> tuple[Layer, SingleLayerTransformer]:
    """The layer of gates on a lattice, and of hinges where they help, with values that are solved for; and its model."""
    request = Request(
        target, SMALL, method="solved", construction="gates", units=units, hinges=hinges, seed=point["seed"],
        budget=Budget(seconds_at(point)),
    ).checked()  # fmt: skip
    layer = solved_layer(request)
    return layer, assembled(request, layer, request.frame)


def gate_parameters(target: Target, units: int, hinges: int = 0) -> int:
    """The parameters of such a layer; hinges see x through read heads."""
    D, reads = target.dimension, target.dimension if hinges else 0
    config = gate_config(
        D, outputs_of(target), "token", units=units, hinges=hinges, reads=reads, plain=not units, anchored=False
    )
    return config.parameter_count


def proved(model: SingleLayerTransformer, target: Target, seconds: float) -> Result:
    """sup |T − f| from both sides, both proved: `bound` above, `observed` below; within 10 % of each other if time allows."""
    found = supremum(model, target, accuracy=ACCURACY, seconds=seconds)
    return {"bound": found.upper, "observed": found.lower, "proof": found.method}


def most_within(budget: int, parameters: Callable[[int], int]) -> int:
    """The largest n ≥ 1 with at most `budget` parameters, which grow with n by as much each time."""
    one, two = parameters(1), parameters(2)
    return 1 + max(0, (budget - one) // (two - one))


@measure("construct", **CONSTRUCT_AXES)
def construct(point: Point) -> Result:
    """A layer built for a target: units, parameters, bound, observed error, verdict, boxes of the proof, seconds.

    `units` above 0 fixes the size instead of the tolerance.
    """
    return _construct(point)[1]


@measure("size", **CONSTRUCT_AXES)
def size(point: Point) -> Result:
    """As construct, and what is proved to be needed: units for this f in one variable, bits for its Lipschitz class.

    `kind` and `count` are those of the layer's units, `least` the least number of that kind; `bits` are those of all parameters,
    `least_bits` what some f with the same Lipschitz constants needs.
    """
    built, result = _construct(point)
    target, found = target_at(point), dict[str, Any]()
    if target.dimension == 1:
        read = form_of_model(built.model, built.facts.places)
        beside = float(read.error.max()) if read else 0.0
        least = least_units(target, (point["tolerance"] + beside) * UP_FEW)
        kind, count = (units_of(read) if read else None) or (None, None)
        found = {"kind": kind, "count": count, "least": getattr(least, kind) if kind else None}
        found |= {f"least_{name}": getattr(least, name) for name in KINDS}
    if target.modulus.lipschitz is not None:
        found["bits"] = built.parameters * (32 if point["dtype"] == "float32" else 64)
        found["least_bits"] = bits_of_class(target.modulus.lipschitz, target.domain.sides.tolist(), point["tolerance"])
    return {**result, **found}


def _construct(point: Point) -> tuple[Approximation, Result]:
    target = target_at(point)
    started = time.perf_counter()
    built = build_at(point, target, point["units"] or None)
    seconds = time.perf_counter() - started
    return built, {"dimension": target.dimension, **facts_of(built), "took": seconds}
