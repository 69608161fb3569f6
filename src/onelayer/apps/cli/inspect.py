"""`onelayer inspect`: a model folder in the terminal."""

import sys
from enum import StrEnum
from typing import Annotated, Any

import typer

from . import options as given
from .show import print_json


class TextFormat(StrEnum):
    text = "text"
    markdown = "markdown"
    latex = "latex"


def inspect(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A model folder.")],
    form: Annotated[
        TextFormat, typer.Option("--format", help="Text with small charts, or tables for a paper.")
    ] = TextFormat.text,
    json: given.Json = False,
) -> int:
    """Show what is in a folder: certificate, heads and weights.

    Also the spectra of the weights, and where the error is.
    """
    from ...deployment.folder import load_approximation
    from ...views.terminal import LEVELS, plain, summary, tables

    approximation = load_approximation(folder)
    if json:
        print_json(record(approximation))
    elif form is TextFormat.text:
        text = summary(approximation)
        try:
            LEVELS.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            text = plain(text)
        print(text, end="")
    else:
        found = tables(approximation)
        print("\n".join(t.markdown() if form is TextFormat.markdown else t.latex() for t in found), end="")
    return 0


def record(approximation: Any) -> dict[str, Any]:
    """What the folder holds, for JSON: the record of `build`, and the weight matrices."""
    import onelayer as ol

    from .build import record_of

    matrices = [
        {
            "name": m.name,
            "role": m.role,
            "shape": m.shape,
            "rank": m.rank,
            "singular_values": m.singular_values.tolist(),
            "frobenius": m.frobenius,
            "largest": m.largest,
        }
        for m in ol.inspect(approximation.model).matrices
    ]
    return record_of(approximation, None) | {"matrices": matrices}
