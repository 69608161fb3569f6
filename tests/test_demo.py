"""`make demo` prints a table whose numbers are at rounding level."""

import pytest

import demo


def test_model_reference_and_stock_agree():
    table = demo.compare()
    assert len(table.rows) == 4
    for _, model, reference, dx, dtheta in table.rows:
        assert max(float(model), float(reference)) <= 1e-12
        assert max(float(dx), float(dtheta)) <= 1e-10


@pytest.mark.long
def test_the_papers_example_three_ways():
    rows = demo.paper_example().rows
    units = [int(str(row[2]).replace(",", "")) for row in rows]
    assert [row[6] for row in rows] == ["CERTIFIED"] * 5
    assert units[4] < units[3]
    assert units[3] * 10 < units[0]
    assert all(float(row[5]) <= float(row[1]) for row in rows)
