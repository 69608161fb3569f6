"""Request: what the user asks for, checked once; and what a method returns."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, get_args

from ..common.budget import Budget
from ..common.checks import require_choice, require_seed, require_whole
from ..common.errors import InputError
from ..common.machine import device_of
from ..common.numbers import exact
from ..common.progress import Progress
from ..layer.arithmetic import FLOAT64, Arithmetic
from ..layer.assemble import Frame, Layout, Outputs, frame_of, outputs_of
from ..layer.assemble.gates import asks_itself
from ..layer.composed import ComposedLayer
from ..layer.grid import FLOAT32, Grid
from ..layer.layer import Layer
from ..layer.symmetric import SymmetricLayer
from ..model.config import Attention
from ..proof.certificate import Certificate, RelativeTolerance
from ..proof.claim import Claim
from ..proof.least_error import require_attainable
from ..proof.slopes import require_slopes
from ..target.as_formula import rounding_seen
from ..target.envelope import fitting_tolerance
from ..target.target import Target, require_tolerance
from .menu import FAMILIES, Construction, Method

BUILD_SECONDS = 600.0
SEARCH_TIME = 0.5  # share of the seconds that the search may take; the proofs have the others
POOL_GOAL = 0.9  # share of the tolerance allowed on the pool: the certificate needs some of it
FLOAT32_SHARE = 0.25  # share of the tolerance kept for rounding in float32
MOST_POLISHED_UNITS = 1000  # a step of polishing costs the cube of their number
CHOICES = {"method": get_args(Method), "construction": get_args(Construction), "layout": get_args(Layout)}
CHOICES |= {"attention": ("softmax", *FAMILIES)}


@dataclass(frozen=True)
class Request:
    """A target, a tolerance, and what else the user wants; `units` None means as many as the tolerance needs."""

    target: Target
    tolerance: float
    method: Method = "polished"
    construction: Construction = "auto"
    layout: Layout = "token"
    attention: Attention = "softmax"
    window: int | None = None  # of local attention
    units: int | None = None
    hinges: int = 0
    arithmetic: Arithmetic = FLOAT64  # what the model will run in; in float32 a small rounding needs a small Σ|c|
    grid: Grid | None = None  # the numbers that weights may be; None for all of the arithmetic's
    device: str = "cpu"  # where linear algebra happens
    seed: int = 0
    budget: Budget = field(default_factory=lambda: Budget(BUILD_SECONDS))  # of the whole build, search and proofs
    progress: Progress | None = None
    slope_tolerance: float | None = None  # |∂_i T − ∂_i f| is to be at most this as well
    relative: RelativeTolerance | None = None  # where the tolerance was given as a share of |f|
    composed: bool = False  # whether the layer is the inner one of a composed layer, which has no residual stream
    on_grid: dict[int, Any] = field(
        default_factory=dict, repr=False, compare=False
    )  # models of layers, by the layer's id

    @cached_property
    def fit_tolerance(self) -> float:
        """The tolerance less what samples and declared constants leave open: the error that the fit may make."""
        return fitting_tolerance(self.target.uncertainty, self.tolerance)

    @cached_property
    def module_rounding(self) -> float:
        """How far a module's own answers were seen to be from its formula, which is the target; 0 if there is no module."""
        return rounding_seen(self.target)

    @property
    def single(self) -> bool:
        """Whether the model will run in float32."""
        return self.arithmetic.name == "float32"

    @property
    def weight_grid(self) -> Grid | None:
        """The grid on which the values are solved for: the one asked for, or that of float32."""
        apart = self.attention != "softmax" or self.layout != "token" or self.method == "representative"
        sloped = self.slope_tolerance is not None and self.grid is None  # values alone would be solved for again
        return None if apart or sloped or not self.single else self.grid or FLOAT32

    @property
    def frame(self) -> Frame:
        return frame_of(self.target.domain)

    @property
    def outputs(self) -> Outputs:
        return outputs_of(self.target)

    @property
    def straight(self) -> bool:
        """Whether a linear part of a layer of gates takes no heads."""
        return not self.composed and asks_itself(self.target.dimension, self.outputs, self.layout)

    @property
    def places(self) -> tuple[int, ...]:
        """The rows of the model that hold the outputs."""
        return (0,) if self.layout == "token" else self.outputs.tokens

    @property
    def families(self) -> tuple[str, ...]:
        """The families of heads that the layer may have."""
        if self.attention != "softmax":
            return FAMILIES[self.attention]
        both = ("memory", "gates") if self.grid is None else ("memory",)  # whose numbers may have digits
        constructions = both if self.construction == "auto" else (self.construction,)
        return constructions if self.layout == "token" else ("gates",)

    @property
    def claim(self) -> Claim:
        """What is to be proved about the model."""
        return Claim(
            self.target, self.tolerance, self.places, self.seed, self.device, self.progress, self.slope_tolerance
        )

    def checked(self) -> "Request":
        """The request, if every option has an allowed value and none contradicts another."""
        require_tolerance(self.tolerance)
        device_of(self.device)
        require_tolerance(self.fit_tolerance)
        if not self.module_rounding <= self.tolerance:
            wanted = f"a module that answers its own formula within {exact(self.tolerance)}"
            found = f"answers that are {self.module_rounding:.3g} away"
            raise InputError(wanted, found, "use module.double(), or declare lipschitz=")
        if self.slope_tolerance is not None:
            self._require_slopes()
        for name, choices in CHOICES.items():
            require_choice(name, getattr(self, name), choices)
        require_whole("hinges", self.hinges, 0, 20_000)
        if self.units is not None:
            require_whole("units", self.units, 0 if self.hinges else 1, 50_000)
        require_seed(self.seed)
        if self.grid is not None:
            self._require_grid(self.grid)
        symmetric, hinges, layout = self.target.symmetric, self.hinges > 0, self.layout != "token"
        if self.method == "representative":
            asked = "method='representative'"
            self._refuse(asked, "use gates, the paper's construction", construction=self.construction == "memory")
            self._refuse(asked, "leave `units` out: the tolerance decides", units=self.units is not None)
            self._refuse(asked, "use method='solved'", hinges=hinges, symmetric=symmetric)
        elif self.method == "polished" and not symmetric:
            if self.units is not None and self.units > MOST_POLISHED_UNITS:
                change = "use method='solved', or leave `units` out: the tolerance decides"
                raise InputError(f"at most {MOST_POLISHED_UNITS} units to polish", f"{self.units}", change)
            self._refuse("method='polished'", "use method='solved'", hinges=hinges)
        if symmetric:
            self._refuse("symmetric=True", "use one without the other", layout=layout, hinges=hinges, dtype=self.single)
        if self.construction == "memory":
            self._refuse("construction='memory'", "use layout='token': there is one data token", layout=layout)
        if self.attention != "softmax":
            self._require_attention()
        elif self.window is not None:
            raise InputError("a window of attention='local'", "attention='softmax'", "leave `window` out")
        require_attainable(self.target, self.tolerance, self.arithmetic)
        return self

    def _require_attention(self) -> None:
        """Refuse what is not made with another attention than softmax."""
        asked, local = f"attention={self.attention!r}", self.attention == "local"
        self._refuse(asked, "use method='polished'", method=self.method != "polished")
        self._refuse(asked, "leave it out", symmetric=self.target.symmetric)
        smooth = self.slope_tolerance is not None and self.attention == "sparsemax"
        self._refuse(asked, "leave it out: there is no slope at kinks", slope_tolerance=smooth)
        gates, vector = self.families == ("gates",), self.layout != "token"
        self._refuse(
            asked, "leave it out", construction=self.construction not in ("auto", "gates" if gates else "memory")
        )
        if self.attention == "linear":
            self._refuse(asked, "use layout='token' or 'wide'", layout=self.layout == "heads")
        elif not local:
            self._refuse(asked, "use layout='token': there is one data token", layout=vector)
        if local and self.window is None:
            raise InputError("a window: how many tokens away a token sees", "none", "give for instance window=1")
        self._refuse(asked, "leave it out", window=self.window is not None and not local)
        if self.window is not None:
            require_whole("window", self.window, 0, 10**6)

    def _require_grid(self, grid: Grid) -> None:
        """Refuse what is not made with weights on a grid."""
        asked = f"{grid.name} weights"
        self._refuse(asked, "leave it out", symmetric=self.target.symmetric, attention=self.attention != "softmax")
        self._refuse(asked, "use layout='token'", layout=self.layout != "token")
        self._refuse(asked, "use method='polished'", method=self.method == "representative")
        if grid.fixed and self.construction == "gates":  # masks of −800 stand in the column of the offsets
            raise InputError("memory tokens, for int8 weights", "construction='gates'", "leave `construction` out")

    def _require_slopes(self) -> None:
        """Refuse a tolerance for slopes where f has none that are known, or the method does not fit them."""
        assert self.slope_tolerance is not None
        require_slopes(self.target, self.slope_tolerance)
        self._refuse(
            "slope_tolerance", "use one without the other", hinges=self.hinges > 0, symmetric=self.target.symmetric
        )
        if self.method != "polished":
            asked, change = "method='polished', which fits slopes too", "leave `method` or `slope_tolerance` out"
            raise InputError(asked, f"method={self.method!r} and slope_tolerance", change)

    def _refuse(self, asked: str, change: str, **given: bool) -> None:
        """Refuse the first of the options that does not go with what was asked, and say its value."""
        values = {"symmetric": self.target.symmetric, "dtype": self.arithmetic.name}
        for name, wrong in given.items():
            if wrong:
                raise InputError(asked, f"{name}={values.get(name, getattr(self, name, None))!r}", change)


@dataclass(frozen=True)
class Found:
    """What a method returns: a layer in normalised coordinates, and what is already known about it."""

    layer: Layer | ComposedLayer | SymmetricLayer
    frame: Frame
    certificate: Certificate | None = None  # of this very layer, if the method proved one itself
    proved: Certificate | None = None  # a bound that was proved before building
    notes: tuple[str, ...] = ()


Certify = Callable[[Request, Layer | ComposedLayer, Frame, Budget], Certificate]  # assembles the layer and decides
