"""The explorer in a real browser: every control, as a visitor uses it."""

import zipfile

import numpy as np
import pytest

import onelayer as ol
from browsing import CHROMIUM, require_readable
from visits import Visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.mark.long
def test_from_key_press_to_a_folder_that_checks(visit, tmp_path):
    v = visit()
    assert v.page.input_value("#formula") == "sin(x1) + sin(x2)"
    v.page.fill("#tolerance", "1e-4")
    v.page.press("#formula", "Enter")
    v.page.wait_for_selector("#of:has-text('0.0001')")
    v.built()
    assert v.text("#verdict") == "CERTIFIED"
    assert "Built and proved in" in v.text("#timing")
    assert "since the last change" in v.text("#timing")
    v.page.wait_for_selector("#download[aria-disabled=false]")
    with v.page.expect_download() as waiting:
        v.page.click("#download")
    zipfile.ZipFile(waiting.value.path()).extractall(tmp_path)
    assert ol.check(tmp_path / "layer").verdict == "VALID"
    loaded = ol.load(tmp_path / "layer")
    assert f"{loaded.units}" in v.text("#facts")
    assert "ol.build('sin(x1) + sin(x2)'" in v.text("#code")
    assert loaded.certificate.bound <= 1e-4


@pytest.mark.long
def test_refining_fills_the_curve(visit):
    v = visit()
    v.ask("1/(1 + 25*x1**2)", "-1:1", 1e-2)
    v.page.focus("#epsilon")
    for _ in range(3):
        v.page.keyboard.press("PageDown")
    v.built()
    v.page.wait_for_timeout(300)
    v.built()
    points = v.page.evaluate("document.getElementById('curve').data[0].x.length")
    assert points >= 2
    assert float(v.page.input_value("#tolerance")) < 1e-2


def clicked(v, x, y):
    """A click on the picture of the error, at a point of the domain."""
    v.page.locator("#error-0").scroll_into_view_if_needed()
    v.page.wait_for_selector("#error-0[data-drawn=yes]")
    place = v.page.evaluate(
        """([x, y]) => { const p = document.getElementById("error-0"), l = p._fullLayout, r = p.getBoundingClientRect();
        return [r.left + l.xaxis._offset + l.xaxis.d2p(x), r.top + l.yaxis._offset + l.yaxis.d2p(y)]; }""",
        [x, y],
    )
    v.page.mouse.move(*place)
    v.page.wait_for_timeout(300)
    v.page.mouse.click(*place)
    v.page.wait_for_timeout(800)


@pytest.mark.long
def test_a_click_shows_heads_sum_and_box(visit, tmp_path):
    v = visit()
    v.ask("exp(-20*(x1 - x2)**2)", "0:1", 1e-2)
    clicked(v, 0.3, 0.7)
    x, value = v.page.evaluate("[window.explainedNow.x, window.explainedNow.value]")
    assert np.allclose(x, [0.3, 0.7], atol=0.02)
    assert value == pytest.approx(np.exp(-20 * (x[0] - x[1]) ** 2), abs=1e-2)
    told = v.text("#box")
    assert "The proof's box here: x1 from" in told
    assert "is proved" in told
    total = v.page.evaluate("document.getElementById('sum').data[0].x.slice(0, -1).reduce((a, b) => a + b, 0)")
    assert total == pytest.approx(value, abs=1e-9)  # the running sum makes T(x)
    assert v.page.evaluate("document.getElementById('attention').data.length") == 1


@pytest.mark.long
def test_the_boxes_of_the_page_are_those_of_the_proof(visit):

    v = visit()
    v.ask("1/(1 + 25*x1**2)", "-1:1", 1e-3)
    own = ol.build("1/(1 + 25*x1**2)", [(-1, 1)], 1e-3, seconds=30.0).covering()
    assert own is not None
    for x in (-0.93, -0.11, 0.2, 0.77):
        there = v.page.evaluate(
            """async (x) => { const p = await import("/assets/point.js"); const boxes = p.boxesAt([x]);
            return [boxes[0].lower[0], boxes[0].upper[0], p.boundOn(boxes, 0)]; }""",
            x,
        )
        (box,) = own.at([x])
        assert there[:2] == [box["lower"][0], box["upper"][0]]
        assert there[2] == pytest.approx(own.bound([x]), rel=1e-12)


