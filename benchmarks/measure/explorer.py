"""The explorer in a real browser: its picture for the docs, and the time from key press to certified surface.

    python benchmarks/measure/explorer.py            builds the paper's example at ε = 1e-4 ten times in headless chromium

Needs the extras `web` and `dev` (playwright) and chromium. Without a GPU the surfaces are drawn in software, which is most of
the time beyond building and proving.
"""

import re
import shutil
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onelayer.common.table import Table
from page import options

SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DONE = "body[data-shown=yes][data-busy=no]"


@contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """(process, address) of a server on a free port, stopped afterwards."""
    command = [sys.executable, "-m", "onelayer.apps.cli", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        if not found:
            raise RuntimeError(line + process.stderr.read())
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()
        process.stderr.close()


@contextmanager
def visiting(width: int = 1400, height: int = 1000) -> Iterator[Any]:
    """A page of a new server, once its workers are warm."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    with serving() as (_, address), sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=browser, args=SOFTWARE)
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.goto(address)
        page.wait_for_selector("body[data-ready=yes]")
        page.select_option("#preset", label="The paper's example")  # warms the workers and the browser
        page.wait_for_selector(DONE, timeout=100_000)
        page.wait_for_timeout(5000)
        yield page
        chromium.close()


def built(page: Any, tolerance: str) -> tuple[float, float]:
    """(seconds from key press to surface, seconds of these to build and prove), as the page shows them."""
    page.fill("#tolerance", tolerance)
    page.evaluate("delete document.body.dataset.shown")
    page.press("#formula", "Enter")
    page.wait_for_selector(DONE, timeout=100_000)
    total, own = re.findall(r"([\d.]+) s", page.inner_text("#timing"))
    return float(total), float(own)


def picture() -> bytes:
    """The top of the page with Franke's surface and a point that is looked at."""
    with visiting(1400, 1500) as page:
        page.evaluate("delete document.body.dataset.shown")
        page.select_option("#preset", label="Franke's surface")
        page.wait_for_selector(DONE, timeout=100_000)
        page.wait_for_selector("#error-0[data-drawn=yes]")
        page.wait_for_timeout(1000)
        return bytes(page.screenshot())


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    args = parser.parse_args()
    with visiting() as page:
        times = [built(page, "1e-4") for _ in range(args.repeat)]
    table = Table("sin x1 + sin x2 at ε = 1e-4 in the explorer", ("", "median", "shortest", "longest"))
    for name, values in zip(
        ("key press to certified surface", "of these, building and proving"), zip(*times, strict=True), strict=True
    ):
        table.rows.append((name, *(f"{f(values):.2f} s" for f in (statistics.median, min, max))))
    print(table)


if __name__ == "__main__":
    main()
