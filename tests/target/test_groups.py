"""Interaction groups, from the formula's tree and from mixed differences."""

import numpy as np
import pytest

from onelayer import Target
from onelayer.formula.additive import components
from onelayer.target.groups import groups_of


@pytest.mark.parametrize(
    ("formula", "groups"),
    [
        ("sin(x1) + sin(x2)", [(0,), (1,)]),
        ("-(x1 - 2*(x2 + x3*x1))/pi", [(0, 2), (1,)]),
        ("(sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1))/17.75", [(0, 2), (1,)]),
        ("sin(x1 + x2) + x4", [(0, 1), (3,)]),
        ("x1 + x2; x2*x3", [(0,), (1, 2)]),
        ("exp(x1)*(x2 + x3)", [(0, 1, 2)]),
        ("5", []),
    ],
)
def test_groups_of_a_formula(formula, groups):
    assert groups_of(Target(formula, [(0, 1)] * 4)) == groups


def test_groups_of_a_callable():
    f = Target(lambda x: np.sin(x[:, 0]) * x[:, 2] + x[:, 1] ** 3, [(0, 1)] * 4)
    assert groups_of(f) == [(0, 2), (1,)]


def test_components():
    assert components([(0, 1), (2,), (1, 3), ()]) == [(0, 1, 3), (2,)]
