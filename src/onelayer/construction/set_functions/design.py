"""The design of a layer for a set function: which heads there are, what each term sees, and with which numbers."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ...layer.arithmetic import Arithmetic
from ...layer.heads import MASKED
from ...model.config import Readout
from .exponential_sums import COUNT, ExponentialSum, Normalisation
from .network_inputs import Input
from .profile import Profile
from .terms import Term

MARGIN = {"float64": 40.0, "float32": 20.0}  # S ≤ e^(−margin) in an exponential head


@dataclass(frozen=True)
class Computed:
    """A term and the ReLUs that compute it."""

    term: Term
    profile: Profile


@dataclass(frozen=True)
class Design:
    """Everything that the weights and the bound are made of. `constant` is what is added to the terms."""

    longest: int
    frame: Normalisation
    computed: tuple[Computed, ...]
    sums: dict[Input, ExponentialSum]
    sharpness: float  # of max-heads, a power of two
    constant: Fraction
    each: bool
    arithmetic: Arithmetic

    @cached_property
    def dtype(self) -> Any:
        return np.float64 if self.arithmetic.name == "float64" else np.float32

    @cached_property
    def averaged(self) -> bool:
        return any(one.term.averaged for one in self.computed)

    @cached_property
    def readout(self) -> Readout:
        """At every position; or the mean, where a term needs positions or a division by n; or an output token."""
        if self.each:
            return "position"
        own = any(one.source == "own" for part in self.computed for one in part.term.inputs)
        return "mean" if own or self.averaged else "output"

    @cached_property
    def inputs(self) -> tuple[Input, ...]:
        """What heads compute, each once."""
        found = [one for part in self.computed for one in part.term.inputs if one.source != "own"]
        return tuple(dict.fromkeys(found))

    @cached_property
    def exponential(self) -> tuple[float, ...]:
        """The sharpnesses of the exponential heads."""
        used = [self.sums[one] for one in self.inputs if one.summed] + [COUNT] * self.averaged
        return tuple(sorted({beta for one in used for beta in one.sharpness}))

    @cached_property
    def plain(self) -> tuple[Input, ...]:
        """The inputs that have a head of their own: a mean, a maximum, a minimum."""
        return tuple(one for one in self.inputs if not one.summed)

    @cached_property
    def heads(self) -> int:
        return max(1, len(self.exponential) + len(self.plain))

    @cached_property
    def units(self) -> int:
        return sum(len(one.profile.decoder.units) for one in self.computed)

    def anchor_score(self, beta: float) -> float:
        """A, a whole number so large that all numbers of a set together have weight e^(−margin) at most."""
        room = abs(beta) * self.frame.reach + math.log(self.longest) + MARGIN[self.arithmetic.name]
        return float(math.ceil(room))

    def score_of(self, one: Input) -> float:
        """The factor of x̂ in the scores of a head."""
        return {"mean": 0.0, "max": self.sharpness, "min": -self.sharpness}[one.source]

    @cached_property
    def masked(self) -> float:
        """A score that no token gets weight with, in any head."""
        return -(2.0 ** math.ceil(math.log2(2 * self.sharpness * self.frame.reach + 2 * MASKED)))

    def unit_of(self, one: Input) -> float:
        """What one unit of an input's coordinate of the stream stands for, a power of two."""
        return 1.0 if one.summed else 1 / self.frame.scale

    @cached_property
    def offset(self) -> Fraction:
        """What is added to the ReLUs of all terms."""
        return self.constant + sum((one.profile.decoder.offset for one in self.computed), Fraction(0))

    @cached_property
    def silence(self) -> float:
        """A number that outweighs everything else in a hidden unit: it silences the units of averages beyond position 1."""
        most = 1.0
        for one in self.computed:
            if one.term.averaged:
                knots = max(map(abs, one.profile.knots))
                forms = zip(one.term.weights, one.term.inputs, strict=True)
                most = max(most, knots + sum(abs(w) * max(abs(v.low), abs(v.high)) for w, v in forms))
        return float(2.0 ** math.ceil(math.log2(16 * self.longest * most)))


def base_of(term: Term, frame: Normalisation) -> Fraction:
    """Σ weights·shift over the inputs that are numbers of the set, or means or extremes of them."""
    forms = zip(term.weights, term.inputs, strict=True)
    return sum((Fraction(w) * Fraction(frame.shift) for w, one in forms if not one.summed), Fraction(0))


def range_in_stream(term: Term, frame: Normalisation) -> tuple[float, float]:
    """The range of the linear form less its base, rounded outward."""
    low = high = -base_of(term, frame)
    for w, one in zip(map(Fraction, term.weights), term.inputs, strict=True):
        ends = w * Fraction(one.low), w * Fraction(one.high)
        low, high = low + min(ends), high + max(ends)
    below, above = float(low), float(high)
    below = math.nextafter(below, -math.inf) if Fraction(below) > low else below
    return below, math.nextafter(above, math.inf) if Fraction(above) < high else above
