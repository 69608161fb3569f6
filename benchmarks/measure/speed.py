"""Processor seconds of whole builds on the named targets, for one source tree or for two side by side.

`python benchmarks/measure/speed.py` builds every named target with default options, each in a process of its own, on one thread;
`--against TREE` builds each row with the `onelayer` in TREE/src as well, right after ours, and prints the geometric mean of
the ratios. Seconds are processor seconds of `build` alone, what it imports on first use not counted, the median of several
where they are short; `--seconds` limits a build by the clock. `--proofs` times `certify` of the layer that was built instead.
"""

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from page import markdown, options
from targets import TARGETS, Goal, Named

HERE = Path(__file__).resolve().parents[2]
ROW = """
import json, statistics, sys, time
import torch
import onelayer as ol
torch.set_num_threads(1)
given = json.loads(sys.argv[1])
target = ol.Target(given["formula"], given["domain"], shape=given["shape"], output_shape=given["output_shape"])
ol.build("sin(x1)", [(0, 1)], 0.1)  # what is imported on first use is not counted
took = []
while len(took) < 9 and sum(took) < 1:
    started = time.process_time()
    if not (took and given["proofs"]):
        approx = ol.build(target, tolerance=given["tolerance"], seconds=given["seconds"], seed=given["seed"])
    if given["proofs"]:
        started = time.process_time()
        ol.certify(approx)
    took.append(time.process_time() - started)
seconds = statistics.median(took)
c = approx.certificate
found = {"cpu": seconds, "units": approx.units, "parameters": approx.parameters, "bound": c.bound}
print(json.dumps(found | {"verdict": c.verdict, "total": approx.facts.total}))
"""


def built(tree: Path, entry: Named, goal: Goal, seconds: float, seed: int, proofs: bool) -> dict[str, Any]:
    """What a fresh process that uses this tree finds."""
    given = {"formula": entry.formula, "domain": entry.domain, "tolerance": goal.tolerance, "seconds": seconds}
    given |= {"shape": entry.shape, "output_shape": entry.output_shape, "seed": seed, "proofs": proofs}
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", ROW, json.dumps(given)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tree, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def cells(found: dict[str, Any]) -> list[str]:
    numbers = [f"{found['cpu']:.2f}", f"{found['units']}", f"{found['parameters']:,}", f"{found['total']:.3g}"]
    return [*numbers, f"{found['bound']:.3g}", found["verdict"]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--against", type=Path, metavar="TREE", help="another source tree, to compare with")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[entry.name for entry in TARGETS])
    parser.add_argument("--seconds", type=float, default=3600.0, help="at most this long for each build, by the clock")
    parser.add_argument("--proofs", action="store_true", help="time proofs alone")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    trees = [HERE, *([args.against.resolve()] if args.against else [])]
    heading = ["processor seconds", "units", "parameters", "Σ\\|c\\|", "bound (proved)", "verdict"]
    rows, logs = [], []
    for entry in TARGETS:
        for goal in entry.goals if args.only is None or entry.name in args.only else ():
            found = [built(tree, entry, goal, args.seconds, args.seed, args.proofs) for tree in trees]
            ratio = [found[0]["cpu"] / found[1]["cpu"]] if args.against else []
            logs += [math.log(r) for r in ratio]
            row = [cell for each in found for cell in cells(each)] + [f"{r:.3f}" for r in ratio]
            rows.append([entry.title, f"{goal.tolerance:g}", *row])
            print("; ".join(rows[-1]), flush=True)
    other = [f"{name}, other" for name in heading] + ["ratio"] if args.against else []
    print("\n" + markdown(["target", "tolerance", *heading, *other], rows))
    if logs:
        print(f"\ngeometric mean of the ratios: {math.exp(sum(logs) / len(logs)):.3f} ({len(logs)} rows)")


if __name__ == "__main__":
    main()
