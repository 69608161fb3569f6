"""The golden corpus: folders built once, frozen as a record, and built again to see what has changed.

    python benchmarks/measure/golden.py freeze --out DIR   builds every case into DIR, writes benchmarks/data/golden.json
    python benchmarks/measure/golden.py compare            builds every case again and compares with the record
    … --only named-abs text-bigrams                        these cases alone; `freeze` then keeps the record's other rows
    … --record FILE                                        another record
    … --out DIR                                            where to build; `compare` has a folder for every state of the source

`PYTHONPATH=TREE/src` chooses the code that builds: the commands are those of the public command line, each in a process of its
own, on one thread, so one script works with old and new code. A record says for each case: exit status, verdict, bound, slope
bound, method, SHA-256 of the weights, what `check` says, and what it says to false claims about the folder. Stop it at any
time: what is built is kept, and the same command resumes.

`compare` exits with 1 after a difference that matters: another verdict, exit status, property or answer of `check`, a bound more
than 1 % larger (float64; of other number types the ratio is reported), a false claim that is VALID, or a bound that contradicts
the record's lower bound of the same weights. Weights are compared bit by bit. They depend on the processor and on NumPy, SciPy
and torch, so on another machine than the record's they are reported only, and so are the bounds of weights that are different.
"""

import atexit
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path

import onelayer as ol
from false_claims import false_claims, fingerprint, read, tensors_of
from golden_differences import Row, differences, summary
from page import markdown, options

from golden_cases import Case, cases, files  # isort: skip  # page knows where that is

RECORD = Path(__file__).resolve().parents[1] / "data" / "golden.json"
PACKAGE = Path(ol.__file__).resolve().parent
WORKER = Path(__file__).with_name("golden_worker.py")
BAD_INPUT = 2  # an exit status
MOST_SECONDS = 1800  # of one command; one that takes longer is ended by a signal
CHECK_SECONDS, FALSE_SECONDS = 600.0, 5.0


@cache
def worker() -> subprocess.Popen[str]:
    """The process whose forks run the commands, each on one thread."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": str(PACKAGE.parent)}
    started = subprocess.Popen(
        [sys.executable, WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    atexit.register(lambda: (started.kill(), started.communicate()))
    return started


def run(words: Sequence[str], folder: Path) -> tuple[int, str]:
    """Exit status and output of a command of `onelayer`, in a process of its own."""
    process, output = worker(), folder / "output"
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps([list(words), str(folder), str(output), MOST_SECONDS]) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline()), output.read_text()


def measured(case: Case, out: Path) -> Row:
    """What a case builds, as a row; read from `out` if the same command was measured there before."""
    out = out.resolve()
    kept, place = out / "rows" / f"{case.name}.json", Path("folders") / case.name
    if kept.exists() and (row := read(kept))["command"] == case.command:
        return row
    for folder in (kept.parent, out / place.parent):
        folder.mkdir(parents=True, exist_ok=True)
    files(out)
    shutil.rmtree(out / place, ignore_errors=True)
    status, _ = run([*case.words, "--out", str(place)], out)
    row = {"command": case.command, "status": status}
    if (out / place / "certificate.json").exists():
        row |= claims(out / place) | checked(case, place, out)
    elif status != BAD_INPUT:
        row["said"] = ((out / "output.errors").read_text().strip().splitlines() or [""])[-1]
    fresh = kept.with_suffix(".part")
    fresh.write_text(json.dumps(row))
    fresh.replace(kept)
    return row


def claims(folder: Path) -> Row:
    """What a folder says of itself, and its weights."""
    record = read(folder / "certificate.json")
    slope, stored = record.get("slope"), record.get("weight_format")
    return {
        "verdict": record["verdict"],
        "bound": record["bound"],
        "lower": record.get("lower", 0.0),
        "slope": slope["bound"] if slope else None,
        "properties": [json.dumps(held, sort_keys=True) for held in record.get("properties", [])],
        "method": record["method"],
        "arithmetic": record["arithmetic"] + (f", {stored}" if stored else ""),
        "weights": fingerprint(tensors_of(folder / "model.safetensors")[0]),
    }


def checked(case: Case, place: Path, out: Path) -> Row:
    """The independent checker's answer to a folder, and to false claims about it if it is VALID."""
    data = out / case.words[1] if case.words[0] == "memorize" else None  # the folder does not hold them
    words = ["check", str(place), "--json", "--seconds", str(CHECK_SECONDS)]
    status, said = run(words + (["--data", str(data)] if data else []), out)
    verdict = json.loads(said)["verdict"] if said else None
    row: Row = {"check": verdict, "check_status": status}
    if verdict == "VALID":
        forged = false_claims(out / place, out / "false")
        row["false"] = {kind: ol.check(folder, FALSE_SECONDS, data=data).verdict for kind, folder in forged}
    return row


