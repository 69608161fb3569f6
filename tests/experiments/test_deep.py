"""Measures of depth: sorting by stacks of layers, deep teachers as one layer."""

import torch

from onelayer.experiments.study.measures import measure_of
from onelayer.experiments.study.measures.deep import Stack
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
