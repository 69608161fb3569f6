"""Shapes and types in every signature are enforced in the tests (and only there)."""

import os

import hypothesis
import jaxtyping
import pytest
import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels run on the CPU, where a test calls them

jaxtyping.install_import_hook("onelayer", "beartype.beartype")

hypothesis.settings.register_profile("default", deadline=None, max_examples=40, derandomize=True, database=None)
hypothesis.settings.load_profile("default")

# tests of five seconds and more that others stand in for in the quick run
LONG = [
    "test_analytic.py::test_overlapping_terms_are_proved_one_by_one",
    "test_browser.py::test_sliders_move_the_slices",
    "test_checker.py::test_its_rounding_covers_dense_weights[5-float64]",
    "test_checker.py::test_its_rounding_covers_the_deployed_model[gates heads 2 10-float64]",
    "test_checker.py::test_its_rounding_covers_the_deployed_model[gates token 2 300-float64]",
    "test_docs.py::test_page_runs[docs/theory/cases.md]",
    "test_estimator.py::test_several_outputs_of_different_size[polished]",
    "test_estimator.py::test_weights_are_copies_and_order_does_not_matter[polished]",
    "test_examples.py::test_example_runs[sequence]",
    "test_examples.py::test_example_runs[van_der_waals]",
    "test_explorer_browser.py::test_cancel[button]",
    "test_explorer_browser.py::test_phone_and_screen_light_and_dark[dark-390]",
    "test_modulus.py::test_no_pair_of_points_beats_omega",
    "test_notebooks.py::test_notebook_runs[02_seven_holes]",
    "test_plan.py::test_a_jump_is_refused",
    "test_report.py::test_every_kind_has_a_report[memory]",
    "test_search.py::test_gates_that_would_be_cheaper",
    "test_streaming.py::test_killed_half_way[npy-2]",
    "test_theorem.py::test_the_rate_is_the_theorys[2-sin(5*x1)*cos(3*x2)]",
]
MANY = 1000  # tests: then all files are there


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the long ones before `-m` chooses; a name that no test has any more is an error."""
    known = {item.nodeid.split("tests/")[-1]: item for item in items}
    if len(items) > MANY and (lost := [name for name in LONG if name not in known]):
        raise pytest.UsageError(f"conftest.LONG names tests that are not there: {', '.join(lost)}")
    for name in LONG:
        if name in known:
            known[name].add_marker(pytest.mark.long)


@pytest.fixture
def as_user(monkeypatch):
    """As a user runs it: no checks of signatures, so that bad input meets the library's own words."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
