"""How large a certified layer is on the named targets, and what peers reach with as many parameters.

`python benchmarks/measure/size.py` builds every target at its tolerance with default options, runs the peers on the first six
rows (`--peers`: on all, `--no-peers`: on none) and writes its tables into benchmarks.md; `--only NAME` prints one target and
writes nothing; `--readme` prints the smaller table of the README, by method. Seconds are processor seconds on one thread.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

import onelayer as ol
from chebyshev_counts import Counts, chebyshev_counts
from onelayer.common.numbers import at_least, at_most
from onelayer.experiments.peers import PEER_SECONDS, PEERS, PeerResult, compare_peers, seconds_for
from onelayer.experiments.peers.task import Clock, observed_error
from page import markdown, options, page_of, placed
from peers import table
from targets import FRANKE, TARGETS, Goal, Named, unit

PAGE = page_of("benchmarks.md")
COMPARED = 6  # rows compared with peers by default

SUM = ("sin x1 + sin x2", "sin(x1) + sin(x2)", ((0, "2*pi"),) * 2)
README = [  # title, formula, domain, tolerance, options
    (*SUM, 0.5, {"method": "representative"}),
    (*SUM, 1e-4, {"method": "solved"}),
    (*SUM, 1e-6, {}),
    ("Franke", FRANKE, unit(2), 1e-5, {}),
    ("abs(x1 − x2)", "abs(x1 - x2)", unit(2), 1e-6, {}),
    ("Franke", FRANKE, unit(2), 1e-3, {"dtype": "float32"}),
]


@dataclass(frozen=True)
class Result:
    """One target at one tolerance: the layer, its observed error, seconds, Chebyshev counts for that error, and peers."""

    entry: Named
    goal: Goal
    approx: ol.Approximation
    observed: float
    seconds: float
    counts: Counts
    peers: list[PeerResult] = field(default_factory=list)
    contender: tuple[int, float] = (0, math.inf)  # against the peers: parameters and observed error
    allowed: float = 0.0  # processor seconds for each trained peer

    def ratio(self, *kinds: str) -> str:
        """The smallest observed error of the peers of these kinds, over ours."""
        of_kind = [peer.name for peer in PEERS if peer.kind in kinds]
        found = [row.observed for row in self.peers if row.peer in of_kind and not math.isnan(row.observed)]
        return f"{min(found) / self.contender[1]:.2g}" if found else "–"


def measure(entry: Named, goal: Goal, seconds: float | None) -> Result:
    """Build with default options, then the peers with as many parameters; at least `seconds` for each, None for no peers."""
    clock = Clock()
    approx = ol.build(entry.target, tolerance=goal.tolerance)
    spent = clock.spent
    # the larger of what the peers' test set and the certificate's own search show: to our disadvantage
    seen = max(observed_error(approx, entry.target), approx.certificate.observed)
    counts = chebyshev_counts(entry.target, None, seen)
    if seconds is None:
        return Result(entry, goal, approx, seen, spent, counts)
    allowed = seconds_for(spent, seconds)
    contender = most_accurate(entry, goal, approx, seen, Clock(allowed))
    rows = compare_peers(entry.target, None, contender[0], allowed)
    return Result(entry, goal, approx, seen, spent, counts, rows, contender, allowed)


def most_accurate(entry: Named, goal: Goal, approx: ol.Approximation, seen: float, clock: Clock) -> tuple[int, float]:
    """(parameters, observed error) of the layer that meets the peers.

    Peers go on until their time is up, and try several sizes, while `build` stops at its tolerance with few units. So units are
    fitted for the least error instead (`units=`), from one seed after another, in the time that a peer has: as many as before, or
    more that store no more numbers (those of an even function).
    """
    best, seed, sizes = (approx.parameters, seen), 0, [approx.units]
    while approx.facts.construction in ("gates", "memory") and clock.left:
        for units in sizes:
            choices = {"units": units, "construction": approx.facts.construction, "seed": seed}
            again = ol.build(entry.target, tolerance=goal.tolerance, **choices)
            error = max(observed_error(again, entry.target), again.certificate.observed)
            if again.parameters > approx.parameters:
                sizes = [size for size in sizes if size != units]
                break
            best = min(best, (again.parameters, error), key=lambda pair: pair[1])
            if seed == 0:
                sizes.append(units + 1)
        seed += 1
    return best


def size_table(results: Sequence[Result]) -> str:
    columns = "target, tolerance, units, at most, reads, parameters, verdict, bound (proved), observed error, Σ\\|c\\|, seconds"
    return markdown(
        (*columns.split(", "), "Chebyshev tensor", "total degree", "best N"), [size_cells(result) for result in results]
    )


def size_cells(result: Result) -> list[str]:
    approx, certificate = result.approx, result.approx.certificate
    reads = dict(approx.facts.heads).get("read", 0)
    bound = at_most(certificate.bound, 3) if math.isfinite(certificate.bound) else "–"
    numbers = [f"{approx.units:,}", f"{result.goal.units}", f"{reads}", f"{approx.parameters:,}"]
    facts = [
        certificate.verdict,
        bound,
        at_least(result.observed, 2),
        f"{approx.facts.total:.3g}",
        f"{result.seconds:.1f}",
    ]
    counts = ["–" if count is None else f"{count:,}" if count < 1e7 else f"{count:.2g}" for count in result.counts]
    return [result.entry.title, f"{result.goal.tolerance:g}", *numbers, *facts, *counts]


def peer_table(results: Sequence[Result]) -> str:
    columns = ["target", "parameters", "seconds each", "ours", *(peer.name for peer in PEERS)]
    columns += ["best descent / ours", "LM / ours"]
    return markdown(columns, [peer_cells(result) for result in results if result.peers])


def peer_cells(result: Result) -> list[str]:
    """Observed errors; one that is smaller than ours is bold."""
    cells = [
        f"{result.entry.title}, {result.goal.tolerance:g}",
        f"{result.contender[0]:,}",
        f"{result.allowed:.0f}",
        at_least(result.contender[1], 2),
    ]
    for row in result.peers:
        text = "–" if math.isnan(row.observed) else at_least(row.observed, 2)
        cells.append(f"**{text}**" if row.observed < result.contender[1] else text)
    return [*cells, result.ratio("descent"), result.ratio("Levenberg–Marquardt")]


def readme_table() -> None:
    print("| target | tolerance | method | units | parameters | bound (proved) | observed error | Σ\\|c\\| | seconds |")
    print("|---|---|---|---|---|---|---|---|---|")
    for title, formula, domain, tolerance, choices in README:
        a = ol.build(formula, domain, tolerance, **choices)
        c, f = a.certificate, a.facts
        bound = at_most(c.bound, 3) if math.isfinite(c.bound) else "–"
        bound = bound if c.verdict == "CERTIFIED" else f"{bound} ({c.verdict})"
        how = f"{f.method}, {f.construction}" + (", float32" if "dtype" in choices else "")
        cells = [title, f"{tolerance:g}", how, f"{a.units:,}", f"{a.parameters:,}", bound, at_least(c.observed, 2)]
        print("| " + " | ".join([*cells, f"{f.total:.3g}", f"{f.seconds:.2g}"]) + " |", flush=True)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", metavar="NAME", choices=[entry.name for entry in TARGETS])
    parser.add_argument("--seconds", type=float, default=PEER_SECONDS, metavar="PER_PEER",
                        help="for every trained peer, or three times ours if that is more")  # fmt: skip
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--peers", action="store_true", help="on all rows, not only on the first six")
    which.add_argument("--no-peers", action="store_true")
    parser.add_argument("--readme", action="store_true", help="print the README's table and nothing else")
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.readme:
        return readme_table()
    runs = [(entry, goal) for entry in TARGETS for goal in entry.goals]
    compared = [] if args.no_peers else runs if args.peers else runs[:COMPARED]
    results: list[Result] = []
    for run in runs:
        if args.only in (None, run[0].name):
            results.append(measure(*run, args.seconds if run in compared else None))
            print("; ".join(size_cells(results[-1])), flush=True)
            if results[-1].peers:
                print(f"\n{table(results[-1].peers)}\n", flush=True)
    sizes, peers = size_table(results), peer_table(results)
    notes = {f"{row.peer}: {row.note}" for result in results for row in result.peers if row.note.startswith("skipped")}
    cap = f"{args.seconds:g} processor seconds, or three times those of our layer if that is more"
    peers += f"\n\nEvery trained peer may take {cap}. " + "; ".join(sorted(notes))
    print(f"\n{sizes}" + (f"\n\n{peers}" if compared else ""))
    if args.only is None:
        page = placed(PAGE.read_text(), "sizes", sizes)
        PAGE.write_text(placed(page, "peers", peers) if compared else page)


if __name__ == "__main__":
    main()
