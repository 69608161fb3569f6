"""The story in a real browser: headless chromium, where it is installed. Everything on it moves, and says true numbers."""

import math

import numpy as np
import pytest

from browsing import Seen, needs_chromium, require_readable
from explorers import serving
from onelayer.views.story_page import story_page

pytestmark = needs_chromium
STEPS = ("gate", "stairs", "finer", "solved", "polished", "boxes", "cannot")


@pytest.fixture
def opened(browser, tmp_path):
    (tmp_path / "story.html").write_text(story_page([("On", "on.html")]))
    made = []

    def at(width, **context):
        made.append(Seen(browser, tmp_path / "story.html", width, reduced_motion="reduce", **context))
        return made[-1]

    yield at
    for seen in made:
        seen.require_quiet()
        seen.page.close()


def go(page, step):
    page.evaluate(f"document.getElementById('{step}').scrollIntoView()")
    page.wait_for_selector(f"#{step}[data-started]")
    page.wait_for_timeout(60)


def now(page, step):
    """What a step shows, once it has been drawn."""
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return page.evaluate(f"NOW.{step}")


def slide(page, name, value):
    page.evaluate(
        "([name, value]) => { const e = document.getElementById(name); e.value = value; e.dispatchEvent(new Event('input')); }",
        [name, value],
    )


@pytest.mark.long
@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1400, "light")])
def test_the_page_fits_and_reads_well(opened, width, scheme):
    page = opened(width, color_scheme=scheme).page
    assert page.locator("#gate svg path.line").first.bounding_box()["y"] < 700  # a picture before any click
    for step in STEPS:
        go(page, step)
        assert page.locator(f"#{step} svg path.line").count() >= 1
    for term in page.locator("button.term").all():
        term.click()
    assert page.locator(".meaning:visible").count() == page.locator("button.term").count()
    for limit in ("outside", "twice"):
        page.click(f"#limits button[value={limit}]")
        require_readable(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.long
def test_a_gate_is_dragged_and_moved_with_keys(opened):
    page = opened(1400).page
    knob = page.locator("#gate-plot svg:visible .handle.corner")
    box = knob.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"], steps=4)
    page.mouse.up()
    found = now(page, "gate")
    assert found["b"][0] > 0.55
    share = 1 / (1 + math.exp(-found["sharpness"] * (found["x"][0] - found["b"][0])))
    assert found["weights"] == pytest.approx([1 - share, share], abs=1e-12)
    before = found["b"][0]
    page.keyboard.press("ArrowLeft")
    assert now(page, "gate")["b"][0] == pytest.approx(before - 0.02)
    assert float(knob.get_attribute("aria-valuenow")) == pytest.approx(before - 0.02, abs=1e-4)
    page.click("#gate-numbers button[value='2']")
    slide(page, "gate-x1", 0.1)
    assert now(page, "gate")["weights"][2] < 0.01  # one number below its b closes the gate
    assert len(now(page, "gate")["weights"]) == 3


def test_a_word_opens_where_it_stands(opened):
    page = opened(390).page
    term = page.locator("#gate button.term[data-word=anchor]")
    term.focus()
    page.keyboard.press("Enter")
    assert term.get_attribute("aria-expanded") == "true"
    assert "always the same" in page.locator(f"#{term.get_attribute('aria-controls')}").inner_text()
    page.keyboard.press("Escape")
    assert page.locator(".meaning:visible").count() == 0


@pytest.mark.long
def test_the_staircase_and_the_theorem(opened):
    page = opened(1400).page
    go(page, "stairs")
    page.locator("#stairs-plot .handle").nth(2).focus()
    page.keyboard.press("Home")
    found = now(page, "stairs")
    assert found["heights"][2] == 0
    assert np.cumsum(found["rows"]) == pytest.approx(found["heights"])
    assert found["middle"] == pytest.approx(0, abs=1e-2)
    go(page, "finer")
    for asked in (-0.3, -0.7, -1.0):
        slide(page, "finer-eps", asked)
        found = now(page, "finer")
        assert found["seen"] <= found["bound"] <= 10**asked * (1 + 1e-9)
    page.locator("#finer-plot .handle").nth(1).focus()
    page.keyboard.press("End")
    steeper = now(page, "finer")
    assert steeper["L"] > found["L"]
    assert steeper["seen"] <= steeper["bound"]


@pytest.mark.long
def test_ready_made_layers_keep_their_bounds(opened):
    page = opened(1400).page
    go(page, "solved")
    slide(page, "solved-size", 4)
    found = now(page, "solved")
    assert page.inner_text("#solved-verdict") == "CERTIFIED"
    assert found["stairs"] > 1e4 * found["bound"]  # what the text says
    assert abs(found["T"] - _target(found["x"])) <= found["bound"]
    go(page, "polished")
    for size, gates, verdict in ((0, 2, "REFUTED"), (4, 6, "CERTIFIED")):
        slide(page, "polished-size", size)
        assert len(now(page, "polished")["gates"]) == gates
        assert page.inner_text("#polished-verdict") == verdict


def _target(x):
    return math.sin(10 * x * x) / 2 + math.exp(-((14 * x - 4.2) ** 2))


@pytest.mark.long
def test_a_broken_weight_loses_its_certificate(opened):
    page = opened(1400).page
    go(page, "boxes")
    whole = now(page, "boxes")
    assert np.abs(whole["errors"]).max() <= whole["bound"]
    assert page.inner_text("#boxes-verdict") == "CERTIFIED"
    slide(page, "boxes-break", 0.9)
    broken = now(page, "boxes")
    assert np.abs(broken["errors"]).max() > broken["bound"]
    assert page.inner_text("#boxes-verdict") == "no certificate"
    page.click("#boxes-mend")
    assert now(page, "boxes")["errors"] == whole["errors"]
    page.locator("#boxes-plot .handle").focus()
    page.keyboard.press("Home")
    assert now(page, "boxes")["here"] == 0


@pytest.mark.long
def test_what_one_layer_cannot_do(opened):
    page = opened(390).page
    go(page, "cannot")
    for sharpness in (1, 2.5, 4):
        slide(page, "jump-beta", sharpness)
        assert now(page, "jump")["worst"] >= 0.5
    page.click("#limits button[value=outside]")
    slide(page, "outside-far", 1)
    found = now(page, "outside")
    assert found["seen"] > 100 * found["bound"]
    page.click("#limits button[value=twice]")
    for _ in range(5):
        letters, answer = (now(page, "twice")[key] for key in ("letters", "answer"))
        earlier = [k for k in range(7) if letters[k] == letters[7]]
        assert answer == (letters[earlier[-1] + 1] if earlier else 3)
        page.locator("#twice-letters button").nth(letters[0] + 3).click()
        page.locator("#twice-letters button").nth(7).click()


@pytest.mark.long
def test_the_explorer_shows_it(browser):
    with serving() as server:
        page, said = browser.new_page(viewport={"width": 1400, "height": 900}), []
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.goto(f"{server.address}story")
        page.wait_for_selector("body[data-ready=yes]")
        go(page, "cannot")
        assert page.locator("#cannot svg path.line").count() >= 1
        assert said == []
        page.close()
