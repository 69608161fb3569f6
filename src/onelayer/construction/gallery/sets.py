"""Functions of a set: the order of the inputs does not matter, and the layer has no positional codes to tell them apart."""

from dataclasses import replace

from ...approximation import Approximation
from ...common.checks import known_options
from ...layer.assemble import assemble
from ...proof.decision import decide
from ...target.target import Target, require_tolerance
from ..methods import facts_of
from ..request import Request
from ..symmetric import symmetric_layer
from .entry import Ends, require_length

STORY = (
    "No head knows positions. Symmetric means attend to all numbers with one sharpness and output a mean, or a soft maximum or"
    " minimum; symmetric gates weigh the anchor token against the sum of e^(−βx_j) over all numbers. They see the set"
    " through such sums alone, and the output is linear in what they make of them."
)


@known_options
def deep_set(
    formula: str = "x1*x2 + x1*x3 + x2*x3", n: int = 3, tolerance: float = 1e-3, *, domain: Ends = (0.0, 1.0)
) -> Approximation:
    """A symmetric function of n numbers, given as a formula in x1 … xn: heads see sums over all of them, no positional codes."""
    require_length(n)
    require_tolerance(tolerance)
    target = Target(formula, [domain] * n)
    request = Request(target, tolerance)
    found = symmetric_layer(request)
    model = assemble(found.layer, found.frame, request.outputs)
    certificate = decide(model, request.claim)
    facts = replace(facts_of(found, request), story=STORY)
    return Approximation.of(model, target, certificate, facts)
