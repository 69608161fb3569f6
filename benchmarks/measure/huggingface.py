"""Layers of every kind as stock models of Hugging Face's `transformers`: the largest difference seen, and the proved bound.

`--page` writes the table into huggingface.md.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import onelayer as ol
from onelayer.approximation import Approximation
from onelayer.common.numbers import at_most
from onelayer.sequence_layer import SequenceLayer
from page import markdown, options, page_of, placed

PAGE = page_of("huggingface.md")
POINTS = 10_000
TEXT = "the cat sat on the mat. the dog sat on the cat. a cat and a dog ran."
SINES = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)
SQUARE = [(0, 1)] * 2
any_length = ol.gallery.any_length
KINDS: dict[str, Callable[[str], Approximation | SequenceLayer]] = {
    "gates": lambda d: ol.build(*SINES, 1e-3, dtype=d),
    "several outputs": lambda d: ol.build("x1*x2; x1 - x2**2", SQUARE, 0.01, dtype=d),
    "wide layout": lambda d: ol.build("sin(x1)*x2", SQUARE, 0.05, layout="wide", dtype=d),
    "memory tokens": lambda d: ol.build("exp(-x1)*x2", SQUARE, 1e-2, construction="memory", dtype=d),
    "max-heads": lambda d: ol.build("abs(x1 - x2)", SQUARE, 1e-2, dtype=d),
    "hinges": lambda d: ol.build("abs(x1 - 0.3)", [(0, 1)], 0.1, method="solved", hinges=4, dtype=d),
    "composed": lambda d: ol.build("sqrt((a - b)^2 + (c - d)^2)", "1:5", 0.05, dtype=d),
    "sorting": lambda d: ol.gallery.sort(3, tolerance=1e-4, dtype=d),
    "stored samples": lambda d: ol.memorize(np.arange(12.0).reshape(6, 2), np.arange(6) % 3, dtype=d),
    "trained, pre-norm": lambda d: ol.train(*SINES, steps=5, width=16, norm="pre", dtype=d),
    "trained, post-norm": lambda d: ol.train(*SINES, steps=5, width=16, norm="post", dtype=d),
    "tokens": lambda d: ol.gallery.histogram(5, 4, dtype=d),
    "tokens, one answer": lambda d: ol.gallery.majority(5, dtype=d),
    "any length": lambda d: any_length.maximum(12, tolerance=1e-4, dtype=d),
    "sets": lambda d: ol.set_function("sqrt(mean(x^2))", domain=(0.0, 1.0), tolerance=0.05, longest=12, dtype=d),
    "any length, tokens": lambda d: any_length.histogram(12, dtype=d),
    "causal": lambda d: any_length.running_max(12, tolerance=1e-4, dtype=d),
    "causal, tokens": lambda d: any_length.balanced(12, dtype=d),
    "causal, one length": lambda d: any_length.depth(12, dtype=d).at_length(7),
    "text, words": lambda d: ol.language(TEXT, tokens="words", tolerance=1e-3, longest=20, dtype=d),
    "text, characters": lambda d: ol.language(TEXT, order=2, tolerance=1e-3, longest=50, dtype=d),
}


def row(kind: str, dtype: str, folder: Path) -> list[str]:
    seen = ol.export(KINDS[kind](dtype), folder, to="hf", points=POINTS)
    model = seen.notes[0].split(",")[0]
    bound = "–" if seen.bound is None else at_most(seen.bound)
    return [kind, f"`{model}`", dtype, f"{seen.difference:.2g}", bound]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the table into huggingface.md")
    args = parser.parse_args()
    cells = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            for dtype in ("float64", "float32"):
                cells.append(row(kind, dtype, Path(folder) / f"{len(cells)}"))
                print(*cells[-1], sep="  ", flush=True)
    columns = ["layer", "opens as", "dtype", "observed difference", "bound on what LayerNorm changes (proved)"]
    if args.page:
        PAGE.write_text(placed(PAGE.read_text(), "kinds", markdown(columns, cells)))


if __name__ == "__main__":
    main()
