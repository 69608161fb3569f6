"""A visit to the explorer in headless chromium, for tests: its page, what it said and what it asked for."""

BENIGN = ("willReadFrequently", "GPU stall due to ReadPixels", "Automatic fallback to software WebGL", "status of 4")


class Visit:
    """A page, what it said and asked for."""

    def __init__(self, address, browser, width=1400, link="", **context):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **context)
        self.page, self.said, self.asked = self.context.new_page(), [], []
        self.page.on("console", lambda m: self.said.append(f"{m.type}: {m.text}"))
        self.page.on("pageerror", lambda e: self.said.append(f"error: {e}"))
        self.page.on("request", lambda r: self.asked.append(r.url))
        self.page.set_default_timeout(100_000)  # a busy machine
        self.address = address
        self.page.goto(address + link)
        self.page.wait_for_selector("body[data-ready=yes]")

    def built(self):
        """What the form asks for is drawn, its folder and boxes are there."""
        self.page.wait_for_selector("body[data-shown=yes][data-busy=no][data-state=current]", timeout=100_000)

    def ask(self, formula, domain, tolerance):
        self.page.fill("#formula", formula)
        self.page.fill("#domain", domain)
        self.page.fill("#tolerance", str(tolerance))
        self.page.evaluate("delete document.body.dataset.shown")
        self.page.press("#tolerance", "Enter")
        self.built()

    def options(self):
        self.page.click("#request summary")

    def text(self, selector):
        return self.page.inner_text(selector)

    def close(self):
        loud = [text for text in self.said if not any(b in text for b in BENIGN)]
        self.context.close()
        assert loud == []
        assert [url for url in self.asked if not url.startswith((self.address, "data:", "blob:"))] == []
