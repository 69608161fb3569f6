"""`onelayer build`: a formula, or a file of samples, becomes a model folder."""

from dataclasses import asdict
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...common.budget import Budget
from ...common.checks import require_seconds
from ...common.errors import InputError
from . import options as given
from .sample_file import names_samples, read_sample_file, target_of_samples
from .show import open_page, print_json, progress_bar
from .wording import said

if TYPE_CHECKING:
    from ...approximation import Approximation
    from ...sequence_layer import SequenceLayer

REPORT_SECONDS = 2.0  # kept for the report


def build(
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA",
            help='For example "x*exp(-y^2); x", or a file of samples: .csv, .parquet, .npy. '
            "Functions and names: docs/start/formulas.md.",
        ),
    ],
    eps: given.Eps,
    out: given.Out,
    domain: given.OptionalDomain = None,
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of samples: the answers (y1,y2); the last column by default.")
    ] = None,
    slope_eps: given.SlopeEps = None,
    properties: Annotated[
        list[str] | None,
        typer.Option(
            "--property", metavar="TEXT", help='The layer is to have it too: "increasing in x1"; may be repeated.'
        ),
    ] = None,
    relative: given.Relative = False,
    method: Annotated[
        given.Method,
        typer.Option(help="Polished: the fewest units. Solved: fixed heads. Representative: the paper's values."),
    ] = given.Method.polished,
    construction: Annotated[given.Construction, typer.Option(help="Kind of heads.")] = given.Construction.auto,
    layout: given.LayoutChoice = given.Layout.token,
    attention: Annotated[
        given.LayerAttention, typer.Option(help="The layer's own attention: another architecture.")
    ] = given.LayerAttention.softmax,
    window: Annotated[int | None, typer.Option(min=0, help="How far tokens of local attention see.")] = None,
    units: Annotated[int | None, typer.Option(help="Use exactly this many units.")] = None,
    hinges: Annotated[
        int, typer.Option(min=0, help="Feed-forward units that correct the error of the heads (solved).")
    ] = 0,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="No positional codes: f must be symmetric.")] = False,
    lipschitz: given.Lipschitz = None,
    within: given.Within = None,
    margin: given.Margin = 0.0,
    shape: given.Shape = None,
    output_shape: given.OutputShape = None,
    dtype: given.BuildDtypeChoice = None,
    weights: given.WeightsChoice = None,
    device: given.Device = "cpu",
    seconds: Annotated[float, typer.Option(help="Seconds for everything: search, proof and report.")] = 600.0,
    seed: given.Seed = 0,
    report: given.Report = True,
    show: given.Open = False,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> int:
    """Turn a formula, or samples, into a layer with a proof.

    The folder holds weights, target and certificate. A file of samples has a header; its last column is the answers unless
    --target names them, and a proof needs --lipschitz.

    Exit status: 0 certified, 1 not certified (the folder is written all the same), 2 bad input.
    """
    require_seconds(seconds, "the build")
    if show and not report:
        raise InputError("--open, which opens the report", "--no-report as well", "leave one of them out")
    budget, about = Budget(seconds), given.about_target(lipschitz, within, shape, output_shape, margin, symmetric)
    verbose, wanted, samples = not (json or quiet), report, None
    if names_samples(formula):
        samples = read_sample_file(Path(formula.strip()), target)
        function = target_of_samples(samples, domain, about)
    elif target is not None:
        raise InputError("--target, a column of a file of samples", "a formula", "leave it out")
    else:
        function = given.target_of(formula, given.require_domain(domain), eps, about)
    folder = usable(out, force, report)
    import onelayer as ol

    if verbose and samples is not None:
        print(samples)
    as_planned = (
        not symmetric
        and attention is given.LayerAttention.softmax
        and not weights
        and dtype is not given.BuildDtype.bfloat16
    )
    if verbose and method is given.Method.representative and as_planned:
        print(ol.plan(function, tolerance=eps, relative=relative, method=method.value, layout=layout.value))
    with progress_bar(not quiet) as progress:
        approximation = ol.build(
            function,
            tolerance=eps,
            slope_tolerance=slope_eps,
            properties=properties or [],
            relative=relative,
            method=method.value,
            construction=construction.value,
            layout=layout.value,
            attention=attention.value,
            window=window,
            units=units,
            hinges=hinges,
            dtype=dtype.value if dtype else None,
            weights=weights.value if weights else None,
            device=device,
            seed=seed,
            seconds=max(budget.left - min(REPORT_SECONDS, seconds / 3) * report, seconds / 10),
            progress=progress,
        )
        folder = approximation.save(folder, overwrite=force)
        report = report and not budget.over()
        if report:
            approximation.report(folder / "report.html", overwrite=force)
    if json:
        columns = {} if samples is None else {"inputs": samples.names, "answers": samples.targets}
        print_json(record_of(approximation, folder) | columns)
    elif verbose:
        print(said(approximation, build))
        late = f"; no time was left for the report: `onelayer report {out}` writes it"
        print(written(out, report) + (late if wanted and not report else ""))
    if show and report:
        open_page(folder / "report.html")
    return 0 if approximation.certificate.verdict == "CERTIFIED" else 1


def record_of(approximation: "Approximation", folder: Path | None) -> dict[str, Any]:
    """What was built, for JSON."""
    from ...views.costs import plan_followed

    about, plan = asdict(approximation.facts), plan_followed(approximation)
    about["heads"] = [{"kind": kind, "count": count} for kind, count in approximation.facts.heads]
    return {
        **({"folder": str(folder)} if folder is not None else {}),
        "verdict": approximation.certificate.verdict,
        "condition": approximation.certificate.condition,
        "target": approximation.target.text if approximation.target else None,
        "parameters": approximation.parameters,
        "weights": approximation.weight_format,
        "bytes": approximation.bytes,
        **about,
        "plan": plan.as_json() if plan else None,
        "certificate": approximation.certificate.as_json(),
    }


def record_of_sequence_layer(layer: "SequenceLayer", folder: Path | None) -> dict[str, Any]:
    """What was built for sequences of any length, for JSON; without a folder none was written."""
    about = asdict(layer.facts)
    about["heads"] = [{"kind": kind, "count": count} for kind, count in layer.facts.heads]
    return {
        "folder": None if folder is None else str(folder),
        "verdict": layer.certificate.verdict,
        "task": layer.description.as_json(),
        "parameters": layer.parameters,
        **about,
        "certificate": layer.certificate.as_json(),
    }


def written(out: str, report: bool) -> str:
    """Where the folder is, and its report."""
    return f"written to {out}" + (f"; open {Path(out) / 'report.html'} in a browser" if report else "")


def usable(out: str, force: bool, report: bool = False) -> Path:
    """The absolute path of the folder, checked to be new, or replaced with `force`, and in a place where it can be written."""
    folder = Path(out).absolute()
    if not out.strip() or not folder.name or folder.name == "..":
        raise InputError("the name of a folder for --out", f"{out!r}", "name a new folder")
    place = next(parent for parent in (folder, *folder.parents) if parent.exists())
    try:
        Path(mkdtemp(prefix=f".{folder.name}.old.", dir=place)).rmdir()
    except OSError as error:
        raise InputError(f"a folder {folder}", f"{error.strerror} ({place})", "choose another place or name") from None
    from ...deployment.earlier_model import require_place

    require_place(folder, force, report)
    return folder
