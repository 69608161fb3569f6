"""Two suites that others wrote, row by row: what is certified, in how many seconds, and why the others are not.

    python benchmarks/measure/suites.py feynman      runs `builtin:feynman` (or resumes it from study-feynman), stores its table
                                                     as docs/studies/feynman.csv and writes feynman.md; dynamics likewise
    … --share 0.01 0.001                             tolerances as shares of the range of f (feynman); 0.01 if left out
    … --only I.6.2 I.8.14                            measures these rows and prints them; writes neither table nor page
    … --check                                        lets the independent checker judge certified rows of up to three variables
    … --judge                                        looks for the largest error of UNDECIDED rows, by an ascent
    … --page                                         writes the page from the stored table: nothing is measured

One process with one thread measures one row after the other, with default options. Stop it at any time; the same command resumes.
`--check` and `--judge` concern the rows measured from now on; `--retry` tries rows again that were refused.
"""

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from onelayer.experiments.extremes import largest
from onelayer.experiments.study import Study, Sweep
from onelayer.experiments.study.measures import Point, Result
from onelayer.experiments.study.measures.construction import target_at
from onelayer.experiments.study.measures.suite import suite_result
from onelayer.experiments.study.sweep import sweep_of
from page import DOCS, markdown, options, page_of, placed
from sweeps import keep

SUITES = ("feynman", "dynamics")
CHECKED_VARIABLES = 3  # the checker is asked about certified rows of up to this many variables
HALF = 0.5  # of the tolerance: an UNDECIDED row that is observed below this lacks nothing but a proof
VERDICTS = ("CERTIFIED", "UNDECIDED", "REFUTED", "refused")
# "Neural Abstractions" (NeurIPS 2022), results.csv of its repository, runs that succeeded: smallest error in the maximum norm,
# seconds of that run, seconds of the quickest and of the slowest run
ABSTRACTIONS = {
    "JetEngine": (0.02816, 386, 315, 766),
    "Exponential": (0.05006, 2090, 330, 2090),
    "SteamGovernor": (0.08899, 676, 329, 1578),
}

Row = dict[str, Any]


def thorough(check: bool, judge: bool) -> Callable[[Point], Result]:
    """The measure `suite`, with the checker's verdict and the largest error by an ascent where asked for."""

    def measured(point: Point) -> Result:
        built, result = suite_result(point)
        if check and result["verdict"] == "CERTIFIED" and result["dimension"] <= CHECKED_VARIABLES:
            result |= checked(built)
        if judge and result["verdict"] == "UNDECIDED":
            target = target_at(point)
            result["judged"] = largest(lambda x: errors(built, target, x), target)
        return result

    return measured


def errors(built: ol.Approximation, target: ol.Target, x: np.ndarray) -> np.ndarray:
    """|T − f| at points, the largest over outputs."""
    return np.abs(np.asarray(built(x), dtype=np.float64).reshape(len(x), -1) - target.values(x)).max(axis=1)


def checked(built: ol.Approximation) -> Result:
    """The independent checker's verdict on the saved folder, and its processor seconds."""
    with tempfile.TemporaryDirectory() as folder:
        built.save(Path(folder) / "f")
        started = time.process_time()
        found = ol.check(Path(folder) / "f")
        return {"checked": found.verdict, "check_seconds": time.process_time() - started}


def chosen(sweep: Sweep, only: Sequence[str], shares: Sequence[float], function: Callable[[Point], Result]) -> Sweep:
    """The part of a suite to measure now; its points have the keys they have in the built-in study."""
    tasks = [task for task in sweep.tasks if not only or task.point["target"] in only]
    tasks = [task for task in tasks if not task.point["share"] or task.point["share"] in shares]
    if not tasks:
        raise ol.InputError("rows of the suite", f"{', '.join(only)} at {', '.join(map(str, shares))}", "name others")
    return replace(sweep, tasks=tuple(replace(t, measure=replace(t.measure, function=function)) for t in tasks))


def stored(name: str) -> Study:
    """The suite as docs/studies holds it, the larger part included."""
    return Study.read(sweep_of(f"builtin:{name}", full=True), DOCS / "studies" / f"{name}.csv")


# -- pages --------------------------------------------------------------------------------------------------------------


def verdict(row: Row) -> str:
    return "refused" if row["status"] == "failed" else str(row["verdict"])


def reason(row: Row) -> str:
    """Why a row is not certified: what was observed, and the notes of the build or the error that it ended with."""
    if row["status"] == "failed":
        return str(row["error"]).partition("InputError: ")[2] or str(row["error"])
    if row["verdict"] == "CERTIFIED":
        return ""
    if row["observed"] is None:
        said = "an error that is not finite was observed"
    else:
        said = f"observed at {share_text(row['observed'] / row['tolerance'])} of the tolerance"
        judged = row.get("judged")
        said += f" ({share_text(judged / row['tolerance'])} after an ascent)" if judged is not None else ""
    return "; ".join([said, *([str(row["reason"])] if row.get("reason") else [])])


def share_text(share: float) -> str:
    """A share of the tolerance: observed, so rounded down."""
    return f"{math.floor(100 * share):,} %"


