"""`make demo` prints a table whose numbers are at rounding level."""

import demo


def test_model_reference_and_stock_agree():
    table = demo.compare()
    assert len(table.rows) == 4
    for _, model, reference, dx, dtheta in table.rows:
        assert max(float(model), float(reference)) <= 1e-12
        assert max(float(dx), float(dtheta)) <= 1e-10
