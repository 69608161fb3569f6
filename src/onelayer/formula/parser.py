"""Text to tree: a whitelist over Python's grammar, nothing of which is ever executed.

Python's `ast` reads the text; every syntax node outside the whitelist is refused by name. Equal subtrees become one
object. Three rewritings, all exact in ℝ: a − b is a + (−b); neighbouring equal factors a·a are a²; unary plus is
dropped. Not checked: whether the formula has a value anywhere (`1/0` parses).
"""

import ast
import difflib
import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any, TypeVar

from .expression import Condition, Formula
from .literal import constant_exponent, literal
from .screen import check_names, clip, refuse, screen
from .syntax import foreign, piece, python_syntax, segment
from .tree import (
    And,
    Call,
    Constant,
    IntegerPower,
    Negation,
    Node,
    Not,
    Number,
    Or,
    Power,
    Predicate,
    Product,
    Quotient,
    Relation,
    Sum,
    Variable,
    Where,
    variables,
)
from .vocabulary import ALLOWED, CONSTANTS, FUNCTIONS, MAX_DEPTH, MAX_NODES, MAX_VARIABLE, VARIADIC

_RELATION = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_Tree = TypeVar("_Tree")


def parse(text: str, names: Sequence[str] | None = None) -> Formula:
    """The formula that `text` writes down, outputs separated by `;`.

    Without `names` the variables are x1, x2, …; with names, exactly those, in that order. A name may replace the
    constant e. Decimals are exact: 0.1 is 1/10. Raises InputError, in one line, for everything outside the language.
    """
    line = screen(text)
    reader = _Reader(names)
    outputs = tuple(reader.formula(part) for part in line.split(";"))
    return Formula(text, reader.all_names(*outputs), outputs)


def parse_condition(text: str, names: Sequence[str] | None = None) -> Condition:
    """The condition that `text` writes down: comparisons, chains such as 0 < x1 < x2, and their and / or / not."""
    line = screen(text)
    reader = _Reader(names)
    root = reader.condition(line)
    return Condition(text, reader.all_names(root), root)


