"""Bumps beside other heads: what is assembled computes them, and is read back."""

import pytest
import torch

from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.assemble.composed import inner_model
from onelayer.layer.composed import ComposedLayer
from onelayer.layer.conditioning import cancelling, reframed
from onelayer.layer.form import form_of
from onelayer.layer.heads import Bumps, Hinges, Memory, Ridges
from onelayer.layer.layer import memory_layer
from onelayer.layer.magnitudes import amplitude_of, largest_score_of, total_of
from onelayer.layer.reading import form_of_model

SHAPES = [  # coordinates, outputs, memory tokens, groups, ridges, bumps, hinges
    (1, 1, 0, 1, 0, 5, 0),
    (1, 2, 0, 1, 0, 5, 3),
    (3, 2, 0, 1, 0, 7, 2),
    (2, 1, 6, 1, 0, 4, 0),
    (2, 2, 6, 2, 3, 4, 2),
    (2, 1, 0, 1, 3, 4, 0),
]


def layer_with(D, m, tokens, groups, ridges, bumps, hinges, seed=0):
    g = torch.Generator().manual_seed(seed)

    def r(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    memory = Memory(5 * r(tokens, D), r(tokens), torch.arange(tokens) % groups)
    for group in range(groups if groups > 1 else 0):
        memory.keys[memory.group == group, group] = 0.0
    return memory_layer(
        r(m),
        D,
        (memory, r(tokens, m)),
        (Ridges(3 * r(ridges, D), r(ridges)), r(ridges, m)),
        r(D, m),
        (Hinges(r(hinges, D), 0.2 * r(hinges)), r(hinges, m)),
        (Bumps(9 * r(bumps, D), 3 * r(bumps)), r(bumps, 1 + D, m)),
    )


def points(D):
    return torch.rand(60, D, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 0.5


@pytest.mark.parametrize("shape", SHAPES)
def test_the_model_computes_the_layer_and_is_read_back(shape):
    layer, frame = layer_with(*shape), Frame((0.0,) * shape[0], (1.0,) * shape[0])
    model, x = assemble(layer, frame, Outputs(1, shape[1], (0,))), points(shape[0])
    torch.testing.assert_close(model(x[:, None]).flatten(1).detach(), layer(x), rtol=0, atol=1e-13)
    reading = form_of_model(model)
    assert reading is not None
    read = reading.form(x) + reading.hinges.features(x) @ reading.hinge_values
    torch.testing.assert_close(read, layer(x), rtol=0, atol=1e-13)


@pytest.mark.parametrize("shape", [(1, 1, 0, 1, 0, 5, 0), (2, 2, 6, 2, 3, 4, 2)])
def test_as_the_inner_layer_of_a_composed_one(shape):
    inner = layer_with(*shape)
    m, frame = inner.outputs, Frame((0.0,) * shape[0], (1.0,) * shape[0])
    outer = ComposedLayer(inner, torch.zeros(1, dtype=torch.int64), *(torch.zeros(n, dtype=torch.float64) for n in (1,)),
                          torch.zeros(1, m, dtype=torch.float64), torch.zeros(m, dtype=torch.float64))  # fmt: skip
    x = points(shape[0])
    torch.testing.assert_close(inner_model(outer, frame)(x[:, None]).flatten(1).detach(), inner(x), rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_another_frame_is_the_same_function(shape):
    layer, D = layer_with(*shape), shape[0]
    old, new = Frame((0.3,) * D, (2.0,) * D), Frame((0.1,) * D, (0.5,) * D)
    x = points(D)
    torch.testing.assert_close(reframed(layer, old, new)(new(x)), layer(old(x)), rtol=0, atol=1e-12)


def test_the_form_and_the_sizes():
    layer = layer_with(1, 1, 0, 1, 0, 5, 0)
    x = points(1)
    torch.testing.assert_close(form_of(layer)(x), layer(x), rtol=0, atol=1e-14)
    heads = layer(x) - layer.bias - x @ layer.linear
    assert float(heads.abs().max()) <= amplitude_of(layer) <= total_of(layer)
    assert largest_score_of(layer) >= float((x @ layer.bumps.directions.T + layer.bumps.offsets).abs().max())
    assert float((heads.abs() - cancelling(layer, x)[:, None]).max()) <= 1e-15
