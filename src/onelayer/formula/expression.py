"""Formula and Condition: parsed text, ready to be interpreted, and the tape that does it.

A formula is f = (f_1, …, f_m) on ℝ^D. D is `dimension`: the number of names; for x1, x2, … the largest index. An
interpretation accepts more coordinates than D and ignores the rest.

An interpretation of formulas is an `Algebra`: what a number, a variable, a sum, … is. `Tape.run` visits each distinct
subtree once, children first, without recursion. Both branches of `where` are always computed; the algebra chooses.

Steps without variables depend on the algebra alone: an algebra that names a `key` has them computed once per key.
"""

import operator
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, reduce
from typing import Any, Generic, TypeVar

from . import tree as trees
from .tree import SUBTREES, Node, Predicate, Tree, children, postorder, variables

V = TypeVar("V")  # values
T = TypeVar("T")  # truth values


class Algebra(ABC, Generic[V, T]):
    """Values V, truth values T, and the operations of the language on them."""

    key: Hashable = None  # values of constants are kept per key; None keeps none

    @abstractmethod
    def number(self, value: Fraction) -> V: ...

    @abstractmethod
    def constant(self, name: str) -> V: ...

    @abstractmethod
    def variable(self, index: int) -> V: ...

    def sum(self, terms: Sequence[V]) -> V:
        return reduce(self.plus, terms)

    def plus(self, a: V, b: V) -> V:
        """The sum of two, for those that have no `sum` of their own."""
        raise NotImplementedError

    @abstractmethod
    def negation(self, operand: V) -> V: ...

    def product(self, factors: Sequence[V]) -> V:
        return reduce(self.times, factors)

    def times(self, a: V, b: V) -> V:
        """The product of two, likewise."""
        raise NotImplementedError

    @abstractmethod
    def quotient(self, dividend: V, divisor: V) -> V: ...

    @abstractmethod
    def integer_power(self, exponent: int, base: V) -> V: ...

    def rational_power(self, exponent: Fraction, base: V) -> V:
        return self.power(base, self.number(exponent))

    def power(self, base: V, exponent: V) -> V:
        return self.call("exp", [self.product([exponent, self.call("log", [base])])])

    @abstractmethod
    def call(self, name: str, arguments: Sequence[V]) -> V: ...

    @abstractmethod
    def where(self, condition: T, yes: V, no: V) -> V: ...

    @abstractmethod
    def comparison(self, relation: str, left: V, right: V) -> T: ...

    @abstractmethod
    def conjunction(self, parts: Sequence[T]) -> T: ...

    @abstractmethod
    def complement(self, part: T) -> T: ...

    def disjunction(self, parts: Sequence[T]) -> T:
        return self.complement(self.conjunction([self.complement(part) for part in parts]))


class Operators(Algebra[V, T]):
    """Values that Python's own operators work on. Truth is True or False, None if undecided, or something else for no value."""

    plus: Any = operator.add
    times: Any = operator.mul
    negation: Any = operator.neg
    quotient: Any = operator.truediv

    def integer_power(self, exponent: int, base: V) -> V:
        return operator.pow(base, exponent)

    def conjunction(self, parts: Sequence[T]) -> Any:
        """False where one part is false, whatever the others are."""
        if any(part is False for part in parts):
            return False
        unsure = [part for part in parts if part is not True]
        return next((part for part in unsure if part is not None), None) if unsure else True

    def complement(self, part: T) -> Any:
        return not part if isinstance(part, bool) else part


_NAMES = (  # of the kinds of `tree.Node` and `tree.Predicate`, in their order
    "number constant variable sum negation product quotient integer_power power call where"
    " comparison conjunction disjunction complement"
)
METHODS: dict[type[Any], str] = dict(zip(SUBTREES, _NAMES.split(), strict=True))


