"""VNN-LIB 2.0: a property of a layer as a question whose answer is sat (a counterexample exists) or unsat (the property holds).

    T <= c, T >= c                       one network, one point
    increasing, decreasing, Lipschitz    two copies of it (`equal-to`), two points that differ in one coordinate
    |T₁ − T₂| <= c                       two networks, one point

Numbers are exact decimals and the type is `real`: the question is about real arithmetic on the stored weights.
"""

import re
from decimal import Decimal

from ....common.errors import InputError
from ....proof.properties.statement import read
from ....target.domain import Domain

HEAD = "(vnnlib-version <2.0>)"
_NUMBER = re.compile(r"(?:\|?T[^<>]*[<>]=\s*|Lipschitz\s+)(-?\d+(?:\.\d+)?(?:[eE]-?\d+)?)(?:\s+in\s.*)?")
_NO_NUMBER = re.compile("increasing|decreasing", re.IGNORECASE)


def decimal(value: float | Decimal) -> str:
    """A number with all its digits and a point, without an exponent, as VNN-LIB reads it."""
    text = format(Decimal(value), "f")
    return text if "." in text else f"{text}.0"


def network(name: str, x: str, y: str, inputs: int, outputs: int, same_as: str = "") -> list[str]:
    """The declaration of a network with its input and output."""
    copy = [f"  (equal-to {same_as})"] if same_as else []
    ends = [f"  (declare-input {x} real [1, {inputs}])", f"  (declare-output {y} real [1, {outputs}])"]
    return [f"(declare-network {name}", *copy, *ends, ")"]


def in_the_box(x: str, domain: Domain) -> list[str]:
    """Every coordinate between its ends, which are floats."""
    found = []
    for i, (low, high) in enumerate(zip(domain.lower, domain.upper, strict=True)):
        found += [f"(assert (>= {x}[0, {i}] {decimal(low)}))", f"(assert (<= {x}[0, {i}] {decimal(high)}))"]
    return found


def some(parts: list[str]) -> str:
    """At least one of these holds."""
    return f"(assert {parts[0]})" if len(parts) == 1 else f"(assert (or {' '.join(parts)}))"


def limit_of(text: str) -> Decimal:
    """The decimal number in a property; 0 where it needs none."""
    number = _NUMBER.fullmatch(text)
    if number is None and not _NO_NUMBER.match(text):
        asked, change = "a property with a decimal number", "ask for increasing, decreasing, Lipschitz, T <= or T >="
        raise InputError(asked, repr(text), change)
    return Decimal(number[1] if number else 0)


def counterexample(text: str, domain: Domain, outputs: int) -> str:
    """The question whether a point, or two, contradict a property, given as `ol.prove` reads it."""
    statement, limit = read(text, domain.names), limit_of(text)
    D, i = domain.dimension, statement.coordinate
    lines = [HEAD, *network("f", "X", "Y", D, outputs)]
    if not statement.order:
        sign = ">" if statement.most is not None else "<"
        beyond = [f"({sign} Y[0, {o}] {decimal(limit)})" for o in range(outputs)]
        return _text([*lines, *in_the_box("X", domain), some(beyond)])
    lines += [*network("g", "Z", "V", D, outputs, same_as="f"), *in_the_box("X", domain), *in_the_box("Z", domain)]
    lines += [f"(assert (== X[0, {j}] Z[0, {j}]))" for j in range(D) if j != i]
    lines += [f"(assert (<= X[0, {i}] Z[0, {i}]))"]
    step, beyond = f"(- Z[0, {i}] X[0, {i}])", list[str]()
    for o in range(outputs):
        rise = f"(- V[0, {o}] Y[0, {o}])"
        above, below = (f"(* {decimal(c)} {step})" if limit else "0.0" for c in (limit, -limit))
        beyond += [f"(> {rise} {above})"] if statement.most is not None else []  # decreasing, or Lipschitz
        beyond += [f"(< {rise} {below})"] if statement.least is not None else []  # increasing, or Lipschitz
    return _text([*lines, some(beyond)])


def apart(limit: Decimal, domain: Domain, outputs: int) -> str:
    """The question whether two networks differ by more than the limit at a point."""
    D = domain.dimension
    lines = [HEAD, *network("f", "X", "Y", D, outputs), *network("g", "Z", "V", D, outputs)]
    lines += [*in_the_box("X", domain), *(f"(assert (== X[0, {j}] Z[0, {j}]))" for j in range(D))]
    gaps = [f"(- Y[0, {o}] V[0, {o}])" for o in range(outputs)]
    beyond = [part for gap in gaps for part in (f"(> {gap} {decimal(limit)})", f"(< {gap} {decimal(-limit)})")]
    return _text([*lines, some(beyond)])


def beyond(limit: Decimal, domain: Domain, outputs: int) -> str:
    """The question whether one network passes the limit, above or below: `apart`, of the difference of two."""
    parts = [p for o in range(outputs) for p in (f"(> Y[0, {o}] {decimal(limit)})", f"(< Y[0, {o}] {decimal(-limit)})")]
    return _text([HEAD, *network("f", "X", "Y", domain.dimension, outputs), *in_the_box("X", domain), some(parts)])


def _text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
