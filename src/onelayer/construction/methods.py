"""The methods by name: each turns a request into a layer (heads and values); and how the result is described."""

from collections.abc import Callable

from ..layer.arithmetic import FLOAT64
from ..layer.assemble import head_kinds
from ..layer.composed import ComposedLayer
from ..layer.facts import Facts
from ..layer.layer import MemoryLayer
from ..layer.magnitudes import amplitude_of, largest_score_of, total_of
from ..layer.symmetric import SymmetricLayer
from ..target.envelope import uncertainty_notes
from .composed.choice import fewest_units
from .gridded import said_of
from .representative.layer import plan_representative, representative_layer
from .representative.theorem import certify_theorem
from .request import Certify, Found, Request
from .solved.layer import solved_layer
from .symmetric import symmetric_layer


def _solved(request: Request, certify: Certify) -> Found:
    return Found(solved_layer(request), request.frame)


def _representative(request: Request, certify: Certify) -> Found:
    """The paper's construction; the theorem is about float64."""
    target = request.target
    plan = plan_representative(target, request.tolerance, layout=request.layout)
    layer, values_error = representative_layer(target, plan, request.progress)
    about = (target, plan, layer, values_error, request.layout)
    proved = certify_theorem(*about) if request.arithmetic is FLOAT64 else None
    return Found(layer, request.frame, proved=proved)


METHODS: dict[str, Callable[[Request, Certify], Found]] = {
    "polished": fewest_units,
    "solved": _solved,
    "representative": _representative,
    "symmetric": symmetric_layer,  # whatever the request says, if the target is declared symmetric
}


def facts_of(found: Found, request: Request) -> Facts:
    """How the approximation came about, for its folder and its report."""
    layer, notes = found.layer, (*uncertainty_notes(request.target.uncertainty, request.tolerance), *found.notes)
    if request.target.formula is not None and request.target.function is not None:
        seen = f"its own answers are rounded, by {request.module_rounding:.1g} where seen"
        notes = (*notes, f"the target is the module in exact arithmetic; {seen}")
    if request.grid is not None and id(layer) in request.on_grid:
        notes = (*notes, said_of(request.grid, request.on_grid[id(layer)][1]))
    if request.relative:
        notes = (f"relative tolerance: {request.relative}", *notes)
    if not request.budget.left:
        notes = (*notes, "the time was up: this is the best layer so far, and the best bound so far")
    method, construction, amplitude, largest_score = "solved", "symmetric", None, None
    if isinstance(layer, ComposedLayer):
        method, construction = request.method, "composed"
        amplitude, largest_score = amplitude_of(layer.inner), largest_score_of(layer.inner)
    elif not isinstance(layer, SymmetricLayer):
        method, construction = request.method, "memory" if isinstance(layer, MemoryLayer) else "gates"
        amplitude, largest_score = amplitude_of(layer), largest_score_of(layer)
    return Facts(
        method=method,
        construction=construction,
        layout=request.layout,
        heads=head_kinds(layer, request.outputs, request.layout),
        units=layer.units,
        total=total_of(layer.inner if isinstance(layer, ComposedLayer) else layer),
        amplitude=amplitude,
        largest_score=largest_score,
        seconds=request.budget.elapsed,
        seed=request.seed,
        places=request.places,
        notes=notes,
    )
