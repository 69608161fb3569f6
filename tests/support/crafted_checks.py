"""What is said about crafted layers, held against numbers that are proved: every kind of check is one function.

A check gets a layer and returns (whether anything was said that could be false, what of it is false). Nothing has slack: T is
the model's answer as it is, or a ball of the real function of its weights, f is a ball.
"""

import math
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from flint import arb, ctx

import onelayer as ol
from crafting import Crafted, below, deep
from onelayer.common.errors import InputError

Said = tuple[bool, list[str]]
SECONDS = 0.6
FACTS = {"method": "polished", "construction": "gates", "layout": "token", "units": 1, "total": 1.0}


def claimed(one: Crafted, bound: float, said: str) -> Said:
    """One bound on sup |T − f|."""
    if not math.isfinite(bound):
        return math.isnan(bound), ["a bound that is no number"] if math.isnan(bound) else []
    error, x = one.error()
    return True, [f"{said}: bound {bound!r} < error {error!r} at {x}"] if not error <= bound else []


def together(found: list[Said]) -> Said:
    return any(a for a, _ in found), [line for _, lines in found for line in lines]


def bounds(one: Crafted, rng: np.random.Generator) -> Said:
    """Both engines, before anything that was observed can withdraw what they say; `ol.certify` if they are not there."""
    try:
        from onelayer.common.budget import Budget
        from onelayer.proof.claim import Claim
        from onelayer.proof.decision import prove_by
    except ImportError:
        return certified(one, rng)
    error, found = one.error()[0], list[Said]()
    if not error:
        return False, []
    claim = Claim(one.target, float(np.clip(error * 10 ** rng.uniform(-4, 0), 1e-290, 1e290)))
    for method in ("analytic", "bisect") if rng.random() < (0.6 if one.model.W_1.any() else 0.2) else ("analytic",):
        proof = prove_by(method, one.model, claim, 0.0, Budget(SECONDS / 4, 2_000))
        found.append(claimed(one, math.inf if proof is None else proof.bound, method))
    return together(found)


def certified(one: Crafted, rng: np.random.Generator) -> Said:
    """`ol.certify`: the bound, the lower end, and a contradiction that it saw itself: one of its proofs was wrong then."""
    c = ol.certify(one.model, one.target, tolerance_near(one, rng), seconds=SECONDS, boxes=5_000)
    false = [f"certify contradicts itself: {a}" for a in c.assumptions if "contradicted" in a and "bound inf" not in a]
    if c.lower_point is not None:
        false += attained(one, c.lower, list(c.lower_point), "certify")
    return together([(bool(c.lower), false), claimed(one, c.bound, f"certify {c.verdict}")])


def tolerance_near(one: Crafted, rng: np.random.Generator) -> float:
    error = one.error()[0]
    return float(np.clip(error * 10 ** rng.uniform(-3, 1) if 0 < error < math.inf else 1e-6, 1e-280, 1e280))


def attained(one: Crafted, lower: float, x: list[float], said: str) -> list[str]:
    """A lower end that its own point does not show."""
    with ctx.workprec(600):
        gap = abs(one.real(x) - one.f(x))
        fine = not gap.is_finite() or gap.upper() >= arb(lower)
    return [] if fine else [f"{said}: lower end {lower!r}, but |T − f| = {gap} at {x}"]


def suprema(one: Crafted, rng: np.random.Generator) -> Said:
    """Both ends of the supremum."""
    s = ol.supremum(one.model, one.target, seconds=SECONDS, boxes=5_000, accuracy=0.05)
    false = [f"supremum: {s.lower!r} > {s.upper!r}"] if s.lower > s.upper else []
    false += [f"supremum contradicts itself: {a}" for a in s.assumptions if "contradicted" in a]
    false += attained(one, s.lower, list(s.point), "supremum") if s.point is not None else []
    return together([(bool(s.lower), false), claimed(one, s.upper, "supremum")])


def norms(one: Crafted, rng: np.random.Generator) -> Said:
    """The root mean square is at most the supremum, and the maximum at least every error."""
    p = math.inf if rng.random() < 0.5 else 2
    n = ol.norm(one.model, one.target, p=p, seconds=SECONDS, boxes=5_000)
    false = [f"norm: {n.lower!r} > {n.upper!r}"] if n.lower > n.upper else []
    if p == 2:
        return math.isfinite(n.upper), false
    error, x = real_error(one)
    if not error <= n.upper:
        false.append(f"norm: {n.upper!r} < {error!r} at {x}")
    return math.isfinite(n.upper), false


def real_error(one: Crafted) -> tuple[float, list[float]]:
    found, where = 0.0, [0.0]
    for x in one.points[: 0 if one.heavy else one.special + 4].tolist():
        with ctx.workprec(600):
            gap = abs(one.real(x) - one.f(x)).lower()
        if gap.is_finite() and gap > arb(found):
            found, where = below(gap), x
    return found, where


