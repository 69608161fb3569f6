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
    from ...approximation import Approximation
    from ...deployment.attention.evaluator import Evaluator
    from ...deployment.files.partial import Counts
    from ...deployment.files.streaming import Streaming
    from ...model.explanation import Explanation
    from ...sequence_layer import SequenceLayer

STORED_ONLY = "the certificate holds for the stored samples only"


def evaluate(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that `build` wrote.")],
    numbers: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NUMBER]...", help="One point, or one sequence; constants such as pi/2 count as numbers."
        ),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show what each head adds to the value.")] = False,
    outside: Annotated[
        given.Outside,
        typer.Option(help="Points that are not covered: answer, refuse, or answer for the nearest point of the box."),
    ] = given.Outside.allow,
    source: Annotated[
        str | None,
        typer.Option(
            "--input",
            metavar="PATH",
            help="Points: CSV, .parquet or .npy, or a folder of .parquet parts; columns are matched by name.",
        ),
    ] = None,
    output: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where to write points and values; a killed run resumes.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(metavar="tcp://HOST:PORT", help="Evaluate the parts of a folder on this Dask scheduler."),
    ] = None,
    attention: Annotated[
        given.Attention, typer.Option(help="How to evaluate heads; auto: linear where the certificate covers it.")
    ] = given.Attention.auto,
    remainder: Annotated[
        float | None, typer.Option(help="Error that sparse or adaptive attention may add; if left out, what ε allows.")
    ] = None,
    force: given.ForceFile = False,
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
    if dask is not None and output is None:
        raise InputError("--dask with --input and --output", "no --output", "name two folders, or leave --dask out")
    for name, path in (("--input", source), ("--output", output)):
        if path is not None and not path.strip():
            raise InputError(f"a path for {name}", f"{path!r}", "name a file or folder")
    point = [given.number(text, "the point") for text in numbers or []]
    from ...deployment.folder import load_approximation, load_certified
    from ...sequence_layer import SequenceLayer

    layer = load_certified(folder) if source is None else None
    if isinstance(layer, SequenceLayer):
        return _sequence(layer, point, json)
    fast = (layer or load_approximation(folder)).fast(attention.value, remainder, device)
    if source is not None:
        if output is None:
            return _printed(fast, Path(source), outside, json)
        return _file(fast, Path(source), Path(output), outside, json, force, dask)
    return _point(fast, point, outside, explain, json)


def _point(fast: "Evaluator", point: list[float], outside: given.Outside, explain: bool, json: bool) -> int:
    import numpy as np

    approximation = fast.approximation
    names = approximation.domain.names
    if len(point) != len(names):
        raise InputError(f"{counted(len(names), 'number')} ({listed(names)})", f"{len(point)}", "give one per variable")
    x = np.array(point)
    y = fast(x, outside.value)
    covered, stored = fast.covers(x), approximation.description.kind == "samples"
    if outside is given.Outside.clip:
        x = x.clip(approximation.domain.lower, approximation.domain.upper)
    why = approximation.explain(x) if explain else None
    if json:
        bound = fast.bound if covered else None
        record = {"x": point, "y": np.asarray(y).tolist(), "covered": covered, "bound": bound}
        declared = approximation.certificate.condition
        record |= {"condition": declared} if declared else {}
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
        _note(STORED_ONLY)
    elif not covered:
        _note(f"the point is not covered by the certificate, which asks for {_asked(approximation, point)}")
    return 0


def _sequence(layer: "SequenceLayer", sequence: list[float], json: bool) -> int:
    import numpy as np

    y, covered, decoding = layer(sequence), layer.covers(sequence), layer.description.decoding
    answer = np.asarray(layer.answer(sequence)).tolist() if decoding else None
    if json:
        bound = layer.certificate.bound if covered else None
        record = {"x": sequence, "y": np.asarray(y).tolist(), "covered": covered, "bound": bound}
        print_json(record | ({"answer": answer} if decoding else {}))
        return 0
    for row in np.atleast_2d(y).tolist():
        print(*row)
    if decoding:
        print("answer:", *np.ravel(np.array(answer)).tolist())
    if not covered:
        _note(f"the sequence is not covered by the certificate, which is for {layer.certificate.domain}")
    return 0


def _printed(fast: "Evaluator", source: Path, outside: given.Outside, json: bool) -> int:
    """Evaluate all points of a file; print them as CSV or JSON."""
    from ...deployment.files.formats import kind_of
    from ...deployment.files.streaming import Streaming

    if source.is_dir() or (kind_of(source) != "CSV" and not json):
        kind = "a folder of parts" if source.is_dir() else f"a {kind_of(source)} file"
        raise InputError(f"--output for the values of {kind}", "none", f"name one, such as out{source.suffix}")
    _note_uncovered(fast, _print(Streaming(fast, source, outside.value), json))
    return 0


def _file(
    fast: "Evaluator", source: Path, output: Path, outside: given.Outside, json: bool, force: bool, dask: str | None
) -> int:
    """Evaluate all points of a file or folder and write them to another."""
    from ...deployment.files.parts import evaluate_points
    from ...deployment.files.streaming import added_names

    try:
        with progress_bar(not json) as progress:
            counts = evaluate_points(fast, source, output, outside.value, progress, _note, force, dask)
    except KeyboardInterrupt as stop:
        raise Stopped(*stop.args) from None
    if json:
        print_json({**counts._asdict(), "columns": added_names(fast.approximation), "output": str(output)})
    else:
        print(f"{counted(counts.points, 'value')} written to {output}")
    _note_uncovered(fast, counts)
    return 0


def _print(work: "Streaming", json: bool) -> "Counts":
    """Print points and values, once all values are computed."""
    with work.temporary() as values:
        counts = values.counts
        if not json:
            for _ in work.write_to(values, sys.stdout):
                pass
            return counts
        m = work.outputs
        points = [batch.x for batch in work.file.batches(work.rows)]
        x, covered = ([v for part in parts for v in part.tolist()] for parts in (points, map(work.covered, points)))
        batches = ([column.tolist() for column in columns] for columns in work.columns(values))
        rows = [list(row) for columns in batches for row in zip(*columns, strict=True)]
        answers = {"answer": [row[m:] for row in rows]} if len(work.names) > m else {}
        y = [row[:m] for row in rows]
        print_json({**counts._asdict(), "columns": work.names, "x": x, "y": y, "covered": covered, **answers})
        return counts


def _note_uncovered(fast: "Evaluator", counts: "Counts") -> None:
    if counts.uncovered:
        rounded = ", which asks for float32 numbers" * (fast.approximation.model.W_E.dtype.itemsize == 4)
        _note(STORED_ONLY if fast.approximation.description.kind == "samples" else f"{counts}{rounded}")


def _asked(approximation: "Approximation", point: list[float]) -> str:
    """What the certificate asks of points, and this one is not."""
    try:
        approximation.require_covered(point)
    except InputError as error:
        return error.asked
    return "other points"


def _note(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)


def _explained(why: "Explanation") -> dict[str, Any]:
    heads = [{"kind": kind, "adds": adds} for kind, adds in zip(why.kinds, why.contributions.tolist(), strict=True)]
    return {"heads": heads, "rest": why.rest.tolist(), "value": why.value.tolist()}
