"""Reports in headless chromium, for tests: a page, what it said and what it asked for."""

import shutil
import time

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DRAWN = "Object.keys(DATA.figures).every((id) => document.getElementById(id).dataset.drawn)"
BENIGN = ("willReadFrequently", "GPU stall due to ReadPixels", "Automatic fallback to software WebGL")


class Seen:
    """A page, what it said on the console and what it asked for."""

    def __init__(self, browser, path, width, **context):
        self.said: list[str] = []
        self.requests: list[str] = []
        self.page = browser.new_page(viewport={"width": width, "height": 900}, **context)
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.goto(f"file://{path}", timeout=120_000)  # four megabytes of plotly, on a busy machine
        self.page.wait_for_selector("body[data-ready=yes]", timeout=60_000)

    def scroll(self):
        """Down to the end, so that every figure is drawn."""
        for _ in range(0, self.page.evaluate("document.body.scrollHeight"), 600):
            self.page.mouse.wheel(0, 600)
            self.page.wait_for_timeout(50)
        self.wait(DRAWN)

    def wait(self, condition, seconds=60):
        """Playwright's own way to wait evaluates text inside the page, which the page's security policy refuses."""
        deadline = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
            self.page.wait_for_timeout(50)

    def require_quiet(self):
        loud = [text for text in self.said if not any(b in text for b in BENIGN)]
        assert loud == []
        assert [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))] == []


TEXTS = "p, span, label, button, a, h1, h2, h3, li, code, summary, textarea, input[type=text], select, b"
CONTRAST = """(texts) => {
  const number = (c) => c.match(/[\\d.]+/g).map(Number), part = (v) => (v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  const back = (e) => { for (; e; e = e.parentElement) { const c = number(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c; } return [255, 255, 255]; };
  const idle = (e) => !e.offsetParent || e.closest(".figure, [disabled], [aria-disabled=true]") ||
    !(e.textContent.trim() || e.value);
  return [...document.querySelectorAll(texts)].filter((e) => !idle(e)).map((e) => {
    const [a, b] = [light(number(getComputedStyle(e).color)), light(back(e))].sort((p, q) => q - p);
    return [`${e.tagName}#${e.id}.${e.className}`, (a + 0.05) / (b + 0.05)]; }).filter(([, ratio]) => ratio < 4.5); }"""


def require_readable(page):
    """Text stands out from its background, and every control has a name."""
    assert page.evaluate(CONTRAST, TEXTS) == []
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, textarea, button")].filter((e) =>
        !(e.labels?.length || e.getAttribute("aria-label") || e.textContent.trim())).map((e) => e.outerHTML)"""
    )
    assert unnamed == []
