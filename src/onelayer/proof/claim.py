"""A claim, |T − f| ≤ ε everywhere on the domain, and the proof of a bound."""

from dataclasses import dataclass, field, replace

from ..common.errors import InputError
from ..common.numbers import counted
from ..common.progress import Progress
from ..model.transformer import SingleLayerTransformer
from ..target.target import Target
from .boxes import Covering
from .certificate import Evidence


@dataclass(frozen=True)
class Claim:
    """What is to be proved about a model, and what else the proof engines need to know."""

    target: Target
    tolerance: float
    places: tuple[int, ...] = (0,)  # rows of the model that hold the outputs
    seed: int = 0  # of the points at which the error is observed
    device: str = "cpu"  # where T is evaluated on grids
    progress: Progress | None = None
    slope_tolerance: float | None = None  # |∂_i T − ∂_i f| ≤ ε' is part of the claim
    close: float | None = None  # go on until the bound is within this share of what is seen; by default engines decide

    def share(self, usual: float) -> float:
        """A share of the tolerance that a part of the proof may cost: the usual one, or less if the bound is to be close."""
        return usual if self.close is None else min(usual, self.close)

    def about(self, target: Target) -> "Claim":
        """The same claim about another target."""
        return replace(self, target=target)

    def require_fit(self, model: SingleLayerTransformer) -> None:
        """Refuse a model without the target's variables and outputs, or with answers that vary."""
        c, target, places = model.config, self.target, self.places
        c.require_one_length()
        if c.tokens * c.features_in != target.dimension:
            raise InputError(
                f"a model of {target.dimension} variables, as the target has",
                f"{c.tokens} tokens with {c.features_in} features",
                "make the two agree",
            )
        if not places or not all(isinstance(p, int) and 0 <= p < c.places for p in places):
            raise InputError(f"places among 0 … {c.places - 1}", f"{places}", "name rows that the model reads out")
        if len(places) * c.features_out != target.outputs:
            asked = f"a layer with {counted(target.outputs, 'output')}, as the target has"
            found = f"{counted(len(places) * c.features_out, 'output')} in {counted(len(places), 'place')}"
            raise InputError(asked, found, "make the two agree")
        if len({p.dtype for p in model.state_dict().values()}) > 1:
            raise InputError("weights of one dtype", "several", "convert the model with .double() or .float()")
        if model.training and c.dropout:
            raise InputError("a model that answers the same each time", "dropout in training mode", "call model.eval()")


@dataclass(frozen=True)
class Proof:
    """A bound on sup |T − f|, rounding of the deployed model included, and how it was found."""

    bound: float
    evidence: Evidence
    assumptions: tuple[str, ...]
    covering: Covering | None = field(default=None, compare=False, repr=False)  # the boxes, where there are any
