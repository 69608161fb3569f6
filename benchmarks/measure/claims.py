"""True and false claims through every command, judged by the independent checker.

`python benchmarks/measure/claims.py --page` writes a folder with every command of `benchmarks/data/folders.py`, asks the checker
and writes verdicts, seconds and lines read into docs/trust/checker.md: lines of the functions of the checker that were
entered to decide the folder, the code that its verdict rests on. `--count 300` takes 300 true claims instead, these and random
variations of them, and makes one false claim of each, by a change whose margin is known: a bound below an error that was seen,
a formula, a bias or a weight moved, a wider domain, slopes, longer sequences. All digests are made to fit. It exits with 1 if a
false claim is VALID or a true one INVALID.
"""

import ast
import contextlib
import io
import json
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import onelayer as ol
from onelayer.apps.cli import main as onelayer
from page import markdown, options, page_of, placed

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from checking import SOURCE, check, forged
from folders import DECIDED, files, words_of

SECONDS = 120.0  # for every check
POINTS = 4_000  # at which a changed claim is judged
LEAST = 1.05  # error / claimed bound of a false claim
SMOOTH = (
    "sin(3*x1)",
    "exp(-x1^2)",
    "1/(1 + 4*x1^2)",
    "x1*x2",
    "sin(x1 + 2*x2)",
    "x1*exp(-x2)",
    "log(1 + x1*x2)",
    "x1^2 - x2",
)
ENTRIES = ("maximum", "minimum", "mean", "sort", "running_max", "histogram", "majority", "first_occurrence", "reverse")
LENGTHS = ("maximum", "minimum", "mean", "running_max", "running_mean", "majority", "histogram", "first_occurrence")
Record = dict[str, Any]
Edit = dict[str, Callable[[Any], Any]]


def varied(rng: np.random.Generator) -> str:
    """A random command."""
    eps, kind = 10 ** rng.uniform(-4, -2), rng.integers(6)
    if kind <= 2:
        formula, dtype = rng.choice(SMOOTH), rng.choice(["float64", "float64", "float32"])
        slopes = f" --slope-eps {20 * eps:.1e}" if kind == 2 and dtype == "float64" else ""
        return f'build "{formula}" --domain 0:{rng.integers(1, 3)} --eps {max(eps, 1e-3):.1e} --dtype {dtype}{slopes}'
    if kind == 3:
        a, b, c = rng.integers(1, 9, size=3)
        return f'build "max({a}*x1 - x2, {b}*x2) - {c}*abs(x1 - 0.{c})" --domain 0:1 --eps {eps:.1e}'
    if kind == 4:
        return f"gallery {rng.choice(ENTRIES)} --n {rng.integers(2, 6)}"
    return f"gallery {rng.choice(LENGTHS)} --longest {rng.integers(2, 40)}"


def written(command: str, folder: Path) -> bool:
    """Whether the command wrote a certified folder."""
    words = [*words_of(command), "--out", str(folder)]
    words += ["--quiet"] if words[0] in ("build", "memorize") else []
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = onelayer(words)
    return status == 0 and json.loads((folder / "certificate.json").read_text())["verdict"] == "CERTIFIED"


def samples(command: str) -> Any:
    """What was memorised: the checker is to be told."""
    if not command.startswith("memorize"):
        return None
    rows = np.loadtxt("points.csv", delimiter=",", skiprows=1)
    return rows[:, :-1], rows[:, -1:]


def judged(command: str, folder: Path) -> tuple[str, str, float]:
    """(verdict, reason, seconds) of the checker."""
    data, started = samples(command), time.process_time()
    found = check(folder, data=data, seconds=SECONDS)
    return found.verdict, found.reason, time.process_time() - started


def lines_read(command: str, folder: Path) -> int:
    """The lines of the checker's functions that are entered to decide a folder, docstrings included."""
    entered, functions, seen = set[int](), dict[int, range](), set[int]()
    for node in ast.walk(ast.parse(SOURCE.read_text())):
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(mark.lineno for mark in node.decorator_list)])
            functions[first] = range(first, (node.end_lineno or first) + 1)

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == str(SOURCE):
            entered.add(frame.f_code.co_firstlineno)

    data = samples(command)
    sys.setprofile(note)
    try:
        check(folder, data=data, seconds=10 * SECONDS)
    finally:
        sys.setprofile(None)
    for first in entered:
        seen.update(functions.get(first, ()))
    return len(seen)


def smaller(record: Record, share: float) -> Record:
    """The claim with a bound below an error that was seen, and nothing that contradicts it."""
    seen = max(record["lower"], record["observed"])
    bound = seen / share
    return record | {"bound": bound, "tolerance": bound, "observed": 0.9 * bound, "lower": 0.0, "lower_point": None}


def unsure(record: Record) -> Record:
    """The claim without its lower bound, which a changed layer or target would contradict at once."""
    return record | {"lower": 0.0, "lower_point": None, "observed": min(record["observed"], record["bound"])}


