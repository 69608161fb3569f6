"""Attacks on ranges, slopes, second derivatives and properties: random layers, and divided differences proved in balls.

`attack(kind, seed)` returns every sentence that turned out false, without any slack. A divided difference of T, evaluated in
balls of 256 bits by the model's own steps, has to lie in what is proved; a property that it contradicts must not be proved.
"""

import math

import numpy as np

import both_sides
from hostile import Case, case, network, one_head
from onelayer.common.budget import Budget
from onelayer.proof.properties.judge import judge
from onelayer.proof.properties.reached import Reached, proved, reached
from onelayer.proof.properties.real_function import RealFunction, layer_function
from onelayer.proof.properties.span import span
from onelayer.proof.properties.statement import Limit, Statement

POINTS = 12  # random nodes beside those that the search finds
KINDS = ("ranges", "properties", "suprema")


def attack(kind: str, seed: int, seconds: float = 1.0) -> list[str]:
    """What turned out false in one attack of this kind."""
    one = _case(seed)
    if kind == "suprema":
        return both_sides.attack(one, seconds)
    if one.poisoned:
        return _poisoned(one, seconds)
    return (_ranges if kind == "ranges" else _properties)(one, np.random.default_rng(seed), seconds)


def bounded(seed: int, order: int, seconds: float = 1.0) -> bool:
    """Whether anything is proved of a case."""
    one = _case(seed)
    subject = subject_of(one)
    i = seed % one.target.dimension
    seen = _seen(_differences(subject, order, i, np.random.default_rng(seed)), subject.outputs)
    return bool(np.isfinite(span(subject, order, i, seen, Budget(seconds, 20_000)).low).all())


def _case(seed: int) -> Case:
    return (case, one_head, network)[(0, 0, 0, 1, 2)[seed % 5]](seed)


def subject_of(one: Case) -> RealFunction:
    """The layer of a case, one in three in float32: its real function has other weights then."""
    model = one.model.float() if one.seed % 3 == 0 else one.model
    return layer_function(model, tuple(range(model.config.places)), one.target.domain)


def _differences(subject: RealFunction, order: int, i: int, rng: np.random.Generator) -> list[list[Reached | None]]:
    """Divided differences at random nodes, per node and output: close together or far apart, at ends too."""
    domain, found = subject.domain, []
    for _ in range(POINTS):
        nodes = np.repeat(domain.points(rng.random((1, domain.dimension))), order + 1, axis=0)
        if order:
            width = 10 ** rng.uniform(-9, 0)
            start = rng.choice([0.0, 1.0 - width, rng.random() * (1 - width)])
            unit = np.sort(start + width * rng.random(order + 1))
            nodes[:, i] = domain.points(np.repeat(unit[:, None], domain.dimension, axis=1))[:, i]
        if order == 0 or (np.diff(nodes[:, i]) > 0).all():
            found.append(proved(subject, nodes, i))
    return found


def _seen(found: list[list[Reached | None]], outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """(smallest, largest) per output."""
    low, high = np.full(outputs, math.inf), np.full(outputs, -math.inf)
    for row in found:
        for o, one in enumerate(row):
            if one is not None:
                low[o], high[o] = min(low[o], one.above), max(high[o], one.below)
    return low, high


def _ranges(one: Case, rng: np.random.Generator, seconds: float) -> list[str]:
    subject, false = subject_of(one), []
    for order in range(3):
        i = int(rng.integers(one.target.dimension))
        found = _differences(subject, order, i, rng)
        ends = reached(subject, order, i, Budget(seconds))
        found += [[e.low for e in ends], [e.high for e in ends]]
        spanned = span(subject, order, i, _seen(found, subject.outputs), Budget(seconds, 20_000))
        for row in found:
            for o, it in enumerate(row):
                if it is not None and not (it.above >= spanned.low[o] and it.below <= spanned.high[o]):
                    proof = f"[{spanned.low[o]!r}, {spanned.high[o]!r}]"
                    false.append(f"{one}, order {order}, coordinate {i}: {it} outside {proof}")
    return false


def _properties(one: Case, rng: np.random.Generator, seconds: float) -> list[str]:
    """Properties that a divided difference contradicts by a unit in the last place are not proved."""
    subject, false = subject_of(one), []
    order, i = int(rng.integers(3)), int(rng.integers(one.target.dimension))
    ends = reached(subject, order, i, Budget(seconds))
    o = int(rng.integers(subject.outputs))
    low, high = ends[o].low, ends[o].high
    if low is None or high is None:
        return []
    over, under = math.nextafter(low.above, math.inf), math.nextafter(high.below, -math.inf)
    wrong = [
        Statement("too high a floor", order, i, least=Limit(over, over)),
        Statement("too low", order, i, most=Limit(under, under)),
    ]
    if order == 1:
        c = max(under, -over)
        wrong.append(Statement("too small a constant", 1, i, Limit(-c, -c), Limit(c, c)))
    for statement in wrong:
        room = np.full(subject.outputs, 1e-3 * max(abs(high.below - low.above), 1e-12))
        seen = np.array([low.above] * subject.outputs), np.array([high.below] * subject.outputs)
        spanned = span(subject, order, i, seen, Budget(seconds, 20_000), room)
        if all(map(statement.holds, spanned.low.tolist(), spanned.high.tolist())):
            false.append(f"{one}: {statement} is false at {low} or {high} and yet proved")
        found = judge(subject, statement, Budget(seconds, 20_000), seed=one.seed % 1000 + 1)
        if found.verdict == "PROVED":
            false.append(f"{one}: {statement} is false at {low} or {high}, {found}")
    return false


def _poisoned(one: Case, seconds: float) -> list[str]:
    """Nothing is proved of weights that are not finite."""
    spanned = span(subject_of(one), 0, 0, (np.zeros(one.target.outputs), np.ones(one.target.outputs)), Budget(seconds))
    proved_some = np.isfinite(spanned.low).any() or np.isfinite(spanned.high).any()
    return [f"{one}: a range of weights that are not finite"] if proved_some else []
