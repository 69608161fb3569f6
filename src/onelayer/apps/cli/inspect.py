"""`onelayer inspect`: a model folder in the terminal."""

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as given
from .build import record_of, record_of_sequence_layer
from .show import print_json

if TYPE_CHECKING:
    from ...model.transformer import SingleLayerTransformer
    from ...sequence_layer import SequenceLayer


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
    from ...deployment.folder import load_certified
    from ...sequence_layer import SequenceLayer
    from ...views.terminal import LEVELS, plain, summary, tables

    approximation = load_certified(folder)
    if isinstance(approximation, SequenceLayer):
        return _sequence_layer(approximation, form, json)
    if json:
        print_json(record_of(approximation, None) | {"matrices": _matrices(approximation.model)})
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


def _sequence_layer(layer: "SequenceLayer", form: TextFormat, json: bool) -> int:
    import onelayer as ol

    if json:
        print_json(record_of_sequence_layer(layer, None) | {"matrices": _matrices(layer.model)})
        return 0
    tables = [layer.table(), ol.inspect(layer.model).matrix_table()]
    for table in tables:
        print(table.markdown() if form is TextFormat.markdown else table.latex() if form is TextFormat.latex else table)
    return 0


def _matrices(model: "SingleLayerTransformer") -> list[dict[str, Any]]:
    import onelayer as ol

    return [
        {
            "name": m.name,
            "role": m.role,
            "shape": m.shape,
            "rank": m.rank,
            "singular_values": m.singular_values.tolist(),
            "frobenius": m.frobenius,
            "largest": m.largest,
        }
        for m in ol.inspect(model).matrices
    ]
