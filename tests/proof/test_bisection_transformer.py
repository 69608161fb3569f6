"""Any Transformer on boxes: its real function is enclosed, its answers are within the stated rounding of it, with zero slack."""

import numpy as np
import pytest
import torch
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st

import onelayer as ol
from cases import configs, random_model
from enclosing import follows, require_enclosed
from onelayer.formula.taylor.series import Space
from onelayer.layer.affine_layer import opposite_pairs
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.assemble import Frame, Outputs, assemble
from onelayer.layer.heads import Maxima
from onelayer.layer.layer import gate_layer
from onelayer.proof.bisection.transformer import Network
from onelayer.proof.witness import in_balls

random_models = given(configs(), st.integers(0, 10**6), st.floats(-6, 0.5), st.floats(-1.5, 2.0), st.booleans())


@settings(max_examples=30)
@random_models
def test_any_model_is_enclosed_in_its_own_arithmetic(config, seed, size, sharp, single):
    require_enclosed(config, seed, size, sharp, single)


@pytest.mark.long
@settings(max_examples=60)
@random_models
def test_many_models_are_enclosed_in_their_own_arithmetic(config, seed, size, sharp, single):
    require_enclosed(config, seed, size, sharp, single)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("sharpness", [0.3, 30.0, 1e4, 1e7, -1e5])
def test_rounding_of_sharp_maxima(sharpness, dtype):
    """Max-heads of all kinds, also on boxes across their kinks: what is computed is within `off` of what is enclosed."""
    rng = np.random.default_rng(int(abs(sharpness)))
    D, kept = 4, torch.tensor(rng.random((6, 4)) < 0.7)
    kept[:, 0] = True
    numbers = [torch.tensor(a) for a in (np.full(6, sharpness), 0.3 * rng.normal(size=(6, D)), rng.normal(size=(6, 2)))]
    layer = gate_layer(torch.zeros(2, dtype=torch.float64), D, maxima=(Maxima(*numbers[:2], kept), numbers[2]))
    model = assemble(layer, Frame((0.0,) * D, (1.0,) * D), Outputs(1, 2, (0,))).to(dtype)
    middle = rng.uniform(-0.4, 0.4, size=(30, D))
    middle[:24] = middle[:24, :1] - np.repeat(numbers[1].numpy(), 4, axis=0)  # all tokens of a head contend
    half = 10.0 ** rng.uniform(-9, -1, size=(30, 1)) * rng.random((30, D))
    lower, upper = ((middle + s * half).astype(np.float32) for s in (-1, 1))
    answer = Network(model, FLOAT32 if dtype is torch.float32 else FLOAT64)(
        Space(lower.astype(float), upper.astype(float))
    )
    assert (answer.off < 5000 * (2.0**-24 if dtype is torch.float32 else 2.0**-53)).all()  # no word of sharpness
    for b in range(len(lower)):
        points = np.clip(lower[b] + (upper[b] - lower[b]) * rng.random((4, D)), lower[b], upper[b]).astype(np.float32)
        with torch.no_grad():
            computed = model(torch.from_numpy(points).to(dtype)[..., None]).flatten(1).double().tolist()
        for point, row in zip(points.astype(float).tolist(), computed, strict=True):
            for o, value in enumerate(in_balls(model, point)[0]):
                assert follows(answer.model[o], b, point, value)
                assert follows(answer.model[o], b, point, arb(row[o]), answer.off[b, o])


def test_rounding_of_a_plain_model_is_small():
    model = random_model(
        ol.LayerConfig(tokens=2, features_in=1, features_out=1, d_model=4, heads=2, d_k=4, d_v=2, ffn_width=4)
    )
    answer = Network(model, FLOAT64)(Space(np.zeros((1, 2)), np.full((1, 2), 1e-3)))
    assert answer.off.max() < 1e-10


def test_opposite_pairs():
    W_1, b_1 = np.array([[1.0, -1.0, 2.0, -2.0]]), np.array([0.5, -0.5, 0.0, 0.0])
    W_2 = np.array([[3.0], [-3.0], [1.0], [1.0]])  # the second pair is |z|, not z
    assert opposite_pairs(W_1, b_1, W_2) == ([0], [1])
