"""`onelayer train`: train the same kind of layer by gradient descent."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ...common.errors import InputError
from . import options as given
from .build import record_of, usable, written
from .show import open_page, print_json, progress_bar

if TYPE_CHECKING:
    from ...proof.certificate import Certificate


def train(
    formula: given.FormulaText,
    domain: given.DomainText,
    out: given.Out,
    eps: given.Eps = 1e-2,
    heads: Annotated[int, typer.Option(min=1, help="Number of heads.")] = 4,
    width: Annotated[int, typer.Option(min=1, help="Width of the feed-forward network.")] = 256,
    d_model: Annotated[int, typer.Option(min=1, help="Width of the stream.")] = 64,
    activation: Annotated[
        given.Activation, typer.Option(help="Activation of the feed-forward network.")
    ] = given.Activation.gelu,
    optimizer: Annotated[Literal["adam", "sgd", "momentum"], typer.Option(help="Optimiser.")] = "adam",
    loss: Annotated[Literal["mse", "sup"], typer.Option(help="Loss; sup is a smooth maximum.")] = "mse",
    schedule: Annotated[Literal["cosine", "constant"], typer.Option(help="How the rate falls.")] = "cosine",
    rate: Annotated[float | None, typer.Option(help="Learning rate; by default that of the optimiser.")] = None,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 5000,
    batch: Annotated[int, typer.Option(min=1, help="Samples per step.")] = 256,
    samples: Annotated[int | None, typer.Option(min=1, help="Number of points at which f is sampled.")] = None,
    init: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Start from the weights of a model folder.")
    ] = None,
    checkpoint: given.Checkpoint = None,
    dtype: given.DtypeChoice = given.Dtype.float32,
    device: given.Device = "cpu",
    seconds: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    certify: Annotated[float, typer.Option(help="Seconds to prove a certificate; 0: observe only.")] = 0.0,
    seed: given.Seed = 0,
    report: given.Report = True,
    show: given.Open = False,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """Train a layer on a formula, and write its folder.

    If interrupted, it writes the best layer so far.

    Exit status: 0 certified, 1 not certified (a trained layer is observed, unless --certify proves more), 2 bad input.
    """
    if show and not report:
        raise InputError("--open, which opens the report", "--no-report as well", "leave one of them out")
    target = given.target_of(formula, domain, eps)
    if not 0 <= certify < float("inf"):
        raise InputError("--certify, seconds ≥ 0", f"{certify}", "give the time for a certificate")
    folder = usable(out, force, report)
    from dataclasses import replace

    import onelayer as ol

    from ...deployment.folder import load_approximation

    chosen: dict[str, Any] = {"heads": heads, "width": width, "d_model": d_model, "optimizer": optimizer, "loss": loss}
    chosen |= {"activation": activation.value}
    chosen |= {"schedule": schedule, "rate": rate, "steps": steps, "batch": batch, "samples": samples, "seed": seed}
    chosen |= {"dtype": dtype.value, "device": device, "seconds": seconds, "checkpoint": checkpoint}
    if init is not None:
        chosen["init"] = load_approximation(init)
    with progress_bar(not json) as progress:
        found = ol.train(target, tolerance=eps, progress=progress, **chosen)
        if certify > 0:
            found = replace(found, certificate=ol.certify(found, seconds=certify, progress=progress))
        folder = found.save(folder, overwrite=force)
        if report:
            found.report(folder / "report.html", overwrite=force)
    if json:
        assert found.history is not None
        print_json(record_of(found, folder) | {"history": found.history.record()})
    else:
        print(found.history)
        print(found)
        if advice := _advice(found.certificate, certify):
            print(advice)
        print(written(out, report))
    if show:
        open_page(folder / "report.html")
    return 0 if found.certificate.verdict == "CERTIFIED" else 1


def _advice(certificate: "Certificate", seconds: float) -> str:
    """What to pass so that more is proved, where rounding or time are known to be what is missing."""
    if certificate.verdict != "UNDECIDED" or not certificate.observed <= certificate.tolerance:
        return ""
    if seconds == 0:
        return "nothing is proved yet: pass --certify 60, or run `onelayer certify`, then `onelayer check`"
    if certificate.arithmetic == "float32":
        return (
            "not proved: rounding in float32 may be what is missing; pass --dtype float64, or more seconds to --certify"
        )
    return "not proved within the time: pass more seconds to --certify"
