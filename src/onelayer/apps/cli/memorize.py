"""`onelayer memorize`: a model folder that stores the samples of a file."""

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options as given
from .build import record_of, usable
from .sample_file import read_sample_file
from .show import print_json


def memorize(
    source: Annotated[str, typer.Argument(metavar="FILE", help="CSV or Parquet with a header, or X as .npy.")],
    target: Annotated[str, typer.Option(help="The column with the answers (several: y1,y2), or Y as .npy.")],
    out: given.Out,
    labels: Annotated[
        bool | None,
        typer.Option("--labels/--numbers", help="What the answers are; by default whole numbers and words are labels."),
    ] = None,
    eps: Annotated[
        float | None,
        typer.Option("--eps", "--tolerance", help="Largest error allowed at a sample; by default what can be proved."),
    ] = None,
    dtype: given.DtypeChoice = given.Dtype.float64,
    seed: given.Seed = 0,
    force: given.Force = False,
    json: given.Json = False,
    quiet: given.Quiet = False,
) -> int:
    """Store the samples of a file in a layer, each with a proof.

    Exit status: 0 certified, 1 not certified (the folder is written all the same), 2 bad input.
    """
    folder = usable(out, force)
    found = read_sample_file(Path(source), target)
    import onelayer as ol

    about: dict[str, Any] = {"tolerance": eps, "labels": labels, "names": found.names, "rows": found.rows}
    approximation = ol.memorize(found.x, found.y, seed=seed, dtype=dtype.value, **about)
    folder = approximation.save(folder, overwrite=force)
    if json:
        print_json(record_of(approximation, folder))
    elif not quiet:
        print(approximation)
        print(f"written to {out}")
    return 0 if approximation.certificate.verdict == "CERTIFIED" else 1
