"""The long hunt for a bound below the truth. `python benchmarks/measure/soundness.py --minutes 10 --seed 0 --json out.json`

Random layers (gates with full values, maxima, ridges, memory tokens; scores up to ±1e4; cancelling values of 1e9; masked
tokens; NaN and infinite weights) × formulas near branch cuts and poles × boxes of any size, near 0 or far from it. Every
bound is compared, with zero slack, with errors proved in ball arithmetic at the worst points found. Prints a table; exits
with 1 after a violation, with the seed that reproduces it. `--cases networks --engine bisect` takes any Transformers,
LayerNorm, smooth activations and other attention than softmax included. `--cases heads` takes memory tokens alone, in up to
seven variables. `--cases fused` takes layers and networks with torch's fused attention, `--cases programs` difficult layers
evaluated by every program that has a bound: torch's kernels, ONNX Runtime, and with `--device cuda` our own (as `backends.py`).
`--cases functions` takes functions at the places where they are special: infinite slopes, cones, removable singularities.
`--cases statements` attacks what is said around the bound: tampered relative claims, points at margins or that are no float32
numbers, ends given as NumPy numbers, printed numbers read back. `--slopes` hunts bounds on the slopes of T − f instead, with
secants. `--cases ranges` holds proved ranges of values, slopes and second derivatives against divided differences in balls,
`--cases properties` properties that such a difference contradicts, `--cases suprema` both ends of sup |T − f| against errors that
other code finds. `--cases crafted` takes weights and formulas with structure (`tests/support/crafting.py`): numbers that cancel,
vanish, are masked or silent by a hair; every kind of statement about them is attacked, and `PYTHONPATH` chooses whose.
"""

import argparse
import itertools
import json
import math
import signal
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import compositions
import crafted_hunt
import hunting
import onelayer
import propositions
import slope_hunting
import statements

CASES = {
    "layers": hunting.case,
    "heads": hunting.one_head,
    "functions": hunting.special,
    "compositions": compositions.composition,
    "networks": hunting.network,
    "fused": hunting.fused,
}
LONGEST = 60  # seconds of a crafted attack, times its patience: old code may hang
SCORES_A_ROUND = 10**6  # by every program, before the next layers


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="cases are numbered from 1,000,000·seed on")
    parser.add_argument("--seconds", type=float, default=1.0, help="budget of one proof")
    parser.add_argument("--boxes", type=int, default=20_000, help="budget of one proof")
    parser.add_argument("--engine", choices=["analytic", "bisect"], default="analytic")
    parser.add_argument("--slopes", action="store_true", help="hunt bounds on slopes, whatever the engine")
    parser.add_argument(
        "--cases",
        choices=[*sorted(CASES), *propositions.KINDS, "crafted", "programs", "statements"],
        default="layers",
        help="constructed layers, one head alone, special functions, composed layers, networks, layers and networks with fused "
        "attention, ranges, properties, suprema, crafted layers and formulas, other programs, or what is said around bounds",
    )
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="of the programs")
    parser.add_argument("--dtype", choices=["float64", "float32"], default="float64", help="of the deployed model")
    parser.add_argument(
        "--weights",
        choices=["bfloat16", "int8"],
        default=None,
        help="layers on that grid, in one to three digits, as float32 models",
    )
    parser.add_argument("--json", type=Path, default=None, help="also write the numbers to this file")
    args = parser.parse_args()
    if args.cases == "programs":
        return attack_programs(args.device, args.minutes, args.seed, args.json)
    if args.cases == "crafted":
        return attack_crafted(args.minutes, args.seed, args.seconds, args.json)
    if args.cases == "statements":
        return attack_statements(args.minutes, args.seed, args.json)
    if args.cases in propositions.KINDS:
        return attack_propositions(args.cases, args.minutes, args.seed, args.seconds, args.json)
    dtype = torch.float32 if args.weights else getattr(torch, args.dtype)
    engine, seen = hunting.engine(args.engine, args.seconds, dtype, args.boxes), hunting.observed
    if args.slopes:
        engine, seen = slope_hunting.slope_engine(args.seconds, dtype, args.boxes), slope_hunting.observed_slopes
    deadline = time.perf_counter() + 60 * args.minutes
    kinds: dict[str, list[hunting.Find]] = defaultdict(list)
    violations: list[hunting.Find] = []

    def cases():
        seed = 1_000_000 * args.seed
        while time.perf_counter() < deadline:
            case = CASES[args.cases](seed)
            yield hunting.on_a_grid(case, args.weights) if args.weights else case
            seed += 1

    for find in hunting.hunt(engine, cases(), dtype, seen):
        kinds[kind(find.case)].append(find)
        if find.violated:
            violations.append(find)
            print(f"VIOLATION {find.case}: bound {find.bound!r} < observed {find.observed!r}", flush=True)
    rows = [summary(name, finds) for name, finds in sorted(kinds.items())]
    rows.append(summary("all", [f for finds in kinds.values() for f in finds]))
    what = str(dtype).removeprefix("torch.") + (f" with {args.weights} weights" if args.weights else "")
    print(f"engine {args.engine}, {what}, {args.minutes:g} minutes, cases from {1_000_000 * args.seed:,} on")
    print("| cases | number | finite bounds | violations | median bound/observed | 95% |")
    print("|---|---|---|---|---|---|")
    for r in rows:
        print(
            f"| {r['cases']} | {r['number']:,} | {r['finite']:,} | {r['violations']} | {r['median']:.3f} | {r['95%']:.3g} |"
        )
    print("Ratios are over cases whose error exceeds the requested accuracy.")
    if args.json:
        args.json.write_text(json.dumps({"rows": rows, "violations": [str(f.case) for f in violations]}, indent=1))
    return 1 if violations else 0


