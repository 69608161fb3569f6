"""Tables and numbers as text: a printed bound is still a bound, and papers get Markdown and LaTeX."""

import math

import pytest

from onelayer.common.numbers import at_least, at_most
from onelayer.common.table import Table, duration, show


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


WIDE = Table(
    "wide", ("", "value"), [("target", "sin(x1) + " * 20 + "0"), ("note", "one word: " + "x" * 90), ("short", "1")]
)


def test_tables_fit_the_terminal(monkeypatch):
    plain = WIDE.text()
    assert str(WIDE) == plain  # not a terminal
    for width in (40, 60, 80):
        lines = WIDE.text(width).splitlines()
        assert max(map(len, lines)) <= width
        assert [line[:6].strip() for line in lines if line[:6].strip()] == ["wide", "──────", "target", "note", "short"]
        assert "".join("".join(lines[3:]).split()) == "".join("".join(plain.splitlines()[3:]).split())
    assert WIDE.text(1000) == plain
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert str(WIDE) == WIDE.text(60)


def test_many_columns_are_narrowed_together():
    table = Table("many", ("name", "a", "b"), [("x" * 30, "first " * 6, 1.5), ("y", "z", 2.0)])
    lines = table.text(40).splitlines()
    assert max(map(len, lines)) <= 40
    assert lines[3].endswith("1.5")
    assert lines[-1].split() == ["y", "z", "2"]


def test_numbers_and_words_stay_whole_on_a_narrow_terminal():
    columns = ("matrix", "role", "shape", "rank", "smallest", "condition", "Frobenius", "largest", "bytes")
    rows = [("W_Q", "queries, all heads", "4×2", 1, 4.076e-16, 6.009e15, 2.449, 1.25e-12, 123456789)] * 3
    for width in (40, 60, 80):
        text = Table("Weights", columns, rows).text(width)
        assert max(map(len, text.splitlines())) <= width
        for cell in (*columns, *rows[0]):
            for word in show(cell).split():
                assert f" {word} " in f" {' '.join(text.split())} "


def test_columns_without_content_are_not_printed_below():
    table = Table("Weights", ("matrix", "role", "eigenvalue"), [("W_Q", "queries", ""), ("W_K", "keys", "")])
    assert table.text(20) == "Weights\nmatrix  role\n───────────────\nW_Q     queries\nW_K     keys\n"
