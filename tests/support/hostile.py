"""Hostile cases: random layers × formulas near branch cuts and poles × boxes of any size and place, each from one integer."""

import copy
import math
from dataclasses import dataclass, replace

import numpy as np
import torch

import onelayer as ol
from cases import OTHERS
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.heads import Gates, Maxima, Memory, Ridges
from onelayer.layer.layer import GateLayer, MemoryLayer, gate_layer, memory_layer
from onelayer.model.transformer import SingleLayerTransformer

Layer = GateLayer | MemoryLayer
ANY = (-1e6, 1e6)
FORMULAS = [  # formula, where each variable may lie; boxes like to touch the ends
    ("sin(3*x1)", [ANY]), ("cos(1e3*x1)", [(-10, 10)]), ("exp(x1)", [(-30, 20)]), ("sqrt(x1)", [(0, 100)]),
    ("log(x1)", [(1e-9, 100)]), ("asin(x1)", [(-1, 1)]), ("acos(x1)", [(-1, 1)]), ("atan(1e3*x1)", [(-1, 1)]),
    ("tan(x1)", [(-1.5707, 1.5707)]), ("1/(x1+1e-3)", [(0, 10)]), ("x1**0.3", [(0, 10)]), ("erf(5*x1)", [(-2, 2)]),
    ("sigmoid(200*x1)", [(-1, 1)]), ("tanh(50*x1)", [(-1, 1)]), ("1e12*x1-1e12*x1", [ANY]),
    ("1e12*x1-999999999999*x1", [(-10, 10)]), ("(1e8+x1)-1e8", [(-10, 10)]), ("x1**7-x1", [(-2, 2)]),
    ("exp(-1/x1)", [(1e-3, 3)]), ("cosh(x1)-sinh(x1)", [(-5, 15)]), ("abs(x1)", [(-1, 1)]), ("x1**-2.5", [(1e-2, 5)]),
    ("sqrt(1-x1**2)", [(-1, 1)]), ("log(1+1e-9*x1)", [(0, 10)]), ("where(x1 < 0.3, x1, x1**2)", [(0, 1)]),
    ("3*x1+2", [ANY]), ("1e9*(x1+1)**2-1e9*x1**2", [(-3, 3)]), ("max(x1, 0.1)", [(-1, 1)]), ("7", [ANY]),
    ("sin(3*x1)*x2", [(-5, 5)] * 2), ("exp(x1*x2)", [(-3, 3)] * 2), ("1/(1.1-x1*x2)", [(-1, 1)] * 2),
    ("sqrt(x1+x2)", [(0, 10)] * 2), ("log(x1)*x2", [(1e-6, 5), (-5, 5)]), ("atan(x2/x1)", [(1e-3, 3), (-3, 3)]),
    ("x1**x2", [(1e-3, 4), (-3, 3)]), ("sin(x1)+sin(x2)", [ANY] * 2), ("1e9*x1*x2-1e9*x1*x2", [(-3, 3)] * 2),
    ("x1*x2; x1-x2**2", [(-2, 2)] * 2), ("sin(x1); 1e6*x2; 5", [(-5, 5)] * 2), ("tanh(5*(x1-x2))", [(-1, 1)] * 2),
    ("(sin(x1)+1e6)+(cos(x2)-1e6)", [(-4, 4)] * 2), ("acos(x1*x2)", [(-1, 1)] * 2),
    ("x1*x2*x3", [(-2, 2)] * 3), ("sin(x1)+x2*x3", [(-2, 2)] * 3), ("1/(1+x1**2+x2**2+x3**2)", [(-2, 2)] * 3),
]  # fmt: skip
MANY = [  # formulas of four and more variables, as above
    ("x1*x2*x3*log(x4)", [(1, 5)] * 4), ("sin(x1*x2)*x3 - x4", [(-2, 2)] * 4), ("1e6 + x1*x2*x3*x4", [(-1, 1)] * 4),
    ("x1*x2*(1/x3 - 1/x4)*x5", [(1, 5)] * 5), ("x1*tanh(x2*x3/(x4*x5))", [(0.5, 3)] * 5),
    ("x1*exp(-x2*x3/x4) + x5; x5*x1", [(0.5, 2)] * 5), ("1/(1 + (x1-x2)**2 + (x3-x4)**2 + x5**2)", [(-1, 1)] * 5),
    ("x1*exp(-x2*x3*x4/(x5*x6))", [(1, 3)] * 6), ("x1*(1 + x2*x3*cos(x4)/(x5*x6))", [(1, 3)] * 6),
    ("x1*x2*x3/((x4-x5)**2 + (x6-x7)**2 + 1)", [(0, 2)] * 7), ("sqrt(x1*x2 + x3*x4)*x5 - x6*x7", [(0.2, 2)] * 7),
]  # fmt: skip
SPECIAL = [  # functions with removable singularities, infinite slopes, cones and branch cuts; where they are special
    ("sinc(x1)", [ANY]), ("sinc(50*x1)*x2", [(-1, 1)] * 2), ("x1*sinc(x1*x2)**2", [(-3, 3)] * 2), ("expm1(x1)", [(-40, 20)]),
    ("1e9*expm1(1e-9*x1)", [(-3, 3)]), ("exprel(x1)", [(-40, 20)]), ("log1p(x1)", [(-0.999999, 10)]),
    ("log1p(x1)", [(-1e-9, 1e-9)]), ("1e9*log1p(1e-9*x1)", [(-3, 3)]), ("softplus(x1)", [(-800, 800)]),
    ("softplus(40*x1)-40*x1", [(-2, 2)]),
    ("cbrt(x1)", [(-8, 8)]), ("cbrt(x1*x2)", [(-1, 1)] * 2), ("cbrt(x1)**2 - x2", [(-1, 1)] * 2),
    ("atan2(x2, x1)", [(1e-9, 3), (-3, 3)]),
    ("atan2(x1, x2)", [(1e-3, 3), (-3, 3)]), ("hypot(x1, x2)", [(-1, 1)] * 2), ("hypot(x1, x2-x3)", [(-2, 2)] * 3),
    ("hypot(1e6*x1, x2)", [(-1, 1)] * 2), ("log2(x1)", [(1e-9, 64)]), ("log10(x1)*x2", [(1e-6, 5), (-5, 5)]),
    ("sqrt(x1*x2)", [(0, 1)] * 2), ("sqrt(x1)*cos(x2)", [(0, 2), (-3, 3)]), ("asin(x1*sin(x2))", [(0, 1), (0, 1.57)]),
    ("sqrt(x1**2 + x2**2 - 2*x1*x2*cos(x3))", [(0, 2), (0, 2), (0, 6)]), ("x1*log1p(x1-1)", [(1e-9, 2)]),
    ("abs(x1)**(2/3)", [(-1, 1)]), ("sqrt(1 - x1**2)*x2", [(-1, 1)] * 2), ("acos(x1)**2", [(-1, 1)]),
    ("sqrt(abs(x1-x2))", [(-1, 1)] * 2),
]  # fmt: skip
CONDITIONS = {1: ["{x} >= {c}"], 2: ["x1 + x2 <= {s}", "(x1-{a})**2 + (x2-{b})**2 <= {r}"]}


