"""The command `onelayer`: a thin skin over the library.

Exit status: 0 certified (or done), 1 not certified (the folder is written all the same), 2 bad input (one line on
stderr, nothing written), 130 interrupted. Results go to stdout, everything else to stderr. Nothing heavy is imported
before a command runs, so that `--help` is quick.
"""

import os
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from ... import __version__
from ...common.errors import InputError
from . import (
    build,
    certify,
    check,
    compare,
    distill,
    evaluate,
    export,
    gallery,
    inspect,
    memorize,
    plan,
    report,
    serve,
    study,
    train,
)
from .show import Stopped

CERTIFIED_OR_DONE, NOT_CERTIFIED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130

app = typer.Typer(
    rich_markup_mode=None,
    help="Turn functions into single-layer Transformers, with proof.",
    epilog="Exit status: 0 certified (or done), 1 not certified, 2 bad input.",
)
app.command("build")(build.build)
app.command("plan")(plan.plan)
app.command("memorize")(memorize.memorize)
app.command("train")(train.train)
app.command("compare")(compare.compare)
app.command("study")(study.study)
app.command("distill")(distill.distill)
app.command("certify")(certify.certify)
app.command("check")(check.check)
app.command("inspect")(inspect.inspect)
app.command("report")(report.report)
app.command("export")(export.export)
app.command("serve")(serve.serve)
# the options of an entry are those of its function
app.command("gallery", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})(gallery.gallery)
# a negative number is an argument here, not an option
app.command("eval", context_settings={"ignore_unknown_options": True})(evaluate.evaluate)


def _version(asked: bool) -> None:
    if asked:
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
    """Run one command and return its exit status; whatever is wrong with the input becomes one line on stderr."""
    for stream in (sys.stdout, sys.stderr):  # a terminal that lacks a character shows its code
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        command: Any = typer.main.get_command(app)
        status = command.main(arguments, prog_name="onelayer", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return NOT_CERTIFIED
    except InputError as refusal:
        return _complain(str(refusal))
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        return _complain(f"asked: reading and writing files; found: {error.strerror or error}{name}; change: the path")
    except Stopped as stop:
        print(f"interrupted {stop}".strip(), file=sys.stderr)
        return INTERRUPTED
    except (typer.Abort, KeyboardInterrupt):
        status = INTERRUPTED
    except Exception as error:
        if not hasattr(error, "format_message"):  # every usage error of the option parser has it
            raise
        context = getattr(error, "ctx", None)
        path = context.command_path if context else "onelayer"
        return _complain(f"{error.format_message().rstrip('.')}; see {path} --help")
    if status == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    return int(status or 0)


def _complain(text: str) -> int:
    print(" ".join(text.split()), file=sys.stderr)
    return BAD_INPUT
