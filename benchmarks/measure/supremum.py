"""How closely sup |T − f| is known, from both sides, and whether Sollya agrees. `python benchmarks/measure/supremum.py`

    python benchmarks/measure/supremum.py           prints both tables; takes a few minutes on one core
    python benchmarks/measure/supremum.py --page    also writes them into certificate.md
    python benchmarks/measure/supremum.py --only runge-3d gauss-4d    prints some rows of the first

First table: layers for the named targets; upper over lower bound as the certificate has them, and as `ol.supremum` finds them
for an accuracy of 1%. Second table: polynomials against functions of one variable; [lower, upper] of `ol.supremum` beside the
interval that Sollya's `supnorm` proves (`apt-get install sollya`); without Sollya its column is empty.
"""

import re
import shutil
import subprocess
import time
from collections.abc import Sequence

import torch

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from page import markdown, options, page_of, placed
from targets import TARGETS, Goal, Named, named

PAGE = page_of("certificate.md")
ACCURACY = 0.01
SECONDS = 30.0  # for the proof of one row
PAIRS = (  # polynomial, function, ends
    ("x - x^3/6", "sin(x)", (0, 1)),
    ("1 + x + x^2/2 + x^3/6", "exp(x)", (-1, 1)),
    ("x - x^2/2 + x^3/3", "log(1 + x)", (0, 0.5)),
    ("1 - x^2/2 + x^4/24", "cos(x)", (-1, 1)),
    ("x - x^3/3", "atan(x)", (-0.5, 0.5)),
    ("1 + x/2 - x^2/8", "sqrt(1 + x)", (0, 1)),
    ("1 - x + x^2 - x^3", "1/(1 + x)", (0, 0.5)),
    ("x - x^3/3 + 2*x^5/15", "tanh(x)", (-1, 1)),
    ("1 - x^2 + x^4/2", "exp(-x^2)", (0, 1)),
    ("x + x^3/6", "asin(x)", (-0.75, 0.75)),
)
Table = tuple[list[str], list[list[str]]]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into certificate.md")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="only these of the named targets")
    args = parser.parse_args()
    write, only = args.page, args.only
    torch.set_num_threads(1)
    if only:
        print(markdown(*layers([named(name) for name in only])))
        return
    for mark, (columns, rows) in (("two-sided", layers()), ("sollya", pairs())):
        text = markdown(columns, rows)
        print(text, flush=True)
        if write:
            PAGE.write_text(placed(PAGE.read_text(), mark, text))


def layers(entries: Sequence[Named] = TARGETS) -> Table:
    """Named targets at their tolerances."""
    rows = [layer(entry, goal) for entry in entries for goal in entry.goals]
    columns = ["target", "tolerance", "at least (proved)", "bound (proved)", "bound / at least", "for 1%", "s"]
    return columns, rows


def layer(entry: Named, goal: Goal) -> list[str]:
    approx = ol.build(entry.target, tolerance=goal.tolerance)
    c, started = approx.certificate, time.perf_counter()
    found = ol.supremum(approx, accuracy=ACCURACY, seconds=SECONDS)
    spent = time.perf_counter() - started
    ends = [at_least(c.lower), at_most(c.bound), f"{c.bound / c.lower:.3f}", f"{found.upper / found.lower:.4f}"]
    return [entry.title, f"{goal.tolerance:g}", *ends, f"{spent:.1f}"]


def pairs() -> Table:
    """Ten polynomials."""
    if shutil.which("sollya") is None:
        print("sollya is not installed: its column is left empty")
    return ["polynomial", "function", "on", "ol.supremum", "Sollya", "s"], [pair(*entry) for entry in PAIRS]


def pair(polynomial: str, function: str, ends: tuple[float, float]) -> list[str]:
    started = time.perf_counter()
    found = ol.supremum(polynomial, function, [ends], accuracy=ACCURACY)
    spent, theirs = time.perf_counter() - started, by_sollya(polynomial, function, ends)
    said = "–"
    if theirs is not None:
        said = f"[{at_least(theirs[0], 6)}, {at_most(theirs[1], 6)}]"
        said += "" if theirs[0] <= found.upper and found.lower <= theirs[1] else " apart"
    return [
        polynomial,
        function,
        str(list(ends)),
        f"[{at_least(found.lower, 6)}, {at_most(found.upper, 6)}]",
        said,
        f"{spent:.2f}",
    ]


def by_sollya(polynomial: str, function: str, ends: tuple[float, float]) -> tuple[float, float] | None:
    """The interval that Sollya proves, None without Sollya."""
    if shutil.which("sollya") is None:
        return None
    asked = f"supnorm({polynomial}, {function}, [{ends[0]!r};{ends[1]!r}], absolute, 2^(-10));\nquit;\n"
    said = subprocess.run(["sollya"], input=asked, capture_output=True, text=True, check=True, timeout=60).stdout
    interval = re.search(r"\[([^;\]]+);([^\]]+)\]", said)
    assert interval is not None, said
    return float(interval[1]), float(interval[2])


if __name__ == "__main__":
    main()
