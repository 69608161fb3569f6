"""Axe-core finds nothing serious on the pages that people open first, in light and in dark, on a phone and on a wide screen."""

import pytest

import onelayer as ol
from accessible import serious
from browsing import CHROMIUM
from explorers import serving
from onelayer.views.story_page import story_page
from site_building import built_site

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium"),
    pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (390, "dark")]),
]


def require_accessible(browser, address, width, scheme, ready="body"):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector(ready, timeout=100_000)
    assert serious(page) == []
    page.close()


def test_a_page_that_is_not_accessible_is_found_out(browser, width, scheme):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_content(
        "<main><button></button><img src='data:,'><p style='color: #ccc; background: #fff'>pale</p></main>"
    )
    found = " ".join(serious(page))
    assert all(rule in found for rule in ("button-name", "image-alt", "color-contrast"))
    page.close()


@pytest.mark.long
def test_the_explorer(browser, width, scheme):
    with serving() as server:
        require_accessible(browser, server.address, width, scheme, "body[data-shown=yes][data-busy=no]")


@pytest.mark.long
def test_the_report(browser, tmp_path, width, scheme):
    approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-2)
    page = approx.report(tmp_path / "report.html")
    require_accessible(browser, f"file://{page}", width, scheme, "body[data-ready=yes]")


@pytest.mark.long
def test_the_story(browser, tmp_path, width, scheme):
    (tmp_path / "story.html").write_text(story_page(), encoding="utf-8")
    require_accessible(browser, f"file://{tmp_path / 'story.html'}", width, scheme)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return built_site(tmp_path_factory.mktemp("site"))


@pytest.mark.long
@pytest.mark.parametrize("page", ["index", "start/tutorial", "theory/theorem", "trust/checker", "layers/index"])
def test_the_site(browser, site, page, width, scheme):
    require_accessible(browser, f"file://{site / page}.html", width, scheme)
