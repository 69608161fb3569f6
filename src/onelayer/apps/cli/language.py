"""`onelayer language`: a bigram or trigram model of text files becomes a model folder."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from . import options as given
from .build import record_of_sequence_layer, usable
from .show import print_json
from .wording import said


class TokenKind(StrEnum):
    characters = "characters"
    words = "words"


def language(
    corpus: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="Files of UTF-8 text; each is a text of its own.")
    ],
    out: given.Out,
    order: Annotated[int, typer.Option(min=2, max=3, help="2: a bigram model; 3: a trigram model.")] = 3,
    tokens: Annotated[TokenKind, typer.Option(help="What a token is.")] = TokenKind.characters,
    eps: Annotated[
        float, typer.Option("--eps", "--tolerance", help="Largest total variation allowed after any context.")
    ] = 1e-6,
    longest: Annotated[int, typer.Option(min=2, help="Tokens of the longest context.")] = 1000,
    dtype: given.DtypeChoice = given.Dtype.float64,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """Turn text into a layer that predicts tokens, with a proof.

    The layer's next-token distribution is within --eps of the n-gram model, for every context. `onelayer generate` writes text
    with it.
    """
    folder = usable(out, force)
    import onelayer as ol

    layer = ol.language(
        [Path(name) for name in corpus], order, tokens=tokens.value, tolerance=eps, longest=longest, dtype=dtype.value
    )
    folder = layer.save(folder, overwrite=force)
    if json:
        print_json(record_of_sequence_layer(layer, folder))
    else:
        print(said(layer, language))
        print(f"written to {out}")
    return 0 if layer.certificate.verdict == "CERTIFIED" else 1
