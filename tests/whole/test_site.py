"""`make docs`: the site builds without a warning, fetches nothing from elsewhere, and its generated pages are up to date."""

import re
import runpy
from html.parser import HTMLParser

import pytest

import onelayer as ol
from browsing import CHROMIUM, needs_chromium
from pages import FENCE, PAGES, ROOT, steps
from site_building import built_site

DOCS = ROOT / "docs"
FETCHED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "link": "href",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built pages; a warning fails the build."""
    return built_site(tmp_path_factory.mktemp("site"))


class Fetched(HTMLParser):
    """Addresses that a browser fetches by itself when it shows a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        address = dict(attributes).get(FETCHED.get(tag))
        self.found += [address] if address else []


def outside(address: str) -> bool:
    return re.match(r"([a-z]+:)?//", address) is not None


def in_styles(text: str) -> list[str]:
    return re.findall(r"(?:url\(|@import)\s*['\"]?([^'\")\s]+)", text)


@pytest.mark.long
def test_nothing_is_fetched_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        text = page.read_text()
        found = [*Fetched(text).found, *in_styles(text)]
        assert found
        assert not any(map(outside, found)), page.name
    for sheet in site.rglob("*.css"):
        assert not any(map(outside, in_styles(sheet.read_text()))), sheet.name


def test_an_address_elsewhere_is_noticed():
    text = (
        '<link rel="stylesheet" href="https://a.b/c.css"><script src="//a.b/c.js"></script><a href="https://a.b">d</a>'
    )
    assert [outside(a) for a in Fetched(text).found] == [True, True]
    assert [outside(a) for a in in_styles('x { src: url("http://a/b") } @import "c.css"; y { z: url(d.png) }')] == [
        True, False, False,
    ]  # fmt: skip


@pytest.mark.long
def test_links_within_the_site_lead_somewhere(site):
    for page in site.rglob("*.html"):
        for link in re.findall(r'<a [^>]*href="([^"]+)"', page.read_text()):
            file, _, anchor = link.partition("#")
            if link.startswith(("https://", "http://")):
                continue
            goal = page if not file else (page.parent / file)
            assert goal.exists(), (page.name, link)
            assert not anchor or f'id="{anchor}"' in goal.read_text(), (page.name, link)


@pytest.mark.long
def test_every_public_name_is_on_the_api_page(site):
    text = (site / "start" / "api.html").read_text()
    for name in set(ol.__all__) - {"__version__"}:
        assert f'id="onelayer.{name}"' in text or f'id="module-onelayer.{name}"' in text, name
    for entry in ol.gallery.ENTRIES:
        assert f'id="onelayer.gallery.{entry}"' in text, entry


FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\s](?:[^$\n]*[^$\s])?)\$")


def formulas(text: str) -> list[str]:
    """What stands between dollars, outside code."""
    outside = re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))
    return [one or two for one, two in FORMULA.findall(outside)]


def test_formulas_become_mathml():
    mathml = runpy.run_path(str(DOCS / "mathml.py"))["mathml"]
    assert '<mo form="prefix">&#x02212;</mo><mn>1</mn>' in mathml("(-1)", "inline")
    assert "prefix" not in mathml("a-1", "inline")
    assert mathml(r"2 \ln x", "inline").count("mspace") == 2
    with pytest.raises(ValueError, match="nonsense"):
        mathml(r"\nonsense x", "inline")
    found = [formula for page in PAGES.values() for formula in formulas(page.read_text())]
    assert len(found) > 200
    assert all("<math" in mathml(formula, "inline") for formula in found)
    assert not [f for f in found if re.search(r"\\[,;:!{}_|]", f)]  # a code host takes these for Markdown's escapes


@pytest.mark.long
def test_formulas_and_pictures_are_on_the_pages(site):
    for page, formulas_there in (("theory/theorem", 100), ("trust/certificate", 50), ("build/gallery", 10)):
        text = (site / f"{page}.html").read_text()
        assert text.count("<math") > formulas_there
        assert "$" not in re.sub(r"<(pre|script|code)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert re.search(r'<img alt="[^"]{20,}" src="[^"]*\.svg"', text), page
    assert re.search(r'<div class="hero">.*?<img .*?<img .*?<img ', (site / "index.html").read_text(), re.DOTALL)


@pytest.fixture
def shown(site):
    """Opens a page of the site as a file, at a width; with what it said and asked for."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def opened(name: str, width: int, **context):
            page = browser.new_page(viewport={"width": width, "height": 900}, **context)
            said: list[str] = []
            page.on("console", lambda m: said.append(m.text))
            page.on("pageerror", lambda e: said.append(str(e)))
            page.on("request", lambda r: said.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
            page.goto(f"file://{site / name}")
            return page, said

        yield opened
        browser.close()


@needs_chromium
@pytest.mark.long
def test_search_works_from_a_file(shown):
    page, said = shown("index.html", 1400)
    page.fill(".sidebar-search", "witness")
    page.press(".sidebar-search", "Enter")
    page.wait_for_selector("#search-results li")
    assert "Glossary" in page.inner_text("#search-results")
    page.wait_for_timeout(500)
    assert said == []


@needs_chromium
@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
def test_nothing_is_cut_off(shown, width):
    """Pages are no wider than the window; what is wider scrolls in its own frame, which the keyboard reaches."""
    for name in ("index", "run/dynamics", "trust/certificate", "theory/theorem", "build/gallery", "start/glossary"):
        page, said = shown(f"{name}.html", width)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        wide = """() => [...document.querySelectorAll("article table, article math")].filter((e) => {
            const frame = e.closest(".table-wrapper, div.math, p, li, td");
            return e.getBoundingClientRect().right > frame.getBoundingClientRect().right + 1 &&
              !(frame.tabIndex === 0 && getComputedStyle(frame).overflowX === "auto"); }).map((e) => e.outerHTML.slice(0, 200))"""
        assert page.evaluate(wide) == [], name
        assert said == []
        page.close()


@needs_chromium
@pytest.mark.long
def test_drawings_turn_dark_with_the_page(shown):
    for scheme, expected in (("dark", "invert"), ("light", "none")):
        page, _ = shown("theory/theorem.html", 1400, color_scheme=scheme)
        assert page.evaluate("getComputedStyle(document.querySelector('article img')).filter").startswith(expected)
        page.evaluate("document.body.dataset.theme = 'light'")  # the reader's choice comes first
        assert page.evaluate("getComputedStyle(document.querySelector('article img')).filter") == "none"


@pytest.mark.usefixtures("as_user")
def test_the_page_on_the_command_line_is_what_help_says():
    commands = runpy.run_path(str(DOCS / "commands.py"))
    assert commands["PAGE"].read_text() == commands["page"](), "run: python docs/commands.py"


def test_the_formula_language_is_up_to_date():
    language = runpy.run_path(str(DOCS / "language.py"))
    assert language["PAGE"].read_text() == language["page"](), "run: python docs/language.py"


def test_docstrings_become_text():
    as_rst = runpy.run_path(str(DOCS / "conf.py"))["as_rst"]
    assert as_rst(["|T − f| ≤ x_1, `a_b`"]) == ["\\|T − f\\| ≤ x\\_1, ``a_b``", ""]
    assert as_rst(["a", "", "    F = |x|", "", "b"]) == ["a", "", "::", "", "        F = |x|", "", "b", ""]


def test_the_tutorial_shows_what_it_prints():
    found = steps((DOCS / "start" / "tutorial.md").read_text())
    assert all(step.output is not None for step in found if "print(" in step.text)
