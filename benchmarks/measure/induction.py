"""What needs two layers, in one: the price of induction and composition in one layer, and trained layers beside it.

`python benchmarks/measure/induction.py` builds layers of the gallery (`induction` for lengths N, `composition` of functions with
m arguments) and counts their wrong answers. It builds two layers that do induction with one head each, and counts what no single
layer of that many heads can do. It trains stock PyTorch encoders with one and with two layers, equally many
parameters, on the same tasks, for a fixed number of processor seconds each. The tables go into docs/theory/limits.md; `--print`
leaves the page alone, `--only` writes a part of them. About 15 minutes on an idle core.

Training: Adam, a short warm-up and a linear decay of its rate, fresh random sequences in every step, learned positions, LayerNorm
first. Accuracy is that on fresh sequences, at the positions where the right answer is a token.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import onelayer as ol
from lengths import composed, drawn, followers, wrong
from onelayer.common.numbers import at_most
from onelayer.construction.gallery.any_length.induction import Induction
from onelayer.construction.gallery.lower_bounds import heads_needed, induction_limit
from page import markdown, options, page_of, placed
from two_layers import induction as in_two_layers

any_length = ol.gallery.any_length
SEEDS = (0, 1, 2)
VOCABULARY = 8  # of induction
BATCH, RATE, WARM_UP = 64, 3e-3, 100
WIDTH, HEADS = 32, 4  # of the trained encoders
HIDDEN = {1: 200, 2: 64}  # ReLUs for each number of layers: the same number of parameters
JUDGED = 2000  # fresh sequences


def followers_of(x: Tensor, vocabulary: int) -> Tensor:
    """What followed each token the last time; `vocabulary` if it is new."""
    n = x.shape[1]
    earlier = (x[:, :, None] == x[:, None, :]) & torch.ones(n, n, dtype=torch.bool).tril(-1)
    after = (earlier * torch.arange(1, n + 1)).amax(
        dim=-1
    )  # the position after the last occurrence, 0 if there is none
    return torch.where(after > 0, x.gather(1, after.clamp(max=n - 1)), vocabulary)


def composed_of(x: Tensor, size: int) -> Tensor:
    """f(g(x)) at every token; the first `size` tokens list g, the next f."""
    return x[:, size : 2 * size].gather(1, x[:, :size].gather(1, x))


@dataclass(frozen=True)
class Task:
    """Sequences of n tokens, and the right answers at every position."""

    name: str
    n: int
    vocabulary: int
    causal: bool
    answers: Callable[[Tensor, int], Tensor]

    def batch(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x = torch.randint(self.vocabulary, (count, self.n), generator=generator)
        return x, self.answers(x, self.vocabulary)

    def built(self, dtype: str = "float64") -> ol.SequenceLayer:
        return any_length.ENTRIES[self.name](self.n, self.vocabulary, dtype=dtype)


def induction(n: int) -> Task:
    return Task("induction", n, VOCABULARY, True, followers_of)


def composition(size: int) -> Task:
    """g, f, and one more question."""
    return Task("composition", 2 * size + 1, size, False, composed_of)


class Encoder(nn.Module):
    """Stock encoder layers between an embedding with learned positions and a linear read-out."""

    def __init__(self, task: Task, layers: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(task.vocabulary, WIDTH)
        self.positions = nn.Parameter(0.1 * torch.randn(task.n, WIDTH))
        layer = nn.TransformerEncoderLayer(
            WIDTH, HEADS, HIDDEN[layers], dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, layers, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
        self.read = nn.Linear(WIDTH, task.vocabulary + 1)
        self.mask = nn.Transformer.generate_square_subsequent_mask(task.n) if task.causal else None

    def forward(self, x: Tensor) -> Tensor:
        e = self.embedding(x) + self.positions
        return self.read(self.layers(e, mask=self.mask, is_causal=self.mask is not None))


def trained(task: Task, layers: int, seed: int, seconds: float) -> tuple[float, int]:
    """The accuracy after this many processor seconds, and the number of parameters."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Encoder(task, layers)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters())
    started, step = time.process_time(), 0
    while (spent := time.process_time() - started) < seconds:
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, step / WARM_UP) * (1 - spent / seconds)
        x, y = task.batch(BATCH, generator)
        loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        x, y = task.batch(JUDGED, torch.Generator().manual_seed(1000 + seed))
        known = y < task.vocabulary
        right = (model(x).argmax(dim=-1) == y)[known]
    accuracy = float(right.double().mean())
    print(f"{task.name}, n = {task.n}, {layers} layer(s), seed {seed}: {accuracy:.4f}, {step} steps", flush=True)
    return accuracy, sum(p.numel() for p in model.parameters())


