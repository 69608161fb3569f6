"""`onelayer supremum`: how far apart two formulas, or a layer and its target, are at most, from both sides."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...common.errors import InputError
from ...target.sides import read_domain
from . import options as given
from .show import print_json, progress_bar
from .wording import said


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
    if not first.strip():
        raise InputError("a formula or a model folder first", "empty text", 'write for instance "sin(x)"')
    is_folder = Path(first).is_dir()
    if second is None and not is_folder:
        change = "name a folder that `build` wrote, or give two formulas and --domain"
        raise InputError("a model folder, or two formulas", f"{first!r} alone, which is no folder", change)
    if second is not None and (Path(second) / "model.safetensors").is_file():
        change = "give the folder first" if not is_folder else "compare each with a formula"
        raise InputError("a formula to compare with", f"{second!r}, which is a model folder", change)
    if domain is None and not is_folder:
        change = 'give --domain, such as --domain "0:1", or name a folder that `build` wrote'
        raise InputError("a domain for the two formulas, or a model folder", f"neither: no folder {first!r}", change)
    if domain is not None:
        read_domain(domain)  # bad text is refused before torch is imported
    import onelayer as ol

    from ...deployment.folder import load_approximation

    T = load_approximation(Path(first)) if is_folder else first
    with progress_bar(not json) as progress:
        found = ol.supremum(T, second, domain, accuracy=accuracy, within=within, seconds=seconds, progress=progress)
    if json:
        print_json(asdict(found) | {"reached": found.reached})
    else:
        print(said(found, supremum))
    return 0 if found.reached else 1
