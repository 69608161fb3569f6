"""Shapes and types in every signature are enforced in the tests (and only there)."""

import os
import signal
from collections import Counter

import hypothesis
import jaxtyping
import pytest
import torch

import signatures
from browsing import CHROMIUM, SOFTWARE

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # kernels run on the CPU, where a test calls them

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it, and tests send it

signatures.install()

hypothesis.settings.register_profile("default", deadline=None, max_examples=40, derandomize=True, database=None)
hypothesis.settings.load_profile("default")


@pytest.fixture
def as_user(monkeypatch):
    """As a user runs it: no checks of signatures, so that bad input meets the library's own words."""
    monkeypatch.setattr(signatures, "enforced", False)
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield started
        started.close()


@pytest.fixture
def browser(chromium):
    """Headless chromium. Pages that a failed test leaves open are closed: they would slow down the tests behind it."""
    yield chromium
    for context in chromium.contexts:
        context.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Every n-th case of a test marked `one_in(n)` is quick, the others are long. A browser that hangs is asked twice."""
    cases = Counter()
    for item in items:
        if "browser" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(400))
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun="Timeout"))
        mark, test = item.get_closest_marker("one_in"), item.nodeid.split("[")[0]
        if mark and cases[test] % mark.args[0]:
            item.add_marker(pytest.mark.long)
        cases[test] += 1
