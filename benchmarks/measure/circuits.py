"""Thirty disguised layers with known circuits, and how well methods that look for circuits find their heads.

`python benchmarks/measure/circuits.py` builds 18 layers of real functions and 12 of tokens, disguises each with its own seed
(another basis, heads in another order, distractor heads of three kinds), proves the effect of every head, and asks every method
of `attribution.py` for a score of each head, at 256 random inputs. The table goes into docs/run/circuits.md; `--print` leaves it
alone. `--out FOLDER` writes the thirty model folders, each with its circuit.json; `--only 3` takes the first three of each kind.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

import onelayer as ol
from attribution import Scores, auc, interval, scores
from onelayer.common.numbers import at_most
from onelayer.proof.circuit.circuit import Circuit
from onelayer.proof.circuit.effects import token_samples
from page import markdown, options, page_of, placed

INPUTS = 256
KINDS = ("quiet", "aside", "pair")
tokens, any_length = ol.gallery, ol.gallery.any_length
REAL = [
    ("sin(6*x)", "0:1", 1e-4), ("exp(-x^2)*cos(3*x)", "-2:2", 1e-4), ("1/(1+25*x^2)", "-1:1", 1e-3), ("tanh(5*x)", "-1:1", 1e-5),
    ("sqrt(x+0.1)", "0:1", 1e-5), ("x*sin(4*x)", "0:2", 1e-4), ("sin(x1*x2)", "0:2, 0:2", 1e-2), ("x1*x2", "0:1, 0:1", 1e-3),
    ("sin(x1)+cos(x2)", "0:3, 0:3", 1e-3), ("exp(-(x1^2+x2^2))", "-1:1, -1:1", 1e-2), ("max(x1, x2)", "0:1, 0:1", 1e-3),
    ("abs(x1-x2)+x1", "0:1, 0:1", 1e-3), ("x1/(1+x2)", "0:1, 0:1", 1e-3), ("sin(3*x1)*x2", "0:1, 0:1", 1e-2),
    ("log(1+x1+x2)", "0:1, 0:1", 1e-3), ("cos(2*x1)-x2^2", "0:1, 0:1", 1e-3), ("x1^2+x1*x2", "0:1, 0:1", 1e-3),
    ("sqrt(x1^2+x2^2+0.1)", "0:1, 0:1", 1e-2),
]  # fmt: skip
TOKENS: list[Callable[[], ol.Approximation]] = [
    partial(tokens.histogram, 5, 4), partial(tokens.histogram, 6, 3), partial(tokens.parity, 6), partial(tokens.majority, 5),
    partial(tokens.first_occurrence, 5, 3), partial(tokens.copy_where, 4, 3),
    lambda: any_length.induction(4, 3).at_length(4), lambda: any_length.balanced(8).at_length(6),
    lambda: any_length.depth(8).at_length(6), lambda: any_length.look_up(8, 2, 2).at_length(4),
    lambda: any_length.reverse(8, 4).at_length(4), lambda: any_length.composition(8, 3).at_length(4),
]  # fmt: skip


@dataclass(frozen=True)
class Found:
    """One layer: its circuit, how far it is from the original (proved, and seen), and scores in both bases."""

    text: str
    circuit: Circuit
    distance: float
    seen: float
    tolerance: float
    method: str
    scores: dict[str, Scores]  # by "plain" and "disguised"


def inputs(layer: ol.Approximation, count: int, seed: int) -> torch.Tensor:
    """Random points of the domain, or random sequences of tokens, [batch, D]."""
    D, V = layer.domain.dimension, layer.vocabulary
    if V is not None:
        drawn = token_samples(V, D, 2 * count, seed)
        return torch.from_numpy(drawn[np.random.default_rng(seed).permutation(len(drawn))[:count]].astype(np.float64))
    return torch.from_numpy(layer.domain.points(np.random.default_rng(seed).random((count, D))))


def measured(which: tuple[str, int], out: str | None) -> Found:
    """Build, disguise, prove and score one layer."""
    kind, i = which
    torch.set_num_threads(1)
    layer = ol.build(*REAL[i]) if kind == "real" else TOKENS[i]()
    seed = i + (100 if kind == "tokens" else 0)
    variant = layer.disguised(seed=seed, quiet=2, aside=2, pairs=1, seconds=5)
    circuit = variant.circuit(seconds=20)
    if out is not None:
        variant.save(Path(out) / f"{kind}-{i + 1:02d}", circuit, overwrite=True)
    x, places = inputs(layer, INPUTS, seed), layer.facts.places
    many = inputs(layer, 20_000, seed + 1)
    seen = float(np.abs(np.asarray(layer(many.numpy())) - np.asarray(variant.layer(many.numpy()))).max())
    both = {"plain": variant.plain, "disguised": variant.layer.model}
    by_basis = {name: scores(model, layer.as_tokens(x), places, seed) for name, model in both.items()}
    c = variant.layer.certificate
    assert c.verdict == "CERTIFIED", (layer.description.text, c)
    return Found(
        layer.description.text, circuit, variant.distance, seen, layer.certificate.tolerance, c.method, by_basis
    )


def areas(found: list[Found], basis: str, method: str, negatives: tuple[str, ...]) -> np.ndarray:
    """AUC of every layer: heads of the layer that are proved to matter against distractors of these kinds."""
    values = []
    for one in found:
        s, heads = one.scores[basis][method], one.circuit.heads
        real = [h.index for h in heads if h.role == "layer" and h.lower > one.tolerance]
        fake = [h.index for h in heads if h.role in negatives]
        if real:
            values.append(auc(s[real], s[fake]))
    return np.array(values)


def table(found: list[Found]) -> str:
    """Methods in rows: the AUC against all distractors in both bases, then against each kind, with intervals."""
    rows = []
    for method in found[0].scores["plain"]:
        cases = [("plain", KINDS), ("disguised", KINDS), *(("disguised", (kind,)) for kind in KINDS)]
        cells = []
        for basis, negatives in cases:
            mean, low, high = interval(areas(found, basis, method, negatives))
            cells.append(f"{mean:.2f} [{low:.2f}, {high:.2f}]")
        rows.append([method, *cells])
    return markdown(["method", "all, plain", "all, disguised", *(f"against {kind}" for kind in KINDS)], rows)


def summary(found: list[Found], seconds: float) -> str:
    """What the thirty layers are, and what is proved about them."""
    heads = [h for one in found for h in one.circuit.heads]
    real = [h for h in heads if h.role == "layer"]
    small = sum(h.lower <= one.tolerance for one in found for h in one.circuit.heads if h.role == "layer")
    ratios = [h.upper / h.lower for h in real if h.lower > 0]
    quiet = max(h.upper for h in heads if h.role in ("quiet", "aside"))
    pair = min(h.lower for h in heads if h.role == "pair")
    again = sum(one.method != "lemma" for one in found)
    apart, seen = max(one.distance for one in found), max(one.seen for one in found)
    return "\n".join(
        [
            f"- {len(found)} layers with {len(real)} heads of their own and {len(heads) - len(real)} distractors, in"
            f" {seconds / 60:.0f} minutes on two cores.",
            f"- Effects of the layers' own heads: the upper end is {np.median(ratios):.2f} times the lower one (median),"
            f" {max(ratios):.1f} times at most. {small} heads are not proved to exceed the tolerance, and are left out below.",
            f"- Effects of quiet heads and of those that write aside: at most {at_most(quiet, 2)}, the rounding of computed"
            f" answers included. Effects of single heads of pairs: at least {pair:.2g}.",
            f"- Disguised and original layers: at most {at_most(apart, 2)} apart (proved),"
            f" {seen:.1e} at 20,000 inputs each (seen).",
            f"- Certificates: {again} proved again from the new weights, {len(found) - again} composed; all CERTIFIED.",
        ]
    )


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--only", type=int, default=18, help="layers of each kind")
    parser.add_argument("--out", metavar="FOLDER", help="write the model folders, with circuit.json, to this folder")
    parser.add_argument("--print", action="store_true", help="print the table and leave the page alone")
    given, started = parser.parse_args(), time.perf_counter()
    wanted = [("real", i) for i in range(len(REAL))][: given.only] + [("tokens", i) for i in range(len(TOKENS))][
        : given.only
    ]
    found = list[Found]()
    with ProcessPoolExecutor(2) as pool:
        for one in pool.map(partial(measured, out=given.out), wanted):
            found.append(one)
            roles = ", ".join(f"{h.role} {h.effect}" for h in one.circuit.heads)
            print(f"{one.text}: {one.method}, apart {one.distance:.1e}, seen {one.seen:.1e}; {roles}", flush=True)
    text = f"{summary(found, time.perf_counter() - started)}\n\n{table(found)}"
    if given.print:
        print(text)
        return
    page = page_of("circuits.md")
    page.write_text(placed(page.read_text(), "circuits", text))


if __name__ == "__main__":
    main()
