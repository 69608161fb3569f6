"""What other approximators reach with as many parameters. `python benchmarks/measure/peers.py --target franke --parameters 700`

All are fitted to the same samples and judged on one independent dense test set, and uphill from their
own worst points of it; both sets include faces and corners.
Parameters are all stored numbers, within ±10 % of the budget. Trained peers stop when their time is up: they are capped, not
converged.
"""

import math
from collections.abc import Sequence

import torch

from onelayer.common.numbers import at_least
from onelayer.experiments.peers import PEER_SECONDS, PeerResult, compare_peers
from page import markdown, options
from targets import TARGETS, named


def table(rows: Sequence[PeerResult]) -> str:
    cells = [
        (row.peer, "–", "–", "–", row.note)
        if math.isnan(row.observed)
        else (row.peer, f"{row.parameters:,}", at_least(row.observed, 2), f"{row.seconds:.1f}", row.note)
        for row in rows
    ]
    return markdown(("peer", "parameters", "observed error", "seconds", "note"), cells)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--target", choices=[entry.name for entry in TARGETS], default="franke")
    parser.add_argument("--parameters", type=int, default=700)
    parser.add_argument("--seconds", type=float, default=PEER_SECONDS, help="cap for every peer")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    entry = named(args.target)
    print(f"{entry.title}, {args.parameters:,} parameters, at most {args.seconds:g} s of training each\n")
    print(table(compare_peers(entry.target, None, args.parameters, args.seconds, args.seed)))


if __name__ == "__main__":
    main()
