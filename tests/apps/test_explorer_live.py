"""The explorer while one types, drags and points: what is drawn, when, and what it is called."""

import numpy as np
import pytest

from browsing import CHROMIUM, require_readable

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
GREEN = "getComputedStyle(document.getElementById('verdict')).backgroundColor"
SLOW = "sin(9*x1*x2*x3) + exp(-40*(x1 - x2)**2)*x3"


def boxes(v, *names):
    return {name: v.page.locator(name).bounding_box() for name in names}


def number(text):
    return float(text.replace("−", "-"))


@pytest.mark.long
def test_it_opens_with_a_certified_picture_above_the_fold(visit):
    v = visit()
    v.built()
    v.page.wait_for_selector("#error-0[data-drawn=yes]")
    assert v.text("#verdict") == "CERTIFIED"
    for name, box in boxes(
        v, "#formula", "#typeset", "#epsilon", "#verdict", "#facts", "#function-0", "#error-0", "#here"
    ).items():
        assert box["y"] >= 0, name
        assert box["y"] + box["height"] <= 900, name
    places = boxes(v, "#request", "#function-0")
    assert places["#request"]["x"] + places["#request"]["width"] <= places["#function-0"]["x"]  # side by side
    assert v.page.evaluate("document.querySelector('#typeset math').getAttribute('alttext')") == "sin(x1) + sin(x2)"
    assert v.page.locator("#picture canvas").count() >= 2
    assert not any("/api/build" in url for url in v.asked)  # it was there already


@pytest.mark.long
def test_what_is_said_at_a_point_is_true(visit):
    """Hovering shows f, T, the difference and the proved band; a click keeps the point; nothing scrolls."""
    v = visit()
    v.built()
    v.page.wait_for_selector("#error-0[data-drawn=yes]")
    place = v.page.evaluate(
        """() => { const p = document.getElementById("error-0"), l = p._fullLayout, r = p.getBoundingClientRect();
        return [r.left + l.xaxis._offset + l.xaxis.d2p(1.5), r.top + l.yaxis._offset + l.yaxis.d2p(4.5)]; }"""
    )
    before = v.text("#here-x")
    v.page.mouse.move(place[0] - 30, place[1])
    v.page.mouse.move(*place, steps=3)
    v.page.wait_for_function("(old) => document.getElementById('here-x').textContent !== old", arg=before)
    v.page.wait_for_timeout(300)

    def read():
        x = [number(part.split("=")[1]) for part in v.text("#here-x").split(",")]
        f, T, difference = (number(v.text(f"#here-{name}")) for name in ("f", "T", "difference"))
        assert f == pytest.approx(np.sin(x[0]) + np.sin(x[1]), abs=2e-6)
        assert difference == pytest.approx(T - f, abs=2e-6)
        assert "proved" in v.text("#here-where")
        assert abs(difference) <= float(v.text("#here-bound").split("≤")[1])
        parts = [number(text) for text in v.page.locator("#here-heads li span:last-child").all_inner_texts()]
        assert len(parts) == 6  # four heads, all the rest, and T(x)
        assert sum(parts[:-1]) == pytest.approx(parts[-1], abs=0.05)
        return x

    assert np.allclose(read(), [1.5, 4.5], atol=0.11)
    v.page.mouse.click(*place)
    v.page.wait_for_timeout(500)
    v.page.mouse.move(5, 5)
    v.page.wait_for_timeout(600)
    kept = read()
    assert np.allclose(kept, [1.5, 4.5], atol=0.11)
    assert v.page.evaluate("scrollY") == 0
    v.page.focus("#picture")
    v.page.keyboard.press("ArrowRight")
    v.page.keyboard.press("Shift+ArrowDown")
    step = 2 * np.pi / 60
    assert np.allclose(read(), [kept[0] + step, kept[1] - 5 * step], atol=1e-5)
    v.page.wait_for_timeout(500)
    assert np.allclose(v.page.evaluate("window.explainedNow.x"), read(), atol=1e-5)  # the sections below follow
    assert v.page.evaluate("scrollY") == 0