@pytest.mark.long
def test_training_is_drawn_against_the_construction(visit):
    v = visit()
    v.ask("sin(3*x1)", "0:1", 1e-3)
    v.page.click("#train")
    v.page.wait_for_selector("#convergence .traces", timeout=60_000)
    assert "step" in v.text("#training-status")
    names = v.page.evaluate("document.getElementById('convergence').data.map((t) => t.name)")
    assert names == ["trained, observed", "constructed, observed", "constructed, proved bound"]
    v.page.click("#stop")
    v.page.wait_for_selector("#train:enabled")
    assert "stopped" in v.text("#training-status") or "done" in v.text("#training-status")


@pytest.mark.long
@pytest.mark.parametrize("how", ["button", "key"])
def test_cancel(visit, how):
    v = visit()
    v.page.fill("#formula", "sin(9*x1*x2*x3) + exp(-40*(x1 - x2)**2)*x3")
    v.page.fill("#domain", "0:1")
    v.page.fill("#tolerance", "1e-6")
    v.page.click("#build")
    v.page.wait_for_selector("#cancel:enabled")
    v.page.wait_for_timeout(300)
    v.page.click("#cancel") if how == "button" else v.page.keyboard.press("Escape")
    v.page.wait_for_selector("body[data-busy=no]")
    assert v.text("#stage") == "cancelled"
    v.ask("x1*x2", "0:1", 1e-2)
    assert v.text("#verdict") == "CERTIFIED"


@pytest.mark.long
def test_errors_are_told_while_typing_and_when_building(visit):
    v = visit()
    v.page.fill("#formula", "sin(x1")
    v.page.wait_for_selector("#formula[aria-invalid=true]")
    assert "Change:" in v.text("#parse-status")
    v.page.fill("#formula", "sin(x1) <script>alert(1)</script>")
    v.page.click("#build")
    v.page.wait_for_selector("#error:visible")
    assert "change:" in v.text("#error")
    v.page.fill("#formula", "log(x1)")
    v.page.fill("#domain", "-1:1")
    v.page.click("#build")
    v.page.wait_for_selector("body[data-busy=no]")
    v.page.wait_for_selector("#error:visible")
    v.page.fill("#domain", "1:2")
    v.page.wait_for_selector("#formula[aria-invalid=false]")
    v.page.click("#build")
    v.built()
    v.page.wait_for_selector("#of:has-text('1:2')")
    assert v.page.is_hidden("#error")


@pytest.mark.long
def test_slopes_and_properties_are_shown(visit):
    v = visit()
    v.options()
    v.page.fill("#slope_tolerance", "0.1")
    v.page.fill("#properties", "T <= 2; convex in")
    v.page.wait_for_selector("#properties[aria-invalid=true]")
    assert "write convex in x1" in v.text("#parse-status")
    v.page.fill("#properties", "T <= 2; increasing in x1")
    v.ask("x1 + sin(x1)/4", "0:1", 1e-3)
    facts = v.text("#facts").splitlines()
    assert "bound of slopes, proved" in facts
    for text in ("T <= 2", "increasing in x1"):
        assert facts[facts.index(text) - 1] == "PROVED"
    told = v.text("#box")
    assert "every slope is within" in told
    x, slope = v.page.evaluate("window.explainedNow.x")[0], float(told.split("the slopes x1: ")[1].split()[0])
    assert slope == pytest.approx(1 + np.cos(x) / 4, abs=0.1)
    v.page.wait_for_selector("#slopes")
    assert "slope_tolerance=0.1" in v.text("#link")
    v.page.fill("#slope_tolerance", "")
    v.page.fill("#properties", "")
    v.ask("x1 + sin(x1)/4", "0:1", 1e-2)
    assert "slope" not in v.text("#facts") + v.text("#box")


