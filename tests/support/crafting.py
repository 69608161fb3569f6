"""Crafted layers: weights with structure, each from one integer, for `soundness.py --cases crafted`.

Random weights never cancel, are never masked by a hair and never vanish on their way. Here motifs (`crafted_motifs`) are drawn
that do, powers of two are moved between tensors up to the range of floats (`crafted_gauges`), biases, norms, activations and
attentions are changed, and the target is what a simple reading would take the layer for, or that without one of its parts.
"""

import contextlib
import re
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from flint import arb, ctx

import onelayer as ol
import onelayer.proof.witness as balls
from crafted_gauges import transformed
from crafted_motifs import MOTIFS, WEIGHTS
from crafted_sketch import Sketch, corners, model_of
from onelayer.formula import enclose

SIDES = {1: 0.5, 2: 0.5, 3: 0.5}
MOST_BALLS = 800  # tokens times heads: balls of larger layers take too long
DEEP = 2600  # bits where numbers are extreme


@dataclass(frozen=True)
class Crafted:
    """A layer, what it is compared with, and points where something happens."""

    seed: int
    motifs: tuple[str, ...]
    model: ol.SingleLayerTransformer
    target: ol.Target
    points: np.ndarray  # [point, D], numbers of the layer's dtype
    changes: tuple[str, ...] = ()
    known: dict = field(default_factory=dict, compare=False, repr=False)

    def __str__(self) -> str:
        c = self.model.config
        what = f"{self.model.W_E.dtype}, {c.heads} heads, {c.all_tokens} tokens, {c.ffn_width} units"
        text = self.target.text if len(self.target.text) < 300 else self.target.text[:300] + "…"
        ends = list(zip(self.target.domain.lower, self.target.domain.upper, strict=True))
        return f"crafted {self.seed} ({', '.join((*self.motifs, *self.changes))}; {what}): {text} on {ends}"

    @property
    def heavy(self) -> bool:
        return self.model.config.heads * self.model.config.all_tokens > MOST_BALLS

    def answers(self, x: np.ndarray) -> np.ndarray:
        """What the model computes, [point]."""
        c = self.model.config
        given = torch.from_numpy(x).to(self.model.W_E.dtype).reshape(len(x), c.tokens, c.features_in)
        with torch.no_grad():
            return np.concatenate([self.model(part).flatten(1).double().numpy()[:, 0] for part in given.split(64)])

    def real(self, x: list[float]) -> arb:
        """T as a ball."""
        key = tuple(x)
        if key not in self.known:
            self.known[key] = real_value(self.model, x)
        return self.known[key]

    def f(self, x: list[float]) -> arb:
        with ctx.workprec(400):
            found = enclose(self.target.formula, x, prec=400)[0]
            return found.lo.union(found.hi) if found.is_finite() else arb("nan")

    def floats(self) -> np.ndarray:
        """f at the points, in floats."""
        with np.errstate(all="ignore"):
            return np.asarray(self.target(self.points)).reshape(-1)

    def error(self) -> tuple[float, tuple[float, ...]]:
        """(a proved lower bound on sup |T − f|, T computed or real, where): no slack."""
        worst, where = 0.0, tuple(self.points[0])
        T = self.answers(self.points)
        with np.errstate(all="ignore"):
            gaps = np.abs(T - self.floats())
        gaps[~np.isfinite(T)] = np.inf
        for at in np.argsort(-np.nan_to_num(gaps, nan=-1.0, posinf=1e308))[:4].tolist():
            if not self.f(self.points[at].tolist()).is_finite():
                continue
            if not np.isfinite(T[at]):
                return np.inf, tuple(self.points[at].tolist())
            worst, where = self._worse(arb(float(T[at])), at, worst, where)
        for at in range(
            0 if self.heavy else min(len(self.points), 3 if self.model.config.heads > 16 else self.special + 3)
        ):
            worst, where = self._worse(self.real(self.points[at].tolist()), at, worst, where)
        return worst, where

    @property
    def special(self) -> int:
        """How many of the points come first because something happens there."""
        return self.known.get("special", 8)

    def _worse(self, T: arb, at: int, worst: float, where: tuple) -> tuple[float, tuple]:
        x = self.points[at].tolist()
        with ctx.workprec(400):
            gap = abs(T - self.f(x)).lower()
        if gap.is_finite() and gap > arb(worst):
            return below(gap), tuple(x)
        return worst, where


def below(value: arb) -> float:
    """A float that is at most this number."""
    nearest = float(value)
    return float(np.nextafter(nearest, -np.inf)) if arb(nearest) > value else nearest


@contextlib.contextmanager
def deep(bits: int = DEEP):
    """Balls of so many bits."""
    before, balls.PRECISION = balls.PRECISION, bits
    try:
        yield
    finally:
        balls.PRECISION = before


