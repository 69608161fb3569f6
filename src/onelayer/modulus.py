"""The modulus of continuity: how far f can move when x moves by r.

    declared    the user says so; the certificate lists it as an assumption
    derived     proved from the formula by enclosures and bisection: Lipschitz constants L_j = max |∂_j f|, or, where a
                slope is unbounded (sqrt at 0), ω(r) from the oscillation over small boxes
    estimated   sampled; good for a forecast, never for a proof

Distances r are fractions of the sides of the box (the normalised maximum norm); Lipschitz constants are in the units of x.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from .derivation import Derivation
from .errors import InputError

if TYPE_CHECKING:
    from .target import Target


@dataclass(frozen=True)
class Modulus:
    """Lipschitz constants per coordinate, or ω(r); `kind` says how we know."""

    kind: Literal["declared", "derived", "estimated"]
    lipschitz: tuple[float, ...] | None = None
    omega: Callable[[float], float] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.lipschitz is not None:
            return f"{self.kind} Lipschitz constants {', '.join(f'{L:.4g}' for L in self.lipschitz)}"
        return f"{self.kind} modulus of continuity"


def modulus_of(
    target: "Target", lipschitz: float | Sequence[float] | None, omega: Callable[[float], float] | None
) -> Modulus:
    """The declared modulus, else the one derived from the formula, else an estimate."""
    D = target.dimension
    if lipschitz is not None:
        constants = [float(lipschitz)] * D if isinstance(lipschitz, int | float) else [float(L) for L in lipschitz]
        if len(constants) != D or not all(math.isfinite(L) and L >= 0 for L in constants):
            raise InputError(f"lipschitz: one number or {D}, finite and ≥ 0", f"{lipschitz}", "give a valid constant")
        return Modulus("declared", tuple(constants))
    if omega is not None:
        longest = float(target.domain.sides.max())
        return Modulus("declared", omega=lambda r: _checked(omega, r * longest))
    if target.formula is not None:
        derivation = Derivation(target.formula, target.domain.lower, target.domain.upper)
        constants_found = derivation.lipschitz()
        return Modulus("derived", constants_found, None if constants_found else derivation.omega)
    return Modulus("estimated", _estimated(target))


def _checked(omega: Callable[[float], float], r: float) -> float:
    value = float(omega(r))
    if not value >= 0:
        raise InputError("modulus(r) ≥ 0 for every r ≥ 0", f"modulus({r:g}) = {value}", "declare a valid modulus")
    return value


def _estimated(target: "Target") -> tuple[float, ...]:
    """1.5 times the steepest coordinate slope seen between close points: an estimate, not a bound."""
    rng = np.random.default_rng(0)
    D = target.dimension
    unit = rng.random((400, D))
    step = 1e-4
    base = target(target.domain.points(unit * (1 - step)))
    slopes = []
    for j in range(D):
        moved = unit * (1 - step)
        moved[:, j] += step
        slopes.append(
            1.5 * float(np.abs(target(target.domain.points(moved)) - base).max()) / step / target.domain.sides[j]
        )
    return tuple(slopes)
