"""Measures of depth: sorting by stacks of layers, deep teachers as one layer, generalisation, one layer several times."""

import numpy as np
import pytest
import torch

from onelayer.experiments.study.measures import measure_of
from onelayer.experiments.study.measures.deep import Stack
from onelayer.experiments.study.measures.generalisation import TASKS
from onelayer.experiments.study.measures.steps import forest
from onelayer.experiments.study.sweep import sweep_of


def measured(name, **point):
    measure = measure_of(name)
    return measure(dict(measure.axes) | point)


def test_sorting_is_constructed_with_a_proof_and_trained_without():
    built = measured("sorting", n=3, layers=0)
    assert built["verdict"] == "CERTIFIED"
    assert built["heads"] == 2**3 - 1
    assert built["observed"] <= built["bound"]
    trained = measured("sorting", n=3, layers=2, d_model=8, steps=60, batch=64)
    assert trained["verdict"] == "UNDECIDED"
    assert "bound" not in trained
    assert built["observed"] < trained["observed"] < 1.5
    assert trained == measured("sorting", n=3, layers=2, d_model=8, steps=60, batch=64) | {"took": trained["took"]}


def test_a_deep_teacher_keeps_its_budget_and_is_learned_in_part():
    small = {"vocabulary": 8, "length": 4, "outputs": 4, "sequences": 300, "steps": 60, "batch": 64, "width": 16}
    for depth in (1, 4):
        result = measured("depth", depth=depth, budget=20_000, **small)
        assert 0.7 < result["teacher_parameters"] / 20_000 < 1.4
        assert 0 < result["unexplained"] < 1.2
        assert result["parameters"] < 8000


def test_sharpening_multiplies_the_scores():
    stack = Stack(5, 3, 2, 1, 8, 0)
    before = stack.layers.layers[0].self_attn.in_proj_weight.detach().clone()
    after = stack.sharpened(4.0).layers.layers[0].self_attn.in_proj_weight
    assert torch.allclose(after[:16], 2 * before[:16])
    assert torch.equal(after[16:], before[16:])


def test_the_built_in_studies_read():
    assert len(sweep_of("builtin:sorting").tasks) == 93
    assert len(sweep_of("builtin:depth").tasks) == 60
    assert len(sweep_of("builtin:generalisation").tasks) == 165
    assert len(sweep_of("builtin:steps").tasks) == 278


def test_generalisation_is_judged_on_fresh_sequences():
    small = {"budget": 1200, "batch": 16, "rate": 1e-2}
    few = measured("generalise", task="induction", layers=2, samples=8, steps=150, **small)
    assert few["seen_error"] < 0.3 < few["fresh_error"]  # memorised, not learned
    sorting = measured("generalise", task="sorting", layers=1, samples=30, steps=30, **small)
    assert 0 < sorting["seen_error"] < sorting["fresh_error"] < 0.4
    again = measured("generalise", task="sorting", layers=1, samples=30, steps=30, **small)
    assert again == sorting | {"took": again["took"]}


def test_stacks_of_all_depths_have_the_same_size():
    sizes = [measured("generalise", layers=layers, samples=2, steps=1)["parameters"] for layers in (1, 2, 4)]
    assert max(sizes) < 1.05 * min(sizes)


def test_followers_are_those_of_the_first_occurrence():
    x = torch.tensor([[3, 1, 3, 0, 1], [2, 0, 1, 1, 3]])
    assert TASKS["induction"].answers(x).tolist() == [[1, 3, 1, 1, 3], [0, 1, 1, 1, 2]]


def test_steps_of_x_squared_and_of_pointers():
    found = measured("square", steps=6, points=200)
    assert found["observed"] <= found["bound"] < 1.0001 * found["tolerance"]
    assert found["relus"] == 3 < found["one_pass_relus"] == 45
    assert found["mean_steps"] < 7
    chased = measured("pointers", length=12, chain=5, lists=6)
    assert chased["wrong"] == 0
    assert chased["steps"] == 5
    assert chased["heads"] == 1 < chased["one_pass_heads"] == 10


def test_forests_have_the_chain_that_was_asked_for():
    rng = np.random.default_rng(0)
    for chain in (1, 3, 9):
        listed, ends = forest(10, chain, rng)
        reached = np.array(listed)
        for _ in range(chain - 1):
            reached = np.array(listed)[reached]
        assert np.array_equal(reached, ends)
    with pytest.raises(ValueError, match="a chain of 10"):
        forest(10, 10, rng)
