"""The report in a real browser: headless chromium, where it is installed."""

import numpy as np
import pytest

from browsing import CHROMIUM, SOFTWARE, Seen, needs_chromium
from reports import KINDS
from sweeps import stored


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=CHROMIUM, args=SOFTWARE)
        yield chromium
        chromium.close()


def looked_at(browser, approx, tmp_path, width=1400):
    return Seen(browser, approx.report(tmp_path / "report.html"), width)


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
def test_no_error_no_request_no_overflow(browser, tmp_path, width):
    seen = looked_at(browser, KINDS["3-D"](), tmp_path, width)
    seen.scroll()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.require_quiet()
    seen.page.close()


@needs_chromium
@pytest.mark.parametrize("width", [390, pytest.param(1400, marks=pytest.mark.long)])
def test_the_report_of_a_study(browser, tmp_path, width):
    study = stored("epsilon")
    seen = Seen(browser, study.report(tmp_path / "study.html"), width)
    assert seen.page.locator(".figure").count() == len(study.sweep.figures)
    assert seen.page.locator(".figure .errorbars, .figure .points").count() > 0
    assert "lipschitz" not in seen.page.inner_text("main")  # theory is said in words
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.require_quiet()
    seen.page.close()


@pytest.mark.long
@needs_chromium
def test_sliders_move_the_slices(browser, tmp_path):
    approx = KINDS["3-D"]()
    seen = looked_at(browser, approx, tmp_path)
    seen.page.wait_for_selector("#function-0[data-drawn=yes]")
    at = seen.page.evaluate(
        """() => { const input = document.querySelector("#scene-0 input");
        input.value = 8; input.dispatchEvent(new Event("input", {bubbles: true}));
        return new Promise((done) => setTimeout(() => { const plot = document.getElementById("function-0")._fullData[1];
            const shown = document.querySelector("#scene-0 output").value;
            done({x: plot.x[5], y: plot.y[7], z: plot.z[7][5], shown}); }, 800)); }"""
    )
    assert float(at["shown"]) == 1.0
    assert at["z"] == pytest.approx(float(approx(np.array([at["x"], at["y"], 1.0]))), abs=1e-6)
    seen.require_quiet()
    seen.page.close()


def moved(seen, x, output=None):
    """The page's T at x."""
    return seen.page.evaluate(
        """([x, output]) => { document.querySelectorAll("#movable input").forEach((i) => { i.value = x[i.dataset.variable]; });
        if (output !== null) document.querySelector("#movable select").value = output;
        movePoint(); return [window.explainedNow.x, window.explainedNow.value]; }""",
        [list(map(float, x)), output],
    )


def require_equal(browser, approx, tmp_path, kind):
    """The page's own softmax is the model's, at points all over the domain, for every output."""
    seen = looked_at(browser, approx, tmp_path)
    d, random = approx.domain, np.random.default_rng(1)
    outputs = int(np.prod(approx.output_shape))
    for k in range(5):
        x = d.points(random.uniform(size=(1, d.dimension)))[0]
        x = random.integers(0, approx.vocabulary, d.dimension) if approx.vocabulary else x
        output = None if outputs == 1 else k % min(outputs, 6)
        there, value = moved(seen, x, output)
        expected = np.asarray(approx(np.array(there)), dtype=np.float64).ravel()[output or 0]
        close = 1e-4 if kind in ("float32", "trained") else 1e-9
        assert value == pytest.approx(float(expected), rel=close, abs=close)
    seen.require_quiet()
    seen.page.close()


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_page_computes_its_layer(browser, tmp_path, kind):
    require_equal(browser, KINDS[kind](), tmp_path, kind)


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("kind", sorted(set(KINDS) - {"3-D"}))
def test_every_kind_in_a_browser(browser, tmp_path, kind, width):
    seen = looked_at(browser, KINDS[kind](), tmp_path, width)
    seen.scroll()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.require_quiet()
    seen.page.close()


@needs_chromium
@pytest.mark.long
def test_a_large_layer_opens_in_seconds(browser, tmp_path):
    import onelayer as ol

    approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.134, method="representative")
    assert approx.units > 4900
    seen = looked_at(browser, approx, tmp_path)
    seen.scroll()
    seen.require_quiet()
    _, value = moved(seen, [1.0, 2.0])
    assert value == pytest.approx(float(approx(np.array([1.0, 2.0]))), abs=1e-9)
    seen.page.close()
