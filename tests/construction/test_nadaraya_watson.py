"""Regression in context: the bound holds for every function that fits the samples, with zero slack, and is nearly the least."""

import math

import numpy as np
import pytest

import onelayer as ol
from onelayer.construction.prompts.construction import Prompt
from onelayer.construction.prompts.fill_distance import CLOSE, fill_distance
from onelayer.construction.prompts.nadaraya_watson import in_context, prove_in_context
from onelayer.layer.assemble.prompt_tokens import frozen_layer, read_tokens, tokens_of
from onelayer.layer.heads import shortfall
from onelayer.target.domain import domain_of
from onelayer.target.samples import data_of

BOXES = {1: [(-1, 2)], 2: [(0, 1), (100, 102)], 3: [(0, 1)] * 3}


def samples(D: int, N: int = 40) -> np.ndarray:
    return domain_of(BOXES[D]).points(np.random.default_rng(D).random((N, D)))


def distances(x: np.ndarray, X: np.ndarray) -> np.ndarray:
    return np.sqrt(np.square(x[:, None] - X).sum(axis=2))


def points(D: int, X: np.ndarray, count: int = 4000) -> np.ndarray:
    """Random points, corners, samples, middles between samples, and where the samples are farthest."""
    domain, rng = domain_of(BOXES[D]), np.random.default_rng(7)
    unit = np.concatenate([rng.random((count, D)), rng.integers(0, 2, (20, D))])
    middles = (X[rng.integers(0, len(X), 500)] + X[rng.integers(0, len(X), 500)]) / 2
    return np.concatenate([domain.points(unit), X, middles, fill_distance(domain, X)[1][None]])


@pytest.mark.parametrize("D", BOXES)
@pytest.mark.parametrize("sharpness", [None, 4.0, 64.0])
def test_no_function_through_the_samples_is_farther_away(D, sharpness):
    """Every f of slope ≤ L with these values lies between two envelopes of cones; both are hunted, for several sets of values."""
    X, L = samples(D), 1.5
    x = points(D, X)
    d = distances(x, X)
    direction = np.array([0.6, 0.8, 0.0])[:D]
    for y in (np.zeros(len(X)), L * X @ direction, L * np.abs(X - X[3]).max(axis=1), L * np.sin(X[:, 0])):
        y = y.astype(np.float32).astype(np.float64) / 1.001  # rounding of y is no steeper
        layer = in_context(X, y, BOXES[D], 1.0, L, sharpness)
        answers = layer(x)
        for f in ((y - L * d).max(axis=1), (y + L * d).min(axis=1)):  # the least and the largest such function
            assert np.abs(answers - f).max() <= layer.certificate.bound
        assert (
            layer.certificate.headline.startswith("CERTIFIED if |f(x) − f(y)| ≤ 1.5·|x − y|, Euclidean")
            or layer.certificate.bound > 1
        )


@pytest.mark.parametrize("D", BOXES)
def test_the_bound_is_nearly_the_least_possible(D):
    """A function that is 0 at all samples is as far away as the samples allow: no method can promise less."""
    X = samples(D)
    prompt = ol.prompt((X, np.zeros(len(X))), BOXES[D], 1.0, steepest=2.0)
    _, hole = fill_distance(domain_of(BOXES[D]), X)
    f = 2.0 * distances(hole[None], X).min()
    assert f <= prompt.certificate.bound <= 1.001 * f


def test_a_steeper_function_breaks_the_bound():
    X = samples(2)
    prompt = ol.prompt((X, np.zeros(len(X))), BOXES[2], 1.0, steepest=1.0)
    x = points(2, X)
    assert np.abs(prompt(x) - 1.5 * distances(x, X).min(axis=1)).max() > prompt.certificate.bound


@pytest.mark.parametrize("D", BOXES)
@pytest.mark.parametrize("beta", [1.0, 30.0, 1000.0])
def test_the_lemma(D, beta):
    """Σ α_j d_j ≤ √(min d² + 2W((N−1)/e)/β), with scores off by h; without W it is false."""
    X = samples(D)
    d, h = distances(points(D, X), X), 0.3
    off = np.random.default_rng(0).uniform(-h, h, d.shape)
    scores = -beta / 2 * d**2 + off
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    average = (weights * d).sum(axis=1) / weights.sum(axis=1)
    excess = average**2 - d.min(axis=1) ** 2
    assert excess.max() <= 2 / beta * (shortfall(len(X)) + 2 * h)
    assert excess.max() > 0


