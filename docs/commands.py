"""Write docs/start/cli.md, the page on the command line, from --help of every command: `python docs/commands.py`."""

import contextlib
import io
import os
from pathlib import Path
from unittest.mock import patch

import typer

from onelayer.apps.cli import app, main

PAGE = Path(__file__).parent / "start" / "cli.md"
TEXT = """\
# The command line

Written by `python docs/commands.py` from `--help`; a test compares the two.

Every command prints results on stdout and complaints on stderr. **Exit status**: 0 certified (or done), 1 not certified
(REFUTED or UNDECIDED; what was built is written all the same), 2 bad input (one line that says what was asked, what was found
and what to change; nothing is written), 3 not checkable (`check`), 130 interrupted. Commands that print results print one JSON
document with `--json`.

**Completion.** `onelayer --install-completion` makes the current shell (bash, zsh, fish, PowerShell) complete commands,
options and their choices; `onelayer --show-completion` prints the lines it would add, if you would rather add them by hand.

"""


def help_of(*words: str) -> str:
    """What `onelayer … --help` prints on a terminal of 80 columns."""
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="80"), contextlib.redirect_stdout(printed):
        main([*words, "--help"])
    return printed.getvalue().rstrip()


def page() -> str:
    """The whole page."""
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    sections = [("onelayer", help_of()), *((f"onelayer {name}", help_of(name)) for name in commands)]
    return TEXT + "\n".join(f"## {name}\n\n```text\n{text}\n```\n" for name, text in sections)


if __name__ == "__main__":
    PAGE.write_text(page())
