"""Teachers on a domain: the formula of a module, if it does what its class does, and the certificate it gives."""

import contextlib
import itertools
from functools import partial

import numpy as np
import pytest
import torch
import torch.utils.flop_counter
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import onelayer as ol
from onelayer.formula import evaluate, parse
from onelayer.target.as_formula import formula_of
from teachers import network

XY = ("x1", "x2")


@settings(max_examples=25, deadline=None)
@given(st.sampled_from([nn.Tanh, nn.Sigmoid, nn.ReLU, nn.GELU, nn.SiLU]), st.integers(0, 99), st.integers(1, 3))
def test_the_formula_is_the_teacher(activation, seed, outputs):
    teacher = network(2, 3, outputs, activation=activation, seed=seed, dtype=torch.float32)
    text = formula_of(teacher, XY)
    x = np.random.default_rng(seed).uniform(-2, 2, (50, 2))
    with torch.no_grad():
        answers = teacher.double()(torch.from_numpy(x)).numpy()
    assert np.asarray(evaluate(parse(text), x)) == pytest.approx(answers, abs=1e-12)


def test_teachers_without_a_formula():
    assert formula_of(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2)), XY) is None
    assert formula_of(network(2, 200, 1), XY) is None  # too long
    assert formula_of(network(3, 2, 1), XY) is None  # of other variables
    assert formula_of(lambda x: x, XY) is None
    assert formula_of(nn.Sequential(nn.Linear(1, 1), nn.GELU(approximate="tanh")), XY[:1]) is None


class Tripled(nn.Linear):
    def forward(self, x):
        return 3 * super().forward(x)


class Turned(nn.Identity):
    def forward(self, x):
        return -x


def hooked(before=False):
    made = network(2, 3, 1)
    if before:
        made[0].register_forward_pre_hook(lambda module, given: (2 * given[0],))
    else:
        made.register_forward_hook(lambda module, given, found: found + 5)
    return made


def patched(place=None):
    made = network(2, 3, 1)
    (made if place is None else made[place]).forward = lambda x: 7 * x[:, :1]
    return made


def half_awake():
    made = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5), nn.Linear(2, 1)).eval()
    made[1].train()
    return made


class Disguised(nn.Linear):
    """Looks as if torch had parametrised it, and has a forward of its own."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.parametrizations = nn.ModuleDict({"weight": nn.Identity()})

    def forward(self, x):
        return 3 * super().forward(x)


class DisguisedTanh(nn.Tanh):
    def __init__(self):
        super().__init__()
        self.parametrizations = nn.ModuleDict({"weight": nn.Identity()})

    def forward(self, x):
        return -super().forward(x)


class Doubling(torch.Tensor):
    """A tensor that functions of torch treat in their own way."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        found = super().__torch_function__(function, types, args, kwargs or {})
        return 2 * found if function is nn.functional.linear else found


class Halved(nn.Module):
    """Half the weight, but only where no gradients are recorded, as when a teacher answers."""

    def forward(self, weight):
        return weight if torch.is_grad_enabled() else weight / 2


def called():
    made = network(2, 3, 1)
    made[0]._call_impl = lambda x: x[:, :1].expand(-1, 3)
    return made


def in_place_compiled():
    made = network(2, 3, 1)
    made[0].compile(backend=lambda graph, inputs: lambda *given: [3 * part for part in graph(*given)])
    return made


def reclassed():
    made = nn.Sequential(nn.Linear(2, 1))
    made[0].__class__ = Tripled
    return made


def with_weight(weight):
    made = nn.Sequential(nn.Linear(2, 1))
    del made[0].weight
    made[0].weight = weight
    return made


def half_parametrised():
    made = nn.Linear(2, 1)
    nn.utils.parametrize.register_parametrization(made, "weight", Halved())
    return made


def hooked_parametrisation():
    made = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1))
    made.parametrizations.weight[0].register_forward_hook(lambda module, given, found: 2 * found)
    return made


@pytest.mark.parametrize(
    "teacher",
    [
        nn.Sequential(Tripled(2, 1)),
        nn.Sequential(nn.Linear(2, 1), Turned()),
        hooked(),
        hooked(before=True),
        patched(),
        patched(1),
        half_awake(),
        nn.Sequential(nn.Linear(2, 1, dtype=torch.complex64)),
        nn.Sequential(Disguised(2, 1)),
        nn.Sequential(nn.Linear(2, 1), DisguisedTanh()),
        called(),
        in_place_compiled(),
        reclassed(),
        with_weight(nn.Parameter(torch.ones(1, 2)).as_subclass(Doubling)),
        with_weight(torch.ones(1, 2).to_sparse()),
        with_weight(torch.ones(1, 3)),
        half_parametrised(),
        hooked_parametrisation(),
    ],
)
def test_a_module_that_does_not_do_what_its_class_does_has_no_formula(teacher):
    assert formula_of(teacher, XY) is None


