"""`onelayer circuit`: the heads and hidden units of a layer, with the proved effect of ablating each."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...common.atomic import require_new
from ...common.budget import Budget
from ...common.checks import require_seconds, require_whole
from ...common.errors import InputError
from . import options as given
from .show import print_json, progress_bar
from .wording import said

if TYPE_CHECKING:
    from ...approximation import Approximation


def circuit(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A model folder.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The JSON file to write; FOLDER/circuit.json by default.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(metavar="N", help="Of a layer for sequences of any length, that for this many tokens.")
    ] = None,
    disguise: Annotated[
        Path | None,
        typer.Option(metavar="NEW", help="Write a disguised variant to this folder, with its own circuit.json."),
    ] = None,
    accuracy: Annotated[float, typer.Option(help="How far apart the ends of an effect may be, as a share.")] = 0.05,
    seconds: Annotated[float, typer.Option(help="Seconds that all proofs together may take.")] = 60.0,
    seed: given.Seed = 0,
    force: given.ForceFile = False,
    json: given.Json = False,
) -> int:
    """Prove what the layer loses without each head and hidden unit.

    Writes nodes, edges and effects, sup |T - T without the node| from both sides, to circuit.json. A disguised variant computes
    the same function in another basis, among distractor heads: ground truth for methods that look for circuits.
    """
    require_seconds(seconds, "the proofs", finite=False)
    if disguise is not None and out is not None:
        raise InputError("--out or --disguise", "both", "leave --out out: circuit.json goes into the new folder")
    if disguise is not None and disguise.resolve() == folder.resolve():
        raise InputError("a new folder for --disguise", "the folder of the layer itself", "choose another name")
    from ...deployment.earlier_model import require_place

    path = folder / "circuit.json" if out is None else out
    if disguise is None:
        require_new(path, force)
    else:
        require_place(disguise, force)
    layer = _loaded(folder, length)
    if disguise is not None:
        time = Budget(seconds)
        variant = layer.disguised(seed=seed, seconds=min(20.0, seconds / 2))
        found = variant.circuit(max(time.left, seconds / 4), accuracy)
        variant.save(disguise, found, overwrite=force)
        path = disguise / "circuit.json"
    else:
        with progress_bar(not json) as progress:
            found = layer.circuit(seconds=seconds, accuracy=accuracy, seed=seed, progress=progress)
        found.save(path, overwrite=force)
    if json:
        print_json(found.as_json())
    else:
        print(said(found, circuit))
        print(f"written to {path}")
    return 0


def _loaded(folder: Path, length: int | None) -> "Approximation":
    from ...deployment.folder import load_certified
    from ...sequence_layer import SequenceLayer

    layer = load_certified(folder)
    if not isinstance(layer, SequenceLayer):
        if length is not None:
            raise InputError("--length for a layer of any length", "a layer of one length", "leave --length out")
        return layer
    if length is None:
        found = f"a layer for sequences of 1 to {layer.longest:,}"
        raise InputError("a layer of one length", found, "choose the length: --length N")
    require_whole("--length", length, 1, layer.longest)
    return layer.at_length(length)
