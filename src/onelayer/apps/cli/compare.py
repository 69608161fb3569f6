"""`onelayer compare`: construction, training and peers on one formula, in one run."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ...common.atomic import require_new
from ...common.errors import InputError
from . import options as given
from .show import print_json, progress_bar


def compare(
    formula: given.FormulaText,
    domain: given.DomainText,
    eps: given.Eps = 1e-3,
    seconds: Annotated[float, typer.Option(help="Seconds for each training.")] = 20.0,
    optimizers: Annotated[str, typer.Option(help="Optimisers, separated by commas.")] = "adam,momentum,sgd",
    peers: Annotated[bool, typer.Option(help="Include the peers.")] = True,
    prove: Annotated[float, typer.Option(help="Seconds to prove each trained layer; 0: no proof.")] = 0.0,
    growth: Annotated[
        str | None,
        typer.Option(
            metavar="1,2,4", help="Also layers of this many heads, of an FFN of twice this width, of this many units."
        ),
    ] = None,
    samples: Annotated[str | None, typer.Option(metavar="100,1000", help="Also fit to this many samples.")] = None,
    plot: Annotated[str | None, typer.Option(metavar="HTML", help="Where to write the picture.")] = None,
    force: given.ForceFile = False,
    seed: given.Seed = 0,
    json: given.Json = False,
) -> int:
    """Compare construction with training and peers in one table.

    With --plot also in one picture.
    """
    target = given.target_of(formula, domain, eps)
    sizes = [given.sizes(text, name) if text else () for text, name in ((growth, "--growth"), (samples, "--samples"))]
    if plot is not None and (not plot.strip() or Path(plot).is_dir()):
        raise InputError("the name of a file for --plot", f"{plot!r}", "name an HTML file")
    if plot is not None:
        require_new(Path(plot), force)
    import onelayer as ol

    names = [name.strip() for name in optimizers.split(",") if name.strip()]
    with progress_bar(not json) as progress:
        found = ol.compare(
            target, tolerance=eps, seconds=seconds, optimizers=names, peers=peers, prove=prove, growth=sizes[0],
            samples=sizes[1], seed=seed, progress=progress,
        )  # fmt: skip
    if plot is not None:
        from ...views.comparison import write_page

        write_page(found, Path(plot), overwrite=force)
    if json:
        print_json(asdict(found))
    else:
        print(found)
        if plot is not None:
            print(f"picture written to {plot}")
    return 0