def test_far_samples_attain_the_lemma_up_to_a_factor():
    """All other samples at one distance, where the average of the squares is the largest: half of 2W/β is reached."""
    N, beta = 200, 10.0
    W = shortfall(N)
    gap = 2 / beta * (W + 1)
    weights = np.array([1.0, *[math.exp(-beta * gap / 2)] * (N - 1)])
    assert weights[1:].sum() / weights.sum() * gap == pytest.approx(2 * W / beta, rel=1e-9)


def test_the_fill_distance_of_one_variable_is_half_the_largest_gap():
    X = np.sort(samples(1)[:, 0])
    gaps = max(X[0] + 1, 2 - X[-1], np.diff(X).max() / 2)
    bound, hole = fill_distance(domain_of(BOXES[1]), X[:, None])
    assert gaps <= bound <= (1 + 2 * CLOSE) * gaps
    assert -1 <= hole[0] <= 2


@pytest.mark.parametrize("D", BOXES)
def test_the_fill_distance_of_a_lattice(D):
    n = 4
    axis = (np.arange(n) + 0.5) / n
    X = np.stack(np.meshgrid(*[axis] * D), axis=-1).reshape(-1, D)
    exactly = math.sqrt(D) / (2 * n)
    bound, _ = fill_distance(domain_of([(0, 1)] * D), X)
    assert exactly <= bound <= (1 + 2 * CLOSE) * exactly


def test_far_from_zero_boxes_end_where_floats_do():
    X = np.array([[1e15], [1e15 + 2]])
    bound, _ = fill_distance(domain_of([(1e15, 1e15 + 2)]), X)
    assert 1 <= bound < 10


def test_the_proof_is_about_the_stored_tokens():
    """Tokens that are not those of the samples have no bound."""
    X, y = samples(1), np.zeros(40)
    layer, domain = in_context(X, y, BOXES[1], 1.0, 1.0, 16.0), domain_of(BOXES[1])
    assert prove_in_context(layer.model, data_of((X, y)), domain, 1.0, 16.0).bound == layer.certificate.bound
    assert prove_in_context(layer.model, data_of((X, y)), domain, 1.0, 8.0).bound == math.inf
    assert prove_in_context(layer.model, data_of((X, y + 1)), domain, 1.0, 16.0).bound == math.inf
    keys, biases, values = read_tokens(layer.model.special.detach(), 1)
    moved = frozen_layer().with_prompt(tokens_of(keys, biases + 0.1, values), 1)
    assert prove_in_context(moved, data_of((X, y)), domain, 1.0, 16.0).bound > layer.certificate.bound
    moved.W_V.data[0, 0, 0] = 1.0
    assert prove_in_context(moved, data_of((X, y)), domain, 1.0, 16.0).bound == math.inf


def test_folders_hold_samples_in_context(tmp_path):
    X = samples(2)
    prompt = ol.prompt((X, X[:, 0]), BOXES[2], 1.0, steepest=1.0)
    folder = prompt.save(tmp_path / "folder")
    again = Prompt(ol.load(folder))
    assert again.certificate.headline == prompt.certificate.headline
    assert np.array_equal(again(X), prompt(X))
    assert ol.check(folder).verdict == "NOT CHECKABLE"
    assert "samples in context" in str(prompt)


@pytest.mark.usefixtures("as_user")
def test_bad_samples_are_refused_in_one_line():
    X = np.linspace(0, 1, 10)
    for call in (
        lambda: ol.prompt((X, X), (0, 1)),
        lambda: ol.prompt((X, X), (0, 1), steepest=-1.0),
        lambda: ol.prompt((X, X), (0, 1), steepest=0.5),  # they are steeper
        lambda: ol.prompt((X, X), (0, 0.5), steepest=1.0),
        lambda: ol.prompt((np.zeros((3, 4)), X[:3]), steepest=1.0),
        lambda: ol.prompt((X, np.stack([X, X], axis=1)), (0, 1), steepest=1.0),
        lambda: ol.prompt((X, X, X), (0, 1), steepest=1.0),
    ):
        with pytest.raises(ol.InputError) as refusal:
            call()
        assert "\n" not in str(refusal.value)
