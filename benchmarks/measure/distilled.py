"""Two real teachers turned into one layer: fidelity against width, beside the teacher cut to its first layer.

albert   12 passes through one layer's weights (rxnmapper); its inputs are chemical reactions with 15 % of the tokens hidden.
         Students learn its hidden states and have its language head on top; they are judged on reactions with substituents
         that no learned reaction has.
minilm   6 layers; its inputs are English sentences (`benchmarks/data/sentences.py`). Students learn one vector per sentence
         and are judged on sentences of other packages, also by whether a sentence's nearest neighbour is the teacher's.

The baseline is the teacher itself with its first layer (or pass) alone, trained in the same way. Needs the extra `teachers`;
best on a GPU, where matrix products use TF32.

    python benchmarks/measure/distilled.py albert --device cuda --store docs/studies/distilled.csv   stores each row when done
    python benchmarks/measure/distilled.py albert --only 256 --store distilled.csv                   one student
    python benchmarks/measure/distilled.py minilm --tokens tokens.npz --device cuda --store docs/studies/minilm.csv
    python benchmarks/measure/distilled.py albert --steps 1 --store speeds.csv                       times alone
    python benchmarks/measure/distilled.py albert --store docs/studies/distilled.csv --speeds speeds.csv  copies those times
    python benchmarks/measure/distilled.py albert --store docs/studies/distilled.csv --page          writes the page's table
"""

import copy
import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import onelayer as ol
from onelayer.common.table import Table
from onelayer.model.token_encoder import TokenEncoder, pooled
from onelayer.training.distill.teachers import packaged, teacher_of
from page import options, page_of, placed
from reactions import reactions, tokens

PAGE = page_of("distill.md")
CUT = "teacher cut to 1"
JUDGED = 4_000
COLUMNS = ("student", "parameters", "cosine", "agreement", "chosen", "rmse", "spread", "speed-up", "steps", "seconds")
Split = tuple[np.ndarray, np.ndarray]


class Cut(nn.Module):
    """The teacher with its first layer alone, or one pass through its layer."""

    def __init__(self, base: Any, pooled: bool) -> None:
        super().__init__()
        self.base, self.pooled = copy.deepcopy(base).requires_grad_(True), pooled
        self.base.config.num_hidden_layers = self.base.encoder.config.num_hidden_layers = 1
        if hasattr(self.base.encoder, "layer"):
            self.base.encoder.layer = self.base.encoder.layer[:1]

    def forward(self, given: Tensor, there: Tensor) -> Tensor:
        hidden = self.base(input_ids=given, attention_mask=there.long()).last_hidden_state
        return pooled(hidden, there) if self.pooled else hidden


class Albert:
    """Hidden states of 12 passes; `chosen`: the share of hidden tokens that teacher and student fill in alike."""

    teacher, read, passes = "rxnmapper", "hidden", "pass"
    every = (CUT, "64", "128", "256", "512", "1024")
    heading = ("student", "parameters", "cosine", "same token", "same hidden token", "speed-up")

    def __init__(self, _: Path | None) -> None:
        folder = packaged(self.teacher)
        self.learned = tokens(reactions(60_000, False, 0), folder, 0.15, 0)[:2]
        *judged, self.hidden = tokens(reactions(JUDGED, True, 1), folder, 0.15, 1)
        self.judged: Split = (judged[0], judged[1])

    def student(self, name: str) -> nn.Module | None:
        return Cut(teacher_of(packaged(self.teacher), self.read).module.albert, False) if name == CUT else None

    def chosen(self, student: nn.Module, device: str) -> float:
        teacher = teacher_of(packaged(self.teacher), self.read).to(torch.device(device))
        assert teacher.head is not None
        same = count = 0
        for x, there, hidden in parts((*self.judged, self.hidden), device):
            both = (student(x, there), teacher.answers(x, there))
            mine, theirs = (teacher.head(v[hidden]).argmax(dim=-1) for v in both)
            same, count = same + int((mine == theirs).sum()), count + len(mine)
        return same / count


class Minilm:
    """One vector per sentence; `chosen`: the share whose nearest other sentence is the teacher's. `+`: with its embedding."""

    teacher, read, passes = "minilm", "pooled", "layer"
    every = (CUT, "384", "384+", "768+", "1536+")
    heading = ("student", "parameters", "cosine", "same largest number", "same nearest sentence", "speed-up")

    def __init__(self, made: Path | None) -> None:
        if made is None:
            raise SystemExit("minilm needs --tokens, the file that sentences.py writes")
        with np.load(made) as file:
            self.learned = file["learned"].astype(np.int64), file["learned_mask"]
            self.judged: Split = (file["judged"][:JUDGED].astype(np.int64), file["judged_mask"][:JUDGED])

    def student(self, name: str) -> nn.Module | None:
        teacher = teacher_of(packaged(self.teacher), self.read).module
        if name == CUT:
            return Cut(teacher, True)
        return Over(teacher, int(name[:-1])) if name.endswith("+") else None

    def chosen(self, student: nn.Module, device: str) -> float:
        teacher = teacher_of(packaged(self.teacher), self.read).to(torch.device(device))
        both = zip(*((student(x, m), teacher.answers(x, m)) for x, m in parts(self.judged, device)), strict=True)
        nearest = []
        for answers in both:
            unit = nn.functional.normalize(torch.cat(answers), dim=-1)
            near = unit @ unit.T
            nearest.append(near.fill_diagonal_(-1).argmax(dim=-1))
        return float((nearest[0] == nearest[1]).double().mean())