class _Step:
    """One subtree: where its value goes, which method computes it, from which fixed data and which places."""

    __slots__ = ("data", "listed", "method", "place", "places")

    def __init__(self, place: int, tree: Tree, places: tuple[int, ...]) -> None:
        self.place, self.places = place, places
        _, data, self.listed = SUBTREES[type(tree)]
        self.method, self.data = METHODS[type(tree)], tuple(getattr(tree, name) for name in data)
        if isinstance(tree, trees.Power) and isinstance(tree.exponent, trees.Number):
            self.method, self.data, self.places = "rational_power", (tree.exponent.value,), places[:1]


class Tape:
    """The steps that compute `roots`, each distinct subtree once."""

    def __init__(self, roots: Sequence[Tree]) -> None:
        order = postorder(roots)
        place = {id(tree): position for position, tree in enumerate(order)}
        self._size = len(order)
        self._trees = tuple(roots)
        self._roots = [place[id(root)] for root in roots]
        self._fixed: list[_Step] = []
        self._varying: list[_Step] = []
        self._known: dict[tuple[type, Hashable], list[Any]] = {}
        varies = [False] * self._size
        for position, tree in enumerate(order):
            places = tuple(place[id(child)] for child in children(tree))
            varies[position] = isinstance(tree, trees.Variable) or any(varies[child] for child in places)
            (self._varying if varies[position] else self._fixed).append(_Step(position, tree, places))

    def __reduce__(self) -> tuple[type["Tape"], tuple[tuple[Tree, ...]]]:
        return Tape, (self._trees,)

    def run(self, algebra: Algebra[Any, Any]) -> list[Any]:
        """Values of the roots in the algebra."""
        values = list(self._start(algebra))
        self._advance(algebra, self._varying, values)
        return [values[root] for root in self._roots]

    def _start(self, algebra: Algebra[Any, Any]) -> list[Any]:
        label = (type(algebra), algebra.key)
        if algebra.key is not None and label in self._known:
            return self._known[label]
        values: list[Any] = [None] * self._size
        self._advance(algebra, self._fixed, values)
        if algebra.key is not None:
            self._known[label] = values
        return values

    @staticmethod
    def _advance(algebra: Algebra[Any, Any], steps: Sequence[_Step], values: list[Any]) -> None:
        for step in steps:
            method = getattr(algebra, step.method)
            if step.listed:
                values[step.place] = method(*step.data, [values[place] for place in step.places])
            else:
                values[step.place] = method(*step.data, *[values[place] for place in step.places])


@dataclass(frozen=True)
class _Parsed:
    """What `text` writes down; `names[j-1]` is the name of Variable(j)."""

    text: str
    names: tuple[str, ...]
    outputs: tuple[Any, ...]

    @property
    def dimension(self) -> int:
        return len(self.names)

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices, from 1, of the variables that occur."""
        return variables(*self.outputs)

    @cached_property
    def tape(self) -> Tape:
        return Tape(self.outputs)


@dataclass(frozen=True)
class Formula(_Parsed):
    """The functions that `text` writes down, `outputs` as trees."""

    outputs: tuple[Node, ...]
    declared: bool = field(default=False, compare=False)  # its text says in which order: f(x, y) = …
    limits: tuple[Node, ...] = field(default=(), compare=False)  # where these are 0 a limit is taken: x for sin(x)/x

    @cached_property
    def output_variables(self) -> tuple[tuple[int, ...], ...]:
        """The variables of every output by itself."""
        return tuple(variables(output) for output in self.outputs)

    @cached_property
    def slopes(self) -> "Formula | None":
        """All partial derivatives (`gradients.gradient`), derived once."""
        from .gradients import gradient

        return gradient(self)

    @cached_property
    def jet(self) -> Tape:
        """The outputs, and after them all partial derivatives, output by output."""
        from .gradients import slopes

        return Tape((*self.outputs, *(slope for row in slopes(self) for slope in row)))


@dataclass(frozen=True)
class Condition(_Parsed):
    """The subset of ℝ^D that `text` writes down, such as x1**2 + x2**2 <= 1: its one output is a predicate."""

    outputs: tuple[Predicate]

    @property
    def root(self) -> Predicate:
        return self.outputs[0]
