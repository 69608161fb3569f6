"""The modulus of continuity: how far f can move when x moves by r.

    derived     proved from the formula by enclosures and bisection: Lipschitz constants L_j = max |∂_j f|, or, where a
                slope is unbounded (sqrt at 0), ω(r) from the oscillation over small boxes
    declared    the user says so; the certificate lists it as an assumption. For a formula it counts only where nothing
                can be derived
    estimated   sampled; good for a forecast, never for a proof

Distances r are fractions of the sides of the box (the normalised maximum norm); Lipschitz constants are in the units of x.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..common.checks import is_number
from ..common.errors import InputError
from ..common.numbers import at_most, exact
from ..common.outward import UP_FEW
from ..formula import Formula
from ..formula.additive import parts_of
from .domain import Domain
from .envelope import estimated_slopes
from .groups import groups_of
from .slopes import FormulaOnBox

if TYPE_CHECKING:
    from .target import Target


@dataclass(frozen=True)
class Modulus:
    """Lipschitz constants per coordinate, or ω(r); `kind` says where they come from."""

    kind: Literal["declared", "derived", "estimated"]
    lipschitz: tuple[float, ...] | None = None
    omega: Callable[[float], float] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.lipschitz is not None:
            text = exact if self.kind == "declared" else at_most
            return f"{self.kind} Lipschitz constants {', '.join(map(text, self.lipschitz))}"
        return f"{self.kind} modulus of continuity"


def modulus_of(target: "Target") -> Modulus:
    """The modulus derived from the formula, else the declared one, else an estimate."""
    if target.formula is not None:
        derived = _derived(target, target.formula)
        return derived if target.declared is None or _is_finite(derived) else target.declared
    if target.declared is not None:
        return target.declared
    if target.data is not None:
        return Modulus("estimated", estimated_slopes(target.data))
    return Modulus("estimated", _estimated(target))


def declared_modulus(
    domain: Domain, lipschitz: float | Sequence[float] | None, omega: Callable[[float], float] | None
) -> Modulus | None:
    """What is declared, checked to be constants or a modulus at all; None if nothing is."""
    if lipschitz is not None:
        return Modulus("declared", _constants(lipschitz, domain.dimension))
    if omega is None:
        return None
    longest = float(domain.sides.max())
    return Modulus("declared", omega=lambda r: _checked(omega, r * longest))


def _constants(lipschitz: Any, count: int) -> tuple[float, ...]:
    """The declared Lipschitz constants, one for each coordinate."""
    given = [lipschitz] * count if is_number(lipschitz) else lipschitz
    listed = isinstance(given, Sequence | np.ndarray) and not isinstance(given, str) and len(given) == count
    if not (listed and all(is_number(L) and 0 <= float(L) < math.inf for L in given)):
        found, change = f"{lipschitz!r}"[:80], "give one constant, or one for every variable"
        raise InputError(f"lipschitz: one number or {count}, finite and ≥ 0", found, change)
    return tuple(float(L) for L in given)


def _is_finite(derived: Modulus) -> bool:
    """Whether f is proved to be bounded on the box; it need not be where a condition cuts a pole out of it."""
    if derived.omega is None:
        return True
    try:
        return math.isfinite(derived.omega(1.0))
    except InputError:
        return False


def _derived(target: "Target", formula: Formula) -> Modulus:
    """Lipschitz constants where all slopes are bounded, else ω; each additive group by itself (their moduli add up)."""
    groups = groups_of(target) or [(0,)]
    constants = [0.0] * target.dimension
    lower, upper, sides = target.domain.lower, target.domain.upper, target.domain.sides
    rough: list[FormulaOnBox] = []
    for group, part in zip(groups, parts_of(formula, groups), strict=True):
        on_box = FormulaOnBox(part, tuple(lower[j] for j in group), tuple(upper[j] for j in group))
        found = on_box.lipschitz()
        if found is None:
            rough.append(on_box)
        else:
            for j, L in zip(group, found, strict=True):
                constants[j] = L
    if not rough:
        return Modulus("derived", tuple(constants))
    smooth = sum(L * float(s) for L, s in zip(constants, sides, strict=True)) * UP_FEW
    return Modulus("derived", omega=lambda r: (smooth * r + sum(f.omega(r) for f in rough)) * UP_FEW)


def _checked(omega: Callable[[float], float], r: float) -> float:
    value = float(omega(r))
    if not value >= 0:
        change = "declare one that is never negative"
        raise InputError("modulus(r) ≥ 0 for every r ≥ 0", f"modulus({exact(r)}) = {value}", change)
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
        rise = float(np.abs(target(target.domain.points(moved)) - base).max())
        slopes.append(1.5 * rise / step / target.domain.sides[j])
    return tuple(slopes)