@pytest.mark.long
def test_a_link_restores_the_view(visit):
    v = visit()
    v.options()
    v.page.select_option("#dtype", "float32")
    v.ask("x1**2 - x2", "0:1", 0.02)
    clicked(v, 0.25, 0.5)
    v.page.wait_for_timeout(400)
    link = v.text("#link")
    x = v.page.evaluate("window.explainedNow.x")
    other = visit(link=link.partition("/#")[2] and "#" + link.partition("/#")[2])
    other.built()
    assert other.page.input_value("#formula") == "x1**2 - x2"
    assert other.page.input_value("#dtype") == "float32"
    assert other.page.input_value("#tolerance") == "0.02"
    assert np.allclose(other.page.evaluate("window.explainedNow.x"), x, atol=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["A kink", "A boundary layer", "Sorting 3 numbers", "Franke's surface", "Runge's function"]
)
def test_presets(visit, name):
    v = visit()
    v.built()
    v.page.evaluate("delete document.body.dataset.shown")
    v.page.select_option("#preset", label=name)
    v.built()
    assert v.text("#verdict") == "CERTIFIED"


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
@pytest.mark.parametrize("scheme", ["dark", "light"])
def test_phone_and_screen_light_and_dark(visit, width, scheme):
    v = visit(width=width, color_scheme=scheme)
    v.ask("x1*x2", "0:1", 1e-2)
    assert v.page.evaluate("document.documentElement.scrollWidth") <= width
    assert v.page.evaluate("document.documentElement.dataset.theme") == scheme
    v.page.click("#theme")
    other = {"light": "dark", "dark": "light"}[scheme]
    assert v.page.evaluate("document.documentElement.dataset.theme") == other
    v.page.wait_for_selector("#function-0[data-drawn=yes]")


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_labels(visit, scheme):
    v = visit(color_scheme=scheme)
    v.ask("x1*x2", "0:1", 1e-2)
    require_readable(v.page)


@pytest.mark.long
def test_by_keyboard_alone(visit):
    v = visit()
    v.built()
    v.page.keyboard.press("Tab")  # the link that skips the form
    for _ in range(5):
        v.page.keyboard.press("Tab")
    assert v.page.evaluate("document.activeElement.id") == "formula"
    v.page.keyboard.press("Control+a")
    v.page.keyboard.type("x1*x2")
    v.page.keyboard.press("Enter")
    v.page.wait_for_selector("#of:has-text('x1*x2')")
    v.built()
    v.page.focus("#movable input")
    before = v.page.evaluate("window.explainedNow.x[0]")
    v.page.keyboard.press("ArrowRight")
    v.page.wait_for_timeout(300)
    assert v.page.evaluate("window.explainedNow.x[0]") > before


NUMBERS = """async (asked) => { const n = await import("/assets/numbers.js");
  return asked.map(([name, ...values]) => [n[name](...values)].flat()); }"""


@pytest.mark.long
def test_text_claims_no_more_than_the_numbers(visit):
    from decimal import Decimal

    rng = np.random.default_rng(0)
    bounds = [0.01, 1.0, 123.0, *(10 ** rng.uniform(-13, 5, 200)).tolist()]
    middles = rng.normal(size=len(bounds)).tolist()
    ends = [(m - b, m + b) for m, b in zip(middles, bounds, strict=True)]
    ends += [(0.0, 1.0), (-0.25, 0.125), (0.1, 0.3), (1e6, 1e6 + 1)]
    v = visit()
    unknown = v.page.evaluate("import('/assets/numbers.js').then((n) => [NaN, Infinity, undefined].map(n.atMost))")
    assert unknown == ["∞"] * 3  # never 0
    told = v.page.evaluate(NUMBERS, [["atMost", b] for b in [0.0, *bounds]])
    assert told[0] == ["0"]
    for b, (text,) in zip(bounds, told[1:], strict=True):
        assert Decimal(b) <= Decimal(text) <= Decimal(b) * Decimal("1.011")
    for (low, high), (a, b) in zip(ends, v.page.evaluate(NUMBERS, [["between", *e] for e in ends]), strict=True):
        assert Decimal(a) <= Decimal(low)
        assert Decimal(high) <= Decimal(b)
        assert float(b) - float(a) <= (high - low) * 1.03 + 1e-10
    for (low, high), (a, b) in zip(ends, v.page.evaluate(NUMBERS, [["inside", *e] for e in ends]), strict=True):
        assert low <= float(a) < float(b) <= high
    assert v.page.evaluate(NUMBERS, [["inside", 0.1, 0.3]]) == [["0.1", "0.3"]]


