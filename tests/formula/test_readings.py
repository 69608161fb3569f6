"""Every reading of every function of one variable, with no slack: at points, on boxes, beside the ends of domains and beyond."""

import math
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flint import acb, arb
from mpmath import mp

from formula_cases import MPMATH
from onelayer.formula import elementary, float_bounds
from onelayer.formula.derived import values
from onelayer.formula.functions import EVERYWHERE, FUNCTIONS, NOWHERE
from onelayer.formula.record import DefinedOn, Monotone, Turning, Valley
from onelayer.formula.taylor import axes, bounds, expansions
from onelayer.formula.vocabulary import BINARY
from readings import READINGS, Cases

LOOSE = {"sinc1": ("numbers",)}  # a difference of library functions near its zeros: the errors of arrays say so
UNKNOWN = {"erfinv": ["rectangles"], "norminv": ["rectangles"]}  # flint has no complex values


def one_of_many(name):
    """Whether it is a slope, or of an order above 1: these are read with fewer cases."""
    return FUNCTIONS[name].hidden or bool(re.search(r"[02-9]\d$|[2-9]$|1\d$", name))


MANY = [name for name in FUNCTIONS if one_of_many(name)]
NAMES = [pytest.param(n, marks=pytest.mark.long) if n in MANY and MANY.index(n) % 6 else n for n in FUNCTIONS]


ANYWHERE = ("sin(x1), cos(x1)", "x1 - 0.3, x1", "x1, -1")
BETWEEN = ("2 + sin(x1), 1.5 + cos(x1)", "1 + x1**2, 0.5")  # arguments of a function of positive numbers


@cache
def cases(name):
    return Cases(name, every=4 if name in MANY else 1)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("name", NAMES)
def test_every_reading_of_every_function(name, reading):
    found = READINGS[reading](cases(name))
    assert not found.wrong or reading in LOOSE.get(name, ()), found.wrong[:3]
    none = reading in UNKNOWN.get(name, ()) or (FUNCTIONS[name].slope == NOWHERE and reading in ("slopes", "autograd"))
    assert (found.finite > (1 if name in MANY else 5)) != none or reading in ("domains", "facts")


@pytest.mark.parametrize("reading", ["errors", "ranges", "slopes", "models", "coefficients", "rectangles"])
@pytest.mark.parametrize("text", [f"{name}({a})" for name in BINARY for a in (BETWEEN if name == "beta" else ANYWHERE)])
def test_functions_of_two_numbers(text, reading):
    found = READINGS[reading](cases(text))
    assert not found.wrong, found.wrong[:3]
    assert found.finite > 5


@pytest.mark.parametrize("name", [name for name in NAMES if not isinstance(name, str) or name in MPMATH])
def test_both_judges_agree(name):
    with mp.workdps(50):
        for x, exact in [(x, y) for x, y in cases(name).known() if 1e-9 < abs(x) < 60][::9]:
            other = MPMATH[name](mp.mpf(x))
            apart = abs(mp.mpf(exact.mid().str(60, radius=False)) - other)
            assert apart <= 1e-35 * max(abs(other), mp.mpf("1e-5")), (x, exact, other)


def test_a_value_that_no_precision_settles_is_none():
    """A ball that stays wide is no value within a unit in the last place."""
    wide = replace(FUNCTIONS["erfc"], ball=lambda z: z.erfc() + arb(0, 1e-3))
    assert np.isnan(values(wide, np.array([0.5]))).all()
    assert values(FUNCTIONS["erfc"], np.array([0.5]))[0] == math.erfc(0.5)


HUGE = acb(arb(0, 99), arb(0, 99))
WAYS = {  # what is wrong: a function, its facts, readings that must see it
    "ball": ("erfc", {"ball": lambda z: z.erfc() * (1 + arb(2) ** -40)}, ["numbers", "tensors", "errors", "ranges", "models"]),
    "ball, by one unit": ("si", {"ball": lambda z: z.si() * (1 + arb(2) ** -51)}, ["numbers", "ranges"]),
    "slope": ("erfc", {"slope": "2/sqrt(pi)*exp(-u**2)"}, ["autograd", "slopes", "models", "coefficients"]),
    "slope, by a little": ("normcdf", {"slope": "1.0000001*exp(-u**2/2)/sqrt(2*pi)"}, ["autograd", "slopes", "coefficients"]),
    "direction": ("erfc", {"shape": Monotone(0.0, 2.0)}, ["ranges", "models", "coefficients"]),
    "least": ("gamma", {"shape": Valley(1.4616, 1.4617, 0.8857)}, ["ranges", "coefficients"]),
    "valley": ("lgamma", {"shape": Valley(1.55, 1.56, -0.1215)}, ["ranges", "models", "coefficients"]),
    "most": ("ai", {"shape": Turning(-0.4191, 0.5)}, ["ranges", "models", "coefficients"]),
    "turning": ("j0", {"shape": Monotone()}, ["ranges", "models", "coefficients"]),
    "domain": ("gamma", {"domain": None}, ["domains", "ranges"]),
    "closed domain": ("acosh", {"domain": DefinedOn(0.5, closed=True)}, ["domains"]),
    "smaller domain": ("y0", {"domain": DefinedOn(0.1), "singular": ()}, ["domains"]),
    "steepest": ("normcdf", {"steepest": 0.3}, ["spreads", "facts"]),
    "holder": ("acosh", {"holder": (1.0, 0.5)}, ["spreads", "facts"]),
    "analytic": ("asinh", {"analytic": EVERYWHERE, "ball": lambda z: z.asinh() if z.imag == 0 else HUGE}, ["rectangles"]),
    "taylor": ("j1", {"taylor": FUNCTIONS["j0"].taylor}, ["models", "coefficients"]),
    "ends": ("ai", {"ends": True}, ["coefficients"]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_can_fail(way, monkeypatch):
    name, facts, seen = WAYS[way]
    wrong = replace(FUNCTIONS[name], **facts)
    monkeypatch.setitem(FUNCTIONS, name, wrong)
    for table in (elementary.RANGES, bounds.BOUNDS, expansions.EXPANSIONS, axes.SLOPES_OF_ARRAYS):
        monkeypatch.setitem(table, name, table.make(wrong))
    if "steepest" in facts:
        monkeypatch.setitem(float_bounds.SPREADS, name, lambda x, y, e: wrong.steepest * e)
    found = Cases(name)
    assert [reading for reading in seen if not READINGS[reading](found).wrong] == []