def secants(one: Crafted, i: int, with_f: bool) -> list[tuple[arb, list[float]]]:
    """Difference quotients of T, or of T − f, along coordinate i, in balls: far apart and very close together."""
    if one.heavy or one.model.config.heads > 16:
        return []
    low, high, single = one.target.domain.lower[i], one.target.domain.upper[i], one.model.W_E.dtype.itemsize == 4
    found = []
    with deep():
        for x in one.points[: one.special + 3].tolist():
            for width in ((high - low) / 2, (high - low) * 2.0**-20, (high - low) * 2.0 ** -(22 if single else 40)):
                y = list(x)
                y[i] = x[i] + width if x[i] + width <= high else x[i] - width
                if not low <= y[i] <= high or y[i] == x[i]:
                    continue
                a, b = one.real(x), one.real(y)
                with ctx.workprec(2000):
                    slope = ((b - one.f(y)) - (a - one.f(x)) if with_f else b - a) / (arb(y[i]) - arb(x[i]))
                    if slope.is_finite():
                        found.append((slope, x))
    return found


def slopes(one: Crafted, rng: np.random.Generator) -> Said:
    """Bounds on slopes of T − f, and the ranges of slopes."""
    i = int(rng.integers(one.target.dimension))
    t = float(10 ** rng.uniform(-13, 2))
    c = ol.certify(one.model, one.target, 1e250, slope_tolerance=t, seconds=SECONDS, boxes=5_000)
    if c.slope is None or not math.isfinite(c.slope.bound):
        return False, []
    steeper = [(s, x) for s, x in secants(one, i, True) if abs(s) > arb(c.slope.bound)]
    false = [f"slopes of T − f at most {c.slope.bound!r}, but {s} at {x}" for s, x in steeper]
    return True, false[:1]


def approximation(one: Crafted, bound: float | None = None) -> ol.Approximation:
    """The layer with a certificate; with a `bound` one that claims this much, whatever is true."""
    from onelayer.layer.facts import Facts

    c = ol.certify(one.model, one.target, 1.0 if bound is None else bound, seconds=0.05, boxes=1)
    if bound is not None:
        fields = {
            "bound": bound,
            "tolerance": bound,
            "lower": 0.0,
            "lower_point": None,
            "observed": 0.0,
            "witness": None,
        }
        c = replace(c, method="bisect", **fields)
    facts = Facts(**FACTS, heads=(("gate", one.model.config.heads),), places=tuple(range(one.model.config.places)))
    return ol.Approximation.of(one.model, one.target, c, facts)


def properties(one: Crafted, rng: np.random.Generator) -> Said:
    """Ranges of values and slopes, and sentences that a value or a secant contradicts."""
    a, i, false, said = approximation(one), int(rng.integers(one.target.dimension)), list[str](), False
    if one.heavy:
        return False, []
    values = [(one.real(x), x) for x in one.points[: one.special + 4].tolist()]
    values = [(v, x) for v, x in values if v.is_finite()]
    found = a.range(seconds=SECONDS)
    for e in getattr(found, "enclosures", found):
        said |= math.isfinite(e.low) or math.isfinite(e.high)
        false += [f"range {e}, but T = {v} at {x}" for v, x in values if v < arb(e.low) or v > arb(e.high)][:1]
    name = one.target.domain.names[i]
    v, x = max(values, key=lambda pair: float(pair[0].lower()), default=(None, None))
    wrong = []
    if v is not None and abs(v) < arb(10) ** 300:
        wrong.append((f"T <= {number(below(v.lower()) - abs(below(v.lower())) * 2.0**-30)}", v, x))
        w, y = min(values, key=lambda pair: float(pair[0].upper()))
        wrong.append((f"T >= {number(-below(-w.upper()) + abs(float(w.upper())) * 2.0**-30)}", w, y))
    secant = secants(one, i, False)
    if secant:
        s, y = max(secant, key=lambda pair: float(abs(pair[0]).lower()))
        steepest = below(abs(s).lower())
        if 1e-300 < steepest < 1e300:
            wrong.append((f"Lipschitz {number(steepest * (1 - 2.0**-30))} in {name}", s, y))
        wrong += [(f"increasing in {name}", s, y) for s, y in secant if s < 0][:1]
        wrong += [(f"decreasing in {name}", s, y) for s, y in secant if s > 0][:1]
    for text, value, at in wrong:
        j = ol.prove(a, text, seconds=SECONDS / 2)
        said |= j.verdict != "UNDECIDED"
        false += [f"{text!r} is PROVED, but {value} at {at}"] if j.verdict == "PROVED" else []
    return said, false


def number(value: float) -> str:
    return f"{value!r}" if value >= 0 else f"-{-value!r}"


