"""What is left to polish once the kinks of a formula are carried by heads and hinges of their own."""

from dataclasses import dataclass

from ...layer.assemble import Frame, frame_of
from ...layer.layer import GateLayer, Layer, MemoryLayer, added
from ...target.target import Target
from ..request import Request
from .heads import kink_layer
from .split import split

ALONE, BESIDE = 0.5, 0.1  # of the tolerance, for kinks alone and beside a smooth rest


@dataclass(frozen=True)
class Remainder:
    """The target that is polished; the layer of the kinks that were taken out, with its error; what is not smooth in the rest."""

    target: Target
    frame: Frame
    kinks: Layer | None = None
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

    def completed(self, layer: Layer) -> Layer:
        """The layer of the rest, and the kinks."""
        if isinstance(self.kinks, GateLayer) and isinstance(layer, GateLayer):
            return self.kinks if self.nothing else added(self.kinks, layer)
        if isinstance(self.kinks, MemoryLayer) and isinstance(layer, MemoryLayer):
            return self.kinks if self.nothing else added(self.kinks, layer)
        return layer


def remainders_of(request: Request) -> dict[str, Remainder]:
    """The rest for every family that may be used: those that leave the fewest kinks; gates where their kinks are all there is."""
    constructions = ("memory", "gates") if request.construction == "auto" else (request.construction,)
    families = constructions if request.layout == "token" else ("gates",)
    rests = {family: remainder_of(request, family) for family in families}
    if "gates" in rests and rests["gates"].nothing:
        return {"gates": rests["gates"]}
    least = min(len(rest.left) for rest in rests.values())
    return {family: rest for family, rest in rests.items() if len(rest.left) == least}


def remainder_of(request: Request, family: str) -> Remainder:
    """The target less the kinks that the family has exactly; the target itself if there are none."""
    target, frame = request.target, request.frame
    if target.formula is None or target.margin:
        return Remainder(target, frame)
    found = split(target.formula, target.domain, frame, family, request.layout)
    if not found.heads and not found.hinges:
        return Remainder(target, frame, left=found.left)
    share = ALONE if found.nothing_left else BESIDE
    made = kink_layer(found, share * request.fit_tolerance, request.arithmetic)
    return Remainder(target.part(found.smooth), made.frame, made.layer, made.error, found.left, found.nothing_left)
