"""Memorisation: what counts as fitted, the search for the smallest layer, and samples that depend on the seed alone."""

import numpy as np
import pytest

from onelayer.experiments.study import Sweep
from onelayer.experiments.study.measures import memorisation as module


def point(**axes):
    (task,) = Sweep.of_axes("memorisation", axes).tasks
    return task.point


@pytest.mark.parametrize("answers", ["values", "labels"])
def test_the_constructed_layer_fits_all_with_one_relu_less_than_samples(answers):
    found = module.memorisation(point(samples=12, answers=answers, made="constructed"))
    assert (found["fitted"], found["all"], found["width"]) == (12, "yes", 11)
    assert found["per_sample"] == found["parameters"] / 12


def test_samples_follow_the_seed():
    one, two, same = (module.samples_at(point(samples=6, seed=s)) for s in (0, 1, 0))
    assert np.array_equal(one[0], same[0])
    assert not np.array_equal(one[0], two[0])
    _, labels = module.samples_at(point(samples=7, answers="labels"))
    assert sorted(labels) == [0, 0, 0, 0, 1, 1, 1]


def test_a_layer_that_is_hardly_trained_fits_few_and_a_trained_one_more():
    hardly, trained = (
        module.memorisation(point(samples=6, budget=160, steps=steps, tolerance=0.2)) for steps in (50, 400)
    )
    assert hardly["parameters"] == trained["parameters"]
    assert 144 <= trained["parameters"] <= 176
    assert hardly["fitted"] < trained["fitted"]
    nothing = module.memorisation(point(samples=6, budget=160, steps=50, tolerance=1e-12))
    assert (nothing["fitted"], nothing["all"]) == (0, "no")


def test_the_search_stops_at_the_first_size_that_fits_all(monkeypatch):
    tried = []

    def fit(point, X, Y, size):
        tried.append(size)
        return (len(X) if len(tried) == 3 else 1), 10 * len(tried), size[1]

    monkeypatch.setattr(module, "fit", fit)
    found = module.memorisation(point(samples=16))
    assert (found["all"], found["parameters"], len(tried)) == ("yes", 30, 3)
    tried.clear()
    tried.extend([None] * 3)
    found = module.memorisation(point(samples=16, most=8))
    assert (found["all"], found["fitted"]) == ("no", 1)
    assert list(module.growing(8, 70)) == [20, 30, 45, 68]
