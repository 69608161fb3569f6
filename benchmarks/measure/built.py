"""Layers of a list of formulas, built with default options, checked, and stored as a small table in benchmarks/data.

What `functions_built.py` and `special.py` share. A row that is stored is not built again, so that a stopped script resumes; the
folders of the layers stay in study-NAME, for the checker.
"""

import argparse
import csv
import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path

import torch

import onelayer as ol
from onelayer.common.atomic import write_file
from onelayer.common.errors import InputError
from onelayer.common.numbers import at_least, at_most, exact
from onelayer.experiments.extremes import observed_range
from onelayer.formula import parse
from page import options

REFUSED = "refused"  # a verdict, where the domain holds points without a value
DATA = Path(__file__).resolve().parents[1] / "data"
Sides = dict[str, tuple[float, float]]


@dataclass(frozen=True)
class Case:
    """A formula on a domain, with a share of its range as the tolerance."""

    name: str
    formula: str
    domain: Sides
    share: float
    margin: float = 0.0

    @property
    def domain_text(self) -> str:
        return ", ".join(
            f"{name}={exact(float(low))}:{exact(float(high))}" for name, (low, high) in self.domain.items()
        )

    @property
    def key(self) -> tuple[str, str, float, float]:
        return self.formula, self.domain_text, self.share, self.margin


@dataclass(frozen=True)
class Built:
    """What came of a case. Seconds are processor seconds of one thread."""

    name: str
    formula: str
    domain: str
    share: float
    margin: float
    tolerance: float
    verdict: str
    bound: float
    observed: float
    units: int
    parameters: int
    seconds: float
    check: str = ""
    check_seconds: float = 0.0
    why: str = ""  # notes of a build that is not CERTIFIED
    check_why: str = ""  # of a check that is not VALID

    @property
    def key(self) -> tuple[str, str, float, float]:
        return self.formula, self.domain, self.share, self.margin


def stored(name: str) -> dict[tuple[str, str, float, float], Built]:
    """The rows of benchmarks/data/NAME.csv."""
    path = DATA / f"{name}.csv"
    if not path.exists():
        return {}
    kinds = {field.name: field.type for field in fields(Built)}
    with path.open(newline="", encoding="utf-8") as file:
        found = [Built(**{k: kinds[k](v) for k, v in row.items()}) for row in csv.DictReader(file)]  # type: ignore[operator]
    return {row.key: row for row in found}


def store(name: str, rows: dict[tuple[str, str, float, float], Built], cases: Iterable[Case]) -> None:
    """Write the rows, in the order of the cases; rows of cases that are gone go."""
    keys = [case.key for case in cases]
    lines = [asdict(rows[key]) for key in dict.fromkeys(keys) if key in rows]
    path = DATA / f"{name}.csv"
    text = [[field.name for field in fields(Built)], *([_text(k, v) for k, v in line.items()] for line in lines)]
    write_file(path, "".join(_csv_line(line) for line in text))


def _text(column: str, value: object) -> str:
    if not isinstance(value, float):
        return " ".join(str(value).split())
    return {"bound": at_most, "observed": at_least}.get(column, lambda v, digits: f"{v:.{digits}g}")(value, 6)


def _csv_line(cells: Sequence[str]) -> str:
    return ",".join(f'"{c.replace(chr(34), chr(34) * 2)}"' if set(c) & set(',"') else c for c in cells) + "\n"


def built(case: Case, folder: Path) -> Built:
    """The layer of a case, saved in the folder, and the checker's verdict on it."""
    asked = (case.name, case.formula, case.domain_text, case.share, case.margin)
    try:
        target = ol.Target(case.formula, case.domain, margin=case.margin)
        low, high = observed_range(target)
        tolerance = float(at_least(case.share * (high - low), 2))
        started = time.process_time()
        approx = ol.build(target, tolerance=tolerance)
    except InputError as refusal:
        return Built(*asked, math.nan, REFUSED, math.inf, math.nan, 0, 0, 0.0, why=refusal.found)
    spent = time.process_time() - started
    c = approx.certificate
    approx.save(folder, overwrite=True)
    why = "" if c.verdict == "CERTIFIED" else "; ".join(approx.facts.notes)
    sizes = approx.units, approx.parameters
    return judged(Built(*asked, tolerance, c.verdict, c.bound, c.observed, *sizes, round(spent, 2), why=why), folder)


def judged(row: Built, folder: Path) -> Built:
    """The row with what the independent checker says of its folder."""
    started = time.process_time()
    found = ol.check(folder)
    spent = round(time.process_time() - started, 2)
    why = "" if found.verdict == "VALID" else str(found.reason)
    return replace(row, check=found.verdict, check_seconds=spent, check_why=why)


def folder_of(out: Path, case: Case) -> Path:
    return out / f"{case.name} {case.domain_text} {case.share:g}"


def parsed(case: Case) -> str:
    """Nothing, or why the formula is refused."""
    try:
        parse(case.formula, tuple(case.domain))
    except InputError as refusal:
        return refusal.found
    return ""


def line(row: Built) -> str:
    told = f"{row.formula} on {row.domain}, {row.share:g} of the range: {row.verdict}"
    if row.verdict == REFUSED:
        return f"{told}: {row.why}"
    shares = f"{row.bound / row.tolerance:.3g}·tolerance proved, {row.observed / row.tolerance:.3g} observed"
    checked = f"{row.check} {row.check_seconds:g} s {row.why or row.check_why}"
    return f"{told}, {shares}, {row.units} units, {row.seconds:g} s; {checked}"


def arguments(text: str | None, names: Iterable[str], folder: str, paged: bool = False) -> argparse.Namespace:
    """The options of a script; `paged` if it writes a page of its own."""
    parser = options(text)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[*dict.fromkeys(names)], default=[])
    parser.add_argument("--again", action="store_true", help="build what is stored already, too")
    parser.add_argument(
        "--check", action="store_true", help="let the checker judge rows again that are not VALID; build nothing new"
    )
    if paged:
        parser.add_argument("--page", action="store_true", help="only write the page, from the stored rows")
    parser.add_argument("--out", type=Path, default=Path(folder), help=f"folder of the layers; {folder} if left out")
    return parser.parse_args()


def run(name: str, cases: Sequence[Case], args: argparse.Namespace) -> dict[tuple[str, str, float, float], Built]:
    """Build and check what is asked for and not stored yet, storing every row at once."""
    torch.set_num_threads(1)
    ol.build("x^2", [(0, 1)])  # what is loaded at first use is no row's time
    rows = stored(name)
    asked = [case for case in cases if not args.only or case.name in args.only]
    for number, case in enumerate(asked, start=1):
        old, folder = rows.get(case.key), folder_of(args.out, case)
        if refusal := parsed(case):
            print(f"{number}/{len(asked)} {case.formula} skipped: {refusal}", flush=True)
            continue
        refused = old is None or old.verdict == REFUSED
        if args.check and not refused and old.check != "VALID":
            fresh = judged(old, folder) if folder.exists() else built(case, folder)
        elif not args.check and (refused or args.again):
            fresh = built(case, folder)
        else:
            continue
        rows[case.key] = fresh
        store(name, rows, cases)
        print(f"{number}/{len(asked)} {line(fresh)}", flush=True)
    return {case.key: rows[case.key] for case in cases if case.key in rows}
