"""`onelayer report`: a page that shows a model folder."""

from pathlib import Path
from typing import Annotated

import typer

from . import options as given
from .show import open_page


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model folder.")],
    out: Annotated[
        Path | None, typer.Option(metavar="PAGE", help="The HTML file to write; FOLDER/report.html by default.")
    ] = None,
    show: given.Open = False,
    force: given.ForceFile = False,
) -> int:
    """Write the report of a folder, one page that works offline.

    It has pictures of target, error, heads, weights and proof; of a layer for sequences, the attention at any sequence.
    """
    from ...deployment.folder import load_certified

    path = folder / "report.html" if out is None else out
    print(f"written to {load_certified(folder).report(path, overwrite=force)}")
    if show:
        open_page(path)
    return 0
