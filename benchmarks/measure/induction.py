"""What needs two layers, in one: the price of induction and composition in one layer, and trained layers beside it.

`python benchmarks/measure/induction.py` builds layers of the gallery (`induction` for lengths N, `composition` of functions with
m arguments) and counts their wrong answers. It trains stock PyTorch encoders with one and with two layers, equally many
parameters, on the same tasks, for a fixed number of processor seconds each. The tables go into docs/theory/limits.md; `--print`
leaves the page alone. About 14 minutes on an idle core.

Training: Adam, a short warm-up and a linear decay of its rate, fresh random sequences in every step, learned positions, LayerNorm
first. Accuracy is that on fresh sequences, at the positions where the right answer is a token.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, stdev

import torch
from torch import Tensor, nn

import onelayer as ol
from lengths import composed, drawn, followers, wrong
from onelayer.common.numbers import at_most
from page import markdown, options, page_of, placed

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


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="processor seconds of training for each run")
    parser.add_argument("--sequences", type=int, default=1000, help="random sequences for each constructed layer")
    parser.add_argument("--print", action="store_true", help="print the tables and leave the page alone")
    given = parser.parse_args()
    torch.set_num_threads(1)
    tables = {
        "induction price": prices({f"{n}": induction(n) for n in (4, 8, 16, 32, 64)}, "N", followers, given.sequences),
        "composition price": prices(
            {f"{m}": composition(m) for m in (2, 4, 8, 16, 32)}, "m", composed, given.sequences
        ),
        "induction trained": beside({f"{n}": induction(n) for n in (8, 16, 32)}, "n", given.seconds),
        "composition trained": beside({f"{m}": composition(m) for m in (4, 6, 8)}, "m", given.seconds),
    }
    page = page_of("limits.md")
    text = page.read_text()
    for mark, table in tables.items():
        print(mark, table, sep="\n\n", end="\n\n")
        text = placed(text, mark, table)
    if not given.print:
        page.write_text(text)


if __name__ == "__main__":
    main()
