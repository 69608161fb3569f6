"""The gallery for all lengths: one set of weights for each task, tried at random lengths and at all small sequences.

`python benchmarks/measure/lengths.py` runs every task on 10,000 random sequences of random lengths, 1, N − 1 and N among them
(half of them drawn from few different tokens or numbers), and on all sequences of up to a few tokens, in float64 and in float32.
It counts wrong answers, or errors above the proved bound. N + 1 must be refused. The right answers are computed here, one
sequence at a time, by other code than the gallery's. The table goes into docs/build/sequences.md; `--print` leaves it alone.
"""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import onelayer as ol
from onelayer.common.numbers import at_least, at_most
from page import markdown, options, page_of, placed

any_length = ol.gallery.any_length
Row = list[Any]


def running(pick: Callable[[Row], Any]) -> Callable[[Row], Row]:
    return lambda s: [pick(s[: i + 1]) for i in range(len(s))]


def last_written(keys: int, values: int) -> Callable[[Row], Row]:
    def answers(s: Row) -> Row:
        memory, found = dict[int, int](), []
        for t in s:
            key = t // values if t < keys * values else t - keys * values
            if t < keys * values:
                memory[key] = t % values
            found.append(memory.get(key, values))
        return found

    return answers


def balanced_so_far(s: Row) -> Row:
    depth, never, found = 0, True, []
    for t in s:
        depth += 1 - 2 * t
        never &= depth >= 0
        found.append(int(never and depth == 0))
    return found


def followers(vocabulary: int) -> Callable[[Row], Row]:
    """What followed the token here the last time."""

    def answers(s: Row) -> Row:
        seen = [[j for j in range(i) if s[j] == s[i]] for i in range(len(s))]
        return [s[before[-1] + 1] if before else vocabulary for before in seen]

    return answers


def composed(size: int) -> Callable[[Row], Row]:
    """f(g(x)) from the lists of their values at the start."""

    def answers(s: Row) -> Row:
        tables = (s[:size], s[size : 2 * size])
        g, f = (dict(enumerate(t)) for t in tables)
        return [f.get(g.get(x, size), size) for x in s]

    return answers


@dataclass(frozen=True)
class Case:
    """A task, and the right answers to one sequence."""

    name: str
    right: Callable[[Row], Any]
    single: dict[str, Any] = field(default_factory=dict)  # options in float32
    small: dict[str, Any] = field(default_factory=dict)  # options for all small sequences; empty for numbers
    right_if_small: Callable[[Row], Any] | None = None  # where the options change the answers


NUMBERS = [
    Case("mean", lambda s: np.mean(np.array(s, dtype=np.longdouble))),
    Case("running_mean", lambda s: np.cumsum(np.array(s, dtype=np.longdouble)) / np.arange(1, len(s) + 1)),
    Case("maximum", max, {"tolerance": 1e-3}),
    Case("minimum", min, {"tolerance": 1e-3}),
    Case("running_max", running(max), {"tolerance": 1e-3}),
    Case("shift", lambda s: [0.0, *s[:-1]]),
    Case("sort", sorted, {"tolerance": 0.05}),
]
TOKENS = [
    Case("histogram", lambda s: [s.count(t) for t in s], small={"longest": 6, "vocabulary": 4}),
    Case("majority", lambda s: int(2 * sum(s) > len(s)), small={"longest": 12}),
    Case("first_occurrence", lambda s: [s.index(t) for t in s], small={"longest": 6, "vocabulary": 4}),
    Case(
        "look_up", last_written(10, 10), small={"longest": 5, "keys": 2, "values": 2}, right_if_small=last_written(2, 2)
    ),
    Case("depth", running(lambda s: s.count(0) - s.count(1)), small={"longest": 12}),
    Case("balanced", balanced_so_far, small={"longest": 10}),
    Case("reverse", lambda s: s[::-1], small={"longest": 6, "vocabulary": 3}),
    Case("induction", followers(14), small={"longest": 7, "vocabulary": 3}, right_if_small=followers(3)),
    Case("composition", composed(8), small={"longest": 8, "vocabulary": 3}, right_if_small=composed(3)),
]
COLUMNS = ["task", "N", "heads", "ReLUs", "parameters", "sequences", "wrong, float64", "bound, float64"]
COLUMNS += ["wrong, float32", "bound, float32", "seconds to build"]