def changes(folder: Path, rng: np.random.Generator) -> dict[str, tuple[Edit, float | None]]:
    """Changes that make the claim false, and error / claimed bound where it is known beforehand."""
    record, target = (json.loads((folder / f"{name}.json").read_text()) for name in ("certificate", "target"))
    bound, found = record["bound"], dict[str, tuple[Edit, float | None]]()
    share = float(rng.uniform(LEAST, 2.0))
    if max(record["lower"], record["observed"]) > 0 and record["evidence"].get("relative") is None:
        found["bound"] = {"certificate": lambda r: smaller(r, share)}, share
    if bound > 0:
        move = float(rng.uniform(2.1, 4.0)) * bound

        def moved(tensors: Record) -> None:
            tensors["b_R"] += move

        if target.get("kind") != "language":  # where softmax takes back what is added to all logits
            found["bias"] = {"certificate": unsure, "weights": moved}, move / bound - 1
    if target.get("formula"):
        first, *rest = target["formula"].split(";")
        other = ";".join([f"({first}) + {move!r}", *rest])
        found["formula"] = {"certificate": unsure, "target": lambda t: t | {"formula": other}}, move / bound - 1

        def weighed(tensors: Record) -> None:
            name = rng.choice([n for n, t in tensors.items() if t.count_nonzero() and n not in ("shift", "scale")])
            places = tensors[name].view(-1).nonzero().flatten().tolist()
            tensors[name].view(-1)[int(rng.choice(places))] *= 1 + float(
                rng.choice([-1, 1]) * 10 ** rng.uniform(-4, -0.5)
            )

        found["weight"] = {"certificate": unsure, "weights": weighed}, None
        if target["within"] is None and not target["margin"]:
            found["domain"] = {"certificate": unsure, "target": wider}, None
    slope = record["slope"]
    if slope and slope["observed"] > 0:
        less = slope["observed"] / share
        low = slope | {"bound": less, "tolerance": less, "observed": 0.9 * less}
        found["slopes"] = {"certificate": lambda r: r | {"slope": low}}, share
    if "longest" in target:
        more = 2 * target["longest"]
        longer = {"longest": more, "parameters": target["parameters"] | {"longest": more}}
        found["length"] = {"target": lambda t: t | longer}, float("inf")
    return found


def wider(target: Record) -> Record:
    """The first variable has a wider range."""
    low, high = target["lower"][0], target["upper"][0]
    new = high + 0.3 * (high - low)
    ends = [[target["ends"][0][0], repr(new)], *target["ends"][1:]]
    return target | {"upper": [new, *target["upper"][1:]], "ends": ends}


def margin(folder: Path) -> float:
    """The error of a folder at random points of its domain, faces included, over the bound that it claims."""
    layer = ol.load(folder)
    unit = np.random.default_rng(0).random((POINTS, layer.domain.dimension))
    unit = np.where(np.random.default_rng(1).random(unit.shape) < 0.2, unit.round(), unit)
    x = layer.domain.points(unit).astype(layer.certificate.arithmetic).astype(float)
    x = x[layer.domain.contains(x)]
    error = np.abs(np.asarray(layer(x)).reshape(len(x), -1) - np.asarray(layer.target(x)).reshape(len(x), -1)).max()
    return float(error / layer.certificate.bound)


def falsified(folder: Path, place: Path, rng: np.random.Generator) -> tuple[str, float] | None:
    """A false claim made of a true one: (what was changed, error / claimed bound)."""
    found = changes(folder, rng)
    for name in rng.permutation(sorted(found)):
        edit, share = found[name]
        there = place / f"false-{name}"
        forged(folder, there, **edit)
        share = margin(there) if share is None else share
        if share >= LEAST:
            there.rename(place / "false")
            return str(name), share
    return None


def walk(place: Path) -> str:
    """One row for every command."""
    rows = []
    for number, command in enumerate(DECIDED):
        folder = place / f"{number}"
        made = written(command, folder)
        verdict, reason, seconds = judged(command, folder) if made else ("not certified", "", 0.0)
        read = f"{lines_read(command, folder):,}" if made else ""
        rows.append([f"`onelayer {command}`".replace("|", "\\|"), verdict, f"{seconds:.1f}", read])
        print(*rows[-1], "" if verdict == "VALID" else reason, sep="; ", flush=True)
    return markdown(["command", "verdict", "processor seconds", "lines read"], rows)


def many(place: Path, count: int, seed: int) -> int:
    """Count true claims and the false ones made of them; 1 if one of them is judged wrongly."""
    rng, seen, margins, number = np.random.default_rng(seed), Counter[tuple[str, str]](), list[float](), 0
    while min(seen.total() - len(margins), len(margins)) < count:
        command = DECIDED[number] if number < len(DECIDED) else varied(rng)
        home = place / f"{number}"
        home.mkdir()
        number += 1
        if not written(command, home / "true"):
            continue
        verdict, reason, _ = judged(command, home / "true")
        seen["true", verdict] += 1
        if verdict != "VALID":
            print(f"true, {verdict}: {command}; {reason}", flush=True)
        made = falsified(home / "true", home, rng)
        if made is not None:
            verdict, reason, _ = judged(command, home / "false")
            seen[made[0], verdict] += 1
            margins.append(made[1])
            if verdict == "VALID":
                print(f"FALSE VALID: {command}; {made}; {home}", flush=True)
    rows = [
        [kind, *(str(seen[kind, v]) for v in ("VALID", "INVALID", "NOT CHECKABLE"))]
        for kind in dict.fromkeys(k for k, _ in seen)
    ]
    print("\n" + markdown(["claim", "VALID", "INVALID", "NOT CHECKABLE"], rows))
    print(
        f"\n{len(margins)} false claims, error / claimed bound from {min(margins):.3f}, median {np.median(margins):.3f}"
    )
    wrong = seen["true", "INVALID"] + sum(
        n for (kind, verdict), n in seen.items() if kind != "true" and verdict == "VALID"
    )
    return int(wrong > 0)


def main() -> int:
    parser = options(__doc__)
    parser.add_argument(
        "--count", type=int, default=0, help="so many true claims, and false ones, instead of one per command"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the table of commands into the page")
    args = parser.parse_args()
    page = page_of("checker.md")
    with tempfile.TemporaryDirectory() as place:
        files(Path(place))
        os.chdir(place)
        if args.count:
            return many(Path(place), args.count, args.seed)
        table = walk(Path(place))
    if args.page:
        page.write_text(placed(page.read_text(), "walk", table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
