"""`onelayer train`: the same layer by gradient descent."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ...common.errors import InputError
from . import options as given
from .build import record_of, usable
from .show import print_json, progress_bar


def train(
    formula: given.FormulaText,
    domain: given.DomainText,
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The model folder to write.")],
    eps: given.Eps = 1e-2,
    heads: Annotated[int, typer.Option(min=1)] = 4,
    width: Annotated[int, typer.Option(min=1, help="Of the feed-forward network.")] = 256,
    d_model: Annotated[int, typer.Option(min=1, help="Of the stream.")] = 64,
    optimizer: Annotated[str, typer.Option(help="adam, sgd or momentum.")] = "adam",
    loss: Annotated[str, typer.Option(help="mse or sup.")] = "mse",
    schedule: Annotated[str, typer.Option(help="cosine or constant.")] = "cosine",
    rate: Annotated[float | None, typer.Option(help="Learning rate; by the optimiser if none is given.")] = None,
    steps: Annotated[int, typer.Option(min=1)] = 5000,
    batch: Annotated[int, typer.Option(min=1)] = 256,
    samples: Annotated[int | None, typer.Option(min=1, help="How often f is sampled.")] = None,
    init: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Start from the weights of a model folder.")
    ] = None,
    checkpoint: Annotated[
        str | None, typer.Option(metavar="FILE", help="Written as training goes on; gone on from if it exists.")
    ] = None,
    dtype: given.DtypeChoice = given.Dtype.float32,
    device: given.Device = "cpu",
    seconds: Annotated[float | None, typer.Option(help="Stop after so many seconds.")] = None,
    certify: Annotated[float, typer.Option(help="Seconds for a certificate; 0: only observed.")] = 0.0,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1)] = 0,
    json: given.Json = False,
) -> int:
    """Train a layer on a formula and write its folder; interrupted, it writes the best layer so far.

    Exit status: 0 certified, 1 not certified (a trained layer is observed, unless --certify proves more), 2 bad input.
    """
    target = given.target_of(formula, domain, eps, None, None, None, None, 0.0)
    if not 0 <= certify < float("inf"):
        raise InputError("--certify, seconds ≥ 0", f"{certify}", "give the time for a certificate")
    folder = usable(out)
    from dataclasses import replace

    import onelayer as ol

    from ...deployment.folder import load_approximation

    wishes: dict[str, Any] = {"heads": heads, "width": width, "d_model": d_model, "optimizer": optimizer, "loss": loss}
    wishes |= {"schedule": schedule, "rate": rate, "steps": steps, "batch": batch, "samples": samples, "seed": seed}
    wishes |= {"dtype": dtype.value, "device": device, "seconds": seconds}
    if checkpoint is not None:
        wishes["checkpoint"] = Path(checkpoint)
    if init is not None:
        wishes["init"] = load_approximation(init)
    with progress_bar(not json) as progress:
        found = ol.train(target, tolerance=eps, progress=progress, **wishes)
        if certify > 0:
            found = replace(found, certificate=ol.certify(found, seconds=certify, progress=progress))
        folder = found.save(folder)
    if json:
        assert found.history is not None
        print_json(record_of(found, folder) | {"history": found.history.record()})
    else:
        print(found.history)
        print(found)
        print(f"written to {out}")
    return 0 if found.certificate.verdict == "CERTIFIED" else 1
