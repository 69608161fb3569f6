"""What remains to be polished once the kinks of a formula have their own heads and hinges."""

from dataclasses import dataclass

from ...layer.assemble import Frame, frame_of
from ...layer.layer import GateLayer, Layer, MemoryLayer, added
from ...target.target import Target
from ..request import Request
from .heads import kink_layer
from .split import split

SHARPER_FOR_SLOPES = 0.25  # times slope tolerance and margin: a smooth maximum this close bends within the margin
ALONE_SHARE, BESIDE_SHARE = 0.5, 0.1  # shares of the tolerance for kinks alone, and for kinks beside smooth terms


@dataclass(frozen=True)
class Remainder:
    """The target to polish; the layer of the kinks that were taken out, with its error; the kinks that were not."""

    target: Target
    frame: Frame
    kinks: Layer | None = None
    error: float = 0.0
    kinks_left: tuple[str, ...] = ()
    nothing_left: bool = False  # the target is kinks and an affine function

    @property
    def ratios(self) -> tuple[float, ...] | None:
        """How wide x̂ is along each coordinate; None for 1."""
        usual = frame_of(self.target.domain)
        if self.frame == usual:
            return None
        return tuple(a / b for a, b in zip(self.frame.scale, usual.scale, strict=True))

    def completed(self, layer: Layer) -> Layer:
        """The kinks together with the layer of the remainder."""
        if isinstance(self.kinks, GateLayer) and isinstance(layer, GateLayer):
            return self.kinks if self.nothing_left else added(self.kinks, layer)
        if isinstance(self.kinks, MemoryLayer) and isinstance(layer, MemoryLayer):
            return self.kinks if self.nothing_left else added(self.kinks, layer)
        return layer


def remainders_of(request: Request) -> dict[str, Remainder]:
    """The remainder for each family worth trying: those that leave the fewest kinks, or gates alone where they leave nothing."""
    families = request.families
    remainders = dict[str, Remainder]()
    for family in sorted(families):  # gates before memory tokens
        remainders[family] = remainder_of(request, family)
        if family == "gates" and remainders[family].nothing_left:
            return remainders
    fewest = min(len(remainder.kinks_left) for remainder in remainders.values())
    return {family: remainders[family] for family in families if len(remainders[family].kinks_left) == fewest}


def remainder_of(request: Request, family: str) -> Remainder:
    """The target less the kinks that the family represents exactly; the target itself if there are none."""
    target, frame = request.target, request.frame
    if target.formula is None or target.leaves_points_out:
        return Remainder(target, frame)
    found = split(target.formula, target.domain, frame, family, request.layout, sharp=request.attention != "linear")
    if not found.heads and not found.hinges:
        return Remainder(target, frame, kinks_left=found.kinks_left)
    share = ALONE_SHARE if found.nothing_left else BESIDE_SHARE
    error = share * request.fit_tolerance
    if request.slope_tolerance is not None and target.margin:
        # a kink that bends by J is off by J·exp(−J·margin/(4·error)) beyond the margin
        error = min(error, SHARPER_FOR_SLOPES * request.slope_tolerance * target.margin)
    made = kink_layer(found, error, request.arithmetic)
    smooth = target.part(found.smooth)
    return Remainder(smooth, made.frame, made.layer, made.error, found.kinks_left, found.nothing_left)
