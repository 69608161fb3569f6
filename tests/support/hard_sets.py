"""Functions of sets in balls, and sets that are hard on a layer: the exact answer at every one of them."""

import numpy as np
from flint import arb, ctx

from onelayer.construction.set_functions.aggregates import parse_set
from onelayer.formula import enclose, interval

BITS = 160


def exact_answers(text: str, x: np.ndarray) -> list[arb]:
    """f at one set, in balls of high precision: one answer, or one for every number."""
    f = parse_set(text)
    with ctx.workprec(BITS):
        aggregates = []
        for aggregate in f.aggregates:
            values = [enclose(aggregate.inner, [interval(float(v))], BITS)[0].ball() for v in x]
            if aggregate.kind in ("sum", "mean"):
                total = sum(values, arb(0))
                aggregates.append(total / len(values) if aggregate.kind == "mean" else total)
            else:
                best = values[0]
                for value in values[1:]:
                    best = best.max(value) if aggregate.kind == "max" else best.min(value)
                aggregates.append(best)
        rows = x if f.each else x[:1]
        return [enclose(f.outer, [interval(float(v)), *map(interval, aggregates)], BITS)[0].ball() for v in rows]


def largest_error(layer, sets: list[np.ndarray]) -> float:
    """The largest |T − f| over sets, rounded down."""
    worst = 0.0
    for x in sets:
        found = np.atleast_1d(layer(x))
        wanted = exact_answers(layer.description.text, x)
        with ctx.workprec(BITS):
            errors = [abs(arb(float(y)) - exact) for y, exact in zip(found, wanted, strict=True)]
            worst = max([worst, *(float(error.abs_lower()) for error in errors)])
    return worst


def hard_sets(layer, count: int, seed: int = 0, longest: int | None = None) -> list[np.ndarray]:
    """Random sizes and numbers, all equal, at the ends, two clusters, one apart from all others, and almost equal ones."""
    rng = np.random.default_rng(seed)
    low, high = layer.description.ends
    most = min(layer.longest, longest or layer.longest)
    found = []
    for i in range(count):
        n = int(rng.integers(1, most + 1)) if i % 3 else min(most, int(rng.choice([1, 2, 3, most])))
        unit = rng.random(n)
        match i % 7:
            case 1:
                unit = np.full(n, rng.random())
            case 2:
                unit = rng.integers(0, 2, n).astype(float)
            case 3:
                unit = np.where(rng.random(n) < rng.random(), rng.random(), rng.random())
            case 4:
                unit = np.where(np.arange(n) == 0, rng.random(), rng.random())
            case 5:
                unit = np.clip(rng.random() - rng.exponential(10.0 ** -rng.integers(0, 12), n), 0, 1)
            case 6:
                unit = np.full(n, float(rng.choice([0.0, 1.0, 10.0 ** -rng.integers(0, 12)])))
        x = np.clip(low + (high - low) * unit, low, high)
        if layer.certificate.arithmetic == "float32":
            x = x.astype(np.float32).astype(np.float64)
            x = x[(x >= low) & (x <= high)]
        if len(x):
            found.append(x)
    return found
