"""Formulas with structure: kinks and squares behind tiny and huge factors, for both ends of suprema and of norms.

The truth needs no other reading of the formula: a factor 2^k in front is a factor 2^k of every norm, balls of f at points are
below the supremum, and balls of f on small boxes are below the root mean square.
"""

import itertools
import math

import numpy as np
from flint import arb, ctx

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.formula import enclose, interval

SHAPES = (
    "abs({x})", "max({x}, {y})", "abs({x})*(1 + 1e-9*sin({x}))", "{x}", "1", "1 + {x}", "sin({x})", "abs({x} - 0.3*{y})",
    "min({x}, {y}) - {x}", "abs(abs({x}) - 0.25)", "max({x}, 0) - max(-{x}, 0)", "sqrt(abs({x}))", "exp({x})*abs({y})",
    "{x}**2", "where({x} > 0, {x}, 0)", "abs({x}) + abs({y})", "max(0, 1 - abs(1e6*({x} - 0.1)))",
)  # fmt: skip
CELLS = 16


def formula(rng: np.random.Generator) -> tuple[str, list[tuple[float, float]]]:
    """Factors within factors around a kink, on a box that may be huge or tiny: what is inside may vanish on its way."""
    D, reach, huge = int(rng.integers(1, 3)), int(rng.choice([0, 0, 0, 20, 149])), rng.random() < 0.4
    size = 10.0 ** int(rng.choice([0, 0, 0, -reach, reach, reach // 2]))
    size = 10.0 ** int(rng.integers(80, 150)) if huge else size
    centre = 0.0 if rng.random() < 0.6 else size * float(rng.choice([0.5, 0.25]))
    inner = 10.0 ** int(rng.integers(50, 150) if huge else rng.integers(-reach - 1, reach + 1))
    x = f"{inner!r}*x1" if rng.random() < 0.7 else f"{inner!r}*x1*(1 + 1e-9*sin(x1))"
    y = f"x{D}" if rng.random() < 0.5 else f"{inner!r}*x{D}"
    text = str(rng.choice(SHAPES)).format(x=f"({x})", y=f"({y})")
    for _ in range(2 if huge else int(rng.integers(0, 4))):
        k = -int(rng.choice([0, 1, 20, 100, 170, 290])) if rng.random() < 0.8 else int(rng.integers(0, 200))
        k = -int(rng.integers(120, 240)) if huge else k
        text = f"{10.0**k!r}*({text})" + (
            f" + {10.0 ** int(rng.integers(-300, -20))!r}*x1" if rng.random() < 0.2 else ""
        )
    missing = [f"0*x{i + 1}" for i in range(D) if f"x{i + 1}" not in text]
    return " + ".join([text, *missing]), [(centre - size, centre + size)] * D


def at(f: ol.Target, x: list) -> arb:
    with ctx.workprec(400):
        found = enclose(f.formula, x, prec=400)[0]
        return found.lo.union(found.hi) if found.is_finite() else arb("nan")


def attack(seed: int, seconds: float = 0.5) -> tuple[bool, list[str]]:
    """(whether an end above 0 or below ∞ was given, what is false)."""
    rng = np.random.default_rng(seed)
    text, domain = formula(rng)
    try:
        f, other = ol.Target(text, domain), "0"
    except InputError:  # not finite everywhere
        return False, []
    worst = least = arb(0)
    for u in [[a, b] for a in (0.0, 0.5, 1.0, float(rng.random())) for b in (0.0, 0.5, 1.0, float(rng.random()))]:
        value = abs(at(f, [lo + (hi - lo) * v for v, (lo, hi) in zip(u, domain, strict=False)]))
        if value.is_finite() and value.lower() > worst:
            worst = value.lower()
    false, said = list[str](), False
    s = ol.supremum(text, other, domain=domain, seconds=seconds, boxes=5_000)
    said |= math.isfinite(s.upper)
    if arb(s.upper) < worst or s.lower > s.upper:
        false.append(f"supremum of {text} on {domain}: [{s.lower!r}, {s.upper!r}], but {worst}")
    if arb(s.lower) > worst and s.point is not None and abs(at(f, list(s.point))).upper() < arb(s.lower):
        false.append(f"supremum of {text} on {domain}: lower end {s.lower!r} at {s.point}")
    n = ol.norm(text, other, domain=domain, seconds=seconds, boxes=5_000)
    said |= math.isfinite(n.upper)
    if len(domain) == 1:
        least = root_mean_square(f, domain[0])
    if n.lower > n.upper or arb(n.upper) < least or n.lower > s.upper:
        false.append(
            f"norm of {text} on {domain}: [{n.lower!r}, {n.upper!r}], but at least {least}, at most {s.upper!r}"
        )
    return said, false


def root_mean_square(f: ol.Target, side: tuple[float, float]) -> arb:
    """A lower bound: the smallest |f| of every cell."""
    total, (a, b) = arb(0), side
    with ctx.workprec(400):
        ends = [arb(a) + (arb(b) - arb(a)) * i / CELLS for i in range(CELLS + 1)]
        for low, high in itertools.pairwise(ends):
            middle, radius = (low + high) / 2, (high - low) / 2
            found = enclose_on(f, middle, radius)
            total += found * found / CELLS
        return total.sqrt().lower() if total > 0 else arb(0)


def enclose_on(f: ol.Target, middle: arb, radius: arb) -> arb:
    """A lower bound on |f| on a small box."""
    low, high = (float(middle - radius), float(middle + radius))
    low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
    found = enclose(f.formula, [interval(low, high)], prec=400)[0]
    if not found.is_finite():
        return arb(0)
    return found.lo.union(found.hi).abs_lower()
