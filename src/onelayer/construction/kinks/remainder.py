"""What remains to be polished once the kinks of a formula have their own heads and hinges.

Kinks as heads and hinges: their layer, with a sharpness derived from the error it may make.

A head over n forms λ(x̂_j + o_j), λ > 0, computes λ times the softmax average of x̂_j + o_j, which lies below the maximum by
at most W((n−1)/e)/β (Lambert's W) and is never above it. Half of that is added to the bias, so the error is at most

    |weight|·λ·W((n−1)/e)/(2β)    per head,    and β is the least power of two for which they add up to what is allowed:

products with β are then exact, and a head's values are proportional to its scores but for the rounding of offsets. The
rounding of a max-head does not grow with β (an error d of the scores moves it by 2d/β), but beyond 1/(16u) sharpness
only costs accuracy of the masks. A form without variable is the anchor of a gate: score and value 0 there.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from ...formula.affine import Affine, flat
from ...layer.arithmetic import FLOAT32, Arithmetic
from ...layer.assemble import Frame, frame_of
from ...layer.heads import EDGE, Gates, Hinges, Maxima, Ramps, shortfall
from ...layer.layer import GateLayer, Layer, MemoryLayer, added, gate_layer, memory_layer
from ...target.target import Target
from ..request import Request
from .split import Kink, Split, halves, split

SHARPER = (
    16.0  # times as sharp in float32: rounding, which does not grow with the sharpness, needs most of the tolerance
)


@dataclass(frozen=True)
class KinkLayer:
    """A layer for the affine part and the kinks; as a real function it is off by at most `error`, but for rounding."""

    layer: Layer
    frame: Frame
    error: float


@dataclass(frozen=True)
class _Head:
    """slope·(max or min over tokens j and perhaps the anchor, worth 0, of x̂_j + offsets[j])."""

    kink: Kink
    slope: Fraction
    offsets: dict[int, Fraction]
    anchored: bool
    sharpness: float

    @property
    def reach(self) -> float:
        """How far the smooth extremum may be from the true one, in units of x̂."""
        return shortfall(len(self.offsets) + self.anchored) / self.sharpness


def kink_layer(kinks: Split, allowance: float, arithmetic: Arithmetic) -> KinkLayer:
    """The layer of a split without its smooth terms; heads are sharp enough to be off by at most `allowance`."""
    D, m, frame = len(kinks.affine[0].slopes), len(kinks.affine), kinks.frame
    lines = [normalised(line, frame) for line in kinks.affine]
    heads = list[_Head]()
    error = [0.0] * m
    for kink in kinks.heads:
        head, line = _head(kink, frame, allowance / len(kinks.heads), arithmetic)
        heads.append(head)
        for o, weight in enumerate(kink.weights):
            half = (-1 if kink.lowest else 1) * head.slope * Fraction(head.reach / 2)
            lines[o] = lines[o] + (line + flat(half, D)).times(weight)
            error[o] += abs(float(weight * half))
    linear = _tensor([[line.slopes[j] for line in lines] for j in range(D)], D, m)
    bias = _tensor([line.constant for line in lines], m)
    hinges = _hinges(kinks, D, m)
    if kinks.construction == "ramps":
        return KinkLayer(memory_layer(bias, D, linear=linear, ridges=as_ramps(*hinges)), frame, max(error))
    if kinks.construction != "gates":
        return KinkLayer(memory_layer(bias, D, linear=linear, hinges=hinges), frame, max(error))
    gates = _gates([head for head in heads if head.anchored], D, m)
    maxima = _maxima([head for head in heads if not head.anchored], D, m)
    return KinkLayer(gate_layer(bias, D, gates, maxima, linear, hinges), frame, max(error))


def normalised(form: Affine, frame: Frame) -> Affine:
    """The affine function of x as one of x̂ = (x − shift)·scale."""
    steps = tuple(a / Fraction(scale) for a, scale in zip(form.slopes, frame.scale, strict=True))
    moved = sum((a * Fraction(shift) for a, shift in zip(form.slopes, frame.shift, strict=True)), form.constant)
    return Affine(moved, steps)


def _head(kink: Kink, frame: Frame, allowance: float, arithmetic: Arithmetic) -> tuple[_Head, Affine]:
    """The head of a kink, and what is added to it: kink = head + line, but for its shortfall."""
    D = len(frame.scale)
    forms, line = kink.forms, flat(Fraction(0), D)
    if len(forms) == 2:
        forms = halves(forms[0])
        line = flat(Fraction(0), D) - normalised(forms[1], frame)
    hats = [normalised(form, frame) for form in forms]
    varying = {hat.support[0]: hat for hat in hats if hat.support}
    constants = [hat.constant for hat in hats if not hat.support]
    slope = max(hat.slopes[j] for j, hat in varying.items())  # the same for all, but for the rounding of scales
    ends = [hat.constant for hat in varying.values()]
    middle = constants[0] if constants else (min(ends) + max(ends)) / 2
    offsets = {j: (hat.constant - middle) / slope for j, hat in varying.items()}
    size = float(max(map(abs, kink.weights)) * slope) * shortfall(len(hats)) / 2
    most = 1 / (16 * arithmetic.u)
    sharper = SHARPER if arithmetic is FLOAT32 else 1.0
    sharpness = 2.0 ** math.ceil(math.log2(min(max(sharper * size / allowance, 1.0), most)))
    return _Head(kink, slope, offsets, bool(constants), sharpness), line + flat(middle, D)


def _maxima(heads: list[_Head], D: int, m: int) -> tuple[Maxima, Tensor]:
    values = [[weight * head.slope for weight in head.kink.weights] for head in heads]
    return Maxima(*_sharpness_offsets_kept(heads, D)), _tensor(values, len(heads), m)


def _gates(heads: list[_Head], D: int, m: int) -> tuple[Gates, Tensor]:
    """A gate's score is β(b_j − x̂_j): −(sharpness) for a maximum, b = −offset; values follow the scores, the anchor's is 0."""
    sharpness, offsets, kept = _sharpness_offsets_kept(heads, D)
    values = torch.zeros(len(heads), D + 2, m, dtype=torch.float64)
    for g, head in enumerate(heads):
        for o, weight in enumerate(head.kink.weights):
            values[g, -1, o] = float(weight * head.slope)
            for j, offset in head.offsets.items():
                values[g, 1 + j, o] = float(weight * head.slope * offset)
    return Gates(-sharpness, -offsets, kept), values


def _sharpness_offsets_kept(heads: list[_Head], D: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of every head: the sharpness, negative for a minimum; the offsets of its tokens; and which tokens it keeps."""
    sharpness = [Fraction(-head.sharpness if head.kink.lowest else head.sharpness) for head in heads]
    offsets = [[head.offsets.get(j, Fraction(0)) for j in range(D)] for head in heads]
    kept = [[j in head.offsets for j in range(D)] for head in heads]
    mask = torch.tensor(kept, dtype=torch.bool).reshape(len(heads), D)
    return _tensor(sharpness, len(heads)), _tensor(offsets, len(heads), D), mask


