"""What the commands show: JSON documents without infinities, progress on a terminal, a line on an interrupt, pages."""

import json
import math
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...common.progress import Progress


class Stopped(Exception):
    """A command was interrupted; the message says how far it got."""


def print_json(record: Any) -> None:
    """One JSON document on stdout; numbers that are not finite become null."""
    print(json.dumps(_finite(record), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_wrapped(start: str, text: str) -> None:
    """A line of a list, wrapped under the beginning of its text where the terminal ends; [--n 3] stays whole."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    whole = re.sub(r"\[[^\]]*\]|--\S+ (?!\[|--)\S+", lambda found: found[0].replace(" ", "\0"), text)
    lines = textwrap.wrap(
        whole, width, initial_indent=start, subsequent_indent=" " * len(start), break_on_hyphens=False
    )
    print("\n".join(lines).replace("\0", " "))


def open_page(path: Path) -> None:
    """Show a page in the browser, or say that there is none."""
    import webbrowser

    if not webbrowser.open(path.absolute().as_uri()):
        print(f"no browser found: open {path} yourself", file=sys.stderr)


@contextmanager
def progress_bar(wanted: bool) -> Iterator[Progress | None]:
    """A callback that moves a bar on stderr, or None if that is no terminal. The bar disappears at the end."""
    if not wanted:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("working", total=None)
        yield lambda text, fraction: bar.update(task, description=text, total=1.0, completed=fraction)
