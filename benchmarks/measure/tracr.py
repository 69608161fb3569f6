"""Token programs of the gallery beside compilers of Transformers: wrong answers, sizes, proved bounds.

`python benchmarks/measure/tracr.py` builds every program at a few lengths, runs it on 10,000 random sequences (half of them
drawn from few tokens, so that counts are large), in small cases on all sequences, counts wrong answers and writes the tables
into benchmarks/data/tracr.md; `--print` leaves the page alone. Histogram, sort and reverse are also built once for all lengths up
to N and run on 10,000 sequences of random lengths. The peers' figures on that page are not measured here.
"""

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from lengths import NUMBERS, TOKENS, Case, drawn
from lengths import wrong as wrong_at_any_length
from onelayer.approximation import Approximation
from onelayer.common.numbers import at_most
from onelayer.construction.gallery import any_length, tokens
from onelayer.construction.gallery.tokens import (
    CopyWhere,
    FirstOccurrence,
    Histogram,
    Majority,
    Parity,
    Program,
    Reverse,
)
from page import markdown, options, placed

Run = tuple[Callable[..., Approximation], Program]
PAGE = Path(__file__).resolve().parents[1] / "data" / "tracr.md"
SEQUENCES = 10_000
RUNS: list[Run] = [
    *((tokens.histogram, Histogram(n, 26)) for n in (5, 10, 20, 50, 100)),
    *((tokens.reverse_tokens, Reverse(n, 26)) for n in (5, 10, 20, 40, 100, 200)),
    *((tokens.parity, Parity(n)) for n in (5, 20, 40, 80, 128)),
    *((tokens.majority, Majority(n)) for n in (5, 128)),
    *((tokens.first_occurrence, FirstOccurrence(n, 26)) for n in (5, 100)),
    *((tokens.copy_where, CopyWhere(n, 26)) for n in (5, 100)),
]
SMALL: list[Run] = [
    (tokens.histogram, Histogram(6, 4)),
    (tokens.reverse_tokens, Reverse(6, 4)),
    (tokens.first_occurrence, FirstOccurrence(6, 4)),
    (tokens.copy_where, CopyWhere(6, 2)),
    (tokens.parity, Parity(14)),
    (tokens.majority, Majority(14)),
]
CASES = {case.name: case for case in (*NUMBERS, *TOKENS)}
LENGTHS: list[tuple[str, int]] = [
    *(("histogram", N) for N in (10, 100, 1000)),
    *(("sort", N) for N in (4, 8)),
    *(("reverse", N) for N in (10, 20, 40)),
]
COLUMNS = ("task", "n", "tokens", "sequences", "wrong, float64", "wrong, float32", "bound, float64", "bound, float32")
SIZES = ("layers", "heads", "d_model", "ReLUs", "parameters", "seconds to build")


def random_sequences(n: int, count: int) -> np.ndarray:
    """Sequences of tokens below `count`: half uniform, half of at most three different tokens."""
    generator = np.random.default_rng(0)
    uniform = generator.integers(0, count, size=(SEQUENCES // 2, n))
    few = generator.integers(0, count, size=(SEQUENCES // 2, 3))
    return np.concatenate(
        [uniform, np.take_along_axis(few, generator.integers(0, 3, size=(SEQUENCES // 2, n)), axis=1)]
    )


def wrong(approx: Approximation, program: Program, x: np.ndarray) -> int:
    """How many sequences have a wrong answer anywhere."""
    right = program.answers(x)
    right = right.argmax(axis=-1) if program.decoding.kind == "largest" else right
    return int((approx.answer(x).reshape(len(x), -1) != right.reshape(len(x), -1)).any(axis=1).sum())


def rows(runs: list[Run], everything: bool) -> list[list[str]]:
    """A row of the table for every run, on random sequences or on all."""
    found = []
    for entry, program in runs:
        n, count = program.n, program.tokens
        x = np.array(list(itertools.product(range(count), repeat=n))) if everything else random_sequences(n, count)
        start = time.process_time()
        double = entry(**program.parameters)
        seconds = time.process_time() - start
        single = entry(**program.parameters, dtype="float32")
        bounds = [at_most(a.certificate.bound, 2) for a in (double, single)]
        c = double.model.config
        size = (1, c.heads, c.d_model, c.ffn_width, f"{double.parameters:,}", f"{seconds:.2f}")
        mistakes = [wrong(a, program, x) for a in (double, single)]
        row = (program.name, n, count, f"{'all ' if everything else ''}{len(x):,}", *mistakes, *bounds, *size)
        print(*row, flush=True)
        found.append([str(cell) for cell in row])
    return found


def row_for_all_lengths(case: Case, longest: int) -> list[str]:
    """One set of weights at sequences of random lengths up to the longest: wrong answers, or errors above the proved bound."""
    build = any_length.ENTRIES[case.name]
    start = time.process_time()
    double = build(longest)
    seconds = time.process_time() - start
    single = build(longest, dtype="float32", **case.single)
    mistakes = [wrong_at_any_length(a, drawn(a, SEQUENCES, seed=3), case.right) for a in (double, single)]
    bounds = [at_most(a.certificate.bound, 2) for a in (double, single)]
    c, tokens = double.model.config, double.description.vocabulary
    size = (1, c.heads, c.d_model, c.ffn_width, f"{double.parameters:,}", f"{seconds:.2f}")
    row = (case.name, f"all ≤ {longest}", tokens or "numbers", f"{SEQUENCES:,}", *mistakes, *bounds, *size)
    print(*row, flush=True)
    return [str(cell) for cell in row]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--print", action="store_true", help="print, and leave the page as it is")
    parser.add_argument("--lengths", action="store_true", help="only the table for all lengths")
    args = parser.parse_args()
    torch.set_num_threads(1)
    text = {"lengths": markdown(COLUMNS + SIZES, [row_for_all_lengths(CASES[name], N) for name, N in LENGTHS])}
    if not args.lengths:
        for mark, runs, everything in (("random", RUNS, False), ("all", SMALL, True)):
            text[mark] = markdown(COLUMNS + SIZES, rows(runs, everything))
    page = PAGE.read_text()
    for mark, table in text.items():
        page = placed(page, mark, table)
    if not args.print:
        PAGE.write_text(page)


if __name__ == "__main__":
    main()