class _Reader:
    """Reads expressions over one set of names, sharing equal subtrees between them."""

    def __init__(self, names: Sequence[str] | None) -> None:
        self.names = None if names is None else check_names(names, FUNCTIONS | {"pi"})
        self.shared: dict[tuple[Any, ...], Any] = {}
        self.nodes = 0
        self.source = ""

    def all_names(self, *roots: Node | Predicate) -> tuple[str, ...]:
        if self.names is not None:
            return self.names
        return tuple(f"x{index}" for index in range(1, max(variables(*roots), default=0) + 1))

    def formula(self, source: str) -> Node:
        self.source = source.strip()
        return self.node(python_syntax(self.source), 1)

    def condition(self, source: str) -> Predicate:
        self.source = source.strip()
        return self.predicate(python_syntax(self.source), 1)

    def piece(self, syntax: ast.AST) -> str:
        return piece(self.source, syntax)

    def share(self, kind: type[_Tree], *fields: Any) -> _Tree:
        """kind(*fields), the same object for the same fields; subtrees count as same when they are one object."""
        label = tuple(
            tuple(map(id, field)) if isinstance(field, tuple) else field if _plain(field) else id(field)
            for field in fields
        )
        return self.shared.setdefault((kind, *label), kind(*fields))

    def enter(self, syntax: ast.AST, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise refuse(f"more than {MAX_NODES} operations", f"use at most {MAX_NODES} operations")
        if depth > MAX_DEPTH:
            raise refuse(f"operations nested more than {MAX_DEPTH} deep", f"nest at most {MAX_DEPTH} deep")

    def node(self, syntax: ast.expr, depth: int) -> Node:
        self.enter(syntax, depth)
        match syntax:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self.share(Number, literal(segment(self.source, syntax)))
            case ast.Constant():
                raise refuse(f"the literal {self.piece(syntax)}")
            case ast.Name(id=name):
                return self.name(name)
            case ast.UnaryOp(op=ast.UAdd(), operand=operand):
                return self.node(operand, depth + 1)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.share(Negation, self.node(operand, depth + 1))
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                return self.sum(syntax, depth)
            case ast.BinOp(op=ast.Mult()):
                return self.product(syntax, depth)
            case ast.BinOp(op=ast.Div(), left=left, right=right):
                return self.share(Quotient, self.node(left, depth + 1), self.node(right, depth + 1))
            case ast.BinOp(op=ast.Pow(), left=left, right=right):
                return self.power(self.node(left, depth + 1), self.node(right, depth + 1))
            case ast.Call():
                return self.call(syntax, depth)
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                raise refuse(f"the condition {self.piece(syntax)} as a value", "use conditions in where(c, a, b) only")
            case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
                raise refuse(f"the operator {type(operator).__name__} in {self.piece(syntax)}")
            case _:
                raise refuse(f"{foreign(syntax)}, {self.piece(syntax)}")

    def sum(self, syntax: ast.BinOp, depth: int) -> Node:
        terms: list[Node] = []
        rest: ast.expr = syntax
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Add | ast.Sub):
            term = self.node(rest.right, depth + 1)
            terms.append(term if isinstance(rest.op, ast.Add) else self.share(Negation, term))
            rest = rest.left
        terms.append(self.node(rest, depth + 1))
        return self.share(Sum, tuple(reversed(terms)))

    def product(self, syntax: ast.BinOp, depth: int) -> Node:
        factors: list[Node] = []
        rest: ast.expr = syntax
        while isinstance(rest, ast.BinOp) and isinstance(rest.op, ast.Mult):
            factors.append(self.node(rest.right, depth + 1))
            rest = rest.left
        factors.append(self.node(rest, depth + 1))
        runs = [list(run) for _, run in groupby(reversed(factors), key=id)]
        powers: list[Node] = [run[0] if len(run) == 1 else self.share(IntegerPower, run[0], len(run)) for run in runs]
        return powers[0] if len(powers) == 1 else self.share(Product, tuple(powers))

    def power(self, base: Node, exponent: Node) -> Node:
        value = constant_exponent(exponent)
        if value is None:
            return self.share(Power, base, exponent)
        if value.denominator == 1:
            return self.share(IntegerPower, base, value.numerator)
        return self.share(Power, base, self.share(Number, value))

    def name(self, name: str) -> Node:
        if self.names is not None and name in self.names:
            return self.share(Variable, self.names.index(name) + 1)
        if name in CONSTANTS:
            return self.share(Constant, name)
        if self.names is None and re.fullmatch(r"x[1-9][0-9]*", name):
            if len(name) > 9 or int(name[1:]) > MAX_VARIABLE:
                raise refuse(f"the variable {clip(name)}", f"use variables x1 to x{MAX_VARIABLE}")
            return self.share(Variable, int(name[1:]))
        if name in FUNCTIONS:
            raise refuse(f"the function {name} without arguments", f"write {name}(...)")
        known = ["x1", "x2"] if self.names is None else list(self.names)
        allowed = "x1, x2, …" if self.names is None else ", ".join(self.names) or "no variables"
        raise refuse(f"the unknown name {clip(name)}", f"use {allowed}, pi, e{_closest(name, [*known, *FUNCTIONS])}")

    def call(self, syntax: ast.Call, depth: int) -> Node:
        if not isinstance(syntax.func, ast.Name):
            raise refuse(f"a call of {self.piece(syntax.func)}")
        name, count = syntax.func.id, len(syntax.args)
        if name not in FUNCTIONS:
            raise refuse(f"the unknown function {clip(name)}", f"use {ALLOWED}{_closest(name, FUNCTIONS)}")
        if syntax.keywords or any(isinstance(argument, ast.Starred) for argument in syntax.args):
            raise refuse(f"named or starred arguments in {self.piece(syntax)}", "pass plain arguments")
        takes = "3 arguments" if name == "where" else "2 or more arguments" if name in VARIADIC else "1 argument"
        if count != 3 if name == "where" else count < 2 if name in VARIADIC else count != 1:
            raise refuse(f"{count} arguments in {self.piece(syntax)}", f"give {name} {takes}")
        if name == "where":
            condition, yes, no = syntax.args
            test = self.predicate(condition, depth + 1)
            return self.share(Where, test, self.node(yes, depth + 1), self.node(no, depth + 1))
        return self.share(Call, name, tuple(self.node(argument, depth + 1) for argument in syntax.args))

    def predicate(self, syntax: ast.expr, depth: int) -> Predicate:
        self.enter(syntax, depth)
        match syntax:
            case ast.Compare(left=first, ops=operators, comparators=others):
                for operator in operators:
                    if type(operator) not in _RELATION:
                        raise refuse(f"the comparison {self.piece(syntax)}", "compare with <, <=, > or >=")
                sides = [self.node(side, depth + 1) for side in (first, *others)]
                links = tuple(
                    self.share(Relation, _RELATION[type(operator)], left, right)
                    for operator, left, right in zip(operators, sides[:-1], sides[1:], strict=True)
                )
                return links[0] if len(links) == 1 else self.share(And, links)
            case ast.BoolOp(op=operator, values=values):
                parts = tuple(self.predicate(value, depth + 1) for value in values)
                return self.share(And, parts) if isinstance(operator, ast.And) else self.share(Or, parts)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self.share(Not, self.predicate(operand, depth + 1))
            case _:
                raise refuse(
                    f"{self.piece(syntax)}, not a comparison", "write a condition such as x1 < 0 or x1**2 + x2**2 <= 1"
                )


def _plain(field: object) -> bool:
    return isinstance(field, str | int) or type(field).__name__ == "Fraction"


def _closest(name: str, known: Sequence[str] | frozenset[str]) -> str:
    close = difflib.get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {close[0]}?" if close else ""
