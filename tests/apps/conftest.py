"""A server and visits to its page, for the tests of the explorer in a browser."""

import pytest

from browsing import CHROMIUM, SOFTWARE
from explorers import serving
from visits import Visit


@pytest.fixture(scope="module")
def visited():
    """(address, browser)"""
    from playwright.sync_api import sync_playwright

    with serving() as server, sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield server.address, chromium
        chromium.close()


@pytest.fixture
def visit(visited):
    made = []

    def make(**options):
        made.append(Visit(*visited, **options))
        return made[-1]

    yield make
    for one in made:
        one.close()
