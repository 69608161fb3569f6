"""Layers that are difficult to evaluate: sharp gates, and memory tokens whose scores tie, rise, vanish or lie far apart."""

import itertools
from collections.abc import Iterator

import numpy as np
import torch

import onelayer as ol
from onelayer.layer.assemble import assemble, frame_of, outputs_of
from onelayer.layer.heads import Gates, Maxima, Memory
from onelayer.layer.layer import GateLayer, MemoryLayer, gate_layer, memory_layer
from onelayer.model.transformer import SingleLayerTransformer

DEPTH = {torch.float32: 110.0, torch.float64: 760.0}  # exp of minus this is 0
SIDE = (-1.0, 2.0)
AROUND_BLOCKS = (2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1025, 2048)  # numbers of tokens


def difficult_layers(dtype: torch.dtype, seed: int) -> Iterator[tuple[str, GateLayer | MemoryLayer]]:
    """Endless: gates and memory tokens by turns. Heads of memory tokens are four wide, which all kernels take."""
    for number in itertools.count(seed):
        rng = np.random.default_rng(number)
        sharp = float(rng.choice([1.0, 30.0, 1e3, 1e4]))
        if number % 4 == 0:
            yield gates(int(rng.choice([1, 4])), sharp, number)
        else:
            yield memory_tokens(int(rng.choice(AROUND_BLOCKS)), sharp, DEPTH[dtype], number)


def gates(outputs: int, sharp: float, seed: int) -> tuple[str, GateLayer]:
    """Gates and smooth maxima of any sharpness up to this, in two variables."""
    rng = np.random.default_rng(seed)
    normal = lambda *shape: torch.from_numpy(rng.normal(size=shape))  # noqa: E731
    some = Gates(normal(6) * sharp, normal(6, 2) / 3, torch.from_numpy(rng.random((6, 2)) < 0.8))
    maxima = Maxima(normal(2) * sharp, normal(2, 2) / 3, torch.tensor([[True, True], [True, rng.random() < 0.8]]))
    heads = ((some, normal(6, 4, outputs)), (maxima, normal(2, outputs)))
    return f"gates, sharpness {sharp:g}, {seed}", gate_layer(normal(outputs), 2, *heads, normal(2, outputs))


def memory_tokens(count: int, sharp: float, depth: float, seed: int) -> tuple[str, MemoryLayer]:
    """Memory tokens in three variables with four outputs."""
    rng = np.random.default_rng(seed)
    kind = rng.choice(["random", "rising", "ties", "close", "vanishing", "one above all"])
    keys, biases = rng.normal(size=(count, 3)) * sharp, rng.normal(size=count) * sharp
    if kind == "rising":  # every block has the largest score so far
        biases = np.sort(biases)
        keys = keys * 1e-3
    elif kind == "ties":
        keys, biases = np.rint(keys[rng.integers(0, min(count, 3), count)]), np.zeros(count)
    elif kind == "close":
        biases, keys = 1 + np.arange(count) * 2.0**-20, np.ones((count, 3))
    elif kind == "vanishing":
        biases, keys = -depth * rng.random(count), rng.normal(size=(count, 3))
    elif kind == "one above all":
        biases[rng.integers(count)] = 2 * sharp * np.sqrt(count)
    memory = Memory(torch.from_numpy(keys), torch.from_numpy(biases), torch.zeros(count, dtype=torch.int64))
    values, cancels = torch.from_numpy(rng.normal(size=(count, 4))), count > 1 and rng.random() < 0.3
    if cancels:
        values = 1e6 * values
        values[1::2] = -values[: 2 * (count // 2) : 2] * (1 + 1e-3)
    bias, linear = torch.from_numpy(rng.normal(size=4)), torch.from_numpy(rng.normal(size=(3, 4)))
    layer = memory_layer(bias, 3, (memory, values), linear=linear)
    name = f"{count} tokens, {kind}, scores of size {sharp:g}{', cancelling' if cancels else ''}, {seed}"
    return name, layer


def assembled(layer: GateLayer | MemoryLayer, dtype: torch.dtype) -> SingleLayerTransformer:
    D, m = layer.dimension, layer.outputs
    target = ol.Target("; ".join(["x1"] * m), [SIDE] * D)
    return assemble(layer, frame_of(target.domain), outputs_of(target)).to(dtype)
