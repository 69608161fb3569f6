"""`onelayer certify`: a new certificate for the model of a folder."""

from pathlib import Path
from typing import Annotated

import typer

from ...common.budget import Budget
from ...common.checks import require_seconds
from ...common.errors import InputError
from . import options as given
from .build import usable
from .show import print_json, progress_bar
from .wording import said


def certify(
    folder: Annotated[Path, typer.Argument(help="A model folder.")],
    eps: Annotated[
        float | None, typer.Option("--eps", "--tolerance", help="The tolerance to prove; the folder's by default.")
    ] = None,
    slope_eps: given.SlopeEps = None,
    margin: Annotated[float | None, typer.Option(help="Distance kept from jumps; the folder's by default.")] = None,
    device: given.Device = "cpu",
    seconds: Annotated[float, typer.Option(help="Seconds that the proof may take.")] = 75.0,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Write the model with its new certificate to this folder.")
    ] = None,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """Prove again how far the layer of a folder is from its target.

    For another tolerance, or with more time.

    Exit status: 0 certified, 1 refuted or undecided, 2 bad input.
    """
    require_seconds(seconds, "the proof", finite=False)
    budget = Budget(seconds)
    import onelayer as ol

    from ...approximation import Approximation
    from ...deployment.folder import load_approximation

    approximation = load_approximation(folder)
    target = approximation.target
    if target is None:
        raise InputError("a target to compare with", "one that folders do not store", "use onelayer.certify in Python")
    if margin is not None:
        shape = target.shape if target.sequence else None
        target = ol.Target(target.text, target.domain, shape=shape, output_shape=target.output_shape, margin=margin)
    destination = usable(out, force) if out is not None else None
    with progress_bar(not json) as progress:
        left = max(budget.left, seconds / 10)
        certificate = ol.certify(
            approximation, target, eps, slope_tolerance=slope_eps, seconds=left, device=device, progress=progress
        )
    if destination is not None:
        Approximation.of(approximation.model, target, certificate, approximation.facts).save(
            destination, overwrite=force
        )
    if json:
        print_json(certificate.as_json())
    else:
        print(said(certificate, certify))
        if destination is not None:
            print(f"written to {out}")
    return 0 if certificate.verdict == "CERTIFIED" else 1
