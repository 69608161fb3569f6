"""Enclosures of functions beside those of another source tree. `python benchmarks/measure/widths.py --against TREE`

The same random arguments and boxes (`tests/support/readings.py`) go to the `onelayer` of both trees, in a process each: ranges,
slopes, errors of numbers, Taylor models, seven Taylor coefficients, complex rectangles. Where both enclosures are finite their
widths are compared, as a ratio ours/theirs; and the cases are counted in which one of the two has none. Functions that the
other tree refuses are left out. Exits with 1 where some width is more than --most times theirs, or an enclosure was lost.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from onelayer.formula.functions import FUNCTIONS
from page import markdown, options
from readings import arguments, boxes

HERE = Path(__file__).resolve().parents[2]
ORDER = 6
READINGS = ("ranges", "slopes", "errors", "models", "coefficients", "rectangles")
WORKER = """
import sys
from pathlib import Path
import numpy as np
import onelayer
from onelayer import InputError
from onelayer.formula import enclose, gradient, interval, parse
from onelayer.formula.complex_rectangles import enclose_rectangles
from onelayer.formula.float_bounds import evaluate_bounded
from onelayer.formula.taylor.axes import axis_coefficients
from onelayer.formula.taylor.formula import TaylorAlgebra
from onelayer.formula.taylor.series import Space

assert Path(sys.argv[4]) in Path(onelayer.__file__).parents

def width(x):
    return x.upper() - x.lower() if x.is_finite() else np.inf

cases, found, order = np.load(sys.argv[1]), {}, int(sys.argv[3])
for name in sorted({key.split(":")[0] for key in cases}):
    x, low, high, im = (cases[name + ":" + part] for part in ("x", "low", "high", "im"))
    try:
        f = parse(name + "(x1)")
    except InputError:
        continue
    lower, upper, half = low[:, None], high[:, None], (high / 2 - low / 2)[:, None] * (1 + 2.0**-51)
    with np.errstate(all="ignore"):
        at = [[interval(*box)] for box in zip(low.tolist(), high.tolist())]
        found[name + ":ranges"] = [width(enclose(f, box)[0]) for box in at]
        found[name + ":slopes"] = [width(gradient(f, box)[1][0][0]) for box in at]
        found[name + ":errors"] = evaluate_bounded(f, x[:, None])[1][:, 0]
        model = f.tape.run(TaylorAlgebra(Space(lower, upper)))[0]
        found[name + ":models"] = np.minimum(model.model.flat().r, (model.high - model.low) / 2)
        ((a, b),) = axis_coefficients(f, lower, upper, half, order)
        found[name + ":coefficients"] = (b - a)[:, 0].ravel()
        ((a, b, across),) = enclose_rectangles(f, [(low, high, im)])
        found[name + ":rectangles"] = np.concatenate(np.broadcast_arrays(b - a, across, im)[:2])
np.savez(sys.argv[2], **found)
"""


def widths(tree: Path, cases: Path, out: Path) -> dict[str, np.ndarray]:
    """What a fresh process that uses this tree finds."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", WORKER, str(cases), str(out), str(ORDER), str(tree)]
    subprocess.run(command, check=True, env=environment)
    with np.load(out) as found:
        return dict(found)


def compared(ours: np.ndarray, theirs: np.ndarray) -> dict[str, float]:
    """Ratios of widths above what underflow leaves, and how many enclosures only one of the two has."""
    mine, yours = np.isfinite(ours), np.isfinite(theirs)
    both = mine & yours & (theirs > 1e-290)
    ratio = ours[both] / theirs[both]
    positive = ratio[ratio > 0]
    mean = math.exp(np.log(positive).mean()) if positive.size else math.nan
    return {
        "cases": len(ours),
        "most": float(ratio.max(initial=0.0)),
        "mean": mean,
        "lost": int((yours & ~mine).sum()),
        "won": int((mine & ~yours).sum()),
    }


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--against", type=Path, metavar="TREE", required=True, help="the other source tree")
    visible = [name for name, f in FUNCTIONS.items() if not f.hidden]
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=list(FUNCTIONS), default=visible)
    parser.add_argument("--cases", type=int, default=5000, help="boxes, and arguments, of each function")
    parser.add_argument("--most", type=float, default=1.05)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, cases = np.random.default_rng(args.seed), dict[str, np.ndarray]()
    for name in args.only:
        sides = np.array(boxes(FUNCTIONS[name], rng, args.cases))
        cases[f"{name}:x"] = np.array(arguments(FUNCTIONS[name], rng, args.cases))
        cases[f"{name}:low"], cases[f"{name}:high"] = sides.T
        cases[f"{name}:im"] = rng.choice([0.0, 1e-9, 0.01, 0.3, 1.2], len(sides))
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "cases.npz")
        np.savez(given, **cases)
        ours, theirs = (
            widths(tree, given, Path(folder, f"{i}.npz")) for i, tree in enumerate((HERE, args.against.resolve()))
        )
    rows, bad, total = [], [], 0
    for name in args.only:
        if f"{name}:ranges" not in theirs:
            continue
        cells = [f"`{name}`"]
        for reading in READINGS:
            found = compared(ours[f"{name}:{reading}"], theirs[f"{name}:{reading}"])
            total += int(found["cases"])
            cells.append(f"{found['most']:.4g}, {found['mean']:.4g}, −{found['lost']} +{found['won']}")
            if found["most"] > args.most or found["lost"]:
                bad.append({"function": name, "reading": reading, **found})
        rows.append(cells)
    print(markdown(("largest ratio, mean, lost and won", *READINGS), rows))
    print(
        f"\n{total:,} enclosures of {len(rows)} functions; wider than {args.most} times or lost in {len(bad)} readings"
    )
    for one in bad:
        print(json.dumps(one))
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