def _hinges(kinks: Split, D: int, m: int) -> tuple[Hinges, Tensor]:
    """relu(d) = size·relu(d/size), the largest slope of d/size in x̂ being 1."""
    arguments = [normalised(kink.forms[0], kinks.frame) for kink in kinks.hinges]
    sizes = [max(map(abs, d.slopes)) for d in arguments]
    units = [d.times(1 / size) for d, size in zip(arguments, sizes, strict=True)]
    n = len(units)
    values = [[w * size for w in kink.weights] for kink, size in zip(kinks.hinges, sizes, strict=True)]
    directions = _tensor([list(d.slopes) for d in units], n, D)
    return Hinges(directions, _tensor([d.constant for d in units], n)), _tensor(values, n, m)


def as_ramps(hinges: Hinges, values: Tensor) -> tuple[Ramps, Tensor]:
    """The same function of |x̂| ≤ EDGE by sparsemax heads: relu(d) = top·(1 + s)/2, cut off at 0, with s = 2d/top − 1 ≤ 1.

    top is a power of two, so that nothing is rounded but the offset b in s + 1 = 2(a·x̂ + b)/top.
    """
    top = EDGE * hinges.directions.abs().sum(dim=1) + hinges.offsets
    top = torch.exp2(torch.ceil(torch.log2(top.clamp_min(2.0**-100)))) * 2
    return Ramps(2 * hinges.directions / top[:, None], 2 * hinges.offsets / top - 1), top[:, None] * values


def _tensor(numbers: list[Fraction] | list[list[Fraction]], *shape: int) -> Tensor:
    """The nearest floats."""
    rows = [[float(v) for v in row] if isinstance(row, list) else float(row) for row in numbers]
    return torch.tensor(rows, dtype=torch.float64).reshape(shape)


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
