"""`make demo` prints a table whose numbers are at rounding level, and installs what it needs and no more."""

import subprocess

import pytest

import demo
from pages import ROOT


def test_model_reference_and_stock_agree():
    table = demo.compare()
    assert len(table.rows) == 4
    for _, model, reference, dx, dtheta in table.rows:
        assert max(float(model), float(reference)) <= 1e-12
        assert max(float(dx), float(dtheta)) <= 1e-10


@pytest.mark.parametrize(
    ("target", "extras"), [("demo", ["."]), ("docs", [".", '".[docs]"']), ("test", [".", '".[dev]"'])]
)
def test_make_installs_what_a_target_needs(target, extras):
    call = ["make", "--dry-run", "--always-make", "-C", str(ROOT), target]
    planned = subprocess.run(call, capture_output=True, text=True, check=True).stdout.splitlines()
    installs = [line for line in planned if " pip install " in line]
    assert [line.split("--editable ")[1] for line in installs] == extras
    assert all("--constraint constraints.txt" in line for line in installs)


@pytest.mark.long
def test_the_papers_example_three_ways():
    rows = demo.paper_example().rows
    units = [int(str(row[2]).replace(",", "")) for row in rows]
    assert [row[6] for row in rows] == ["CERTIFIED"] * 5
    assert units[4] < units[3]
    assert units[3] * 10 < units[0]
    assert all(float(row[5]) <= float(row[1]) for row in rows)
