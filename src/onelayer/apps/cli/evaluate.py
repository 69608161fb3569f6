"""`onelayer eval`: the values of a built layer at one point, or at all points of a file of any size."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...common.errors import InputError
from ...common.numbers import counted
from ...deployment.files.cells import listed
from . import options as given
from .show import Stopped, print_json, progress_bar

if TYPE_CHECKING:
    from ...deployment.attention.evaluator import Evaluator
    from ...deployment.files.streaming import Streaming
    from ...model.explanation import Explanation


def evaluate(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that `build` wrote.")],
    numbers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NUMBER]...", help="One point; constants such as pi/2 count as numbers."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each head adds to the value.")] = False,
    outside: Annotated[
        given.Outside,
        typer.Option(help="Outside the domain: answer, refuse, or answer for the nearest point of the box."),
    ] = given.Outside.allow,
    source: Annotated[
        str | None,
        typer.Option("--input", metavar="FILE", help="Points: CSV, .parquet or .npy; columns are matched by name."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Where to write points and values; a killed run resumes."),
    ] = None,
    attention: Annotated[
        given.Attention,
        typer.Option(help="How to evaluate heads; auto: linear where the certificate covers it."),
    ] = given.Attention.auto,
    remainder: Annotated[
        float | None, typer.Option(help="Error that sparse or adaptive attention may add; if left out, what ε allows.")
    ] = None,
    device: given.Device = "cpu",
    json: given.Json = False,
) -> int:
    """Evaluate a built layer."""
    if unknown := next((text for text in numbers or [] if text.startswith("--")), None):
        raise InputError("numbers and the options of eval", unknown, "see onelayer eval --help")
    if bool(numbers) == (source is not None):
        found = "both" if numbers else "neither"
        raise InputError("one point as numbers, or --input with a file", found, "give one of the two")
    if explain and source is not None:
        raise InputError("--explain at one point", "--input", "give the point as numbers")
    if output is not None and source is None:
        raise InputError("--output together with --input", "no --input", "leave --output out, or name a file")
    point = [given.number(text, "the point") for text in numbers or []]
    from ...deployment.folder import load_approximation

    fast = load_approximation(folder).fast(attention.value, remainder, device)
    if source is not None:
        return _file(fast, Path(source), Path(output) if output is not None else None, outside, json)
    return _point(fast, point, outside, explain, json)


def _point(fast: "Evaluator", point: list[float], outside: given.Outside, explain: bool, json: bool) -> int:
    import numpy as np

    approximation = fast.approximation
    names = approximation.domain.names
    if len(point) != len(names):
        raise InputError(f"{counted(len(names), 'number')} ({listed(names)})", f"{len(point)}", "give one per variable")
    x = np.array(point)
    y = fast(x, outside.value)
    stored = approximation.description.kind == "samples"  # a box around samples says nothing
    inside = None if stored else bool(approximation.domain.contains(x[None])[0])
    if outside is given.Outside.clip:
        x = x.clip(approximation.domain.lower, approximation.domain.upper)
    why = approximation.explain(x) if explain else None
    if json:
        record = {"x": point, "y": np.asarray(y).tolist(), "inside": inside, "bound": fast.bound}
        record |= {"answer": np.asarray(approximation.decode(y)).tolist()} if approximation.decoding else {}
        print_json(record | ({"explanation": _explained(why)} if why else {}))
        return 0
    if why:
        print(why)
    for row in np.atleast_2d(y).tolist():
        print(*row)
    if approximation.decoding:
        print("answer:", *np.ravel(approximation.decode(y)).tolist())
    if stored:
        print("note: the certificate holds for the stored samples only", file=sys.stderr)
    elif not inside:
        print("note: the point is outside the domain; the certificate holds inside it only", file=sys.stderr)
    return 0


def _file(fast: "Evaluator", source: Path, output: Path | None, outside: given.Outside, json: bool) -> int:
    """Evaluate all points of a file; without an output they are printed as CSV or JSON."""
    from ...deployment.files.formats import kind_of
    from ...deployment.files.streaming import Streaming, added_names, evaluate_file

    if output is None:
        if kind_of(source) != "CSV" and not json:
            asked = f"--output for the values of a {kind_of(source)} file"
            raise InputError(asked, "none", f"name one, such as out{source.suffix}")
        _print(Streaming(fast, source, outside.value), json)
        return 0
    try:
        with progress_bar(not json) as progress:
            count = evaluate_file(fast, source, output, outside.value, progress, _note)
    except KeyboardInterrupt as stop:
        raise Stopped(*stop.args) from None
    if json:
        print_json({"points": count, "columns": added_names(fast.approximation), "output": str(output)})
    else:
        print(f"{count:,} values written to {output}")
    return 0


def _print(work: "Streaming", json: bool) -> None:
    """Print points and values, once all values are computed."""
    with work.temporary() as values:
        if not json:
            for _ in work.write_to(values, sys.stdout):
                pass
            return
        m = work.outputs
        x = [point for batch in work.file.batches(work.rows) for point in batch.x.tolist()]
        batches = ([column.tolist() for column in columns] for columns in work.columns(values))
        rows = [list(row) for columns in batches for row in zip(*columns, strict=True)]
        answers = {"answer": [row[m:] for row in rows]} if len(work.names) > m else {}
        print_json({"points": len(x), "columns": work.names, "x": x, "y": [row[:m] for row in rows], **answers})


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _explained(why: "Explanation") -> dict[str, Any]:
    heads = [{"kind": kind, "adds": adds} for kind, adds in zip(why.kinds, why.contributions.tolist(), strict=True)]
    return {"heads": heads, "rest": why.rest.tolist(), "value": why.value.tolist()}
