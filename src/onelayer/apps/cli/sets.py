"""`onelayer sets`: a function of sets of any size becomes a model folder."""

from typing import Annotated

import typer

from ...common.errors import InputError
from ...target.sides import read_domain
from . import options as given
from .build import record_of_sequence_layer, usable
from .show import print_json


def sets(
    formula: Annotated[
        str,
        typer.Argument(
            metavar="FORMULA", help='Of x, with sum, mean, max, min over the set: "sqrt(mean(x^2))", "x - mean(x)".'
        ),
    ],
    eps: given.Eps,
    domain: Annotated[
        str, typer.Option("--domain", metavar="LOW:HIGH", help="The interval that holds the numbers of a set.")
    ] = "0:1",
    longest: Annotated[int, typer.Option(min=1, help="The largest size of a set.")] = 1000,
    dtype: given.DtypeChoice = given.Dtype.float64,
    out: Annotated[str | None, typer.Option(metavar="FOLDER", help="The model folder to write.")] = None,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """Turn a function of sets into one layer for all sizes.

    For example: onelayer sets "sqrt(mean(x^2))" --eps 1e-3 --out rms.

    The bound holds for every set of 1 to --longest numbers. Formulas with x outside of sum, mean, max and min have an answer for
    every number of the set. What cannot be proved is refused.
    """
    ends = _ends(domain)
    folder = usable(out, force) if out is not None else None
    import onelayer as ol

    layer = ol.set_function(formula, ends, eps, longest=longest, dtype=dtype.value)
    written = layer.save(folder, overwrite=force) if folder is not None else None
    if json:
        print_json(record_of_sequence_layer(layer, written))
    else:
        print(layer)
        print(f"written to {out}" if folder is not None else "not written: name a folder with --out")
    return 0 if layer.certificate.verdict == "CERTIFIED" else 1


def _ends(text: str) -> tuple[float, float]:
    """The one interval that the text gives."""
    from ...target.domain import domain_of

    sides = read_domain(text)
    box = domain_of(sides)
    if isinstance(sides, dict) and list(sides) != ["x"]:
        raise InputError("an interval for x, a number of the set", text, "call it x, or leave the name out: 0:1")
    if box.dimension != 1:
        raise InputError("one interval for the numbers of a set", text, "write for instance 0:1")
    return box.lower[0], box.upper[0]
