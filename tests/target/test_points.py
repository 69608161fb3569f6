"""Sample points: no holes, faces and corners present, the same by seed, no global randomness."""

import pytest
import torch

from onelayer.target.points import corners, fitting_points, judging_points, uniform_points


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_no_holes(dimension):
    """Every cell of a coarse grid holds points: a pool with a hole would hide any error there."""
    x = fitting_points(16_000, dimension, 99)
    cells = {1: 200, 2: 30, 3: 10}[dimension]
    index = (x * cells).long().clamp_max(cells - 1)
    flat = sum(index[:, j] * cells**j for j in range(dimension))
    assert len(flat.unique()) == cells**dimension


def test_faces_and_corners():
    x = fitting_points(4000, 3, 0)
    on_face = ((x == 0) | (x == 1)).any(dim=1)
    assert 0.2 < on_face.double().mean() < 0.35
    assert len(corners(3)) == 8
    assert len(corners(12).unique(dim=0)) == 4096
    assert (x >= 0).all()
    assert (x <= 1).all()


@pytest.mark.parametrize("draw", [fitting_points, judging_points])
@pytest.mark.parametrize("dimension", [3, 6, 9])
def test_faces_of_every_dimension(draw, dimension):
    x = draw(9000, dimension, 1)[:9000]
    ends = ((x == 0) | (x == 1)).sum(dim=1)
    assert (ends > 0).sum() == 3000
    for number in range(1, dimension):
        assert (ends == number).sum() > 3000 / dimension / 2
    snapped = x[ends > 0]
    for end in (0, 1):  # every side is as likely as any other
        shares = (snapped == end).double().mean(dim=0)
        assert shares.max() < 1.2 * shares.min()


def test_too_many_corners_are_drawn_at_random():
    """The first ones in order would all lie on one face."""
    x = corners(20, 3)
    assert x.shape == (4096, 20)
    assert ((x == 0) | (x == 1)).all()
    assert (x.mean(dim=0) - 0.5).abs().max() < 0.05
    assert torch.equal(x, corners(20, 3))
    assert not torch.equal(x, corners(20, 4))


def test_deterministic_and_without_global_randomness():
    before = torch.random.get_rng_state()
    for draw in (fitting_points, judging_points, uniform_points):
        assert torch.equal(draw(100, 2, 5), draw(100, 2, 5))
        assert not torch.equal(draw(100, 2, 5), draw(100, 2, 6))
    assert torch.equal(torch.random.get_rng_state(), before)
