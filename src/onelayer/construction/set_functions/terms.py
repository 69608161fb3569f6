"""A formula of a set as a sum of terms that one layer can compute: functions of one number each.

    c·mean(φ(x))           c·φ(x_i) at every position: the mean read-out averages them
    mean of a + b·x        a + b·mean(x): one head
    max of φ, φ monotone   φ(max x) or φ(min x)
    several inputs         functions h(w·inputs) of one linear form, exactly where the formula shows one, else `ridges`

Additive terms of the same inputs are one term. A mean of φ that stays inside a function is an `average`: the term is then
computed at one position only, n times its value, and the mean read-out divides by n. That needs every input of the term to
be an average, and a read-out that is a mean.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np

from ...common.errors import InputError
from ...formula import Formula, enclose, interval, to_text
from ...formula.additive import ONE, additive_terms, gathered, plus, times
from ...formula.affine import Affine, difference, value_of
from ...formula.tree import Node, Number, Sum, Tree, Variable, postorder, substituted, variables
from ...target.domain import domain_of
from ...target.ranges import range_of
from .aggregates import EXAMPLE, OWN, Aggregate, SetFormula
from .network_inputs import Input

U = Variable(1)
NUMBER = Formula("x", ("x",), (U,))  # φ(x) = x
PIECES = 64  # of the interval, on each of which a slope is enclosed


@dataclass(frozen=True)
class Term:
    """outer(Σ weights·inputs), a function of one number; computed at the first position alone if the inputs are averages."""

    inputs: tuple[Input, ...]
    weights: tuple[float, ...]
    outer: Formula

    @property
    def averaged(self) -> bool:
        return any(one.source == "average" for one in self.inputs)


@dataclass(frozen=True)
class Group:
    """A function of several inputs that is no function of one linear form, to be approximated by a sum of such."""

    inputs: tuple[Input, ...]
    outer: Formula

    @property
    def text(self) -> str:
        return to_text(self.outer.outputs[0], self.outer.names)


@dataclass(frozen=True)
class SumOfTerms:
    """f = constant + Σ terms + Σ groups; one answer for each number of the set, or one for all."""

    constant: Node
    terms: tuple[Term, ...]
    groups: tuple[Group, ...]
    each: bool


def split(f: SetFormula, ends: tuple[float, float], longest: int) -> SumOfTerms:
    """The terms of f on numbers between the ends."""
    seen = _Inputs(f, ends, longest)
    by_inputs: dict[tuple[int, ...], list[Node]] = defaultdict(list)
    for term in additive_terms(seen.rewritten(f.outer.outputs[0])):
        for part in [term] if f.each else seen.spread_over_positions(term):
            by_inputs[variables(part)].append(part)
    terms, groups = list[Term](), list[Group]()
    for own, parts in by_inputs.items():
        if not own:
            continue
        inputs = _of_one_kind(tuple(seen.inputs[index] for index in own), f.each)
        place = {index: Variable(k + 1) for k, index in enumerate(own)}
        node = _renamed(gathered(Sum, parts), place)
        _require_possible(inputs, f.each)
        found = _one_form(node, inputs)
        if found is None:
            names = tuple(seen.names[index] for index in own)
            groups.append(Group(inputs, Formula("", names, (node,))))
        else:
            terms.append(found)
    return SumOfTerms(gathered(Sum, by_inputs[()]), tuple(terms), tuple(groups), f.each)


class _Inputs:
    """The inputs of a formula by the number of the variable that stands for them in rewritten trees."""

    def __init__(self, f: SetFormula, ends: tuple[float, float], longest: int) -> None:
        self.f, self.ends, self.longest = f, ends, longest
        self.inputs = {OWN: Input("own", *ends)}
        self.names = {OWN: "x"}
        self.instead = {OWN + 1 + k: self._instead(aggregate) for k, aggregate in enumerate(f.aggregates)}

    def rewritten(self, node: Node) -> Node:
        """The outer formula in terms of inputs."""
        return substituted(node, lambda tree: self.instead.get(tree.index) if isinstance(tree, Variable) else None)

    def spread_over_positions(self, term: Node) -> list[Node]:
        """c·mean(φ) as c·φ(x_i), for a read-out that is the mean over positions; any other term as it is."""
        form = _affine(term, max(self.inputs))
        if form is None or len(form.support) != 1 or self.inputs[form.support[0] + 1].source != "average":
            return [term]
        inner = self.inputs[form.support[0] + 1].inner
        assert inner is not None
        return [Number(form.constant), times(Number(form.slopes[form.support[0]]), inner.outputs[0])]

    def _instead(self, aggregate: Aggregate) -> Node:
        """An aggregate as a function of an input."""
        inner = aggregate.inner.outputs[0]
        form = _affine(inner, 1)
        if aggregate.kind == "mean" and form is not None:
            return plus([Number(form.constant), times(Number(form.slopes[0]), self._input(Input("mean", *self.ends)))])
        low, high = range_of(aggregate.inner, domain_of([self.ends]))
        if not np.isfinite([low, high]).all():
            raise InputError(EXAMPLE, f"no bound for {aggregate.text} on this domain", "choose another domain")
        if aggregate.kind == "mean":
            return self._input(Input("average", low, high, aggregate.inner))
        if aggregate.kind == "sum":
            least, most = _outward(self.longest * low, -math.inf), _outward(self.longest * high, math.inf)
            return self._input(Input("sum", min(low, least), max(high, most), aggregate.inner))
        rising = (aggregate.kind == "max") == _rises(aggregate, self.ends)
        at = self._input(Input("max" if rising else "min", *self.ends))
        return substituted(inner, lambda tree: at if isinstance(tree, Variable) else None)

    def _input(self, found: Input) -> Variable:
        for index, known in self.inputs.items():
            same = known.inner is found.inner or (
                known.inner is not None and found.inner is not None and known.inner.outputs == found.inner.outputs
            )
            if known.source == found.source and same:
                return Variable(index)
        index = max(self.inputs) + 1
        self.inputs[index] = found
        text = "x" if found.inner is None else to_text(found.inner.outputs[0], ("x",))
        self.names[index] = f"{'mean' if found.source == 'average' else found.source}({text})"
        return Variable(index)


def _rises(aggregate: Aggregate, ends: tuple[float, float]) -> bool:
    """Whether the function inside a max or min is increasing, or else decreasing: proved from its slope, piece by piece."""
    slope, cuts = aggregate.inner.slopes, np.linspace(*ends, PIECES + 1).tolist()
    if slope is not None:
        pieces = [enclose(slope, [interval(low, high)])[0] for low, high in pairwise([ends[0], *cuts[1:-1], ends[1]])]
        if all(piece.is_finite() and piece.lo >= 0 for piece in pieces):
            return True
        if all(piece.is_finite() and piece.hi <= 0 for piece in pieces):
            return False
    change = f"use {aggregate.kind} of an increasing or decreasing function, such as {aggregate.kind}(x)"
    raise InputError(f"{aggregate.text} over the set", "no proof that it rises or falls all the way", change)


def _of_one_kind(inputs: tuple[Input, ...], each: bool) -> tuple[Input, ...]:
    """Beside other averages the mean of x is an average too: numerator and n."""
    if each or all(one.source != "average" for one in inputs):
        return inputs
    return tuple(Input("average", one.low, one.high, NUMBER) if one.source == "mean" else one for one in inputs)


def _require_possible(inputs: tuple[Input, ...], each: bool) -> None:
    """Refuse what a division by n would be needed for in the wrong place."""
    averages = [one for one in inputs if one.source == "average"]
    if not averages or (not each and len(averages) == len(inputs)):
        return
    inner = averages[0].inner
    assert inner is not None
    text = f"mean({to_text(inner.outputs[0], ('x',))})"
    if each:
        change = f"use mean(x), max(x), min(x) or sum(…) there; {text} alone, without x outside, is possible"
        raise InputError("an answer for every number of the set", f"{text}, which no position can divide by n", change)
    change = "use aggregates of one kind inside a function, or add functions of one each"
    raise InputError("one function of averages alone", f"{text} beside a sum, maximum or minimum", change)


def _outward(value: float, towards: float) -> float:
    """A rounded product, moved by a step of floats unless it is 0."""
    return math.nextafter(value, towards) if value else value


def _affine(node: Node, dimension: int) -> Affine | None:
    found = difference(node, dimension)
    if found is None or len(found[0]) != 1 or len(found[1]) != 1:
        return None
    return found[0][0] - found[1][0]


def _renamed(node: Node, place: dict[int, Variable]) -> Node:
    return substituted(node, lambda tree: place[tree.index] if isinstance(tree, Variable) else None)


def _one_form(node: Node, inputs: tuple[Input, ...]) -> Term | None:
    """The term, if the tree sees its inputs through one linear form whose weights are floats of few digits."""
    if len(inputs) == 1:
        return Term(inputs, (1.0,), Formula("", ("u",), (node,)))
    for inner in postorder((node,)):
        form = _affine(inner, len(inputs)) if _is_value(inner) else None  # type: ignore[arg-type]
        if form is None or len(form.support) < len(inputs):
            continue
        weights = tuple(float(np.float32(float(slope))) for slope in form.slopes)
        outer = _with(node, inner, plus([U, Number(form.constant)]))
        if tuple(map(Fraction, weights)) == form.slopes and not variables(_with(node, inner, ONE)):
            return Term(inputs, weights, Formula("", ("u",), (outer,)))
    return None


def _with(node: Node, inner: Tree, by: Node) -> Node:
    """The tree with `by` in the place of the subtree `inner`."""
    return substituted(node, lambda part: by if part is inner else None)


def _is_value(tree: Tree) -> bool:
    return type(tree).__name__ not in ("Relation", "And", "Or", "Not")


def value_of_constant(node: Node) -> Fraction:
    """The number that a tree without variables stands for."""
    value = value_of(node)
    if value is None:
        raise InputError(EXAMPLE, "a constant without a value", "remove it")
    return value
