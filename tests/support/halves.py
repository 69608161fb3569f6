"""Half of many similar cases: enough for the quick tests, all of them where all tests run."""

import pytest


def half(cases):
    """The cases as parameters; every second one is long."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long if number % 2 else ())
        for number, case in enumerate(cases)
    ]
