"""`onelayer memorize`: the samples of a file become a model folder that stores them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as given
from .build import record_of, usable
from .samples import read_samples
from .show import print_json


def memorize(
    source: Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet with a header, or X as .npy.")],
    target: Annotated[str, typer.Option(help="The column with the answers (or several: y1,y2), or Y as .npy.")],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The model folder to write.")],
    labels: Annotated[
        bool | None,
        typer.Option("--labels/--numbers", help="What the answers are; by default whole numbers and words are labels."),
    ] = None,
    eps: Annotated[
        float | None,
        typer.Option("--eps", "--tolerance", help="Largest error allowed at a sample; what can be proved by default."),
    ] = None,
    dtype: given.DtypeChoice = given.Dtype.float64,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed of the projection.")] = 0,
    json: given.Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing; the exit status tells.")] = False,
) -> int:
    """Store the samples of a file in a single-layer Transformer, with a proof for each of them.

    Exit status: 0 certified, 1 not certified (the folder is written all the same), 2 bad input.
    """
    found = read_samples(Path(source), target)
    folder = usable(out)
    import onelayer as ol

    wishes: dict[str, Any] = {"tolerance": eps, "labels": labels, "names": found.names, "rows": found.rows}
    approximation = ol.memorize(found.x, found.y, seed=seed, dtype=dtype.value, **wishes)
    folder = approximation.save(folder)
    if json:
        print_json(record_of(approximation, folder))
    elif not quiet:
        print(approximation)
        print(f"written to {out}")
    return 0 if approximation.certificate.verdict == "CERTIFIED" else 1
