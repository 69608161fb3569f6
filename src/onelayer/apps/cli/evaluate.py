"""`onelayer eval`: values of a built layer at one point, or at the points of a CSV file."""

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InputError
from . import options as given
from . import points
from .show import print_json

if TYPE_CHECKING:
    from ...approximation import Approximation
    from ...explain import Explanation


def evaluate(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A folder that `build` wrote.")],
    numbers: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NUMBER]...", help="One point; constants such as pi/2 are numbers too."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Which heads make up the value at the point.")] = False,
    outside: Annotated[
        given.Outside,
        typer.Option(help="Outside the domain: answer, refuse, or answer at the nearest point of the box."),
    ] = given.Outside.allow,
    source: Annotated[
        str | None, typer.Option("--input", metavar="CSV", help="Points; a header may name the variables in any order.")
    ] = None,
    output: Annotated[str | None, typer.Option(metavar="CSV", help="Where to write points and values.")] = None,
    json: given.Json = False,
) -> int:
    """Evaluate a built layer."""
    if unknown := next((text for text in numbers or [] if text.startswith("--")), None):
        raise InputError("numbers and the options of eval", unknown, "see onelayer eval --help")
    if bool(numbers) == (source is not None):
        found = "both" if numbers else "neither"
        raise InputError("one point as numbers, or --input with a CSV file", found, "give one of the two")
    if explain and source is not None:
        raise InputError("--explain at one point", "--input", "give the point as numbers")
    if output is not None and source is None:
        raise InputError("--output together with --input", "no --input", "leave --output out, or name a CSV file")
    point = [given.number(text, "the point") for text in numbers or []]
    import onelayer as ol

    approximation = ol.load(folder)
    if source is not None:
        return _table(approximation, Path(source), Path(output) if output is not None else None, outside, json)
    return _point(approximation, point, outside, explain, json)


def _point(
    approximation: "Approximation", point: list[float], outside: given.Outside, explain: bool, json: bool
) -> int:
    import numpy as np

    names = approximation.domain.names
    if len(point) != len(names):
        raise InputError(f"{len(names)} numbers ({points.listed(names)})", f"{len(point)}", "give one per variable")
    x = np.array(point)
    y = approximation(x, outside=outside.value)
    stored = (approximation.stored or {}).get("kind") == "samples"  # a box around samples says nothing
    inside = None if stored else bool(approximation.domain.contains(x[None])[0])
    if outside is given.Outside.clip:
        x = x.clip(approximation.domain.lower, approximation.domain.upper)
    why = approximation.explain(x) if explain else None
    if json:
        record = {"x": point, "y": np.asarray(y).tolist(), "inside": inside, "bound": approximation.certificate.bound}
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
        print("note: the certificate speaks of the stored samples alone", file=sys.stderr)
    elif not inside:
        print("note: the point is outside the domain, of which alone the certificate speaks", file=sys.stderr)
    return 0


def _table(
    approximation: "Approximation", source: Path, output: Path | None, outside: given.Outside, json: bool
) -> int:
    import numpy as np

    m, answers = int(np.prod(approximation.output_shape)), _answers(approximation)
    added = ["y"] if m == 1 else [f"y{i + 1}" for i in range(m)]
    added += ["answer"] if answers == 1 else [f"answer{i + 1}" for i in range(answers)]
    if output is not None:
        points.require_file(output)
    table = points.read(source, approximation.domain.names, added)
    x = np.array(table.points).reshape(len(table.points), len(approximation.domain.names))
    if outside is given.Outside.error and not (inside := approximation.domain.contains(x)).all():
        line = table.lines[int((~inside).argmax())]
        raise InputError(f"points in the domain: {approximation.domain}", f"line {line}", "move it, or --outside allow")
    values = approximation(x, outside=outside.value)
    y = values.reshape(len(x), m).tolist()
    labels = approximation.decode(values).reshape(len(x), answers).tolist() if answers else [[] for _ in y]
    cells = [[*numbers, *label] for numbers, label in zip(y, labels, strict=True)]
    if output is not None:
        points.write(table, added, cells, output)
    if json:
        written = {"output": str(output)} if output is not None else {"x": table.points, "y": y}
        written |= {"answer": labels} if answers and output is None else {}
        print_json({"points": len(y), "columns": added, **written})
    elif output is None:
        print(points.text(table, added, cells), end="")
    else:
        print(f"{len(y):,} values written to {output}")
    return 0


def _answers(approximation: "Approximation") -> int:
    """How many whole numbers, tokens or labels the values of one point stand for."""
    if approximation.decoding is None:
        return 0
    shape = approximation.output_shape
    return math.prod(shape[:-1] if approximation.decoding.kind == "largest" else shape)


def _explained(why: "Explanation") -> dict[str, Any]:
    heads = [{"kind": kind, "adds": adds} for kind, adds in zip(why.kinds, why.contributions.tolist(), strict=True)]
    return {"heads": heads, "rest": why.rest.tolist(), "value": why.value.tolist()}
