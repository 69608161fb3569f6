"""What other approximators reach with as many parameters. `python benchmarks/peers.py --target franke --parameters 700`

All are fitted to the same samples and judged on one independent dense test set; both hold faces and corners. Parameters
are all stored numbers, within ±10 % of the budget. Trained peers stop when their time is up: they are capped, not converged.
"""

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from onelayer.domain import End
from onelayer.target import Target, target_of
from page import markdown
from peer import chebyshev, features, kan, marquardt, perceptron, transformer
from peer.counts import Counts, chebyshev_counts
from peer.task import Fitted, observed
from targets import TARGETS, named

__all__ = ["PEERS", "Counts", "Peer", "Row", "chebyshev_counts", "compare_peers", "table"]

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
    target = target_of(function, domain, {})
    return [run(peer, target, parameters, seconds, seed) for peer in PEERS]


def run(peer: Peer, target: Target, parameters: int, seconds: float, seed: int = 0) -> Row:
    """One peer, fitted and judged."""
    if not peer.available():
        return Row(peer.name, 0, math.nan, 0.0, "skipped: not installed")
    fitted = peer.fit(target, parameters, seconds, seed)
    if fitted is None:
        return Row(peer.name, 0, math.nan, 0.0, "no size matches the budget")
    return Row(peer.name, fitted.parameters, observed(fitted.function, target), fitted.seconds, fitted.note)


def table(rows: Sequence[Row]) -> str:
    cells = [
        (row.peer, "–", "–", "–", row.note)
        if math.isnan(row.observed)
        else (row.peer, f"{row.parameters:,}", f"{row.observed:.2g}", f"{row.seconds:.1f}", row.note)
        for row in rows
    ]
    return markdown(("peer", "parameters", "observed error", "seconds", "note"), cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=[entry.name for entry in TARGETS], default="franke")
    parser.add_argument("--parameters", type=int, default=700)
    parser.add_argument("--seconds", type=float, default=20.0, help="cap for every peer")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    entry = named(asked.target)
    print(f"{entry.title}, {asked.parameters:,} parameters, at most {asked.seconds:g} s of training each\n")
    print(table(compare_peers(entry.target, None, asked.parameters, asked.seconds, asked.seed)))


if __name__ == "__main__":
    main()
