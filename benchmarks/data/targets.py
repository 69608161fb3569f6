"""The named targets that all benchmarks share: formula, domain, and how small a layer must be at which tolerance."""

from dataclasses import dataclass

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.target.domain import End


@dataclass(frozen=True)
class Goal:
    """A tolerance, and how many units a layer that keeps it should need at most."""

    tolerance: float
    units: int


@dataclass(frozen=True)
class Named:
    """A target with a name for the command line and a title for tables."""

    name: str
    title: str
    formula: str
    domain: tuple[tuple[End, End], ...]
    goals: tuple[Goal, ...]
    shape: tuple[int, int] | None = None
    output_shape: tuple[int, ...] | None = None

    @property
    def target(self) -> ol.Target:
        return ol.Target(self.formula, self.domain, shape=self.shape, output_shape=self.output_shape)


def unit(dimension: int) -> tuple[tuple[End, End], ...]:
    return ((0, 1),) * dimension


FRANKE = (
    "0.75*exp(-((9*x1-2)**2 + (9*x2-2)**2)/4) + 0.75*exp(-(9*x1+1)**2/49 - (9*x2+1)/10)"
    " + 0.5*exp(-((9*x1-7)**2 + (9*x2-3)**2)/4) - 0.2*exp(-(9*x1-4)**2 - (9*x2-7)**2)"
)
GAUSS = "exp(-6.25*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2 + (x4-0.5)**2))"
BRANIN = "((x2 - 5.1/(4*pi**2)*x1**2 + 5/pi*x1 - 6)**2 + 10*(1 - 1/(8*pi))*cos(x1) + 10)/308.13"
ISHIGAMI = "(sin(x1) + 7*sin(x2)**2 + 0.1*x3**4*sin(x1))/17.75"
ADDITIVE = "sin(x1) + sin(2*x2) + sin(3*x3) + sin(4*x4) + sin(5*x5) + sin(6*x6) + sin(7*x7) + sin(8*x8) + x1*x2"
RUNGE_2D = "1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2))"
RUNGE_3D = "1/(1 + 16*((x1-0.5)**2 + (x2-0.5)**2 + (x3-0.5)**2))"

TARGETS = (
    Named("sin-sum", "sin x1 + sin x2", "sin(x1) + sin(x2)", ((0, "2*pi"),) * 2, (Goal(1e-6, 16),)),
    Named("runge-1d", "Runge, 1-D", "1/(1 + 25*x1**2)", ((-1, 1),), (Goal(1e-6, 10),)),
    Named("branin", "Branin, scaled", BRANIN, ((-5, 10), (0, 15)), (Goal(1e-5, 32),)),
    Named("runge-2d", "Runge, 2-D", RUNGE_2D, unit(2), (Goal(1e-5, 40),)),
    Named("sine-of-product", "sin(x1·x2)", "sin(x1*x2)", ((0, "pi"),) * 2, (Goal(1e-5, 85),)),
    Named("franke", "Franke", FRANKE, unit(2), (Goal(1e-5, 125), Goal(1e-6, 210))),
    Named("ishigami", "Ishigami, scaled", ISHIGAMI, (("-pi", "pi"),) * 3, (Goal(1e-4, 70),)),
    Named("runge-3d", "Runge, 3-D", RUNGE_3D, unit(3), (Goal(1e-3, 64),)),
    Named("gauss-4d", "Gauss, 4-D", GAUSS, unit(4), (Goal(1e-3, 80),)),
    Named("additive-8d", "additive, 8-D, and x1·x2", ADDITIVE, unit(8), (Goal(1e-5, 65),)),
    Named("abs", "abs(x1 − x2)", "abs(x1 - x2)", unit(2), (Goal(1e-6, 1),)),
    Named("max", "max(x1, x2, x3)", "max(x1, x2, x3)", unit(3), (Goal(1e-6, 1),)),
    Named("cyclic", "cyclic products", "x1*x2; x2*x3; x3*x1", unit(3), (Goal(1e-5, 60),), (3, 1), (3, 1)),
)


def named(name: str) -> Named:
    """The target of that name."""
    found = [entry for entry in TARGETS if entry.name == name]
    if not found:
        known = ", ".join(entry.name for entry in TARGETS)
        raise InputError(f"a target among {known}", repr(name), "choose one of these")
    return found[0]