def drawn(layer: ol.SequenceLayer, count: int, seed: int) -> list[Row]:
    """Random sequences: lengths 1, N − 1, N and random ones, half of them short; half of the sequences repeat few values."""
    rng, N = np.random.default_rng(seed), layer.longest
    lengths = np.where(np.arange(count) % 2, rng.integers(1, N + 1, count), rng.integers(1, min(N, 20) + 1, count))
    lengths[:4] = [1, max(1, N - 1), N, N]
    found = []
    for i, n in enumerate(lengths):
        if layer.description.vocabulary is not None:
            few = rng.integers(0, layer.description.vocabulary, 3)
            s = rng.choice(few, n) if i % 4 < 2 else rng.integers(0, layer.description.vocabulary, n)
        else:
            s = rng.choice(rng.random(3), n) if i % 4 < 2 else rng.random(n)
            s = s.astype(np.float32).astype(np.float64)
        found.append(s.tolist())
    return found


def wrong(layer: ol.SequenceLayer, sequences: list[Row], right: Callable[[Row], Any]) -> int:
    """How many sequences are answered wrongly, or with an error above the proved bound."""
    count = 0
    for n in sorted({len(s) for s in sequences}):  # one length at a time: no padding
        same = [s for s in sequences if len(s) == n]
        given = layer(np.array(same)) if layer.description.decoding is None else layer.answer(np.array(same))
        for s, found in zip(same, given, strict=True):
            gap = np.abs(np.asarray(found, dtype=np.longdouble) - np.asarray(right(s), dtype=np.longdouble)).max()
            count += not gap <= (layer.certificate.bound if layer.description.decoding is None else 0)
    return count


def padded_wrong(layer: ol.SequenceLayer, sequences: list[Row], right: Callable[[Row], Any]) -> int:
    """The same for sequences of different lengths in one padded batch."""
    given = layer(sequences) if layer.description.decoding is None else layer.answer(sequences)
    bound = layer.certificate.bound if layer.description.decoding is None else 0
    gaps = (
        np.abs(np.asarray(y, float) - np.asarray(right(s), float)).max() for s, y in zip(sequences, given, strict=True)
    )
    return sum(not gap <= bound for gap in gaps)


def refuses_longer(layer: ol.SequenceLayer) -> bool:
    try:
        layer([0.0] * (layer.longest + 1))
    except ol.InputError:
        return True
    return False


def small_sequences(layer: ol.SequenceLayer) -> list[Row]:
    """All sequences of up to N tokens."""
    tokens = range(layer.description.vocabulary or 0)
    return [list(s) for n in range(1, layer.longest + 1) for s in itertools.product(tokens, repeat=n)]


def row(case: Case, count: int) -> list[str]:
    """One row of the table."""
    build = getattr(any_length, case.name)
    cells, seen = dict[str, str](), 0
    for dtype in ("float32", "float64"):
        more = case.single if dtype == "float32" else {}
        started = time.perf_counter()
        layer = build(dtype=dtype, **more)
        seconds = time.perf_counter() - started
        sequences = drawn(layer, count, seed=1)
        bad = wrong(layer, sequences, case.right) + padded_wrong(layer, sequences[:40], case.right)
        seen = len(sequences)
        if case.small:
            small = build(dtype=dtype, **case.small)
            every = small_sequences(small)
            bad, seen = bad + wrong(small, every, case.right_if_small or case.right), seen + len(every)
        if not refuses_longer(layer):
            raise AssertionError(f"{case.name} answers a sequence that is too long")
        verdict = layer.certificate.verdict
        cells[dtype] = f"{bad}" if verdict == "CERTIFIED" else f"{bad} ({verdict})"
        cells[f"bound {dtype}"] = at_most(layer.certificate.bound, 2)
        print(case.name, dtype, "wrong:", bad, "observed:", at_least(layer.certificate.observed, 2), flush=True)
    c = layer.model.config
    sizes = [f"{layer.longest:,}", f"{c.heads:,}", f"{c.ffn_width:,}", f"{layer.parameters:,}", f"{seen:,}"]
    errors = [cells["float64"], cells["bound float64"], cells["float32"], cells["bound float32"]]
    return [f"`{case.name}`", *sizes, *errors, f"{seconds:.1f}"]


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--sequences", type=int, default=10_000, help="random sequences for each task")
    parser.add_argument("--print", action="store_true", help="print the table and leave the page alone")
    given = parser.parse_args()
    table = markdown(COLUMNS, [row(case, given.sequences) for case in (*NUMBERS, *TOKENS)])
    if given.print:
        print(table)
        return
    page = page_of("sequences.md")
    page.write_text(placed(page.read_text(), "lengths", table))


if __name__ == "__main__":
    main()
