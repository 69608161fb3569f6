"""Text to tree: a whitelist over Python's grammar, nothing of which is ever executed.

`typed` first writes what people type in canonical words, which are the text that is kept. Python's `ast` reads these;
every syntax node outside the whitelist is refused by name, all of them at once. Equal subtrees become one object.
Rewritings, all exact in ℝ: a − b is a + (−b); neighbouring equal factors a·a are a²; unary plus is dropped; hypot, sec and others
(`WRITTEN`) are what they stand for, e^u − 1 is expm1(u), log(1 + u) is log1p(u). Quotients such as sin(u)/u also have a value
where u = 0, their limit (`removable`). Not checked: whether the formula has a value anywhere (`1/0` parses).
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import groupby
from typing import Any, TypeVar

from ..common.errors import InputError
from ..common.numbers import counted
from . import tree as trees
from .affine import constant_exponent
from .expression import Condition, Formula
from .record import Function, OwnName
from .removable import accurate_log, accurate_sum, continued, sum_of_squares
from .screen import CONDITION, EXAMPLE, TooManyFaults, add_fault, clip, plain, refusal_of, refuse, screen
from .syntax import DECIMAL, foreign, literal, python_syntax, segment
from .tree import Node, Predicate, variables
from .typed import Typed, as_canonical
from .vocabulary import BINARY, CONSTANTS, FUNCTIONS, MAX_DEPTH, MAX_NODES, MAX_VARIABLE, RESERVED, VARIADIC, WRITTEN
from .words import closest

_RELATION = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_NODE = trees.Constant("pi")  # in the place of what is refused,
_PREDICATE = trees.Relation("<", _NODE, trees.Constant("e"))  # and of a condition
_Tree = TypeVar("_Tree")


def parse(text: str, names: Sequence[str] | None = None, own: Mapping[str, Function] | None = None) -> Formula:
    """The formula that `text` writes down, outputs separated by `;`.

    With `names` the variables are exactly those, in that order; a name may replace the constant e. Without, they are x1,
    x2, …, or the names that occur: x, y, z, t, then the others from A to Z. Decimals are exact: 0.1 is 1/10. `own` are functions
    of the user's own. Raises InputError, in one line, for everything outside the language.
    """
    line = screen(text)
    typed = as_canonical(line, names, own=frozenset(own or ()))
    reader = _Reader(typed, own=own)
    outputs = reader.all_of(typed.text.split(";"), reader.node)
    kept = plain(text) if typed.text == line else typed.text
    return Formula(kept, reader.all_names(*outputs), outputs, typed.declared, tuple(reader.limits))


def parse_condition(text: str, names: Sequence[str] | None = None) -> Condition:
    """The condition that `text` writes down: comparisons, chains such as 0 < x < y, and their and / or / not."""
    line = screen(text)
    typed = as_canonical(line, names, condition=True)
    reader = _Reader(typed, CONDITION)
    (root,) = reader.all_of([typed.text], reader.predicate)
    return Condition(plain(text) if typed.text == line else typed.text, reader.all_names(root), (root,))


class _Reader:
    """Reads expressions over one set of names, sharing equal subtrees between them."""

    def __init__(self, typed: Typed, asked: str = EXAMPLE, own: Mapping[str, Function] | None = None) -> None:
        self.typed, self.asked, self.own = typed, asked, own or {}
        self.names = typed.names
        self.index = {name: i for i, name in enumerate(typed.names or (), 1)}
        self.faults = list(typed.faults)
        self.shared: dict[tuple[Any, ...], Any] = {}
        self.limits: list[Node] = []  # factors at whose zeros a limit is taken
        self.nodes = 0
        self.spent = False  # a limit is reached
        self.source = ""
        self.given: dict[str, Node] = {}  # what u and v are in a function that is written in terms of others

    def all_of(self, sources: list[str], read: "Callable[[ast.expr, int], _Tree]") -> tuple[_Tree, ...]:
        """The trees of all sources, or one InputError with everything that is wrong with them."""
        found: list[_Tree] = []
        try:
            screen(self.typed.text)  # it may be longer than what was typed
            for source in sources:
                self.source = source.strip()
                found.append(read(python_syntax(self.source), 1))
        except TooManyFaults:
            pass
        except InputError as refusal:
            if not self.typed.faults:
                raise InputError(self.asked, refusal.found, refusal.change) from None
        if not self.faults:
            return tuple(found)
        repaired = len(found) == len(sources) and all(fault.repaired for fault in self.faults)
        raise refusal_of(self.asked, self.faults, self.typed.correction if repaired else None)

    def goes_on(self, refusal: InputError) -> None:
        """Note a fault, so that reading can go on with something else in its place; a limit ends it."""
        if self.spent:
            raise refusal
        add_fault(self.faults, refusal.found, refusal.change)

    def all_names(self, *roots: Node | Predicate) -> tuple[str, ...]:
        if self.names is not None:
            return self.names
        return tuple(f"x{index}" for index in range(1, max(variables(*roots), default=0) + 1))

    def piece(self, syntax: ast.AST) -> str:
        """The part of the source that a syntax node covers, in one quoted line."""
        return clip(segment(self.source, syntax) or type(syntax).__name__)

    def share(self, kind: type[_Tree], *fields: Any) -> _Tree:
        """kind(*fields), the same object for the same fields; subtrees count as same when they are one object."""
        label = (
            tuple(map(id, f)) if isinstance(f, tuple) else f if isinstance(f, str | int | Fraction) else id(f)
            for f in fields
        )
        return self.shared.setdefault((kind, *label), kind(*fields))

    def enter(self, syntax: ast.AST, depth: int) -> None:
        self.nodes += 1
        self.spent = self.nodes > MAX_NODES or depth > MAX_DEPTH
        if self.nodes > MAX_NODES:
            raise refuse(f"more than {MAX_NODES} operations", f"use at most {MAX_NODES} operations")
        if depth > MAX_DEPTH:
            raise refuse(f"operations nested more than {MAX_DEPTH} deep", f"nest at most {MAX_DEPTH} deep")

    def node(self, syntax: ast.expr, depth: int) -> Node:
        self.enter(syntax, depth)
        try:
            match syntax:
                case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                    return self.share(trees.Number, literal(segment(self.source, syntax)))
                case ast.Constant():
                    raise refuse(f"the literal {self.piece(syntax)}", DECIMAL)
                case ast.Name(id=name):
                    return self.name(name)
                case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                    return self.node(operand, depth + 1)
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    return self.share(trees.Negation, self.node(operand, depth + 1))
                case ast.BinOp(op=ast.Add() | ast.Sub()):
                    return self.sum(syntax, depth)
                case ast.BinOp(op=ast.Mult()):
                    return self.product(syntax, depth)
                case ast.BinOp(op=ast.Div(), left=left, right=right):
                    sides = self.node(left, depth + 1), self.node(right, depth + 1)
                    return self.quotient(self.share(trees.Quotient, *sides))
                case ast.BinOp(op=ast.Pow(), left=left, right=right):
                    return self.power(self.node(left, depth + 1), self.node(right, depth + 1))
                case ast.Call():
                    return self.call(syntax, depth)
                case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                    change = "use conditions in where(c, a, b) only"
                    raise refuse(f"the condition {self.piece(syntax)} as a value", change)
                case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
                    raise refuse(f"the operator {foreign(operator)[0]} in {self.piece(syntax)}")
                case _:
                    what, change = foreign(syntax)
                    raise refuse(f"{what}, {self.piece(syntax)}", change)
        except InputError as refusal:
            self.goes_on(refusal)
            return _NODE

    def sum(self, syntax: ast.BinOp, depth: int) -> Node:
        parts = self.chain(syntax, ast.Add | ast.Sub, depth)
        terms = [self.share(trees.Negation, term) if isinstance(op, ast.Sub) else term for op, term in parts]
        return accurate_sum(tuple(terms), self.share)

    def chain(self, syntax: ast.BinOp, kind: Any, depth: int) -> list[tuple[ast.operator | None, Node]]:
        """The operands of operators of one kind in a row, each with the operator before it."""
        found: list[tuple[ast.operator | None, Node]] = []
        rest: ast.expr = syntax
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, kind):
            found.append((rest.op, self.node(rest.right, depth + 1)))
            rest = rest.left
        return [(None, self.node(rest, depth + 1)), *reversed(found)]

    def quotient(self, node: Node) -> Node:
        """A quotient or a product, with the limits where both sides of a quotient are 0."""
        found = continued(node, self.share)
        if found is None:
            return node
        self.limits += [factor for factor in found[1] if factor not in self.limits]
        return found[0]

    def product(self, syntax: ast.BinOp, depth: int) -> Node:
        factors, powers = [factor for _, factor in self.chain(syntax, ast.Mult, depth)], list[Node]()
        for one, *more in (list(run) for _, run in groupby(factors, key=id)):
            powers.append(self.share(trees.IntegerPower, one, 1 + len(more)) if more else one)
        return powers[0] if len(powers) == 1 else self.quotient(self.share(trees.Product, tuple(powers)))

    def power(self, base: Node, exponent: Node) -> Node:
        value = constant_exponent(exponent)
        if value is None:
            return self.share(trees.Power, base, exponent)
        if value.denominator == 1:
            return self.share(trees.IntegerPower, base, value.numerator)
        return self.share(trees.Power, base, self.share(trees.Number, value))

    def name(self, name: str) -> Node:
        if name in self.given:
            return self.given[name]
        if name in self.index:
            return self.share(trees.Variable, self.index[name])
        if name in CONSTANTS:
            return self.share(trees.Constant, name)
        if self.names is None and re.fullmatch(r"x[1-9][0-9]*", name):
            if len(name) > 9 or int(name[1:]) > MAX_VARIABLE:
                raise refuse(f"the variable {clip(name)}", f"use variables x1 to x{MAX_VARIABLE}")
            return self.share(trees.Variable, int(name[1:]))
        if name in RESERVED:
            raise refuse(f"{name!r} without arguments", f"write {name}(…)")
        near = closest(name, [*self.index, *CONSTANTS])
        names = list(dict.fromkeys([*self.index, "pi", "e"]))
        use = "use numbers, pi and e, no variables"
        if self.index:
            more = "" if near else f", or add {clip(name)[1:-1]} to the variables"
            use = f"use {clip(', '.join(names))[1:-1]}{more}"
        raise refuse(f"the unknown name {clip(name)}", use + (f"; did you mean {near}?" if near else ""))

    def call(self, syntax: ast.Call, depth: int) -> Node:
        if not isinstance(syntax.func, ast.Name):
            raise refuse(f"a call of {self.piece(syntax.func)}")
        name, count = syntax.func.id, len(syntax.args)
        if name not in FUNCTIONS and name not in self.own:
            raise refuse(f"the unknown function {clip(name)}")
        if syntax.keywords or any(isinstance(argument, ast.Starred) for argument in syntax.args):
            raise refuse(f"named or starred arguments in {self.piece(syntax)}", "pass plain arguments")
        wanted = 3 if name == "where" else 2 if name in (*BINARY, *VARIADIC) else 1
        if count < wanted or (count > wanted and name not in VARIADIC):
            takes = "2 or more arguments" if name in VARIADIC else counted(wanted, "argument")
            raise refuse(f"{counted(count, 'argument')} in {self.piece(syntax)}", f"give {name} {takes}")
        if name == "where":
            condition, yes, no = syntax.args
            test = self.predicate(condition, depth + 1)
            return self.share(trees.Where, test, self.node(yes, depth + 1), self.node(no, depth + 1))
        arguments = tuple(self.node(argument, depth + 1) for argument in syntax.args)
        if name in WRITTEN:
            return self.written(name, arguments, depth)
        if name == "log":
            return accurate_log(arguments[0], self.share)
        if name == "sqrt":
            arguments = (sum_of_squares(arguments[0], self.share),)
        return self.share(trees.Call, OwnName(self.own[name]) if name in self.own else name, arguments)

    def written(self, name: str, arguments: tuple[Node, ...], depth: int) -> Node:
        """What a function stands for, at its arguments."""
        source, given = self.source, self.given
        self.source, self.given = WRITTEN[name][0], dict(zip("uv", arguments, strict=False))
        try:
            return self.node(python_syntax(self.source), depth)
        finally:
            self.source, self.given = source, given

    def predicate(self, syntax: ast.expr, depth: int) -> Predicate:
        self.enter(syntax, depth)
        try:
            match syntax:
                case ast.Compare(left=first, ops=operators, comparators=others):
                    for operator in operators:
                        if type(operator) not in _RELATION:
                            raise refuse(f"the comparison {self.piece(syntax)}", "compare with <, <=, > or >=")
                    sides = [self.node(side, depth + 1) for side in (first, *others)]
                    triples = zip(operators, sides[:-1], sides[1:], strict=True)
                    links = tuple(self.share(trees.Relation, _RELATION[type(o)], a, b) for o, a, b in triples)
                    return links[0] if len(links) == 1 else self.share(trees.And, links)
                case ast.BoolOp(op=operator, values=values):
                    parts = tuple(self.predicate(value, depth + 1) for value in values)
                    kind: Any = trees.And if isinstance(operator, ast.And) else trees.Or
                    return self.share(kind, parts)
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    return self.share(trees.Not, self.predicate(operand, depth + 1))
                case _:
                    raise refuse(f"{self.piece(syntax)}, not a comparison", "compare two sides, as in x < 0")
        except InputError as refusal:
            self.goes_on(refusal)
            return _PREDICATE
