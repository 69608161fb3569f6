"""The independent checker: is it true what the certificate of a model folder claims?

Standalone: `python checker.py FOLDER`. It needs python-flint and the standard library, nothing of `onelayer`, so that it
can be copied, read and trusted alone; evidence and digests in the folder prove nothing to it. It checks the digests, that
the files fit together, then reads T from the weights and f from the text and proves sup |T − f| ≤ bound in ball arithmetic.

With scores and values affine in x a head is a softmax average; a ReLU unit is one half of an identity, linear, or a kink:

    g = T − f = affine + Σ_heads Σ_t w_t(x)·v_t(x) + Σ_k a_k max_i u_ki(x) − (the rest of f),    u, v affine, per output.

Kinks of T and f that are equal up to scale, an affine function and a trifle are merged (`Kinks`), what remains is bounded
box by box (`Part`), and boxes are split, the worst first, until the claim is proved or refuted (`search`).
"""

import ast
import hashlib
import heapq
import json
import math
import operator
import re
import struct
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from pathlib import Path
from typing import Any

from flint import acb, arb, arb_mat, ctx, fmpq

Affine = list[Any]  # [constant, coefficient of x_1, …, coefficient of x_D], balls
Form = dict[Any, Any]  # a linear form: key 0 is the constant, i ≥ 1 is x_i, (h, k) is column k of head h's output
Node = tuple[str, tuple[Any, ...], Any]  # a formula: kind, operands, and a number, index, condition or relation
Box = list[tuple[float, float]]

FILES = ("model.safetensors", "target.json", "certificate.json")
READING, WORKING = 320, 96  # bits: products of five floats are exact while reading
SECONDS, BOXES = 300.0, 200_000
MASKED = 745  # a score so far below another has weight ≤ e^−745, and at most 2^−1074 more in floating point
DEGREES = {1: (2, 4, 8, 16, 24, 32), 2: (2, 4, 8, 12, 16, 20), 3: (2, 4, 6, 8, 10, 12), 4: (2, 3, 4, 6, 8, 10)}
RHOS = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1e3, 1e4, 1e6)
EFFORTS = ((0.05, 4), (0.006, 12), (0.001, 32))  # share of the claim for truncation, fine points per degree
POINTS, BRANCHES = 300_000, 16  # most fine points, most combinations of branches on one box
UP, INF = 1 + 1e-12, math.inf


@dataclass(frozen=True)
class Verdict:
    """VALID: proved here. INVALID: refuted here, or the files contradict each other. NOT CHECKABLE: neither."""

    verdict: str
    reason: str
    box: Box | None = None
    bound: float = INF
    boxes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        where = f"\nat {' × '.join(f'[{a!r}, {b!r}]' for a, b in self.box)}" if self.box else ""
        return f"{self.verdict}: {self.reason} ({self.boxes} boxes, {self.seconds:.1f} s){where}"


class Stop(Exception):
    """The check ends with this verdict."""

    def __init__(self, verdict: str, reason: str, box: Box | None = None) -> None:
        super().__init__(reason)
        self.found = Verdict(verdict, reason, box)


def require(condition: object, reason: str, verdict: str = "INVALID") -> None:
    if not condition:
        raise Stop(verdict, reason)


def checkable(condition: object, reason: str) -> None:
    require(condition, reason, "NOT CHECKABLE")


def read_json(text: str, what: str) -> dict[str, Any]:
    """A JSON object without NaN and without a key twice."""

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        require(len(dict(items)) == len(items), f"{what} has a key twice")
        return dict(items)

    try:
        found = json.loads(text, object_pairs_hook=pairs, parse_constant=lambda name: require(False, f"{what} has {name}"))
    except ValueError as error:
        raise Stop("INVALID", f"{what} is no JSON: {' '.join(str(error).split())[:80]}") from None
    require(isinstance(found, dict), f"{what} is no JSON object")
    return found  # type: ignore[no-any-return]


def read_number(record: dict[str, Any], name: str, instead: float | None = None) -> float:
    found = record.get(name)
    if found is None and instead is not None:
        return instead
    require(type(found) in (int, float) and 0 <= found < 1e300, f"{name} is no finite number ≥ 0")
    return float(found)  # type: ignore[arg-type]


def read_tensors(content: bytes) -> tuple[dict[str, str], dict[str, tuple[list[int], Any]], int, str]:
    """(metadata, name → (shape, nested lists), bytes of a number, fingerprint) of a safetensors file; all is finite."""
    length = int.from_bytes(content[:8], "little")
    require(8 + length <= len(content) and length <= 10**8, "model.safetensors: its header is longer than the file")
    header = read_json(content[8 : 8 + length].decode("utf-8", "replace"), "the header of model.safetensors")
    about, data, digest, end = header.pop("__metadata__", {}), content[8 + length :], hashlib.sha256(), 0
    require(isinstance(about, dict), "the metadata of model.safetensors is malformed")
    tensors: dict[str, tuple[list[int], Any]] = {}
    widths = {entry.get("dtype") if isinstance(entry, dict) else None for entry in header.values()}
    require(widths in ({"F64"}, {"F32"}), "the weights are not all float64, nor all float32")
    width = 8 if widths == {"F64"} else 4
    for name, entry in sorted(header.items()):
        shape, place = entry.get("shape"), entry.get("data_offsets")
        whole = all(isinstance(t, list) and all(type(n) is int and 0 <= n < 2**40 for n in t) for t in (shape, place))
        require(whole and len(place) == 2, f"tensor {name} has a malformed shape or place")
        count = math.prod(shape)
        require(place[1] - place[0] == count * width and place[1] <= len(data), f"tensor {name} lies outside the file")
        raw = data[place[0] : place[1]]
        numbers: Any = struct.unpack(f"<{count}{'d' if width == 8 else 'f'}", raw)
        require(all(map(math.isfinite, numbers)), f"tensor {name} has a number that is not finite")
        digest.update(f"{name} torch.float{8 * width} {shape}".encode() + raw)
        for n in reversed(shape[1:]):
            numbers = [numbers[i : i + n] for i in range(0, len(numbers), n)] if n else []
        tensors[name], end = (shape, numbers), max(end, place[1])
    require(end == len(data), "model.safetensors has bytes that belong to no tensor")
    return about, tensors, width, digest.hexdigest()


RELATIONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
CONVERSE = {operator.lt: operator.ge, operator.le: operator.gt, operator.gt: operator.le, operator.ge: operator.lt}
UNARY = {*"sin cos tan exp log sqrt tanh sinh cosh atan asin acos sigmoid erf abs sqr".split()}
KINKS = ("abs", "min", "max", "where")
LITERAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)


def const(value: Any) -> Node:
    return ("num", (), value)


