"""What several test files draw from: hypothesis strategies for configs, models and layers with random weights everywhere."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import strategies as st

import onelayer as ol
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.heads import Gates, Maxima, Memory, Ridges, lattice_gates
from onelayer.layer.layer import GateLayer, MemoryLayer, gate_layer, memory_layer
from onelayer.model.config import LayerConfig
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.pipeline import certify

VARIANTS = [  # every combination of norm, residual and activation
    {"norm": norm, "residual": residual, "activation": activation}
    for norm in ("none", "pre", "post")
    for residual in (True, False)
    for activation in ("relu", "gelu", "silu")
]
OTHERS = [  # what can stand in the place of the softmax; of one-hot codes and three tokens a window of 1 hides some
    {"attention": "sigmoid"},
    {"attention": "linear"},
    {"attention": "sparsemax"},
    {"attention": "local", "window": 1},
]
# (kind of layer, layout) that go together
KINDS_AND_LAYOUTS = [("gates", "token"), ("gates", "wide"), ("gates", "heads"), ("memory", "token")]


@st.composite
def configs(draw, **fixed):
    """Small configs of every kind; `fixed` fields are kept."""
    size = st.integers(1, 4)
    tokens, features_in = draw(size), draw(size)
    code = fixed.get("code") or draw(st.sampled_from(["one-hot", "sinusoidal", "learned", "none"]))
    drawn = {
        "tokens": tokens,
        "features_in": features_in,
        "features_out": draw(size),
        "d_model": draw(st.integers(1, 5)) + (tokens + features_in if code == "one-hot" else 0),
        "heads": draw(size),
        "d_k": draw(size),
        "d_v": draw(size),
        "ffn_width": draw(size),
        "activation": draw(st.sampled_from(["relu", "gelu", "silu"])),
        "code": code,
        "anchor_tokens": draw(st.integers(0, 1)),
        "memory_tokens": draw(st.integers(0, 3)),
        "output_tokens": draw(st.integers(1, 2)),
        "residual": draw(st.booleans()),
        "norm": draw(st.sampled_from(["none", "pre", "post"])),
        "readout": draw(st.sampled_from(["position", "output", "mean"])),
        "projection_bias": draw(st.booleans()),
    }
    return LayerConfig(**(drawn | fixed))


def random_model(config: LayerConfig, seed: int = 0) -> SingleLayerTransformer:
    """A model none of whose weights is zero: biases, gains and normalisation are random too."""
    model = SingleLayerTransformer(config, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for t in [*model.parameters(), model.shift, model.scale]:
            t.copy_(torch.randn(t.shape, generator=generator, dtype=t.dtype))
    return model


def random_input(config: LayerConfig, batch: int = 3, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, config.tokens, config.features_in, generator=generator, dtype=torch.float64)


def arrays(model: SingleLayerTransformer) -> dict[str, np.ndarray]:
    return {name: t.detach().numpy() for name, t in model.state_dict().items()}


def plain_config(**changes) -> LayerConfig:
    """A small config with a bit of everything, for tests that vary one thing."""
    base = {
        "tokens": 3,
        "features_in": 2,
        "features_out": 2,
        "d_model": 7,
        "heads": 2,
        "d_k": 3,
        "d_v": 2,
        "ffn_width": 5,
        "anchor_tokens": 1,
        "output_tokens": 1,
        "projection_bias": True,
    }
    return LayerConfig(**(base | changes))


def random_layer(D: int, m: int, seed: int, sharp: float, kind: str) -> GateLayer | MemoryLayer:
    """Gates and maxima, or memory tokens and ridge gates, with random numbers everywhere; scores of size `sharp`."""
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(shape, generator=g, dtype=torch.float64)

    if kind == "gates":
        kept = torch.rand(6, D, generator=g) < 0.8
        gates = Gates(normal(6) * sharp, normal(6, D) / 3, kept)
        reach = torch.rand(2, D, generator=g) < 0.8
        reach[:, 0] = True
        maxima = Maxima(normal(2) * sharp, normal(2, D) / 3, reach)
        values, tops = normal(6, D + 2, m), normal(2, m)
        return gate_layer(normal(m), D, (gates, values), (maxima, tops), normal(D, m))
    memory = Memory(normal(7, D) * sharp, normal(7) * sharp, torch.zeros(7, dtype=torch.int64))
    ridges = Ridges(normal(3, D) * sharp, normal(3) * sharp)
    return memory_layer(normal(m), D, (memory, normal(7, m)), (ridges, normal(3, m)), normal(D, m))


def lattice_layer(counts, step, m=1, seed=0):
    """Full values on a lattice of gates that share their sharpness."""
    D = len(counts)
    gates = lattice_gates(list(counts), list(range(D)), D, step)
    g = torch.Generator().manual_seed(seed)
    values = torch.randn(len(gates), D + 2, m, generator=g, dtype=torch.float64)
    bias, linear = torch.randn(m, generator=g, dtype=torch.float64), torch.randn(D, m, generator=g, dtype=torch.float64)
    return gate_layer(bias, D, (gates, values), linear=linear)


def loud(layer, size, seed):
    """The layer with values of another size that cancel: pairs of heads with almost opposite values, and a large offset."""
    name = "gate_values" if hasattr(layer, "gate_values") else "memory_values"
    values = getattr(layer, name) * size
    values[1::2] = -values[: 2 * (len(values) // 2) : 2] * (1 + 1e-3)
    return replace(layer, **{name: values, "bias": layer.bias * size})


def built(layer, layout, m, D, side=(-1.0, 2.0)):
    """(model, places, target) of a layer with m outputs, each at a position of its own where the layout has positions."""
    about = {} if layout == "token" else {"output_shape": (m, 1)}
    target = ol.Target("; ".join(["x1"] * m), [side] * D, **about)
    places = (0,) if layout == "token" else outputs_of(target).tokens
    return assemble(layer, frame_of(target.domain), outputs_of(target), layout), places, target


def certified(target, layer, tolerance, layout="token"):
    """The certificate of a layer, assembled."""
    model = assemble(layer, frame_of(target.domain), outputs_of(target), layout)
    return certify(model, target, tolerance)
