"""Constructed layers: how large, how well proved, at what cost."""

import time
from functools import lru_cache
from typing import Any

from ....approximation import Approximation
from ....formula import parse
from ....pipeline import build
from ....proof.certificate import Certificate
from ....target.sides import read_domain
from ....target.target import Target
from .registry import Point, Result, measure

TARGET: dict[str, Any] = {"target": str, "formula": str, "domain": str, "margin": 0.0}


@lru_cache(maxsize=8)
def target_of(formula: str, domain: str, margin: float = 0.0) -> Target:
    """The target that a point writes down; one interval stands for every variable."""
    sides = read_domain(domain)
    if isinstance(sides, list) and len(sides) == 1:
        sides *= max(1, parse(formula).dimension)
    return Target(formula, sides, margin=margin)


def boxes_of(certificate: Certificate) -> int:
    """How many boxes the proof looked at; 0 for the theorem's, which looks at none."""
    found = certificate.evidence.boxes or 0
    return int(sum(found)) if isinstance(found, list | tuple) else int(found)


def facts(found: Approximation) -> Result:
    """What is counted, proved and observed of a layer."""
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


@measure(
    "construct", **TARGET, tolerance=float, method="polished", construction="auto", dtype="float64", units=0, seed=0,
    seconds=60.0,
)  # fmt: skip
def construct(point: Point) -> Result:
    """A layer built for a target: units, parameters, bound, observed error, verdict, boxes of the proof, seconds.

    `units` above 0 fixes the size instead of the tolerance.
    """
    target = target_of(point["formula"], point["domain"], point["margin"])
    started = time.perf_counter()
    built = build(
        target,
        tolerance=point["tolerance"],
        method=point["method"],
        construction=point["construction"],
        dtype=point["dtype"],
        units=point["units"] or None,
        seed=point["seed"],
        seconds=point["seconds"],
    )
    seconds = time.perf_counter() - started
    return {"dimension": target.dimension, **facts(built), "took": seconds}
