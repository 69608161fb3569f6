"""Tables and numbers as text: a printed bound is still a bound, and papers get Markdown and LaTeX."""

import math

import pytest

from onelayer.common.numbers import at_least, at_most
from onelayer.common.table import Table, duration


@pytest.mark.parametrize("value", [8.4714e-07, 8.4716e-07, 0.1, 1 / 3, 12345.6, 1e-300, 999.99, 5e-324])
def test_printed_bounds_are_proved_too(value):
    assert float(at_least(value)) <= value <= float(at_most(value))
    assert float(at_most(value)) <= value * 1.002 or value < 1e-320
    assert at_most(math.inf) == "inf"


def test_tables_for_papers():
    table = Table("of a\nkind", ("x & y", "v|w"), [("a_1", "x^2 {}~\\ 50%")])
    assert table.markdown().splitlines()[0] == r"| x & y | v\|w |"
    assert table.latex().splitlines()[:3] == ["% of a kind", r"\begin{tabular}{ll}", r"x \& y & v|w \\"]
    assert r"a\_1 & x\textasciicircum{}2 \{\}\textasciitilde{}\textbackslash{} 50\%" in table.latex()


def test_times_in_words():
    assert (duration(40.0), duration(300.0), duration(7800.0)) == ("40 s", "5 min", "2 h 10 min")