class Over(nn.Module):
    """One stock encoder layer over the teacher's own embedding (words, places, normalisation), all of it trained further."""

    def __init__(self, teacher: Any, d_model: int) -> None:
        super().__init__()
        self.embedding = copy.deepcopy(teacher.embeddings).requires_grad_(True)
        inner = teacher.config.hidden_size
        one = TokenEncoder(
            1, 1, inner, 12, 4 * d_model, d_model, True, 0
        )  # its layer, norm and read-out, freshly drawn
        self.enter = nn.Linear(inner, d_model)
        with torch.no_grad():
            self.enter.weight.copy_(
                torch.randn(d_model, inner, generator=torch.Generator().manual_seed(1)) / inner**0.5
            )
            self.enter.bias.zero_()
        self.layer, self.norm, self.readout = one.layer, one.norm, one.readout

    def forward(self, given: Tensor, there: Tensor) -> Tensor:
        y = self.layer(self.enter(self.embedding(input_ids=given)), src_key_padding_mask=~there)
        return pooled(self.readout(self.norm(y)), there)


def parts(arrays: tuple[np.ndarray, ...], device: str) -> Iterator[list[Tensor]]:
    """Token numbers, their mask and further arrays in batches, without columns that are padding alone."""
    for few in zip(*(torch.from_numpy(a).split(256) for a in arrays), strict=True):
        used = int(few[1].any(dim=0).sum())
        yield [t[:, :used].to(device) for t in few]


def measured(task: Any, name: str, device: str, steps: int) -> dict[str, Any]:
    """One student or the baseline: taught, then judged on sequences of another kind than those it learned from."""
    own = task.student(name)
    d_model = 1 if own is not None else int(name)
    sizes = {"student": own} if own is not None else {"d_model": d_model, "width": 4 * d_model, "heads": 8}
    plan = {"read": task.read, "batch": 256, "steps": steps, "every": max(1, steps // 10)}
    x, there = task.learned
    found = ol.distill(
        packaged(task.teacher), x, mask=there, judge=task.judged, device=device, progress=print, **plan, **sizes
    )
    with torch.no_grad():
        chosen = task.chosen(found.student.to(device).eval(), device)
    f, seconds = found.fidelity, found.history.seconds if found.history else 0.0
    start = f"one layer, d_model {name.rstrip('+')}" + (", the teacher's embedding" if "+" in name else "")
    label = f"{name} {task.passes}" if name == CUT else start
    fidelity = (f.cosine, f.agreement, chosen, f.rmse, f.spread)
    values = (label, found.parameters[1], *fidelity, found.speed_up, steps, seconds)
    return dict(zip(COLUMNS, values, strict=True))


def stored(path: Path) -> list[dict[str, Any]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def table(task: Any, path: Path) -> Table:
    found = Table(f"{task.__name__} as one layer", task.heading)
    rows = sorted(stored(path), key=lambda row: (row["student"].startswith("one"), int(row["parameters"])))
    for row in rows:
        shares = (f"{float(row[name]):.4f}" for name in ("cosine", "agreement", "chosen"))
        found.rows.append((row["student"], f"{int(row['parameters']):,}", *shares, f"{float(row['speed-up']):.1f}"))
    return found


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("teacher", choices=("albert", "minilm"))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=4000)
    parser.add_argument("--only", help="one student: a width, or 'cut'")
    parser.add_argument("--tokens", type=Path, help="for minilm: the file that sentences.py writes")
    parser.add_argument(
        "--store", type=Path, required=True, help="CSV file that gets a row for each student once it is done"
    )
    parser.add_argument("--speeds", type=Path, help="CSV file whose speed-ups replace those of the stored rows")
    parser.add_argument("--page", action="store_true", help="write the table of the stored rows into distill.md")
    args = parser.parse_args()
    kind = {"albert": Albert, "minilm": Minilm}[args.teacher]
    if args.speeds:
        times = {row["student"]: row["speed-up"] for row in stored(args.speeds)}
        rows = [row | {"speed-up": times[row["student"]]} for row in stored(args.store)]
        with args.store.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
        return
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), args.teacher, table(kind, args.store).markdown().strip()))
        return
    torch.set_float32_matmul_precision("high")
    task = kind(args.tokens)
    for name in kind.every if args.only is None else [CUT if args.only == "cut" else args.only]:
        row = measured(task, name, args.device, args.steps)
        fresh = not args.store.exists()
        with args.store.open("a", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            if fresh:
                writer.writeheader()
            writer.writerow(row)
    print(table(kind, args.store))


if __name__ == "__main__":
    main()
