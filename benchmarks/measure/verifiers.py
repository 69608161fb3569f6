"""Labelled questions for neural-network verifiers, and what verifiers answer.

--out FOLDER     write all questions: ONNX, VNN-LIB 2.0, expected answers and certificates, a folder for each layer or pair
--check          check every label again: `onelayer check`, the files, and the witnesses
--marabou        ask Marabou (PyPI: maraboupy), each question as it is and with its domain in slices
--lirpa PYTHON   ask auto_LiRPA, with a Python that has it (it needs an old torch): IBP and CROWN bounds
--page           write the tables into verifiers.md
--only WORD      layers whose name contains this word
"""

import itertools
import json
import multiprocessing
import resource
import shutil
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from onelayer.deployment.export import subject_of, vnnlib, write
from page import markdown, options, page_of, placed
from questions import Row, problems, rows_of, satisfied
from verifier_layers import Case, cases

SECONDS = 2  # processor seconds that Marabou may take for a question
WAIT = 120  # seconds until it is given up, whatever else the machine does
SLICES = (1, 16)
POINTS = 1000
KINDS = ("range", "Lipschitz", "monotone", "equivalence")


@dataclass(frozen=True)
class Said:
    """What a verifier said to one question: proved, refuted, undecided, wrong, or not asked, and the seconds."""

    verifier: str
    folder: str
    row: Row
    verdict: str
    seconds: float


def generate(out: Path, chosen: list[Case]) -> None:
    """One folder for each case."""
    for case in chosen:
        started = time.perf_counter()
        first, second = case.make()
        subject = subject_of(first, "float64")
        other = None if second is None else subject_of(second, "float64")
        made = vnnlib.make(subject, subject.points(POINTS, 0), other, case.kinds)
        shutil.rmtree(out / case.name, ignore_errors=True)
        write(out / case.name, made.files)
        print(f"{case.name}: {'; '.join(made.notes)}  {time.perf_counter() - started:.1f} s", flush=True)


def judged(said: str, expected: str) -> str:
    """What an answer is worth beside the truth."""
    if said not in ("sat", "unsat"):
        return "undecided"
    return {"unsat": "proved", "sat": "refuted"}[said] if said == expected else "wrong"


