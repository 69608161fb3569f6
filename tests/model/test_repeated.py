"""A layer applied repeatedly: the same block step after step, and a halting unit that stops each sequence by itself."""

from dataclasses import replace

import pytest
import torch

from onelayer.common.errors import InputError
from onelayer.model.config import LayerConfig
from onelayer.model.repeated import RepeatedLayer
from onelayer.model.transformer import SingleLayerTransformer

CONFIG = LayerConfig(
    tokens=5, features_in=3, features_out=2, d_model=8, heads=2, d_k=4, d_v=3, ffn_width=10, code="learned",
    anchor_tokens=1, any_length=True,
)  # fmt: skip


def drawn(*shape):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def stopping_below(threshold, most_steps=40):
    """Coordinate 0 is halved in every step: the halting unit of token x is |x|/2^steps, whatever attention does."""
    config = replace(CONFIG, features_in=1, d_model=2, ffn_width=2)
    layer = SingleLayerTransformer(config)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.W_E[0, 0] = layer.W_1[0, 0] = layer.W_R[0, 0] = 1.0
        layer.W_2[0, 0] = -0.5
    return RepeatedLayer(layer, halting=0, threshold=threshold, most_steps=most_steps)


@pytest.mark.parametrize("norm", ["none", "pre", "post"])
@pytest.mark.parametrize("causal", [False, True])
def test_one_step_is_the_layer_and_more_steps_are_its_block_again(norm, causal):
    layer = SingleLayerTransformer(replace(CONFIG, norm=norm, causal=causal), seed=1).eval()
    repeated = RepeatedLayer(layer, halting=0, threshold=-torch.inf, most_steps=3)
    x, padding = drawn(4, 5, 3), torch.arange(5) >= torch.tensor([[5], [3], [1], [4]])
    assert torch.equal(repeated.after(x, 1, padding), layer(x, padding))
    stream = layer.advance(layer.advance(layer.advance(layer.embed(x), padding), padding), padding)
    found = repeated.run(x, padding)
    assert torch.equal(found.answers, layer.read(stream, padding))
    assert found.steps.tolist() == [3] * 4
    assert not found.halted.any()
    assert not torch.allclose(found.answers, layer(x, padding))


def test_each_sequence_stops_when_all_of_its_positions_are_done():
    repeated = stopping_below(1.0)
    x = torch.tensor([[1.0, 4.0], [0.5, 0.5], [16.0, 32.0]], dtype=torch.float64)[..., None]
    found = repeated.run(x)
    assert found.steps.tolist() == [2, 1, 5]
    assert found.halted.all()
    assert torch.equal(found.answers[..., 0], x[..., 0] / 2.0 ** found.steps[:, None])
    assert torch.equal(repeated(x), found.answers)
    alone = repeated.run(x, torch.tensor([[False, True]] * 3))
    assert alone.steps.tolist() == [1, 1, 4]  # the padded position has no say


def test_the_threshold_is_met_exactly_and_nan_never_halts():
    x = torch.full((1, 1, 1), 2.0, dtype=torch.float64)
    assert stopping_below(1.0).run(x).steps.item() == 1
    assert stopping_below(1.0 - 2**-53).run(x).steps.item() == 2
    lost = stopping_below(1.0, most_steps=7).run(x * torch.nan)
    assert lost.steps.item() == 7
    assert not lost.halted.any()
    single = stopping_below(0.1)
    single.layer.float()
    above = torch.tensor(0.1, dtype=torch.float32)  # 0.1 rounded to float32 is above 0.1
    assert single.run(2 * above.reshape(1, 1, 1)).steps.item() == 2


def test_gradients_pass_through_the_steps():
    layer = SingleLayerTransformer(CONFIG, seed=2)
    RepeatedLayer(layer, halting=0, threshold=-torch.inf, most_steps=3)(drawn(2, 5, 3)).square().sum().backward()
    assert layer.W_Q.grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"halting": 8}, "halting, a coordinate of the stream"),
        ({"most_steps": 0}, "most_steps"),
        ({"threshold": float("nan")}, "threshold, a number"),
    ],
)
def test_bad_options_are_refused(options, asked):
    with pytest.raises(InputError, match=asked):
        RepeatedLayer(SingleLayerTransformer(CONFIG), **{"halting": 0, "threshold": 0.0, "most_steps": 2} | options)


def test_a_layer_read_at_an_output_token_is_refused():
    config = replace(CONFIG, readout="output", output_tokens=1)
    with pytest.raises(InputError, match="read at its data tokens"):
        RepeatedLayer(SingleLayerTransformer(config), halting=0, threshold=0.0, most_steps=2)


@pytest.mark.usefixtures("as_user")
def test_what_is_no_layer_is_refused():
    with pytest.raises(InputError, match="a SingleLayerTransformer to repeat; found: Linear"):
        RepeatedLayer(torch.nn.Linear(1, 1), halting=0, threshold=0.0, most_steps=1)
