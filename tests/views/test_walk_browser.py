"""The walk in a real browser: steps forwards and backwards, keys, play and pause, reduced motion, print."""

import numpy as np
import pytest

from browsing import Seen, needs_chromium, require_readable
from onelayer.views.page_files import asset
from onelayer.views.pages import Page, layer_record, page_data
from reports import KINDS

pytestmark = needs_chromium
NAMES = [
    "Tokens",
    "Embedding",
    "Queries and keys",
    "Scores",
    "Softmax",
    "Values",
    "Sum of the heads",
    "Feed-forward",
    "Read-out",
]
SPILT = """[...document.querySelectorAll(".walk-card, .walk-bar")].filter((e) => e.scrollWidth > e.clientWidth)
  .map((e) => e.textContent)"""


def walking(browser, tmp_path, kind="kink", width=1400, **context):
    """A page with the walk alone: no figure, so that it opens at once."""
    approx = KINDS[kind]()
    page = Page(
        "walk", "a test", "", [], [("walk", "Walk", '<div id="walk-place"></div>')], page_data(approx, (), {}), ()
    )
    scripts = ("layer.js", "formula.js", "walk_steps.js", "walk.js")
    start = 'Walk.mount(document.getElementById("walk-place"), JSON.parse(document.getElementById("data").textContent).layer);'
    text = page.render().split("<script>/**")[0].replace("</head>", f"<style>{asset('walk.css')}</style></head>")
    made = "".join(f"<script>{asset(name)}</script>" for name in scripts)
    made += f'<script>{start} document.body.dataset.ready = "yes";</script></body></html>'
    (tmp_path / "walk.html").write_text(text + made)
    return Seen(browser, tmp_path / "walk.html", width, **context), approx


def step(seen):
    shown = seen.page.inner_text(".walk [aria-current=step] b")
    assert seen.page.inner_text(".walk-panel h3") == f"{NAMES.index(shown) + 1} of 9: {shown}"
    return shown


@pytest.mark.long
def test_forwards_and_backwards_by_buttons_and_keys(browser, tmp_path):
    seen, _ = walking(browser, tmp_path)
    assert step(seen) == "Tokens"
    for name in NAMES[1:]:
        seen.page.get_by_role("button", name="Next").click()
        assert step(seen) == name
    assert seen.page.get_by_role("button", name="Next").is_disabled()
    seen.page.get_by_role("button", name="Back").click()
    assert step(seen) == "Feed-forward"
    seen.page.focus(".walk")
    for key, name in (
        ("ArrowLeft", "Sum of the heads"),
        ("ArrowRight", "Feed-forward"),
        ("Home", "Tokens"),
        ("End", "Read-out"),
    ):
        seen.page.keyboard.press(key)
        assert step(seen) == name
    seen.page.get_by_role("button", name="Softmax").click()
    assert step(seen) == "Softmax"
    seen.require_quiet()
    seen.page.close()


@pytest.mark.long
def test_arrow_keys_in_a_slider_move_the_point(browser, tmp_path):
    seen, approx = walking(browser, tmp_path)
    seen.page.evaluate("document.getElementById('walk-place').walk.go(8)")
    before = seen.page.inner_text(".walk-answer")
    seen.page.focus(".walk input[type=range]")
    for _ in range(20):
        seen.page.keyboard.press("ArrowRight")
    assert step(seen) == "Read-out"
    after = seen.page.inner_text(".walk-answer")
    assert before != after
    x = np.array(seen.page.evaluate("document.getElementById('walk-place').walk.x"))
    T, f = (float(v.replace("−", "-")) for v in seen.page.locator(".walk-answer dd").all_inner_texts()[:2])
    assert pytest.approx(float(approx(x)), abs=1e-9) == T
    assert pytest.approx(float(approx.target.values(x[None])[0, 0]), abs=1e-12) == f
    seen.page.close()