def ask_marabou(folders: list[Path]) -> Iterator[list[Said]]:
    """Every question, each in a process of its own that is ended when its time is up; folder by folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import maraboupy.Marabou  # noqa: F401  (once, before the workers are forked)
    for folder in folders:
        found = []
        for row in rows_of(folder):
            for slices in SLICES if row["kind"] in ("range", "equivalence") else SLICES[:1]:
                said, x, seconds = _in_time(folder, row, slices)
                verdict = judged(said, row["expected"])
                closed = row["kind"] in ("Lipschitz", "monotone")  # with <= for <, two equal points are an answer
                if said == "sat" and (closed or verdict == "refuted") and not _shown(folder, row, x):
                    verdict = "undecided"  # a point that shows nothing
                name = "Marabou" if slices == 1 else f"Marabou, {slices} slices"
                found.append(Said(name, folder.name, row, verdict, seconds))
        print(folder.name, Counter(one.verdict for one in found), flush=True)
        yield found


def _shown(folder: Path, row: Row, x: dict[str, list[float]]) -> bool:
    import vnnlib as parser

    asked = parser.parse_query_file(str(folder / row["vnnlib"]))
    return satisfied(asked, [folder / name for name in row["networks"].split()], list(x.values()))


def _in_time(folder: Path, row: Row, slices: int) -> tuple[str, dict[str, list[float]], float]:
    here, there = multiprocessing.Pipe()
    worker = multiprocessing.get_context("fork").Process(target=_asked, args=(there, folder, row, slices))
    worker.start()
    there.close()
    answered = here.poll(WAIT)
    nothing: tuple[str, dict[str, list[float]], float] = ("timeout", {}, float(SECONDS))
    try:
        said = here.recv() if answered else nothing
    except EOFError:  # its time was up
        said = nothing
    worker.kill()
    worker.join()
    return said


def _asked(there: Any, folder: Path, row: Row, slices: int) -> None:
    from marabou import answer

    warnings.simplefilter("ignore")
    spent = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (spent + SECONDS, spent + SECONDS))
    paths = [folder / name for name in row["networks"].split()]
    try:
        said, x = answer(paths, folder / row["vnnlib"], WAIT, slices)
    except Exception as error:
        said, x = f"{type(error).__name__}: {error}", {}
    there.send((said, x, time.process_time()))


def ask_lirpa(folders: list[Path], python: str) -> list[Said]:
    """Ranges and distances: what the bounds of auto_LiRPA prove. Questions about two points have no bounds."""
    script = Path(__file__).with_name("lirpa.py")
    told = subprocess.run([python, "-W", "ignore", str(script), *map(str, folders)], capture_output=True, check=True)
    found = []
    for entry in json.loads(told.stdout):
        folder = next(f for f in folders if f.name == entry["folder"])
        rows = [row for row in rows_of(folder) if row["kind"] in ("range", "equivalence")]
        name = f"auto_LiRPA {entry['method']}" + (f", {entry['slices']} slices" if entry["slices"] > 1 else "")
        for row in rows:
            verdict = judged(_by_bounds(entry, row), row["expected"]) if "lower" in entry else "no bounds"
            found.append(Said(name, folder.name, row, verdict, entry["seconds"]))
    return found


def _by_bounds(entry: dict[str, Any], row: Row) -> str:
    """unsat where the bounds keep the limit. Bounds alone show no counterexample."""
    low, high = entry["lower"], entry["upper"]
    limit = float(row["property"].split()[-1])
    above, below = high <= limit, low >= (-limit if row["kind"] == "equivalence" else limit)
    kept = above and below if row["kind"] == "equivalence" else above if "<=" in row["property"] else below
    return "unsat" if kept else "unknown"


def counted(folders: list[Path]) -> str:
    """The questions, by kind, margin and answer."""
    rows = [row for folder in folders for row in rows_of(folder)]
    lines = []
    for kind in KINDS:
        mine = [row for row in rows if row["kind"] == kind]
        cells = [str(sum(row["expected"] == answer for row in mine)) for answer in ("unsat", "sat")]
        near = [sum(abs(float(r["margin"]) / m - 1) < 0.1 for r in mine) for m in (0.01, 0.05, 0.2)]
        lines.append([kind, str(len(mine)), *cells, *map(str, near), str(len(mine) - sum(near))])
    total = [str(sum(int(line[i]) for line in lines)) for i in range(1, 8)]
    columns = ["question", "all", "holds (unsat)", "fails (sat)", "margin 1%", "5%", "20%", "other"]
    return markdown(columns, [*lines, ["together", *total]])


def verdicts(said: list[Said]) -> str:
    """One line for each verifier and kind of question."""
    words, lines = ("proved", "refuted", "undecided", "no bounds", "wrong"), []
    for verifier in dict.fromkeys(one.verifier for one in said):
        for kind in KINDS:
            mine = [one for one in said if one.verifier == verifier and one.row["kind"] == kind]
            if mine:
                counts = Counter(one.verdict for one in mine)
                seconds = sorted(one.seconds for one in mine)
                times = f"{seconds[len(seconds) // 2]:.2f} ({seconds[-1]:.1f})"
                lines.append([verifier, kind, str(len(mine)), *(str(counts[w]) for w in words), times])
    columns = ["verifier", "question", "asked", *words, "processor seconds: median (most)"]
    return markdown(columns, lines)


def contradictions(said: list[Said]) -> str:
    """Every answer that contradicts a proved label."""
    lines = [
        [one.verifier, one.folder, one.row["property"], one.row["expected"], _truth(one.row), one.row["witness"]]
        for one in said
        if one.verdict == "wrong"
    ]
    columns = ["verifier", "layer", "property", "truth", "largest or smallest value (proved)", "witness"]
    return markdown(columns, lines) if lines else "None."


def _truth(row: Row) -> str:
    return f"{float(row['truth_from']):.5g} to {float(row['truth_to']):.5g}"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the folder of all questions")
    parser.add_argument("--check", action="store_true", help="check every label again instead of writing them")
    parser.add_argument("--marabou", action="store_true", help="ask Marabou")
    parser.add_argument("--lirpa", metavar="PYTHON", help="ask auto_LiRPA, which this Python has")
    parser.add_argument("--page", action="store_true", help="write the tables into verifiers.md")
    parser.add_argument("--only", default="", metavar="WORD", help="layers whose name contains this word")
    args = parser.parse_args()
    chosen = [case for case in cases() if args.only in case.name]
    folders = [args.out / case.name for case in chosen]
    if not (args.check or args.marabou or args.lirpa or args.page):
        generate(args.out, chosen)
        return
    if args.check:
        wrong = [problem for folder in folders for problem in problems(folder)]
        print("\n".join(wrong) or f"{sum(len(rows_of(folder)) for folder in folders)} labels, all VALID")
    store = args.out / "answers.json"
    said = [Said(**one) for one in json.loads(store.read_text())] if store.exists() else []
    rounds = [iter([ask_lirpa(folders, args.lirpa)])] if args.lirpa else []
    rounds += [ask_marabou(folders)] if args.marabou else []
    for fresh in itertools.chain(*rounds):  # what was asked again replaces what was said before
        asked = {(one.verifier, one.folder) for one in fresh}
        said = [one for one in said if (one.verifier, one.folder) not in asked] + fresh
        store.write_text(json.dumps([asdict(one) for one in said], indent=1))
    tables = {"questions": counted(folders), "verdicts": verdicts(said), "wrong": contradictions(said)}
    for name, table in tables.items():
        print(f"\n{name}\n\n{table}")
        if args.page:
            page = page_of("verifiers.md")
            page.write_text(placed(page.read_text(), name, table))


if __name__ == "__main__":
    main()