@dataclass(frozen=True)
class Case:
    """A model and what it is said to approximate. `poisoned`: some weight is not finite, nothing may be proved."""

    seed: int
    target: ol.Target
    layer: Layer | None  # None: any Transformer, not a constructed one
    tolerance: float
    poisoned: bool = False
    network: SingleLayerTransformer | None = None
    maker: str = "case"  # the function that makes it from its seed

    @property
    def model(self) -> SingleLayerTransformer:
        """The Transformer, a fresh copy."""
        if self.network is not None:
            return copy.deepcopy(self.network)
        assert self.layer is not None
        return assemble(self.layer, frame_of(self.target.domain), outputs_of(self.target))

    def __str__(self) -> str:
        ends = zip(self.target.domain.lower, self.target.domain.upper, strict=True)
        box = ", ".join(f"[{a!r}, {b!r}]" for a, b in ends)
        where = f" where {self.target.domain.within.text}" if self.target.domain.within else ""
        what = self.model.config if self.layer is None else f"{self.layer.units} units"
        return f"hostile.{self.maker}({self.seed}): {self.target.text} on {box}{where}, {what}"


def special(seed: int) -> Case:
    """The same with functions at the places where they are special."""
    return replace(case(seed, SPECIAL), maker="special")


def case(seed: int, formulas: list[tuple[str, list[tuple[float, float]]]] = FORMULAS) -> Case:
    """The case of a seed: one in ten is a layer that equals its target up to rounding, one in twenty is poisoned."""
    rng = np.random.default_rng(seed)
    tolerance = 10 ** rng.uniform(-16, 0)  # only decides how closely the engine works
    if rng.random() < 0.1:
        return (twin if rng.random() < 0.6 else cancelled)(seed, rng, tolerance)
    formula, limits = formulas[rng.integers(len(formulas))]
    domain = [_side(rng, a, b) for a, b in limits]
    target = ol.Target(formula, domain, within=_condition(rng, domain) if rng.random() < 0.1 else None)
    m = len(target.formula.outputs) if target.formula else 1
    layer = _layer(rng, len(limits), m)
    if rng.random() < 0.4:
        layer = _fitted(layer, target, rng)
    poisoned = rng.random() < 0.05
    return Case(seed, target, _poison(layer, rng) if poisoned else layer, tolerance, poisoned)


