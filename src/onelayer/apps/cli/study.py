"""`onelayer study`: measure the points of a sweep in parallel and store each; table, fitted rates and report."""

from typing import Annotated, Any

import typer

from ...common.errors import InputError
from ...target.sides import split
from . import options as given
from .show import Stopped, print_json, print_wrapped, progress_bar

StudyText = Annotated[
    str | None,
    typer.Argument(metavar="STUDY", help="builtin:NAME or a TOML file; left out if there are --axis options."),
]
Axis = Annotated[
    list[str] | None, typer.Option("--axis", metavar="NAME=A,B", help="An axis and its values; repeat for each axis.")
]


def study(
    name: StudyText = None,
    out: Annotated[
        str | None, typer.Option(metavar="FOLDER", help="Where to store results; study-NAME if left out.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Number of processes; one per core if left out.")] = None,
    dask: Annotated[str | None, typer.Option(metavar="tcp://HOST:PORT", help="Use this Dask scheduler.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Include the larger part of a built-in study.")] = False,
    only: Annotated[int | None, typer.Option(min=0, help="Stop after this many new points.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Try failed points again.")] = False,
    measure: Annotated[str, typer.Option(help="The measure that the --axis options vary.")] = "construct",
    axis: Axis = None,
    listing: Annotated[bool, typer.Option("--list", help="List the built-in studies and the measures.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a points.csv or report.html that no study wrote.")
    ] = False,
    json: given.Json = False,
) -> int:
    """Measure every point of a sweep; run it again to resume. Writes points.csv and report.html.

    Exit status: 0 if all points are done, 1 if some failed or are not done yet.
    """
    if listing:
        if name is not None or axis:
            raise InputError("--list alone", name or "--axis", "leave it out")
        _list()
        return 0
    if (name is None) == (not axis):
        both = "neither" if name is None else "both"
        raise InputError("a study, or --axis", both, "name one, such as builtin:epsilon, or give --axis target=…")
    import onelayer as ol

    from ...experiments.study import Sweep

    sweep = Sweep.of_axes(measure, _axes(axis or [])) if name is None else name
    with progress_bar(not json) as progress:
        try:
            found = ol.study(
                sweep, out, workers=workers, dask=dask, full=full, only=only, retry=retry, overwrite=force,
                progress=progress,
            )  # fmt: skip
        except KeyboardInterrupt as stop:
            raise Stopped(*(stop.args or ("before the first point; run the same command again",))) from None
    assert found.folder is not None
    report = found.report(found.folder / "report.html", overwrite=True)
    if json:
        print_json({**found.record(), "report": str(report)})
    else:
        print(found)
        for row in found.failed[:10]:
            print(f"failed: {row['error']}")
        print(f"report written to {report}")
    return 0 if not found.failed and not found.missing else 1


def _axes(texts: list[str]) -> dict[str, list[Any]]:
    """Axes from texts such as tolerance=0.1,0.01."""
    axes: dict[str, list[Any]] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        if not equals or not name.strip() or not values.strip():
            raise InputError("--axis NAME=VALUE,VALUE", repr(text), "write for instance --axis tolerance=0.1,0.01")
        if name.strip() in axes:
            raise InputError(f"one --axis {name.strip()}", "several", f"write --axis {name.strip()}=A,B")
        axes[name.strip()] = [_value(part) for part in split(values, ",")]
    return axes


def _value(text: str) -> Any:
    """A number or true/false where it is one, text otherwise."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _list() -> None:
    from ...experiments.study.measures import all_measures
    from ...experiments.study.sweep import builtin, names

    for name in names():
        print_wrapped(f"builtin:{name:14} ", builtin(name)["title"])
    print()
    for found in all_measures():
        print_wrapped(f"measure {found.name:14} ", found.summary)
        print_wrapped(" " * 23, f"axes: {', '.join(found.axes)}")