def attack_programs(device: str, minutes: float, seed: int, path: Path | None) -> int:
    """Every program of the device in turn, with new layers in each round; prints what each evaluated."""
    from backends import measured  # not above: hunts run against older versions of the package, too

    deadline, rounds = time.perf_counter() + 60 * minutes, list[dict]()
    for number in itertools.count(1_000_000 * seed, 1000):
        rounds.append(measured(device, SCORES_A_ROUND, number, ""))
        if time.perf_counter() >= deadline:
            break
    rows, failed = [r for one in rounds for r in one["rows"]], sum(one["failed"] for one in rounds)
    print(f"programs, {minutes:g} minutes, rounds from {1_000_000 * seed:,} on: {len(rounds):,}")
    print("| program | dtype | scores | violations |\n|---|---|---|---|")
    for name, dtype in dict.fromkeys((r["program"], r["dtype"]) for r in rows):
        own = [r for r in rows if (r["program"], r["dtype"]) == (name, dtype)]
        print(f"| {name} | {dtype} | {sum(r['scores'] for r in own):,} | {sum(r['violations'] for r in own)} |")
    if path:
        path.write_text(json.dumps({"rows": rows, "failed": failed}, indent=1))
    return 1 if failed or any(r["violations"] for r in rows) else 0


def attack_statements(minutes: float, seed: int, path: Path | None) -> int:
    """Every kind of attack in turn; prints how many there were and what turned out false."""
    deadline, counts, false = time.perf_counter() + 60 * minutes, defaultdict[str, int](int), list[str]()
    for number in itertools.count(1_000_000 * seed):
        for kind in statements.KINDS:
            if time.perf_counter() < deadline:
                with tempfile.TemporaryDirectory() as folder:
                    found = statements.attack(kind, number, Path(folder))
                counts[kind] += 1
                false += found
                for line in found:
                    print(f"VIOLATION {line}", flush=True)
        if time.perf_counter() >= deadline:
            break
    print(f"statements, {minutes:g} minutes, attacks from {1_000_000 * seed:,} on")
    print("| attack | number | violations |\n|---|---|---|")
    for kind, count in counts.items():
        print(f"| {kind.replace('_', ' ')} | {count:,} | {sum(line.startswith(kind) for line in false)} |")
    if path:
        path.write_text(json.dumps({"counts": counts, "violations": false}, indent=1))
    return 1 if false else 0


