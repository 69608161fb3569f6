"""`onelayer check`: verify the certificate of a folder with the independent checker."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...common.checks import require_files, require_seconds
from ...common.errors import InputError
from . import options as given
from .sample_file import samples_beside
from .show import print_json


def check(
    folder: Annotated[Path, typer.Argument(help="A model folder.")],
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The CSV file that was memorised, which the folder does not hold."),
    ] = None,
    coq: Annotated[
        bool,
        typer.Option("--coq", help="Prove the error bound with Coq instead, as `onelayer export --to coq` states it."),
    ] = False,
    seconds: Annotated[float, typer.Option(help="Seconds that the check may take.")] = 300.0,
    json: given.Json = False,
) -> int:
    """Check the certificate of a folder independently of the prover.

    In ball arithmetic, by a program that shares nothing with the prover.

    Exit status: 0 valid, 1 invalid, 2 no model folder, 3 not checkable (with --coq: not proved).
    """
    from ...checker import FILES, STATUS
    from ...checker import check as checked

    require_files(folder, FILES)
    if data is not None and not data.is_file():
        raise InputError("a CSV file for --data", f"no file {data}", "name the file that was memorised")
    require_seconds(seconds, "the check")
    if coq:
        return _with_coq(folder, data, seconds, json)
    verdict = checked(folder, seconds, data=data)
    if json:
        print_json(asdict(verdict))
    else:
        print(verdict)
    return STATUS[verdict.verdict]


def _with_coq(folder: Path, data: Path | None, seconds: float, json: bool) -> int:
    """VALID (kernel), or NOT PROVED: Coq never refutes."""
    from ...deployment.export.coq.by_kernel import checked

    found = checked(folder, seconds, samples_beside(folder, data))
    if json:
        print_json(asdict(found))
    else:
        print(found)
    return 0 if found.verdict == "VALID (kernel)" else 3
