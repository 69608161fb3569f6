"""The report of a layer for sequences in a real browser: headless chromium, where it is installed."""

import numpy as np
import pytest

import onelayer as ol
from browsing import Seen, needs_chromium, require_readable
from languages import language

pytestmark = needs_chromium
WORDS = ("⟨start⟩", "a", "b", "ab", " ", "\n", "c")


def opened(browser, layer, tmp_path, width=1400, **context):
    return Seen(browser, layer.report(tmp_path / "report.html"), width, **context)


def now(seen):
    return seen.page.evaluate("window.sequenceNow")


def type_on(page):
    page.click("#type-on")
    page.wait_for_selector("#type-on:text('Type on')")


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), pytest.param(1400, "light", marks=pytest.mark.long)])
def test_a_sequence_is_typed_and_a_position_chosen(browser, tmp_path, width, scheme):
    layer = ol.gallery.any_length.depth(20)
    seen = opened(browser, layer, tmp_path, width, color_scheme=scheme)
    page, x = seen.page, [0, 0, 1, 0, 1, 1, 0]
    page.fill("#typed", "(()()) (")
    answers = [text.removeprefix("→ ") for text in page.locator(".cell .answer").all_inner_texts()]
    assert answers == [str(a) for a in layer.answer(x)]
    page.click(".cell[data-row='3']")
    found = now(seen)
    assert (found["x"], found["row"]) == (x, 3)
    assert np.array(found["alpha"]) == pytest.approx(layer.attention(x)[:, 3], abs=1e-12)
    assert page.locator(".cell.hidden").count() == 3
    page.keyboard.press("ArrowRight")
    assert now(seen)["row"] == 4
    assert page.evaluate("document.activeElement.dataset.row") == "4"
    page.keyboard.press("End")
    page.select_option("#head", "1")
    assert (now(seen)["row"], now(seen)["head"]) == (6, 1)
    page.click("#shorter")
    assert page.input_value("#typed") == "(()())"
    page.click("#longer")
    page.click("#random")
    assert len(now(seen)["x"]) == 7
    page.fill("#typed", "(x")
    assert "no token begins “x”" in page.inner_text("#sequence-status")
    page.fill("#typed", "(" * 21)
    assert "at most 20" in page.inner_text("#sequence-status")
    assert page.get_attribute("#typed", "aria-invalid") == "true"
    if width == 1400:
        seen.scroll()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    require_readable(page)
    seen.require_quiet()
    page.close()


@pytest.mark.long
@pytest.mark.parametrize("name", ["maximum", "sort", "look_up"])
def test_other_layers(browser, tmp_path, name):
    layer = getattr(ol.gallery.any_length, name)(*({"look_up": (30, 2, 3), "sort": (4,)}.get(name, (900,))))
    seen = opened(browser, layer, tmp_path, 390)
    found = now(seen)
    T = np.asarray(layer(found["x"]), dtype=np.float64)
    expected = T if layer.description.answer == "whole" else T[found["row"]]
    assert np.array(found["out"]) == pytest.approx(np.atleast_1d(expected), abs=1e-12)
    if name == "maximum":
        seen.page.fill("#typed", " ".join(["0.25", "7"] * 100))
        assert "does not speak of these" in seen.page.inner_text("#sequence-status")
        assert seen.page.locator("#map").is_hidden()
    assert seen.page.evaluate("document.documentElement.scrollWidth") <= 390
    seen.require_quiet()
    seen.page.close()


@pytest.mark.long
@pytest.mark.parametrize("motion", ["reduce", "no-preference"])
def test_a_text_model_types(browser, tmp_path, motion):
    layer = language(WORDS, longest=100)
    seen = opened(browser, layer, tmp_path, 390, reduced_motion=motion)
    page, x = seen.page, [0, 3, 4, 1, 1]
    page.fill("#typed", "ab aa")
    assert now(seen)["x"] == x  # the longest token first
    logits = layer(x)[-1]
    p = np.exp(logits) / np.exp(logits).sum()
    assert page.evaluate("window.nextNow") == pytest.approx(p.tolist(), abs=1e-12)
    page.fill("#temperature", "0")
    type_on(page)
    for _ in range(60):
        best = int(layer(x)[-1].argmax())
        if best == 0:
            break
        x.append(best)
    assert now(seen)["x"] == x
    assert page.input_value("#typed") == "".join(WORDS[t] for t in x[1:])
    page.fill("#temperature", "1")
    texts = []
    for seed in ("3", "3", "4"):
        page.fill("#typed", "a")
        page.fill("#seed", seed)
        type_on(page)
        texts.append(page.input_value("#typed"))
    assert texts[0] == texts[1] != texts[2]
    require_readable(page)
    seen.require_quiet()
    page.close()
