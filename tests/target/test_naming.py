"""Which side of a domain belongs to which variable."""

import json

import numpy as np
import pytest

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.target.naming import spread, variables_of
from onelayer.target.sides import read_domain


def test_names_stand_in_the_stated_order():
    assert variables_of("t*z + y/x") == ("x", "y", "z", "t")
    assert variables_of("k*T + x") == ("x", "T", "k")
    assert variables_of("x3") == ("x1", "x2", "x3")
    assert variables_of("x", "y < 1") == ("x", "y")
    assert variables_of("f(k, T) = k*T") == ("k", "T")
    with pytest.raises(InputError, match=r"x1 in the formula, x in the condition.*not both"):
        variables_of("x1", "x < 1")


def test_sides_go_to_the_variables_in_that_order():
    target = ol.Target("y - x^2", [(0, 1), (2, 3)])
    assert str(target.domain) == "x in [0, 1], y in [2, 3]"
    assert target.text == "y - x**2"
    assert target(np.array([[0.5, 3.0]])) == [[2.75]]
    assert str(ol.Target("f(k, T) = k/T", [(0, 1), (2, 3)]).domain) == "k in [0, 1], T in [2, 3]"
    assert str(ol.Target("k*T", [(0, 1)] * 2).domain) == "T in [0, 1], k in [0, 1]"
    assert ol.Target("x1", [(0, 1)] * 2).domain.names == ("x1", "x2")


def test_names_in_the_domain_win():
    target = ol.Target("y - x", {"y": (0, 1), "x": (0, 1)})
    assert target(np.array([[0.75, 0.25]])) == [[0.5]]
    assert read_domain("y:0:1, x:2:3") == read_domain("y=0:1, x=2:3") == {"y": ("0", "1"), "x": ("2", "3")}


def test_a_guess_is_refused():
    with pytest.raises(InputError, match="different sides for T, k; change: name the sides in the domain: T, k"):
        ol.Target("k*T", [(0, 1), (0, 2)])
    with pytest.raises(InputError, match="asked: 1 side, one per variable; found: 2 sides for x"):
        ol.Target("x", [(0, 1), (0, 2)])


def test_one_interval_stands_for_all():
    assert spread(read_domain("0:1"), "x*T") == [("0", "1")] * 2
    assert spread(read_domain("0:1"), "x3") == [("0", "1")] * 3
    assert spread(read_domain("0:1"), "2", least=4) == [("0", "1")] * 4
    assert spread(read_domain("x=0:1"), "x") == {"x": ("0", "1")}


@pytest.mark.long
def test_a_folder_keeps_canonical_text(tmp_path):
    approx = ol.build("f(x, y) = 2x·y²", [(0, "2π"), (0, 1)], 5.0, within="x² ≤ 4")
    stored = json.loads((approx.save(tmp_path / "f") / "target.json").read_text())
    assert stored["formula"] == "2*x*y**2"
    assert stored["names"] == ["x", "y"]
    assert stored["ends"] == [["0", "2*pi"], ["0", "1"]]
    assert stored["within"] == "x**2 <= 4"
    assert str(ol.check(tmp_path / "f")).startswith("VALID")


def test_another_spelling_is_the_same_layer():
    plain = ol.build("x1*exp(-x1**2)", [(-1, 1)], 1e-2)
    typed = ol.build("x*exp(-x^2)", [(-1, 1)], 1e-2)
    assert typed.certificate.bound == plain.certificate.bound
    assert all((a == b).all() for a, b in zip(plain.model.parameters(), typed.model.parameters(), strict=True))


def test_sides_may_be_an_array_and_one_side_is_not_enough_for_two_variables(as_user):
    assert str(ol.Target("x*y", np.array([[0, 1], [0, 2]])).domain) == "x in [0, 1], y in [0, 2]"
    with pytest.raises(InputError, match=r"1 side for x, y; change: give a side for each, such as \[\(0, 1\)\] \* 2"):
        ol.Target("x*y", (0, 1))
