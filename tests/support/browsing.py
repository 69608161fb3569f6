"""Reports in headless chromium, for tests: a page, what it said and what it asked for."""

import shutil

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
        self.page.goto(f"file://{path}")
        self.page.wait_for_selector("body[data-ready=yes]", timeout=60_000)

    def scroll(self):
        """Down to the end, so that every figure is drawn."""
        for _ in range(0, self.page.evaluate("document.body.scrollHeight"), 600):
            self.page.mouse.wheel(0, 600)
            self.page.wait_for_timeout(50)
        self.page.wait_for_function(DRAWN, timeout=60_000)

    def require_quiet(self):
        loud = [text for text in self.said if not any(b in text for b in BENIGN)]
        assert loud == []
        assert [url for url in self.requests[1:] if not url.startswith(("data:", "blob:"))] == []
