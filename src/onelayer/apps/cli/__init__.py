"""The command `onelayer`: a thin skin over the library.

Exit status: 0 certified (or done), 1 not certified (the folder is written all the same), 2 bad input (one line on
stderr, nothing written), 130 interrupted. Results go to stdout, everything else to stderr. Nothing heavy is imported
before a command runs, which keeps `--help` quick.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from ... import __version__
from ...common.errors import InputError
from .show import Stopped
from .wording import refusal_of, usage_of

CERTIFIED_OR_DONE, NOT_CERTIFIED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    rich_markup_mode=None,
    help="Turn functions into single-layer Transformers, with proof.",
    epilog="Exit status: 0 certified (or done), 1 not certified, 2 bad input, 3 not checkable.",
)
COMMANDS = "build plan memorize sets train compare study distill certify check supremum prove language generate inspect"
for name in [*COMMANDS.split(), "circuit", "report", "export", "serve"]:
    app.command()(getattr(import_module(f".{name}", __name__), name))
# a gallery entry takes the parameters of its function as options
more: dict[str, Any] = {"ignore_unknown_options": True, "allow_extra_args": True}
app.command("gallery", context_settings=more)(import_module(".gallery", __name__).gallery)
# a negative number is an argument here, not an option
app.command("eval", context_settings={"ignore_unknown_options": True})(import_module(".evaluate", __name__).evaluate)


def _version(requested: bool) -> None:
    if requested:
        print(f"onelayer {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _top(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; bad input is reported in one line on stderr."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its code
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    parser: Any = typer.main.get_command(app)
    try:
        status = parser.main(arguments, prog_name="onelayer", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return NOT_CERTIFIED
    except InputError as refusal:
        return _complain(refusal_of(refusal, parser))
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        return _complain(
            f"asked: reading and writing files; found: {error.strerror or error}{name}; change: choose another path"
        )
    except Stopped as stop:
        print(f"interrupted {stop}".strip(), file=sys.stderr)
        return INTERRUPTED
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if not hasattr(error, "format_message"):  # every usage error of the option parser has it
            raise
        return _complain(usage_of(error))
    if status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return int(status or 0)


def _complain(text: str) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return BAD_INPUT
