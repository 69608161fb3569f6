"""Stationary points of a small layer's loss: minima and saddle points are told apart, and where descent has not ended is said."""

import pytest
import torch

from onelayer.experiments.study.measures import landscape

POINT = {"target": "w", "formula": "sin(4*x1)", "domain": "-1:1", "margin": 0.0, "heads": 1, "width": 1, "decay": 1e-3}
POINT |= {"points": 41, "seed": 1}


def test_a_local_minimum_that_is_not_the_best():
    found = landscape.landscape(POINT | {"way": "descent"})
    assert (found["kind"], found["negative"], found["zero"]) == ("minimum", 0, 1)
    assert found["gradient"] < 1e-10
    assert found["least_positive"] > 1e-4
    assert found["loss"] > 0.4  # seed 2 ends below 0.015


def test_a_saddle_point_is_left_downhill():
    found = landscape.landscape(POINT | {"way": "root", "seed": 5})
    assert found["kind"] == "saddle point"
    assert found["gradient"] < 1e-10
    assert found["negative"] > 0 > found["smallest"]
    assert found["drop"] > 0


@pytest.mark.parametrize("way", ["descent", "root"])
def test_a_run_that_did_not_end_is_no_minimum(way, monkeypatch):
    monkeypatch.setattr(landscape, "MOST_STEPS", 2)
    assert landscape.landscape(POINT | {"way": way})["kind"] == "not stationary"


def test_gradient_and_hessian_against_differences():
    loss = landscape._Loss(landscape.target_at(POINT), 1, 1, 1e-3, 41, 0)
    along = torch.nn.functional.normalize(loss.start.cos(), dim=0)
    ahead, behind = (loss.start + s * 1e-5 * along for s in (1, -1))
    assert float(loss.gradient(loss.start) @ along) == pytest.approx(float(loss(ahead) - loss(behind)) / 2e-5, rel=1e-6)
    change = (loss.gradient(ahead) - loss.gradient(behind)) / 2e-5
    assert torch.allclose(loss.hessian(loss.start) @ along, change, rtol=1e-5, atol=1e-8)


def test_turning_the_basis_of_the_stream_changes_nothing():
    """Why one eigenvalue is 0: the loss is the same for the turned weights."""
    loss = landscape._Loss(landscape.target_at(POINT), 1, 1, 1e-3, 41, 0)
    turn = torch.linalg.qr(torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64))[0]
    before = float(loss(loss.start))
    columns, rows = ("W_E", "b_E", "P", "S", "W_O", "W_2", "b_2"), ("W_Q", "W_K", "W_V", "W_1", "W_R")
    turned = {n: p.detach() @ turn if n in columns else p.detach() for n, p in loss.model.named_parameters()}
    turned |= {n: turn.T @ getattr(loss.model, n).detach() for n in rows}
    assert float(loss(torch.cat([turned[name].flatten() for name in loss.shapes]))) == pytest.approx(before, rel=1e-12)