def door(folders: Path) -> str:
    """How far the layers in these folders are inside what proofs take."""
    from onelayer.layer.number_range import HIGH, LOW, extents  # older code, which `freeze` may run, has none
    from onelayer.proof.decision import edge_of

    found = list[tuple[float, float, str]]()
    for weights in sorted(folders.glob("*/model.safetensors")):
        layer = ol.load(weights.parent)
        target = getattr(layer, "target", None)  # layers for all lengths have none, and read x̂ itself
        edge = 1.0 if target is None else edge_of(layer.model, target)
        found += [(down, up, weights.parent.name) for _, down, up in extents(layer.model, edge)]
    (down, _, low), (_, up, high) = min(found), max(found, key=lambda one: one[1])
    layers = len({name for *_, name in found})
    return (
        f"Products of weights in {layers} layers are at least 2^{down:.0f} ({low}) and at most 2^{up:.0f} ({high}); "
        f"proofs take 2^-{LOW:.0f} to 2^{HIGH:.0f}."
    )


# -- the record ---------------------------------------------------------------------------------------------------------


def machine() -> dict[str, str]:
    """What decides the last bits of weights: the processor and the libraries."""
    names = ("numpy", "scipy", "torch")
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        said = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        chip = " ".join(said.get(key, "") for key in ("model name", "cpu family", "model", "stepping"))
    except OSError:
        chip = platform.processor()
    return {"processor": chip, "python": platform.python_version()} | {name: version(name) for name in names}


def state_of_source() -> str:
    """A digest of the package's source, of the machine and of this script's reading of a folder."""
    digest = hashlib.sha256(json.dumps(machine()).encode())
    for file in sorted(PACKAGE.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            digest.update(f"{file.relative_to(PACKAGE)}".encode() + file.read_bytes())
    for name in ("golden.py", "golden_worker.py", "false_claims.py"):
        digest.update(Path(__file__).with_name(name).read_bytes())
    return digest.hexdigest()[:12]


def commit() -> str:
    """The commit of the package, with a plus sign if its files are not those of the commit."""
    said = [
        subprocess.run(["git", "-C", str(PACKAGE), *words], capture_output=True, text=True, check=False)
        for words in (["rev-parse", "--short=12", "HEAD"], ["status", "--porcelain", "--", "."])
    ]
    return said[0].stdout.strip() + ("+" if said[1].stdout else "") if said[0].returncode == 0 else "unknown"


def record_text(about: Row, rows: dict[str, Row]) -> str:
    """The record as JSON, one line for each case."""
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row, ensure_ascii=False)}" for name, row in rows.items())
    heads = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about.items())
    return "{\n" + heads + ' "cases": {\n' + lines + "\n }\n}\n"


def rows_of(chosen: Sequence[Case], out: Path) -> dict[str, Row]:
    """The rows of these cases, one after the other."""
    out.mkdir(parents=True, exist_ok=True)
    rows = dict[str, Row]()
    for i, case in enumerate(chosen, 1):
        row = rows[case.name] = measured(case, out)
        said = (row["status"], row.get("verdict"), row.get("bound"), row.get("check"))
        print(f"{i}/{len(chosen)} {case.name}:", *said, file=sys.stderr, flush=True)
    return rows


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("mode", choices=["freeze", "compare"])
    parser.add_argument("--out", type=Path, help="where to build; what is there already is not built again")
    parser.add_argument("--record", type=Path, default=RECORD)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=[case.name for case in cases()])
    args = parser.parse_args()
    chosen = [case for case in cases() if args.only is None or case.name in args.only]
    out = args.out or Path(tempfile.gettempdir()) / f"onelayer-golden-{state_of_source()}"
    print(f"{PACKAGE} at {commit()}, building in {out}", file=sys.stderr, flush=True)
    if args.mode == "freeze":
        if args.out is None:
            parser.error("freeze needs --out DIR")
        held = read(args.record) if args.only and args.record.exists() else {"commit": commit(), "cases": {}}
        if held["commit"] != commit():
            parser.error(f"the record is of {held['commit']}: freeze all of it, or name that commit's source")
        rows = held["cases"] | rows_of(chosen, out)
        args.record.write_text(record_text({"commit": commit(), "machine": machine()}, rows))
        return 0
    record = read(args.record)
    old, same_machine = record["cases"], record["machine"] == machine()
    unknown = [case.name for case in chosen if case.name not in old]
    if unknown:
        parser.error(f"not in the record: {', '.join(unknown)}; freeze it again")
    new = rows_of(chosen, out)
    found = [one for name, row in new.items() for one in differences(name, old[name], row, same_machine)]
    print(
        f"Frozen at {record['commit']}, compared at {commit()}, {'the same' if same_machine else 'another'} machine.\n"
    )
    if found:
        print(markdown(["case", "what", "was", "now", "matters"], [one.cells for one in found]) + "\n")
    print(summary(old, new, found), door(out / "folders"), sep="\n\n")
    return 1 if any(one.matters for one in found) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command resumes")