@pytest.mark.long
def test_it_plays_and_pauses(browser, tmp_path):
    seen, _ = walking(browser, tmp_path)
    page = seen.page
    page.clock.install()
    page.focus(".walk")
    page.keyboard.press("Space")
    assert step(seen) == "Embedding"
    assert page.get_by_role("button", name="Pause").count() == 1
    assert page.get_attribute(".walk-panel", "aria-live") == "off"
    page.clock.run_for(5000)
    assert step(seen) == "Queries and keys"
    page.keyboard.press("Space")
    page.clock.run_for(20_000)
    assert step(seen) == "Queries and keys"
    page.get_by_role("button", name="Play").click()
    page.clock.run_for(60_000)
    assert step(seen) == "Read-out"
    assert page.get_by_role("button", name="Play").count() == 1
    page.close()


@pytest.mark.long
def test_reduced_motion_has_steps_alone(browser, tmp_path):
    seen, _ = walking(browser, tmp_path, reduced_motion="reduce")
    assert seen.page.get_by_role("button", name="Play").count() == 0
    seen.page.focus(".walk")
    seen.page.keyboard.press("Space")
    assert step(seen) == "Tokens"
    seen.page.keyboard.press("ArrowRight")
    assert step(seen) == "Embedding"
    assert seen.page.evaluate("document.getAnimations().length") == 0
    seen.page.emulate_media(reduced_motion="no-preference")
    seen.page.get_by_role("button", name="Play").wait_for()
    seen.page.keyboard.press("ArrowRight")
    assert seen.page.evaluate("document.getAnimations().length") > 0
    seen.page.close()


def test_many_heads_a_few_at_a_time(browser, tmp_path):
    seen, approx = walking(browser, tmp_path, "paper")
    page = seen.page
    page.evaluate("document.getElementById('walk-place').walk.go(4)")
    assert page.locator(".walk-card").count() == 4
    added = np.abs(approx.explain(np.array(layer_record(approx)["start"])).contributions[:, 0])
    first = [f"gate {h + 1}" for h in np.argsort(-added, kind="stable")[:4]]
    assert page.locator(".walk-card h4").all_inner_texts() == first
    assert "Heads 1 to 4 of 42" in page.inner_text(".walk-pager")
    page.get_by_role("button", name="more heads").click()
    assert "Heads 5 to 8 of 42" in page.inner_text(".walk-pager")
    page.evaluate("document.getElementById('walk-place').walk.go(6)")
    assert "38 other heads" in page.inner_text(".walk-table")
    page.close()


@pytest.mark.one_in(10)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("kind", ["memory", "paper", "gallery", "tokens", "trained"])
def test_every_step_fits_and_can_be_read(browser, tmp_path, kind, width, scheme):
    seen, _ = walking(browser, tmp_path, kind, width, color_scheme=scheme)
    for k in range(9):
        seen.page.evaluate(f"document.getElementById('walk-place').walk.go({k})")
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        assert seen.page.evaluate(SPILT) == []
        require_readable(seen.page)
        assert seen.page.locator(".walk-said").inner_text()
    assert seen.page.locator("table:not(:has(caption))").count() == 0
    seen.require_quiet()
    seen.page.close()


def test_all_steps_are_printed(browser, tmp_path):
    seen, _ = walking(browser, tmp_path)
    seen.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert seen.page.locator(".walk-step").count() == 9
    seen.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert seen.page.locator(".walk-step").count() == 1
    seen.page.close()


def test_a_second_call_moves_the_point_and_keeps_the_step(browser, tmp_path):
    seen, _ = walking(browser, tmp_path)
    told = seen.page.evaluate(
        """() => { const place = document.getElementById("walk-place"), { layer } = place.walk; place.walk.go(3);
        Walk.mount(place, layer, [0.25, 0.75]); const same = [place.walk.step, place.walk.x];
        Walk.mount(place, { ...layer }, [0.5, 0.5]); return [same, place.walk.step, place.walk.x, place.children.length]; }"""
    )
    assert told == [[3, [0.25, 0.75]], 3, [0.5, 0.5], 1]
    seen.page.close()