def one_head(seed: int) -> Case:
    """Memory tokens alone, in one to seven variables: sharp keys, huge values, nearly equal scores, most of them fitted."""
    rng = np.random.default_rng(seed)
    smooth = [one for one in FORMULAS if not any(word in one[0] for word in ("abs", "max", "where"))]
    chosen = MANY if rng.random() < 0.6 else smooth
    formula, limits = chosen[rng.integers(len(chosen))]
    D, domain = len(limits), [_side(rng, a, b) for a, b in limits]
    if rng.random() < 0.5:
        domain = [
            (a, b) if rng.random() < 0.3 else tuple(map(float, ends))
            for (a, b), ends in zip(domain, limits, strict=True)
        ]
    target = ol.Target(formula, domain)
    m, n = target.outputs, int(rng.integers(1, 14)) * (3 if seed % 4 == 0 else 1)
    sharp, size = 10 ** rng.uniform(-1, 2.5 if D < 4 else 1), 10 ** rng.uniform(-3, 3)
    keys, biases = sharp * rng.normal(size=(n, D)), sharp * rng.normal(size=n)
    if rng.random() < 0.2:  # nearly equal scores
        keys, biases = keys[:1] + 1e-9 * keys, biases[:1] + 1e-9 * biases
    if rng.random() < 0.2:  # scores far from 0
        keys, biases = keys + 1e3 * sharp, biases - 1e4
    values = size * rng.normal(size=(n, m)) * (1e9 if rng.random() < 0.1 else 1.0)
    memory = Memory(_tensor(keys), _tensor(biases), torch.zeros(n, dtype=torch.int64))
    linear = size * rng.normal(size=(D, m)) * (rng.random() < 0.5)
    layer: Layer = memory_layer(
        _tensor(size * rng.normal(size=m)), D, (memory, _tensor(values)), linear=_tensor(linear)
    )
    layer = _fitted(layer, target, rng) if rng.random() < 0.7 else layer
    some = np.asarray(target(target.domain.points(rng.random((50, D)))))
    return Case(seed, target, layer, 10 ** rng.uniform(-6, 0) * max(1e-12, float(np.abs(some).max())), maker="one_head")


def network(seed: int) -> Case:
    """Any single-layer Transformer with random weights: LayerNorm or none, all activations, mild to sharp."""
    rng = np.random.default_rng(seed)
    tolerance = 10 ** rng.uniform(-16, 0)
    formula, limits = FORMULAS[rng.integers(len(FORMULAS))]
    target = ol.Target(formula, [_side(rng, a, b) for a, b in limits])
    D, vector = target.dimension, rng.random() < 0.3
    choose = lambda *options: str(rng.choice(options))  # noqa: E731
    config = ol.LayerConfig(
        tokens=1 if vector else D,
        features_in=D if vector else 1,
        features_out=target.outputs,
        d_model=int(rng.integers(1, 9)),
        heads=int(rng.integers(1, 4)),
        d_k=int(rng.integers(1, 5)),
        d_v=int(rng.integers(1, 4)),
        ffn_width=int(rng.integers(1, 9)),
        activation=choose("relu", "gelu", "silu"),
        code=choose("learned", "sinusoidal"),
        anchor_tokens=int(rng.integers(0, 2)),
        output_tokens=1,
        residual=bool(rng.random() < 0.7),
        norm=choose("none", "pre", "post"),
        readout=choose("mean", "output"),
        projection_bias=bool(rng.random() < 0.5),
    )
    config = replace(config, causal=seed % 2 == 0 and config.readout == "mean", **[{}, *OTHERS][seed % 5])
    model = ol.SingleLayerTransformer(config, seed=seed % 2**31)
    frame = frame_of(target.domain)
    poisoned = rng.random() < 0.05
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(_tensor(rng.normal(size=tuple(weight.shape)) * 10 ** rng.uniform(-1, 0.5)))
        model.W_K.mul_(10 ** rng.uniform(-1, 3))
        model.W_R.mul_(10 ** rng.uniform(-3, 6))
        model.shift.copy_(_tensor(frame.shift).reshape(model.shift.shape))
        model.scale.copy_(_tensor(frame.scale).reshape(model.scale.shape))
        if poisoned:
            model.W_V.view(-1)[0] = float(rng.choice([math.nan, math.inf, -math.inf]))
    return Case(seed, target, None, tolerance, poisoned, model.eval(), "network")


