"""The report in Firefox, where it is installed."""

import pytest

from firefox import firefox, needs_firefox
from reports import KINDS


@needs_firefox
@pytest.mark.long
def test_the_report_works_in_firefox(tmp_path):
    approx = KINDS["3-D"]()
    with firefox(tmp_path / "profile") as page:
        page.goto(f"file://{approx.report(tmp_path / 'report.html')}")
        page.wait_for('document.body.dataset.ready === "yes"')
        assert page.evaluate("return document.documentElement.scrollWidth <= window.innerWidth")
        value = page.evaluate("movePoint(); return window.explainedNow.value")
        x = page.evaluate("return window.explainedNow.x")
    assert value == pytest.approx(float(approx(x)), abs=1e-9)
