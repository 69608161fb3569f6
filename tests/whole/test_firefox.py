"""The pages in Firefox, where it is installed: report, story, explorer."""

import pytest

from explorers import serving
from firefox import firefox, needs_firefox
from onelayer.views.story_page import story_page
from reports import KINDS

pytestmark = [needs_firefox, pytest.mark.long]
FITS = "return document.documentElement.scrollWidth <= window.innerWidth"
CERTIFIED = "document.body.matches('[data-shown=yes][data-busy=no][data-state=current]')"


def test_the_report(tmp_path):
    approx = KINDS["3-D"]()
    with firefox(tmp_path / "profile") as page:
        page.goto(f"file://{approx.report(tmp_path / 'report.html')}")
        page.wait_for('document.body.dataset.ready === "yes"')
        assert page.evaluate(FITS)
        value = page.evaluate("movePoint(); return window.explainedNow.value")
        x = page.evaluate("return window.explainedNow.x")
    assert value == pytest.approx(float(approx(x)), abs=1e-9)


def test_the_story(tmp_path):
    (tmp_path / "story.html").write_text(story_page([("On", "on.html")]))
    with firefox(tmp_path / "profile") as page:
        page.goto(f"file://{tmp_path / 'story.html'}")
        for step in ("gate", "stairs", "finer", "solved", "polished", "boxes", "cannot"):
            page.evaluate(f"document.getElementById('{step}').scrollIntoView()")
            page.wait_for(f"document.querySelector('#{step}[data-started] svg path.line')")
        assert page.evaluate(FITS)
        assert page.evaluate("return document.querySelectorAll('button.term').length") > 5
        verdict = page.evaluate("return document.getElementById('polished-verdict').textContent")
    assert "CERTIFIED" in verdict


def test_the_explorer(tmp_path):
    with serving() as server, firefox(tmp_path / "profile") as page:
        page.goto(server.address)
        page.wait_for(CERTIFIED, 90)
        assert page.evaluate(FITS)
        assert "CERTIFIED" in page.evaluate("return document.body.innerText")
        page.evaluate(
            "const input = document.getElementById('formula'); input.value = 'cos(x1)*x2';"
            "input.dispatchEvent(new Event('input', { bubbles: true }));"
        )
        page.wait_for("document.body.dataset.state !== 'current'")
        page.wait_for(CERTIFIED, 90)
        assert page.evaluate("return document.querySelector('#function-0 .gl-container, #function-0 canvas') !== null")
