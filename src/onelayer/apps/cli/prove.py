"""`onelayer prove`: whether the layer of a folder has a property."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...common.checks import require_seconds
from . import options as given
from .show import print_json
from .wording import said


def prove(
    folder: Annotated[Path, typer.Argument(help="A model folder.")],
    text: Annotated[
        str,
        typer.Argument(
            metavar="PROPERTY",
            help='"increasing in x1", "decreasing in x1", "convex in x1", "concave in x1", "Lipschitz 3 in x1", '
            '"T <= 2", "T > 0", …, or one of these after "not".',
        ),
    ],
    seconds: Annotated[float, typer.Option(help="Seconds that the proof may take.")] = 75.0,
    seed: given.Seed = 0,
    json: given.Json = False,
) -> int:
    """Prove that a layer is increasing, convex or bounded, or not.

    The property is about the real function of the stored weights, on the layer's domain.

    Exit status: 0 proved, 1 refuted or undecided, 2 bad input.
    """
    require_seconds(seconds, "the proof", finite=False)
    import onelayer as ol

    from ...deployment.folder import load_approximation

    found = ol.prove(load_approximation(folder), text, seconds=seconds, seed=seed)
    if json:
        print_json(asdict(found))
    else:
        print(said(found, prove))
    return 0 if found.proved else 1
