"""One layer applied several times: error against steps, and what one pass would need instead."""

import time
from fractions import Fraction

import numpy as np
import torch

from ....construction.gallery.lower_bounds import heads_needed, relus_needed
from ....construction.gallery.repeated import follow_pointers, square
from ....target.points import fitting_points
from .registry import Point, Result, measure


@measure("square", steps=int, dtype="float64", points=2000, seed=0)
def squared(point: Point) -> Result:
    """x² on [0, 1] by one layer with three ReLUs, after this many steps: bound, observed error, ReLUs of one pass instead.

    `tolerance` is 4^(−steps − 1). The layer is run to this tolerance too: `mean_steps` is when its halting unit stops it.
    """
    steps, tolerance = point["steps"], 4.0 ** -(point["steps"] + 1)
    proved = square(tolerance, dtype=point["dtype"])
    layer = proved.repeated.layer
    x = fitting_points(point["points"], 1, point["seed"]).to(layer.W_E.dtype)[:, :, None]
    started = time.perf_counter()
    with torch.no_grad():
        y, halted = proved.repeated.after(x, steps).flatten(), proved.repeated.run(x)
    took = time.perf_counter() - started
    errors = [abs(Fraction(b) - Fraction(a) ** 2) for a, b in zip(x.flatten().tolist(), y.tolist(), strict=True)]
    return {
        "tolerance": tolerance,
        "bound": proved.bound(steps),
        "observed": float(max(errors)),
        "relus": layer.config.ffn_width,
        "parameters": layer.parameter_count,
        "mean_steps": float(halted.steps.double().mean()),
        "one_pass_relus": relus_needed(tolerance),
        "took": took,
    }


@measure("pointers", length=int, chain=int, dtype="float64", lists=20, seed=0)
def followed(point: Point) -> Result:
    """Random lists whose longest chain has `chain` pointers, followed to its end: steps, wrong answers, heads of one pass.

    `one_pass_heads` is proved to be the least number of heads that each pick one token, for three pointers in a row.
    """
    length, rng = point["length"], np.random.default_rng(point["seed"])
    proved = follow_pointers(length, dtype=point["dtype"])
    drawn = [forest(length, point["chain"], rng) for _ in range(point["lists"])]
    started = time.perf_counter()
    found, steps, halted = proved.answer([g for g, _ in drawn])
    took = time.perf_counter() - started
    right = [ok and np.array_equal(y, end) for (_, end), y, ok in zip(drawn, found, halted, strict=True)]
    config = proved.repeated.layer.config
    return {
        "bound": proved.bound(),
        "wrong": len(right) - sum(right),
        "steps": float(steps.mean()),
        "heads": config.heads,
        "relus": config.ffn_width,
        "parameters": proved.repeated.layer.parameter_count,
        "one_pass_heads": heads_needed(length - 2, length),
        "took": took,
    }


def forest(length: int, chain: int, rng: np.random.Generator) -> tuple[list[int], np.ndarray]:
    """A random list of pointers without longer cycles whose longest chain has `chain` of them, and where each position ends."""
    if not 1 <= chain < length:
        raise ValueError(f"no list of {length} pointers has a chain of {chain}")
    target, end, depth = np.arange(length), np.arange(length), np.zeros(length, dtype=int)
    for i in range(1, length):
        to = i - 1 if i <= chain else int(rng.choice([i, *np.flatnonzero(depth[:i] < chain)]))  # i itself: another end
        target[i], end[i], depth[i] = (i, i, 0) if to == i else (to, end[to], depth[to] + 1)
    names = rng.permutation(length)
    listed, ends = np.empty(length, dtype=int), np.empty(length, dtype=int)
    listed[names], ends[names] = names[target], names[end]
    return listed.tolist(), ends
