"""What is left to polish once the kinks of a formula are carried by heads and hinges of their own."""

from dataclasses import dataclass

from ...layer.arithmetic import arithmetic_of
from ...layer.assemble import Frame, frame_of
from ...layer.layer import ScalarLayer, VectorLayer, added
from ...target.target import Target
from ..request import Wishes
from .heads import kink_layer
from .split import split

ALONE, BESIDE = 0.5, 0.1  # of the tolerance, for kinks alone and beside a smooth rest


@dataclass(frozen=True)
class Rest:
    """The target that is polished; the layer of the kinks that were taken out, with its error; what is not smooth in the rest."""

    target: Target
    frame: Frame
    kinks: ScalarLayer | VectorLayer | None = None
    error: float = 0.0
    left: tuple[str, ...] = ()
    nothing: bool = False  # nothing but kinks and an affine part

    @property
    def ratios(self) -> tuple[float, ...] | None:
        """How wide x̂ is along each coordinate; None for 1."""
        usual = frame_of(self.target.domain)
        if self.frame == usual:
            return None
        return tuple(a / b for a, b in zip(self.frame.scale, usual.scale, strict=True))

    def completed(self, layer: ScalarLayer | VectorLayer) -> ScalarLayer | VectorLayer:
        """The layer of the rest, and the kinks."""
        if isinstance(self.kinks, ScalarLayer) and isinstance(layer, ScalarLayer):
            return self.kinks if self.nothing else added(self.kinks, layer)
        if isinstance(self.kinks, VectorLayer) and isinstance(layer, VectorLayer):
            return self.kinks if self.nothing else added(self.kinks, layer)
        return layer


def rests_of(target: Target, wishes: Wishes) -> dict[str, Rest]:
    """The rest for every family that may be used: those that leave the fewest kinks; gates where their kinks are all there is."""
    constructions = ("memory", "gates") if wishes.construction == "auto" else (wishes.construction,)
    families = constructions if wishes.layout == "token" else ("gates",)
    rests = {family: rest_of(target, wishes, family) for family in families}
    if "gates" in rests and rests["gates"].nothing:
        return {"gates": rests["gates"]}
    least = min(len(rest.left) for rest in rests.values())
    return {family: rest for family, rest in rests.items() if len(rest.left) == least}


def rest_of(target: Target, wishes: Wishes, family: str) -> Rest:
    """The target less the kinks that the family has exactly; the target itself if there are none."""
    frame = frame_of(target.domain)
    if target.formula is None or target.margin:
        return Rest(target, frame)
    found = split(target.formula, target.domain, frame, family, wishes.layout)
    if not found.heads and not found.hinges:
        return Rest(target, frame, left=found.left)
    share = ALONE if found.nothing_left else BESIDE
    made = kink_layer(found, share * wishes.tolerance, arithmetic_of(wishes.arithmetic))
    return Rest(target.part(found.smooth), made.frame, made.layer, made.error, found.left, found.nothing_left)
