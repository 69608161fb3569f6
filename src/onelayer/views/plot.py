"""`ol.plot`: the figure of a value, for notebooks."""

import math
from typing import TYPE_CHECKING, Any

from ..approximation import Approximation
from ..common.checks import known_options, require_choice, require_whole
from ..common.errors import InputError
from ..experiments.compare import Comparison
from ..model.explanation import Explanation
from ..model.history import History
from ..model.inspection import Inspection, inspect
from ..model.transformer import SingleLayerTransformer
from . import figures
from .comparison import comparison_figure
from .head_figure import heads_figure
from .head_map import head_map_of
from .paper_figures import attention_flow, passes
from .scene import scenes

if TYPE_CHECKING:
    import plotly.graph_objects as go

KINDS = ("overview", "function", "error", "heads", "weights", "spectra", "training")
AT_POINT = ("contributions", "attention", "passes")


@known_options
def plot(thing: Any, what: str | None = None, *, at: Any = None, output: int = 0) -> "go.Figure":
    """A plotly figure of an approximation, a model, a comparison, an explanation, an inspection or a training history.

    For an approximation, `what` is overview (T and the error, the default), function, error, heads, weights, spectra or
    training; with a point `at`, also contributions (of the heads), attention (the paper's Figure 1) or passes (its Figure 2:
    norms forward and backward). `output` chooses one of several outputs.
    """
    if isinstance(thing, Approximation):
        return _of_approximation(thing, what or "overview", at, output)
    if what is not None or at is not None:
        found = f"{type(thing).__name__} with what={what!r}"
        raise InputError("an Approximation to choose a picture of", found, "leave `what` and `at` out")
    if isinstance(thing, SingleLayerTransformer | Inspection):
        return figures.spectra_figure(inspect(thing) if isinstance(thing, SingleLayerTransformer) else thing)
    if isinstance(thing, Comparison):
        return comparison_figure(thing)
    if isinstance(thing, Explanation):
        return figures.explanation_figure(thing, output)
    if isinstance(thing, History):
        return figures.history_figure(thing)
    kinds = "an Approximation, a model, a Comparison, an Explanation, an Inspection or a History"
    raise InputError(kinds, type(thing).__name__, "pass one of these")


def _of_approximation(approximation: Approximation, what: str, at: Any, output: int) -> "go.Figure":
    require_choice("a picture", what, (*KINDS, *AT_POINT))
    if (at is not None) != (what in AT_POINT):
        asked = f"a point `at` with {', '.join(AT_POINT)}, and only there"
        raise InputError(asked, f"what={what!r}, at={at!r}", "give both or neither")
    require_whole("output", output, 0, math.prod(approximation.output_shape) - 1)
    if what == "contributions":
        return figures.explanation_figure(approximation.explain(at), output)
    if what in AT_POINT:
        return (attention_flow if what == "attention" else passes)(approximation, at)
    if what == "heads":
        return heads_figure(approximation, head_map_of(approximation))
    if what in ("weights", "spectra"):
        seen = inspect(approximation.model)
        return figures.weights_figure(approximation, seen) if what == "weights" else figures.spectra_figure(seen)
    if what == "training":
        if approximation.history is None:
            raise InputError("the history of a training", "none: folders do not keep it", "plot what `train` returned")
        return figures.history_figure(approximation.history)
    approximation.require_unchanged()  # these pictures show the bound
    found = scenes(approximation)
    if not found:
        raise InputError("real inputs to draw", "token numbers", "plot what='heads'")
    require_whole("output", output, 0, found[0].T.shape[-1] - 1)
    if what == "error":
        error = figures.error_figure(approximation, found[0], output)
        if error is None:
            raise InputError("f, to draw T − f", "a target that is not available", "plot what='function'")
        return error
    draw = figures.overview_figure if what == "overview" else figures.function_figure
    return draw(approximation, found[0], output)
