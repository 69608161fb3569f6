"""Smooth activations on Taylor models, read off their formulas. For a ReLU both engines have lines of their own."""

from functools import cache

from ...formula import parse
from ...formula.taylor.formula import Enclosed, TaylorAlgebra
from ...formula.taylor.functions import apply
from ...formula.taylor.series import Taylor
from ...model.activations import ActivationFunction

EXPANDED = {"x1*(1 + erf(x1/sqrt(2)))/2": "gelu"}  # formulas that have an expansion of their own, which is tighter


def activated(phi: ActivationFunction, u: Taylor) -> Taylor:
    """φ(u)."""
    return apply(EXPANDED[phi.formula], u) if phi.formula in EXPANDED else _along(phi.formula, u)


def slope_at(phi: ActivationFunction, u: Taylor) -> Taylor:
    """φ'(u)."""
    return _along(phi.slope, u)


parsed = cache(parse)


class _Along(TaylorAlgebra):
    """A formula of one variable, at every entry of a Taylor model."""

    def __init__(self, u: Taylor) -> None:
        super().__init__(u.space)
        self.u, self.shape = u, u.shape

    def variable(self, index: int) -> Enclosed:
        return Enclosed(self.u, *self.u.range())


def _along(text: str, u: Taylor) -> Taylor:
    found: Enclosed = parsed(text).tape.run(_Along(u.flat()))[0]
    return found.model
