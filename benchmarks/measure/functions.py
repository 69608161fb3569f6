"""Every function of the language in every reading, judged with no slack. `python benchmarks/measure/functions.py --out FILE`

For every function --points arguments (numbers, and numbers with errors; a tenth of them in the other readings of numbers) and
--boxes boxes (ranges, slopes, Taylor models, coefficients, complex rectangles), each with seven points inside: the readings
of `tests/support/readings.py`, held against balls of 300 bits that are computed by another way where there is one. These balls
are held against mpmath at 50 digits on all arguments below 10^6 in size, or on as many as --seconds allow: the column
`mpmath` says on how many, and a disagreement counts as a violation. Prints a line per function and then the table: what was
compared and the largest share of a bound that was used. Functions that --out has already, with as many points and boxes,
are not judged again. `--only NAME …` judges some, hidden ones too. Exits with 1 after a violation, of which it prints some.
"""

import json
import random
import signal
import sys
import time
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from mpmath import mp

from formula_cases import MPMATH
from onelayer.formula.functions import FUNCTIONS
from page import markdown, options
from readings import READINGS, Cases, Tally

ALL = ("numbers", "errors")  # of all points; the other readings of points have a tenth
POINTWISE = ("tensors", "autograd", "spreads", "domains")
PATIENCE = 2.0  # seconds for one number of mpmath
AGREE = 1e-25  # relative: between the two judges


class Slow(Exception):
    """mpmath does not come to an end."""


def interrupt(*_: Any) -> None:
    raise Slow


def by_mpmath(name: str, x: float) -> Any:
    """The value at 50 digits, or None where mpmath gives up."""
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        return MPMATH[name](mp.mpf(x))
    except (Slow, ValueError, ArithmeticError, mp.NoConvergence):
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def judges(c: Cases, name: str, seconds: float) -> Tally:
    """The balls that judge are those of mpmath."""
    reach = 1e6 if name in MPMATH else 0.0
    t, known, started = Tally(), [(x, y) for x, y in c.known() if abs(x) < reach], time.monotonic()
    random.Random(0).shuffle(known)
    with mp.workdps(50):
        for x, exact in known:
            if time.monotonic() - started > seconds:
                break
            other = by_mpmath(name, x)
            if other is not None:
                apart = abs(mp.mpf(exact.mid().str(60, radius=False)) - other)
                t.require(apart <= AGREE * abs(other) + mp.mpf(2) ** -1070, x, exact, other)
    return t


def judged(name: str, points: int, boxes: int, seed: int, seconds: float) -> dict[str, Any]:
    """What every reading of a function came to."""
    started = time.monotonic()
    c = Cases(name, seed=seed, points=points, sides=boxes, bits=300)
    tenth = copy(c)
    tenth.x, tenth.exact = c.x[::10], c.exact[::10]
    found = {"mpmath": judges(c, name, seconds)}
    for reading, run in READINGS.items():
        found[reading] = run(c if reading in ALL or reading not in POINTWISE else tenth)
    tallies = {
        reading: {
            "cases": t.cases,
            "finite": t.finite,
            "worst": t.worst,
            "violations": len(t.wrong),
            "some": str(t.wrong[:3]),
        }
        for reading, t in found.items()
    }
    sizes = {"points": points, "boxes": boxes, "seed": seed, "seconds": round(time.monotonic() - started, 1)}
    return {"name": name, **sizes, "readings": tallies}


def table(rows: list[dict[str, Any]]) -> str:
    names = ["mpmath", *READINGS]
    lines = []
    for row in rows:
        cells = []
        for name in names:
            t = row["readings"][name]
            bad = f" **{t['violations']} wrong**" if t["violations"] else ""
            cells.append(f"{t['cases']:,}" + (f", {t['worst']:.2g}" if t["worst"] else "") + bad)
        total = sum(t["violations"] for t in row["readings"].values())
        lines.append((f"`{row['name']}`", f"{total}", *cells, f"{row['seconds']:.0f}"))
    return markdown(("function", "violations", *names, "seconds"), lines)


def main() -> int:
    parser = options(__doc__)
    visible = [name for name, f in FUNCTIONS.items() if not f.hidden]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(FUNCTIONS), default=visible)
    parser.add_argument("--points", type=int, default=10**5)
    parser.add_argument("--boxes", type=int, default=10**4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=20.0, help="for mpmath, per function")
    parser.add_argument("--out", type=Path, help="results as JSON, a line per function; those in it are kept")
    args = parser.parse_args()
    signal.signal(signal.SIGALRM, interrupt)
    here = args.out.read_text().splitlines() if args.out and args.out.exists() else []
    kept = {row["name"]: row for row in map(json.loads, here)}
    rows = []
    for name in args.only:
        row = kept.get(name)
        if row is None or (row["points"], row["boxes"], row["seed"]) != (args.points, args.boxes, args.seed):
            with np.errstate(all="ignore"):
                row = judged(name, args.points, args.boxes, args.seed, args.seconds)
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        rows.append(row)
        wrong = {reading: t["some"] for reading, t in row["readings"].items() if t["violations"]}
        print(
            f"{name}: {row['seconds']} s, {'; '.join(f'{k}: {v}' for k, v in wrong.items()) or 'no violation'}",
            flush=True,
        )
    print(f"\n{table(rows)}")
    return int(any(t["violations"] for row in rows for t in row["readings"].values()))


if __name__ == "__main__":
    sys.exit(main())
