"""Figures 1 and 2 of the paper show the numbers of the live layer, and autograd agrees with the backward pass by hand."""

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.model.passes import both_passes
from onelayer.model.reference import transformer
from onelayer.views.paper_figures import MOST_TOKENS, attention_flow, passes

WAVES = "sin(x1) + sin(x2)"


@pytest.fixture(scope="module")
def waves() -> ol.Approximation:
    return ol.build(WAVES, [(0, "2*pi")] * 2, tolerance=1e-2, method="solved")


def random_layer(seed: int, **about: object) -> ol.SingleLayerTransformer:
    shape = {"tokens": 4, "features_in": 2, "features_out": 3, "d_model": 7, "heads": 3, "d_k": 4, "d_v": 2}
    config = ol.LayerConfig(**(shape | {"ffn_width": 6} | about))
    return ol.SingleLayerTransformer(config, seed=seed)


def edges(figure) -> list[dict]:
    return [trace.meta for trace in figure.data if isinstance(trace.meta, dict)]


def test_edges_are_the_attention_weights(waves):
    x = [1.0, 2.0]
    drawn = edges(attention_flow(waves, x))
    alpha = waves.model.attention(torch.tensor([[[1.0], [2.0]]], dtype=torch.float64))[0].detach()
    assert len({e["head"] for e in drawn}) == 4
    assert len(drawn) == 4 * alpha.shape[-1]  # one output token asks
    for e in drawn:
        assert e["weight"] == alpha[e["head"], e["query"], e["key"]].item()
    for head in {e["head"] for e in drawn}:
        assert sum(e["weight"] for e in drawn if e["head"] == head) == pytest.approx(1)


def test_edges_of_every_query_of_a_bare_model():
    model = random_layer(0, anchor_tokens=1)
    x = np.random.default_rng(0).normal(size=(4, 2))
    figure = attention_flow(model, x, heads=9)
    lines = [trace for trace in figure.data if isinstance(trace.meta, dict)]
    alpha = model.attention(torch.from_numpy(x)[None])[0].detach()
    assert {(t.meta["head"], t.meta["query"], t.meta["key"]) for t in lines} == set(np.ndindex(3, 4, 5))
    assert all(t.meta["weight"] == alpha[t.meta["head"], t.meta["query"], t.meta["key"]].item() for t in lines)
    by_weight = sorted(lines, key=lambda t: t.meta["weight"])
    assert [t.line.width for t in by_weight] == sorted(t.line.width for t in lines)  # heavier lines for larger weights
    assert by_weight[0].line.width < by_weight[-1].line.width


@pytest.mark.long
def test_the_heads_that_write_most_and_the_tokens_that_matter_are_drawn():
    approx = ol.build("exp(-x1**2)*x2", [(-1, 1)] * 2, tolerance=0.05, method="solved", construction="memory", units=30)
    drawn = edges(attention_flow(approx, [0.3, 0.4], heads=1))
    weights = approx.model.attention(torch.tensor([[[0.3, 0.4]]], dtype=torch.float64))[0, 0, 0].detach()
    assert len(drawn) == MOST_TOKENS < len(weights)
    best = torch.topk(weights, MOST_TOKENS).values.sort().values.tolist()
    assert sorted(e["weight"] for e in drawn) == best


@pytest.mark.parametrize(
    "about",
    [
        {},
        {"residual": False, "anchor_tokens": 1, "output_tokens": 1, "readout": "output"},
        {"norm": "pre", "activation": "gelu", "projection_bias": True},
        {"norm": "post", "activation": "silu", "code": "learned", "memory_tokens": 2},
        {"readout": "mean"},
    ],
    ids=["residual", "output token", "pre-norm", "post-norm", "mean"],
)
def test_both_passes_agree_with_the_reference(about):
    """T(x), ∂L/∂x and ∂L/∂θ for every weight, against the backward pass derived by hand."""
    model = random_layer(1, **about)
    rng = np.random.default_rng(1)
    x = rng.normal(size=(1, 4, 2))
    weights = {name: t.detach().numpy() for name, t in model.state_dict().items()}
    answer, passed = transformer.forward(model.config, weights, x)
    goal = rng.normal(size=answer.shape)
    d_x, gradients = transformer.backward(model.config, weights, passed, answer - goal)
    found = both_passes(model, torch.from_numpy(x), torch.from_numpy(goal))
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(found["T(x)"].activation, answer, **close)
    np.testing.assert_allclose(found["T(x)"].error, answer - goal, **close)
    np.testing.assert_allclose(found["embedding"].activation, passed.E, **close)
    np.testing.assert_allclose(found["input"].error, d_x, **close)
    assert found.loss == pytest.approx(((answer - goal) ** 2).sum() / 2)
    for name, gradient in found.gradients.items():
        np.testing.assert_allclose(gradient, gradients[name], **close, err_msg=name)
    # δ summed over positions is the gradient of a bias that is added there
    for stage, bias in (("feed-forward", "b_2"), ("attention", "b_O")):
        if bias in gradients:
            np.testing.assert_allclose(found[stage].error.sum(dim=(0, 1)), gradients[bias], **close)
    if model.config.special_tokens:
        np.testing.assert_allclose(found["embedding"].error[0, 4:], gradients["S"], **close)


def test_figure_2_shows_the_norms(waves):
    figure = passes(waves, [1.0, 2.0], y=1.0)
    x = torch.tensor([[[1.0], [2.0]]], dtype=torch.float64)
    found = both_passes(waves.model, x, torch.ones(1, 1, 1, dtype=torch.float64))
    shown = {trace.name: list(trace.meta) for trace in figure.data}
    assert shown["h"] == [stage.norm for stage in found.stages]
    assert shown["δ"] == [stage.error_norm for stage in found.stages]
    assert shown["h"][0] == pytest.approx(5**0.5)
    assert shown["h"][-1] == pytest.approx(abs(waves([1.0, 2.0])))
    assert shown["δ"][-1] == pytest.approx(abs(waves([1.0, 2.0]) - 1.0))


def test_the_loss_is_against_the_target_unless_y_is_given(waves):
    shown = {trace.name: list(trace.meta) for trace in passes(waves, [1.0, 2.0]).data}
    assert shown["δ"][-1] == pytest.approx(abs(waves([1.0, 2.0]) - np.sin(1) - np.sin(2)), rel=1e-9)
    sorting = ol.gallery.sort(3, tolerance=1e-3)  # no target at hand: y = 0
    shown = {trace.name: list(trace.meta) for trace in passes(sorting, [0.3, 0.2, 0.1]).data}
    assert shown["δ"][-1] == pytest.approx(np.linalg.norm(sorting([0.3, 0.2, 0.1])))


def test_weights_and_gradients_of_the_model_stay_as_they_are(waves):
    before = waves.model.fingerprint()
    attention_flow(waves, [1.0, 2.0])
    passes(waves, [1.0, 2.0])
    assert waves.model.fingerprint() == before
    assert all(p.grad is None for p in waves.model.parameters())


def test_bad_input_is_one_clear_line(waves):
    for call in (
        lambda: attention_flow(waves, [[1.0, 2.0], [2.0, 3.0]]),
        lambda: attention_flow(waves, [1.0, 2.0], heads=0),
        lambda: passes(waves, [1.0, 2.0], y=[1.0, 2.0]),
        lambda: passes(random_layer(0), [1.0, 2.0]),
    ):
        with pytest.raises(InputError, match=r"asked: .*; found: .*; change: "):
            call()
