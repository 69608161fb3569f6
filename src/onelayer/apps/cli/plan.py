"""`onelayer plan`: how large a layer will be, before anything is built."""

from typing import Annotated

import typer

from . import options as given
from .show import print_json
from .wording import flags_of, in_options


def plan(
    context: typer.Context,
    formula: given.FormulaText,
    domain: given.DomainText,
    eps: given.Eps,
    relative: given.Relative = False,
    method: Annotated[given.Method | None, typer.Option(help="Forecast this method only.")] = None,
    layout: given.LayoutChoice = given.Layout.token,
    lipschitz: given.Lipschitz = None,
    within: given.Within = None,
    shape: given.Shape = None,
    output_shape: given.OutputShape = None,
    json: given.Json = False,
) -> int:
    """Forecast size, cost and bound; build and write nothing.

    Units, parameters, bytes, operations and the bound, for every method or the one of --method.

    Exit status: 0, or 2 if the input is bad or the layer of --method does not fit in memory.
    """
    target = given.target_of(formula, domain, eps, given.about_target(lipschitz, within, shape, output_shape))
    import onelayer as ol

    chosen = method.value if method else None
    found = ol.plan(target, tolerance=eps, relative=relative, method=chosen, layout=layout.value)
    if json:
        print_json(found.as_json())
    else:
        print(in_options(str(found), flags_of(context.command)))
    return 0
