"""Target: the function to approximate, its domain, the shapes of its input and output, its modulus.

A function of D variables is a sequence of D scalar tokens; a sequence target of shape (n, d) has D = n·d variables, in
row order. Internally inputs are [batch, D] and outputs [batch, m], m the number of output entries.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from ..common.checks import (
    LARGEST_SEED,
    is_number,
    is_shape,
    known_options,
    require_flag,
    require_not_negative,
    require_whole,
)
from ..common.errors import InputError
from ..common.numbers import counted
from ..formula import Formula, enclose, interval, parse, to_text
from ..formula.float_bounds import evaluate_defined
from ..formula.own import own_names, together
from ..formula.record import Function
from ..formula.tree import Node, switches
from .callables import Batched, is_module
from .declared import require_not_contradicted
from .domain import Domain, Sides, domain_of, sides_of
from .envelope import Envelope, envelope_of
from .modulus import Modulus, declared_modulus, modulus_of
from .naming import named, spread
from .samples import Data, data_of
from .slopes import FormulaOnBox

Kind = Literal["formula", "callable", "data"]


class Target:
    """f on a compact domain, from a formula, from a batched callable or module, or from noiseless samples (X, Y).

    The domain is [(low, high), …] for x1, x2, …, a dictionary name → (low, high), (low, high) alone for one variable, or text
    such as "0:1, -1:2*pi". Ends are numbers or constant formulas.

    A callable takes [batch, D] (or [batch, n, d] when `shape` is given), NumPy or torch, and returns [batch] or
    [batch, …]. Its modulus can only be declared (`lipschitz`: one number or one per coordinate, in the units of x, the
    maximum over outputs; or `modulus`: ω(r) in the maximum norm, non-decreasing). `evaluation_error` declares how far
    its answers may be from f. Declarations are believed, on the whole box even if `within` cuts a part out of it, unless
    values contradict them, and the certificate says so. `functions` are `ol.Function`s that a formula may use.
    For a formula the modulus is derived; a declared one is only held
    against its values. With a `margin`, points within that distance (in the maximum norm, in the units of x) of the jumps
    of `where(…)` in a formula are out of scope. An `nn.Module` is a callable too; if its operations can be written as a
    formula and no modulus is declared, f is that formula: the module in exact arithmetic.

    Samples are X [N, D] or [N, n, d] and Y [N] or [N, …], NumPy or torch; their domain is the box around X unless given.
    `split` is the seed that chooses which samples are held out (`samples.py`). With `lipschitz`, f is known everywhere up
    to the `envelope` of the samples; without it f is known at the samples alone.
    """

    @known_options
    def __init__(
        self,
        function: "str | Callable[[Any], Any] | tuple[Any, Any]",
        domain: Sides | None = None,
        *,
        shape: tuple[int, int] | None = None,
        output_shape: tuple[int, ...] | None = None,
        lipschitz: float | Sequence[float] | None = None,
        modulus: Callable[[float], float] | None = None,
        within: str | None = None,
        evaluation_error: float = 0.0,
        margin: float = 0.0,
        split: int = 0,
        symmetric: bool = False,
        functions: Sequence[Function] = (),
    ) -> None:
        if isinstance(domain, Domain) and within is not None:
            raise InputError("one condition", "a Domain and `within` as well", "put the condition into the Domain")
        if lipschitz is not None and modulus is not None:
            raise InputError("one modulus", "lipschitz and modulus", "declare one of them")
        if modulus is not None and not callable(modulus):
            raise InputError("modulus, a function of r", f"{modulus!r}", "pass a function, or use lipschitz")
        require_whole("split", split, 0, LARGEST_SEED)
        require_flag("symmetric", symmetric)
        require_not_negative("evaluation_error", evaluation_error, "declare how far answers may be off")
        require_not_negative("margin", margin, "give the distance to keep from jumps")
        if not (isinstance(function, str | tuple) or callable(function)):
            found = type(function).__name__
            raise InputError("a formula or a callable, or samples (X, Y), as target", found, "pass one of these")
        self.data: Data | None = None
        self.envelope: Envelope | None = None
        if isinstance(function, tuple):
            self.data = data_of(function, evaluation_error, split)
            domain = self.data.box() if domain is None else domain
            shape = self.data.sequence_shape(shape)
        if domain is None:
            raise InputError("a domain", "none", "give (low, high) for every variable")
        own = together(functions) if functions else {}
        self.domain = domain if isinstance(domain, Domain) else self._box(function, domain, within, shape, own)
        self.dimension = self.domain.dimension
        self.formula: Formula | None = None
        self.function: Batched | None = None
        self.evaluation_error = float(evaluation_error)
        self.margin = float(margin)
        self.symmetric = symmetric
        self.sequence = shape is not None
        self.shape = self._sequence_shape(shape)
        self.declared = declared_modulus(self.domain, lipschitz, modulus)
        if not isinstance(function, str | tuple):
            self.function = Batched(function, self.shape if self.sequence else None)
        text = function if isinstance(function, str) else None
        if is_module(function) and self.declared is None:
            from .as_formula import formula_of

            text = formula_of(function, self.domain.names)
        if text is not None:
            self.formula = parse(text, self.domain.names, own)
            if self.domain.within is None:
                FormulaOnBox(self.formula, self.domain.lower, self.domain.upper).require_finite()
        elif self.data is not None:
            self.data.require_inside(self.domain)
            if modulus is not None:
                raise InputError("a modulus that samples can be used with", "modulus", "declare lipschitz")
            if self.declared is not None and self.declared.lipschitz is not None:
                self.envelope = envelope_of(self.data, self.declared.lipschitz)
        self.output_shape = self._find_output_shape(output_shape)
        if self.declared is not None and self.data is None:
            require_not_contradicted(self, self.declared)

    @property
    def kind(self) -> Kind:
        return "formula" if self.formula else "callable" if self.data is None else "data"

    @property
    def leaves_points_out(self) -> bool:
        """Whether the margin matters to values: there are jumps that it is kept from."""
        return self.formula is not None and self.margin > 0 and bool(switches(self.formula.outputs))

    @property
    def outputs(self) -> int:
        """Number of output entries."""
        return math.prod(self.output_shape)

    @property
    def places(self) -> tuple[int, int]:
        """(positions, features) of the output as a sequence; an output without positions is one position."""
        if len(self.output_shape) >= 2:
            return self.output_shape[0], math.prod(self.output_shape[1:])
        return 1, self.outputs

    @property
    def text(self) -> str:
        if self.data is not None:
            return str(self.data)
        if self.formula is not None:
            return self.formula.text
        assert self.function is not None
        return self.function.name

    @cached_property
    def centre(self) -> Float[np.ndarray, " out"]:
        """f at the centre of the box, as floats."""
        middle = self.domain.points(np.full((1, self.dimension), 0.5))
        return self.values_with_error(middle)[0][0]

    @cached_property
    def modulus(self) -> Modulus:
        """The modulus of continuity: derived from the formula, else declared, else estimated by sampling."""
        return modulus_of(self)

    @cached_property
    def caveats(self) -> tuple[str, ...]:
        """What a claim about this formula is not about, or reads into it."""
        if (formula := self.formula) is None:
            return ()
        low, high = self.domain.lower, self.domain.upper
        box, found = [interval(a, b) for a, b in zip(low, high, strict=True)], list[str]()
        for factor in formula.limits:
            (values,) = enclose(Formula(formula.text, formula.names, (factor,)), box)
            if not (values.is_finite() and (values.lower() > 0 or values.upper() < 0)):
                where = f"{to_text(factor, formula.names)} = 0"
                found.append(f"where {where} the formula is undefined; its limit is taken")
        found += [f"{name} as enclosed by its record" for name in own_names(formula.outputs)]
        if not FormulaOnBox(formula, low, high).is_defined(self.domain.within):
            found.append("only points where f is defined are claimed; that it is defined everywhere is not proved")
        return tuple(found)

    @cached_property
    def uncertainty(self) -> float:
        """How far the samples leave f open: the largest radius of the envelope found at random points; 0 for a function."""
        return 0.0 if self.envelope is None else self.envelope.largest_radius(self.domain)

    def part(self, formula: Formula) -> "Target":
        """Another formula, a part of this one, with the same names and number of outputs, on the same domain."""
        other = copy(self)
        other.formula = formula
        other.declared = None  # what is declared of f need not hold for a part of it
        for cached in ("centre", "modulus"):
            other.__dict__.pop(cached, None)
        return other

    def inner(self, node: Node) -> "Target":
        """An inner function of this formula, alone, on the same domain."""
        assert self.formula is not None
        other = self.part(Formula(to_text(node, self.formula.names), self.formula.names, (node,)))
        other.output_shape, other.function = (1,), None
        return other

    def __repr__(self) -> str:
        text = self.text if len(self.text) <= 80 else f"{self.text[:79]}…"
        return f"Target({text} on {self.domain})"

    def __call__(self, x: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point out"]:
        """f at points of the domain, in float64. A point without a finite value is refused."""
        y = self.values(x)
        bad = ~np.isfinite(y).all(axis=1)
        if bad.any():
            i, change = int(bad.argmax()), "shrink the domain, or change the function there"
            found = f"{y[i].tolist()} at x = {x[i].tolist()}"
            raise InputError("a finite value everywhere in the domain", found, change)
        return y

    def values(self, x: Float[np.ndarray, "point coordinate"]) -> Float[np.ndarray, "point out"]:
        """f at points, in float64, finite or not; for data the middle of the values that f can have there."""
        if self.data is None:
            f = self.formula or self.function
            assert f is not None
            return f(x, self.output_shape) if isinstance(f, Batched) else evaluate_defined(f, x)
        values, radius = self.enclosed(x)
        if self.envelope is None and np.isinf(radius).any():
            found = f"x = {x[int(np.isinf(radius).any(axis=1).argmax())].tolist()[:8]}, which is not a sample"
            raise InputError("f at samples", found, "declare lipschitz, or give a function")
        return values

    def enclosed(
        self, x: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, "point out"], Float[np.ndarray, "point out"]]:
        """(values, radius) with |f − values| ≤ radius for a callable or data, as declared; NaN and ∞ where f is unknown."""
        if self.data is not None:
            return self.data.at(x) if self.envelope is None else self.envelope(x)
        values = self.values(x)
        return values, np.full(values.shape, self.evaluation_error)

    def values_with_error(
        self, x: Float[np.ndarray, "point coordinate"]
    ) -> tuple[Float[np.ndarray, "point out"], float]:
        """(values, error): f at float points with a proved bound on |value − f|; a callable's is the declared one."""
        if self.data is not None:
            return self(x), float(self.enclosed(x)[1].max())
        if self.formula is None:
            return self(x), self.evaluation_error
        values, error = np.empty((len(x), self.outputs)), 0.0
        for i, point in enumerate(x.tolist()):
            for o, ball in enumerate(enclose(self.formula, point)):
                low, high = ball.lower(), ball.upper()
                if not (ball.is_finite() and math.isfinite(low) and math.isfinite(high)):
                    raise InputError(
                        "a finite value everywhere in the domain", f"none at x = {point}", "shrink the domain"
                    )
                values[i, o] = (low + high) / 2
                error = max(error, math.nextafter(max(high - values[i, o], values[i, o] - low), math.inf))
        return values, error

    @staticmethod
    def _box(function: Any, domain: Any, within: str | None, shape: Any, own: Mapping[str, Function]) -> Domain:
        """The domain of a formula has the formula's names; "0:1" as text is every variable's side."""
        sides = sides_of(domain)
        if isinstance(function, str) and isinstance(sides, list):
            if isinstance(domain, str):
                sides = spread(sides, function, within, math.prod(shape) if is_shape(shape) else 1, own)
            sides = named(sides, function, within, own)
        return domain_of(sides, within)

    def _sequence_shape(self, shape: tuple[int, int] | None) -> tuple[int, int]:
        D = self.domain.dimension
        if shape is None:
            return D, 1
        if not is_shape(shape) or len(shape) != 2 or math.prod(shape) != D:
            raise InputError(
                f"`shape` (n, d) with n·d = {D}, the sides of the domain", f"{shape}", "make the two agree"
            )
        return int(shape[0]), int(shape[1])

    def _find_output_shape(self, given: tuple[int, ...] | None) -> tuple[int, ...]:
        if self.formula:
            found: tuple[int, ...] = (len(self.formula.outputs),)
        elif self.data is not None:
            found = self.data.output_shape
        else:
            assert self.function is not None
            found = self.function.output_shape(self.domain.points(np.full((2, self.dimension), 0.5)))
        if given is None:
            return found
        if not is_shape(given) or math.prod(given) != math.prod(found):
            raise InputError(
                f"`output_shape` for {counted(math.prod(found), 'output')}", f"{given}", "make the two agree"
            )
        return tuple(int(g) for g in given)


TargetLike = str | Callable[[Any], Any] | tuple[Any, Any] | Target  # as users give it


def target_of(function: Any, domain: Any = None, **about: Any) -> Target:
    """The Target that was given, or a new one from a function, its domain and options."""
    if not isinstance(function, Target):
        return Target(function, domain, **about)
    if domain is not None or not all(v is None or v is False or (is_number(v) and v == 0) for v in about.values()):
        raise InputError("a Target alone", "a Target and options of a target", "give them to Target(…)")
    return function


def require_tolerance(tolerance: float, name: str = "a tolerance") -> None:
    if not is_number(tolerance) or not 1e-290 < tolerance < 1e290:
        raise InputError(f"{name} above 0 (1e-290 to 1e290)", f"{tolerance!r}", "give for instance 1e-3")