class Reader:
    """Text to nodes over the given names. Python's `ast` reads, a whitelist decides, nothing is executed."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names, self.text = list(names), ""

    def parse(self, text: object, condition: bool = False) -> Node:
        require(isinstance(text, str) and len(text) <= 10_000, "a formula is no text, or too long")
        self.text = " ".join(str(text).split())
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError):
            raise Stop("INVALID", f"the formula {self.text[:60]!r} cannot be read") from None
        return self.condition(tree) if condition else self.node(tree)

    def node(self, t: ast.expr) -> Node:
        match t:
            case ast.Constant(value=int() | float()):
                source = ast.get_source_segment(self.text, t) or ""
                require(LITERAL.fullmatch(source) and len(source) <= 400, f"the literal {source[:40]!r} is refused")
                return const(fmpq(*Fraction(source).as_integer_ratio()))
            case ast.Name(id=name) if name in self.names:
                return ("var", (), self.names.index(name))
            case ast.Name(id="pi" | "e" as name):
                return (name, (), None)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=a):
                return self.node(a) if isinstance(op, ast.UAdd) else ("mul", (const(fmpq(-1)), self.node(a)), None)
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() as op):
                same, parts = (ast.Mult,) if isinstance(op, ast.Mult) else (ast.Add, ast.Sub), list[Node]()
                while isinstance(t, ast.BinOp) and isinstance(t.op, same):  # a long chain is one node
                    right = self.node(t.right)
                    parts.append(("mul", (const(fmpq(-1)), right), None) if isinstance(t.op, ast.Sub) else right)
                    t = t.left
                return ("mul" if isinstance(op, ast.Mult) else "add", (self.node(t), *reversed(parts)), None)
            case ast.BinOp(op=ast.Div(), left=a, right=b):
                return ("div", (self.node(a), self.node(b)), None)
            case ast.BinOp(op=ast.Pow(), left=a, right=b):
                base, exponent = self.node(a), self.node(b)
                q = rational(exponent)
                require(q is None or abs(q) <= 1000, "a constant exponent is too large")
                return ("gpow", (base, exponent), None) if q is None else ("pow" if q.q == 1 else "rpow", (base,), q)
            case ast.Call(func=ast.Name(id="where"), args=[test, a, b], keywords=[]):
                return ("where", (self.node(a), self.node(b)), self.condition(test))
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if args and (
                name in UNARY if len(args) == 1 else name in ("min", "max")
            ):
                u = tuple(map(self.node, args))
                if name == "sigmoid":
                    below: Node = ("add", (const(1), ("exp", (("mul", (const(-1), u[0]), None),), None)), None)
                    return ("div", (const(1), below), None)
                return {"sqrt": ("rpow", u, fmpq(1, 2)), "sqr": ("pow", u, fmpq(2))}.get(name, (name, u, None))
        raise Stop("INVALID", f"{(ast.get_source_segment(self.text, t) or '')[:60]!r} is not in the formula language")

    def condition(self, t: ast.expr) -> Node:
        match t:
            case ast.Compare(left=first, ops=ops, comparators=others) if all(type(o) in RELATIONS for o in ops):
                sides = [self.node(s) for s in (first, *others)]
                links = [("cmp", tuple(sides[i : i + 2]), RELATIONS[type(o)]) for i, o in enumerate(ops)]  # type: ignore
                return ("and", tuple(links), None)
            case ast.BoolOp(op=op, values=values):
                return ("and" if isinstance(op, ast.And) else "or", tuple(map(self.condition, values)), None)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return ("not", (self.condition(a),), None)
        raise Stop("INVALID", "a condition is no comparison")


def rational(node: Node) -> Any:
    """The exact value of numbers under + − * / and integer powers; None for anything else."""
    kind, parts, extra = node[0], [rational(a) for a in node[1]], node[2]
    if kind not in ("num", "add", "mul", "div", "pow") or None in parts:
        return extra if kind == "num" else None
    if kind in ("num", "add"):
        return extra if kind == "num" else sum(parts, fmpq(0))
    bits = sum(max(int(q.p).bit_length(), int(q.q).bit_length()) for q in parts)
    require(bits * max(1, abs(int(extra.p)) if kind == "pow" else 1) <= 8192, "an exponent is too large")
    if kind == "mul":
        return math.prod(parts, start=fmpq(1))
    require(parts[-1] != 0 or (kind == "pow" and extra >= 0), "an exponent divides by zero")
    return parts[0] / parts[1] if kind == "div" else parts[0] ** int(extra.p)


class Sides(list[Any]):
    """Balls around the sides of a box, with the exact box beside them."""

    def __init__(self, box: Box) -> None:
        super().__init__(arb(a).union(arb(b)) for a, b in box)
        self.box = box


def below(node: Node) -> Iterator[Node]:
    """Every node of a formula, conditions of `where` left out."""
    yield node
    for child in node[1]:
        yield from below(child)


def variables(node: Node) -> set[int]:
    found = {n[2] for n in below(node) if n[0] == "var"}
    return found.union(*(variables(n[2]) for n in below(node) if n[0] == "where"))


def value(node: Node, x: Sequence[Any], choice: dict[int, int] | None = None) -> Any:
    """The node at x, real balls or one of them complex. NaN: no value, or not proved analytic.

    A finite complex result proves the formula with the chosen branches of abs, min, max, where to be analytic on the
    ball: entire functions and quotients are (a pole has no finite enclosure); log and powers are evaluated off their cut,
    asin, acos and atan off theirs. Without `choice` (real balls) the result covers every branch that is possible.
    """
    kind, operands, extra = node
    if kind == "num":
        return arb(extra)
    if kind == "var":
        return x[extra]
    if kind == "where":
        if choice is not None:
            return value(operands[choice[id(node)]], x, choice)
        truths = truth(extra, x)
        return arb.nan() if None in truths else reduce(arb.union, [value(operands[0 if t else 1], x) for t in truths])
    u = [value(a, x, choice) for a in operands]
    if kind in KINKS:
        u = [u[0], -u[0]] if kind == "abs" else u
        return u[choice[id(node)]] if choice is not None else reduce(arb.min if kind == "min" else arb.max, u)
    if kind == "add":
        return sum(u[1:], u[0])
    if kind == "mul" and not (len(u) == 2 and operands[0] == operands[1]):
        return math.prod(u[1:], start=u[0])
    if kind == "div":
        return u[0] / u[1]
    if kind == "mul" or (kind == "pow" and extra == 2):
        wide = isinstance(u[0], arb) and u[0].contains(0)
        return arb(0).union(u[0].abs_upper() ** 2) if wide and u[0].is_finite() else u[0] * u[0]
    if kind == "pow":
        return u[0] ** int(extra.p)
    if kind in ("rpow", "gpow"):
        power = u[1] if kind == "gpow" else arb(extra)
        if kind == "rpow" and isinstance(u[0], arb) and power > 0 and not u[0] > 0:  # 0 at 0
            at_zero = u[0] == 0 or (isinstance(x, Sides) and nonnegative(operands[0], x))
            return arb(0).union((power * u[0].upper().log()).exp() if u[0] != 0 else arb(0)) if at_zero else arb.nan()
        return (power * (u[0].log(analytic=True) if isinstance(u[0], acb) else u[0].log())).exp()
    if kind in ("pi", "e"):
        return arb.pi() if kind == "pi" else arb.const_e()
    z = u[0]
    if isinstance(z, acb) and kind in ("asin", "acos", "atan"):
        along, across = (z.imag, z.real) if kind == "atan" else (z.real, z.imag)  # cuts: |along| ≥ 1, across = 0
        return getattr(z, kind)() if (along > -1 and along < 1) or not across.contains(0) else arb.nan()
    return z.log(analytic=True) if isinstance(z, acb) and kind == "log" else getattr(z, kind)()


def nonnegative(node: Node, x: Sides) -> bool:
    """Whether the node is ≥ 0 on the exact box, which balls around its sides cannot tell."""
    line = affine(node, len(x))
    if line is not None:
        return bool(span(line, x.box)[0] >= 0)
    if node[0] in ("add", "mul"):
        return all(nonnegative(a, x) for a in node[1])
    return node[0] == "abs" or (node[0] == "pow" and int(node[2].p) % 2 == 0)


def truth(node: Node, x: Sequence[Any]) -> set[bool | None]:
    """The truth values that a condition may have on the box; None is undefined."""
    kind, operands, relation = node
    if kind == "cmp":
        left, right = (value(a, x) for a in operands)
        if not (left.is_finite() and right.is_finite()):
            return {None}
        return {True} if relation(left, right) else {False} if CONVERSE[relation](left, right) else {True, False}
    found = [truth(a, x) for a in operands]
    if kind == "not":
        return {None if t is None else not t for t in found[0]}
    stops = kind == "or"  # one True decides `or`, one False decides `and`
    return {stops if stops in ts else None if None in ts else not stops for ts in product(*found)}


def span(a: Affine, box: Box) -> tuple[Any, Any]:
    """(low, high) of an affine function on a box."""
    ends = [(k * arb(p), k * arb(q)) for k, (p, q) in zip(a[1:], box, strict=True) if k != 0]
    return sum((p.min(q) for p, q in ends), a[0]), sum((p.max(q) for p, q in ends), a[0])


def size(a: Affine, box: Box) -> Any:
    """An upper bound on |a| over a box."""
    low, high = span(a, box)
    return low.abs_upper().max(high.abs_upper())


def combined(a: Affine, scale: Any, b: Affine) -> Affine:
    return [p + scale * q if q != 0 else p for p, q in zip(a, b, strict=True)]


@dataclass
class Sum:
    """affine + Σ coefficient·max(affine tuple) + Σ coefficient·node."""

    line: Affine
    kinks: list[tuple[Any, list[Affine]]]
    terms: list[tuple[Any, Node]]

    def add(self, scale: Any, node: Node) -> None:
        """Add scale·node, taken apart along sums, constant factors and kinks of affine functions."""
        kind, operands, extra = node
        moving = [a for a in operands if variables(a)]
        if kind == "var":
            self.line[extra + 1] += scale
        elif kind == "add":
            for part in operands:
                self.add(scale, part)
        elif not variables(node):
            self.line[0] += scale * value(node, [])
        elif kind == "mul" and len(moving) == 1:
            self.add(math.prod((value(a, []) for a in operands if a is not moving[0]), start=scale), moving[0])
        elif kind == "div" and not variables(operands[1]):
            self.add(scale / value(operands[1], []), operands[0])
        else:
            sign = -1 if kind == "min" else 1
            branches = maximum(node, sign, len(self.line) - 1) if kind in KINKS else None
            if branches is None:
                self.terms.append((scale, node))
            else:
                self.kinks.append((sign * scale, branches))


def affine(node: Node, D: int) -> Affine | None:
    found = Sum([arb(0)] * (D + 1), [], [])
    found.add(arb(1), node)
    return None if found.kinks or found.terms else found.line


def maximum(node: Node, sign: int, D: int) -> list[Affine] | None:
    """Affine functions whose maximum is sign·node, if there are."""
    inner = node[1][0] if node[0] == "abs" else node
    line = affine(inner, D) if inner[0] not in KINKS else None
    if line is not None:
        return [[sign * k for k in line]] if node[0] != "abs" else [line, [-k for k in line]] if sign == 1 else None
    parts = [maximum(a, sign, D) for a in node[1]] if node[0] == ("max" if sign == 1 else "min") else [None]
    return None if None in parts else [u for part in parts for u in part or []]


class Kinks:
    """Σ_k a_k max(u_k1, …, u_kn) for every output, equal ones merged.

    max(u) = mean(u) + λ·max(û), û = (u − mean(u))/λ: û does not change with scale, added affine functions and order, and
    relu(d), relu(−d), |d| have the same û = {d, −d}/λ. If |û_i − v̂_i| ≤ δ on the domain then |max û − max v̂| ≤ δ.
    """

    def __init__(self, box: Box, lines: list[Affine]) -> None:
        self.box, self.lines, self.error = box, lines, [arb(0)] * len(lines)
        self.known: list[tuple[list[Any], list[Affine]]] = []

    def normal(self, branches: list[Affine]) -> tuple[Affine, Any, list[Affine]]:
        mean = [sum(column, arb(0)) / len(branches) for column in zip(*branches, strict=True)]
        apart = [combined(b, -1, mean) for b in branches]
        scale = max((size([arb(0), *b[1:]], self.box) for b in apart), key=float)
        return mean, scale, [[k / scale for k in b] for b in apart] if scale > 0 else apart

    def match(self, hats: list[Affine]) -> tuple[int, Any] | None:
        """(index, δ) of an equal kink."""
        for index, (_, known) in enumerate(self.known):
            left, worst = list(known), arb(0)
            for hat in hats if len(hats) == len(known) else []:
                near, place = min((float(size(combined(hat, -1, v), self.box)), i) for i, v in enumerate(left))
                worst = worst.max(size(combined(hat, -1, left.pop(place)), self.box))
            if len(hats) == len(known) and worst < 1e-6:
                return index, worst
        return None

    def add(self, scales: list[Any], branches: list[Affine]) -> None:
        """Add scales[o]·max(branches) to every output o; the affine part goes to the lines."""
        mean, scale, hats = self.normal(branches)
        if not scale > 0:  # constants apart
            mean = [mean[0] + reduce(arb.max, [b[0] for b in hats]), *mean[1:]]
        self.lines[:] = [combined(line, s, mean) for line, s in zip(self.lines, scales, strict=True)]
        scaled = [s * scale for s in scales]
        if found := self.match(hats) if scale > 0 else None:
            old, v = self.known[found[0]]
            self.known[found[0]] = [a + b for a, b in zip(old, scaled, strict=True)], v
            self.error = [e + abs(s) * found[1] for e, s in zip(self.error, scaled, strict=True)]
        elif scale > 0:
            self.known.append((scaled, hats))

    def terms(self, trifle: float) -> list[list[tuple[Any, Node]]]:
        """What is left, per output, as nodes; trifles go to the error."""
        found: list[list[tuple[Any, Node]]] = [[] for _ in self.lines]
        for scales, hats in self.known:
            reach = reduce(arb.max, [size(h, self.box) for h in hats])
            node = ("max", tuple(("add", (const(h[0]), *(("mul", (const(k), ("var", (), i)), None)
                    for i, k in enumerate(h[1:]) if k != 0)), None) for h in hats), None)  # fmt: skip
            for o, s in enumerate(scales):
                trivial = abs(s) * reach <= trifle
                self.error[o] += abs(s) * reach if trivial else 0
                found[o] += [] if trivial else [(s, node)]
        return found


@dataclass
class Head:
    """Σ_t softmax_t(scores)·values[output][token]."""

    scores: list[Affine]
    values: list[list[Affine]]
    paid: list[Any]  # rounding per output
    rest: list[Any]  # the part of it that does not come from the scores
    off: Any  # rounding of the scores

    def as_maximum(self, box: Box) -> tuple[list[Any], list[Any]]:
        """(γ, residue) per output: values = γ·scores + a common affine function, up to the residue."""
        apart = [combined(s, -1, self.scores[0]) for s in self.scores]
        steps = [(float(size([arb(0)] * i + [s[i]] + [arb(0)] * (len(box) - i), box)), t, i)
                 for t, s in enumerate(apart) for i in range(1, len(box) + 1)]  # fmt: skip
        _, t, i = max(steps)
        slopes = [(v[t][i] - v[0][i]) / apart[t][i] for v in self.values]
        gaps = [[combined(combined(p, -1, v[0]), -g, s) for p, s in zip(v, apart, strict=True)]
                for v, g in zip(self.values, slopes, strict=True)]  # fmt: skip
        return slopes, [reduce(arb.max, [size(gap, box) for gap in row]) for row in gaps]


def exactly(a: Affine) -> tuple[Any, ...]:
    """A key that only equal balls share."""
    return tuple((*k.mid().man_exp(), *k.rad().man_exp()) for k in a)


def plus(target: Form, scale: Any, form: Form) -> None:
    if scale != 0:
        for key, k in form.items():
            target[key] = target.get(key, arb(0)) + scale * k


class Layer:
    """T_o = lines[o] + Σ heads + Σ hinges, read from the weights; `error`: what was left out, `rounding`: of the deployed T.

    Every token is affine in x; so are keys, values and, where q or k is constant, scores. A token whose score is always
    745 below another's is left out. ReLU units: relu(z) − relu(−z) = z; a unit of proved sign is linear or nothing; one that
    sees no head is a hinge. Rounding, u the unit roundoff, e_x = u(3 + 2·reach) of a normalised input, exp within 4u: a head
    with n tokens, scores of size S, values of size V and range R, all moving by at most k, v per unit of x, is off by

        (d + 4u + u·ln n)R + (2n + 12)uV + v·e_x,    d = k·e_x + (D + 3)uS,    and (heads + D + 6)uV for the sum;

    read as a maximum of scores/γ … by 2γ(d + 764u) instead of the first term, since a softmax of scores that are off by
    d gives an average between max − W − 2d and max. A unit with n inputs of total size Z is off by (n + 2)uZ.
    """

    def __init__(self, c: dict[str, Any], w: dict[str, Any], places: list[int], box: Box, u: Any) -> None:
        self.c, self.w, self.box, self.u, self.D = c, w, box, u, len(box)
        n, d, outs = c["tokens"], c["features_in"], c["features_out"] * len(places)
        self.shift, scale = ([arb(v) for row in w[name] for v in row] for name in ("shift", "scale"))
        require(all(s != 0 for s in scale), "a scale is 0")
        self.unit, sides = [1 / abs(s) for s in scale], [(arb(a), arb(b)) for a, b in box]
        near = zip(sides, self.shift, scale, strict=True)
        self.edge = [abs((a - s) * q).max(abs((b - s) * q)).max(0.5) + 1e-9 for (a, b), s, q in near]
        self.e_x = u * (3 + 2 * reduce(arb.max, [abs(a).max(abs(b)) / (b - a) for a, b in sides])) * 1.01
        self.lines = [[arb(0)] * (self.D + 1) for _ in range(outs)]
        self.heads: dict[Any, Head] = {}
        self.hinges: list[tuple[list[Any], Affine]] = []
        self.error, self.rounding, self.sizes = [arb(0)] * outs, [arb(0)] * outs, [arb(0)] * outs
        matrices = [w[name] for name in ("W_O", "W_1", "W_2", "W_R")]
        self.gain = math.prod(1 + sum((abs(arb(v)) for row in m for v in row), arb(0)) for m in matrices)  # of all paths
        special = [[{0: arb(v)} if v else {} for v in row] for row in w.get("S", [])]
        self.tokens = [self.embedded(j) for j in range(n)] + special
        both = [[[self.projected(t, which, h) for t in self.tokens] for which in "KV"] for h in range(c["heads"])]
        for index, place in enumerate(places):
            asking = special[place - c["output_tokens"]] if c["readout"] == "output" else self.tokens[place]
            seen = [self.attended(h, self.projected(asking, "Q", h), *both[h]) for h in range(c["heads"])]
            self.fed_forward(asking, seen, index * c["features_out"])
        for o, line in enumerate(self.lines):
            k, s = self.moving(line)
            self.sizes[o] += s
            self.rounding[o] += 4 * u * abs(line[0]) + k * (self.e_x + (self.D + 6) * u)
            self.rounding[o] += (c["heads"] + self.D + 6) * u * self.sizes[o] + arb(2) ** -1000

    def moving(self, a: Affine) -> tuple[Any, Any]:
        """(Σ|coefficients|, size) of an affine function in normalised coordinates."""
        steps = [abs(k) * q for k, q in zip(a[1:], self.unit, strict=True)]
        middle = sum(map(operator.mul, a[1:], self.shift), a[0])
        return sum(steps, arb(0)), abs(middle) + sum(map(operator.mul, steps, self.edge), arb(0))

    def embedded(self, j: int) -> list[Form]:
        w, d = self.w, self.c["features_in"]
        row: list[Form] = [{0: arb(b) + (w["P"][j][m] if "P" in w else 0)} for m, b in enumerate(w["b_E"])]
        for f, m in product(range(d), range(len(row))):
            plus(row[m], arb(w["scale"][j][f]) * w["W_E"][f][m], {0: -self.shift[j * d + f], j * d + f + 1: arb(1)})
        return [{key: k for key, k in form.items() if k != 0} for form in row]

    def projected(self, row: list[Form], which: str, h: int) -> list[Form]:
        weights, bias = self.w[f"W_{which}"][h], self.w.get(f"b_{which}")
        result: list[Form] = [{0: arb(bias[h][k])} if bias else {} for k in range(len(weights[0]))]
        for form, line in zip(row, weights, strict=True):
            for k, weight in enumerate(line if form else []):
                plus(result[k], arb(weight), form)
        return result

    def dense(self, form: Form) -> Affine:
        return [form.get(i, arb(0)) for i in range(self.D + 1)]

    def attended(self, h: int, q: list[Form], keys: list[list[Form]], values: list[list[Form]]) -> list[tuple[Affine, list[Affine]]]:
        """(score, values) of the tokens that head h attends to from query q."""
        root, scores = arb(self.c["d_k"]).sqrt(), list[tuple[Affine, Any]]()
        for k in keys:
            score, rest = dict[Any, Any](), arb(0)
            for a, b in zip(q, k, strict=True):
                one, other = (b, a) if a.keys() - {0} else (a, b)
                if not one.keys() - {0}:
                    plus(score, one.get(0, arb(0)) / root, other)
                else:
                    rest += math.prod(arb.union(*span(self.dense(f), self.box)) for f in (a, b)) / root
            scores.append((self.dense(score), rest))
        first = max((s for s, rest in scores if rest == 0), key=lambda s: float(span(s, self.box)[0]), default=None)
        kept = [t for t, (s, rest) in enumerate(scores)
                if first is None or not span(combined(s, -1, first), self.box)[1] + rest <= -MASKED]  # fmt: skip
        checkable(all(scores[t][1] == 0 for t in kept), f"scores of head {h} are not affine in x: not a constructed layer")
        lost = sum((size(self.dense(v), self.box) for row in values for v in row), arb(0)) * arb(2) ** -1060
        self.error = [e + lost * self.gain for e in self.error]
        return [(scores[t][0], [self.dense(v) for v in values[t]]) for t in kept]

    def fed_forward(self, asking: list[Form], seen: list[list[tuple[Affine, list[Affine]]]], first: int) -> None:
        """The outputs of one place, `first` …: heads, feed-forward network and read-out as linear forms and hinges."""
        w, u, d_v, outs = self.w, self.u, self.c["d_v"], range(self.c["features_out"])
        stream: list[Form] = [dict(form) if self.c["residual"] else {} for form in asking]
        for m, b in enumerate(w.get("b_O", [])):
            plus(stream[m], arb(b), {0: arb(1)})
        for (h, tokens), k in product(enumerate(seen), range(d_v)):
            alone = dict(enumerate(tokens[0][1][k])) if len(tokens) == 1 else {(h, k): arb(1)}
            for m, weight in enumerate(w["W_O"][h * d_v + k]):
                plus(stream[m], arb(weight), alone)

        def column(form: Form, h: int, token: list[Affine]) -> Affine:  # what a token of head h is worth to the form
            parts = [combined([arb(0)] * (self.D + 1), form[h, k], token[k]) for k in range(d_v) if (h, k) in form]
            return [sum(c, arb(0)) for c in zip(*parts, strict=True)]

        def spread(form: Form) -> tuple[Any, Any]:
            low, high = span(self.dense(form), self.box)
            for h in {key[0] for key in form if isinstance(key, tuple)}:
                ends = [span(column(form, h, token), self.box) for _, token in seen[h]]
                low, high = low + reduce(arb.min, [a for a, _ in ends]), high + reduce(arb.max, [b for _, b in ends])
            return low, high

        def magnitude(form: Form) -> Any:
            return reduce(arb.max, map(arb.abs_upper, spread(form)))

        read = [[arb(v) for v in row] for row in w["W_R"]]
        result: list[Form] = [{0: arb(w["b_R"][o]) + sum((arb(b) * read[m][o] for m, b in enumerate(w["b_2"])), arb(0))}
                              for o in outs]  # fmt: skip
        for (m, form), o in product(enumerate(stream if self.c["residual"] else []), outs):
            plus(result[o], read[m][o], form)
        units = [(tuple(row[j] for row in w["W_1"]), w["b_1"][j]) for j in range(len(w["b_1"]))]
        worth = [[sum((arb(v) * read[m][o] for m, v in enumerate(row) if v), arb(0)) for o in outs] for row in w["W_2"]]
        places, done, live = {unit: j for j, unit in enumerate(units)}, set[int](), list[tuple[int, bool, Any]]()
        sizes = [magnitude(form) for form in stream]
        for j, (weights, bias) in enumerate(units):
            if j in done or not any(c != 0 for c in worth[j]):
                continue
            form: Form = {0: arb(bias)}
            for m, v in enumerate(weights):
                plus(form, arb(v), stream[m])
            twin = places.get((tuple(-v for v in weights), -bias), j)
            paired = twin != j and twin not in done and all(p == -q for p, q in zip(worth[twin], worth[j], strict=True))
            low, high = (arb(0), arb(0)) if paired else spread(form)
            done |= {twin} if paired else set()
            if low >= 0:
                for o in outs:
                    plus(result[o], worth[j][o], form)
            elif not high <= 0:
                alone = not any(isinstance(key, tuple) for key in form)
                checkable(alone, f"unit {j} of the feed-forward network may switch: not a constructed layer")
                scales = [arb(0)] * len(self.lines)
                scales[first : first + len(outs)] = worth[j]
                self.hinges.append((scales, self.dense(form)))
            if low >= 0 or not high <= 0:
                inputs = [v for v in weights if v]
                total = abs(arb(bias)) + sum((abs(arb(v)) * s for v, s in zip(weights, sizes, strict=True)), arb(0))
                off = 0 if paired and inputs in ([1.0], [-1.0]) and not bias else (len(inputs) + 2) * u * total
                live.append((j, off + (0 if low >= 0 else self.moving(self.dense(form))[0] * self.e_x), total))
        for o in outs:
            mine = [(worth[j][o], off, total) for j, off, total in live if worth[j][o] != 0]
            exact = len(mine) == 1 and abs(mine[0][0]) == 1
            summed = [abs(c) * (off + (0 if exact else (len(mine) + 2) * u * total)) for c, off, total in mine]
            self.rounding[first + o] += sum(summed, arb(0))
            self.lines[first + o] = combined(self.lines[first + o], 1, self.dense(result[o]))
            for h in {key[0] for key in result[o] if isinstance(key, tuple)}:
                self.average(h, first + o, [s for s, _ in seen[h]], [column(result[o], h, v) for _, v in seen[h]])

    def average(self, h: int, o: int, scores: list[Affine], values: list[Affine]) -> None:
        """Add Σ_t softmax_t(scores)·values to output o, and what its rounding costs."""
        u, n, outs = self.u, len(scores), len(self.lines)
        off = reduce(arb.max, [k * self.e_x + (self.D + 3) * u * s for k, s in map(self.moving, scores)])
        zero, nothing = [[arb(0)] * (self.D + 1)] * n, [arb(0)] * outs
        key = (h, *map(exactly, scores))
        head = self.heads.setdefault(key, Head(scores, [zero] * outs, list(nothing), list(nothing), off))
        ends = [span(v, self.box) for v in values]
        low, high = reduce(arb.min, [a for a, _ in ends]), reduce(arb.max, [b for _, b in ends])
        large, swing = low.abs_upper().max(high.abs_upper()), reduce(arb.max, [self.moving(v)[0] for v in values])
        head.values[o], self.sizes[o] = values, self.sizes[o] + large
        head.rest[o] = (2 * n + 12) * u * large + swing * self.e_x
        relative = off + 4 * u + u * arb(n).log() if off < 1e-3 else arb.pos_inf()
        head.paid[o] = head.rest[o] + relative * (high - low)


@dataclass
class Difference:
    """g_o = lines[o] + Σ heads + Σ coefficient·node over terms[o], and errors between low[o] and high[o]."""

    lines: list[Affine]
    heads: list[Head]
    terms: list[list[tuple[Any, Node]]]
    low: list[Any]
    high: list[Any]
    rounding: list[Any]
    optional: bool = False  # whether a head was read as a maximum that need not have been


def difference(layer: Layer, f: list[Node], box: Box, bound: float, eager: bool) -> Difference:
    """T − f with equal kinks merged. A head whose values are its scores/β is a smooth maximum of n affine functions, below
    the maximum by at most W((n − 1)/e)/β (W: Lambert's function); it is read so where it is too sharp for boxes, and, if
    `eager`, where f has the same kink."""
    D, outs = len(box), range(len(f))
    kinks, terms = Kinks(box, list(layer.lines)), list[list[tuple[Any, Node]]]()
    for o, node in enumerate(f):
        s = Sum([arb(0)] * (D + 1), [], [])
        s.add(arb(-1), node)
        kinks.lines[o] = combined(kinks.lines[o], 1, s.line)
        terms.append(s.terms)
        for scale, branches in s.kinks:
            kinks.add([scale if p == o else arb(0) for p in outs], branches)
    for scales, line in layer.hinges:
        kinks.add(scales, [[arb(0)] * (D + 1), line])
    g = Difference(kinks.lines, [], terms, list(layer.error), list(layer.error), list(layer.rounding))
    g.low = [-e for e in g.low]
    for head in layer.heads.values():
        slopes, residues = head.as_maximum(box)
        spreads = [max(float(s[i]) for s in head.scores) - min(float(s[i]) for s in head.scores) for i in range(1, D + 1)]
        pieces = math.prod(max(1.0, k * (b - a) / 8) for k, (a, b) in zip(spreads, box, strict=True))
        like = all(r <= bound / 1000 for r in residues)
        same = like and eager and kinks.match(kinks.normal(head.scores)[2]) is not None
        if like and (same or pieces > 3000):
            g.optional |= pieces <= 3000
            short = (arb(len(head.scores) - 1) / arb.const_e()).lambertw()
            for o, (slope, residue) in enumerate(zip(slopes, residues, strict=True)):
                common = combined(head.values[o][0], -slope, head.scores[0])
                g.lines[o] = combined(g.lines[o], 1, common)
                g.low[o] -= residue + (slope * short).max(0)
                g.high[o] += residue - (slope * short).min(0)
                g.rounding[o] += head.rest[o] + 2 * abs(slope) * (head.off + 764 * layer.u)
            kinks.add(slopes, head.scores)
        else:
            g.heads.append(head)
            g.rounding = [r + p for r, p in zip(g.rounding, head.paid, strict=True)]
    for o, left in enumerate(kinks.terms(bound * 1e-9)):
        g.terms[o] += left
        g.low[o], g.high[o] = g.low[o] - kinks.error[o], g.high[o] + kinks.error[o]
    g.rounding = [r * 1.01 for r in g.rounding]
    return g


@cache
def interpolation(p: int, N: int) -> Any:
    """[N, p + 1]: values at N Chebyshev points of the polynomial with given values at p + 1 (first kind)."""
    fine = arb_mat(N, p, [arb.cos_pi_fmpq(fmpq((2 * i + 1) * j, 2 * N)) * 2 for i in range(N) for j in range(1, p + 1)])
    near = arb_mat(p, p + 1, [arb.cos_pi_fmpq(fmpq((2 * k + 1) * j, 2 * p + 2)) for j in range(1, p + 1) for k in range(p + 1)])
    return arb_mat(N, p + 1, [(1 + v) / (p + 1) for v in (fine * near).entries()])


def up(ball: Any) -> float:
    """A float above a ball; infinite if there is none."""
    found = float(ball.upper()) if ball.is_finite() else INF
    return found + abs(found) * 1e-15 + 1e-307 if math.isfinite(found) else INF


@dataclass
class Leaf:
    """A box, what is proved of g on it (low, high), what is attained (seen), and where to cut it."""

    box: Box
    effort: int
    low: list[float]
    high: list[float]
    seen: list[tuple[float, float]]  # g takes a value ≤ the first and one ≥ the second
    axis: int
    crude: bool = False  # a finer grid would not help
    alive: bool = True


class Part:
    """g on a group of coordinates that neither T nor f mixes with others.

    On a box with half-widths r, g is interpolated at (p+1)^D Chebyshev points. If |g| ≤ V_i with coordinate i on its ellipse
    (half-axes r_i(ρ ± 1/ρ)/2) and the others real, then ‖g − I_p g‖ ≤ Σ_i Λ^i·4V_i ρ^(−p)/(ρ − 1), Λ = 1 + (2/π)ln(p + 1).
    A polynomial is at most cos(pπ/2N)^(−D) times its maximum over N^D Chebyshev points (Ehlich and Zeller). V of f: complex
    balls. V of T: on the ellipse the scores of a head have imaginary parts within θ = Im x_i·(max k − min k)/2 of their
    middle; turned by it, Re e^(s_t) ≥ cos θ·|e^(s_t)|, so |Σ e^(s_t)| ≥ cos θ Σ|e^(s_t)| and Σ|w_t| ≤ 1/cos θ while Σ w_t = 1:
    |Σ w_t v_t| ≤ |c| + max|v_t − c|/cos θ. Kinks: at every x, g is one of its branches, so each is bounded on the box.
    """

    def __init__(self, g: Difference, axes: list[int], first: bool, domain: "Domain", share: float) -> None:
        def local(a: Affine) -> Affine:
            return [a[0], *(a[i + 1] for i in axes)]

        self.axes, self.domain, self.share, self.outs = axes, domain, share, range(len(g.lines))
        own = set(axes)
        self.lines = [local(line) for line in g.lines]
        if not first:
            self.lines = [[arb(0), *line[1:]] for line in self.lines]
        self.terms = [[(s, t) for s, t in row if variables(t) & own or (first and not variables(t))] for row in g.terms]
        self.families: dict[Any, tuple[list[Affine], list[Any]]] = {}
        self.strips: dict[tuple[float, ...], list[Affine]] = {}
        self.fixed = [line[:] for line in self.lines]
        box = self.box = [domain.box[i] for i in axes]
        for head in g.heads:
            if not (touched(head) & own or (first and not touched(head))):
                continue
            scores, values = [local(s) for s in head.scores], [[local(v) for v in row] for row in head.values]
            key = tuple(exactly(s[1:]) for s in scores)
            self.families.setdefault(key, (scores, []))[1].append(([s[0].exp() for s in scores], values))
            keys = list(zip(*(s[1:] for s in scores), strict=True))
            spread = tuple(up(reduce(arb.max, k) - reduce(arb.min, k)) for k in keys)
            reach = self.strips.setdefault(spread, [[arb(0)] * (len(axes) + 1) for _ in self.outs])
            for o, row in enumerate(values):  # |v_t − c| ≤ reach[0] + reach[i]·(how far x_i is outside the domain)
                middle = [(reduce(arb.max, c) + reduce(arb.min, c)) / 2 for c in zip(*row, strict=True)]
                self.fixed[o] = combined(self.fixed[o], 1, middle)
                apart = [combined(v, -1, middle) for v in row]
                sizes = [size(a, box) for a in apart], *([abs(a[i]) for a in apart] for i in range(1, len(axes) + 1))
                reach[o] = [r + reduce(arb.max, s) for r, s in zip(reach[o], sizes, strict=True)]

    def strip(self, i: int, half: Any, rho: float) -> list[float]:
        """V_i of T per output."""
        across, beyond = half * (arb(rho) - 1 / arb(rho)) / 2, half * (arb(rho) + 1 / arb(rho)) / 2
        total = [size(line, self.box) + abs(line[i + 1]) * beyond for line in self.fixed]
        for spread, reach in self.strips.items():
            cosine = (across * spread[i] / 2).cos() if across * spread[i] < 3 else arb(0)
            if not cosine > 0:
                return [INF for _ in self.outs]
            total = [t + (r[0] + r[i + 1] * beyond) / cosine for t, r in zip(total, reach, strict=True)]
        return [up(t) for t in total]

    def layer_at(self, grid: list[list[Any]]) -> list[list[Any]]:
        """T on a grid, per output: e^(k·x) is a product over the axes, so sums over tokens are matrix products."""
        cut = (len(grid) + 1) // 2
        rows, columns = ([list(p) for p in product(*part)] for part in (grid[:cut], grid[cut:]))
        points = [r + c for r in rows for c in columns]
        total = [[sum(map(operator.mul, line[1:], x), line[0]) for x in points] for line in self.lines]
        powers: dict[Any, list[Any]] = {}

        def along(k: Affine, axes: range) -> list[Any]:
            result = [arb(1)]
            for i in axes:
                name = (i, exactly(k[i + 1 : i + 2]))
                if name not in powers:
                    powers[name] = [(k[i + 1] * x).exp() for x in grid[i]]
                result = [a * b for a in result for b in powers[name]]
            return result

        for keys, heads in self.families.values():
            n, H = len(keys), len(heads)
            left = [along(k, range(cut)) for k in keys]
            right = [along(k, range(cut, len(grid))) for k in keys]
            L = arb_mat(len(rows), n, [left[t][r] for r in range(len(rows)) for t in range(n)])
            weighted = [[right[t][c] * e[t] for c in range(len(columns)) for e, _ in heads] for t in range(n)]
            below = (L * arb_mat(n, len(columns) * H, sum(weighted, []))).entries()
            inverse = [1 / d for d in below]
            for o in self.outs:
                upper = arb_mat(len(rows), len(columns) * H)
                for i in range(-1, cut):  # values: constant and column part, then the slopes along the rows
                    worth = [[v[o][t] for _, v in heads] for t in range(n)]
                    if i < 0:
                        here = [[sum(map(operator.mul, v[cut + 1 :], x), v[0]) for x in columns for v in vs] for vs in worth]
                    else:
                        here = [[v[i + 1] for _ in columns for v in vs] for vs in worth]
                    if any(v != 0 for row in here for v in row):
                        R = arb_mat(n, len(columns) * H, [a * b for p, q in zip(weighted, here, strict=True)
                                                          for a, b in zip(p, q, strict=True)])  # fmt: skip
                        M = L if i < 0 else arb_mat(len(rows), n, [left[t][r] * x[i] for r, x in enumerate(rows) for t in range(n)])
                        upper = upper + M * R
                flat = upper.entries()
                total[o] = [t + sum(map(operator.mul, flat[q * H : q * H + H], inverse[q * H : q * H + H]))
                            for q, t in enumerate(total[o])]  # fmt: skip
        return total

    def sizes(self, node: Node, choice: dict[int, int], x: Sides, i: int, half: Any) -> list[float]:
        """V_i of a term for every ρ, with coordinate i in the rectangle around its ellipse."""
        found, z = [INF] * len(RHOS), list(x)
        a, b = x.box[self.axes[i]]
        for r, rho in enumerate(RHOS):
            real, across = ((half * (arb(rho) + s / arb(rho)) / 2) * arb(0, 1) for s in (1, -1))
            z[self.axes[i]] = acb((arb(a) + arb(b)) / 2 + real, across)
            found[r] = up(value(node, z, choice).abs_upper())
            if found[r] == INF:
                break
        return found

    def enclose(self, box: Box, effort: int) -> Leaf:
        """What can be proved of g on a box."""
        D, outs, x = len(box), self.outs, self.domain.sides(self.axes, box)
        widths = [(b - a) / (q - p) for (a, b), (p, q) in zip(box, self.box, strict=True)]
        leaf = Leaf(box, effort, [-INF for _ in outs], [INF for _ in outs], [(INF, -INF) for _ in outs], widths.index(max(widths)))
        nodes_ = [node for row in self.terms for _, node in row]
        if self.domain.excused(x, nodes_):
            leaf.low, leaf.high = leaf.high, leaf.low
            return leaf
        halves = [(arb(b) - arb(a)) / 2 for a, b in box]
        strips = [[self.strip(i, halves[i], rho) for rho in RHOS] for i in range(D)]
        curves = [[[v[o] for v in axis] for axis in strips] for o in outs]
        smooth: list[list[tuple[Any, Node, list[dict[int, int]]]]] = [[] for _ in outs]
        loose = [arb(0) for _ in outs]
        for o, (scale, node) in ((o, term) for o in outs for term in self.terms[o]):
            choices = choices_of(node, x)
            many = math.prod(len(c) for _, _, c in smooth[o]) * len(choices) > BRANCHES
            sizes = [] if many else [[self.sizes(node, c, x, i, halves[i]) for c in choices] for i in range(D)]
            if not sizes or not choices or any(curve[0] == INF for axis in sizes for curve in axis):
                loose[o] += scale * value(node, x)  # not analytic here: an enclosure
                continue
            smooth[o].append((scale, node, choices))
            for i, axis in enumerate(sizes):
                most = [up(abs(scale)) * max(column) for column in zip(*axis, strict=True)]
                curves[o][i] = [v + w for v, w in zip(curves[o][i], most, strict=True)]
        share, fine = EFFORTS[effort]
        for p in DEGREES[min(D, 4)]:
            growth = 1 + 2 / math.pi * math.log(p + 1)
            tails = [[growth**i * min(4 * v * rho**-p / (rho - 1) for v, rho in zip(curve, RHOS, strict=True)) * UP
                      for i, curve in enumerate(curves[o])] for o in outs]  # fmt: skip
            worst = max(tails, key=sum)
            if sum(worst) <= share * self.share:
                break
        else:
            leaf.axis = worst.index(max(worst))
            return leaf
        N = max(p + 1, min(fine * p, int(POINTS ** (1 / D))))
        nodes = [arb.cos_pi_fmpq(fmpq(2 * k + 1, 2 * p + 2)) for k in range(p + 1)]
        grid = [[(arb(a) + arb(b)) / 2 + h * t for t in nodes] for (a, b), h in zip(box, halves, strict=True)]
        points = [self.domain.point(self.axes, point) for point in product(*grid)]
        for o, layer in enumerate(self.layer_at(grid)):
            columns = [[[scale * value(node, y, c) for y in points] for c in choices] for scale, node, choices in smooth[o]]
            tail, grow = sum(tails[o]) * UP, (UP / math.cos(p * math.pi / (2 * N))) ** D
            low, high = INF, -INF
            for branch in product(*columns):
                bottom, top, slack = self.extremes([sum(v) for v in zip(layer, *branch, strict=True)], p, N)
                middle, reach = (top + bottom) / 2, ((top - bottom) / 2 + slack) * grow * UP + tail
                low, high = min(low, middle - reach), max(high, middle + reach)
                leaf.seen[o] = (bottom + slack + tail, top - slack - tail)
            leaf.high[o], leaf.low[o] = up(loose[o] + high), -up(-loose[o] - low)
            leaf.crude |= math.prod(len(c) for _, _, c in smooth[o]) > 1 or not loose[o] == 0
        if leaf.crude:
            middle = [[(arb(a) + arb(b)) / 2] for a, b in box]
            y = self.domain.point(self.axes, [m[0] for m in middle])
            exact = [t[0] + sum((s * value(n, y) for s, n in row), arb(0)) for t, row in zip(self.layer_at(middle), self.terms, strict=True)]
            leaf.seen = [(up(v), -up(-v)) for v in exact]
        leaf.seen = leaf.seen if self.domain.inside(x, nodes_) else [(INF, -INF) for _ in outs]
        return leaf

    def extremes(self, values: list[Any], p: int, N: int) -> tuple[float, float, float]:
        """(least, largest, slack) of an interpolant at N^D Chebyshev points from its values at (p + 1)^D."""
        matrix = interpolation(p, N)
        for _ in self.axes:
            values = (matrix * arb_mat(p + 1, len(values) // (p + 1), values)).transpose().entries()
        found = [float(v) for v in values]
        slack = max(float(v.rad()) for v in values) * UP + 1e-15 * max(map(abs, found))
        return (min(found), max(found), slack) if math.isfinite(sum(found) + slack) else (-INF, INF, INF)


def choices_of(node: Node, x: Sides) -> list[dict[int, int]]:
    """The branches that abs, min, max, where may take on a box; none if a condition is undefined there."""
    options: dict[int, list[int]] = {}
    for kink in (n for n in below(node) if n[0] in KINKS):
        if kink[0] == "where":
            truths = truth(kink[2], x)
            options[id(kink)] = [] if None in truths else [0 if t else 1 for t in truths]
        else:
            u = [value(a, x) for a in kink[1]]
            u, less = [u[0], -u[0]] if kink[0] == "abs" else u, operator.gt if kink[0] == "min" else operator.lt
            options[id(kink)] = [i for i, v in enumerate(u) if not any(less(v, w) for w in u)]
    if math.prod(map(len, options.values())) > BRANCHES:
        return []
    return [dict(zip(options, picks, strict=True)) for picks in product(*options.values())]


@dataclass(frozen=True)
class Domain:
    """The box, the condition that cuts a part out of it, and the margin around jumps about which nothing is claimed."""

    box: Box
    where: Node | None
    margin: float

    def sides(self, axes: list[int], box: Box) -> Sides:
        whole = list(self.box)
        for i, side in zip(axes, box, strict=True):
            whole[i] = side
        return Sides(whole)

    def point(self, axes: list[int], values: Sequence[Any]) -> list[Any]:
        whole = [arb.nan()] * len(self.box)
        for i, v in zip(axes, values, strict=True):
            whole[i] = v
        return whole

    def excused(self, x: Sides, nodes: list[Node]) -> bool:
        """Whether no point of the box is claimed: outside the condition, or all within the margin of a jump.

        If points p, q within the margin of every point of the box lie on different sides of a condition of `where`, so
        does a jump on the segment between them.
        """
        if self.where is not None and truth(self.where, x) == {False}:
            return True
        for jump in [n[2] for node in nodes for n in below(node) if n[0] == "where"] if self.margin else []:
            axes = sorted(variables(jump))
            near = [(max(self.box[i][0], math.nextafter(x.box[i][1] - self.margin, INF)),
                     min(self.box[i][1], math.nextafter(x.box[i][0] + self.margin, -INF))) for i in axes]  # fmt: skip
            small = all(x.box[i][1] - x.box[i][0] <= self.margin for i in axes)
            if small and (self.where is None or truth(self.where, self.sides(axes, near)) == {True}):
                corners = [self.point(axes, [arb(v) for v in p]) for p in product(*((a, (a + b) / 2, b) for a, b in near))]
                found = [truth(jump, p) for p in corners]
                if {True} in found and {False} in found:
                    return True
        return False

    def inside(self, x: Sides, nodes: list[Node]) -> bool:
        """Whether all of the box is claimed."""
        wide = Sides([(a - 2 * self.margin, b + 2 * self.margin) for a, b in x.box])
        jumps = [n[2] for node in nodes for n in below(node) if n[0] == "where"] if self.margin else []
        return all(len(truth(jump, wide)) == 1 for jump in jumps) and (self.where is None or truth(self.where, x) == {True})


def groups_of(g: Difference, domain: Domain) -> list[list[int]]:
    """Coordinates that must be looked at together."""
    groups = [{i} for i in range(len(domain.box))]
    links = [touched(head) for head in g.heads] + [variables(node) for row in g.terms for _, node in row]
    for link in [*links, set(range(len(domain.box)))] if domain.where else links:
        hit = [group for group in groups if group & link]
        groups = [group for group in groups if not group & link] + ([set().union(*hit)] if hit else [])
    return [sorted(group) for group in groups]


def touched(head: Head) -> set[int]:
    """The coordinates that a head depends on."""
    rows = [combined(s, -1, head.scores[0]) for s in head.scores] + [v for row in head.values for v in row]
    return {i for row in rows for i, k in enumerate(row[1:]) if k != 0}


def search(parts: list[Part], g: Difference, bound: float, tick: Callable[[], None]) -> float:
    """A proved bound ≤ `bound` on |g| over the domain, rounding included. Boxes that decide are refined first."""
    heaps: list[list[list[Any]]] = [[[] for _ in range(2 * len(g.lines))] for _ in parts]
    best = [[(-INF, part.box) for _ in range(2 * len(g.lines))] for part in parts]  # attained, and where

    def insert(n: int, leaf: Leaf) -> None:
        tick()
        for o in range(len(g.lines)):
            for k, (top, seen) in enumerate([(leaf.high[o], leaf.seen[o][1]), (-leaf.low[o], -leaf.seen[o][0])]):
                heapq.heappush(heaps[n][2 * o + k], (-top, id(leaf), leaf))
                best[n][2 * o + k] = max(best[n][2 * o + k], (seen, leaf.box))

    for n, part in enumerate(parts):
        insert(n, part.enclose(part.box, 0))
    while True:
        proved, todo = -INF, None
        for k in range(2 * len(g.lines)):
            low, high = (g.low[k // 2], g.high[k // 2]) if k % 2 == 0 else (-g.high[k // 2], -g.low[k // 2])
            for heap in (heaps[n][k] for n in range(len(parts))):
                while not heap[0][2].alive:
                    heapq.heappop(heap)
            tops, seen = [-heaps[n][k][0][0] for n in range(len(parts))], [best[n][k][0] for n in range(len(parts))]
            error = high + g.rounding[k // 2]
            total, attained = up(sum(map(arb, tops), error)) if INF not in tops else INF, sum(map(arb, seen))
            places = {i: side for n, part in enumerate(parts) for i, side in zip(part.axes, best[n][k][1], strict=True)}
            box = [places[i] for i in sorted(places)]
            if -INF not in seen and attained + low > bound:
                raise Stop("INVALID", f"|T − f| exceeds the claimed bound {bound:.6g} (by {float(attained + low - bound):.3g})", box)
            if -INF not in seen and attained + error > bound:
                raise Stop("NOT CHECKABLE", f"not decided: rounding and readings leave no room below {bound:.6g}", box)
            proved = max(proved, total)
            if total > bound:
                gaps = [(INF if top == INF else top - low, n) for n, (top, low) in enumerate(zip(tops, seen, strict=True))]
                todo = todo or (max(gaps)[1], k)
        if todo is None:
            require(proved > -INF, "nothing is claimed about an empty domain", "NOT CHECKABLE")
            return max(proved, 0.0)
        leaf = heaps[todo[0]][todo[1]][0][2]
        leaf.alive, part = False, parts[todo[0]]
        if leaf.high[0] < INF and not leaf.crude and leaf.effort + 1 < len(EFFORTS):
            finer = part.enclose(leaf.box, leaf.effort + 1)
            if finer.high[0] < INF:
                finer.low, finer.high = list(map(max, finer.low, leaf.low)), list(map(min, finer.high, leaf.high))
                insert(todo[0], finer)
                continue
        a, b = leaf.box[leaf.axis]
        middle = (a + b) / 2
        if not a < middle < b:
            raise Stop("NOT CHECKABLE", "not decided on a box that cannot be cut further", leaf.box)
        for side in ((a, middle), (middle, b)):
            box = [side if i == leaf.axis else other for i, other in enumerate(leaf.box)]
            insert(todo[0], part.enclose(box, 0))


def check(folder: str | Path, seconds: float = SECONDS, boxes: int = BOXES, progress: bool = False) -> Verdict:
    """The verdict on a model folder."""
    started, count = time.monotonic(), 0

    def tick() -> None:
        nonlocal count
        count += 1
        spent = time.monotonic() - started
        if progress and count % 20 == 0:
            print(f"\r{count} boxes, {spent:.0f} s", end="", file=sys.stderr)
        if spent > seconds or count > boxes:
            raise Stop("NOT CHECKABLE", f"not decided within {seconds:.0f} s and {boxes} boxes")

    try:
        found = Verdict("VALID", *_checked(Path(folder), tick))
    except Stop as stop:
        found = stop.found
    except RecursionError:
        found = Verdict("INVALID", "the files are nested too deeply")
    return replace(found, boxes=count, seconds=time.monotonic() - started)


def _checked(folder: Path, tick: Callable[[], None]) -> tuple[str, None, float]:
    """(reason, no box, bound) of a claim that holds; anything else raises Stop."""
    content = []
    for name in FILES:
        path = folder / name
        require(path.is_file() and path.stat().st_size < 2**31, f"no {name} of sensible size in the folder")
        content.append(path.read_bytes())
    target, record = (read_json(c.decode("utf-8", "replace"), n) for c, n in zip(content[1:], FILES[1:], strict=True))
    digest = record.pop("digest", None)
    try:
        text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False).encode()
    except ValueError:
        raise Stop("INVALID", "certificate.json cannot be written as JSON") from None
    require(digest == hashlib.sha256(text).hexdigest(), "certificate.json was edited: its digest does not fit")
    for name, data in zip(FILES[:2], content[:2], strict=True):
        sums = record.get("sha256")
        fits = isinstance(sums, dict) and sums.get(name) == hashlib.sha256(data).hexdigest()
        require(fits, f"{name} was edited: its digest does not fit the certificate")
    require(record.get("schema") in (1, 2), f"schema {str(record.get('schema'))[:20]} is unknown")
    about, tensors, width, fingerprint = read_tensors(content[0])
    require(record.get("weights") == fingerprint, "the certificate speaks of other weights")
    tolerance, margin = read_number(record, "tolerance"), read_number(record, "margin", 0.0)
    bound, observed, witness = read_number(record, "bound", INF), read_number(record, "observed", INF), record.get("witness")
    implied = "CERTIFIED" if observed <= bound <= tolerance else "UNDECIDED"
    implied = implied if witness is None else "REFUTED"
    require(record.get("verdict") == implied, f"the numbers imply {implied}, the record says {str(record.get('verdict'))[:20]}")
    require(implied != "UNDECIDED", "nothing is claimed (UNDECIDED)", "NOT CHECKABLE")
    require(target.get("formula") is not None, "the target is a callable that is not stored", "NOT CHECKABLE")
    arithmetic = {8: "float64", 4: "float32"}[width]
    require(record.get("arithmetic") == arithmetic, f"the weights are {arithmetic}, the claim is not", "NOT CHECKABLE")
    with ctx.workprec(READING):
        f, domain = read_target(target, margin)
        layer = read_layer(about, tensors, domain.box, len(f), arb(2) ** (-53 if width == 8 else -24))
        if witness is not None:
            return refuted(layer, f, domain, witness, tolerance), None, INF
        for eager in (True, False):
            g = difference(layer, f, domain.box, bound, eager)
            require(all(math.isfinite(up(r)) for r in g.rounding), "scores are too large for the rounding analysis", "NOT CHECKABLE")
            groups = groups_of(g, domain)
            require(max(map(len, groups)) <= 6, "more than 6 coordinates depend on each other", "NOT CHECKABLE")
            parts = [Part(g, axes, n == 0, domain, bound / len(groups)) for n, axes in enumerate(groups)]
            try:
                with ctx.workprec(WORKING):
                    proved = search(parts, g, bound, tick)
                return f"sup |T − f| ≤ {bound:.6g} ≤ {tolerance:.6g}", None, proved
            except Stop as stop:
                if not (eager and g.optional and stop.found.verdict == "NOT CHECKABLE"):
                    raise
    raise AssertionError("unreachable")


def read_target(target: dict[str, Any], margin: float) -> tuple[list[Node], Domain]:
    """Formula and domain; the ends as text lie inside the box, or are the decimals of its floats."""
    names, lower, upper, ends = (target.get(k) for k in ("names", "lower", "upper", "ends"))
    lists = all(isinstance(t, list) for t in (names, lower, upper, ends)) and len({len(names), len(lower), len(upper), len(ends)}) == 1
    require(lists and names and all(isinstance(n, str) and n.isidentifier() for n in names), "the domain is malformed")
    require(len(set(names)) == len(names) <= 512, "two variables have the same name, or there are too many")
    box = list(zip(lower, upper, strict=True))
    for (a, b), pair in zip(box, ends, strict=True):
        good = all(type(v) in (int, float) and abs(v) <= 1e150 for v in (a, b)) and a < b
        require(good and isinstance(pair, list) and len(pair) == 2, "the ends of the domain are malformed")
        for text, own in zip(pair, (a, b), strict=True):
            try:
                equal = float(text) == own
            except (ValueError, TypeError):
                equal = False
            found = arb(own) if equal else value(Reader([]).parse(text), [])
            require(found >= a and found <= b, f"the end {str(text)[:40]} of the domain lies outside its box")
    reader = Reader(names)
    where = None if target.get("where") is None else reader.parse(target["where"], condition=True)
    require(isinstance(target["formula"], str), "the formula is no text")
    f = [reader.parse(part) for part in target["formula"].split(";")]
    shape = target.get("output_shape")
    require(isinstance(shape, list) and all(type(n) is int and n > 0 for n in shape) and math.prod(shape) == len(f), "output_shape does not fit the formula")
    return f, Domain([(float(a), float(b)) for a, b in box], where, margin)


def read_layer(about: dict[str, Any], tensors: dict[str, tuple[list[int], Any]], box: Box, outs: int, u: Any) -> Layer:
    """The layer of tensors whose shapes are what the configuration says."""
    c, facts = (read_json(str(about.get(k)), f"the {k} of the model") for k in ("config", "facts"))
    sizes = ["tokens", "features_in", "features_out", "d_model", "heads", "d_k", "d_v", "ffn_width"]
    special = ["anchor_tokens", "memory_tokens", "output_tokens"]
    whole = all(type(c.get(k)) is int and c[k] >= (k in sizes) for k in sizes + special)
    require(whole and all(type(c.get(k)) is bool for k in ("residual", "projection_bias")), "the configuration is malformed")
    n, d, m, M, h, k, v, F = (c[name] for name in sizes)
    extra = sum(c[name] for name in special)
    shapes = {"shift": [n, d], "scale": [n, d], "W_E": [d, M], "b_E": [M], "W_Q": [h, M, k], "W_K": [h, M, k], "W_V": [h, M, v],
              "W_O": [h * v, M], "W_1": [M, F], "b_1": [F], "W_2": [F, M], "b_2": [M], "W_R": [M, m], "b_R": [m]}  # fmt: skip
    shapes |= {"S": [extra, M]} if extra else {}
    shapes |= {"P": [n, M]} if c.get("code") != "none" else {}
    shapes |= {"b_Q": [h, k], "b_K": [h, k], "b_V": [h, v], "b_O": [M]} if c["projection_bias"] else {}
    for name, wanted in (("norm", "none"), ("activation", "relu"), ("attention", "softmax")):
        require(c.get(name) == wanted, f"{name} {str(c.get(name))[:20]!r}: only {wanted!r} is checked", "NOT CHECKABLE")
    require(c.get("readout") in ("position", "output"), "the read-out is a mean", "NOT CHECKABLE")
    found = {name: shape for name, (shape, _) in tensors.items()}
    require(found == shapes, f"tensors {sorted(set(found) ^ set(shapes)) or 'shapes'} do not fit the configuration")
    places, most = facts.get("places"), c["output_tokens"] if c["readout"] == "output" else n
    good = isinstance(places, list) and all(type(p) is int and 0 <= p < most for p in places)
    require(good and len(places) * m == outs and n * d == len(box), "the shapes of model, domain and formula do not fit")
    return Layer(c, {name: rows for name, (_, rows) in tensors.items()}, places, box, u)


def refuted(layer: Layer, f: list[Node], domain: Domain, witness: Any, tolerance: float) -> str:
    """|T(x) − f(x)| > tolerance at the witness, more than rounding can explain."""
    good = isinstance(witness, list) and len(witness) == len(domain.box) and all(type(v) in (int, float) for v in witness)
    require(good and all(a <= v <= b for v, (a, b) in zip(witness, domain.box, strict=True)), "the witness is not in the domain")
    x = [arb(v) for v in witness]
    require(domain.where is None or truth(domain.where, x) == {True}, "the witness is not proved to lie in the domain")
    gaps = []
    for o, node in enumerate(f):
        T, off = sum(map(operator.mul, layer.lines[o][1:], x), layer.lines[o][0]), layer.rounding[o] + layer.error[o]
        for head in layer.heads.values():
            at = [[sum(map(operator.mul, a[1:], x), a[0]) for a in row] for row in (head.scores, head.values[o])]
            weights = [s.exp() for s in at[0]]
            T += sum(map(operator.mul, weights, at[1])) / sum(weights)
            off += head.paid[o]
        T += sum((s[o] * sum(map(operator.mul, a[1:], x), a[0]).max(0) for s, a in layer.hinges), arb(0))
        gaps.append(abs(T - value(node, x)) - off * 1.01)
    require(any(gap > tolerance for gap in gaps), "at the witness the error is not proved to exceed the tolerance")
    return f"at the witness |T − f| > {tolerance:.6g}"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not all((Path(arguments[0]) / name).is_file() for name in FILES):
        print("usage: checker.py FOLDER, a folder with " + ", ".join(FILES), file=sys.stderr)
        return 2
    found = check(arguments[0], progress=sys.stderr.isatty())
    print(found)
    return 0 if found.verdict == "VALID" else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
