"""The ready-made layers of the site: their certificates hold, and their pages compute without a server."""

import runpy

import numpy as np
import pytest

import onelayer as ol
from browsing import Seen, needs_chromium, require_readable
from checking import check
from onelayer.views.page_files import plotly_source
from pages import ROOT
from showcase import Exhibit, cards_page, shared, write_showcase

PREBUILT = runpy.run_path(str(ROOT / "docs" / "prebuilt.py"))
TWELVE = {entry.name: entry for entry in PREBUILT["TWELVE"]}
QUICK = ("distance", "gaussian", "histogram", "sort")  # to check
MOST_BYTES = 60_000  # of a folder in the repository


def exhibit(name):
    entry = TWELVE[name]
    layer = ol.load(PREBUILT["FOLDERS"] / name)
    return Exhibit(name, entry.title, entry.about, layer, entry.drawn, entry.output)


def test_there_are_twelve_and_they_are_small():
    folders = sorted(path.name for path in PREBUILT["FOLDERS"].iterdir())
    assert folders == sorted(TWELVE)
    assert len(folders) == 12
    for name in folders:
        assert sum(file.stat().st_size for file in (PREBUILT["FOLDERS"] / name).iterdir()) < MOST_BYTES


@pytest.mark.parametrize("name", [pytest.param(n, marks=[] if n in QUICK else pytest.mark.long) for n in TWELVE])
def test_the_checker_proves_it_again(name):
    assert ol.load(PREBUILT["FOLDERS"] / name).certificate.verdict == "CERTIFIED"
    assert check(PREBUILT["FOLDERS"] / name).verdict == "VALID"


def test_pages_share_one_plotly_and_lead_to_each_other(tmp_path):
    pages = write_showcase([exhibit("distance"), exhibit("histogram")], tmp_path / "layers")
    assert [page.name for page in pages] == ["index.html", "distance.html", "histogram.html"]
    assert (tmp_path / "layers" / "plotly.js").read_text() == plotly_source()
    for page in pages:
        assert page.stat().st_size < 1_000_000
    text = pages[1].read_text()
    assert '<script src="plotly.js"></script>' in text
    assert '<a href="index.html">' in text
    assert "A kink: one head looks at the larger of two numbers." in text
    assert "of its range), " in pages[0].read_text()
    assert "script-src 'unsafe-inline' 'self'" in text
    assert 'href="distance.html"' in pages[0].read_text()
    assert plotly_source() in shared(f"<p>{plotly_source()}</p>")  # only the script is taken out


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_cards_are_drawn_by_their_layers(browser, tmp_path, width, scheme):
    shown = [exhibit(name) for name in TWELVE]
    (tmp_path / "index.html").write_text(cards_page(shown))
    seen = Seen(browser, tmp_path / "index.html", width, color_scheme=scheme)
    page = seen.page
    for one in shown:
        page.evaluate("(id) => document.getElementById(id).scrollIntoView()", one.name)
        page.wait_for_selector(f"#{one.name}[data-drawn]")
    for one in shown:
        filled = page.evaluate(
            """(id) => { const c = document.getElementById(id), d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
            let n = 0; for (let k = 3; k < d.length; k += 4) n += d[k] > 0; return n / (c.width * c.height); }""",
            one.name,
        )
        assert filled > 0.15, one.name
    record = page.evaluate("surfaceOf(RECORDS.franke)")
    franke, side = shown[0].approximation, np.linspace(0, 1, 33)
    assert record == pytest.approx(franke(np.array([[a, b] for b in side for a in side])).ravel(), abs=1e-10)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    require_readable(page)
    seen.require_quiet()
    page.close()


@needs_chromium
@pytest.mark.long
def test_a_page_of_the_site_works_from_a_file(browser, tmp_path):
    write_showcase([exhibit("histogram")], tmp_path)
    seen = Seen(browser, tmp_path / "histogram.html", 1400)
    page = seen.page
    page.evaluate(
        """{ const e = document.querySelector("#movable input");
        e.value = 3; e.dispatchEvent(new Event("input", { bubbles: true })); }"""
    )
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found = page.evaluate("window.explainedNow")
    assert found["x"][0] == 3
    assert found["value"] == pytest.approx(np.ravel(exhibit("histogram").approximation(found["x"]))[0], abs=1e-12)
    files = [url.rpartition("/")[2] for url in seen.requests if url.startswith("file:")]
    assert files == ["histogram.html", "plotly.js"]
    page.close()
