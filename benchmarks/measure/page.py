"""Tables in Markdown, and their place in a page of the documentation; the options of a script."""

import argparse
from collections.abc import Sequence

from onelayer.common.errors import InputError


def options(text: str | None) -> argparse.ArgumentParser:
    """A parser of options whose --help is the script's own text."""
    return argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)


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