class Negating(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        return -found if function is nn.functional.linear else found


@contextlib.contextmanager
def global_hook(register):
    handle = register(lambda module, given, *found: None)
    try:
        yield
    finally:
        handle.remove()


@pytest.mark.parametrize(
    "changed",
    [
        lambda: global_hook(nn.modules.module.register_module_forward_hook),
        lambda: global_hook(nn.modules.module.register_module_forward_pre_hook),
        lambda: global_hook(partial(nn.modules.module.register_module_forward_hook, always_call=True)),
        Negating,
        lambda: torch.utils.flop_counter.FlopCounterMode(display=False),
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    ],
)
def test_what_changes_all_modules_leaves_no_formula(changed):
    teacher = network(2, 3, 1)
    with changed():
        assert formula_of(teacher, XY) is None
    assert formula_of(teacher, XY) is not None
    with torch.device("cpu"):
        assert formula_of(teacher, XY) is not None


def test_parametrised_weights_have_a_formula_as_long_as_they_stay():
    normed = nn.utils.parametrizations.weight_norm(nn.Linear(2, 1)).double()
    text = formula_of(normed, XY)
    x = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    with torch.no_grad():
        assert np.asarray(evaluate(parse(text), x)).reshape(-1, 1) == pytest.approx(normed(torch.from_numpy(x)).numpy())

    class Noise(nn.Module):
        def forward(self, weight):
            return weight + torch.rand_like(weight)

    shaken = nn.Linear(2, 1)
    nn.utils.parametrize.register_parametrization(shaken, "weight", Noise())
    assert formula_of(shaken, XY) is None


@pytest.mark.parametrize(
    "teacher",
    [
        half_awake(),
        nn.Sequential(nn.Linear(2, 1), nn.RReLU()),
        nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)),
        nn.Sequential(nn.AlphaDropout(0.1), nn.Linear(2, 1)),
        nn.Sequential(nn.BatchNorm1d(2, track_running_stats=False)).eval(),
    ],
)
def test_a_teacher_that_is_no_function_of_its_input_is_refused(teacher):
    before = {name: t.clone() for name, t in teacher.state_dict().items()}
    with pytest.raises(ol.InputError, match=r"\.eval\(\)"):
        ol.distill(teacher, domain=[(0, 1)] * 2, tolerance=5.0)
    assert all(torch.equal(t, before[name]) for name, t in teacher.state_dict().items())


def test_a_teacher_that_answers_differently_each_time_is_refused():
    count = itertools.count()
    options = {"tolerance": 3.0, "lipschitz": 100.0, "method": "representative"}

    def restless(x):
        return x[:, 0] + next(count)

    built = ol.build(restless, [(0, 1)], **options)
    with pytest.raises(ol.InputError, match="two different answers"):
        ol.distill(restless, built)


def test_a_teacher_lost_in_its_own_rounding_is_not_certified():
    teacher = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with torch.no_grad():
        for layer, bias in zip(teacher, (1e10, -1e10), strict=True):
            layer.weight.fill_(1.0)
            layer.bias.fill_(bias)
    with pytest.raises(ol.InputError, match="its own formula"):
        ol.distill(teacher, domain=[(0, 1)], tolerance=0.1)
    found = ol.distill(teacher.double(), domain=[(0, 1)], tolerance=0.1)
    assert found.approximation.certificate.verdict == "CERTIFIED"
    assert "exact arithmetic" in str(found)


def test_a_small_network_is_certified_against_itself(tmp_path):
    found = ol.distill(network(2, 6, 1), domain=[(-1, 1)] * 2, tolerance=1e-2)
    assert found.approximation.certificate.verdict == "CERTIFIED"
    assert not any("declared" in a for a in found.approximation.certificate.assumptions)
    assert found.fidelity.sup <= found.approximation.certificate.bound
    assert "formula" in found.how
    assert ol.check(found.save(tmp_path / "student")).verdict == "VALID"
    assert "CERTIFIED" in str(found)


def test_named_variables_have_a_formula_too():
    found = ol.distill(network(2, 3, 1), domain={"T": (0, 1), "p": (0, 1)}, tolerance=0.1)
    assert found.approximation.certificate.verdict == "CERTIFIED"
    assert "formula" in found.how


def test_a_declared_constant_certifies_what_has_no_formula():
    teacher = nn.Sequential(network(2, 4, 4), nn.LayerNorm(4), nn.Linear(4, 1)).double().eval()
    with torch.no_grad():
        teacher[2].weight.copy_(torch.tensor([[0.05, -0.05, 0.05, 0.0]]))
    observed = ol.distill(teacher, domain=[(0, 1)] * 2, tolerance=0.5)
    assert observed.approximation.certificate.verdict == "UNDECIDED"
    found = ol.distill(teacher, ol.build(teacher, [(0, 1)] * 2, 0.5, lipschitz=0.6))
    assert found.how.endswith("by the declared Lipschitz constant")
    assert found.approximation.certificate.verdict == "CERTIFIED"
    assert any("declared" in a for a in found.approximation.certificate.assumptions)
