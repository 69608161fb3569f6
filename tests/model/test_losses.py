"""Eq. (2), (3) against torch and against their definitions."""

import numpy as np
import torch
import torch.nn.functional as F

from onelayer.model.reference import losses

RNG = np.random.default_rng(0)
SCORES, LABELS = RNG.normal(size=(6, 4)) * 3, np.eye(4)[RNG.integers(0, 4, 6)]


def test_cross_entropy_is_equation_3():
    probabilities = losses.softmax(SCORES)
    by_hand = [-sum(LABELS[i, c] * np.log(probabilities[i, c]) for c in range(4)) for i in range(6)]
    np.testing.assert_allclose(losses.cross_entropy(LABELS, probabilities), by_hand, rtol=1e-14)
    np.testing.assert_allclose(losses.cross_entropy_of_scores(LABELS, SCORES), by_hand, rtol=1e-13)
    expected = F.cross_entropy(torch.from_numpy(SCORES), torch.from_numpy(LABELS))
    assert abs(losses.risk(losses.cross_entropy_of_scores, LABELS, SCORES) - expected.item()) < 1e-13


def test_cross_entropy_of_a_sure_answer_is_finite():
    sure = np.array([[1.0, 0.0]])
    assert losses.cross_entropy(sure, sure) == 0.0
    huge = losses.cross_entropy_of_scores(sure, np.array([[-1e10, 1e10]]))
    assert huge == 2e10


def test_slopes_equal_autograd():
    for loss, slope, torch_loss in [
        (losses.cross_entropy_of_scores, losses.cross_entropy_of_scores_slope, F.cross_entropy),
        (losses.squared_loss, losses.squared_loss_slope, F.mse_loss),
    ]:
        scores = torch.from_numpy(SCORES).requires_grad_()
        value = torch_loss(scores, torch.from_numpy(LABELS))
        assert abs(losses.risk(loss, LABELS, SCORES) - value.item()) < 1e-13
        expected = torch.autograd.grad(value, scores)[0].numpy()
        np.testing.assert_allclose(losses.risk_slope(slope, LABELS, SCORES), expected, rtol=1e-12, atol=1e-15)


def test_risk_is_the_mean_loss():
    """Eq. (2) with the expectation replaced by the average over samples."""
    assert losses.risk(lambda y, p: (y - p) ** 2, np.array([0.0, 1.0]), np.array([2.0, 1.0])) == 2.0