def checked(one: Crafted, rng: np.random.Generator) -> Said:
    """The checker does not say VALID to a claim below an error that is proved."""
    error, x = one.error()
    if not error > 0:
        return False, []
    bound = float(min(error * (0.9 if rng.random() < 0.6 else 10 ** -rng.uniform(0, 6)), 1e280))
    if not 0 < bound < error:
        return False, []
    with tempfile.TemporaryDirectory() as folder:
        a = approximation(one, bound)
        a.save(Path(folder) / "a")
        v = ol.check(Path(folder) / "a", 3.0)
    false = [f"checker: VALID with bound {bound!r} < error {error!r} at {x}"] if v.verdict == "VALID" else []
    return v.verdict in ("VALID", "INVALID"), false


def circuits(one: Crafted, rng: np.random.Generator) -> Said:
    """The effect of ablating a head or a unit, against T with and without it at points."""
    if one.model.config.heads > 8 or one.model.config.ffn_width > 8 or one.heavy:
        return False, []
    found, false = approximation(one).circuit(seconds=1.5, accuracy=0.5), list[str]()
    try:
        from onelayer.proof.circuit.graph import nodes_of, without
    except ImportError:
        return False, []
    for node, about in zip(nodes_of(one.model), [*found], strict=False):
        about = found[about] if isinstance(about, str) else about
        ablated = without(one.model, node)
        worst, x = 0.0, None
        for at in one.points[: one.special + 2].tolist():
            gap = abs(one.real(at) - Crafted(0, (), ablated, one.target, one.points).real(at)).lower()
            if gap.is_finite() and gap > arb(worst):
                worst, x = below(gap), at
        upper = getattr(about, "upper", math.inf)
        if not worst <= upper:
            false.append(f"circuit: without {node} at most {upper!r}, but {worst!r} at {x}")
    return True, false


def quick(one: Crafted, rng: np.random.Generator) -> Said:
    """Other programs for the same layer: what they answer, against the bound that they state."""
    c = ol.certify(one.model, one.target, tolerance_near(one, rng), seconds=SECONDS, boxes=5_000)
    if not math.isfinite(c.bound):
        return False, []
    a, said, false = replace(approximation(one), certificate=c), False, list[str]()
    for attention in ("linear", "auto", "adaptive", "fused"):
        try:
            program = a.fast(attention)
        except InputError:
            continue
        bound = program.bound
        if not math.isfinite(bound):
            continue
        said = True
        T = np.asarray(program(one.points)).astype(np.float64).reshape(-1)
        for at in np.argsort(-np.abs(T - one.floats()))[:3].tolist():
            x = one.points[at].tolist()
            with ctx.workprec(400):
                gap = abs(arb(float(T[at])) - one.f(x)).lower()
            if gap > arb(bound):
                false.append(f"fast({attention!r}): bound {bound!r}, but |T − f| = {gap} at {x}")
    return said, false


def overflow(one: Crafted, rng: np.random.Generator) -> Said:
    """Whether numbers may overflow, for the same layer with biases in all projections, of any size."""
    try:
        from onelayer.layer.arithmetic import arithmetic_of
        from onelayer.proof.decision import cannot_overflow, edge_of
    except ImportError:
        return False, []
    model, single = with_biases(one.model, rng), one.model.W_E.dtype.itemsize == 4
    if not cannot_overflow(model, edge_of(model, one.target), arithmetic_of(one.model.W_E.dtype)):
        return False, []
    T = replace(one, model=model, known={}).answers(one.points)
    bad = one.points[~np.isfinite(T)]
    return True, [f"cannot_overflow, but T is not finite at {bad[0]} ({single=})"] if len(bad) else []


def with_biases(model: ol.SingleLayerTransformer, rng: np.random.Generator) -> ol.SingleLayerTransformer:
    """With biases in all projections, some of them near overflow; what is behind the heads may make them small again."""
    import torch

    top = 127.9 if model.W_E.dtype.itemsize == 4 else 1023.9
    found = ol.SingleLayerTransformer(replace(model.config, projection_bias=True), dtype=model.W_E.dtype)
    found.load_state_dict(model.state_dict(), strict=False)
    with torch.no_grad():
        for name, t in found.state_dict().items():
            if name in ("b_Q", "b_K", "b_V", "b_O"):
                size = 2.0 ** (top * float(rng.choice([0.0, 0.5, 0.97, 1.0, rng.random()])))
                t.copy_(torch.tensor(size * rng.choice([-1.0, 0.0, 1.0], size=tuple(t.shape))))
    return found.eval()


CHECKS: dict[str, Callable[[Crafted, np.random.Generator], Said]] = {
    "bounds": bounds, "certify": certified, "supremum": suprema, "norm": norms, "slopes": slopes, "prove": properties,
    "checker": checked, "circuit": circuits, "fast": quick, "overflow": overflow,
}  # fmt: skip