def beside(tasks: dict[str, Task], size: str, seconds: float) -> str:
    """A table of accuracies: constructed, one layer trained, two layers trained."""
    rows = []
    for label, task in tasks.items():
        layer = task.built()
        if layer.certificate.verdict != "CERTIFIED":
            raise AssertionError(f"{task} is not proved")
        rows.append([label, "one layer, constructed", f"{layer.parameters:,}", "100 %, proved", ""])
        for layers, name in ((1, "one layer, trained"), (2, "two layers, trained")):
            runs = [trained(task, layers, seed, seconds) for seed in SEEDS]
            found = [100 * accuracy for accuracy, _ in runs]
            error = stdev(found) / len(found) ** 0.5
            each = ", ".join(f"{a:.1f}" for a in found)
            rows.append([label, name, f"{runs[0][1]:,}", f"{mean(found):.1f} ± {error:.1f} %", each])
    return markdown([size, "model", "parameters", "right answers", "for each seed"], rows)


def prices(tasks: dict[str, Task], size: str, right: Callable[[int], Callable[[list], list]], count: int) -> str:
    """A table of what the constructed layers cost, and of their wrong answers to random sequences of all lengths."""
    columns = [size, "heads", "d_model", "ReLUs", "parameters", "seconds to build"]
    columns += ["wrong, float64", "bound, float64", "wrong, float32", "bound, float32"]
    rows = []
    for label, task in tasks.items():
        cells = list[str]()
        for dtype in ("float32", "float64"):
            started = time.process_time()
            layer = task.built(dtype)
            seconds = time.process_time() - started
            bad = wrong(layer, drawn(layer, count, seed=2), right(task.vocabulary))
            cells = [f"{bad} of {count:,}", at_most(layer.certificate.bound, 2), *cells]
        c = layer.model.config
        row = [label, f"{c.heads}", f"{c.d_model}", f"{c.ffn_width}", f"{layer.parameters:,}", f"{seconds:.1f}", *cells]
        print(*row, flush=True)
        rows.append(row)
    return markdown(columns, rows)


def two_layers(count: int) -> str:
    """A table of one layer and two beside each other, and of the two layers' wrong answers to random sequences of all lengths."""
    columns = [
        "N",
        "heads, one layer",
        "parameters, one layer",
        "least heads of one layer (proved)",
        "heads, two layers",
    ]
    columns += ["parameters, two layers", "of them not for positions", "d_model"]
    columns += ["wrong, float64", "bound, float64", "wrong, float32", "bound, float32"]
    rows = []
    for n in (4, 16, 64, 128, 512, 2048):
        one = Induction(n, VOCABULARY).write() if n <= Induction.most else None
        built = ["not built", "–"] if one is None else [f"{one.config.heads}", f"{one.parameter_count:,}"]
        cells, tried = list[str](), max(16, count // max(1, n // 32))  # attention has n² weights
        for dtype in ("float64", "float32"):
            two = in_two_layers(n, VOCABULARY, dtype=dtype)
            bad = wrong(two, drawn(two, tried, seed=3), followers(VOCABULARY))
            cells += [f"{bad} of {tried:,}", at_most(two.bound, 2)]
        least, heads = heads_needed((n - 1) // 2, VOCABULARY - 1), two.first.config.heads + two.second.config.heads
        size = [f"{two.parameters:,}", f"{two.parameters_without_positions}", f"{two.first.config.d_model}"]
        rows.append([f"{n:,}", *built, f"{least}", f"{heads}", *size, *cells])
        print(*rows[-1], flush=True)
    return markdown(columns, rows)


def counted() -> str:
    """A table of lengths from which on a layer with such heads cannot do induction, by counting bits."""
    shapes = {
        "as the two layers above": (2, 3),
        "as a layer of GPT-2 small": (12, 64),
        "as a layer of GPT-3": (96, 128),
    }
    rows = [
        [name, f"{heads}", f"{d_v}", f"{p}", f"{V:,}", f"{induction_limit(heads, d_v, p, V):,}"]
        for name, (heads, d_v) in shapes.items()
        for p in (64, 32, 16)
        for V in (VOCABULARY, 50_257)
        if p < 64 or heads == 2
    ]
    return markdown(["heads", "H", "d_v", "bits p", "tokens V", "impossible from n ="], rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="processor seconds of training for each run")
    parser.add_argument("--sequences", type=int, default=1000, help="random sequences for each constructed layer")
    parser.add_argument("--print", action="store_true", help="print the tables and leave the page alone")
    parser.add_argument("--only", action="append", metavar="TABLE", help="write this table; may be given several times")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tables: dict[str, Callable[[], str]] = {
        "induction price": lambda: prices(
            {f"{n}": induction(n) for n in (4, 8, 16, 32, 64)}, "N", followers, given.sequences
        ),
        "induction in two layers": lambda: two_layers(given.sequences),
        "induction counted": counted,
        "composition price": lambda: prices(
            {f"{m}": composition(m) for m in (2, 4, 8, 16, 32)}, "m", composed, given.sequences
        ),
        "induction trained": lambda: beside({f"{n}": induction(n) for n in (8, 16, 32)}, "n", given.seconds),
        "composition trained": lambda: beside({f"{m}": composition(m) for m in (4, 6, 8)}, "m", given.seconds),
    }
    page = page_of("limits.md")
    text = page.read_text()
    for mark in given.only or tables:
        table = tables[mark]()
        print(mark, table, sep="\n\n", end="\n\n")
        text = placed(text, mark, table)
    if not given.print:
        page.write_text(text)


if __name__ == "__main__":
    main()
