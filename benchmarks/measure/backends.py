"""Rounding bounds of other programs and kernels, held against what these compute, with zero slack.

    python benchmarks/measure/backends.py                  the kernels of this CPU; --page writes the table into guarantees.md
    python benchmarks/measure/backends.py --device cuda --json gpu.json          those of an NVIDIA card, about three minutes
    python benchmarks/measure/backends.py --device cuda --from gpu.json --page   its table into the page, elsewhere

Each program evaluates 10^8 scores (--scores) of layers that are made to be difficult, at points that are: `tests/support/
backend_hunting.py` says how. Exits with 1 after a violation. torch's flash attention on a card takes float16 and bfloat16 alone,
and no layer here is in these; float32 has its memory-efficient kernel, for heads whose width is a multiple of 4, and `math`.
"""

import json
import platform
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from backend_hunting import exp_units, hunt
from backend_programs import Program, kernel_refuses, programs
from onelayer.common.numbers import at_least
from page import markdown, options, page_of, placed

PAGE = page_of("guarantees.md")
PROBED = 10**6  # arguments of the exponential
COLUMNS = [
    "program",
    "dtype",
    "scores",
    "answers",
    "violations",
    "largest share of the bound",
    "units of exp: assumed",
    "seen",
]


def row(program: Program, dtype: torch.dtype, scores: int, seed: int) -> dict[str, object]:
    name, started = str(dtype).removeprefix("torch."), time.perf_counter()
    units = exp_units(program, dtype, PROBED, seed)
    found = hunt(program, dtype, scores, seed)
    assumed = program.backend.exp_ulps[name]
    return {
        "program": program.name,
        "dtype": name,
        "scores": found.scores,
        "answers": found.answers,
        "violations": found.violations + (units > assumed + 1),  # the division may add 1
        "share": found.largest,
        "worst": found.worst,
        "assumed": assumed,
        "seen": units,
        "seconds": time.perf_counter() - started,
    }


def cells(r: dict) -> list[str]:
    counts = [f"{r['scores']:,}", f"{r['answers']:,}", str(r["violations"])]
    return [r["program"], r["dtype"], *counts, at_least(r["share"], 2), f"{r['assumed']:g}", at_least(r["seen"], 3)]


def measured(device: str, scores: int, seed: int, only: str) -> dict[str, object]:
    """All programs of a device, one row each; printed as they come."""
    rows, failed = [], 0
    for program in programs(device):
        for dtype in (torch.float32, torch.float64):
            if only not in program.name or str(dtype).removeprefix("torch.") not in program.backend.exp_ulps:
                continue
            try:
                rows.append(row(program, dtype, scores, seed))
            except RuntimeError as error:
                absent = kernel_refuses(error)
                failed += not absent
                print(program.name, dtype, "is not available here" if absent else f"FAILED: {error}", flush=True)
                continue
            print(*cells(rows[-1]), f"{rows[-1]['seconds']:.0f} s", rows[-1]["worst"], sep="  ", flush=True)
    return {"where": where(device), "rows": rows, "failed": failed}


def where(device: str) -> str:
    """The machine and the versions."""
    if device != "cpu":
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    import onnxruntime

    capability = torch.backends.cpu.get_cpu_capability()
    return f"{platform.machine()} with {capability}, torch {torch.__version__}, ONNX Runtime {onnxruntime.__version__}"


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--scores", type=float, default=1e8, help="evaluated by every program, at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="programs whose name contains this")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--from", type=Path, nargs="+", dest="sources", help="take the numbers from such files")
    parser.add_argument("--page", action="store_true", help="write the table into guarantees.md")
    args = parser.parse_args()
    given = [json.loads(path.read_text()) for path in args.sources or ()]
    found = given or [measured(args.device, int(args.scores), args.seed, args.only)]
    rows, failed = [r for one in found for r in one["rows"]], sum(one.get("failed", 0) for one in found)
    table = markdown(COLUMNS, [cells(r) for r in rows]) + f"\n\n{found[0]['where']}."
    print(table)
    if args.json:
        args.json.write_text(json.dumps({"where": found[0]["where"], "rows": rows, "failed": failed}, indent=1))
    if args.page:
        mark = "backends" if args.device == "cpu" else "backends-gpu"
        PAGE.write_text(placed(PAGE.read_text(), mark, table))
    return 1 if failed or any(r["violations"] for r in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