def fused(seed: int) -> Case:
    """A constructed layer or a network, by turns, that torch's fused attention evaluates."""
    one = network(5 * (seed // 2)) if seed % 2 else case(seed)  # every fifth network has softmax attention
    config = replace(one.model.config, attention="fused")
    model = ol.SingleLayerTransformer(config)
    model.load_state_dict(one.model.state_dict())
    return replace(one, seed=seed, network=model.eval(), maker="fused")


def twin(seed: int, rng: np.random.Generator, tolerance: float) -> Case:
    """Ridge gates or a linear layer against their own formula: the error is rounding alone, however large the values."""
    low, side = float(rng.integers(-3, 4)) * 2.0 ** int(rng.integers(0, 20)), 2.0 ** int(rng.integers(-20, 4))
    shift = repr(low + side / 2)
    n = int(rng.integers(0, 6))
    a, b = rng.normal(size=n) * 10 ** rng.uniform(-1, 3), rng.normal(size=n) * 10 ** rng.uniform(-1, 2)
    c = rng.normal(size=n) * 10 ** rng.uniform(0, 9)
    slope, bias = (float(v) for v in rng.normal(size=2) * 10 ** rng.uniform(-3, 6))
    z = f"((x1-({shift}))/{side!r})"
    terms = [
        f"({v!r})*sigmoid(({k!r})*{z}+({o!r}))" for v, k, o in zip(c.tolist(), a.tolist(), b.tolist(), strict=True)
    ]
    target = ol.Target(" + ".join([f"({bias!r}) + ({slope!r})*{z}", *terms]), [(low, low + side)])
    ridges = Ridges(_tensor(a[:, None]), _tensor(b))
    layer = memory_layer(_tensor([bias]), 1, ridges=(ridges, _tensor(c[:, None])), linear=_tensor([[slope]]))
    return Case(seed, target, layer, tolerance)


def cancelled(seed: int, rng: np.random.Generator, tolerance: float) -> Case:
    """Equal gates whose large values sum to exactly 0, against a constant: the model's error is rounding alone."""
    D, n = int(rng.integers(1, 3)), int(rng.integers(3, 40))
    c = rng.integers(-(2**20), 2**20, size=n).astype(float) * 2.0 ** int(rng.integers(0, 20))
    c[-1] -= c.sum()
    sharpness, offsets = float(rng.normal() * 10 ** rng.uniform(0, 3)), rng.normal(size=D) / 3
    gates = Gates(torch.full((n,), sharpness).double(), _tensor(np.tile(offsets, (n, 1))), torch.ones(n, D) > 0)
    values = torch.zeros(n, D + 2, 1, dtype=torch.float64)
    values[:, 0, 0] = _tensor(c)
    layer = gate_layer(_tensor([3.0]), D, (gates, values))
    return Case(seed, ol.Target("3 + 0*x1" + " + 0*x2" * (D - 1), [(-1, 1)] * D), layer, tolerance)


def _tensor(values: object) -> torch.Tensor:
    return torch.tensor(np.array(values, dtype=np.float64))


def _side(rng: np.random.Generator, low: float, high: float) -> tuple[float, float]:
    """A side within the limits: of any size from 1e-12 of them up, anywhere or at one of the ends."""
    width = (high - low) * 10 ** (rng.uniform(-12, 0) if rng.random() < 0.5 else rng.uniform(-3, 0))
    place = rng.choice(["low", "high", "anywhere", "around 0"])
    start = {"low": low, "high": high - width, "anywhere": rng.uniform(low, high - width), "around 0": -width / 2}[
        place
    ]
    a = float(min(max(start, low), high))
    b = float(min(a + width, high))
    while not b - a > 4e-16 * abs(a) + 1e-280:
        a, b = max(low, a - 1e-15 * abs(a) - 1e-279), min(high, b + 1e-15 * abs(b) + 1e-279)
    return a, b


def _condition(rng: np.random.Generator, domain: list[tuple[float, float]]) -> str | None:
    if len(domain) not in CONDITIONS:
        return None
    (a, b), middle = domain[0], [(lo + hi) / 2 for lo, hi in domain]
    radius = min(hi - lo for lo, hi in domain) / 2
    text = str(rng.choice(CONDITIONS[len(domain)]))
    return text.format(
        x="x1", c=repr(a / 2 + b / 2), s=repr(sum(middle)), a=repr(middle[0]), b=repr(middle[-1]), r=repr(radius**2)
    )


def _layer(rng: np.random.Generator, D: int, m: int) -> Layer:
    """Gates with full values and maxima, or memory tokens and ridge gates; tame to very sharp; sometimes cancelling."""
    sharp, size = 10 ** rng.uniform(-1, 4 if D == 1 else 2), 10 ** rng.uniform(-4, 3)

    def normal(*shape: int) -> torch.Tensor:
        return _tensor(rng.normal(size=shape))

    if rng.random() < 0.5:
        n, k = int(rng.integers(0, 6)), int(rng.integers(0, 3))
        kept = torch.from_numpy(rng.random((n, D)) < 0.8)
        gates = Gates(sharp * normal(n), 0.4 * normal(n, D), kept)
        values = size * normal(n, D + 2, m)
        if rng.random() < 0.5:
            values[:, 1:] = 0
        if n > 1 and rng.random() < 0.3:
            values[1:2], gates.offsets[1:2], gates.sharpness[1:2] = (
                -1e9 * values[:1],
                gates.offsets[:1],
                gates.sharpness[:1],
            )
            values[0] *= 1e9
            gates.kept[1] = gates.kept[0]
        some = torch.from_numpy(rng.random((k, D)) < 0.8)
        some[:, 0] = True
        maxima = Maxima(sharp * normal(k).abs(), 0.4 * normal(k, D), some)
        return gate_layer(size * normal(m), D, (gates, values), (maxima, size * normal(k, m)), size * normal(D, m))
    n, k = int(rng.integers(1, 12)), int(rng.integers(0, 4))
    memory = Memory(sharp * normal(n, D), sharp * normal(n), torch.zeros(n, dtype=torch.int64))
    ridges = Ridges(sharp * normal(k, D), sharp * normal(k))
    values = size * normal(n, m)
    if rng.random() < 0.2:
        values = values * 1e9
    return memory_layer(size * normal(m), D, (memory, values), (ridges, size * normal(k, m)), size * normal(D, m))


def _fitted(layer: Layer, target: ol.Target, rng: np.random.Generator) -> Layer:
    """The same heads with values, linear part and bias by least squares, if f is finite: errors then are small."""
    x = target.domain.points(rng.random((300, target.dimension)))
    with np.errstate(all="ignore"):
        y = np.asarray(target(x)).reshape(len(x), -1)
    if not np.isfinite(y).all():
        return layer
    z = frame_of(target.domain)(torch.from_numpy(x))
    if isinstance(layer, MemoryLayer):
        columns = [torch.ones(len(z), 1), z, layer.memory.features(z)[:, 1:], layer.ridges.features(z)]
    else:
        columns = [torch.ones(len(z), 1), z, layer.gates.features(z, full=False), layer.maxima.features(z)]
    sizes = [c.shape[1] for c in columns]
    solution = np.linalg.lstsq(torch.cat(columns, dim=1).numpy(), y, rcond=1e-14)[0]
    bias, linear, first, second = torch.from_numpy(solution).split(sizes)
    common = {"bias": bias[0].contiguous(), "linear": linear}
    if isinstance(layer, MemoryLayer):
        first = torch.cat([torch.zeros(1, y.shape[1], dtype=torch.float64), first])
        return replace(layer, memory_values=first, ridge_values=second, **common)
    values = torch.zeros_like(layer.gate_values)
    values[:, 0] = first
    return replace(layer, gate_values=values, max_values=second, **common)


def _poison(layer: Layer, rng: np.random.Generator) -> Layer:
    """One number replaced by NaN or infinity."""
    bad = float(rng.choice([math.nan, math.inf, -math.inf]))
    places = {"bias": layer.bias, "linear": layer.linear}
    if isinstance(layer, MemoryLayer):
        places |= {"memory_values": layer.memory_values}
    elif len(layer.gates):
        places |= {"gate_values": layer.gate_values}
    name = str(rng.choice(sorted(places)))
    broken = places[name].clone()
    stored = torch.ones_like(broken, dtype=torch.bool)
    if name == "gate_values":
        stored[:, 1:-1] = layer.gates.kept[..., None]  # the value of a masked token is in no model
    at = int(rng.integers(broken.numel()))
    if not stored.view(-1)[at]:
        at = int(stored.view(-1).nonzero()[0])
    broken.view(-1)[at] = bad
    return replace(layer, **{name: broken})