def real_value(model: ol.SingleLayerTransformer, x: list[float]) -> arb:
    """The real function of the stored weights at a point, with bits enough for numbers of any size."""
    found = balls.in_balls(model, x)[0][0]
    if not (found.is_finite() and found.rel_accuracy_bits() > 60) and model.config.heads < 17:
        with deep():
            found = balls.in_balls(model, x)[0][0]
    return found


def crafted(seed: int, only: str = "") -> Crafted:
    """The layer of a seed; of one motif alone, if it is named."""
    rng = np.random.default_rng(seed)
    single, residual, D = bool(rng.random() < 0.45), bool(rng.random() < 0.85), 1 + int(rng.random() < 0.2)
    if rng.random() < 0.06:
        single = False
    small = rng.random() < 0.2
    edge = float(2.0 ** -int(rng.integers(2, 25))) if small else 0.5
    s = Sketch(rng, D, single, residual, edge)
    composed = rng.random() < 0.05 if not only else only == "composed"
    if composed:
        s.residual, names = False, ["composed"]
        outer(s)
    else:
        count = int(rng.choice([1, 1, 1, 1, 2, 3]))
        names = [str(n) for n in rng.choice(list(MOTIFS), size=count, p=np.array(WEIGHTS) / sum(WEIGHTS))]
        names = [only] if only else names
        if rng.random() < 0.3 and "x lane" not in names:
            names.insert(0, "x lane")
        for name in names:
            MOTIFS[name](s)
    reach = 90 if single else 900
    amplitude = 2.0 ** (0 if composed or rng.random() < 0.6 else int(rng.uniform(-reach, reach / 4)))
    if sum(s.crowd.values()) > 500:
        s.heads = [(seen, min(n, 4)) for seen, n in s.heads]
    shape, arrays = s.arrays(amplitude)
    shift = 0.0 if rng.random() < 0.6 else float(s.pick(0.5, 1.0, -2.0)) * edge * 2
    arrays["shift"], arrays["scale"] = np.full((1, D), shift), np.full((1, D), 1.0)
    if rng.random() < (0.6 if "tiny scores" in names else 0.1):  # x̂ is huge, or tiny, and W_E undoes it
        k = int(rng.uniform(-0.2, 0.49) * s.top)
        arrays["scale"], arrays["W_E"] = np.ldexp(arrays["scale"], k), np.ldexp(arrays["W_E"], -k)
    changes = list[str]()
    options = {"tokens": 1, "features_in": D, "features_out": 1, "code": "none", "residual": s.residual}
    if rng.random() < 0.1 and not composed:
        changes += other(rng, options, arrays, shape["heads"])
    times = 0 if composed else int(rng.choice([0, 0, 0, 1, 1, 2, 3, 5]))
    plain = options.get("norm", "none") == "none" and options.get("activation", "relu") == "relu"
    if times and plain and options.get("attention", "softmax") in ("softmax", "fused"):
        changes.append(f"powers {transformed(rng, arrays, shape['heads'], s.residual, True, single, times)}")
    if rng.random() < 0.35:
        options["readout"] = "mean"
    with np.errstate(all="ignore"):
        arrays["W_E"] = arrays["W_E"] if np.isfinite(arrays["W_E"]).all() else np.nan_to_num(arrays["W_E"])
    model = model_of(ol.LayerConfig(**options, **shape), arrays, single)
    domain = [(shift - edge, shift + edge)] * D
    points = points_of(rng, s, shift, edge, single)
    terms = list(s.terms)
    if terms and not composed and rng.random() < 0.3:
        dropped = int(rng.integers(len(terms)))
        changes.append(f"target without {terms.pop(dropped)[:40]}")
    constant = float(s.constant) if rng.random() < 0.9 else 0.0
    base = " + ".join([*terms, *([f"({constant!r})"] if constant or not terms else [])])
    text = f"({amplitude!r})*({base})" if amplitude != 1.0 else base
    text = re.sub(r"z(\d)", rf"(x\1-({shift!r}))", text)
    one = Crafted(seed, tuple(names), model, ol.Target(full(text, D), domain), points, tuple(changes))
    one.known["special"] = min(len(s.probes) + 3, 10)
    if (
        rng.random() < 0.8
        and not {"composed", "hat"} & {*names}
        and shape["heads"] * (shape["memory_tokens"] + 1) < 2500
    ):
        text = lifted(one, text, [shift] * D)
        one = replace(one, target=ol.Target(full(text, D), domain))
    return (
        one if composed or rng.random() < (0.1 if "hat" in names else 0.5) else tailed(one, rng, text, shift, edge, D)
    )