@pytest.mark.long
def test_nothing_refused_stands_under_green(visit):
    v = visit()
    v.built()
    green = v.page.evaluate(GREEN)
    typed = """() => {
        const field = document.getElementById("formula");
        field.value = "sin(x1";
        field.dispatchEvent(new Event("input", {bubbles: true}));
        return document.body.dataset.state;
    }"""
    assert v.page.evaluate(typed) == "old"  # at once, before anything is asked
    v.page.wait_for_selector("body[data-state=refused]")
    assert v.page.evaluate(GREEN) != green
    assert v.text("#verdict") == "EARLIER LAYER"
    assert "Not of the formula in the form" in v.text("#of")
    assert float(v.page.evaluate("getComputedStyle(document.getElementById('picture')).opacity")) < 0.6
    v.page.fill("#formula", "sin(x1) + sin(x2)")  # typed back: what is drawn is right again, and nothing is built
    assert v.page.evaluate("document.body.dataset.state") == "current"
    assert v.page.evaluate(GREEN) == green


@pytest.mark.long
def test_typing_builds(visit):
    v = visit()
    v.built()
    green = v.page.evaluate(GREEN)
    v.page.fill("#formula", "cos(x1)*x2")
    v.page.wait_for_selector("#of:has-text('cos')")
    v.built()
    assert v.text("#verdict") == "CERTIFIED"
    assert v.page.evaluate(GREEN) == green
    v.page.fill("#formula", "log(x1 - 1)")  # read, but not defined on the domain
    v.page.wait_for_selector("#error:visible")
    assert v.page.evaluate("document.body.dataset.state") == "refused"
    assert v.page.evaluate(GREEN) != green


@pytest.mark.long
def test_a_coarse_layer_is_drawn_first_and_never_looks_proved(visit):
    v = visit()
    v.built()
    green = v.page.evaluate(GREEN)
    v.page.fill("#domain", "0:1")
    v.page.fill("#tolerance", "1e-6")
    v.page.fill("#formula", SLOW)
    v.page.wait_for_selector("body[data-state=coarse]")
    assert v.text("#verdict") == "COARSE, NOT PROVED"
    assert v.page.evaluate(GREEN) != green
    assert "not proved" in v.text("#facts")
    assert v.text("#here-bound") == "nothing yet"
    assert v.page.evaluate("document.getElementById('below').inert")
    require_readable(v.page)
    v.page.keyboard.press("Escape")
    v.page.wait_for_selector("body[data-busy=no]")
    assert v.text("#stage") == "cancelled"
    assert v.page.evaluate(GREEN) != green


@pytest.mark.long
def test_moving_the_tolerance_builds_while_it_is_dragged(visit):
    v = visit()
    v.built()
    box = v.page.locator("#epsilon").bounding_box()
    v.page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + box["height"] / 2)
    v.page.mouse.down()
    for end in (0.6, 0.4):  # the button stays down
        for share in np.linspace(end + 0.1, end, 10):
            v.page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
            v.page.wait_for_timeout(30)
        v.built()
        assert float(v.text("#of").split("ε = ")[1]) == float(v.page.input_value("#tolerance"))
        assert v.text("#verdict") == "CERTIFIED"
    v.page.mouse.up()
    assert float(v.page.input_value("#tolerance")) < 1e-3


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_the_form_comes_first_and_a_picture_is_in_sight(visit, scheme):
    v = visit(width=390, color_scheme=scheme)
    v.page.set_viewport_size({"width": 390, "height": 844})
    v.built()
    places = boxes(v, "#formula", "#epsilon", "#verdict", "#function-0", "#here")
    assert [places[name]["y"] for name in places] == sorted(places[name]["y"] for name in places)
    assert places["#function-0"]["y"] + 150 <= 844
    assert v.page.evaluate("document.documentElement.scrollWidth") <= 390
    require_readable(v.page)


@pytest.mark.long
def test_ten_tabs_of_one_browser(visited):
    """All of them type at once; each ends with the layer that it asked for."""
    address, browser = visited
    context = browser.new_context(viewport={"width": 800, "height": 600})
    context.set_default_timeout(200_000)
    pages = [context.new_page() for _ in range(10)]
    for page in pages:
        page.goto(address)
    for page in pages:
        page.wait_for_selector("body[data-ready=yes]")
    for power in (2, 3, 4):
        for k, page in enumerate(pages):
            page.fill("#formula", f"x1**{power} + {k}*x2")
    for k, page in enumerate(pages):
        page.wait_for_selector("body[data-state=current][data-busy=no]")
        page.wait_for_selector(f"#of:has-text('x1**4 + {k}*x2')")
        assert page.inner_text("#verdict") == "CERTIFIED"
    context.close()
