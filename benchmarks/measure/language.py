"""Text in numbers: `python benchmarks/measure/language.py` measures what language.md shows, and --page writes it there.

    built     character and word models of docs/: what is proved, sizes, tokens per second beside a stock encoder of the same size
    learned   a stock encoder trained on the characters of docs/, compared with the trigram model
    chains    layers trained on binary Markov chains (Makkuva et al. 2024), with seeds and standard errors

Ten minutes on one core. The page itself is not part of the corpus.
"""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median, stdev
from tempfile import TemporaryDirectory

import numpy as np
import torch
from torch import Tensor, nn

import onelayer as ol
from markov import SPREAD, STEPS, Chain, trained_on_chain
from onelayer.common.numbers import at_least, at_most
from onelayer.target.ngram import NGram
from page import DOCS, markdown, options, page_of, placed

PAGE = page_of("language.md")
CHAINS = (Chain(0.2, 0.3), Chain(0.3, 0.4), Chain(0.5, 0.8), Chain(0.8, 0.9))
SEEDS = 5
BUILT = (  # tokens, longest, dtype, tolerance
    ("characters", 1000, "float64", 1e-6),
    ("characters", 1000, "float32", 2e-5),
    ("words", 256, "float64", 1e-6),
    ("words", 256, "float32", 3e-3),
)
WINDOW, TRAINED_STEPS = 64, 150  # of the stock encoder


def corpus() -> list[str]:
    return [path.read_text() for path in sorted(DOCS.rglob("*.md")) if path != PAGE and "_build" not in path.parts]


class Stock(nn.Module):
    """Embeddings of tokens and positions, one nn.TransformerEncoder layer with a causal mask, a linear read-out."""

    def __init__(self, vocabulary: int, longest: int, parameters: int, d_model: int) -> None:
        super().__init__()
        rest = vocabulary * (2 * d_model + 1) + longest * d_model + 4 * d_model * (d_model + 1) + 6 * d_model
        width = max(1, (parameters - rest) // (2 * d_model + 1))
        layer = nn.TransformerEncoderLayer(d_model, 4, width, dropout=0.0, batch_first=True)
        self.token, self.position = nn.Embedding(vocabulary, d_model), nn.Embedding(longest, d_model)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.read = nn.Linear(d_model, vocabulary)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool).triu(1)
        return self.read(self.encoder(self.token(x) + self.position.weight[:n], mask=mask, is_causal=True))

    @property
    def parameter_count(self) -> int:
        return sum(p.numel() for p in self.parameters())


def per_second(layer: ol.LanguageModel, stock: Stock) -> list[int]:
    """Tokens per second of both, interleaved: the median of seven."""
    x = torch.randint(len(layer.words), (4, 128), generator=torch.Generator().manual_seed(0))
    features = layer.description.features(x.to(layer.model.W_E.dtype))
    evaluations: list[Callable[[], object]] = [lambda: layer.model(features), lambda: stock(x)]
    times: list[list[float]] = [[], []]
    with torch.no_grad():
        for _ in range(8):
            for evaluate, found in zip(evaluations, times, strict=True):
                started = time.perf_counter()
                evaluate()
                found.append(time.perf_counter() - started)
    return [round(x.numel() / median(found[1:])) for found in times]


def built(texts: list[str]) -> str:
    """One row per model: what is proved and how large and fast it is, then the stock encoder of its size."""
    rows = []
    for tokens, longest, dtype, tolerance in BUILT:
        layer = ol.language(texts, 3, tokens=tokens, longest=longest, dtype=dtype, tolerance=tolerance)
        V, c = len(layer.words), layer.certificate
        with TemporaryDirectory() as place:
            size = sum(path.stat().st_size for path in layer.save(Path(place) / "lm").iterdir())
        stock = Stock(V, longest, layer.parameters, 256 if tokens == "characters" else 512).to(layer.model.W_E.dtype)
        speeds = per_second(layer, stock.eval())
        rows.append(
            (
                f"{tokens}, {dtype}",
                f"{V:,}",
                f"{layer.facts.units:,}",
                at_most(c.bound, 2),
                f"{at_least(c.observed, 2)} at {c.observed_points:,}",
                f"{layer.parameters:,} ({stock.parameter_count:,})",
                f"{size / 1e6:.1f} ({stock.parameter_count * layer.model.W_E.element_size() / 1e6:.1f})",
                f"{speeds[0]:,} ({speeds[1]:,})",
            )
        )
        print(rows[-1], flush=True)
    columns = [
        "model",
        "tokens",
        "hidden units",
        "total variation (proved)",
        "observed, contexts",
        "parameters (stock)",
    ]
    return markdown([*columns, "megabytes (stock)", "tokens per second (stock)"], rows)


