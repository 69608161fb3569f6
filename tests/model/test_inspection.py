"""The linear-algebra view equals NumPy on the dense matrices, and reads well."""

import numpy as np
import pytest
import torch
from hypothesis import given

import onelayer as ol
from cases import arrays, configs, plain_config, random_model
from onelayer import InputError, SingleLayerTransformer


def largest_first(values):
    return values[np.argsort(-abs(values), kind="stable")]


@given(configs())
def test_circuits_equal_the_dense_matrices(config):
    model = random_model(config)
    w, seen = arrays(model), ol.inspect(model)
    for head in range(config.heads):
        W_O = w["W_O"].reshape(config.heads, config.d_v, -1)[head]
        for circuits, dense in ((seen.qk, w["W_Q"][head] @ w["W_K"][head].T), (seen.ov, w["W_V"][head] @ W_O)):
            sigma = np.linalg.svd(dense, compute_uv=False)
            kept = circuits.singular_values.shape[1]
            np.testing.assert_allclose(circuits.singular_values[head], sigma[:kept], rtol=1e-9, atol=1e-12)
            assert (sigma[kept:] < 1e-12 * sigma[0]).all()
            assert circuits.rank[head] == np.linalg.matrix_rank(dense)
            # eigenvalues of a defective matrix are ill-conditioned; their power sums are not
            for power in (1, 2):
                dense_trace = np.trace(np.linalg.matrix_power(dense, power))
                np.testing.assert_allclose(
                    (circuits.eigenvalues[head] ** power).sum(), dense_trace, atol=1e-9, rtol=1e-9
                )


def test_matrices_equal_numpy():
    model = random_model(plain_config(d_model=6, code="learned", ffn_width=6))
    w, seen = arrays(model), ol.inspect(model)
    assert {v.name for v in seen.matrices} == {"W_E", "P", "S", "W_Q", "W_K", "W_V", "W_O", "W_1", "W_2", "W_R"}
    for name in ("W_E", "W_1", "W_R", "W_O"):
        view, m = seen[name], w[name]
        sigma = np.linalg.svd(m, compute_uv=False)
        np.testing.assert_allclose(view.singular_values, sigma, rtol=1e-13)
        assert view.shape == m.shape
        assert view.rank == np.linalg.matrix_rank(m)
        assert view.condition == pytest.approx(np.linalg.cond(m))
        assert view.frobenius == pytest.approx(np.linalg.norm(m))
        assert view.spectral == pytest.approx(np.linalg.norm(m, 2))
        assert view.largest == abs(m).max()
    assert seen["W_E"].eigenvalues is None
    for name in ("W_1", "W_2"):
        np.testing.assert_allclose(seen[name].eigenvalues, largest_first(np.linalg.eigvals(w[name])), rtol=1e-12)
    with pytest.raises(ValueError, match="read-only"):
        seen["W_1"].singular_values[0] = 0.0
    assert seen["W_Q"].shape == (6, 2 * 3)  # all heads side by side


def test_a_rank_deficient_matrix_shows():
    model = random_model(plain_config())
    with torch.no_grad():
        model.W_1.copy_(torch.outer(torch.arange(7.0), torch.arange(5.0)))
    view = ol.inspect(model)["W_1"]
    assert view.rank == 1
    assert view.condition > 1e15


def test_rank_knows_the_dtype():
    """A rank-one matrix rounded to float32 is of rank one as far as float32 can tell."""
    model = SingleLayerTransformer(plain_config(), dtype=torch.float32)
    with torch.no_grad():
        model.W_1.copy_(torch.outer(torch.linspace(0.1, 1, 7), torch.linspace(0.3, 2, 5)))
    assert ol.inspect(model)["W_1"].rank == 1


def test_huge_weights_do_not_overflow_on_the_way():
    model = random_model(plain_config())
    small = ol.inspect(model)
    with torch.no_grad():
        model.W_Q.mul_(1e200)
        model.W_K.mul_(1e-200)
    np.testing.assert_allclose(ol.inspect(model).qk.singular_values, small.qk.singular_values, rtol=1e-10)


def test_it_reads_well():
    seen = ol.inspect(random_model(plain_config(heads=30)))
    text, page = str(seen), seen._repr_html_()
    assert "Heads 1–12 of 30" in text
    assert "read-out" in text
    assert page.count("<table>") == 2
    assert page.count("<tr>") == len(seen.matrices) + 12 + 2
    with pytest.raises(KeyError):
        seen["W_X"]


@pytest.mark.usefixtures("as_user")
def test_refusals_are_one_clear_line():
    with pytest.raises(InputError, match=r"^asked: a SingleLayerTransformer to inspect; found: Linear; change: "):
        ol.inspect(torch.nn.Linear(2, 2))
    model = random_model(plain_config())
    with torch.no_grad():
        model.W_2[0, 0] = float("nan")
    with pytest.raises(InputError, match="found: W_2 has a NaN"):
        ol.inspect(model)
