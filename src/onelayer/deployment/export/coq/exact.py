"""What a layer computes, in exact rational arithmetic: scores and values of every head as polynomials of the inputs.

Variables are numbered: 0 … D − 1 are the normalised inputs, D + h is the output of head h.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ....common.errors import InputError
from ....model.transformer import SingleLayerTransformer

Range = tuple[Fraction, Fraction]


class Polynomial(dict[tuple[int, ...], Fraction]):
    """Monomial (its variables in order, with repetition) → coefficient; none is 0."""

    def __add__(self, other: "Polynomial") -> "Polynomial":
        found = dict(self)
        for monomial, c in other.items():
            found[monomial] = found.get(monomial, Fraction(0)) + c
        return Polynomial({monomial: c for monomial, c in found.items() if c})

    def __sub__(self, other: "Polynomial") -> "Polynomial":
        return self + other * constant(-1.0)

    def __mul__(self, other: "Polynomial") -> "Polynomial":
        found = Polynomial()
        for a, c in self.items():
            for b, d in other.items():
                found = found + Polynomial({tuple(sorted(a + b)): c * d})
        return found

    @property
    def variables(self) -> set[int]:
        return {i for monomial in self for i in monomial}

    def within(self, ranges: list[Range]) -> Range:
        """An enclosure of its values, monomial by monomial."""
        low = high = Fraction(0)
        for monomial, c in self.items():
            a = b = c
            for i in monomial:
                ends = [end * factor for end in (a, b) for factor in ranges[i]]
                a, b = min(ends), max(ends)
            low, high = low + a, high + b
        return low, high


def constant(value: float | Fraction) -> Polynomial:
    return Polynomial({(): Fraction(value)}) if value else Polynomial()


def variable(i: int) -> Polynomial:
    return Polynomial({(i,): Fraction(1)})


def total(parts: Iterable[Polynomial]) -> Polynomial:
    found = Polynomial()
    for part in parts:
        found = found + part
    return found


@dataclass(frozen=True)
class Head:
    """Scores and values of all tokens, data tokens first."""

    scores: list[Polynomial]
    values: list[Polynomial]


@dataclass(frozen=True)
class Exact:
    """The layer at one place: heads, and what the output makes of them (a polynomial of inputs and heads)."""

    dimension: int
    heads: list[Head]
    output: Polynomial


def exact_of(model: SingleLayerTransformer, place: int) -> Exact:
    """Followed through the layer; refused where it has LayerNorm, wide heads or hinges."""
    c = model.config
    w = {name: t.detach().double().tolist() for name, t in model.state_dict().items()}
    D, d = c.tokens, range(c.d_model)
    tokens = []
    for j in range(D):
        code = w["P"][j] if "P" in w else [0.0] * c.d_model
        row = [constant(w["b_E"][i]) + constant(code[i]) + variable(j) * constant(w["W_E"][0][i]) for i in d]
        tokens.append(row)
    tokens += [[constant(v) for v in row] for row in w.get("S", [])]
    ask = tokens[c.read_rows.start + place]
    heads = []
    for h in range(c.heads):
        query, keys, values = (
            [_along(token, w[name][h]) for token in given]
            for name, given in (("W_Q", [ask]), ("W_K", tokens), ("W_V", tokens))
        )
        heads.append(Head([query[0] * key for key in keys], values))
    outputs = [variable(D + h) for h in range(c.heads)]
    stream = [total(z * constant(row[i]) for z, row in zip(outputs, w["W_O"], strict=True) if row[i]) for i in d]
    stream = [a + b for a, b in zip(stream, ask, strict=True)] if c.residual else stream
    passed = _feed_forward(stream, w, c.ffn_width)
    y = [a + b for a, b in zip(stream, passed, strict=True)] if c.residual else passed
    return Exact(D, heads, _along(y, w["W_R"]) + constant(w["b_R"][0]))


def _along(token: list[Polynomial], column: list[list[float]]) -> Polynomial:
    return total(entry * constant(row[0]) for entry, row in zip(token, column, strict=True) if row[0])


def _feed_forward(h: list[Polynomial], w: dict[str, Any], width: int) -> list[Polynomial]:
    """Units without effect are left out, and relu(z) − relu(−z) = z; any other unit is a hinge, and refused."""
    units = [(tuple(row[i] for row in w["W_1"]), w["b_1"][i], tuple(w["W_2"][i])) for i in range(width)]
    units = [unit for unit in units if any(unit[2])]
    found = [constant(b) for b in w["b_2"]]
    while units:
        into, b, out = units.pop()
        opposite = (tuple(-v for v in into), -b, tuple(-v for v in out))
        if opposite not in units:
            asked = "a layer without hinges, as a proof in Coq"
            raise InputError(asked, "hinges in the feed-forward network", "export it as onnx, torch or c")
        units.remove(opposite)
        z = total(a * constant(v) for a, v in zip(h, into, strict=True) if v) + constant(b)
        found = [part + z * constant(v) for part, v in zip(found, out, strict=True)]
    return found
