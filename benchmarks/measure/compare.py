"""What construction buys over training on three targets: `python benchmarks/measure/compare.py` writes training.md's tables.

For every target: (a) everything with as many parameters as the constructed layer; (b) how long construction takes to reach
the best trained error, beside how long that training took. `--growth` runs the paper's experiment, error against heads and
width, on the first target, and also draws a picture. Seconds are processor seconds on one thread.
"""

import math
import time
from pathlib import Path

import torch

import onelayer as ol
from onelayer.common.numbers import at_least
from onelayer.experiments.compare import Comparison, Entrant
from onelayer.views.comparison import comparison_figure, write_page
from page import markdown, options, page_of, placed
from targets import named

PAGE = page_of("training.md")
TARGETS = (("sin-sum", 1e-6), ("franke", 1e-5), ("sine-of-product", 1e-5))
GROWTH = (1, 2, 4, 8, 16)
SAMPLES = (100, 300, 1000, 3000)
DESCENT = ("trained", "stock Transformer", "tanh-MLP, Adam", "ReLU-MLP, Adam", "KAN")  # trained by gradient descent


def descended(found: Comparison) -> list[Entrant]:
    """Everything that gradient descent trained from random weights."""
    return [e for e in found.entrants if e.name.startswith(DESCENT) and not math.isnan(e.observed)]


def reached(name: str, error: float) -> tuple[float, float]:
    """(processor seconds, observed error) of a construction with that error as its tolerance."""
    started = time.process_time()
    built = ol.build(named(name).target, tolerance=error)
    return time.process_time() - started, built.certificate.observed


def row(name: str, found: Comparison) -> list[str]:
    """(a) and (b) for one target."""
    ours, best = found.entrants[0], min(descended(found), key=lambda e: e.observed)
    marquardt = next((e for e in found.entrants if "Marquardt" in e.name), None)
    seconds, _ = reached(name, best.observed)
    beside = f"{marquardt.observed / ours.observed:.2g}" if marquardt and not math.isnan(marquardt.observed) else "–"
    return [
        named(name).title,
        f"{ours.parameters:,}",
        at_least(ours.observed, 2),
        f"{at_least(best.observed, 2)} ({best.name})",
        f"{best.observed / ours.observed:.2g}",
        beside,
        f"{seconds:.2f}",
        f"{best.seconds:.1f}",
        f"1/{best.seconds / max(seconds, 1e-3):.0f}",
    ]


def entrants_table(rows: tuple[Entrant, ...]) -> str:
    columns = ["", "parameters", "seconds", "observed error", "RMSE", "bound (proved)", "points/s", "note"]
    return markdown(columns, [[str(cell) for cell in e.cells] for e in rows])


def learned() -> str:
    """The default layer trained on sin x1 + sin x2 with 10,000 steps of Adam, on all cores, in wall seconds."""
    started = time.perf_counter()
    found = ol.train(named("sin-sum").target, steps=10_000)
    seconds = time.perf_counter() - started
    numbers = f"{found.parameters:,} parameters reach an observed error of {at_least(found.certificate.observed, 2)}"
    return f"{numbers} in {seconds:.0f} wall seconds on {torch.get_num_threads()} threads."


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="at most this long for each training")
    parser.add_argument("--growth", action="store_true", help="only the paper's experiment, and its picture")
    parser.add_argument("--learn", action="store_true", help="only what the default layer learns in 10,000 steps")
    parser.add_argument("--plot", default="growth.html", metavar="HTML")
    args = parser.parse_args()
    page = PAGE.read_text()
    if args.learn:
        text = learned()
        print(text)
        PAGE.write_text(placed(page, "learned", text))
        return
    torch.set_num_threads(1)
    if args.growth:
        entry = named("sin-sum")
        found = ol.compare(
            entry.target, None, 1e-4, seconds=args.seconds, optimizers=("adam",), peers=False,
            growth=GROWTH, samples=SAMPLES,
        )  # fmt: skip
        print(found)
        write_page(comparison_figure(found), Path(args.plot))
        page = placed(page, "growth", entrants_table(found.growth))
        PAGE.write_text(placed(page, "samples", entrants_table(found.samples)))
        return
    rows, texts = [], []
    for name, tolerance in TARGETS:
        found = ol.compare(named(name).target, None, tolerance, seconds=args.seconds)
        print(found, flush=True)
        rows.append(row(name, found))
        print("; ".join(rows[-1]), flush=True)
        texts.append(f"### {named(name).title}, tolerance {tolerance:g}\n\n{entrants_table(found.entrants)}")
    columns = ["target", "parameters", "constructed", "best by descent", "best / ours", "LM / ours"]
    columns += ["seconds to build that error", "seconds it was trained", "ratio"]
    page = placed(page, "summary", markdown(columns, rows))
    PAGE.write_text(placed(page, "entrants", "\n\n".join(texts)))


if __name__ == "__main__":
    main()