@pytest.mark.long
def test_what_is_said_of_f_holds_at_many_points(visit):
    v = visit()
    v.options()
    v.page.select_option("#dtype", "float32")
    v.ask("sin(3*x1)*x2; x1 - x2**2", "0:1", 1e-3)
    f = (lambda a, b: np.sin(3 * a) * b, lambda a, b: a - b**2)
    for output in (0, 1):
        v.page.select_option("#movable select", str(output))
        for x in np.random.default_rng(output).random((6, 2)).tolist():
            v.page.evaluate('async (x) => (await import("/assets/point.js")).goTo(x)', x)
            there = v.page.evaluate("window.explainedNow.x")
            words = v.text("#box").rstrip(".").split()
            low, high = float(words[-3]), float(words[-1])
            assert low <= f[output](*there) <= high


@pytest.mark.long
@pytest.mark.parametrize("typed", ["abc", "", "0,01"])
def test_a_tolerance_that_is_no_number(visit, typed):
    v = visit()
    v.page.fill("#tolerance", typed)
    v.page.wait_for_selector("#tolerance[aria-invalid=true]")
    assert v.page.get_attribute("#formula", "aria-invalid") == "false"
    assert f"Found: '{typed}'" in v.text("#parse-status")
    v.page.press("#tolerance", "Enter")
    v.page.wait_for_selector("#error:visible")
    assert f"'{typed}'" in v.text("#error")
    v.page.fill("#tolerance", " 1e-2 ")
    v.page.wait_for_selector("#tolerance[aria-invalid=false]")


@pytest.mark.long
def test_links_keep_every_character_and_digit(visit):
    from urllib.parse import urlencode

    v = visit()
    v.ask("a + 0.5*b; a*b", "a=0:1, b=-1:1", 0.012345)
    link = "#" + v.text("#link").partition("#")[2]
    other = visit(link=link)
    other.built()
    assert other.page.input_value("#domain") == "a=0:1, b=-1:1"
    assert other.page.input_value("#formula") == "a + 0.5*b; a*b"
    assert other.page.input_value("#tolerance") == "0.012345"
    odd = {"formula": "1 & 2 # 3 %41 + ü;", "domain": "0:1", "tolerance": "1.2345e-7", "at": "1,2,3,4"}
    last = visit(link="#" + urlencode(odd))
    last.page.wait_for_selector("#error:visible")
    assert {name: last.page.input_value(f"#{name}") for name in ("formula", "domain", "tolerance")} == {
        name: odd[name] for name in ("formula", "domain", "tolerance")
    }


@pytest.mark.long
def test_many_layers_one_after_another_leave_nothing_behind(visit):
    v = visit()
    for i in range(8):
        v.ask("x1*x2", "0:1", 0.01 + 0.001 * i)
        v.page.wait_for_selector("#error-0[data-drawn=yes]")
    assert not [text for text in v.said if "context" in text.lower()]
    assert v.page.evaluate("document.querySelectorAll('canvas').length") < 20
    assert v.page.evaluate("document.getElementById('curve').data[0].x.length") == 8


@pytest.mark.long
def test_two_builds_and_a_change_of_colours_at_once(visit):
    v = visit()
    v.ask("x1*x2", "0:1", 0.02)
    for formula in ("x1 + x2**2", "x1**3"):
        v.page.fill("#formula", formula)
        v.page.click("#build")
        v.page.click("#theme")
    v.page.wait_for_selector("#of:has-text('x1**3')", timeout=100_000)
    v.built()
    v.page.click("#theme")
    v.page.wait_for_selector("#function-0[data-drawn=yes]")
    assert "x1**3" in v.text("#of")
    assert v.page.evaluate("window.explainedNow.x.length") == 1
    assert len(v.page.evaluate("document.getElementById('curve').data[0].x")) == 1


