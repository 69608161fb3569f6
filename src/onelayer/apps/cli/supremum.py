"""`onelayer supremum`: how far apart two formulas, or a layer and its target, are at most, from both sides."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...common.errors import InputError
from ...target.sides import read_domain
from . import options as given
from .show import print_json, progress_bar


def supremum(
    first: Annotated[str, typer.Argument(metavar="FORMULA or FOLDER", help="A formula, or a model folder.")],
    second: Annotated[
        str | None,
        typer.Argument(metavar="FORMULA", help="The formula to compare with; the target of the folder by default."),
    ] = None,
    domain: given.OptionalDomain = None,
    within: given.Within = None,
    accuracy: Annotated[float, typer.Option(help="How far apart the two ends may be, as a share: 0.01 for 1%.")] = 0.01,
    seconds: Annotated[float, typer.Option(help="Seconds that the proof may take.")] = 75.0,
    json: given.Json = False,
) -> int:
    """Prove how far apart two formulas are, or layer and target.

    Prints a lower and an upper bound of the largest distance on the domain, both proved, and a point that has the lower one.

    Exit status: 0 the accuracy was reached, 1 it was not, 2 bad input.
    """
    folder = Path(first)
    if second is None and not folder.is_dir():
        raise InputError("two formulas, or a model folder", f"{first!r} alone", "give what to compare it with")
    if second is not None and not folder.is_dir():
        given.require_domain(domain)
    if domain is not None:
        read_domain(domain)  # bad text is refused before torch is imported
    import onelayer as ol

    from ...deployment.folder import load_approximation

    T = load_approximation(folder) if folder.is_dir() else first
    with progress_bar(not json) as progress:
        found = ol.supremum(T, second, domain, accuracy=accuracy, within=within, seconds=seconds, progress=progress)
    if json:
        print_json(asdict(found) | {"reached": found.reached})
    else:
        print(found)
    return 0 if found.reached else 1
