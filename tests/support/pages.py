"""Pages of the documentation as lists of steps that can be run: Python blocks, commands, files, and what they print.

A page is read from top to bottom, as its reader does:

    ```python          runs in the page's one namespace
    ```console         lines that start with "$ " are commands; lines below one are what it prints
    ```text            right after one of these: what it prints
    <!-- file: a.csv -->     before a block: the block is that file
    <!-- needs: gpu -->      before a block: it runs only where that is
"""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

import onelayer

SUPPORT = Path(__file__).parent
ROOT = SUPPORT.parent.parent
PLACES = ("*.md", "docs/*.md", "docs/*/*.md", "benchmarks/*/*.md")
PAGES = {str(page.relative_to(ROOT)): page for place in PLACES for page in sorted(ROOT.glob(place))}
FENCE = re.compile(
    r"(?:^<!-- (?P<mark>file|needs): (?P<value>\S+) -->\n\n?)?^```(?P<language>[^\n`]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Step:
    """One thing to do, what it should print (None: not said), and where it stands."""

    kind: str  # "python", "command" or "file"
    text: str
    line: int
    output: str | None = None
    needs: str | None = None
    name: str | None = None  # of a file


def steps(text: str) -> list[Step]:
    """What a page asks its reader to do, in order."""
    found: list[Step] = []
    end_of_last = -1  # where the last Python or console block ended
    for match in FENCE.finditer(text):
        body, line = match["body"], text.count("\n", 0, match.start("body")) + 1
        needs = match["value"] if match["mark"] == "needs" else None
        if match["mark"] == "file":
            found.append(Step("file", body, line, name=match["value"]))
        elif match["language"] == "python":
            found.append(Step("python", body, line, needs=needs))
            end_of_last = match.end()
        elif match["language"] == "console":
            found += commands(body, line, needs)
            end_of_last = match.end()
        elif match["language"] == "text" and text[end_of_last : match.start()].strip() == "" and end_of_last > 0:
            found[-1] = replace(found[-1], output=body)
    return found


def commands(body: str, line: int, needs: str | None) -> list[Step]:
    found: list[Step] = []
    for i, words in enumerate(body.splitlines()):
        if words.startswith("$ "):
            found.append(Step("command", words.removeprefix("$ "), line + i, needs=needs))
        else:
            found[-1] = replace(found[-1], output=(found[-1].output or "") + words + "\n")
    return found


def with_package() -> dict[str, str]:
    """The environment of a process that is to find this very package first."""
    return {**os.environ, "PYTHONPATH": str(Path(onelayer.__file__).parent.parent)}


def inline(text: str, first: str) -> list[str]:
    """Commands in the running text, `python …` say: whatever stands in backticks and starts with that word."""
    outside = FENCE.sub("", text)
    return [" ".join(found.split()) for found in re.findall(rf"`({first} [^`]+)`", outside)]


NUMBER = re.compile(r"(?<![\w.])[−-]?\d[\d,]*\.?\d*(?:e[+-]?\d+)?(?!\w)")


def same(shown: str, printed: str, factor: float = 4.0) -> bool:
    """The same words; numbers agree within a factor, since other machines round and search a little differently.

    "…" stands for anything within a line, and how long something took does not matter.
    """
    one, two = _lines(shown), _lines(printed)
    return len(one) == len(two) and all(_alike(a, b, factor) for a, b in zip(one, two, strict=True))


def _lines(text: str) -> list[str]:
    """Words of the lines that have any, without rulers; lines about seconds are left out."""
    lines = (" ".join(line.split()) for line in text.splitlines())
    return [line for line in lines if re.search(r"\w", line) and not line.startswith("seconds ")]


def _alike(shown: str, printed: str, factor: float) -> bool:
    if "…" in shown and "…" not in printed:
        pattern = ".*".join(re.escape(part) for part in shown.split("…"))
        return re.fullmatch(pattern, printed) is not None
    if NUMBER.sub("#", shown) != NUMBER.sub("#", printed):
        return False
    pairs = zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True)
    return all(_near(_value(a), _value(b), factor) for a, b in pairs)


def _value(text: str) -> float:
    return float(text.replace(",", "").replace("−", "-"))


def _near(a: float, b: float, factor: float) -> bool:
    return a == b or (a * b > 0 and 1 / factor <= a / b <= factor)
