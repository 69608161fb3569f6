"""How many samples one layer stores, and what is proved about them: the table of memorize.md.

    python benchmarks/measure/memorize.py            all rows; takes about a minute on one core
    python benchmarks/measure/memorize.py digits     rows whose name contains the word

Residuals are proved for every stored sample and any order of summation; observed errors and wrong answers are counted at the
stored samples. The digits need scikit-learn (`pip install scikit-learn`) and are skipped without it.
"""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from onelayer.common.table import Table
from page import options

Pair = tuple[Any, Any]
HEADER = ("samples", "dtype", "proved residual", "observed", "wrong", "ReLUs", "parameters", "seconds")


def random_sequences(N: int, classes: int) -> Pair:
    """Gaussian sequences of 8 tokens with 4 numbers; random labels, or real answers if there are no classes."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 8, 4))
    return X, rng.integers(0, classes, N) if classes else rng.standard_normal(N)


def random_images(N: int, features: int) -> Pair:
    """Vectors of whole numbers from 0 to 255 with 10 random labels: the size of the usual image sets, without structure."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 256, (N, features)).astype(np.float64), rng.integers(0, 10, N)


def digits() -> Pair:
    from sklearn.datasets import load_digits

    found = load_digits()
    return found.images, found.target


ROWS: list[tuple[str, Callable[[], Pair], str]] = [
    ("10,000 sequences (8, 4), 10 classes", lambda: random_sequences(10_000, 10), "float64"),
    ("digits: 1,797 images as 8 rows, 10 classes", digits, "float64"),
    ("2,000 sequences (8, 4), real answers", lambda: random_sequences(2_000, 0), "float64"),
    ("30,000 sequences (8, 4), 10 classes", lambda: random_sequences(30_000, 10), "float64"),
    ("5,000 vectors of 784 numbers, 10 classes", lambda: random_images(5_000, 784), "float64"),
    ("100 sequences (8, 4), 10 classes", lambda: random_sequences(100, 10), "float32"),
    ("300 sequences (8, 4), 10 classes", lambda: random_sequences(300, 10), "float32"),
    ("1,000 sequences (8, 4), 10 classes", lambda: random_sequences(1_000, 10), "float32"),
    ("100 sequences (8, 4), real answers", lambda: random_sequences(100, 0), "float32"),
]


def row(name: str, pair: Pair, dtype: str) -> tuple[str, ...]:
    X, Y = pair
    start = time.perf_counter()
    try:
        approx = ol.memorize(X, Y, dtype=dtype)
    except ol.InputError as refusal:
        return (name, dtype, f"refused: {refusal.found.split(';')[0]}", "", "", "", "", "")
    seconds = time.perf_counter() - start
    wrong = "" if approx.decoding is None else f"{int((approx.answer(X) != Y).sum())}"
    c, relus = approx.certificate, approx.model.config.ffn_width
    sizes = (f"{relus:,}", f"{approx.parameters:,}", f"{seconds:.1f}")
    return (name, dtype, at_most(c.bound, 2), at_least(c.observed, 2), wrong, *sizes)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("name", nargs="*", help="rows whose name contains one of these")
    words = parser.parse_args().name
    table = Table("Samples stored by one layer", HEADER)
    for name, pair, dtype in ROWS:
        if words and not any(word in name for word in words):
            continue
        try:
            table.rows.append(row(name, pair(), dtype))
        except ModuleNotFoundError as missing:
            print(f"skipped: {name} ({missing.name} is not installed)", file=sys.stderr)
    print(table)


if __name__ == "__main__":
    main()