def learned(texts: list[str]) -> str:
    """The stock encoder of the size of the character model, trained by Adam on windows of the corpus, seed by seed."""
    ngram = NGram.of(texts, 3, "characters")
    number = {word: i for i, word in enumerate(ngram.words)}
    stream = np.array([number[c] for text in texts for c in text])
    places = np.random.default_rng(0).integers(WINDOW, len(stream), size=1000)
    contexts = np.stack([stream[i - WINDOW : i] for i in places])
    p = np.stack([ngram.probabilities(context.tolist()) for context in contexts])
    rows = []
    for seed in range(3):
        torch.manual_seed(seed)
        rng, model = np.random.default_rng(seed), Stock(len(ngram.words), WINDOW, 1_750_000, 256)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=TRAINED_STEPS)
        started = time.perf_counter()
        for _ in range(TRAINED_STEPS):
            starts = rng.integers(0, len(stream) - WINDOW - 1, size=16)
            x = torch.from_numpy(np.stack([stream[i : i + WINDOW + 1] for i in starts]))
            loss = nn.functional.cross_entropy(model(x[:, :-1]).flatten(0, 1), x[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
        seconds = time.perf_counter() - started
        with torch.no_grad():
            q = torch.softmax(model(torch.from_numpy(contexts))[:, -1].double(), dim=-1).numpy()
        apart = np.abs(p - q).sum(axis=1) / 2
        follows = stream[places]
        rows.append((apart.mean(), apart.max(), -np.log(q[np.arange(len(q)), follows]).mean(), seconds))
        print(rows[-1], flush=True)
    apart, worst, loss, seconds = (
        with_error([row[j] for row in rows], digits) for j, digits in enumerate((3, 3, 3, 0))
    )
    table = [
        constructed(texts, contexts, p, stream[places]),
        (f"stock encoder, trained for {TRAINED_STEPS} steps, 3 seeds", apart, worst, loss, seconds),
    ]
    columns = ["model", "total variation, mean", "total variation, largest of 1,000", "nats per character", "seconds"]
    return markdown(columns, table)


def constructed(texts: list[str], contexts: np.ndarray, p: np.ndarray, follows: np.ndarray) -> tuple[str, ...]:
    """The same row for the layer that is built."""
    started = time.perf_counter()
    layer = ol.language(texts, 3, longest=WINDOW)
    seconds = time.perf_counter() - started
    q = torch.softmax(torch.from_numpy(layer(contexts)[:, -1]), dim=-1).numpy()
    apart = np.abs(p - q).sum(axis=1) / 2
    loss = -np.log(q[np.arange(len(q)), follows]).mean()
    return "our layer, built", f"{apart.mean():.1e}", f"{apart.max():.1e}", f"{loss:.3f}", f"{seconds:.0f}"


def chains() -> str:
    """One row per chain, with and without tying; then tied again, from larger weights."""
    rows = []
    cases = [(chain, tied, SPREAD) for chain in CHAINS for tied in (True, False)]
    for chain, tied, spread in [*cases, (Chain(0.5, 0.8), True, 0.1)]:
        found = trained_on_chain(chain, tied, SEEDS, spread=spread)
        stuck = sum(outcome.share < 0.5 for outcome in found)
        loss = with_error([outcome.loss for outcome in found], 4)
        entropies = (f"{chain.unigram_entropy:.4f}", f"{chain.entropy_rate:.4f}")
        tying = "yes" if tied else "no"
        rows.append((f"{chain.p:g}, {chain.q:g}", tying, f"{spread:g}", *entropies, loss, f"{stuck} of {SEEDS}"))
        print(rows[-1], flush=True)
    columns = ["p, q", "tied", "first weights", "unigram entropy", "entropy rate", f"loss after {STEPS:,} steps"]
    return markdown([*columns, "at the unigram"], rows)


def with_error(values: list[float], digits: int = 3) -> str:
    """Mean ± standard error."""
    return f"{mean(values):.{digits}f} ± {stdev(values) / len(values) ** 0.5:.{digits}f}"


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into the page")
    parser.add_argument("--only", choices=["built", "learned", "chains"], help="measure one of the tables")
    chosen = parser.parse_args()
    texts = corpus()
    parts: dict[str, Callable[[], str]] = {
        "built": lambda: built(texts),
        "learned": lambda: learned(texts),
        "chains": chains,
    }
    for name in [chosen.only] if chosen.only else list(parts):
        table = parts[name]()
        print(table)
        if chosen.page:
            PAGE.write_text(placed(PAGE.read_text(), name, table))


if __name__ == "__main__":
    main()
