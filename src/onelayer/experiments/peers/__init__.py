"""Peers: what a user would pick instead of a constructed layer, fitted to the same samples with as many parameters.

Every `fit(target, parameters, seconds, seed)` returns a `Fitted`: a function, how much it stores, how long it took. All are
judged on one independent dense test set that holds faces and corners. Trained peers stop when their time is up: they are
capped, not converged.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...target.domain import End
from ...target.target import Target, target_of
from . import chebyshev, features, kan, marquardt, perceptron, transformer
from .task import Fitted, observed

__all__ = ["PEERS", "Peer", "Row", "compare_peers", "run"]

Kind = Literal["descent", "Levenberg–Marquardt", "linear"]  # trained by Adam or L-BFGS; by LM; one linear solve


@dataclass(frozen=True)
class Peer:
    """A way to approximate: fit(target, parameters, seconds, seed), None when no size matches."""

    name: str
    kind: Kind
    fit: Callable[[Target, int, float, int], Fitted | None]
    available: Callable[[], bool] = lambda: True


@dataclass(frozen=True)
class Row:
    """One peer's result; an observed error of NaN means that it did not run, and the note says why."""

    peer: str
    parameters: int
    observed: float
    seconds: float
    note: str


PEERS = (
    Peer("stock Transformer, Adam", "descent", transformer.fit),
    Peer("tanh-MLP, Adam + L-BFGS", "descent", perceptron.fit_tanh),
    Peer("ReLU-MLP, Adam + L-BFGS", "descent", perceptron.fit_relu),
    Peer("KAN, L-BFGS", "descent", kan.fit, kan.installed),
    Peer("tanh-MLP, Levenberg–Marquardt", "Levenberg–Marquardt", marquardt.fit),
    Peer("random features, least squares", "linear", features.fit),
    Peer("Chebyshev tensor interpolation", "linear", chebyshev.fit),
)


def compare_peers(
    function: "str | Callable[[Any], Any] | Target",
    domain: Sequence[tuple[End, End]] | Mapping[str, tuple[End, End]] | None,
    parameters: int,
    seconds: float,
    seed: int = 0,
) -> list[Row]:
    """Every peer at a budget of parameters, with so many seconds each."""
    target = target_of(function, domain)
    return [run(peer, target, parameters, seconds, seed) for peer in PEERS]


def run(peer: Peer, target: Target, parameters: int, seconds: float, seed: int = 0) -> Row:
    """One peer, fitted and judged."""
    if not peer.available():
        return Row(peer.name, 0, math.nan, 0.0, "skipped: not installed")
    fitted = peer.fit(target, parameters, seconds, seed)
    if fitted is None:
        return Row(peer.name, 0, math.nan, 0.0, "no size matches the budget")
    return Row(peer.name, fitted.parameters, observed(fitted.function, target), fitted.seconds, fitted.note)
