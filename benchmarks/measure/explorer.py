"""The explorer in a real browser: its picture for the docs, and how long a visitor waits.

    python benchmarks/measure/explorer.py            every wait ten times in headless chromium
    python benchmarks/measure/explorer.py --page     and the table into docs/start/explorer.md

From the command `onelayer serve`, and from opening the page of a running server, to the first certified picture; from a key
press that makes a new function to its coarse and to its certified surface. Needs the extras `web` and `dev` (playwright) and
chromium. Without a GPU the surfaces are drawn in software, which is most of the time beyond building and proving.
"""

import re
import shutil
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from onelayer.common.table import Table
from page import markdown, options, page_of, placed

SOFTWARE = ["--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
DONE = "body[data-shown=yes][data-busy=no][data-state=current]"
PATIENCE = 200_000  # milliseconds until a silent page counts as broken
WAITS = (
    "`onelayer serve` → first certified picture",
    "opening the page → first certified picture",
    "key press → coarse surface",
    "key press → certified surface",
    "of these, building and proving",
)


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
def browsing() -> Iterator[Any]:
    """A headless browser."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as play:
        chromium = play.chromium.launch(executable_path=path, args=SOFTWARE)
        yield chromium
        chromium.close()


def opened(browser: Any, address: str, width: int = 1400, height: int = 900) -> Any:
    """A new page, once its first layer is drawn."""
    page = browser.new_context(viewport={"width": width, "height": height}).new_page()
    page.goto(address)
    page.wait_for_selector(DONE, timeout=PATIENCE)
    return page


def from_command(browser: Any) -> float:
    """Seconds from the command to the first certified picture, the page being opened as soon as there is one."""
    started = time.perf_counter()
    with serving() as (_, address):
        page = browser.new_context(viewport={"width": 1400, "height": 900}).new_page()
        page.goto(address)
        page.wait_for_selector("body[data-shown=yes]", timeout=PATIENCE)
        seconds = time.perf_counter() - started
        page.context.close()
    return seconds


def from_opening(browser: Any, address: str) -> float:
    """Seconds from opening the page of a running server to the first certified picture, as the page counts them."""
    page = opened(browser, address)
    seconds = page.evaluate("window.timings.certified")
    page.context.close()
    return float(seconds)


def from_key_press(page: Any, factor: int) -> tuple[float, float, float]:
    """Seconds from the bracket that completes a new formula to the coarse and the certified surface, and to build and prove."""
    page.fill("#formula", f"sin(x1) + sin({1 + factor / 100}*x2")
    page.wait_for_selector("body[data-state=refused]", timeout=PATIENCE)
    page.evaluate("window.timings = {}")
    page.press("#formula", ")")
    page.wait_for_selector(DONE, timeout=PATIENCE)
    own = re.findall(r"([\d.]+) s", page.inner_text("#timing"))[0]
    return page.evaluate("window.timings.coarse"), page.evaluate("window.timings.certified"), float(own)


def picture() -> bytes:
    """The page with Franke's surface, as it stands on a laptop."""
    with serving() as (_, address), browsing() as browser:
        page = opened(browser, address)
        page.evaluate("delete document.body.dataset.shown")
        page.select_option("#preset", label="Franke's surface")
        page.wait_for_selector(DONE, timeout=PATIENCE)
        page.wait_for_selector("#error-0[data-drawn=yes]")
        page.wait_for_timeout(1000)
        return bytes(page.screenshot())


def measured(repeat: int) -> list[list[float]]:
    """The waits, each this many times; the first visit warms the browser and does not count."""
    with browsing() as browser:
        command = [from_command(browser) for _ in range(repeat)]
        with serving() as (_, address):
            page = opened(browser, address)
            opening = [from_opening(browser, address) for _ in range(repeat)]
            keys = [from_key_press(page, factor) for factor in range(repeat + 1)][1:]
    return [command, opening, *map(list, zip(*keys, strict=True))]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--page", action="store_true", help="write the table into explorer.md")
    args = parser.parse_args()
    table = Table(f"The explorer: seconds, of {args.repeat}", ("", "median", "shortest", "longest"))
    for name, values in zip(WAITS, measured(args.repeat), strict=True):
        table.rows.append((name, *(f"{f(values):.2f} s" for f in (statistics.median, min, max))))
    print(table)
    if args.page:
        page = page_of("explorer.md")
        text = markdown(table.columns, [list(map(str, row)) for row in table.rows])
        page.write_text(placed(page.read_text(encoding="utf-8"), "waits", text), encoding="utf-8")


if __name__ == "__main__":
    main()
