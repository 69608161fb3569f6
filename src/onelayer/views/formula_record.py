"""A formula as steps that a page can run (assets/formula.js): [name, arguments…], children first, each value by its place."""

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction
from typing import Any

from ..formula import Formula
from ..formula.tape import Algebra


def formula_record(formula: Formula) -> dict[str, Any]:
    """{steps, outputs}: the outputs are places of values."""
    steps = StepList()
    outputs = formula.tape.run(steps)
    return {"steps": steps.found, "outputs": outputs}


class StepList(Algebra[int, int]):
    """Every value is its place in the list."""

    key: Hashable = None

    def __init__(self) -> None:
        self.found: list[list[Any]] = []

    def _add(self, name: str, *arguments: Any) -> int:
        self.found.append([name, *arguments])
        return len(self.found) - 1

    def number(self, value: Fraction) -> int:
        return self._add("number", float(value))

    def constant(self, name: str) -> int:
        return self._add("number", math.pi if name == "pi" else math.e)

    def variable(self, index: int) -> int:
        return self._add("variable", index - 1)

    def sum(self, terms: Sequence[int]) -> int:
        return self._add("sum", *terms)

    def negation(self, operand: int) -> int:
        return self._add("negation", operand)

    def product(self, factors: Sequence[int]) -> int:
        return self._add("product", *factors)

    def quotient(self, dividend: int, divisor: int) -> int:
        return self._add("quotient", dividend, divisor)

    def integer_power(self, exponent: int, base: int) -> int:
        return self.power(base, self.number(Fraction(exponent)))

    def rational_power(self, exponent: Fraction, base: int) -> int:
        return self.power(base, self.number(exponent))

    def power(self, base: int, exponent: int) -> int:
        return self._add("power", base, exponent)

    def call(self, name: str, arguments: Sequence[int]) -> int:
        return self._add(name, *arguments)

    def where(self, condition: int, yes: int, no: int) -> int:
        return self._add("where", condition, yes, no)

    def comparison(self, relation: str, left: int, right: int) -> int:
        return self._add(relation, left, right)

    def conjunction(self, parts: Sequence[int]) -> int:
        return self._add("and", *parts)

    def disjunction(self, parts: Sequence[int]) -> int:
        return self._add("or", *parts)

    def complement(self, part: int) -> int:
        return self._add("not", part)
