"""What the measuring scripts share: their options, tables in Markdown, and the tables' place in the documentation.

A script is run by its path, so Python looks for modules in its own folder only; importing this one adds `data` and `draw`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from onelayer import InputError

sys.path.extend(str(Path(__file__).resolve().parents[1] / folder) for folder in ("data", "draw"))
DOCS = Path(__file__).resolve().parents[2] / "docs"


def options(text: str | None) -> argparse.ArgumentParser:
    """A parser whose --help is the script's docstring."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


def page_of(name: str) -> Path:
    """The only page of the documentation with that file name, in whichever folder of docs it is."""
    (found,) = DOCS.rglob(name)
    return found


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def placed(page: str, mark: str, text: str) -> str:
    """The page with the text between `<!-- mark -->` and `<!-- /mark -->`; everything else stays."""
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    if page.count(start) != 1 or page.count(end) != 1 or page.index(start) > page.index(end):
        raise InputError(f"{start} … {end} once in the page", "not so", "put the two comments back")
    before, after = page.split(start)[0], page.split(end)[1]
    return f"{before}{start}\n\n{text}\n\n{end}{after}"
