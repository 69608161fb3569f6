"""The report in a real browser: headless chromium, where it is installed."""

import re
import subprocess
import zlib

import numpy as np
import pytest

import onelayer as ol
from browsing import CHROMIUM, SOFTWARE, Seen, needs_chromium, require_readable
from onelayer.views.comparison import write_page
from reports import KINDS
from sweeps import stored


def looked_at(browser, approx, tmp_path, width=1400, **context):
    return Seen(browser, approx.report(tmp_path / "report.html"), width, **context)


@pytest.fixture(scope="module")
def curve(tmp_path_factory):
    """A layer of one variable and its report: no surfaces, so that it opens quickly."""
    approx = KINDS["1-D"]()
    return approx, approx.report(tmp_path_factory.mktemp("curve") / "report.html")


INK = {"light": "rgb(28, 36, 48)", "dark": "rgb(230, 235, 242)"}


def require_colours(seen, name):
    """Page and figures are in one scheme."""
    assert seen.page.get_attribute("html", "data-theme") == name
    assert seen.page.evaluate("getComputedStyle(document.body).color") == INK[name]
    fills = seen.page.evaluate(
        "[...document.querySelectorAll('.figure .xtick text')].map((t) => getComputedStyle(t).fill)"
    )
    assert set(fills) == {INK[name]}


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(browser, curve, scheme):
    other = "dark" if scheme == "light" else "light"
    seen = Seen(browser, curve[1], 1400, color_scheme=scheme)
    seen.scroll()
    require_colours(seen, scheme)
    require_readable(seen.page)
    seen.page.get_by_role("button", name=f"Switch to {other} colours").click()
    require_colours(seen, other)
    require_readable(seen.page)
    seen.page.emulate_media(color_scheme=other)  # what was chosen stays
    seen.page.emulate_media(color_scheme=scheme)
    require_colours(seen, other)
    seen.require_quiet()
    seen.page.close()


@pytest.mark.long
@needs_chromium
def test_it_prints_whole_and_light(browser, curve):
    seen = Seen(browser, curve[1], 1400, color_scheme="dark")
    told = seen.page.evaluate(
        """() => { dispatchEvent(new Event("beforeprint"));
        const empty = [...document.querySelectorAll(".figure")].filter((f) => !f.querySelector("svg.main-svg")).map((f) => f.id);
        const count = (what) => document.querySelectorAll(what).length;
        return [empty, count("details:not([open])"), count(".walk-step")]; }"""
    )
    assert told == [[], 0, 9]
    require_colours(seen, "light")
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    require_colours(seen, "dark")
    assert seen.page.locator("details[open]").count() == 0
    seen.page.close()


@needs_chromium
@pytest.mark.long
def test_surfaces_are_painted_when_a_page_is_printed_at_once(tmp_path):
    """Chromium prints after the page has loaded, before anyone scrolled: pictures of surfaces are in the file."""
    path, out = KINDS["2-D"]().report(tmp_path / "report.html"), tmp_path / "report.pdf"
    printing = ["--headless", "--no-pdf-header-footer", f"--print-to-pdf={out}", f"file://{path}"]
    subprocess.run([CHROMIUM, *SOFTWARE, *printing], check=True, capture_output=True, timeout=240)
    assert (
        sum(colours > 50 for colours in colours_of_images(out.read_bytes())) >= 3
    )  # f, T and the error; a blank one has 1


def colours_of_images(content):
    """How many values the numbers of every picture in a PDF file have; those with transparency, as a canvas is."""
    for image in re.finditer(rb"/Subtype /Image[^>]*/SMask[^>]*>> stream\r?\n(.*?)endstream", content, re.DOTALL):
        try:
            yield len(set(zlib.decompress(image[1])))
        except zlib.error:  # a JPEG file: nothing that a canvas leaves
            continue


@needs_chromium
def test_f_stands_beside_T_and_the_walk_follows_the_point(browser, curve):
    seen = Seen(browser, curve[1], 1400)
    _, value = moved(seen, [0.3])
    shown = seen.page.inner_text("#value").replace("−", "-")
    numbers = dict(part.split(" = ") for part in shown.split(": ")[1].split(", "))
    assert float(numbers["T(x)"]) == value
    assert float(numbers["f(x)"]) == pytest.approx(1 / (1 + 25 * 0.09), abs=1e-15)
    assert float(numbers["T(x) - f(x)"]) == pytest.approx(value - 1 / 3.25, rel=1e-2)
    walk = "document.getElementById('walk-place').walk"
    assert seen.page.evaluate(f"{walk}.x") == [0.3]
    seen.page.evaluate(
        "(v) => { const i = document.querySelector('.walk-point input'); i.value = v; i.dispatchEvent(new Event('input')); }",
        -0.5,
    )
    seen.wait("window.explainedNow.x[0] === -0.5")
    assert seen.page.evaluate("document.querySelector('#movable input').value") == "-0.5"
    seen.page.close()


@pytest.mark.long
@needs_chromium
@pytest.mark.parametrize("width", [390, 1400])
def test_a_comparison_has_the_same_look(browser, tmp_path, width):
    found = ol.compare("x1", [(0, 1)], 0.1, seconds=0.1, optimizers=("adam",), peers=False)
    seen = Seen(browser, write_page(found, tmp_path / "p.html"), width, color_scheme="dark")
    seen.scroll()
    require_colours(seen, "dark")
    require_readable(seen.page)
    assert "constructed" in seen.page.inner_text("table")
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
    seen.require_quiet()
    seen.page.close()


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
    approx = ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 0.134, method="representative")
    assert approx.units > 4900
    seen = looked_at(browser, approx, tmp_path)
    seen.scroll()
    seen.require_quiet()
    _, value = moved(seen, [1.0, 2.0])
    assert value == pytest.approx(float(approx(np.array([1.0, 2.0]))), abs=1e-9)
    seen.page.close()
