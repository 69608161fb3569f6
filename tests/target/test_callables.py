"""Callables and modules as targets: whatever goes wrong in them is told in one line; a module is taken as it is."""

import math

import numpy as np
import pytest
import torch
from torch import nn

import onelayer as ol
from onelayer import InputError, Target

SQUARE = [(0, 1)] * 2


def failing(x):
    raise KeyError("pressure")


def later(x):
    """Right for the two points that are tried first, wrong for more."""
    return x.sum(axis=1) if len(x) == 2 else x.sum()


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("function", "words"),
    [
        (
            lambda x, y: x * y,
            r"a function that answers inputs of shape \[2, 2\].*missing 1 required positional argument",
        ),
        (lambda: 1.0, r"shape \[2, 2\].*takes 0 positional arguments"),
        (failing, r"shape \[2, 2\]; found: KeyError: 'pressure'"),
        (math.sin, r"shape \[2, 2\]; found: TypeError: .*with a torch tensor"),
        (lambda x: x[:, 5], r"IndexError: .*out of bounds"),
        (lambda x: torch.sin(x) @ torch.ones(3), r"and, with a torch tensor, RuntimeError"),
        (lambda x: None, r"output of shape \[\] for input of shape \[2, 2\]"),
        (lambda x: x.sum(), r"output of shape \[\] for input of shape \[2, 2\]"),
        (lambda x: "high", "real numbers as answers"),
        (lambda x: 1j * x[:, 0], "complex"),
        (lambda x: torch.complex(x[:, 0], x[:, 1]), "complex"),
        (lambda x: [[1.0], [1.0, 2.0]], "real numbers as answers"),
        (lambda x: {"y": x}, "real numbers as answers"),
    ],
)
def test_a_function_that_fails_is_told_so_in_one_line(function, words):
    with pytest.raises(InputError, match=words) as refusal:
        ol.build(function, SQUARE, 0.1)
    assert "\n" not in str(refusal.value)


@pytest.mark.usefixtures("as_user")
def test_a_function_may_fail_later_and_refuse_by_itself():
    with pytest.raises(InputError, match="output of shape"):
        Target(later, SQUARE)(np.zeros((3, 2)))

    def picky(x):
        raise InputError("a kind word", "none", "say please")

    with pytest.raises(InputError, match="a kind word"):
        Target(picky, SQUARE)


def test_answers_of_torch_need_no_detach():
    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    with torch.enable_grad():
        target = Target(lambda x: torch.as_tensor(x) @ weight, SQUARE)
    assert target(np.array([[1.0, 2.0]])) == [[3.0]]
    assert Target(lambda x: torch.tanh(x).bfloat16(), SQUARE)(np.zeros((1, 2))).tolist() == [[0.0, 0.0]]


class Bent(nn.Module):
    """A function of x that no formula is read from."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        assert x.dtype == self.scale.dtype
        return self.scale * x[:, 0] + x[:, 1].abs()


def network(dtype=torch.float64):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 2)).to(dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_a_network_is_certified_by_its_own_formula(dtype):
    module = network(dtype)
    approx = ol.build(module, SQUARE, 1e-2)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.description.kind == "formula"
    assert not any("declared" in assumption for assumption in approx.certificate.assumptions)
    assert any("the module in exact arithmetic" in note for note in approx.facts.notes)
    x = torch.rand(1000, 2, dtype=torch.float64)
    with torch.no_grad():
        assert (approx(x) - module(x.to(dtype))).abs().max() <= 1e-2 + 1e-6
    assert all(t.grad is None for t in module.parameters())


def test_a_declared_constant_is_used_instead_of_the_formula():
    target = Target(network(), SQUARE, lipschitz=10.0)
    assert target.kind == "callable"
    assert target.text == "Sequential"
    assert target.modulus.kind == "declared"


def test_any_other_module_is_a_callable():
    approx = ol.build(Bent().double(), SQUARE, 0.5, lipschitz=1.0, method="representative")
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.target_text == "Bent"
    assert Target(Bent(), SQUARE).modulus.kind == "estimated"
    with torch.no_grad():
        expected = Bent()(torch.tensor([[0.25, 0.5]]))
    assert Target(Bent(), SQUARE)(np.array([[0.25, 0.5]]))[0, 0] == float(expected)
    many = np.random.default_rng(0).random((10_000, 2))
    assert Target(Bent(), SQUARE)(many).shape == (10_000, 1)


class Restless(Bent):
    def forward(self, x):
        return super().forward(x) + torch.rand(len(x))


class Answers(Bent):
    def forward(self, x):
        return {"logits": x}


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("module", "words"),
    [
        (nn.Embedding(5, 3), r"a module that answers inputs of shape \[2, 2\].*ol\.distill"),
        (nn.Linear(3, 1), r"shape \[2, 2\].*RuntimeError"),
        (Answers(), r"found: dict.*ol\.distill"),
        (Restless(), "two different answers"),
        (nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5)), r"Dropout in training mode; change: call its \.eval\(\)"),
        (nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1)), r"batch normalisation"),
    ],
)
def test_a_module_that_is_no_function_of_points_is_told_so(module, words):
    with pytest.raises(InputError, match=words) as refusal:
        ol.build(module, SQUARE, 0.1)
    assert "\n" not in str(refusal.value)


def test_a_module_lost_in_its_own_rounding_is_refused():
    module = nn.Sequential(nn.Linear(1, 1), nn.Linear(1, 1))
    with torch.no_grad():
        for layer, bias in zip(module, (1e10, -1e10), strict=True):
            layer.weight.fill_(1.0)
            layer.bias.fill_(bias)
    with pytest.raises(InputError, match=r"its own formula.*module\.double"):
        ol.build(module, [(0, 1)], 0.1)
    assert ol.build(module.double(), [(0, 1)], 0.1).certificate.verdict == "CERTIFIED"


def test_a_module_is_trained_like_a_function():
    found = ol.train(network(), SQUARE, tolerance=0.5, heads=2, width=8, d_model=8, steps=5, samples=50)
    assert found.output_shape == (2,)