def lifted(one: Crafted, text: str, centre: list[float]) -> str:
    """The formula and a constant, so that it is right in the middle: only what moves or is rounded makes the error then."""
    with ctx.workprec(1000):
        gap = one.real(centre) - one.f(centre)
    if not gap.is_finite() or gap.contains(arb(0)) or not 1e-300 < abs(float(gap)) < 1e300:
        return text
    return f"{text} + ({float(gap)!r})"


def full(text: str, D: int) -> str:
    """With all variables."""
    return " + ".join([text, *(f"0*x{i + 1}" for i in range(D) if f"x{i + 1}" not in text)])


def tailed(one: Crafted, rng: np.random.Generator, text: str, shift: float, edge: float, D: int) -> Crafted:
    """With something small added to the target, smaller than the error that was seen, or as small as it likes."""
    error, _ = one.error()
    if not (0 < error < 1e250):
        return one
    size = max(error * 2.0 ** -float(rng.uniform(2, 45)), 1e-290)
    z = f"((x1-({shift!r}))/{edge!r})"
    bent = bool(one.model.W_1.any()) and rng.random() < 0.7
    tail = str(
        rng.choice(["{t}*abs({z}-0.25)", "{t}*abs({z}-0.25) + {t}*sin({z})"] if bent else ["{t}*{z}", "{t}*sin({z})"])
    )
    target = ol.Target(full(f"{text} + {tail.format(t=repr(float(f'{size:.2g}')), z=z)}", D), one_sides(one))
    return replace(one, target=target, known={"special": one.special})


def one_sides(one: Crafted) -> list[tuple[float, float]]:
    return list(zip(one.target.domain.lower, one.target.domain.upper, strict=True))


def outer(s: Sketch) -> None:
    """|a − b| or max(a − b, 0) of a sum a of sigmoids that a lane of the stream holds; constants may come to it, too."""
    t, u, lane, n = s.token(), s.token(), s.out, int(s.rng.integers(1, 4))
    inner = list[str]()
    for _ in range(n):
        i, k, h = int(s.rng.integers(s.D)), float(s.pick(1.0, 1.0, 2.0)), s.head({0, t})
        s["W_K", h, s.x[i], 0] = k
        s.value(h, s.one, 1.0, lane)
        inner.append(f"sigmoid({k!r}*z{i + 1})")
    for _ in range(s.pick(0, 1, 1, 2)):
        s.value(s.head({u}), s.marks[u], s.pick(1.0, s.power(-8, -1)), lane)
    b, weight, bent = float(s.pick(0.5, 1.0, n / 2)), s.pick(1.0, 2.0), s.chance(0.6)
    for offset, factor in ((-b, 2 * weight), (1.0, -weight)) if bent else ((-b, weight),):
        j = s.unit(offset)
        s["W_1", lane, j], s["W_2", j, s.out] = 1.0, factor
    s["b_R", 0] = weight * (1 + b) if bent else 0.0
    total = f"{' + '.join(inner)} - {b!r}"
    s.terms.append(f"{weight!r}*abs({total})" if bent else f"{weight!r}*max({total}, 0)")


def other(rng: np.random.Generator, options: dict, arrays: dict, heads: int) -> list[str]:
    """Another norm, activation or attention, and biases in all projections, some of them near overflow."""
    found = list[str]()
    if rng.random() < 0.3:
        options["norm"] = str(rng.choice(["pre", "post"]))
    if rng.random() < 0.3:
        options["activation"] = str(rng.choice(["gelu", "silu"]))
    if rng.random() < 0.4:
        options["attention"] = str(rng.choice(["fused", "sigmoid", "linear", "sparsemax"]))
    if rng.random() < 0.5:
        options["projection_bias"] = True
        for name in "QKV":
            size = 2.0 ** -float(rng.uniform(-4, 40))
            arrays[f"b_{name}"] = size * rng.normal(size=(heads, arrays[f"W_{name}"].shape[2])) * (rng.random() < 0.6)
        arrays["b_O"] = rng.normal(size=arrays["W_E"].shape[1]) * (rng.random() < 0.3)
    found = [f"{k} {v}" for k, v in options.items() if k in ("norm", "activation", "attention", "projection_bias")]
    return found


def points_of(rng: np.random.Generator, s: Sketch, shift: float, edge: float, single: bool) -> np.ndarray:
    """Points where something happens, corners, a grid and random ones, as numbers of the dtype."""
    D = s.D
    unit = [*s.probes[:8], *corners(D), *rng.uniform(-1, 1, size=(120, D)).tolist()]
    unit += [[v] * D for v in np.linspace(-1, 1, 33).tolist()]
    x = shift + edge * np.clip(np.array(unit), -1, 1)
    x = x.astype(np.float32).astype(np.float64) if single else x
    x = np.clip(x, shift - edge, shift + edge)
    return x[:12] if sum(s.crowd.values()) * sum(n for _, n in s.heads) > 2000 else x