def seconds_text(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{median(known):.1f}" if known else "–"


def ours(row: Row) -> list[str]:
    """Units, parameters, bound / tolerance, processor and wall seconds, verdict, checker, reason."""
    if row["status"] == "failed":
        return ["–", "–", "–", "–", "–", "refused", "–", cell(reason(row))]
    ratio = "–" if row.get("ratio") is None else at_most(row["ratio"], 3)
    check = f"{row['checked']}, {row['check_seconds']:.1f} s" if row.get("checked") else "–"
    took = [f"{row['processor']:.1f}", f"{row['wall']:.1f}"]
    return [f"{row['units']:,}", f"{row['parameters']:,}", ratio, *took, verdict(row), check, cell(reason(row))]


OURS = ["units", "parameters", "bound / tolerance", "processor s", "wall s", "verdict", "checker", "why not"]


def cell(text: str) -> str:
    """A text inside a table of Markdown."""
    return " ".join(text.split()).replace("|", "\\|")


def feynman_section(study: Study) -> str:
    """For each share of the range: counts by number of variables, then every row, measured or not."""
    formulas = {task.point["target"]: task.point for task in study.sweep.tasks}
    parts = []
    for share in sorted({row["share"] for row in study.rows}, reverse=True):
        rows = {row["target"]: row for row in study.rows if row["share"] == share}
        counted = [verdict(row) for row in rows.values()].count("CERTIFIED")
        took = seconds_text(row.get("processor") for row in rows.values())
        head = f"**{counted} of {len(formulas)} are CERTIFIED**"
        head += f" ({len(rows)} measured)" if len(rows) < len(formulas) else ""
        checks = [row["checked"] for row in rows.values() if row.get("checked")]
        said = f" {near_miss(rows.values())}"
        said += f" The checker says VALID to {checks.count('VALID')} of {len(checks)} rows." if checks else ""
        parts += [f"### Tolerance: {100 * share:g} % of the range", f"{head}; the median is {took} processor s.{said}"]
        parts += [by_variables(list(rows.values()), formulas)]
        lines = [
            [name, f"`{cell(point['formula'])}`", f"{point['domain'].count('=')}", *ours(rows[name])]
            if name in rows
            else [
                name,
                f"`{cell(point['formula'])}`",
                f"{point['domain'].count('=')}",
                *["–"] * 5,
                "not measured",
                "–",
                "",
            ]
            for name, point in formulas.items()
        ]
        parts.append(markdown(["equation", "formula", "variables", *OURS], lines))
    return "\n\n".join(parts)


def near_miss(rows: Iterable[Row]) -> str:
    """How many rows lack a proof alone: their observed error, the ascent's included, is below half the tolerance."""
    undecided = [row for row in rows if verdict(row) == "UNDECIDED" and row["observed"] is not None]
    seen = [max(row["observed"], row.get("judged") or 0.0) / row["tolerance"] for row in undecided]
    few = sum(share < HALF for share in seen)
    return f"{few} UNDECIDED {'row is' if few == 1 else 'rows are'} observed below half the tolerance."


def by_variables(rows: Sequence[Row], formulas: dict[str, Point]) -> str:
    """How many rows have which verdict, and the median of processor seconds, by number of variables."""
    lines = []
    for count in sorted({point["domain"].count("=") for point in formulas.values()}):
        asked = [name for name, point in formulas.items() if point["domain"].count("=") == count]
        some = [row for row in rows if row["target"] in asked]
        verdicts = [verdict(row) for row in some]
        took = seconds_text(row.get("processor") for row in some)
        lines.append([f"{count}", f"{len(asked)}", *(f"{verdicts.count(v)}" for v in VERDICTS), took])
    return markdown(["variables", "equations", *VERDICTS, "median processor s"], lines)


def dynamics_section(study: Study) -> str:
    """Every system at the published ε and at a hundredth of it, beside what was published."""
    points = {task.point["target"]: task.point for task in study.sweep.tasks}
    lines = []
    for name, point in points.items():
        rows = sorted((row for row in study.rows if row["target"] == name), key=lambda row: -row["tolerance"])
        published = "–"
        if name in ABSTRACTIONS:
            smallest, took, least, most = ABSTRACTIONS[name]
            published = f"{at_least(smallest, 2)} in {took:,} s (runs of {least:,} to {most:,} s)"
        for i, row in enumerate(rows):
            first = [name, f"`{cell(point['formula'])}`", f"`{point['domain']}`", published] if i == 0 else [""] * 4
            lines.append([*first, f"{row['tolerance']:g}", *ours(row)])
    certified = [verdict(row) for row in study.rows].count("CERTIFIED")
    head = f"**{certified} of {len(study.sweep.tasks)} rows are CERTIFIED** ({len(study.rows)} measured)."
    columns = ["system", "f", "box", "Neural Abstractions, smallest error", "ε", *OURS]
    return f"{head}\n\n{markdown(columns, lines)}"


SECTIONS = {"feynman": feynman_section, "dynamics": dynamics_section}


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW")
    parser.add_argument("--share", nargs="+", type=float, default=[0.01])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--page", action="store_true", help="only write the page, from the stored table")
    parser.add_argument("--out", type=Path, help="folder of the results; study-NAME if left out")
    args = parser.parse_args()
    name, page = args.suite, page_of(f"{args.suite}.md")
    if not args.page:
        sweep, out = sweep_of(f"builtin:{name}", full=True), args.out or Path(f"study-{name}")
        part = chosen(sweep, args.only, args.share, thorough(args.check, args.judge))
        found = ol.study(part, out, workers=1, retry=args.retry, progress=lambda text, _: print(text, flush=True))
        if args.only:
            return print(markdown(["row", *OURS], [[row["target"], *ours(row)] for row in found.rows]))
        keep(ol.study(sweep, out, workers=1, only=0), name)
    page.write_text(placed(page.read_text(), name, SECTIONS[name](stored(name))))
    print(stored(name).summary())


if __name__ == "__main__":
    main()
