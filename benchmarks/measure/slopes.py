"""Layers whose slopes are certified too, beside layers whose values are: sizes, bounds, and what the two proofs cost.

`python benchmarks/measure/slopes.py` builds the analytic named targets of up to three variables with a tolerance for slopes
and without one, and writes its table into certificate.md; `--only NAME …` prints some and writes nothing. The seconds of
the two proofs are processor seconds of one thread, in one process, one right after the other.
"""

import time
from dataclasses import replace
from typing import Any

import torch

import onelayer as ol
from onelayer.common.budget import Budget
from onelayer.common.numbers import at_least, at_most
from onelayer.proof.claim import Claim
from onelayer.proof.decision import edge_of, prove_by
from onelayer.proof.slopes import prove_slopes
from page import markdown, options, page_of, placed
from targets import TARGETS, Named

PAGE = page_of("certificate.md")
GOALS = [  # name, tolerance of values, tolerance of slopes
    ("sin-sum", 1e-6, 1e-5),
    ("runge-1d", 1e-6, 1e-4),
    ("branin", 1e-5, 1e-4),
    ("runge-2d", 1e-5, 1e-3),
    ("sine-of-product", 1e-5, 1e-3),
    ("franke", 1e-4, 1e-2),
    ("franke", 1e-5, 1e-3),
    ("ishigami", 1e-4, 1e-2),
    ("runge-3d", 1e-3, 5e-2),
    ("cyclic", 1e-5, 1e-4),
]
REPEATS = 3  # of every proof; the quickest counts


def seconds_of(work: Any) -> float:
    """The processor seconds of the quickest of several runs."""
    took = []
    for _ in range(REPEATS):
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return min(took)


def row(entry: Named, tolerance: float, slope_tolerance: float) -> list[str]:
    started = time.process_time()
    approx = ol.build(entry.target, tolerance=tolerance, slope_tolerance=slope_tolerance)
    took = time.process_time() - started
    plain = ol.build(entry.target, tolerance=tolerance)
    c, model = approx.certificate, approx.model
    assert c.slope is not None
    claim = Claim(entry.target, tolerance, approx.facts.places, slope_tolerance=slope_tolerance)
    values = replace(claim, slope_tolerance=None)
    by_value = seconds_of(lambda: prove_by("analytic", model, values, c.observed, Budget(60)))
    by_slope = seconds_of(lambda: prove_slopes(model, claim, edge_of(model, entry.target), Budget(60), observed=False))
    return [
        entry.title, f"{tolerance:g}", f"{slope_tolerance:g}", f"{approx.units}, {approx.parameters}",
        f"{plain.units}, {plain.parameters}", c.verdict, at_most(c.bound, 3), at_most(c.slope.bound, 3),
        at_least(c.slope.observed, 3), f"{c.slope.bound / c.slope.observed:.3f}", f"{by_slope / by_value:.2f}", f"{took:.1f}",
    ]  # fmt: skip


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[entry.name for entry in TARGETS])
    args = parser.parse_args()
    torch.set_num_threads(1)
    entries = {entry.name: entry for entry in TARGETS}
    rows = []
    for name, *goal in GOALS:
        if args.only is None or name in args.only:
            rows.append(row(entries[name], *goal))
            print("; ".join(rows[-1]), flush=True)
    names = ("target", "tolerance", "of slopes", "units, parameters", "values alone", "verdict", "bound (proved)")
    names += ("of slopes (proved)", "observed", "proved / observed", "proof / that of values", "seconds")
    table = markdown(names, rows)
    print("\n" + table)
    if args.only is None:
        PAGE.write_text(placed(PAGE.read_text(), "slopes", table))


if __name__ == "__main__":
    main()