@pytest.mark.long
def test_cancelled_while_the_boxes_are_looked_up(visit):
    v = visit()
    v.page.fill("#formula", "exp(-20*(x1 - x2)**2)")
    v.page.fill("#domain", "0:1")
    v.page.fill("#tolerance", "1e-3")
    v.page.click("#build")
    v.page.wait_for_selector("body[data-state=current] #of:has-text('exp(-20')", timeout=100_000)
    v.page.keyboard.press("Escape")
    v.page.wait_for_selector("body[data-busy=no][data-shown=yes]")
    assert "being looked up" not in v.text("#box")
    assert "is proved" in v.text("#box") or "Proved on the whole domain" in v.text("#box")


@pytest.mark.long
def test_a_click_takes_the_slice_and_the_output_of_its_own_picture(visit):
    v = visit()
    v.ask("x1*x2 + x3 + x4 - x5; x1 + x2 + x3*x4 + x5", "0:1", 0.05)
    v.page.select_option("#scene-0 select", "1")
    v.page.locator("#scene-0 input").nth(0).fill("4")
    clicked(v, 0.3, 0.7)
    x = v.page.evaluate("window.explainedNow.x")
    assert np.allclose(x[:2], [0.3, 0.7], atol=0.03)
    assert x[2:] == [1.0, 0.5, 0.5]
    assert v.page.input_value("#movable select") == "1"
    slid = v.page.locator("#scene-0 input").nth(0).input_value()
    v.page.click("#theme")
    v.page.locator("#error-0").scroll_into_view_if_needed()  # figures are drawn when they come into view
    v.page.wait_for_selector("#error-0[data-drawn=yes]")
    assert v.page.evaluate("window.explainedNow.x") == x  # colours change nothing else
    assert v.page.locator("#scene-0 input").nth(0).input_value() == slid


@pytest.mark.long
def test_copying_says_what_happened(visit):
    v = visit()
    v.ask("x1", "0:1", 0.1)
    for board in ("undefined", "{ writeText: () => Promise.reject(new Error()) }"):
        v.page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {board}, configurable: true }})")
        v.page.click("[data-copy=code]")
        v.page.wait_for_selector("text=Selected: press Ctrl+C")
        assert v.page.evaluate("getSelection().toString()").startswith("import onelayer as ol")
        v.page.click("[data-copy=code]")
        v.page.wait_for_selector("text=Copy the code")


@pytest.mark.long
def test_nothing_is_called_certified_that_is_not(visit):
    v = visit()
    v.ask("where(x1 < 0.5, 0, 1)", "0:1", 0.1)
    assert v.text("#verdict") in ("UNDECIDED", "REFUTED")
    assert "proved" not in v.text("#timing")


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
def test_layers_for_sequences(visited, width):
    seen = Visit(*visited, width=width, link="sequences", color_scheme="dark")
    page = seen.page
    page.select_option("#menu", "look_up")
    page.wait_for_selector("body[data-shown=yes] #title:text('The value last written')")
    page.fill("#typed", "2=4 1=0 2? 3? 1?")
    answers = [text.removeprefix("→ ") for text in page.locator(".cell .answer").all_inner_texts()]
    assert answers == ["4", "0", "4", "5", "0"]  # 5 is none
    page.click("#theme")
    page.focus(".cell[aria-selected=true]")
    page.keyboard.press("Home")
    assert page.evaluate("window.sequenceNow.row") == 0
    require_readable(page)
    assert page.locator(".cell.hidden").count() == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert all(url.startswith((seen.address, "data:", "blob:")) for url in seen.asked)
    page.click("nav a")
    page.wait_for_selector("body[data-ready=yes] #formula")
    seen.close()
