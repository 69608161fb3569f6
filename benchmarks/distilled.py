"""The 12-layer ALBERT of rxnmapper turned into one layer: fidelity against width, beside the teacher cut to its first layer.

The teacher (735,567 numbers, one layer's weights used twelve times) reads reactions with 15 % of the tokens hidden. Students
learn its hidden states, with its own language head on top; the baseline is the teacher itself with 1 of its 12 passes, trained
in the same way. All are judged at reactions with substituents that were never learned from. Needs the extra `teachers`; best on a
GPU, where products are shortened to TF32.

    python benchmarks/distilled.py --device cuda --store distilled.csv     every student; rows go to the file as they are done
    python benchmarks/distilled.py --only 256 --store distilled.csv        one of them
    python benchmarks/distilled.py --store docs/studies/distilled.csv --page    the table of the docs, from the file
"""

import argparse
import copy
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import onelayer as ol
from onelayer.distill.teachers import packaged, teacher_of
from onelayer.table import Table
from page import placed
from reactions import reactions, tokens

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "distill.md"
LEARNED, JUDGED, HIDDEN = 60_000, 4_000, 0.15
WIDTHS = (64, 128, 256, 512, 1024)  # d_model; the feed-forward network is four times as wide
HEADS = 8
COLUMNS = (
    "student",
    "parameters",
    "cosine",
    "agreement",
    "agreement hidden",
    "rmse",
    "spread",
    "speed-up",
    "steps",
    "seconds",
)


class Cut(nn.Module):
    """The teacher with so many of its passes."""

    def __init__(self, teacher: Any, passes: int) -> None:
        super().__init__()
        self.base = copy.deepcopy(teacher.albert).requires_grad_(True)
        self.base.config.num_hidden_layers = self.base.encoder.config.num_hidden_layers = passes

    def forward(self, given: Tensor, there: Tensor) -> Tensor:
        return self.base(input_ids=given, attention_mask=there.long()).last_hidden_state


def agreement(student: nn.Module, folder: Path, judged: tuple[Tensor, Tensor, Tensor], device: str) -> float:
    """The share of hidden tokens that teacher and student would fill in alike."""
    teacher = teacher_of(folder, "hidden").to(torch.device(device))
    assert teacher.head is not None
    student.to(device).eval()
    same = count = 0
    with torch.no_grad():
        for x, there, hidden in zip(*(t.split(256) for t in judged), strict=True):
            x, there, hidden = (t.to(device) for t in (x, there, hidden))
            answers = (teacher.head(v[hidden]).argmax(dim=-1) for v in (student(x, there), teacher.answers(x, there)))
            mine, theirs = answers
            same, count = same + int((mine == theirs).sum()), count + len(mine)
    return same / count


def measured(name: str, device: str, steps: int) -> dict[str, Any]:
    """One student, or the baseline: taught, and judged at reactions of substituents it has never seen."""
    folder = packaged("rxnmapper")
    x, there, _ = tokens(reactions(LEARNED, False, 0), folder, HIDDEN, 0)
    judge = tokens(reactions(JUDGED, True, 1), folder, HIDDEN, 1)
    wishes: dict[str, Any] = {
        "read": "hidden",
        "heads": HEADS,
        "batch": 256,
        "steps": steps,
        "every": max(1, steps // 10),
    }
    if name == "teacher cut to 1 pass":
        wishes["student"] = Cut(teacher_of(folder, "hidden").module, 1)
    else:
        wishes |= {"d_model": int(name), "width": 4 * int(name)}
    found = ol.distill(folder, x, mask=there, judge=judge[:2], device=device, progress=print, **wishes)
    f, seconds = found.fidelity, found.history.seconds if found.history else 0.0
    at_hidden = agreement(found.student, folder, tuple(torch.from_numpy(t) for t in judge), device)  # type: ignore[arg-type]
    label = name if not name.isdigit() else f"one layer, d_model {name}"
    values = (
        label,
        found.parameters[1],
        f.cosine,
        f.agreement,
        at_hidden,
        f.rmse,
        f.spread,
        found.speed_up,
        steps,
        seconds,
    )
    return dict(zip(COLUMNS, values, strict=True))


def stored(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(newline="") as file:
        yield from csv.DictReader(file)


def table(path: Path) -> Table:
    found = Table(
        "ALBERT (12 passes) as one layer",
        ("student", "parameters", "cosine", "same token", "same hidden token", "speed-up"),
    )
    rows = sorted(stored(path), key=lambda row: (row["student"].startswith("one"), int(row["parameters"])))
    for row in rows:
        shares = (f"{float(row[name]):.4f}" for name in ("cosine", "agreement", "agreement hidden"))
        found.rows.append((row["student"], f"{int(row['parameters']):,}", *shares, f"{float(row['speed-up']):.1f}"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--only", help="a width, or 'cut'")
    parser.add_argument("--store", type=Path, required=True, help="CSV file, a row for each student as it is done")
    parser.add_argument("--page", action="store_true", help="put the table of the file into docs/distill.md")
    asked = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    if not asked.page:
        every = ["teacher cut to 1 pass", *map(str, WIDTHS)]
        chosen = every if asked.only is None else [every[0] if asked.only == "cut" else asked.only]
        for name in chosen:
            row = measured(name, asked.device, asked.steps)
            fresh = not asked.store.exists()
            with asked.store.open("a", newline="") as file:
                writer = csv.DictWriter(file, COLUMNS)
                if fresh:
                    writer.writeheader()
                writer.writerow(row)
    print(table(asked.store))
    if asked.page:
        PAGE.write_text(placed(PAGE.read_text(), "albert", table(asked.store).markdown().strip()))


if __name__ == "__main__":
    main()