def attack_crafted(minutes: float, seed: int, patience: float, path: Path | None) -> int:
    """One attack after the other; prints each that found something, and per kind how many there were."""

    def too_long(*_: object) -> None:
        raise TimeoutError(f"longer than {LONGEST * patience:g} s")

    signal.signal(signal.SIGALRM, too_long)
    started, done = time.perf_counter(), list[crafted_hunt.Attack]()
    print(
        f"crafted, {minutes:g} minutes, seeds from {1_000_000 * seed:,} on, {Path(onelayer.__file__).parent}",
        flush=True,
    )
    for number in itertools.count(1_000_000 * seed):
        if (passed := time.perf_counter() - started) >= 60 * minutes:
            break
        signal.setitimer(signal.ITIMER_REAL, LONGEST * patience)
        one = crafted_hunt.attack(number, patience=patience)
        signal.setitimer(signal.ITIMER_REAL, 0)
        done.append(one)
        if one.false or one.crash:
            what = "VIOLATION" if one.false else "CRASH"
            lines = one.false or (" / ".join(one.crash.strip().splitlines()[-3:]),)
            print(
                f"{what} seed {number}, {one.kind}, after {passed:.0f} s: {one.about}", *lines, sep="\n    ", flush=True
            )
    print("| kind | attacks | with a bound or verdict | violations | crashes | seconds |\n|---|---|---|---|---|---|")
    for kind in (*crafted_hunt.KINDS, ""):
        own = [one for one in done if kind in ("", one.kind)]
        numbers = (len(own), sum(o.said for o in own), sum(bool(o.false) for o in own), sum(bool(o.crash) for o in own))
        print(
            "| "
            + " | ".join([kind or "all", *(f"{n:,}" for n in numbers), f"{sum(o.seconds for o in own):.0f}"])
            + " |"
        )
    if path:
        path.write_text(json.dumps([asdict(one) for one in done if one.false or one.crash], indent=1))
    return 1 if any(one.false for one in done) else 0


def attack_propositions(kind: str, minutes: float, seed: int, seconds: float, path: Path | None) -> int:
    """One random layer after the other; prints how many there were and what turned out false."""
    deadline, count, false = time.perf_counter() + 60 * minutes, 0, list[str]()
    for number in itertools.count(1_000_000 * seed):
        if time.perf_counter() >= deadline:
            break
        found, count = propositions.attack(kind, number, seconds), count + 1
        false += found
        for line in found:
            print(f"VIOLATION {line}", flush=True)
    print(f"{kind}, {minutes:g} minutes, layers from {1_000_000 * seed:,} on: {count:,}, violations: {len(false)}")
    if path:
        path.write_text(json.dumps({"count": count, "violations": false}, indent=1))
    return 1 if false else 0


def kind(case: hunting.Case) -> str:
    if case.poisoned:
        return "weights not finite"
    if "*((x1-(" in case.target.text or case.target.text.startswith("3 + 0*x1"):
        return "equal to the target up to rounding"
    where = ", part of a box" if case.target.domain.within else ""
    return f"{case.target.dimension}-D{where}"


def summary(name: str, finds: list[hunting.Find]) -> dict[str, object]:
    ratios = [f.ratio for f in finds if f.telling]
    middle, high = np.quantile(ratios, [0.5, 0.95]).tolist() if ratios else (math.nan, math.nan)
    finite = sum(math.isfinite(f.bound) for f in finds)
    violated = sum(f.violated for f in finds)
    return {
        "cases": name,
        "number": len(finds),
        "finite": finite,
        "violations": violated,
        "median": middle,
        "95%": high,
    }


if __name__ == "__main__":
    sys.exit(main())
