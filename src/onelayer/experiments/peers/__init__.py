"""Peers: what a user would pick instead of a constructed layer, fitted to the same samples with the same number of parameters.

Every `fit(target, parameters, seconds, seed)` returns a `FittedPeer`: a function, how much it stores, how long it took.
All are judged on one independent dense test set with faces and corners. Trained peers stop when their time is up: they
are capped, not converged.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ...target.domain import End
from ...target.target import Target, target_of
from . import chebyshev, features, kan, marquardt, perceptron, transformer
from .task import FittedPeer, observed_error

__all__ = ["PEERS", "PEER_SECONDS", "Peer", "PeerResult", "compare_peers", "seconds_for"]

PEER_SECONDS = 60.0  # of processor time for each trained peer, at least
TIMES_OURS = 3.0  # or this many times what our layer took, if that is more

Kind = Literal["descent", "Levenberg–Marquardt", "linear"]  # trained by Adam or L-BFGS; by LM; one linear solve


@dataclass(frozen=True)
class Peer:
    """A way to approximate: `fit(target, parameters, seconds, seed)` returns None when no size matches the budget."""

    name: str
    kind: Kind
    fit: Callable[[Target, int, float, int], FittedPeer | None]
    available: Callable[[], bool] = lambda: True

    def try_fit(self, target: Target, parameters: int, seconds: float, seed: int) -> FittedPeer | str:
        """The fit, or why there is none."""
        if not self.available():
            return "skipped: not installed (pip install 'onelayer[peers]')"
        return self.fit(target, parameters, seconds, seed) or "no size matches the budget"


@dataclass(frozen=True)
class PeerResult:
    """One peer's result; its observed error is NaN if it did not run, and the note says why."""

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


def seconds_for(ours: float, least: float = PEER_SECONDS) -> float:
    """Processor seconds for each trained peer, beside a layer that took `ours` to build: three times that, at least `least`."""
    return max(least, TIMES_OURS * ours)


def compare_peers(
    function: "str | Callable[[Any], Any] | Target",
    domain: Sequence[tuple[End, End]] | Mapping[str, tuple[End, End]] | None,
    parameters: int,
    seconds: float,
    seed: int = 0,
) -> list[PeerResult]:
    """Every peer at a budget of parameters, with this many seconds each."""
    target = target_of(function, domain)
    results = []
    for peer in PEERS:
        found = peer.try_fit(target, parameters, seconds, seed)
        if isinstance(found, str):
            results.append(PeerResult(peer.name, 0, math.nan, 0.0, found))
        else:
            error = observed_error(found.function, target)
            results.append(PeerResult(peer.name, found.parameters, error, found.seconds, found.note))
    return results
