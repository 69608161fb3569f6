"""The independent checker: is it true what the certificate of a model folder claims?

Standalone: `python -I checker.py FOLDER [--data FILE.csv]`. It needs python-flint and the standard library, nothing of
`onelayer`: copy it, read it, trust it alone. Evidence in the folder proves nothing to it. It checks that the files fit together,
reads T from the weights (exactly, in rationals) and f from the text, and proves sup |T − f| ≤ bound in ball arithmetic. With
scores and values affine in x a head is a softmax average; a ReLU unit is half an identity, linear, or a kink. So, per output,

    g = T − f = affine + Σ_heads Σ_t w_t(x)·v_t(x) + Σ_k a_k max_i u_ki(x) − (the rest of f),    u, v affine.

Kinks of T and f that are equal up to scale, an affine function and a trifle are merged (`Difference`), what remains is bounded
box by box (`Part`), the rounding of the deployed model is bounded beside it (`Layer`, `Head.rounding`), and boxes are split,
the worst first, until the claim is proved or refuted (`search`).

No claim rests on all of this file. `prove` decides what is claimed (chapter 10), and everything needs files, formulas and
balls (1, 2). Beyond that:

    claim                                                            chapters  begin with
    |T − f| ≤ bound for a formula, constructed layer                 3         `bounded`, `Difference`, `Part`
    the same for any other layer (trained, LayerNorm)                4         `Dense`, then `search` in 3
    the same for a network that makes Σ h(g) of functions g          3, 4, 5   `composed`
    a lower bound of sup |T − f|, or a witness that refutes          3 or 4    `errors_at` in 10
    slopes, |∂_i T − ∂_i f| ≤ bound; "increasing in x1", "T <= 1"    6         `Slopes`, `Tangents`, `kept_below`, on 3 or 4
    programs on tokens, all lengths, language models                 7         `program`, `sequences`
    functions of sets of any size                                    8         `SetProof`, with `Rounded` of 7
    stored samples                                                   4, 9      `stored`
"""

import ast
import csv
import hashlib
import heapq
import json
import math
import operator
import re
import struct
import sys
import time
import warnings
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial, reduce
from itertools import accumulate, combinations, count, pairwise, permutations, product
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import normalize

import flint
from flint import acb, arb, arb_mat, arb_series, ctx, fmpq, fmpq_mat

Affine = list[Any]  # [constant, coefficient of x_1, …, coefficient of x_D]: rationals of the layer, later balls
Node = tuple[str, tuple[Any, ...], Any]  # a formula: kind, operands, and a number, index, condition or relation
Box = list[tuple[float, float]]
Terms = list[tuple[Any, Node]]
Record = dict[str, Any]
Tick = Callable[[Box], None]  # counts a box; raises where the budget is spent
FILES = ("model.safetensors", "target.json", "certificate.json")
BESIDE = ("weights.safetensors", "prompt.safetensors")  # of a prompt
SCHEMAS = (3, 4)  # 4 has a lower bound beside the upper one
MASKS = ["any_length", "causal"]
FIELDS = ["activation", "dropout", "code", "residual", "norm", "norm_eps", "readout", "projection_bias", "attention"]
READING, WORKING = 320, 96  # bits of balls: while kinks are compared, on boxes
SECONDS, BOXES, HALVINGS = 300.0, 200_000, 4096  # at most; halvings of boxes for the rounding
MASKED = 745  # a score so far below another has weight ≤ e^−745 < 2^−1074
DEGREES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 24, 32)  # of an interpolant, along one coordinate
RHOS = (1.15, 1.3, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 20.0, 50.0, 200.0, 1e3, 1e4, 1e6)
EFFORTS = (0.05, 0.006, 0.001)  # truncation/claim
CELLS = 400  # into which a box is cut to bound an interpolant, at most
NODES = {1: 33, 2: 900, 3: 4_000, 4: 14_641, 5: 20_000}  # points of a grid, at most, by number of coordinates
SETS = 300  # of numbers whose maximum counts, in a rank
BRANCHES, FORMS = 16, 256  # at most on a box; affine functions of a nested maximum
TURNS = 8  # spread of scores from which tokens of little weight are set apart
FADED = (-2.5, -3.5, -5.0, -7.0, -10.0)  # logs of such a weight; the best of them counts
SPREADS = (0, 512, 2048)  # cells of a part of a lane; 0: one δ for all
SHARP = 3000  # a head that needs this many boxes is sharp
UP, INF, UNCHECKED, ZERO = 1 + 1e-12, math.inf, "NOT CHECKABLE", fmpq(0)
STATUS = {"VALID": 0, "INVALID": 1, UNCHECKED: 3}  # of the process; 2: no model folder
RELATIONS = {ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge}
CONVERSE = {operator.lt: operator.ge, operator.le: operator.gt, operator.gt: operator.le, operator.ge: operator.lt}
JUMPS = ("floor", "floor'")  # the latter its slope: 0, and none where it jumps
KINKS = ("abs", "min", "max", "where", *JUMPS)
RULES = {"div": "1/v; -u/v**2", "gpow": "u**v*v/u; u**v*log(u)"}  # slopes by u; by v
RULES["atan2"] = "v/(u**2 + v**2) + 0*log(v + hypot(u, v)); -u/(u**2 + v**2)"  # log: no value on the cut
WRITTEN = {  # in terms of others
    "sqrt": "u**0.5", "sqr": "u**2", "hypot": "(u**2 + v**2)**0.5", "sigmoid": "1/(1 + exp(-u))", "expm1": "exp(u) - 1",
    "log1p": "log(1 + u)", "softplus": "log(1 + exp(u))", "sec": "1/cos(u)", "csc": "1/sin(u)", "cot": "cos(u)/sin(u)",
    "exp2": "2**u", "log2": "log(u)/log(2)", "log10": "log(u)/log(10)", "sign": "where(u < 0, -1, where(u > 0, 1, 0))",
    "normcdf": "erfc(-u/2**0.5)/2", "beta": "exp(lgamma(u) + lgamma(v) - lgamma(u + v))", "ceil": "-floor(-u)",
    "round": "floor(u + 0.5)", "norminv": "2**0.5*erfinv(2*u - 1)", "mod": "u - v*floor(u/v)",
}  # fmt: skip
SHAPES = {"decreasing": (1, 0), "increasing": (1, 1), "concave": (2, 0), "convex": (2, 1)}  # order, side
LITERAL = re.compile(r"(\d+\.?\d*|\.\d+)([eE][+-]?0*\d{1,3})?", re.ASCII)
DEEP, EXPONENT_BITS = 100, 16384  # operations within each other; of an exponent while it is computed


# ═══ 1. Files and formulas: what the folder says, read and not believed ═════════════════════════════════════════════


def num(q: Any) -> Node:
    return ("num", (), q)


def var(i: int) -> Node:
    return ("var", (), i)


def tree(kind: str, *operands: Node) -> Node:
    return (kind, operands, None)


@dataclass(eq=False)
class Verdict(Exception):
    """VALID: proved here. INVALID: refuted, or the files contradict each other. NOT CHECKABLE: neither. Raised when known."""

    verdict: str
    reason: str
    box: Box | None = None
    bound: float = INF  # proved here
    boxes: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        where = f"\nat {' × '.join(f'[{a!r}, {b!r}]' for a, b in self.box)}" if self.box else ""
        return f"{self.verdict}: {self.reason} ({self.boxes} boxes, {self.seconds:.1f} s){where}"


def need(condition: object, reason: str, verdict: str = "INVALID", box: Box | None = None) -> None:
    if not condition:
        raise Verdict(verdict, reason, box)


def read_json(text: bytes, what: str) -> Record:
    """A JSON object without NaN and without a key twice."""

    def pairs(items: list[tuple[str, Any]]) -> Record:
        need(len(dict(items)) == len(items), f"{what} has a key twice")
        return dict(items)

    try:
        found = json.loads(text, object_pairs_hook=pairs, parse_constant=lambda name: need(False, f"{what} has {name}"))
    except (ValueError, RecursionError) as error:
        raise Verdict("INVALID", f"{what} is no JSON: {' '.join(str(error).split())[:80]}") from None
    need(isinstance(found, dict), f"{what} is no JSON object")
    return dict(found)


def read_number(record: Record, name: str, instead: float | None = None) -> float:
    found: Any = record.get(name)
    if found is None and instead is not None:
        return instead
    need(type(found) in (int, float) and 0 <= found < INF, f"{name} is no finite number ≥ 0")
    return float(found)


def read_tensors(content: bytes, stored: str = "") -> tuple[Record, dict[str, tuple[list[int], Any]], int, str]:
    """(metadata, name → (shape, nested lists), bytes of a number, fingerprint) of a safetensors file; all is finite.

    Weights that are `stored` as bfloat16 or int8 are float32 numbers of the same value, and so is their fingerprint.
    """
    length = int.from_bytes(content[:8], "little")
    kinds = {"F64": (8, "d"), "F32": (4, "f"), "BF16": (2, "H"), "I8": (1, "b")}
    need(8 + length <= len(content) and length <= 10**8, "model.safetensors: its header is longer than the file")
    header, data = read_json(content[8 : 8 + length], "the header of model.safetensors"), content[8 + length :]
    about, digest, end, found = header.pop("__metadata__", {}), hashlib.sha256(), 0, dict[str, Any]()
    need(all(isinstance(entry, dict) for entry in (about, *header.values())), "model.safetensors is malformed")
    types = {str(entry.get("dtype")) for entry in header.values()}
    fits = {"": [{"F64"}, {"F32"}], "bfloat16": [{"BF16"}], "int8": [{"I8", "F32"}]}.get(stored, [])
    need(types in fits, f"the weights are not all {stored or 'float64, nor all float32'}")
    for name, entry in header.items():
        shape, place = entry.get("shape"), entry.get("data_offsets")
        whole = all(isinstance(t, list) and all(type(n) is int and 0 <= n < 2**40 for n in t) for t in (shape, place))
        need(whole and len(place) == 2, f"tensor {name} has a malformed shape or place")
        raw, size, (width, letter) = data[place[0] : place[1]], math.prod(shape), kinds[entry["dtype"]]
        need(len(raw) == place[1] - place[0] == size * width, f"tensor {name} lies outside the file")
        numbers: Any = struct.unpack(f"<{size}{letter}", raw)
        if letter == "H":  # the upper half of a float32
            numbers = struct.unpack(f"<{size}f", struct.pack(f"<{size}I", *(n << 16 for n in numbers)))
        need(all(map(math.isfinite, numbers)), f"tensor {name} has a number that is not finite")
        found[name], end = (shape, numbers, letter), max(end, place[1])
    need(end == len(data), "model.safetensors has bytes that belong to no tensor")
    width, tensors = 8 if types == {"F64"} else 4, dict[str, Any]()
    for name, (shape, numbers, letter) in sorted(found.items()):
        if letter == "b" and name.endswith(".exponent"):
            need(found.get(name[: -len(".exponent")], "  ")[2] == "b", f"{name} belongs to no tensor")
            continue
        if letter == "b":
            numbers = powers_applied(name, shape, numbers, found.get(name + ".exponent"))
        digest.update(f"{name} torch.float{8 * width} {shape}".encode())
        digest.update(struct.pack(f"<{len(numbers)}{'d' if width == 8 else 'f'}", *numbers))
        for n in reversed(shape[1:]):
            numbers = [numbers[i : i + n] for i in range(0, len(numbers), n)] if n else []
        tensors[name] = (shape, numbers)
    return about, tensors, width, digest.hexdigest()


def powers_applied(name: str, shape: list[int], numbers: Sequence[int], beside: Any) -> tuple[float, ...]:
    """Whole numbers times 2 to the exponent of their column: beside [..., 1, column] for numbers [..., row, column]."""
    need(len(shape) >= 2 and beside is not None and beside[2] == "b", f"tensor {name} has no exponents")
    need(beside[0] == [*shape[:-2], 1, shape[-1]], f"the exponents of {name} have another shape")
    need(all(-120 <= e <= 110 for e in beside[1]), f"an exponent of {name} is out of range")
    rows, columns = shape[-2:]
    at = (i // (rows * columns) * columns + i % columns for i in range(len(numbers)))
    return tuple(math.ldexp(q, beside[1][j]) for q, j in zipped(numbers, at))


def minus(node: Node) -> Node:
    return tree("mul", num(fmpq(-1)), node)


def takes(name: str, operands: int) -> bool:
    known, two = name in FUNCTIONS or name in WRITTEN or name in ("abs", "atan2"), {"hypot", "beta", "mod", "atan2"}
    return name in ("min", "max") or (known and operands == 1 + (name in two))


@cache
def template(text: str, *names: str) -> Node:
    return Reader(names, text).node()


class Reader:
    """Text to nodes over the given names. Python's `ast` reads, a whitelist decides, nothing is executed."""

    def __init__(self, names: Sequence[str], text: object) -> None:
        need(isinstance(text, str) and len(text) <= 10_000 and "#" not in text, "a formula is no text, or too long")
        self.names, self.text = list(names), " ".join(str(text).split())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about "1or 2", which is read all the same
                self.tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise Verdict("INVALID", f"the formula {self.text[:60]!r} cannot be read") from None

    def node(self, t: ast.expr | None = None, depth: int = 0) -> Node:
        t, depth = t or self.tree, depth + 1
        need(depth <= DEEP, f"a formula is nested more than {DEEP} deep")
        match t:
            case ast.Constant(value=int() | float()):
                source = ast.get_source_segment(self.text, t) or ""
                need(LITERAL.fullmatch(source) and len(source) <= 400, f"the literal {source[:40]!r} is refused")
                return num(fmpq(*Fraction(source).as_integer_ratio()))
            case ast.Name(id=name) if name in self.names:
                return var(self.names.index(name))
            case ast.Name(id="pi" | "e" as name):
                return (name, (), None)
            case ast.UnaryOp(op=ast.UAdd() | ast.USub() as op, operand=a):
                return self.node(a, depth) if isinstance(op, ast.UAdd) else minus(self.node(a, depth))
            case ast.BinOp(op=ast.Add() | ast.Sub() | ast.Mult() as op):
                same, parts = (ast.Mult,) if isinstance(op, ast.Mult) else (ast.Add, ast.Sub), list[Node]()
                while isinstance(t, ast.BinOp) and isinstance(t.op, same):  # a long chain is one node
                    part = self.node(t.right, depth)
                    parts.append(minus(part) if isinstance(t.op, ast.Sub) else part)
                    t = t.left
                parts.append(self.node(t, depth))
                found: Node = tree("mul" if isinstance(op, ast.Mult) else "add", *reversed(parts))
                return continued(found) if found[0] == "mul" else found
            case ast.BinOp(op=ast.Div(), left=a, right=b):
                return continued(tree("div", self.node(a, depth), self.node(b, depth)))
            case ast.BinOp(op=ast.Pow(), left=a, right=b):
                base, exponent = self.node(a, depth), self.node(b, depth)
                q = rational(exponent)
                need(q is None or abs(q) <= 1000, "a constant exponent is too large")
                return tree("gpow", base, exponent) if q is None else ("pow" if q.q == 1 else "rpow", (base,), q)
            case ast.Call(func=ast.Name(id="where"), args=[test, a, b], keywords=[]):
                return ("where", (self.node(a, depth), self.node(b, depth)), self.condition(test, depth))
            case ast.Call(func=ast.Name(id=name), args=[_, *_] as args, keywords=[]) if takes(name, len(args)):
                u = tuple(self.node(a, depth) for a in args)
                return substituted(template(WRITTEN[name], "u", "v"), u) if name in WRITTEN else (name, u, None)
        said = (ast.get_source_segment(self.text, t) or "")[:60]
        called = isinstance(t, ast.Call) and isinstance(t.func, ast.Name) and not takes(t.func.id, len(t.args))
        need(not called, f"the function in {said!r} is not known here", UNCHECKED)
        raise Verdict("INVALID", f"{said!r} is not in the formula language")

    def condition(self, t: ast.expr | None = None, depth: int = 0) -> Node:
        depth += 1
        need(depth <= DEEP, f"a condition is nested more than {DEEP} deep")
        match t or self.tree:
            case ast.Compare(left=first, ops=ops, comparators=others) if all(type(o) in RELATIONS for o in ops):
                sides = [self.node(s, depth) for s in (first, *others)]
                links = [("cmp", (a, b), RELATIONS[type(o)]) for o, a, b in zip(ops, sides, sides[1:], strict=False)]
                return tree("and", *links)
            case ast.BoolOp(op=op, values=values):
                parts = tuple(self.condition(value, depth) for value in values)
                return tree("and" if isinstance(op, ast.And) else "or", *parts)
            case ast.UnaryOp(op=ast.Not(), operand=a):
                return tree("not", self.condition(a, depth))
        raise Verdict("INVALID", "a condition is no comparison")


def rational(node: Node) -> Any:
    """The exact value of numbers under + − * / and integer powers; None for anything else."""
    kind, operands, extra = node
    parts: list[Any] = [rational(a) for a in operands] if kind in ("num", "add", "mul", "div", "pow") else [None]
    if None in parts:
        return None
    if kind in ("num", "div", "pow"):
        need(kind == "num" or parts[-1] != 0 or (kind == "pow" and extra >= 0), "an exponent divides by zero")
        need(kind != "pow" or bits(parts[0]) * abs(int(extra.p)) <= EXPONENT_BITS, "an exponent is too large")
        return extra if kind == "num" else parts[0] / parts[1] if kind == "div" else parts[0] ** int(extra.p)
    found = parts[0]
    for q in parts[1:]:
        found = found + q if kind == "add" else found * q
        need(bits(found) <= EXPONENT_BITS, "an exponent is too large")
    return found


Factors = tuple[Any, list[tuple[Node, int]]]  # a rational, and nodes with exponents


def times(a: Factors, b: Factors, exponent: int = 1) -> Factors:
    """a·b^exponent, equal nodes joined."""
    powers = list(a[1])
    for node, n in b[1]:
        place = next((i for i, (other, _) in enumerate(powers) if other == node), None)
        if place is None:
            powers.append((node, n * exponent))
        else:
            powers[place] = (node, powers[place][1] + n * exponent)
    return a[0] * b[0] ** exponent, powers


def factors(node: Node) -> Factors | None:
    """A node taken apart along products, quotients and integer powers; None for 0 and for long numbers."""
    kind, operands, extra = node
    if kind == "num":
        return (extra, []) if extra != 0 else None
    if kind == "add" and len(operands) == 2:  # y − x is −(x − y)
        a, b = operands[::-1] if negated(operands[0]) else operands
        other = negated(b)
        if other is not None and negated(a) is None:
            turned = str(a) > str(other)
            return fmpq(-1 if turned else 1), [(tree("add", *((other, minus(a)) if turned else (a, b))), 1)]
    powers = {"mul": [1] * len(operands), "div": [1, -1], "pow": [int(extra.p)] if kind == "pow" else []}.get(kind)
    if not powers or 0 in powers:
        return fmpq(1), [(node, 1)]
    found: Factors = (fmpq(1), [])
    for part, exponent in zipped(operands, powers):
        inner = factors(part)
        if inner is None or bits(inner[0]) * abs(exponent) > 900:
            return None
        found = times(found, inner, exponent)
    return found if bits(found[0]) <= 900 else None


def negated(node: Node) -> Node | None:
    """What a node is minus of."""
    kind, operands, _ = node
    return operands[1] if kind == "mul" and len(operands) == 2 and operands[0] == num(fmpq(-1)) else None


def vanishing(node: Node) -> tuple[Node, int, Node, int, str] | None:
    """(v, k, w, ±1, ψ) with node = ±v^k·ψ(v, w) and ψ ≠ 0 where v = 0, for functions that vanish with v."""
    kind, operands, _ = node
    if kind == "log" and operands[0][0] == "add" and ONE in operands[0][1]:  # log(1 + v) = v/exprel(log(1 + v))
        rest = list(operands[0][1])
        rest.remove(ONE)
        return rest[0] if len(rest) == 1 else tree("add", *rest), 1, node, 1, "1/exprel(y)"
    some: list[tuple[Node | None, int, int]] = [(node, 0, 1)]
    if kind == "add" and len(operands) == 2:  # ±(e^v − 1), ±(1 − cos v)
        pairs = [(a, negated(b)) for a, b in (operands, operands[::-1])]
        some = [(w, 1, sign) for a, b in pairs for one, w, sign in ((a, b, -1), (b, a, 1)) if one == ONE]
    for w, start, sign in some:
        known = FUNCTIONS.get(w[0]) if w else None
        if w and known and known.zero and known.zero[0] == start:
            return w[1][0], known.zero[1], w, sign, known.zero[2]
    return None


def continued(node: Node) -> Node:
    """A product or quotient, with its limits where it is 0/0: sin(u)/u = sinc(u), (e^u − 1)/u = exprel(u), and so on.

    A factor φ(v) that vanishes with v is v^k·ψ(v), and v cancels; where the quotient is defined its value is unchanged.
    """
    found, changed = factors(node), False
    met = [f for f, n in found[1] if n == 0 and not total(f)] if found else []  # without a value it leaves none
    for part, m in list(found[1]) if found else []:
        split = vanishing(part) if m else None
        inner = factors(split[0]) if split else None
        if found is None or split is None or inner is None or bits(inner[0]) * split[1] * abs(m) > 900:
            continue
        after = times(found, inner, split[1] * m)
        exponents = [next((n for f, n in t[1] if f == g), 0) for t in (found, after) for g, _ in inner[1]]
        pairs = zipped(inner[1], exponents[: len(inner[1])], exponents[len(inner[1]) :])
        zeros = [end for (f, n), begin, end in pairs if n > 0 and begin * m < 0 and variables(f)]
        if not zeros or min(zeros) < 0 or any(n[0] in KINKS and n[0] != "abs" for f, _ in inner[1] for n in below(f)):
            continue
        if psi := factors(substituted(template(split[4], "u", "y"), (split[0], split[2]))):
            after = times(after, (split[3] * psi[0], psi[1]), m)
            found, changed = times(after, (fmpq(1), [(part, 1)]), -m), True
    if not changed or found is None:
        return node
    powers = [(f if abs(n) == 1 else ("pow", (f,), fmpq(abs(n))), n) for f, n in found[1]]
    top, bottom = ([f for f, n in powers if n * sign > 0] for sign in (1, -1))
    dividend: Node = tree("mul", num(found[0]), *top, *(tree("div", f, f) for f in met))
    return tree("div", dividend, tree("mul", ONE, *bottom)) if bottom else dividend


def total(node: Node) -> bool:
    """Whether a node is seen to have a value everywhere, and no kinks."""
    kind, operands, extra = node
    plain = kind in ("num", "pi", "e", "var", "add", "mul", "sin", "cos", "exp") or (kind == "pow" and extra >= 0)
    return plain and all(map(total, operands))


def bits(q: Any) -> int:
    return max(int(q.p).bit_length(), int(q.q).bit_length())


def below(node: Node) -> Iterator[Node]:
    """Every node of a formula, conditions of `where` left out."""
    yield node
    for child in node[1]:
        yield from below(child)


def jumps_of(f: Sequence[Node]) -> list[Node]:
    """The conditions of `where`, and nodes whose value is a whole number: where these change there is a jump."""
    return [n[2] if n[0] == "where" else n for node in f for n in below(node) if n[0] in ("where", *JUMPS)]


def variables(node: Node) -> set[int]:
    found = {n[2] for n in below(node) if n[0] == "var"}
    return found.union(*(variables(n[2]) for n in below(node) if n[0] == "where"))


def line_node(a: Affine) -> Node:
    """An affine function as a formula."""
    parts = [product_of([num(k), var(i)]) for i, k in enumerate(a[1:]) if not arb(k).is_zero()]
    return tree("add", num(a[0]), *parts)


def substituted(node: Any, by: Sequence[Node]) -> Node:
    """The formula with others in the place of its variables."""
    if node[0] == "var":
        return by[node[2]]
    inside = substituted(node[2], by) if node[0] == "where" else node[2]
    return (node[0], tuple(substituted(a, by) for a in node[1]), inside)


def product_of(parts: list[Node]) -> Node:
    kept = [b for a in parts for b in (a[1] if a[0] == "mul" else (a,)) if b != ONE]
    return kept[0] if len(kept) == 1 else tree("mul", *kept) if kept else ONE


def entry_of(target: Record, numbers: tuple[str, float], box: Box) -> list[Node]:
    """An entry of the gallery on n real numbers as formulas, from its name and its parameters: no other text is read.

    The k-th smallest number is Σ_S (−1)^(|S|−k) C(|S|−1, k−1) max_S over all sets S of k or more (maximum–minimums identity).
    """
    given, n, shape = target.get("parameters"), len(box), target.get("output_shape")
    need(isinstance(given, dict), "the parameters of the entry are malformed")
    own, x = dict(given or {}), [var(i) for i in range(n)]
    fits = own.pop("n", n) == n and own.pop("domain", list(box[0])) == list(box[0]) and len(set(box)) == 1
    fits &= own.pop("dtype", None) == numbers[0] and own.pop("tolerance", None) in (None, numbers[1])
    need(fits, "entry, parameters, domain and arithmetic do not fit each other")

    def number(q: Any) -> Node:
        need(type(q) in (int, float) and math.isfinite(q), "a parameter of the entry is no number")
        return num(exact(q))

    def total(parts: Iterable[tuple[Any, Node]]) -> Node:
        return tree("add", NOTHING, *(tree("mul", number(c), node) for c, node in parts))

    def top(kind: str, nodes: Sequence[Node]) -> Node:
        return (kind, tuple(nodes), None) if len(nodes) > 1 else nodes[0]

    def rank(k: int, share: float = 1.0) -> list[tuple[Any, Node]]:
        need(sum(math.comb(n, m) for m in range(k, n + 1)) <= SETS, "too many sets of numbers", UNCHECKED)
        rows = [(m, (-1) ** (m - k) * math.comb(m - 1, k - 1) * share) for m in range(k, n + 1)]
        return [(c, top("max", S)) for m, c in rows for S in combinations(x, m)]

    def moved(source: Sequence[int]) -> list[Node]:
        return [x[j] if 0 <= j < n else number(0) for j in source]

    f = list[Node]()
    match (target.get("entry"), *sorted(own)):
        case ("maximum" | "minimum" as name,):
            f = [top(name[:3], x)]
        case ("absolute_difference",) if n == 2:
            f = [tree("abs", total([(1, x[0]), (-1, x[1])]))]
        case ("running_max",):
            f = [top("max", x[: i + 1]) for i in range(n)]
        case ("median",):
            f = [total(rank(n // 2 + 1) if n % 2 else rank(n // 2, 0.5) + rank(n // 2 + 1, 0.5))]
        case ("top_k", "k") if type(own["k"]) is int and 1 <= own["k"] <= n:
            f = [total(rank(n - i)) for i in range(own["k"])]
        case ("sort", "descending") if type(own["descending"]) is bool:
            f = [total(rank(k)) for k in range(1, n + 1)][:: -1 if own["descending"] else 1]
        case ("mean",):
            f = [tree("div", total((1, node) for node in x), number(n))]
        case ("affine", "matrix", "offset") if all(isinstance(v, list) for v in own.values()):
            A, b = own["matrix"], own["offset"]
            good = len(A) == len(b) and all(isinstance(row, list) and len(row) == n for row in A)
            need(good, "the parameters are no matrix and offset")
            f = [total([(v, ONE), *zipped(row, x)]) for row, v in zipped(A, b)]
        case ("clip", "high", "low"):
            low, high = number(own["low"]), number(own["high"])
            need(low[2] <= high[2], "clip: the ends are in the wrong order")
            f = [tree("max", low, tree("min", node, high)) for node in x]
        case ("permute", "order") if isinstance(own["order"], list):
            whole = all(type(j) is int for j in own["order"])
            need(whole and sorted(own["order"]) == list(range(n)), "the order is no permutation")
            f = moved(own["order"])
        case ("reverse",):
            f = x[::-1]
        case ("shift", "by", "cyclic") if type(own["by"]) is int and type(own["cyclic"]) is bool:
            f = moved([(i - own["by"]) % n if own["cyclic"] else i - own["by"] for i in range(n)])
    need(f, "the entry of the gallery is not known here, or its parameters do not fit", UNCHECKED)
    need(shape == [len(f)] and target.get("shape") == [n, 1], "entry and shapes do not fit each other")
    return f


def read_target(target: Record, margin: float, numbers: Any = ("", 0.0)) -> "tuple[list[Node], Domain, str]":
    """Formula, domain and its description; the ends as text lie inside the box, or are the decimals of its floats.

    numbers: arithmetic and tolerance, which an entry of the gallery repeats among its parameters.
    """
    names, lower, upper, ends = (target.get(k) for k in ("names", "lower", "upper", "ends"))
    lists = [t for t in (names, lower, upper, ends) if isinstance(t, list)]
    need(len(lists) == 4 and len({len(t) for t in lists}) == 1 and 0 < len(lists[0]) <= 512, "the domain is malformed")
    reserved = {"min", "max", "where", "pi"}
    proper = all(isinstance(n, str) and n.isidentifier() and n not in reserved for n in lists[0])
    need(proper, "a variable has no proper name")
    own_letters = all(normalize("NFKC", n) == n for n in lists[0])
    need(own_letters, "the name of a variable has letters that Python reads as others", UNCHECKED)
    need(len(set(lists[0])) == len(lists[0]), "two variables have the same name")
    box = list[tuple[float, float]]()
    for a, b, pair in zipped(*lists[1:]):
        good = all(type(v) in (int, float) and abs(v) <= 1e150 and float(v) == v for v in (a, b)) and a < b
        need(good and isinstance(pair, list) and len(pair) == 2, "the ends of the domain are malformed")
        box.append((float(a), float(b)))
        written = list[Any]()
        for text, own in zipped(map(str, pair), (a, b)):
            plain = re.fullmatch(r"-?[\d.]+(e[+-]?\d+)?", text, re.ASCII) and float(text) == own
            found = arb(own) if plain else value(Reader([], text).node(), [])
            need(not (found < a or found > b), f"the end {text[:40]!r} of the domain lies outside its box")
            need(found >= a and found <= b, f"whether the end {text[:40]!r} lies in the box is not decided", UNCHECKED)
            written.append(found)
        need(written[0] < written[1], "the ends of a side are in the wrong order")
    shape, names = target.get("output_shape"), lists[0]
    where = None if target.get("within") is None else Reader(names, target["within"]).condition()
    said = [f"{n} in [{a}, {b}]" for n, (a, b) in zipped(lists[0], lists[3])]
    same = len(said) > 3 and all(pair == lists[3][0] for pair in lists[3])
    text = f"{lists[0][0]}, …, {said[-1]}" if same else ", ".join(said)
    entry = target.get("formula") is None
    need(entry or isinstance(target["formula"], str), "the formula is no text")
    need(entry != (target.get("entry") is None), "a formula, and an entry of the gallery")
    f = entry_of(target, numbers, box) if entry else [Reader(names, p).node() for p in target["formula"].split(";")]
    tokens: Any = target.get("shape")
    fits = isinstance(tokens, list) and len(tokens) == 2 and all(type(n) is int and n > 0 for n in tokens)
    need(fits and math.prod(tokens) == len(box), "shape does not fit the variables")
    good = isinstance(shape, list) and shape and all(type(n) is int and n > 0 for n in shape)
    need(good and math.prod(shape or []) == len(f), "output_shape does not fit the formula")
    encoded = any(target.get(name) is not None for name in ("vocabulary", "decoding"))
    need(not encoded, "inputs or answers are encoded, though there is a formula")
    return f, Domain(box, where, margin), text if where is None else f"{text}, where {target['within']}"


def read_config(
    about: Record, tensors: Record, ins: int, outs: int, lengths: bool = False, norms: bool = False
) -> tuple[Record, Record, list[int]]:
    """(configuration, weights, places), if the tensors have the shapes that the configuration says.

    A layer for all lengths up to that of the configuration (`lengths`) is read at every position, or once. It may have
    LayerNorm where `norms` says so.
    """
    c, facts = (read_json(str(about.get(k)).encode(), f"the {k} of the model") for k in ("config", "facts"))
    sizes = ["tokens", "features_in", "features_out", "d_model", "heads", "d_k", "d_v", "ffn_width"]
    special = ["anchor_tokens", "memory_tokens", "output_tokens"]
    whole = all(type(c.get(k)) is int and c[k] >= (k in sizes) for k in sizes + special)
    plain = all(type(c.get(k)) is bool for k in ("residual", "projection_bias"))
    need(whole and plain, "the configuration is malformed")
    unknown = {*c} - {*sizes, *special, *FIELDS, *MASKS, "window"}
    listed = ", ".join(sorted(map(str, unknown)))[:60]
    need(not unknown, f"the configuration has what is unknown here: {listed}", UNCHECKED)
    masks = [c.get(k, False) for k in MASKS]
    need(all(type(v) is bool for v in masks) and masks[0] == lengths, "the layer is for other lengths than the task")
    need(lengths or not masks[1], "masks cannot be checked", UNCHECKED)
    c |= dict(zipped(MASKS, masks))
    plain = c.get("norm") == "none" or (norms and c.get("norm") in ("pre", "post"))
    need(plain, f"norm {str(c.get('norm'))[:20]!r} cannot be checked here", UNCHECKED)
    eps = c.get("norm_eps")
    need(c["norm"] == "none" or (type(eps) is float and 1e-300 < eps < INF), "the ε of LayerNorm makes no sense")
    need(c.get("attention") == "softmax", "only softmax attention can be checked", UNCHECKED)
    known = c.get("activation") in ("relu", "gelu", "silu") and c.get("readout") in ("position", "output", "mean")
    need(known, "the activation or the read-out is unknown")
    n, d, m, M, h, k, v, F = (c[name] for name in sizes)
    extra = sum(c[name] for name in special)
    shapes = {"shift": [n, d], "scale": [n, d], "W_E": [d, M], "b_E": [M], "W_Q": [h, M, k], "W_K": [h, M, k]}
    shapes |= {"W_V": [h, M, v], "W_O": [h * v, M], "W_1": [M, F], "b_1": [F], "W_2": [F, M], "b_2": [M]}
    shapes |= {"W_R": [M, m], "b_R": [m]} | ({"S": [extra, M]} if extra else {})
    shapes |= {"P": [n, M]} if c.get("code") != "none" else {}
    shapes |= {"b_Q": [h, k], "b_K": [h, k], "b_V": [h, v], "b_O": [M]} if c["projection_bias"] else {}
    shapes |= {f"{k}_{i}": [M] for k in ("gain", "offset") for i in (1, 2)} if c["norm"] != "none" else {}
    wrong = [name for name in {*shapes, *tensors} if tensors.get(name, (None,))[0] != shapes.get(name)]
    need(not wrong, f"tensors that do not fit the configuration: {', '.join(sorted(wrong))[:60]}")
    places: Any = list(range(n if c["readout"] == "position" else 1)) if lengths else facts.get("places")
    most = {"output": c["output_tokens"], "mean": 1}.get(c["readout"], n)
    good = isinstance(places, list) and all(type(p) is int and 0 <= p < most for p in places)
    need(good and len(places) * m == outs and n * d == ins, "model, domain and formula have different shapes")
    weights = {name: rows for name, (_, rows) in tensors.items()}
    need(all(v for row in weights["scale"] for v in row), "a scale is 0")
    return c, weights, places


def terms_of(node: Node) -> list[Node]:
    """Nodes that add up to the given one: sums are followed through constant factors and divisors."""
    kind, operands, extra = node
    moving = [i for i, a in enumerate(operands) if variables(a)]
    if kind == "add":
        return [term for part in operands for term in terms_of(part)]
    if kind not in ("mul", "div") or len(moving) != 1 or (kind == "div" and moving != [0]):
        return [node]
    i = moving[0]
    return [(kind, (*operands[:i], term, *operands[i + 1 :]), extra) for term in terms_of(operands[i])]


def replaced(node: Node, old: Node, by: Node) -> Node:
    """The formula with another in the place of a part; conditions of `where` are left as they are."""
    return by if node == old else (node[0], tuple(replaced(a, old, by) for a in node[1]), node[2])


# ═══ 2. Ball arithmetic and Taylor models: enclosures of formulas on boxes, and the domain ══════════════════════════

zipped = partial(zip, strict=True)
ONE, NOTHING, VAR = num(fmpq(1)), num(ZERO), var(0)


def summed(numbers: Iterable[Any]) -> Any:
    return sum(numbers, arb(0))


def dot(a: Iterable[Any], b: Iterable[Any]) -> Any:
    return sum(map(operator.mul, a, b), arb(0))


def plus(a: Iterable[Any], b: Iterable[Any]) -> list[Any]:
    return list(map(operator.add, a, b))


def greatest(numbers: Iterable[Any]) -> Any:
    return reduce(arb.max, numbers)


def lowest(numbers: Iterable[Any]) -> Any:
    return reduce(arb.min, numbers)


def transposed(rows: Iterable[Iterable[Any]]) -> list[list[Any]]:
    return list(map(list, zipped(*rows)))


def centre_of(box: Box) -> list[Any]:
    """The centre of a box, in balls."""
    return [(arb(a) + arb(b)) / 2 for a, b in box]


def midpoint(box: Box) -> list[float]:
    return [a / 2 + b / 2 for a, b in box]


class Sides(list[Any]):
    """Balls around the sides of a box, with the exact box beside them."""

    def __init__(self, box: Box) -> None:
        super().__init__(arb(a).union(arb(b)) for a, b in box)
        self.box = box


def value(node: Node, x: Sequence[Any], choice: dict[int, int] | None = None) -> Any:
    """The node at x, real balls or one of them complex. NaN: no value, or not proved analytic.

    A finite complex result proves the formula with the chosen branches of abs, min, max, where to be analytic on the
    ball: entire functions and quotients are (a pole has no finite enclosure); log and powers are evaluated off their cut,
    asin, acos and atan off theirs. Without `choice` (real balls) the result covers every branch that is possible. On a box
    (`Sides`) it covers the values of the formula where it is defined: what lies outside the domain of a root, of asin or acos
    may only seem to, and is cut off. At a point there is a value only if the formula is proved to have one.
    """
    kind, operands, extra = node
    if kind in ("num", "var"):
        return arb(extra) if kind == "num" else x[extra]
    if kind in ("pi", "e"):
        return arb.pi() if kind == "pi" else arb.const_e()
    if kind == "where":
        if choice is not None:
            return value(operands[choice[id(node)]], x, choice)
        truths = truth(extra, x)
        return arb.nan() if None in truths else reduce(arb.union, [value(operands[0 if t else 1], x) for t in truths])
    return applied(node, [value(a, x, choice) for a in operands], isinstance(x, Sides), choice)


def applied(node: Node, u: list[Any], box: bool, choice: dict[int, int] | None) -> Any:
    """The function of a node with these operands, as `value` has it; `box`: they are ranges on a box."""
    kind, operands, extra = node
    z = u[0]
    if kind in KINKS and (choice is not None or kind not in JUMPS):
        u = [z, -z] if kind == "abs" else u
        if choice is not None:
            return arb(choice[id(node)]) if kind in JUMPS else u[choice[id(node)]]
        return reduce(arb.min if kind == "min" else arb.max, u)
    if kind in ("add", "div"):
        return sum(u[1:], z) if kind == "add" else z / u[1]
    if kind == "pow":
        return power(z, int(extra.p))
    if kind == "mul":
        return power(z, 2) if len(u) == 2 and operands[0] == operands[1] else math.prod(u[1:], start=z)
    if kind in FUNCTIONS:
        return FUNCTIONS[kind].at(z, box)
    if kind == "atan2":
        return atan2(*u)
    if kind == "rpow" and extra == fmpq(1, 2) and isinstance(z, arb) and z > 0:
        return z.sqrt()  # exact for squares
    if kind == "rpow" and isinstance(z, arb) and extra > 0 and not z > 0:  # 0 at 0
        if z == 0 or z < 0 or not (box and z.is_finite()):
            return arb(0) if z == 0 else arb.nan()
        return arb(0).union((arb(extra) * z.upper().log()).exp())  # where it is defined
    return ((u[1] if kind == "gpow" else arb(extra)) * FUNCTIONS["log"].at(z)).exp()


@dataclass(frozen=True, eq=False)
class Known:
    """A function φ of one variable. Everywhere φ(z) lies in ball(z), the domain left aside; the other fields are facts too.

    A complex ball counts as inside the domain if its real part does, where φ has no cut and no pole; and a bound of φ′ on all
    of a ball proves φ analytic there.
    """

    name: str
    ball: Callable[[Any], Any]
    slope: str  # φ′ as a formula of u and y = φ(u)
    low: float = -INF  # the domain
    high: float = INF
    closed: bool = False  # with its ends, between which φ is monotone
    pole: bool = False  # 0 is not in the domain
    turns: tuple[Any, ...] | None = None  # between these φ is monotone, where |x| ≤ far
    far: float = INF
    within: tuple[float, float] | None = None  # values of real numbers
    steep: Callable[[Any], Any] | None = None  # of a ball: |φ′| on it, at most
    tight: bool = False  # `ball` sees to domain and cuts, and is tight
    series: bool = False  # so are flint's power series
    zero: tuple[int, int, str] | None = None  # (c, k, ψ): φ(u) = c + u^k·ψ, a formula of u and y, ψ(0) ≠ 0

    def at(self, z: Any, box: bool = False) -> Any:
        """φ on a ball. `box`: what lies outside a closed domain is cut off."""
        if self.tight:
            return self.ball(z)
        x, own = z.real, isinstance(z, arb)
        shut = self.closed and own
        inside = (x >= self.low and x <= self.high) if shut else (x > self.low and x < self.high)
        if not z.is_finite() or not (inside or (shut and box)) or (self.pole and x.contains(0)):
            return arb.nan()
        ends = own and self.turns is not None and not z.is_exact() and z.abs_upper() <= self.far
        found = arb.union(*self.between(z.lower(), z.upper())) if ends else self.near(z)
        found = found.max(arb(self.within[0])).min(arb(self.within[1])) if own and self.within else found
        return found if found.is_finite() else arb.nan()

    def near(self, z: Any) -> Any:
        """`ball`, or how far φ moves from its value at the centre, whichever is less."""
        own, c = self.ball(z), z.mid()
        if z.is_exact() or not self.steep:
            return own
        off = within_ball(self.steep(z) * (z - c).abs_upper())
        near = self.ball(c) + (off if isinstance(z, arb) else acb(off, off))
        return near if near.is_finite() and not own.rad() <= near.rad() else own

    def between(self, low: Any, high: Any) -> tuple[Any, Any]:
        """(low, high) of φ between two numbers, from those at the ends if it is monotone."""
        if self.closed and not (low > self.high or high < self.low):
            low, high = low if low > self.low else arb(self.low), high if high < self.high else arb(self.high)
        hull, turns = low.union(high), self.turns
        if turns is None or not hull.abs_upper() <= self.far:
            sign = value(derivative(self.name, 1), [hull])
            turns = () if sign > 0 or sign < 0 else None
        if turns is not None and not (self.pole and hull.contains(0)):
            ends = [self.at(v) for v in (low, high)]
            return corners(ends + [self.ball(t) for t in map(arb, turns) if not (low > t or high < t)])
        found = self.at(hull)
        least, most = self.within or (-INF, INF)
        return found.lower().max(arb(least)), found.upper().min(arb(most))


@cache
def derivative(name: str, order: int) -> Node:
    """φ^(order) of variable 0."""
    return slope_of(derivative(name, order - 1), 0) if order else tree(name, VAR)


def atan2(y: Any, x: Any) -> Any:
    """The angle of (x, y), or every angle where x < 0 and y may be 0."""
    if x.real > 0:
        return FUNCTIONS["atan"].at(y / x)
    if y.real > 0 or y.real < 0:
        return (arb.pi() if y.real > 0 else -arb.pi()) / 2 - FUNCTIONS["atan"].at(x / y)
    if y.real == 0 and x.real < 0 and isinstance(y, arb):
        return arb.pi()
    return arb.pi().union(-arb.pi()) if x.real < 0 and isinstance(y, arb) and isinstance(x, arb) else arb.nan()


def cbrt(z: Any) -> Any:
    """The real cube root, and its continuation to either half-plane."""
    if z.real > 0:
        return z.root(3) if isinstance(z, arb) else (z.log(analytic=True) / 3).exp()
    return -cbrt(-z) if z.real < 0 else arb(0) if z == 0 else arb.nan()


def polynomial(p: Any, z: Any) -> Any:
    """A Legendre or Chebyshev polynomial or a derivative of one: |p(z)| ≤ p(s), s = (|z − 1| + |z + 1|)/2.

    For T_n(cos w) = cos nw and s = cosh(Im w); the others are sums of T_n with coefficients ≥ 0.
    """
    with ctx.workprec(ctx.prec + 4 * len(p)):
        make: Any = flint.arb_poly if isinstance(z, arb) else flint.acb_poly
        if z.is_exact():
            return make(p)(z)
        shifted, h = make(p)(make([z.mid(), 1])), z - z.mid()
        found = reduce(lambda a, b: a * h + b, reversed(shifted.coeffs()), 0 * h)
        most = flint.arb_poly(p)((((z - 1).abs_upper() + (z + 1).abs_upper()) / 2).upper())
    if isinstance(z, arb):
        return found.max(-most).min(most)
    return found if found.abs_upper() <= most else acb(within_ball(most), within_ball(most))


def records() -> Iterator[Known]:
    """All functions. Where names end in numbers, a function is its neighbour's slope, or made of neighbours."""
    # fmt: off
    of, h, least = operator.methodcaller, arb(0.5), arb(1.4616321449683622).union(arb(1.4616321449683625))
    # |φ′| of mixtures of e^(ist), |s| ≤ 1; of Y; of any φ; of mixtures of e^(st), at the real part. Cuts ±i[1, ∞). Complex only.
    waves, sunk, steep, mixed, uncut, through = (
        lambda k: lambda z: arb(k) * z.imag.abs_upper().cosh(),
        lambda n: lambda z: waves(0.637)(z) + arb(0.637) / z.real.lower() ** n,
        lambda f: lambda z: abs(value(derivative(f, 1), [z])),
        lambda f: lambda z: steep(f)(z.real.lower()).max(steep(f)(z.real.upper())),
        lambda f: lambda z: f(z) if z.imag.abs_upper() < 1 or not z.real.contains(0) else arb.nan(),
        lambda f, n: lambda z: f(n, acb(z)).real if isinstance(z, arb) else f(n, z))
    f, own = math.factorial, dict[str, Any](tight=True, series=True)
    yield Known("sin", of("sin"), "cos(u)", within=(-1.0, 1.0), zero=(0, 1, "sinc(u)"), **own)
    yield Known("cos", of("cos"), "-sin(u)", within=(-1.0, 1.0), zero=(1, 2, "-sinc(u/2)**2/2"), **own)
    yield Known("tan", of("tan"), "1 + y**2", zero=(0, 1, "sinc(u)/cos(u)"), **own)
    yield Known("exp", of("exp"), "y", turns=(), zero=(1, 1, "exprel(u)"), **own)
    yield Known("log", lambda z: z.log(analytic=True) if isinstance(z, acb) else z.log(), "1/u", 0.0, turns=(), **own)
    yield Known("sinh", of("sinh"), "cosh(u)", turns=(), zero=(0, 1, "(exprel(u) + exprel(-u))/2"), tight=True)
    yield Known("cosh", of("cosh"), "sinh(u)", turns=(0,), zero=(1, 2, "(exprel(u/2) + exprel(-u/2))**2/8"), tight=True)
    yield Known("tanh", of("tanh"), "1 - y**2", turns=(), zero=(0, 1, "(exprel(u) + exprel(-u))/2/cosh(u)"), tight=True)
    yield Known("atan", uncut(of("atan")), "1/(1 + u**2)", turns=(), zero=(0, 1, "cos(y)/sinc(y)"), **own)
    yield Known("asin", of("asin"), "(1 - u**2)**(-0.5)", -1.0, 1.0, True, turns=(), zero=(0, 1, "1/sinc(y)"), series=True)
    yield Known("acos", of("acos"), "-(1 - u**2)**(-0.5)", -1.0, 1.0, True, turns=(), series=True)
    yield Known("asinh", uncut(of("asinh")), "(1 + u**2)**(-0.5)", turns=(), zero=(0, 1, "2/(exprel(y) + exprel(-y))"),
                steep=steep("asinh"))
    yield Known("acosh", of("acosh"), "((u - 1)*(u + 1))**(-0.5)", 1.0, closed=True, turns=())
    yield Known("atanh", of("atanh"), "1/((1 - u)*(1 + u))", -1.0, 1.0, turns=(), zero=(0, 1, "cosh(y)*2/(exprel(y)+exprel(-y))"))
    yield Known("cbrt", cbrt, "1/(3*y**2)", turns=())
    yield Known("floor", lambda z: z.floor() if isinstance(z, arb) else arb.nan(), "", turns=())
    yield Known("floor'", lambda z: arb(0) if isinstance(z, arb) and z.floor().is_exact() else arb.nan(), "")
    yield Known("erf", of("erf"), "2/pi**0.5*exp(-u**2)", turns=(), zero=(0, 1, "2/pi**0.5*gauss0(u)"), **own)
    yield Known("erfc", of("erfc"), "-2/pi**0.5*exp(-u**2)", turns=())
    yield Known("erfcx", lambda z: (z * z).exp() * z.erfc(), "2*u*y - 2/pi**0.5", turns=())
    yield Known("erfinv", lambda z: z.real.erfinv() if z.imag == 0 else arb.nan(), "pi**0.5/2*exp(y**2)", -1.0, 1.0, turns=(),
                steep=lambda z: steep("erfinv")(z.abs_upper()))  # coefficients ≥ 0: |φ′(z)| ≤ φ′(|z|)
    yield Known("gamma", of("gamma"), "y*digamma(u)", 0.0, turns=(least,))
    yield Known("lgamma", of("lgamma"), "digamma(u)", 0.0, turns=(least,), steep=steep("lgamma"))
    yield Known("lambertw", of("lambertw"), "exp(-y)/(1 + y)", -0.3678794411714423, closed=True, turns=(), zero=(0, 1, "exp(-y)"))
    # πY_n = ∫sin(z sin θ − nθ)dθ over [0, π] − ∫(e^(nt) + (−1)^n e^(−nt))e^(−z sinh t)dt over [0, ∞)
    yield Known("y0", of("bessel_y", 0), "-y1(u)", 0.0, within=(-INF, 0.5214), steep=sunk(1))
    yield Known("y1", of("bessel_y", 1), "y0(u) - y/u", 0.0, within=(-INF, 0.4168), steep=sunk(2))
    yield Known("k0", of("bessel_k", 0), "-k1(u)", 0.0, turns=(), steep=mixed("k0"))  # ∫e^(−z cosh t) cosh nt dt over [0, ∞)
    yield Known("k1", of("bessel_k", 1), "-k0(u) - y/u", 0.0, turns=(), steep=mixed("k1"))
    for n in range(48):  # J_n = ∫cos(nθ − z sin θ)dθ/π over [0, π], I_n = ∫e^(z cos θ) cos nθ dθ/π
        psi = " + ".join(f"{f(n) * min(k + 1, 2)}/{2**n * f(n - k) * f(n + k)}*j{2 * k}(u)" for k in range(n + 1))
        yield Known(f"j{n}", of("bessel_j", n), f"(j{n - 1}(u) - j{n + 1}(u))/2" if n else "-j1(u)", steep=waves(0.637),
                    within=(-0.582, 0.582) if n else (-0.403, 1.0), zero=(0, n, psi) if 0 < n <= 20 else None)
        yield Known(f"i{n}", of("bessel_i", n), f"(i{n - 1}(u) + i{n + 1}(u))/2" if n else "i1(u)", turns=() if n % 2 else (0,),
                    zero=(0, 1, "(i0(u) - i2(u))/2") if n == 1 else None)
    for c, low, high in (("a", -0.4191, 0.5357), ("b", -0.455, INF)):
        yield Known(f"{c}i", of(f"airy_{c}i"), f"{c}i1(u)", within=(low, high))
        yield Known(f"{c}i1", of(f"airy_{c}i", derivative=1), f"u*{c}i(u)")
    yield Known("si", of("si"), "sinc(u)", within=(-1.852, 1.852), zero=(0, 1, "sine0(u)"))
    yield Known("ci", of("ci"), "cos(u)/u", 0.0, within=(-INF, 0.4721))
    yield Known("ei", lambda z: -(-z).expint(1) if isinstance(z, acb) and z.real < 0 else z.ei(), "exp(u)/u", pole=True, turns=())
    yield Known("fresnels", of("fresnel_s"), "sin(pi/2*u**2)", within=(-0.714, 0.714))
    yield Known("fresnelc", of("fresnel_c"), "cos(pi/2*u**2)", within=(-0.78, 0.78))
    yield Known("sinc", of("sinc"), "-sphere1(u)", turns=(0,), far=4.49, within=(-0.2173, 1.0),
                steep=lambda z: (z.abs_upper() / 3).min(h) * waves(1)(z))
    for n in range(1, 8):  # ∫i^(−n) e^(izt) P_n(t)dt/2 over [−1, 1]
        slope = f"({n}*{f'sphere{n - 1}' if n > 1 else 'sinc'}(u) - {n + 1}*sphere{n + 1}(u))/{2 * n + 1}"
        yield Known(f"sphere{n}", partial(lambda n, z: power(z, n) * (-power(z, 2) / 4).hypgeom_0f1(n + 1 + h)
                    / math.prod(range(1, 2 * n + 2, 2)), n), slope, within=(-0.448, 0.448), steep=waves(0.3334))
    yield Known("exprel", lambda z: (z / 2).exp() * FUNCTIONS["sinc"].at(z * acb(0, 1) / 2) if isinstance(z, acb)
                else z.hypgeom_1f1(1, 2), "exprel1(u)", turns=())
    for n in range(7):
        yield Known(f"gauss{n}", partial(lambda n, z: (-power(z, 2)).hypgeom_1f1(n + h, n + 1 + h) / (2 * n + 1), n),
                    f"-2*u*gauss{n + 1}(u)", turns=(0,))  # ∫t^(2n) e^(−z²t²)dt over [0, 1]
        yield Known(f"sine{n}", through(lambda n, z: z.si() / z if n == 0 and z.abs_lower() > 1 else (-power(z, 2) / 4).hypgeom(
                    [n + h], [n + 1 + h] * 2) / math.prod(range(1, 2 * n, 2)) / (2 * n + 1) ** 2, n),  # 0: si(z)/z
                    f"-u*sine{n + 1}(u)", steep=lambda z: z.abs_upper() * waves(1)(z) / 9)
        for stem, ball, low, high in (
            ("exprel", lambda n, z: z.hypgeom_1f1(n + 1, n + 2) / (n + 1), -INF, INF),
            ("zeta", lambda n, z: flint.acb_series([z, 1], n + 1).zeta()[n] * f(n), 1.0, INF),
            ("digamma", lambda n, z: z.polygamma(n) if n else z.digamma(), 0.0, INF),
            ("ellipk", lambda n, z: h.rising(n) ** 2 / f(n) * arb.pi() / 2 * z.hypgeom_2f1(n + h, n + h, n + 1), -INF, 1.0),
            ("ellipe", lambda n, z: h.rising(n) * (-h).rising(n) / f(n) * arb.pi() / 2
                * z.hypgeom_2f1(n - h, n + h, n + 1), -INF, 1.0),
        ):
            if n or stem != "exprel":
                name = f"{stem}{n or ''}"
                yield Known(name, through(ball, n), f"{stem}{n + 1}(u)", low, high, turns=(), steep=mixed(name))
    for n in range(51):
        for name, p in ((f"legendre{n}", flint.fmpq_poly.legendre_p(n)), (f"chebyshev{n}", flint.fmpz_poly.chebyshev_t(n))):
            for k in range(7):
                yield Known(f"{name}_{k}" if k else name, partial(polynomial, p), f"{name}_{k + 1}(u)")
                p = p.derivative()
    # fmt: on


FUNCTIONS = {known.name: known for known in records()}
FUNCTIONS |= {name: replace(known, slope="log(-1) + 0*y") for name, known in FUNCTIONS.items()  # where a family ends: none
              if not {*re.findall(r"\w+(?=\()", known.slope)} <= FUNCTIONS.keys()}  # fmt: skip


def power(z: Any, n: int) -> Any:
    """z^n: 1 for n = 0, also at 0, but not where z has no value. (A ball ** n would have none where the ball contains 0.)"""
    if n == 0 or not z.is_finite():
        return arb(1) if z.is_finite() else arb.nan()
    if n < 0:
        return 1 / power(z, -n)
    if isinstance(z, arb) and z.contains(0) and not z.is_exact():
        return arb(0).union(z.abs_upper() ** n) if n % 2 == 0 else (z.lower() ** n).union(z.upper() ** n)
    return z * z if n == 2 else z**n


def truth(node: Node, x: Sequence[Any]) -> set[Any]:
    """The truth values that a condition may have on the box; None is undefined. Of a floor: the least and the largest."""
    kind, operands, relation = node
    if kind in JUMPS:
        z = value(operands[0], x)
        low, high = interval(operands[0], x) if isinstance(x, Sides) else (z.lower(), z.upper())
        ends = [low.lower(), high.upper()]
        known = z.is_finite() and all(abs(v) < 2.0**62 for v in ends)  # flint ends the process at vast ones
        return {v.floor().unique_fmpz() for v in ends} if known else {None}
    if kind == "cmp":
        left, right = (value(a, x) for a in operands)
        if not (left.is_finite() and right.is_finite()):
            return {None}
        return {True} if relation(left, right) else {False} if CONVERSE[relation](left, right) else {True, False}
    found = [truth(a, x) for a in operands]
    if kind == "not":
        return {None if t is None else not t for t in found[0]}
    stops = kind == "or"  # one True decides `or`, one False decides `and`
    result: set[bool | None] = {not stops}
    for some in found:
        result = {stops if stops in ts else None if None in ts else not stops for ts in product(result, some)}
    return result


def constant(jump: Node, x: Sequence[Any]) -> bool:
    """Whether there is no jump on the box."""
    found = truth(jump, x)
    return len(found) == 1 and None not in found


def at(a: Affine, x: Sequence[Any]) -> Any:
    return sum(map(operator.mul, a[1:], x), a[0])


def exact(number: Any) -> Any:
    return fmpq(*number.as_integer_ratio()) if isinstance(number, float) else fmpq(number)


def combined(a: Affine, scale: Any, b: Affine) -> Affine:
    return [p + scale * q for p, q in zipped(a, b)]


def span(a: Affine, box: Sequence[tuple[Any, Any]]) -> tuple[Any, Any]:
    """(low, high) of an affine function on a box of floats or rationals."""
    sides = [(exact(p), exact(q)) for p, q in box]
    middle, radius = at(a, [(p + q) / 2 for p, q in sides]), at([0, *map(abs, a[1:])], [(q - p) / 2 for p, q in sides])
    return middle - radius, middle + radius


def size(a: Affine, box: Sequence[tuple[Any, Any]]) -> Any:
    """An upper bound on |a| over a box."""
    low, high = map(abs, span(a, box))
    return low.max(high) if isinstance(low, arb) else max(low, high)


def balls(numbers: Sequence[Any]) -> list[Any]:
    return [arb(v) for v in numbers]


Jet = list[Any]  # coefficients of a Taylor model


def within_ball(radius: Any) -> Any:
    """0 ± radius."""
    return arb(0, 1) * radius


def expansion(kind: str, z: Any, q: Any = None, first: int = 0) -> list[Any]:
    """φ, φ′, φ″/2, φ‴/6 at a point, or enclosures of them on a ball; NaN where φ is not smooth. Only from the `first` on."""
    if kind == "inv":
        return [1 / z, -1 / power(z, 2), 1 / power(z, 3), -1 / power(z, 4)]
    if kind == "gelu":
        square, step = power(z, 2), (1 + (z / arb(2).sqrt()).erf()) / 2
        bell = (-square / 2).exp() / (2 * arb.pi()).sqrt()
        return [z * step, step + z * bell, (2 - square) * bell / 2, z * (square - 4) * bell / 6]
    if kind in ("silu", "tanh"):  # with p the sigmoid, tanh z = 2p(2z) − 1
        p = reduce(arb.union, [1 / (1 + (-t if kind == "silu" else -2 * t).exp()) for t in (z.lower(), z.upper())])
        first = p * (1 - p)
        second, third = first * (1 - 2 * p), first * (1 - 6 * first)
        if kind == "tanh":
            return [2 * p - 1, 4 * first, 4 * second, arb(8) / 3 * third]
        return [z * p, p + z * first, first + z * second / 2, second / 2 + z * third / 6]
    if kind == "cbrt":
        return ([-v if n % 2 == 0 else v for n, v in enumerate(expansion("rpow", -z, fmpq(1, 3)))] if z < 0
                else expansion("rpow", z, fmpq(1, 3)))  # fmt: skip
    if kind != "rpow" and not FUNCTIONS[kind].series:
        return [arb(0)] * first + [value(derivative(kind, k), [z]) / math.factorial(k) for k in range(first, 4)]
    s = arb_series([z, arb(1)], 4)
    s = (s.log() * arb(q)).exp() if kind == "rpow" else getattr(s, kind)()
    return [s[k] for k in range(4)]


def bounded_below(f: list[Node], domain: "Domain", m: float, tick: Tick) -> None:
    """Prove |f| ≥ m on the domain for every output, by bisection; another verdict is raised."""
    for node in f:
        axes = sorted(variables(node)) if domain.where is None else list(range(len(domain.box)))
        heap, serial = [(0.0, 0, domain.box)], count(1)
        while heap:  # where |f| is small first
            _, _, box = heapq.heappop(heap)
            tick(box)
            (low, high), centre = enclosed(node, box), balls(midpoint(box))
            away = low.is_finite() and high.is_finite() and (low >= m or high <= -m)
            if away or (domain.where is not None and truth(domain.where, Sides(box)) == {False}):
                continue
            inside = domain.where is None or truth(domain.where, centre) == {True}
            need(not (inside and abs(value(node, centre)) < m), f"|f| ≥ {m!r} is claimed, and is false", box=box)
            need(axes, "the smallest |f| is not decided", UNCHECKED)
            for half in halved(box, widest(box, domain.box, axes)):
                here = abs(value(node, balls(midpoint(half))))
                heapq.heappush(heap, (float(here) if here.is_finite() else 0.0, next(serial), half))


def widest(box: Box, whole: Box, axes: Sequence[int]) -> int:
    """The axis along which a box is largest, compared with the whole."""
    return max(axes, key=lambda i: (box[i][1] - box[i][0]) / (whole[i][1] - whole[i][0]))


class Jets:
    """Taylor models of degree 2 on a box: x_i = c_i + r_i t_i, |t_i| ≤ 1; coefficients of 1, of t_i, of t_i t_j with i ≤ j.

    What is beyond degree 2 is in the ball of the constant: φ(c + h) = φ(c) + φ′(c)h + φ″(c)h²/2 + φ‴(somewhere)h³/6.
    """

    def __init__(self, x: Sides, axes: Sequence[int]) -> None:
        self.x, self.axes, D = x, list(axes), len(axes)
        monomials: list[tuple[int, ...]] = [(), *((i,) for i in range(D))]
        monomials += [(i, j) for i in range(D) for j in range(i, D)]
        places = {m: n for n, m in enumerate(monomials)}
        self.monomials, self.zeros = monomials, [arb(0)] * len(monomials)
        self.places = [[places.get(tuple(sorted(a + b))) for b in monomials] for a in monomials]

    def constant(self, number: Any) -> Jet:
        return [number, *self.zeros[1:]]

    def variable(self, i: int) -> Jet:
        if i not in self.axes:
            return self.constant(self.x[i])
        (a, b), found = map(arb, self.x.box[i]), list(self.zeros)
        found[0], found[1 + self.axes.index(i)] = (a + b) / 2, (b - a) / 2
        return found

    def fold(self, table: Sequence[Sequence[Any]]) -> Jet:
        """Σ table[a][b]·(monomial a)·(monomial b)."""
        found, beyond = list(self.zeros), arb(0)
        for row, places in zipped(table, self.places):
            for number, place in zipped(row, places):
                if place is None:
                    beyond += abs(number)
                else:
                    found[place] += number
        found[0] += within_ball(beyond)
        return found

    def times(self, p: Jet, q: Jet) -> Jet:
        return self.fold([[a * b for b in q] for a in p])

    def ends(self, p: Jet) -> tuple[Any, Any]:
        """(low, high): a square is not negative."""
        low = high = p[0]
        for m, k in zipped(self.monomials[1:], p[1:]):
            square = len(m) == 2 and m[0] == m[1]
            low, high = low + (k.min(arb(0)) if square else -abs(k)), high + (k.max(arb(0)) if square else abs(k))
        return low.lower(), high.upper()

    def apply(self, kind: str, p: Jet, q: Any = None) -> Jet:
        c, D = p[0].mid(), len(self.axes)
        rest = p[0] - c
        first, second = summed(map(abs, p[1 : D + 1])), sum(map(abs, p[D + 1 :]), rest.abs_upper())
        reach = first + second
        a, last = expansion(kind, c, q), expansion(kind, c + within_ball(reach), q, 3)[3]
        beyond = a[2] * within_ball(second * (2 * first + second)) + last * within_ball(reach * reach * reach)
        found = [a[0] + a[1] * rest + beyond, *(a[1] * k for k in p[1:])]
        for n, pair in enumerate(self.monomials[D + 1 :], D + 1):
            i, j = pair
            found[n] += a[2] * p[1 + i] * p[1 + j] * (1 if i == j else 2)
        return found

    def hinge(self, p: Jet) -> Jet:
        """max(0, p): where the sign is open, λp plus something between 0 and max(−λ·low, (1 − λ)·high)."""
        low, high = self.ends(p)
        if not (low < 0 and high > 0):
            return p if low >= 0 else list(self.zeros) if high <= 0 else self.constant(arb.nan())
        share = (high / (high - low)).mid()
        gap = (-share * low).max((1 - share) * high)
        return [share * p[0] + gap.union(arb(0)), *(share * k for k in p[1:])]

    def share(self, p: Jet) -> Jet:
        """What is between 0 and 1, however large its model is."""
        (low, high), n = self.ends(p), len(self.monomials)
        return p if low > -1 and high < 2 else [arb(0).union(arb(1)), *self.zeros[1:n], *p[n:]]

    def of(self, node: Node) -> Jet:
        """The node on the box; where it has no Taylor model, an enclosure."""
        found = self.smooth(node)
        return found if all(k.is_finite() for k in found) else self.constant(value(node, self.x))

    def smooth(self, node: Node) -> Jet:
        kind, operands, extra = node
        if kind in ("num", "pi", "e"):
            return self.constant(value(node, []))
        if kind == "var":
            return self.variable(extra)
        if kind == "where":
            truths = truth(extra, self.x)
            known = truths in ({True}, {False})
            return self.of(operands[0 if True in truths else 1]) if known else self.constant(value(node, self.x))
        u = [self.of(a) for a in operands]
        if kind == "add":
            return [summed(column) for column in zipped(*u)]
        if kind == "abs":
            return [2 * a - b for a, b in zipped(self.hinge(u[0]), u[0])]
        if kind in ("min", "max"):
            sign = 1 if kind == "max" else -1
            return reduce(lambda a, b: combined(a, sign, self.hinge([sign * (q - p) for p, q in zipped(a, b)])), u)
        if kind == "mul":
            return reduce(self.times, u)
        if kind == "div":
            return self.times(u[0], self.apply("inv", u[1]))
        if kind == "floor":
            return self.constant(reduce(arb.union, [arb.nan() if v is None else arb(v) for v in truth(node, self.x)]))
        if kind == "atan2":
            (low, high), above = self.ends(u[0]), self.ends(u[1])[0] > 0
            if not (above or low > 0 or high < 0):
                return self.constant(value(node, self.x))
            angle = self.apply("atan", self.times(u[1 - above], self.apply("inv", u[above])))
            half = (arb.pi() if low > 0 else -arb.pi()) / 2
            return angle if above else [half - angle[0], *(-k for k in angle[1:])]
        if kind == "gpow":
            return self.apply("exp", self.times(u[1], self.apply("log", u[0])))
        if kind == "pow":
            n = abs(int(extra.p))
            found = reduce(self.times, [u[0]] * n) if n else self.constant(power(value(operands[0], self.x), 0))
            return self.apply("inv", found) if extra < 0 else found
        return self.apply(kind, u[0], extra)


def interval(node: Node, x: Sides) -> tuple[Any, Any]:
    """(low, high) of a node on a box, each end computed from ends: exact where they are, unlike balls."""
    kind, operands, extra = node
    if kind == "var":
        return arb(x.box[extra][0]), arb(x.box[extra][1])
    if kind == "where":
        found = [interval(operands[0 if t else 1], x) for t in truth(extra, x) if t is not None]
        lows, highs = zipped(*found) if None not in truth(extra, x) else ((arb.nan(),), (arb.nan(),))
        return lowest(lows), greatest(highs)
    u = [interval(a, x) for a in operands]
    if not all(v.is_finite() for pair in u for v in pair):
        return arb.nan(), arb.nan()
    if kind == "mul" and len(u) == 2 and operands[0] == operands[1]:
        kind, extra = "pow", fmpq(2)
    if kind == "add":
        return sum((a for a, _ in u[1:]), u[0][0]), sum((b for _, b in u[1:]), u[0][1])
    if kind in ("min", "max"):
        best = arb.min if kind == "min" else arb.max
        return reduce(best, [a for a, _ in u]), reduce(best, [b for _, b in u])
    if kind in ("mul", "div"):
        if kind == "div":
            low, high = u[1]
            u[1] = (1 / high, 1 / low) if low > 0 or high < 0 else (arb.nan(), arb.nan())
        return reduce(lambda p, q: corners([a * b for a in p for b in q]), u)
    if not u:
        return (value(node, []),) * 2
    low, high = u[0]
    if kind in FUNCTIONS:
        return FUNCTIONS[kind].between(low, high)
    if (kind == "pow" and extra > 0 and int(extra.p) % 2 == 0) or kind == "abs":
        tops, signs = corners([abs(low), abs(high)]), low >= 0 or high <= 0
        low, high = tops if signs else (arb(0), tops[1])
    if kind == "rpow" and extra > 0 and not high < 0:  # where it is defined
        low = low if low > 0 else arb(0)
    if kind == "abs" or (kind in ("pow", "rpow") and extra > 0 and (kind == "pow" or low >= 0)):
        return corners([value((kind, (num(v),), extra), []) for v in (low, high)])
    ball = value((kind, tuple(num(a.union(b)) for a, b in u), extra), [])
    return ball.lower(), ball.upper()


def corners(numbers: list[Any]) -> tuple[Any, Any]:
    return lowest(numbers), greatest(numbers)


def middle(ball: Any) -> Any:
    """The centre of a ball, exactly."""
    man, exp = ball.mid().man_exp()
    return fmpq(man) * fmpq(2) ** int(exp)


def binary(number: Any) -> bool:
    """Whether a number is ± a power of two: products with it are exact."""
    p, q = abs(int(number.p)), int(number.q)
    return p > 0 and p & (p - 1) == 0 and q & (q - 1) == 0


def lossless(q: Any) -> bool:
    """Whether products of a float with this number are exact: with ± a power of two from 1 on, for smaller ones may underflow."""
    return binary(q) and abs(q) >= 1


class Floats:
    """The numbers of the deployed layer, and the one argument about their rounding.

    An operation is off by at most u times its result, or by `smallest` if it underflows, which additions never do. Sums with 0
    are exact, and so are products with ± a power of two but for underflow, which 1 or more rules out (`lossless`). Hence a sum
    of N numbers and products that are not 0, in any order, fused or not, is off by at most γ_k Σ|summands| + n·smallest: k is N
    − 1, or N if a product is rounded; n products may underflow; γ_k = ku/(1 − ku) ≥ (1 + u)^k − 1. Every chapter counts k and
    n: `Layer` for all ways to an output at once (to first order in u, then `rise`), `Dense` and `Rounded` step by step.
    """

    def __init__(self, u: Any) -> None:
        self.u, self.double, self.gammas = u, bool(u < fmpq(1, 2**30)), dict[int, Any]()
        self.smallest = fmpq(1, 2 ** (1022 if self.double else 126))

    def gamma(self, steps: int) -> Any:
        """γ_k; γ_j + γ_k + γ_jγ_k ≤ γ_(j+k)."""
        if steps not in self.gammas:
            need(steps * self.u < fmpq(1, 1000), "there are too many summands for the rounding analysis", UNCHECKED)
            self.gammas[steps] = above(steps * self.u / (1 - steps * self.u))
        return self.gammas[steps]


def additions(numbers: Sequence[float], more: int) -> int:
    """k of the lemma for Σ number·something and `more` other summands."""
    used = [exact(v) for v in numbers if v]
    return max(len(used) + more - 1, 0) + (not all(map(binary, used)))


def above(q: Any) -> Any:
    """The next multiple of 2^−250: sums of such numbers stay short."""
    return fmpq((q * 2**250).ceil(), 2**250)


def up(ball: Any) -> float:
    """A float above a ball; infinite if there is none."""
    found = float(ball.upper()) if ball.is_finite() else INF
    return found + abs(found) * 1e-15 + 1e-307 if math.isfinite(found) else INF


@dataclass(frozen=True)
class Domain:
    """The box, the condition that cuts a part out of it, and the margin around jumps about which nothing is claimed."""

    box: Box
    where: Node | None
    margin: float

    def whole(self, axes: Sequence[int], own: Sequence[Any], rest: Sequence[Any]) -> list[Any]:
        """A list over all coordinates: `own` on the axes, `rest` elsewhere."""
        found = dict(zipped(axes, own))
        return [found.get(i, other) for i, other in enumerate(rest)]

    def point(self, axes: Sequence[int], own: Sequence[Any]) -> list[Any]:
        return self.whole(axes, own, [arb.nan()] * len(self.box))

    def excused(self, x: Sides, jumps: list[Node]) -> bool:
        """Whether no point of the box is claimed: outside the condition, or all within the margin of a jump.

        Two points, each within the margin of every point of the box, on different sides of the condition of a `where`: on
        the segment between them, which is within the margin too, there is a jump.
        """
        if self.where is not None and truth(self.where, x) == {False}:
            return True
        for jump in jumps if self.margin else []:
            axes = sorted(variables(jump))
            least = [max(self.box[i][0], math.nextafter(x.box[i][1] - self.margin, INF)) for i in axes]
            most = [min(self.box[i][1], math.nextafter(x.box[i][0] + self.margin, -INF)) for i in axes]
            near = list(zipped(least, most))
            if all(a <= b for a, b in near) and len(axes) <= 6:
                claimed = self.where is None or truth(self.where, list(Sides(self.whole(axes, near, x.box)))) == {True}
                corners = product(*((a, a / 2 + b / 2, b) for a, b in near))
                found = [truth(jump, self.point(axes, balls(corner))) for corner in corners] if claimed else []
                if len({t for ts in found if len(ts) == 1 for t in ts} - {None}) > 1:
                    return True
        return False

    def contains(self, x: Sequence[float], jumps: list[Node]) -> bool:
        """Whether a point is claimed for certain."""
        near = self.margin * (1 + 1e-13)
        wide = Sides([(max(a, v - near), min(b, v + near)) for v, (a, b) in zipped(x, self.box)])
        clear = all(constant(jump, wide) for jump in jumps) if self.margin else True
        return clear and (self.where is None or truth(self.where, balls(x)) == {True})

    def claimed(self, x: Sides, jumps: list[Node]) -> bool:
        """Whether all of the box is claimed for certain."""
        wide = Sides([(a - 2 * self.margin, b + 2 * self.margin) for a, b in x.box])
        clear = all(constant(jump, wide) for jump in jumps) if self.margin else True
        return clear and (self.where is None or truth(self.where, list(x)) == {True})


def choices_of(node: Node, x: Sides) -> list[dict[int, int]]:
    """The branches that abs, min, max, where may take on a box, and whole numbers; none if undefined, or they are too many."""
    options: dict[int, list[int]] = {}
    for kink in (n for n in below(node) if n[0] in KINKS):
        if kink[0] in JUMPS:
            ends = truth(kink, x)
            few = None not in ends and max(ends) - min(ends) < BRANCHES
            options[id(kink)] = (
                ([*range(int(min(ends)), int(max(ends)) + 1)] if kink[0] == "floor" else [0]) if few else []
            )
            continue
        truths = truth(kink[2], x) if kink[0] == "where" else set()
        u = [value(a, x) for a in kink[1]] if kink[0] != "where" else []
        u, worse = [u[0], -u[0]] if kink[0] == "abs" else u, operator.gt if kink[0] == "min" else operator.lt
        left = [i for i, v in enumerate(u) if not any(worse(v, w) for w in u)]
        options[id(kink)] = left or ([] if None in truths else [0 if t else 1 for t in truths])
    many = math.prod(map(len, options.values())) > BRANCHES
    return [] if many else [dict(zipped(options, picks)) for picks in product(*options.values())]


def narrower(*ends: tuple[Any, Any]) -> tuple[Any, Any]:
    """(low, high) from several pairs, all of which hold; NaN if none is finite."""
    known = [pair for pair in ends if pair[0].is_finite() and pair[1].is_finite()] or [(arb.nan(), arb.nan())]
    return greatest([low for low, _ in known]), lowest([high for _, high in known])


def enclosed(node: Node, box: Box) -> tuple[Any, Any]:
    """(low, high) of a formula on a box, by ends and by a Taylor model; NaN if it may have no value there."""
    jets = Jets(Sides(box), sorted(variables(node)))
    return narrower(interval(node, jets.x), jets.ends(jets.of(node)))


def extent(parts: list[tuple[Node, Box]], close: float, tick: Tick) -> tuple[Any, Any]:
    """(low, high) of formulas, each on a box: the worst boxes are halved until both are close to values, or there are many."""
    ends = [arb(0), arb(0)]
    for sign in (-1, 1):
        heap, todo, best, serial = list[Any](), parts, -INF, count()
        for n in count():
            for node, box in todo:
                tick(box)
                pair, points = enclosed(node, box), (*zipped(*box), midpoint(box))
                top = pair[1] if sign > 0 else -pair[0]
                heapq.heappush(heap, (-up(top), next(serial), node, box, top))
                best = max(best, *(-up(-sign * value(node, balls(x))) for x in points))
            axes = sorted(variables(heap[0][2]))
            if not axes or -heap[0][0] - best <= close + 1e-12 * abs(best) or n == 4 * HALVINGS:
                break
            _, _, node, box, _ = heapq.heappop(heap)
            todo = [(node, half) for half in halved(box, widest(box, parts[0][1], axes))]
        ends[sign > 0] = sign * greatest([top for *_, top in heap])
    need(all(v.is_finite() for v in ends), "a function has no range that could be found", UNCHECKED)
    return ends[0], ends[1]


def outward(low: Any, high: Any) -> tuple[float, float]:
    """Floats around rationals."""
    a, b = float(Fraction(int(low.p), int(low.q))), float(Fraction(int(high.p), int(high.q)))
    a, b = a if exact(a) <= low else math.nextafter(a, -INF), b if exact(b) >= high else math.nextafter(b, INF)
    return a, b if b > a else math.nextafter(a, INF)


def range_of(node: Node, box: Box, close: float, tick: Tick) -> tuple[float, float]:
    """(low, high) of a formula; terms with variables of their own are looked at by themselves."""
    terms, ends = list(node[1]) if node[0] == "add" else [node], [arb(0), arb(0)]
    groups = [set[int](), *map(set, grouped(len(box), [variables(t) for t in terms]))]
    for group in groups:
        part = tree("add", *(t for t in terms if variables(t) & group or not variables(t) | group))
        ends = plus(ends, extent([(part, box)], close / len(groups), tick)) if part[1] else ends
    return outward(middle(ends[0].lower()), middle(ends[1].upper()))


def defined(f: list[Node], box: Box, tick: Tick, least: float = -INF, most: float = INF) -> None:
    """Prove that formulas lie between two numbers on all of the box; roots, asin and acos count where they have values."""
    for node in f:
        todo = [box]
        while todo:
            tick(todo[-1])
            some = todo.pop()
            low, high = enclosed(node, some)
            if not (low.is_finite() and high.is_finite() and low >= least and high <= most):
                need(variables(node) and len(todo) < DEEP, "the formula may have no value somewhere", UNCHECKED)
                todo += halved(some, widest(some, box, sorted(variables(node))))


def some_points(box: Box, n: int) -> list[list[float]]:
    return [[min(a + (b - a) * (k * math.sqrt(i + 2) % 1), b) for i, (a, b) in enumerate(box)] for k in range(n)]


def halved(box: Box, axis: int) -> list[Box]:
    (a, b), middle = box[axis], (box[axis][0] + box[axis][1]) / 2
    if not a < middle < b:
        raise Verdict(UNCHECKED, "not decided on a box that cannot be cut further", box)
    return [[*box[:axis], side, *box[axis + 1 :]] for side in ((a, middle), (middle, b))]


def grouped(D: int, links: list[set[int]]) -> list[list[int]]:
    """The coordinates 0 … D − 1 in groups, such that every link lies in one."""
    groups = [{i} for i in range(D)]
    for link in links:
        hit = [group for group in groups if group & link]
        groups = [group for group in groups if not group & link] + ([set[int]().union(*hit)] if hit else [])
    return [sorted(group) for group in groups]


def claim_exists(domain: Domain, axes: Sequence[int], jumps: list[Node], tick: Tick) -> None:
    """Find a point about which something is claimed: one that is inside the condition and not near a jump."""
    todo, cut = deque([[domain.box[i] for i in axes]]), domain.where is not None or (domain.margin and jumps)
    while todo and cut:
        box = todo.pop() if len(todo) % 2 else todo.popleft()  # deep and broad by turns
        whole = domain.whole(axes, box, domain.box)
        tick(whole)
        middles = [(a, a / 2 + b / 2, b) for a, b in box]
        points = product(*middles) if box == [domain.box[i] for i in axes] else [[m for _, m, _ in middles]]
        if any(domain.contains(domain.whole(axes, p, [a for a, _ in domain.box]), jumps) for p in points):
            return
        small = all(b - a <= 1e-12 * (abs(a) + abs(b)) for a, b in box)
        if not small and not domain.excused(Sides(whole), jumps):
            halves = halved(box, widest(box, [domain.box[i] for i in axes], range(len(axes))))
            todo += halves if len(todo) % 4 < 2 else halves[::-1]
    need(not cut, "no point was found that the claim is about", UNCHECKED)


def require_values(f: list[Node], domain: Domain) -> None:
    """Stop at a formula without a value at one of some points inside the domain; only where it has one can it be checked."""
    for n in range(64):
        shares = [(n + 0.5) * 0.6180339887 * math.sqrt(i + 1) % 1 for i in range(len(domain.box))]
        x = [min(max(a + (b - a) * t, a), b) for t, (a, b) in zipped(shares, domain.box)]
        if domain.where is None or truth(domain.where, balls(x)) == {True}:
            known = all(value(node, Sides([(v, v) for v in x])).is_finite() for node in f)
            need(known, "the formula has no value at a point of the domain", UNCHECKED, [(v, v) for v in x])


def rounded(number: float, width: int) -> float:
    """The nearest float32, or the number itself: sums and products in float64 of float32 numbers round to the same."""
    return number if width == 8 else float(struct.unpack("<f", struct.pack("<f", number))[0])


# ═══ 3. Constructed layers: T in rationals, its rounding, T − f box by box ══════════════════════════════════════════


@dataclass
class Sum:
    """affine + Σ coefficient·max(affine tuple) + Σ coefficient·node."""

    line: Affine
    kinks: list[tuple[Any, list[Affine]]] = field(default_factory=list)
    terms: Terms = field(default_factory=list)

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
            pair, sign = bent(node, len(self.line) - 1) if kind in KINKS else None, -1 if kind == "min" else 1
            for side, forms in zip((sign * scale, -sign * scale), pair or (), strict=False):
                self.kinks.append((side, forms))
            self.terms += [] if pair else [(scale, node)]


def affine(node: Node, D: int) -> Affine | None:
    found = Sum([arb(0)] * (D + 1))
    found.add(arb(1), node)
    return None if found.kinks or found.terms else found.line


def sums(P: list[Affine], Q: list[Affine]) -> list[Affine]:
    return [combined(p, 1, q) for p in P for q in Q]


def bent(node: Node, D: int) -> tuple[list[Affine], list[Affine]] | None:
    """Affine P, Q with abs, max or −min = max P − max Q, if the arguments u_i = max P_i − max Q_i are such differences.

    max(u, v) = max((P_u + Q_v) ∪ (P_v + Q_u)) − max(Q_u + Q_v), with all sums of a member of each.
    """
    kind, operands, _ = node
    P, Q = list[Affine](), [[arb(0)] * (D + 1)]
    for a in operands + operands if kind == "abs" else operands if kind not in ("where", *JUMPS) else ():
        found, sign = Sum([arb(0)] * (D + 1)), -1 if kind == "min" or (kind == "abs" and P) else 1
        found.add(arb(sign), a)
        sides = [[found.line], [[arb(0)] * (D + 1)]]
        for scale, forms in found.kinks:
            if not (scale > 0 or scale < 0) or max(map(len, sides)) * len(forms) > BRANCHES:
                return None
            sides[scale < 0] = sums(sides[scale < 0], [[abs(scale) * k for k in form] for form in forms])
        if found.terms or max(len(P) * len(sides[1]) + len(sides[0]) * len(Q), len(Q) * len(sides[1])) > FORMS:
            return None
        P, Q = sums(P, sides[1]) + sums(sides[0], Q), sums(Q, sides[1])
    return (P, Q) if P else None


def chain(forms: list[Affine], box: Box) -> tuple[list[Affine], Any] | None:
    """(L_1, …, L_n; δ): the maximum is L_1 + Σ max(0, L_(k+1) − L_k) up to δ, if all forms differ along one direction.

    L are those of the forms that the maximum has, by increasing slope: each meets the next one later than the last one.
    """
    gaps = [combined(form, -1, forms[0]) for form in forms]
    places = product(range(len(gaps)), range(1, len(box) + 1))
    t, i = max(places, key=lambda p: (float(abs(gaps[p[0]][p[1]]).mid()) * (box[p[1] - 1][1] - box[p[1] - 1][0]), *p))
    axis = [arb(0), *(k / gaps[t][i] for k in gaps[t][1:])]
    lines = [combined(combined(forms[0], g[i], axis), g[0], [arb(1)] + [arb(0)] * len(box)) for g in gaps]
    off = greatest([size(combined(a, -1, b), box) for a, b in zipped(forms, lines)])
    hull = list[int]()

    def meet(a: int, b: int) -> Any:
        return (gaps[a][0] - gaps[b][0]) / (gaps[b][i] - gaps[a][i])

    for k in sorted(range(len(gaps)), key=lambda k: middle(gaps[k][i])):  # slopes may differ far behind the 53rd bit
        while len(hull) > 1 and gaps[hull[-1]][i] <= gaps[k][i] and meet(hull[-2], k) <= meet(hull[-2], hull[-1]):
            hull.pop()
        hull.append(k)
    sure = all(gaps[a][i] < gaps[b][i] for a, b in pairwise(hull))
    sure = sure and all(meet(a, b) < meet(b, c) for a, b, c in zip(hull, hull[1:], hull[2:], strict=False))
    return ([lines[k] for k in hull], off) if sure and off < 1e-6 * size(gaps[t], box) else None


class Computed(NamedTuple):
    """An affine function A of x̂ as floating point computes it: off by at most u(R(|x̂|) + own·|A(x̂)|), u the unit roundoff."""

    A: Affine
    R: Affine
    own: int

    def moving(self, X: list[Any]) -> Any:
        """Σ|A_i| X_i."""
        return sum(map(operator.mul, map(abs, self.A[1:]), X), self.A[0] * 0)

    def error(self, X: list[Any], off: list[Any], size: Any, more: int = 0) -> Any:
        """How far it is off for |x̂| ≤ X, |A| ≤ size, in units of u, with the error u·off of x̂ and `more` roundings."""
        return at(self.R, X) + (self.own + more) * size + self.moving(off)

    def ball(self) -> "Computed":
        return Computed(balls(self.A), balls(self.R), self.own)


def combination(terms: list[tuple[Any, Any, Computed]], D: int) -> Computed:
    """Σ c·L, added in any order, over (c, error of c in units of u, L).

    Of N summands the last addition is off by u|Σ|, all others together by (N − 2)u Σ|summands|.
    """
    n, often, A, R = len(terms), 0, [ZERO] * (D + 1), [ZERO] * (D + 1)
    for c, error, L in terms:
        plain = not any(L.R) and not L.own and not any(L.A[1:]) and binary(L.A[0])
        often = L.own + (not plain and not (binary(c) and not error))
        A, R = combined(A, c, L.A), combined(R, abs(c), L.R)
        R = combined(R, error + (abs(c) * (often + n - 2) if n > 1 else 0), list(map(abs, L.A)))
    return Computed(A, R, 1 if n > 1 else often)


def projected(token: dict[int, Computed], W: Any, biases: list[Any], D: int) -> dict[int, Computed]:
    """token·W + biases, by column; columns that are 0 are left out, of tokens too."""
    one, found = Computed([fmpq(1)] + [ZERO] * D, [ZERO] * (D + 1), 0), dict[int, Computed]()
    for j in range(len(W[0])):
        terms = [(exact(W[m][j]), ZERO, L) for m, L in token.items() if W[m][j]]
        terms += [(exact(b[j]), ZERO, one) for b in biases if b[j]]
        if terms:
            found[j] = combination(terms, D)
    return found


def summation(sizes: list[Any], most: Any, u: Any) -> Any:
    """How far a computed sum of terms of these sizes can be off, added in any order; no terms add up to more than `most`.

    An addition is off by at most u times its result, and by no more than the smaller of its two numbers. With m terms of at least
    u·most, at most m − 1 additions have such terms on both sides; any other one costs no more than the smaller terms in it, which
    are then with a larger one; sums of smaller terms alone cost u times these, a part of `rise`, as products do, of `off`.
    """
    return (summed(v.min(u * most) for v in sizes) - u * most).max(arb(0))


@dataclass
class Head:
    """Σ_t softmax_t(scores)·values[output][token], affine in x; and how it is computed.

    columns: what a column of W^V makes of the tokens, what an error of it and what its size cost every output.
    steps: roundings of x̂, coordinate by coordinate.
    """

    scores: list[Affine]
    values: list[list[Affine]]
    computed: list[Computed]
    steps: list[int]
    columns: dict[int, tuple[list[Computed], list[Any], list[Any]]] = field(default_factory=dict)

    def in_balls(self) -> "Head":
        values = [list(map(balls, row)) for row in self.values]
        return replace(self, scores=list(map(balls, self.scores)), values=values)

    def as_maximum(self, box: Box) -> tuple[list[Any], list[Any]]:
        """(γ, residue) per output: values = γ·scores + a common affine function, up to the residue."""
        apart = [combined(s, -1, self.scores[0]) for s in self.scores]
        sides = [exact(q - p) for p, q in box]
        _, t, i = max((abs(s[i]) * r, t, i) for t, s in enumerate(apart) for i, r in enumerate(sides, 1))
        slopes = [(v[t][i] - v[0][i]) / apart[t][i] if apart[t][i] else ZERO for v in self.values]
        gaps = [[combined(combined(p, -1, v[0]), -g, s) for p, s in zipped(v, apart)]
                for v, g in zipped(self.values, slopes)]  # fmt: skip
        return slopes, [max(size(gap, box) for gap in row) for row in gaps]

    def rounding(self, c: list[Any], r: list[Any], u: Any, slopes: list[Any] | None = None) -> list[Any]:
        """What floating point may add to every output where |x̂ − c| ≤ r, to first order.

        If exponentials are off by factors 1 + η_t, |η_t| ≤ E_t, the average z = Σ w_t v_t moves by exactly
        Σ w_t η_t(v_t − z)/(1 + Σ w_t η_t): nothing where a weight is 0 or 1. x̂ itself is off by ≤ 2u|x̂|, exp by 4u, so
        E_t = e^y − 1 ≤ y + y² with y = d_t + u(a_t + 4), d_t the error of a score and a_t = max s − s_t, which is subtracted
        first; or y = u(3Σ|k_i x̂_i| + 11) where e^(k_i x_i) and e^b are multiplied. Normaliser and sum cost 3u|z| + 5u Σ w_t|v_t|
        and what their additions cost (`summation`), besides the errors of the values. On the box, with k̄ and z̄ the averages at c,

            w_t(x) ≤ W_t = w_t(c)·e^(g_t),  g_t = Σ_i |k_ti − k̄_i| r_i    (Jensen),    |v_t − z̄| ≤ dev_t,
            |z − z̄| ≤ Σ W dev, and by derivatives ≤ Σ_t W_t Σ_i |∂_i v_t| r_i + Σ W g dev + Σ W g·Σ W dev.

        With slopes γ (`as_maximum`): averages of scores off by d lie between max − W − 2d and max + d, whatever the box;
        weights off by factors count as scores off by their logarithms (at most 764u: e^−745 is the least number).
        """
        X, n = [abs(p) + q for p, q in zipped(c, r)], len(self.computed)
        s, P = [at(t.A, c) for t in self.computed], [t.moving(X) for t in self.computed]
        moved = list(map(operator.mul, X, self.steps))
        d = [u * t.error(X, moved, abs(v) + t.moving(r)) for t, v in zipped(self.computed, s)]
        top, far = greatest(s), 2 * greatest(d)
        e = [(v - top).exp() for v in s]
        w = [v / summed(e) for v in e]
        mean = [dot(w, k) for k in zipped(*(t.A[1:] for t in self.computed))]
        g = [at([arb(0), *map(abs, map(operator.sub, t.A[1:], mean))], r) for t in self.computed]
        W = [(v * grow.exp()).min(arb(1)) for v, grow in zipped(w, g)]
        a = [top - v + grow + greatest(g) + far for v, grow in zipped(s, g)]
        logs = [(p + u * (q + 4)).max(u * (3 * t + 11)) for p, q, t in zipped(d, a, P)]
        E = [y + y * y if y < 1 else y.exp() for y in logs]
        WE, Wg = list(map(operator.mul, W, E)), list(map(operator.mul, W, g))
        share = summed(WE)
        known = [abs(v) * (far + 1528 * u) for v in slopes or [arb(0)] * len(self.values)]
        smooth = slopes is None and n > 1
        if smooth and not share < 0.5:
            return [arb("inf")] * len(self.values)
        for column, gain, cost in self.columns.values():
            v, swing = [at(t.A, c) for t in column], [t.moving(r) for t in column]
            large = [abs(p) + q for p, q in zipped(v, swing)]
            more = 5 if smooth else n + 4 if n > 1 else 0
            off = [u * t.error(X, moved, p, more) for t, p in zipped(column, large)]
            here, error, normaliser = greatest(large), greatest(off), (n + 2) * u if n > 1 else arb(0)
            if smooth:
                z = dot(w, v)
                dev = [abs(p - z) + q for p, q in zipped(v, swing)]
                around = dot(W, dev)
                near = around.min(sum(map(operator.mul, W, swing), sum(map(operator.mul, Wg, dev), sum(Wg) * around)))
                here = here.min(abs(z) + near)
                weighted = summed((p + q) * t for p, q, t in zipped(W, WE, off))
                error = (sum(map(operator.mul, WE, dev), share * near) + weighted) / (1 - share)
                taken = [(p + q) / (1 - share) for p, q in zipped(W, WE)]
                sides = [[t * (sign * p + q).max(arb(0)) for t, p, q in zipped(taken, v, swing)] for sign in (1, -1)]
                sizes, most = list(map(operator.mul, taken, large)), greatest(map(summed, sides))
                if any(any(t.A[1:]) for t in column):  # where exponentials are multiplied, slopes are summed up apart
                    sizes = [p * q for t, p in zipped(column, taken) for q in (abs(t.A[0]), t.moving(X))]
                    most = summed(sizes)
                error += summation(sizes, most, u)
                normaliser = summation(taken, summed(taken), u) + 3 * u
            error += normaliser * here
            known = [k + error * p + here * q for k, p, q in zipped(known, gain, cost)]
        return known


class Layer:
    """T_o = lines[o] + Σ heads + Σ hinges, in rationals, affine in x; and what floating point may add to it.

    Tokens, keys, values and, where q or k is constant, scores are affine in x̂ = (x − shift)·scale (`Computed`). A token whose
    score is always 745 below another's is left out. ReLU units: relu(z) − relu(−z) = z; a unit of proved sign is linear or
    nothing; one that sees no head is a hinge. The linear ones and the read-out make one matrix P. The roundings of a sum
    (`additions`) count per unit of its summands: behind the heads they are added up along the way. `tiny`: underflow and the
    tokens left out, times a product of norms that bounds all numbers.
    `sure`: each unit but hinges keeps its sign by more than that, or is half of an identity, so slopes are those of its branch.
    """

    def __init__(self, c: Record, w: Record, places: list[int], box: Box, u: Any) -> None:
        self.c, self.w, self.u, self.floats, self.D, D = c, w, u, Floats(u), len(box), len(box)
        d, outs, n = c["features_in"], c["features_out"] * len(places), c["tokens"]
        self.shift, self.scale = ([exact(v) for row in w[name] for v in row] for name in ("shift", "scale"))
        need(all(self.scale), "a scale is 0")
        self.steps = [bool(a) + (not binary(b)) for a, b in zipped(self.shift, self.scale)]
        ends = [[(exact(v) - s) * q for v in side] for side, s, q in zipped(box, self.shift, self.scale)]
        self.sides, self.reach = [(min(e), max(e)) for e in ends], [max(map(abs, e)) for e in ends]
        self.moved = list(map(operator.mul, self.reach, self.steps))  # x̂ is off by u times that
        self.lines, self.hinges = [[ZERO] * (D + 1) for _ in range(outs)], list[tuple[list[Any], Affine]]()
        self.heads, self.fixed, self.sure = dict[Any, Head](), [ZERO] * outs, True
        self.norms(len(w.get("S", [])) + n, max(max(map(abs, side)) for side in box))
        tokens = []
        for j in range(n):
            raw = {i: Computed([fmpq(m == 1 + j * d + i) for m in range(D + 1)], [ZERO] * (D + 1), 0) for i in range(d)}
            tokens.append(projected(raw, w["W_E"], [w["b_E"], *([w["P"][j]] if "P" in w else [])], D))
        special = [projected({}, [row], [row], D) for row in w.get("S", [])]

        def project(token: dict[int, Computed], k: str, h: int) -> dict[int, Computed]:
            return projected(token, w[f"W_{k}"][h], [w[f"b_{k}"][h]] if f"b_{k}" in w else [], D)

        keys, values = ([[project(t, k, h) for t in tokens + special] for h in range(c["heads"])] for k in "KV")
        for index, place in enumerate(places):
            asking = special[place - c["output_tokens"]] if c["readout"] == "output" else tokens[place]
            seen = [self.attended(h, project(asking, "Q", h), keys[h]) for h in range(c["heads"])]
            pairs = [(list(scores.values()), [values[h][t] for t in scores]) for h, scores in enumerate(seen)]
            self.fed_forward(asking, pairs, index * c["features_out"])

    def norms(self, tokens: int, far: float) -> None:
        """`tiny`, and `rise`: 1 + 4Ku covers products of errors, K the number of roundings on any way through the layer.

        `lost`: what tokens left out may change slopes by. Together they weigh p ≤ n·e^−745, so an average over all tokens is
        A = (1 − p)B + pC, B over those kept, C over those left out: ∂A − ∂B = p(∂C − ∂B) + ∂p(C − B). If values are |v| ≤ V
        with slopes |∂v| ≤ U, and |∂s| ≤ K for scores, then |∂B|, |∂C| ≤ U + VK, |∂p| ≤ 2Kp: in all at most p(2U + 6VK).
        The norms bound slopes by x̂ like sizes, those of s = q·k twice; `many` is larger than n and 14.
        `bent`: the same for second derivatives. |B″|, |C″| ≤ 4UK + 8VK² and |p″| ≤ 5K²p, so A″ − B″ = p(C″ − B″) + 2p′(C′ − B′) +
        p″(C − B) is at most p(16UK + 34VK²), which is less than 8K times the number above.
        """

        def norm(rows: Any) -> float:
            deep = rows and isinstance(rows[0], (list, tuple))
            return max(map(norm, rows)) if deep else sum(map(abs, rows)) * UP

        sizes = {name: norm(rows) for name, rows in self.w.items()}
        weights = math.prod(1 + sizes[f"W_{k}"] + sizes.get(f"b_{k}", 0.0) for k in "QKVO12R")
        token = 1 + (1 + float(sum(self.reach, ZERO))) * sizes["W_E"]
        token += sum(sizes.get(k, 0.0) for k in ("b_E", "P", "S"))
        most, small = self.c["heads"] * token * token * token * weights, float(self.floats.smallest)
        need((most + far + sizes["shift"]) * (1 + sizes["scale"]) * small < 1, "numbers may overflow", UNCHECKED)
        many = self.c["heads"] * self.c["d_v"] + 4 * self.c["d_model"] + self.c["ffn_width"] + 2 * tokens + self.D
        many += self.c["d_k"] + 40
        self.tiny = exact(most) * exact(small) * many**3
        self.rise, self.lost = 1 + 4 * self.u * many, self.tiny * exact(1 + sizes["scale"])
        self.bent = self.lost * 16 * exact(most) * exact(1 + sizes["scale"])
        need(self.rise < fmpq(101, 100), "there are too many summands for the rounding analysis", UNCHECKED)

    def real(self, a: Affine) -> Affine:
        """An affine function of x̂ as one of x."""
        steps = list(map(operator.mul, a[1:], self.scale))
        return [a[0] - sum(map(operator.mul, steps, self.shift), ZERO), *steps]

    def attended(self, h: int, q: dict[int, Computed], keys: list[dict[int, Computed]]) -> dict[int, Computed]:
        """The scores q·k/√d_k of the tokens that head h attends to."""
        root = fmpq(math.isqrt(self.c["d_k"]))
        need(root**2 == self.c["d_k"], "√d_k is irrational", "GENERAL")
        pairs, ends = [[(q[i], k[i]) for i in q.keys() & k.keys()] for k in keys], list[tuple[Any, Any, Any]]()
        for row in pairs:
            low, high, off = ZERO, ZERO, ZERO
            for both in row:
                corners = [s * t for s, t in product(*(span(v.A, self.sides) for v in both))]
                large, more = (size(v.A, self.sides) for v in both)
                e, f = both[0].error(self.reach, self.moved, large), both[1].error(self.reach, self.moved, more)
                low, high = low + min(corners), high + max(corners)
                off += self.u * self.rise * ((len(row) + 5) * large * more + e * more + f * large + self.u * e * f)
            ends.append((low / root, high / root, off / root + self.tiny))
        best = max(low - off for low, _, off in ends)
        found = {}
        for t in (t for t, (_, high, off) in enumerate(ends) if not high + off - best <= -MASKED):
            ordered = [(b, a) if any(a.A[1:]) else (a, b) for a, b in pairs[t]]
            flat = not any(any(a.A[1:]) for a, _ in ordered)
            need(flat, f"scores of head {h} are not affine in x", "GENERAL")
            offs = [at(a.R, self.reach) + a.own * abs(a.A[0]) for a, _ in ordered]
            s = combination([(a.A[0], e, b) for e, (a, b) in zipped(offs, ordered)], self.D)
            sizes = [b.error(self.reach, self.moved, size(b.A, self.sides)) for _, b in ordered]
            s.R[0] += sum(self.u * e * f for e, f in zipped(offs, sizes))
            found[t] = Computed([k / root for k in s.A], [k / root for k in s.R], s.own + (not binary(root)))
        return found

    def fed_forward(self, asking: dict[int, Computed], seen: list[Any], first: int) -> None:
        """The outputs `first` … of one place; seen: (scores, values) of the tokens that every head attends to."""
        c, w, u, d_v = self.c, self.w, self.u, self.c["d_v"]
        n, outs, zeros = range(c["d_model"]), range(c["features_out"]), [ZERO] * (self.D + 1)
        own, b_O, read = asking if c["residual"] else {}, w.get("b_O", [0.0] * len(n)), matrix(w["W_R"])
        parts = [[self.written(v, d_v) * matrix(w["W_O"][h * d_v : (h + 1) * d_v]) for v in values]
                 for h, (_, values) in enumerate(seen)]  # fmt: skip
        heads = {h: matrices for h, matrices in enumerate(parts) if len(matrices) > 1}
        stream = sum((p[0] for p in parts if len(p) == 1), self.written(own, len(n)) + self.first(b_O))
        columns = {(h, i): w["W_O"][h * d_v + i] for h, (_, v) in enumerate(seen) for i in sorted(set().union(*v))}
        large = held = [abs(exact(b_O[m])) + (self.large(own[m]) if m in own else 0) for m in n]
        shaken = [own[m].moving(self.moved) if m in own else ZERO for m in n]  # how far x̂ may take it, in units of u
        for (h, i), row in columns.items():
            most = max(self.large(v[i]) for v in seen[h][1] if i in v)
            by = max(v[i].moving(self.moved) for v in seen[h][1] if i in v)
            large = [s + abs(exact(a)) * most if a else s for s, a in zipped(large, row)]
            shaken = [s + abs(exact(a)) * by if a and by else s for s, a in zipped(shaken, row)]
        worth, P = matrix(w["W_2"]) * read, read * fmpq(int(c["residual"]))
        heavy = absolute(matrix(w["W_2"])) * absolute(read)  # what cancels on the way is rounded all the same
        paths, constant = absolute(P), matrix([w["b_2"]]) * read + matrix([w["b_R"]])
        beside = absolute(matrix([w["b_2"]])) * absolute(read) + absolute(matrix([w["b_R"]]))
        hidden, biased = paths * ZERO, beside * ZERO  # roundings of hidden units, along their paths
        units = [(tuple(row[j] for row in w["W_1"]), w["b_1"][j]) for j in range(len(w["b_1"]))]
        twins, done, live = {unit: j for j, unit in enumerate(units)}, set[int](), list[tuple[int, int, bool]]()
        for j, (weights, bias) in enumerate(units):
            gain, unit = [worth[j, o] for o in outs], matrix([[v] for v in weights])
            weight = [heavy[j, o] for o in outs]
            if j in done or not any(weight):
                continue
            line = column(stream * unit + self.first([bias]), 0)
            averages = [[line], *([column(C * unit, 0) for C in t] for t in heads.values())]
            ends = [list(zipped(*(span(v, self.sides) for v in row))) for row in averages]
            low, high = sum((min(e[0]) for e in ends), ZERO), sum((max(e[1]) for e in ends), ZERO)
            twin = twins.get((tuple(-v for v in weights), -bias), j)
            paired = twin not in {j, *done} and all(worth[twin, o] == -v for o, v in zipped(outs, gain))
            done |= {j, twin} if paired else {j}
            weight = [max(weight[o], heavy[twin, o]) for o in outs] if paired else weight
            inputs = sum((abs(exact(v)) * (s + t) for v, s, t in zipped(weights, large, shaken)), abs(exact(bias)))
            self.sure &= paired or not any(weights) or bool(low > self.tiny or high < -self.tiny or low < 0 < high)
            if not paired and high <= (1 - self.rise) * inputs:
                continue  # 0, however it is computed
            ways, alike = absolute(unit) * matrix([weight]), matrix([weight]) * abs(exact(bias))
            often = fmpq((1 + paired) * additions(weights, bool(bias)))  # both of a pair may be off, each by itself
            live.append((j, twin if paired else j, bool(often)))
            paths, beside = paths + ways, beside + alike
            hidden, biased = hidden + ways * often, biased + alike * often
            if paired or low >= 0:
                P, constant = P + unit * matrix([gain]), constant + matrix([gain]) * exact(bias)
            elif high > 0:
                alone = not any(k for row in averages[1:] for v in row for k in v)
                need(alone, f"unit {j} of the feed-forward network may switch behind a head", "GENERAL")
                before, after = [ZERO] * first, [ZERO] * (len(self.lines) - first - len(outs))
                self.hinges.append((before + gain + after, self.real(line)))
        sums = [additions([row[m] for row in columns.values()], (m in own) + bool(b_O[m])) for m in n]
        added = [bool(w["b_2"][m]) + bool(large[m] and c["residual"]) for m in n]
        steps = max(self.written_by(live, m, added[m]) for m in n)
        steps += max(additions([row[o] for row in w["W_R"]], bool(w["b_R"][o])) for o in outs)
        costs = matrix([[u * ((sums[m] + steps) * paths[m, o] + hidden[m, o]) for o in outs] for m in n])
        for o in outs:
            line, off = column(stream * P, o), u * (steps * beside[0, o] + biased[0, o])
            off += sum(u * v.error(self.reach, self.moved, size(v.A, self.sides)) * paths[m, o] for m, v in own.items())
            self.lines[first + o] = self.real([line[0] + constant[0, o], *line[1:]])
            self.fixed[first + o] = off + sum(held[m] * costs[m, o] for m in n)
        for h, (scores, values) in enumerate(seen):
            empty = [[zeros] * len(scores)] * len(self.lines)
            new = Head([self.real(s.A) for s in scores], empty, [s.ball() for s in scores], self.steps)
            worn = (tuple((i, *v.A, *v.R, v.own) for i, v in sorted(token.items())) for token in values)
            head = self.heads.setdefault((h, *((*s.A, *s.R, s.own) for s in scores), *worn), new)
            for o in outs if len(scores) > 1 else []:
                head.values[first + o] = [self.real(column(C * P, o)) for C in parts[h]]
            for i in (i for g, i in columns if g == h):
                row, none = absolute(matrix([columns[h, i]])), [arb(0)] * len(self.lines)
                own_column = [v.get(i, Computed(zeros, zeros, 0)).ball() for v in values]
                _, gain, cost = head.columns.setdefault(i, (own_column, list(none), list(none)))
                for target, by in ((gain, row * paths), (cost, row * costs)):
                    target[first : first + len(outs)] = [arb(by[0, o]) for o in outs]

    def written_by(self, live: list[tuple[int, int, bool]], m: int, more: int) -> int:
        """Roundings of a sum in a column of W_2. Rounding, if there is any, can open both units of a pair: one summand more."""
        rows = [[v for v in (self.w["W_2"][j][m], self.w["W_2"][k][m]) if v] for j, k, _ in live]
        both = sum(j != k and rough and len(row) == 2 for (j, k, rough), row in zipped(live, rows))
        own = [min(row, key=lambda v: binary(exact(v))) for row in rows if row]  # no power of two, if there is one
        return additions(own, more) + both * (len(own) + more > 1)

    def rounding(self, box: Box, head: Head, slopes: list[Any] | None = None) -> list[Any]:
        """What the rounding of a head may add to every output on a box."""
        middles = [((arb(a) + arb(b)) / 2 - s) * q for (a, b), s, q in zipped(box, self.shift, self.scale)]
        halves = [(arb(b) - arb(a)) / 2 * abs(q) for (a, b), q in zipped(box, self.scale)]
        return [r * self.rise for r in head.rounding(middles, halves, arb(self.u), slopes)]

    def large(self, v: Computed) -> Any:
        return size(v.A, self.sides) + at(v.R, self.reach)

    def written(self, token: dict[int, Computed], width: int) -> Any:
        """The matrix [D + 1, width] of a token: (1, x̂)·matrix."""
        return matrix([[token[m].A[i] if m in token else ZERO for m in range(width)] for i in range(self.D + 1)])

    def first(self, row: Sequence[float]) -> Any:
        return matrix([row] + [[0.0] * len(row)] * self.D)


def matrix(rows: Any) -> Any:
    return fmpq_mat(len(rows), len(rows[0]), [exact(v) for row in rows for v in row])


def absolute(m: Any) -> Any:
    return fmpq_mat(m.nrows(), m.ncols(), [abs(v) for v in m.entries()])


def column(m: Any, j: int) -> Affine:
    return [m[i, j] for i in range(m.nrows())]


class Difference:
    """g_o = lines[o] + Σ heads + Σ coefficient·node over terms[o] + something between low[o] and high[o], all balls.

    Σ_k a_k max(u_k1, …, u_kn): equal kinks of T and f are merged. max(u) = mean(u) + λ·max(û), û = (u − mean(u))/λ: û does
    not change with scale, added affine functions and order, and relu(d), relu(−d), |d| have the same û = {d, −d}/λ. If
    |û_i − v̂_i| ≤ δ on the domain then |max û − max v̂| ≤ δ. A head whose values are its scores/β is below the maximum of n
    affine functions, by at most W((n − 1)/e)/β with Lambert's function W. It is read so where boxes would be too small for
    it (reading ≥ 1) or f has the same kink (reading 2; then `optional` tells whether it could be left smooth).
    """

    def __init__(self, layer: Layer, f: list[Node], box: Box, bound: float, reading: int) -> None:
        self.box, self.outs, self.optional, zeros = box, range(len(f)), False, [arb(0)] * (len(box) + 1)
        self.lines, self.heads = [balls(line) for line in layer.lines], list[Head]()
        self.low, self.high = [-arb(layer.tiny) for _ in f], [arb(layer.tiny) for _ in f]
        self.rounding = balls([layer.rise * r for r in layer.fixed])  # of all but the heads
        self.known: list[tuple[list[Any], list[Affine]]] = []  # (a_k per output, û_k)
        sums = [Sum(list(zeros)) for _ in f]
        for o, (s, node) in enumerate(zipped(sums, f)):
            s.add(arb(-1), node)
            self.lines[o] = combined(self.lines[o], 1, s.line)
            for scale, branches in s.kinks:
                self.add([scale if p == o else arb(0) for p in self.outs], branches)
        for scales, line in layer.hinges:
            self.add(balls(scales), [zeros, balls(line)])
        smooth = list[tuple[list[Any], Head, bool]]()  # heads read as maxima, factors, whether rounding is fine
        for head in layer.heads.values():
            if any(k > 0 for _, gain, cost in head.columns.values() for k in (*gain, *cost)):
                self.add_head(layer, head, bound, reading, smooth)
        self.fall_short(smooth)
        self.terms = [s.terms for s in sums]
        for scales, hats in self.known:
            reach = greatest([size(h, box) for h in hats])
            for o, s in enumerate(scales):
                if abs(s) * reach <= bound * 1e-9:
                    self.widen(o, abs(s) * reach)
                else:
                    self.terms[o].append((s, tree("max", *map(line_node, hats))))

    def widen(self, o: int, below: Any, above: Any = None) -> None:
        self.low[o], self.high[o] = self.low[o] - below, self.high[o] + (below if above is None else above)

    def normal(self, branches: list[Affine]) -> tuple[Affine, Any, list[Affine]]:
        """(mean, λ, û)."""
        mean = [summed(column) / len(branches) for column in zipped(*branches)]
        apart = [combined(b, -1, mean) for b in branches]
        scale = max((span([arb(0), *b[1:]], self.box)[1].mid() for b in apart), key=float)
        return mean, scale, [[k / scale for k in b] for b in apart] if scale > 0 else apart

    def match(self, hats: list[Affine]) -> tuple[int, Any] | None:
        """(index, δ) of an equal kink."""
        for index, known in ((i, hs) for i, (_, hs) in enumerate(self.known) if len(hs) == len(hats)):
            left, worst = list(known), arb(0)
            for hat in hats:
                place = min(range(len(left)), key=lambda i: float(size(combined(hat, -1, left[i]), self.box)))
                worst = worst.max(size(combined(hat, -1, left.pop(place)), self.box))
            if worst < 1e-6:
                return index, worst
        return None

    def add(self, scales: list[Any], branches: list[Affine]) -> None:
        """Add scales[o]·max(branches) to every output o; a branch that is always below another one does not count."""
        above = [[span(combined(c, -1, b), self.box)[0] for c in branches] for b in branches]
        branches = [b for b, row in zipped(branches, above) if not any(v > 0 for v in row)]
        if steps := chain(branches, self.box) if len(branches) > 2 else None:
            self.add(scales, steps[0][:1])
            for low, high in zip(steps[0], steps[0][1:], strict=False):
                self.add(scales, [[arb(0)] * len(low), combined(high, -1, low)])
            for o, s in enumerate(scales):
                self.widen(o, abs(s) * steps[1])
            return
        mean, scale, hats = self.normal(branches)
        if not scale > 0:  # they differ by constants only
            mean = [mean[0] + greatest([b[0] for b in hats]), *mean[1:]]
        self.lines = [combined(line, s, mean) for line, s in zipped(self.lines, scales)]
        scaled = [s * scale for s in scales]
        if found := self.match(hats) if scale > 0 else None:
            old, known = self.known[found[0]]
            self.known[found[0]] = combined(old, 1, scaled), known
            for o, s in enumerate(scaled):
                self.widen(o, abs(s) * found[1])
        elif scale > 0:
            self.known.append((scaled, hats))

    def fall_short(self, smooth: list[tuple[list[Any], Head, bool]]) -> None:
        """Widen by what smooth maxima are short of: each by W((n − 1)/e), all of them together by what ranks can be off.

        Lemma. If there is a head for every set S of n scores u_j, with a factor c_|S| (0 where there is none), then with
        λ_k = Σ_m C(k − 1, m − 1) c_m they are together off by at most Σ|λ_k|·R, R = ln n − Σ_m (−1)^(m−1) C(n, m) ln m.
        Proof. Let G_j be independent Gumbel variables. Softmax over S is the law of the index of the largest u_j + G_j in S,
        and c_m = Σ_k λ_k (−1)^(m−k) C(m−1, k−1): by the maximum–minimums identity, in the order of u + G, the heads make
        Σ_k λ_k E[u_J(k)], J(k) the index of the k-th smallest u + G, which lies within max G − min G of the k-th smallest u,
        and R is the expectation of that. A set of one is exact, so c_1 is free: all λ may be moved by the same number.
        Rounding: log-weights off by H move Σ w_j(u_j − max) by at most (e^(2H) − 1)W((n − 1)/e), which is at most the 2H that
        was charged (`Head.rounding`) for n ≤ 8, where W < 0.98, and 2H ≤ 0.04: that is seen to by `fine`.
        """
        sets = {frozenset(map(tuple, head.scores)): factors for factors, head, _ in smooth}
        n, sizes = len(frozenset[Any]().union(*sets)), [len(s) for s in sets]
        whole = 1 < n <= 8 and len(sets) == len(smooth) == sum(math.comb(n, m) for m in set(sizes))
        whole &= all(fine for _, _, fine in smooth)
        whole &= all(len({*map(tuple, head.scores)}) == len(head.scores) for _, head, _ in smooth)
        terms = [(-1) ** (m - 1) * math.comb(n, m) * arb(m).log() for m in range(1, n + 1)] if whole else []
        R, shorts = arb(max(n, 1)).log() - sum(terms), [arb(len(h.scores) - 1) / arb.const_e() for _, h, _ in smooth]
        for o in self.outs:
            parts = [(factors[o], short.lambertw()) for (factors, _, _), short in zipped(smooth, shorts)]
            ends = [summed(arb(max(sign * c, ZERO)) * short for c, short in parts) for sign in (1, -1)]
            by_size = {m: {c[o] for s, c in sets.items() if len(s) == m} for m in sizes}
            if whole and all(len(found) == 1 for found in by_size.values()):
                c = {m: next(iter(found)) for m, found in by_size.items()}
                ranks = [sum((math.comb(k - 1, m - 1) * v for m, v in c.items()), ZERO) for k in range(1, n + 1)]
                off = R * arb(min(sum((abs(v - t) for v in ranks), ZERO) for t in ranks))
                ends = [end.min(off) for end in ends]
            self.widen(o, *ends)

    def add_head(self, layer: Layer, head: Head, bound: float, reading: int, smooth: list[Any]) -> None:
        """Add a head to all outputs: affine, as a maximum (`smooth` is told), or as it is."""
        scores, (slopes, residues) = [balls(s) for s in head.scores], head.as_maximum(self.box)
        keys = [[float(k) for k in column] for column in list(zipped(*head.scores))[1:]]
        pieces = math.prod(max(1.0, (max(k) - min(k)) * (b - a) / 8) for k, (a, b) in zipped(keys, self.box))
        like = reading and all(r <= exact(bound) / 1000 for r in residues)
        if all(s[1:] == head.scores[0][1:] for s in head.scores):  # one token, or weights that do not depend on x
            self.rounding = combined(self.rounding, 1, layer.rounding(self.box, head))
            exps = [arb(s[0] - head.scores[0][0]).exp() for s in head.scores]
            for o, t in product(self.outs, range(len(exps)) if len(exps) > 1 else []):
                self.lines[o] = combined(self.lines[o], exps[t] / summed(exps), balls(head.values[o][t]))
        elif like and (pieces > SHARP or (reading == 2 and self.match(self.normal(scores)[2]) is not None)):
            self.optional |= pieces <= SHARP
            rounding = layer.rounding(self.box, head, balls(slopes))
            fine = all(r <= 0.04 * abs(arb(c)) for r, c in zipped(rounding, slopes) if c)
            smooth.append((slopes, head, fine))
            self.add(balls(slopes), scores)
            for o, (slope, residue) in enumerate(zipped(slopes, residues)):
                rest = combined(head.values[o][0], -slope, head.scores[0])
                self.lines[o] = combined(self.lines[o], 1, balls(rest))
                self.widen(o, residue)
            self.rounding = combined(self.rounding, 1, rounding)
        else:
            self.heads.append(head.in_balls())


def outspread(start: Any, rows: Sequence[list[Any]], join: Callable[[Any, Any], Any]) -> list[Any]:
    """start joined with one entry of every row, for all choices in the order of `product`."""
    found = [start]
    for row in rows:
        found = [join(w, t) for w in found for t in row]
    return found


def line_on(a: Affine, grid: list[list[Any]]) -> list[Any]:
    """An affine function on a grid, coordinate by coordinate."""
    found = [a[0]]
    for k, nodes in zipped(a[1:], grid):
        row = [] if k.is_zero() else [k * v for v in nodes]
        found = [w + t for w in found for t in row] if row else [w for w in found for _ in nodes]
    return found


def settled(node: Node, D: int) -> Node:
    """The same function, quicker to evaluate: constants are numbers, e^(a + b) = e^a·e^b where a and b share no variable."""
    if not variables(node):
        return num(value(node, []))
    kind, operands, extra = node
    if kind == "mul" and len(operands) == 2 and operands[0] == operands[1]:
        kind, operands, extra = "pow", operands[:1], fmpq(2)
    if kind == "exp":
        inner = Sum([arb(0)] * (D + 1))
        inner.add(arb(1), operands[0])
        parts = [(k, var(i)) for i, k in enumerate(inner.line[1:]) if not k.is_zero()] + inner.terms
        groups = [set(own) for own in grouped(D, [variables(n) for _, n in parts])]
        rows = [[(k, n) for k, n in parts if variables(n) <= own] for own in groups]
        if sum(map(bool, rows)) > 1 and not inner.kinks:
            sums = [tuple(tree("mul", num(k), settled(n, D)) for k, n in row) for row in rows if row]
            exps = [tree("exp", tree("add", *row)) for row in sums]
            return tree("mul", num(inner.line[0].exp()), *exps)
    return kind, tuple(settled(a, D) for a in operands), extra


def value_on(node: Node, axes: Sequence[int], grid: Any, choice: dict[int, int]) -> tuple[list[int], list[Any]]:
    """(the coordinates that a node depends on, its values on their grid): no part is evaluated twice for the same ones."""
    while node[0] == "where":
        node = node[1][choice[id(node)]]
    if node[0] == "var":
        return ([axes.index(node[2])], grid[axes.index(node[2])]) if node[2] in axes else ([], [arb.nan()])
    if not node[1]:
        return [], [value(node, ())]
    parts = [value_on(a, axes, grid, choice) for a in node[1]]
    own = sorted({n for have, _ in parts for n in have})
    columns = [widened(*part, own, grid) for part in parts]
    if node[0] in ("add", "mul"):
        return own, reduce(lambda u, v: list(map(getattr(operator, node[0]), u, v)), columns)
    return own, [applied(node, list(u), False, choice) for u in zipped(*columns)]


def widened(have: list[int], values: list[Any], want: Sequence[int], grid: list[list[Any]]) -> list[Any]:
    """Values on the grid of some coordinates as values on a grid of more."""
    steps = [math.prod(len(grid[m]) for m in have[have.index(n) + 1 :]) if n in have else 0 for n in want]
    rows = [[k * step for k in range(len(grid[n]))] for n, step in zipped(want, steps)]
    return values if have == want else [values[k] for k in outspread(0, rows, operator.add)]


@cache
def coefficients(p: int) -> Any:
    """[p + 1, p + 1]: from values at the p + 1 Chebyshev points of the first kind to the coefficients of T_0 … T_p."""
    n = p + 1
    cosines = [[arb.cos_pi_fmpq(fmpq((2 * i + 1) * j, 2 * n)) for i in range(n)] for j in range(n)]
    return arb_mat([[v * (2 if j else 1) / n for v in row] for j, row in enumerate(cosines)])


@cache
def bernstein(p: int) -> Any:
    """[p + 1, p + 1]: from the coefficients of T_0 … T_p to those of C(p, i)y^i(1 − y)^(p − i), y = (1 + x)/2.

    T_k = Σ_j (−1)^(k − j) C(2k, 2j) y^j(1 − y)^(k − j), and this times (y + 1 − y)^(p − k) has degree p.
    """
    C, some = math.comb, range(p + 1)
    sums = [[sum((-1) ** (k - j) * C(2 * k, 2 * j) * C(p - k, i - j) for j in range(min(i, k) + 1)) for k in some]
            for i in some]  # fmt: skip
    return arb_mat([[arb(fmpq(v, C(p, i))) for v in row] for i, row in enumerate(sums)])


def transformed(values: list[Any], matrices: list[Any]) -> list[Any]:
    """A tensor, the last index running fastest, with a matrix applied to every index."""
    for m in matrices:
        values = (m * arb_mat(m.ncols(), len(values) // m.ncols(), values)).transpose().entries()
    return values


def strides(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]


def places_of(strides: Sequence[int], ranges: Sequence[Iterable[int]]) -> list[int]:
    """Where the entries of a tensor are whose indices lie in these ranges."""
    return outspread(0, [[k * step for k in some] for some, step in zipped(ranges, strides)], operator.add)


@cache
def lines(sizes: tuple[int, ...], axis: int) -> tuple[list[list[int]], list[int]]:
    """Places of a tensor's entries, by their index along an axis; and where each entry is in that order."""
    ranges = [[[k] if i == axis else range(n) for i, n in enumerate(sizes)] for k in range(sizes[axis])]
    rows = [places_of(strides(sizes), some) for some in ranges]
    order = {place: n for n, place in enumerate(place for row in rows for place in row)}
    return rows, [order[n] for n in range(len(order))]


def halves_of(tensor: list[float], sizes: tuple[int, ...], axis: int) -> list[list[float]]:
    """The Bernstein coefficients on the two halves of a box, by means of neighbours (de Casteljau)."""
    places, back = lines(sizes, axis)
    rows = [[tensor[place] for place in row] for row in places] if tensor else []
    low, high = rows[:1], rows[-1:]
    while len(rows) > 1:
        rows = [[(a + b) / 2 for a, b in zipped(p, q)] for p, q in pairwise(rows)]
        low.append(rows[0])
        high.append(rows[-1])
    flat = [[v for row in side for v in row] for side in (low, high[::-1])]
    return [[side[n] for n in back] if side else [] for side in flat]


class Shape(NamedTuple):
    """p/q on a box: p within δ of the polynomial with Bernstein coefficients P, q within ε of that with Q. No Q: q = 1.

    Polynomials are means of their coefficients with the same positive weights b_k(x). So if all Q_k > ε, p/q is at most the
    largest M of the quotients (P_k + δ)/(Q_k ∓ ε), − where P_k + δ > 0: if M ≥ 0, Σ b_k(P_k + δ) ≤ M Σ b_k(Q_k − ε) ≤ Mq; if
    M < 0, Σ b_k(P_k + δ) ≤ M Σ b_k(Q_k + ε) ≤ Mq. At a corner one weight is 1: the value is that of a coefficient.
    Rounding: halving takes means of two neighbours, n times in degree n. A computed mean lies between the two, off by at
    most 2^−53 of the larger one, and means of numbers that are off by e are off by e. So CELLS halvings one after the other
    cost at most n·CELLS·2^−53 times the largest coefficient: δ and ε have room for that (`of`).
    """

    P: list[float]
    Q: list[float]
    sizes: tuple[int, ...]
    delta: float
    eps: float

    @classmethod
    def of(cls, tensors: Sequence[list[float]], sizes: tuple[int, ...], errors: Sequence[float]) -> "Shape | None":
        """With room for halvings; none if numbers are not finite."""
        most = [max(map(abs, row), default=0.0) for row in tensors]
        if not (math.isfinite(sum(map(sum, tensors)) + sum(errors)) and max(most) < 1e150):
            return None
        room = [(e + max(sizes) * CELLS * 2.0**-52 * m + 1e-300) * UP for e, m in zipped(errors, most)]
        return cls(tensors[0], tensors[1], sizes, *room)

    def quotients(self) -> list[float]:
        """(P_k + δ)/(Q_k ∓ ε), or nothing."""
        tops, eps = [a + self.delta for a in self.P] if min(self.Q, default=INF) > 2 * self.eps else [], self.eps
        pairs = zipped(tops, self.Q) if tops and self.Q else ()
        return [a / (b - eps if a > 0 else b + eps) for a, b in pairs] if self.Q else tops

    def top(self) -> float:
        """A bound from above."""
        found = max(self.quotients(), default=INF)
        return found + 1e-15 * abs(found)

    def minus(self) -> "Shape":
        return self._replace(P=[-a for a in self.P])

    def halves(self, axis: int) -> list["Shape"]:
        pairs = zipped(*(halves_of(t, self.sizes, axis) for t in (self.P, self.Q)))
        return [self._replace(P=a, Q=b) for a, b in pairs]

    def ceiling(self, goal: float, close: float) -> tuple[float, float]:
        """(a bound from above, a number that p/q rises to).

        The worst box is halved until the bound is at most `goal`, close to what is attained, or that of a corner.
        """
        steps, heap, serial = strides(self.sizes), list[tuple[float, int, int, Shape]](), count()
        corners = places_of(steps, [(0, n - 1) for n in self.sizes])

        def insert(shape: Shape) -> float:
            """Add a box with the axis to cut, −1 if the largest coefficient is at a corner; what is attained."""
            found = shape.quotients()
            rows = found or [-b for b in shape.Q]  # cut where Q is least
            most, axis, bent = max(rows), -1, -1.0
            place = rows.index(most)
            for i, (n, step) in enumerate(zipped(self.sizes, steps)):
                k = place // step % n
                if 0 < k < n - 1:  # a coefficient differs from the value nearby by so much, about
                    bend = k * (n - 1 - k) / (n - 1) * abs(rows[place - step] - 2 * most + rows[place + step])
                    axis, bent = (i, bend) if bend > bent else (axis, bent)
            heapq.heappush(heap, (-most if found else -INF, next(serial), axis, shape))
            low, eps = [shape.P[c] - self.delta for c in corners], self.eps if shape.Q else 0.0
            under = [shape.Q[c] for c in corners] if shape.Q else [1.0] * len(low)
            values = [a / (b + eps if a > 0 else b - eps) for a, b in zipped(low, under)] if found else []
            return max(values, default=-INF)

        seen = insert(self)
        for _ in range(CELLS):
            if heap[0][2] < 0 or -heap[0][0] <= max(goal, seen + close):
                break
            _, _, axis, worst = heapq.heappop(heap)
            seen = max(seen, *map(insert, worst.halves(axis)))
        return -heap[0][0] + 1e-15 * abs(heap[0][0]), seen - 1e-15 * abs(seen)


def climbed(size: Callable[[int], list[float]], start: int, enough: float) -> dict[int, list[float]]:
    """V for some of the ρ, by number: downhill from `start` to where the least degree makes the truncation small enough."""
    found, need, best = dict[int, list[float]](), dict[int, tuple[float, float]](), start
    while True:
        for n in (n for n in (best, best - 1, best + 1) if n not in found and 0 <= n < len(RHOS)):
            found[n], rho = size(n), RHOS[n]
            tail = max(found[n]) / max(enough, 1e-300) / (rho - 1)
            need[n] = max(math.log(max(tail, 1e-300)) / math.log(rho), 1.0), tail / rho  # degree; if it is 1, tail
            if tail == INF:
                break
        last, best = best, min(need, key=lambda n: (need[n], n))
        if last == best and (need[best][1] < INF or best == 0):
            return found
        best = max(best - 1, 0) if need[best][1] == INF else best


def phi_of(theta: float, eta: float = 0.0) -> float:
    """A number above (1 + η)/(cos θ − η); infinite if there is none."""
    gap = math.cos(theta * (1 + 1e-9)) - eta - 1e-9 if theta < 1.5 else 0.0
    return (1 + eta) / gap * (1 + 1e-9) if gap > 0.01 else INF


@dataclass
class Leaf:
    """A box, what is proved of g on it (low, high), what is attained there (seen), and the axis to cut."""

    box: Box
    effort: int
    axis: int
    low: list[float]
    high: list[float]
    seen: list[tuple[float, float]]  # g takes a value ≤ the first and one ≥ the second
    crude: bool = False  # a finer grid would not help
    shapes: list[Shape | None] = field(default_factory=list)  # of the outputs, less the level of the part
    alive: bool = True

    @classmethod
    def unknown(cls, box: Box, effort: int, axis: int, outs: int) -> "Leaf":
        return cls(box, effort, axis, [-INF] * outs, [INF] * outs, [(INF, -INF)] * outs)

    def excused(self) -> "Leaf":
        """Nothing is claimed there."""
        return replace(self, low=self.high, high=self.low)


def touched(head: Head) -> set[int]:
    """The coordinates that a head depends on."""
    rows = [combined(s, -1, head.scores[0]) for s in head.scores] + [v for row in head.values for v in row]
    return {i for row in rows for i, k in enumerate(row[1:]) if not k.is_zero()}


class Part:
    """g on a group of coordinates that neither T nor f mixes with others.

    On a box with half-widths r, g is interpolated at Π(p_i + 1) Chebyshev points. If |g| ≤ V_i with coordinate i on its
    ellipse (half-axes r_i(ρ ± 1/ρ)/2) and the others real, then ‖g − Ig‖ ≤ Σ_i Π_{j<i}Λ_j·4V_i ρ^(−p_i)/(ρ − 1), where
    Λ_j = 1 + (2/π)ln(p_j + 1); every summand of g may have a ρ of its own (`climbed`). The interpolant is bounded by Bernstein
    coefficients (`Shape`). V of f: complex balls. V of T: on the ellipse the scores of a head have imaginary parts within
    θ = Im x_i·(max k − min k)/2 of their middle; turned by it, Re e^(s_t) ≥ cos θ·|e^(s_t)|, so |Σ e^(s_t)| ≥ cos θ Σ|e^(s_t)|
    and Σ|w_t| ≤ 1/cos θ, while Σ w_t = 1: |Σ w_t v_t| ≤ |c| + max|v_t − c|/cos θ. In a sharp head only the tokens K with a weight
    on the box are turned so little: with Σ_{t∉K} |e^(s_t)| ≤ η Σ_{t∈K} |e^(s_t)|, and θ that of K, Σ|w_t| ≤ (1 + η)/(cos θ − η).

    A single head is cleared of its denominator, whose zeros keep ellipses small: for any number m and affine ℓ, g = m + G/W,

        W = Σ e^(s_t − ℓ),    G = Σ (v_t + L + F − m)e^(s_t − ℓ),    L the affine part of g, F its terms from f.

    These have no poles but those of F. With a_t the value of s_t − ℓ at the centre and κ_t its slopes, |e^(s_t − ℓ)| is at most
    e^(a_t + Σ_j |κ_tj| r_j) on the ellipse, r_i there its long half-axis. With S the sum of these, |W| ≤ S and
    |G| ≤ S·(max|v_t − c| + |c + L − m| + |F|). G and W are interpolated, and their quotient is bounded. ℓ is about the tangent of
    ln Σ e^(s_t), so W is about 1 or more, and m is about g, so an error of W costs little; no proof depends on that.

    A term of f that is not proved analytic (√ at 0) is enclosed by its range, and the box is cut where that helps most.
    Kinks: at every x, g is one of its branches, so each is bounded on the box.
    """

    order = 1  # of V in Σ|w_t|

    def __init__(self, g: "AnyDifference", axes: Sequence[int], first: bool, domain: Domain, share: float) -> None:
        def local(a: Affine) -> Affine:
            return [a[0], *(a[i + 1] for i in axes)]

        def mine(touches: set[int]) -> bool:
            return bool(touches & set(axes)) or (first and not touches)

        self.axes, self.domain, self.share, self.outs, self.goal = axes, domain, share, range(len(g.lines)), -INF
        self.box = [domain.box[i] for i in axes]
        self.lines = [local(line) if first else [arb(0), *local(line)[1:]] for line in g.lines]
        self.terms = [[(k, settled(n, len(domain.box))) for k, n in row if mine(variables(n))] for row in g.terms]
        self.jumps = jumps_of([node for row in self.terms for _, node in row])
        self.starts = dict[Any, int]()  # the number of the ρ that was best for a summand
        self.strips = dict[tuple[float, ...], list[list[float]]]()  # spread of keys → |v_t − c|, its growth outside
        self.sharp = list[tuple[tuple[float, ...], list[Affine], list[list[float]]]]()  # spread, scores, as above
        self.heads = [head for head in g.heads if mine(touched(head))]
        self.averages = [(list(map(local, h.scores)), [list(map(local, row)) for row in h.values]) for h in self.heads]
        self.cleared, every = len(self.averages) == self.order == 1, range(len(axes))
        self.owns = list[tuple[int, ...]]()  # coordinates of its weights
        for scores, _ in self.averages:
            moving = [i for i in every if any(not (s[i + 1] - scores[0][i + 1]).is_zero() for s in scores)]
            self.owns.append(tuple(every if self.cleared else moving or [0]))
        self.rest, self.level = list(self.lines), [arb(0) for _ in self.lines]
        for scores, values in self.averages:
            spread = tuple(up(greatest(k) - lowest(k)) for k in list(zipped(*scores))[1:])
            reach = [[0.0] * (len(axes) + 1) for _ in self.outs]
            if max((k * (b - a) for k, (a, b) in zipped(spread, self.box)), default=0.0) > TURNS:
                self.sharp.append((spread, scores, reach))
            else:
                reach = self.strips.setdefault(spread, reach)
            for o, row in enumerate(values):
                middle = [(greatest(c) + lowest(c)) / 2 for c in zipped(*row)]
                self.rest[o], apart = combined(self.rest[o], 1, middle), [combined(v, -1, middle) for v in row]
                sizes = [[size(a, self.box), *map(abs, a[1:])] for a in apart]
                for k, own in self.reaches(o, [up(greatest(s)) for s in zipped(*sizes)], spread):
                    reach[k] = plus(reach[k], own)
            self.reach = reach
        if self.cleared:
            here = [v.mid() for v in self.at(centre_of(self.box))]
            self.level = [v if v.is_finite() else arb(0) for v in here]
            self.rest = [[line[0] - m, *line[1:]] for line, m in zipped(self.rest, self.level)]

    def reaches(self, o: int, own: list[float], spread: tuple[float, ...]) -> Iterator[tuple[int, list[float]]]:
        """What a head's values for output o make of |v_t − c|, per output of g."""
        yield o, own

    def rounding(self, layer: Layer, tick: Tick) -> list[float]:
        """What rounding may add to every output: boxes are halved, the worst first, while that brings something."""
        spreads, serial, before = [*self.strips, *(spread for spread, _, _ in self.sharp)], count(), INF
        widest = [max(k, default=0.0) for k in zipped(*spreads)]

        def bounded(box: Box) -> tuple[float, int, Box, list[float]]:
            whole = self.domain.whole(self.axes, box, self.domain.box)
            tick(whole)
            rows = [layer.rounding(whole, head) for head in self.heads]
            found = [up(summed(column)) for column in zipped(*rows)]
            return -max(found), next(serial), box, found

        heap = [bounded(self.box)] if self.heads else [(-0.0, 0, self.box, [0.0 for _ in self.outs])]
        for n in range(HALVINGS):
            worst, _, box, _ = heap[0]
            stuck = n >= 16 and n & (n - 1) == 0 and 0.98 * before < -worst < INF
            if -worst <= 0.002 * self.share or stuck:
                break
            before = -worst if n & (n - 1) == 0 else before
            scaled = [(b - a) * k for (a, b), k in zipped(box, widest)]
            halves = halved(box, scaled.index(max(scaled)))
            heapq.heapreplace(heap, bounded(halves[0]))
            heapq.heappush(heap, bounded(halves[1]))
        return [max(found[o] for *_, found in heap) for o in self.outs]

    def turning(self, box: Box) -> list[tuple[list[float], list[list[float]], list[list[tuple[float, float]]]]]:
        """For each sharp head, relative to its largest score at the centre: scores there, and keys, in size and in bounds."""
        centre, found = centre_of(box), []
        for _, scores, _ in self.sharp:
            here = [at(s, centre) for s in scores]
            top = max(range(len(here)), key=lambda t: float(here[t]))
            keys = [[k - r for k, r in zipped(s[1:], scores[top][1:])] for s in scores]
            sizes = [[up(abs(k)) for k in row] for row in keys]
            found.append(([up(s - here[top]) for s in here], sizes, [[(-up(-k), up(k)) for k in row] for row in keys]))
        return found

    def sizes_of_heads(self, i: int, halves: list[float], turning: list[Any]) -> Iterator[Callable[[int], list[float]]]:
        """V_i per output, given the number of ρ, of each head, or of the heads whose keys have the same spread."""

        def sized(n: int, reach: list[list[float]], phi: Callable[[float, float], float]) -> list[float]:
            across, beyond = (halves[i] * (RHOS[n] + s / RHOS[n]) / 2 * (1 + 1e-9) for s in (-1, 1))
            sizes, factor = [r[0] + r[i + 1] * beyond for r in reach], phi(across, beyond) ** self.order
            return [v and v * factor for v in sizes]  # 0 if all tokens have the same value

        def turned(across: float, beyond: float, k: float) -> float:
            return phi_of(across * k / 2)

        def faded(across: float, beyond: float, gaps: list[float], sizes: Any, keys: Any) -> float:
            real, found = [*halves[:i], beyond, *halves[i + 1 :]], list[float]()
            tops = [(g + sum(map(operator.mul, row, real))) for g, row in zipped(gaps, sizes)]
            tops = [t + 1e-9 * (1 + abs(t)) for t in tops]  # log of |e^(s_t)|/Σ_K |e^(s)|, at most
            for least in FADED:
                kept = [t for t, top in enumerate(tops) if top > least or gaps[t] >= 0]
                eta = sum((math.exp(top) * (1 + 1e-9) for top in tops if top <= least), 0.0)
                lows, highs = zipped(*(keys[t][i] for t in kept))
                found.append(phi_of(across * (max(highs) - min(lows)) / 2, eta))
            return min(found)

        for spread, reach in self.strips.items():
            yield partial(sized, reach=reach, phi=partial(turned, k=spread[i]))
        for (_, _, reach), (gaps, sizes, keys) in zipped(self.sharp, turning):
            yield partial(sized, reach=reach, phi=partial(faded, gaps=gaps, sizes=sizes, keys=keys))

    def loose(self, terms: list[tuple[Any, Node]], box: Box) -> Any:
        """The sum of terms of f that are not proved analytic on a box: their ranges, from balls or from ends."""
        x, total = Sides(self.domain.whole(self.axes, box, self.domain.box)), arb(0)
        for scale, node in terms:
            ball = value(node, x)
            low, high = interval(node, x)
            ends = low.union(high)
            total += scale * (ends if ends.is_finite() and not (ball.is_finite() and ball.rad() < ends.rad()) else ball)
        return total

    def layer_at(self, grid: list[list[Any]], tilt: Affine | None = None) -> tuple[list[list[Any]], list[Any]]:
        """T on a grid, per output; and W of the last head, with scores less `tilt`.

        Weights that depend on some coordinates alone are averaged on their grid: Σ_t w_t v_t = Σ_t w_t(v_t0 + those slopes) +
        Σ_j (Σ_t w_t v_tj) x_j over the others. Heads with the same ones are added up there.
        """
        D, last, sums = len(grid), list[Any](), dict[tuple[tuple[int, ...], int], list[Any]]()
        for mean, own, values, total in self.means(grid, self.owns, tilt):
            for j in (0, *(n + 1 for n in range(D) if n not in own)):
                rows = [[[v[j], *(v[i + 1] if j == 0 else arb(0) for i in own)] for v in row] for row in values]
                if j == 0 or not all(v[0].is_zero() for row in rows for v in row):
                    have, more = sums.get((own, j)), [mean(row) for row in rows]
                    more = [plus(a, b) for a, b in zipped(have, more)] if have else more
                    sums[own, j] = more
            last = total
        found = [line_on(line, grid) for line in self.lines]
        for (own, j), rows in sums.items():
            rows = [widened(list(own), row, range(D), grid) for row in rows]
            along = widened([j - 1], grid[j - 1], range(D), grid) if j else []
            rows = [list(map(operator.mul, row, along)) for row in rows] if j else rows
            found = [plus(a, b) for a, b in zipped(found, rows)]
        return found, last

    def means(
        self, whole: list[list[Any]], owns: Iterable[tuple[int, ...]], tilt: Affine | None = None
    ) -> Iterator[tuple[Callable[[Any], list[Any]], tuple[int, ...], Any, list[Any]]]:
        """(averages of affine functions on the grid of own coordinates, these, values, Σ e^(score)) of each head.

        e^(k·x) is a product over the axes, so a sum over tokens is a product of matrices, Σ_t A_t(x_1)B_t(x_2, …). With values
        it is Σ_t (v_t0 + v_t1 x_1)A_t·B_t + A_t·(v_t2 x_2 + …)B_t. What all scores have in common cancels in averages.
        """
        for (given, values), own in zip(self.averages, owns, strict=False):
            grid, scores = [whole[i] for i in own], given if tilt is None else [combined(s, -1, tilt) for s in given]
            scores = [[s[0], *(s[i + 1] for i in own)] for s in scores]
            powers = [[[(k * v).exp() for v in nodes] for k, nodes in zipped(s[1:], grid)] for s in scores]
            first = [[s[0].exp() * e for e in axes[0]] for s, axes in zipped(scores, powers)]
            others = [outspread(arb(1), axes[1:], operator.mul) for axes in powers]
            tables = first, others, list((arb_mat(first).transpose() * arb_mat(others)).entries())

            def mean(row: list[Affine], grid: Any = grid, tables: Any = tables) -> list[Any]:
                first, others, total = tables
                left = [list(map(operator.mul, line_on(v[:2], grid[:1]), e)) for v, e in zipped(row, first)]
                more = [t for t, v in enumerate(row) if not all(k.is_zero() for k in v[2:])]
                along = [list(map(operator.mul, line_on([arb(0), *row[t][2:]], grid[1:]), others[t])) for t in more]
                tops = arb_mat(left + [first[t] for t in more]).transpose() * arb_mat(others + along)
                return list(map(operator.truediv, tops.entries(), total))

            yield mean, own, values, tables[2]

    def at(self, x: Sequence[Any]) -> list[Any]:
        """g at a point of these coordinates."""
        whole, layer = self.domain.point(self.axes, x), self.layer_at([[v] for v in x])[0]
        rest = [summed(s * value(n, whole) for s, n in row) for row in self.terms]
        return [t[0] + r for t, r in zipped(layer, rest)]

    def sizes(self, node: Node, choice: dict[int, int], x: Sides, i: int, n: int = 0) -> float:
        """V_i of a term for the n-th ρ, with coordinate i in the rectangle around its ellipse."""
        z, (a, b), rho = list(x), x.box[self.axes[i]], RHOS[n]
        real, across = ((arb(b) - arb(a)) / 4 * (arb(rho) + s / arb(rho)) * arb(0, 1) for s in (1, -1))
        z[self.axes[i]] = acb((arb(a) + arb(b)) / 2 + real, across)
        return up(value(node, z, choice).abs_upper())

    def degrees(self, curves: list[Any], enough: float) -> tuple[list[int], list[list[float]], int | None]:
        """(p_i, the error of interpolation along each axis per output, the axis to cut if the error or the grid is too large).

        curves[output][axis]: V by number of ρ, of each summand.
        """
        tails, found, ends = list[list[float]](), list[int](), UP
        for axis in zipped(*curves):
            for p in DEGREES:
                falls = [4 * rho**-p / (rho - 1) * ends for rho in RHOS]
                rows = [[min([v * falls[n] for n, v in curve.items()]) for curve in output] for output in axis]
                least = [sum(row, 0.0) for row in rows]
                if all(tail <= enough for tail in least):
                    break
            tails, found, ends = [*tails, least], [*found, p], ends * (1 + 2 / math.pi * math.log(p + 1)) * UP
        missed = [not all(tail <= enough for tail in least) for least in tails]  # NaN is a miss
        if not any(missed) and math.prod(p + 1 for p in found) <= NODES[min(len(found), 5)]:
            return found, tails, None
        return found, tails, max(range(len(found)), key=lambda i: (missed[i], found[i], max(tails[i])))

    def enclose(self, box: Box, effort: int) -> Leaf:
        """What can be proved of g on a box."""
        D, outs, x = len(box), self.outs, Sides(self.domain.whole(self.axes, box, self.domain.box))
        widths = [(b - a) / (q - p) for (a, b), (p, q) in zipped(box, self.box)]
        leaf = Leaf.unknown(box, effort, widths.index(max(widths)), len(outs))
        if self.domain.excused(x, self.jumps):
            return leaf.excused()
        halves, enough = [(arb(b) - arb(a)) / 2 for a, b in box], EFFORTS[effort] * self.share / D
        smooth: list[list[tuple[Any, Node, list[dict[int, int]]]]] = [[] for _ in outs]
        rough: list[list[tuple[Any, Node]]] = [[] for _ in outs]
        for o, (scale, node) in [(p, term) for p in outs for term in self.terms[p]]:
            choices = choices_of(node, x)
            few = 0 < len(choices) * math.prod(len(c) for _, _, c in smooth[o]) <= BRANCHES
            if few and all(self.sizes(node, c, x, i) < INF for c in choices for i in range(D)):
                smooth[o].append((scale, node, choices))
            else:
                rough[o].append((scale, node))  # not proved analytic
        loose = [self.loose(row, box) for row in rough]
        if any(rough):
            leaf.axis = self.across(rough, box, widths)
            if not max(up(ball.rad()) for ball in loose) <= self.share:
                return leaf
        curves, tilt = self.curves(x, [up(h) for h in halves], smooth, enough)
        degrees, tails, steep = self.degrees(curves, enough)
        if steep is not None:
            leaf.axis = steep
            return leaf
        grid = [[m + h * arb.cos_pi_fmpq(fmpq(2 * k + 1, 2 * p + 2)) for k in range(p + 1)]
                for m, h, p in zipped(centre_of(box), halves, degrees)]  # fmt: skip
        layers, weights = self.layer_at(grid, tilt)
        off = sum(least[-1] for least in tails) * UP / max(self.share, 1e-100) if self.cleared else 0.0
        for o, layer in enumerate(layers):
            columns = [[[s * v for v in widened(*value_on(node, self.axes, grid, c), range(D), grid)] for c in choices]
                       for s, node, choices in smooth[o]]  # fmt: skip
            tail, low, high, m = sum(least[o] for least in tails) * UP, INF, -INF, self.level[o]
            goals = self.goal - up(-loose[o] - m), self.goal - up(loose[o] + m)
            for branch in product(*columns):
                values = [sum(v) for v in zipped(layer, *branch)]
                if self.cleared:
                    values = [(v - m) * w for v, w in zipped(values, weights)]
                shape = self.shape((values, weights if self.cleared else []), degrees, effort, (tail, off))
                found = self.extremes(shape, effort, goals)
                leaf.seen[o] = up(m + found[2]), -up(-m - found[3])
                low, high = min(low, found[0]), max(high, found[1])
            leaf.high[o], leaf.low[o] = up(loose[o] + m + high), -up(-loose[o] - m - low)
            crude = math.prod(len(c) for _, _, c in smooth[o]) > 1 or not loose[o].is_zero()
            leaf.crude, leaf.shapes = leaf.crude or crude, [*leaf.shapes, None if crude else shape]
        if leaf.crude:
            leaf.seen = [(up(v), -up(-v)) for v in self.at(centre_of(box))]
        leaf.seen = leaf.seen if self.domain.claimed(x, self.jumps) else [(INF, -INF) for _ in outs]
        return leaf

    def curves(self, x: Sides, halves: list[float], smooth: Any, enough: float) -> tuple[list[Any], Affine | None]:
        """V by number of ρ of each summand, per output and axis; cleared: of G, then of W, and the tilt ℓ of the scores."""
        axes, box = range(len(halves)), [x.box[i] for i in self.axes]

        def of_term(n: int, i: int, scale: Any, node: Node, choices: Any) -> list[float]:
            return [up(abs(scale)) * max(self.sizes(node, c, x, i, n) for c in choices)]

        def followed(key: Any, size: Callable[[int], list[float]]) -> list[dict[int, float]]:
            curve = climbed(size, self.starts.get(key, len(RHOS) // 2), enough)
            self.starts[key] = sorted(curve)[len(curve) // 2]
            return [{n: row[k] for n, row in curve.items()} for k in range(len(next(iter(curve.values()))))]

        if not self.cleared:
            turning, found = self.turning(box), list[list[list[dict[int, float]]]]()
            for i in axes:
                heads = [followed((i, k), size) for k, size in enumerate(self.sizes_of_heads(i, halves, turning))]
                terms = [[followed((i, o, k), partial(of_term, i=i, scale=s, node=node, choices=choices))[0]
                          for k, (s, node, choices) in enumerate(smooth[o])] for o in self.outs]  # fmt: skip
                found.append([[*(head[o] for head in heads), *terms[o]] for o in self.outs])
            return [list(output) for output in zipped(*found)], None
        scores, centre = self.averages[0][0], centre_of(box)
        here = [float(at(s, centre)) for s in scores]
        weights = [math.exp(s - max(here)) for s in here]
        means = [sum(w * float(s[i + 1]) for w, s in zipped(weights, scores)) / sum(weights) for i in axes]
        tilt = [arb(max(here) + math.log(sum(weights))) - at([arb(0), *balls(means)], centre), *balls(means)]
        tilted = [combined(s, -1, tilt) for s in scores]
        logs, keys = [up(at(s, centre)) for s in tilted], [[up(abs(k)) for k in s[1:]] for s in tilted]
        lines = [[up(abs(v)) for v in (at(line, centre), *line[1:])] for line in self.rest]

        def of_all(n: int, i: int) -> list[float]:
            far = halves[i] * (RHOS[n] + 1 / RHOS[n]) / 2 * (1 + 1e-9)
            sides = [*halves[:i], far, *halves[i + 1 :]]
            tops = [log + sum(map(operator.mul, row, sides)) for log, row in zipped(logs, keys)]
            S = sum(math.exp(t + 1e-9 * (1 + abs(t))) for t in tops) * (1 + 1e-9) if max(tops) < 600 else INF
            pairs = zipped(self.reach, lines, smooth) if S < INF else []
            sizes = [r[0] + r[i + 1] * far + at(line, sides) + sum(of_term(n, i, *term)[0] for term in terms)
                     for r, line, terms in pairs]  # fmt: skip
            return [*(v * S * (1 + 1e-9) for v in sizes or [INF for _ in self.outs]), S * max(self.share, 1e-100)]

        rows = [followed(i, partial(of_all, i=i)) for i in axes]
        return [[[curve] for curve in output] for output in zipped(*rows)], tilt

    def across(self, rough: list[list[tuple[Any, Node]]], box: Box, widths: list[float]) -> int:
        """The axis whose halves, then eighths, let most terms become analytic; then the one whose halves have smaller ranges."""

        def analytic(node: Node, half: Box) -> bool:
            x = Sides(self.domain.whole(self.axes, half, self.domain.box))
            choices = choices_of(node, x)
            every = product(range(len(half)), choices)
            return 0 < len(choices) <= BRANCHES and all(self.sizes(node, c, x, i) < INF for i, c in every)

        def still(i: int, times: int) -> int:
            parts = [box]
            for _ in range(times):
                parts = [half for part in parts for half in halved(part, i)]
            return sum(not analytic(node, part) for part in parts for row in rough for _, node in row)

        def left(i: int) -> tuple[float, float]:
            return max(up(self.loose(row, half).rad()) for half in halved(box, i) for row in rough), -widths[i]

        able = [i for i, (a, b) in enumerate(box) if b - a > 64 * math.ulp(max(-a, b))] or [widths.index(max(widths))]
        for times in (1, 3):
            found = [still(i, times) for i in able] if len(able) > 1 else [0]
            able = [i for i, n in zipped(able, found) if n == min(found)]
        return min(able, key=left) if len(able) > 1 else able[0]

    def shape(self, rows: Sequence[list[Any]], degrees: list[int], effort: int, off: Sequence[float]) -> Shape | None:
        """p/q on a box, within errors of the interpolants with these values at Π(p_i + 1) points; no q: p.

        Coefficients of high degrees that add up to little are dropped.
        """
        sizes, little, kept = tuple(p + 1 for p in degrees), EFFORTS[effort] / 4 / len(degrees), list[int]()
        tensors = [transformed(row, [coefficients(p) for p in degrees]) if row else [] for row in rows]
        floats = [list(map(float, row)) for row in tensors]
        errors = [e + up(summed(row).rad()) for e, row in zipped(off, tensors)]
        if not math.isfinite(sum(map(sum, floats)) + sum(errors)):
            return None
        for i, p in enumerate(degrees):
            rests, fewer = list[list[float]](), p
            for row, least in zipped(floats, (little * self.share, little)):
                sums = [sum([abs(row[n]) for n in places]) for places in lines(sizes, i)[0]] if row else [0.0] * (p + 1)
                rests.append(list(accumulate(reversed(sums[1:]), initial=0.0)))  # of the highest degree, the two …
                fewer = min(fewer, sum(size <= least for size in rests[-1]) - 1)
            errors, kept = [e + rest[fewer] * UP for e, rest in zipped(errors, rests)], [*kept, p - fewer]
        places, found = places_of(strides(sizes), [range(p + 1) for p in kept]), list[list[float]]()
        for n, row in enumerate(tensors):
            balls = transformed([row[k] for k in places], [bernstein(p) for p in kept]) if row else []
            found.append(list(map(float, balls)))
            errors[n] += up(summed(balls).rad()) + 1e-15 * max(map(abs, found[-1]), default=0.0)
        return Shape.of(found, tuple(p + 1 for p in kept), errors)

    def extremes(self, shape: Shape | None, effort: int, goals: Sequence[float] = (-INF, -INF)) -> tuple[float, ...]:
        """Bounds on p/q, then: a number it falls to, a number it rises to."""
        if shape is None:
            return -INF, INF, INF, -INF
        close = EFFORTS[effort] * self.share / 2
        (high, rises), (low, falls) = shape.ceiling(goals[1], close), shape.minus().ceiling(goals[0], close)
        return -low, high, -falls, rises


def parts_of(g: "AnyDifference", domain: Domain, share: float, axis: int | None = None) -> list[Any]:
    """The parts of a difference, or those with an axis; `share` is how far all of them together may be off."""
    links = [touched(head) for head in g.heads] + [variables(node) for row in g.terms for _, node in row]
    together = grouped(len(domain.box), [*links, set(range(len(domain.box)))] if domain.where else links)
    groups = [axes for axes in together if axis is None or axis in axes]
    need(max(map(len, groups)) <= 6, "more than 6 coordinates depend on each other", UNCHECKED)
    kind: Any = SlopePart if isinstance(g, Slopes) else Part
    return [kind(g, axes, n == 0, domain, share / len(groups)) for n, axes in enumerate(groups)]


def search(
    parts: "Sequence[Part | Dense | Outer]",
    g: "AnyDifference | Dense | Composed",
    bound: float,
    tick: Tick,
    asked: slice = slice(None),
) -> float:
    """A proved bound ≤ `bound` on |g| over the domain, rounding included: the boxes that decide are refined first.

    The range of g is the sum of the ranges of the parts. Index k is 2·output for the top of the range, 2·output + 1 for
    the bottom with its sign changed. Only those `asked` for are bounded.
    """
    numbers, ends = range(len(parts)), range(2 * len(g.lines))
    heaps: list[list[list[Any]]] = [[[] for _ in ends] for _ in parts]
    best = [[(-INF, part.box) for _ in ends] for part in parts]  # attained, and where

    def insert(n: int, leaf: Leaf) -> None:
        tick(parts[n].domain.whole(parts[n].axes, leaf.box, parts[n].domain.box))
        leaf.shapes.clear()  # they may be large
        for k, heap in enumerate(heaps[n]):
            o = k // 2
            top, seen = (-leaf.low[o], -leaf.seen[o][0]) if k % 2 else (leaf.high[o], leaf.seen[o][1])
            heapq.heappush(heap, (-top, id(leaf), leaf))
            best[n][k] = max(best[n][k], (seen, leaf.box))

    for n in numbers:
        insert(n, parts[n].enclose(parts[n].box, 0))
    while True:
        proved, todo = -INF, None
        for k in ends[asked]:
            for n in numbers:
                while not heaps[n][k][0][2].alive:
                    heapq.heappop(heaps[n][k])
            low, high = (-g.high[k // 2], -g.low[k // 2]) if k % 2 else (g.low[k // 2], g.high[k // 2])
            tops, seen = [-heaps[n][k][0][0] for n in numbers], summed(arb(best[n][k][0]) for n in numbers)
            known, error = min(best[n][k][0] for n in numbers) > -INF, high + g.rounding[k // 2]
            sides = {i: side for n in numbers for i, side in zipped(parts[n].axes, best[n][k][1])}
            box = [sides[i] for i in sorted(sides)]
            if known and seen + low > bound:
                raise Verdict("INVALID", f"|T − f| ≥ {-up(-seen - low)!r} is above the claimed {bound!r}", box)
            if known and seen + error > bound and max(tops) < INF and sum(map(arb, tops), low) <= bound:
                raise Verdict(UNCHECKED, f"not decided: rounding and readings leave no room below {bound!r}", box)
            total = up(sum(map(arb, tops), error)) if max(map(abs, tops)) < INF else max(tops)
            proved = max(proved, total)
            if total > bound and todo is None:
                todo = max(numbers, key=lambda n: INF if tops[n] == INF else tops[n] - best[n][k][0]), k
        if todo is None:
            need(proved > -INF, "nothing is claimed about an empty domain", UNCHECKED)  # `claim_exists` has seen to it
            return max(proved, 0.0)
        n, leaf, finer = todo[0], heaps[todo[0]][todo[1]][0][2], None
        leaf.alive = False
        if max(leaf.high) < INF and not leaf.crude and leaf.effort + 1 < len(EFFORTS):
            finer = parts[n].enclose(leaf.box, leaf.effort + 1)
        if finer is not None and max(finer.high) < INF:
            finer.low, finer.high = list(map(max, finer.low, leaf.low)), list(map(min, finer.high, leaf.high))
            insert(n, finer)
            continue
        for half in halved(leaf.box, leaf.axis):
            insert(n, parts[n].enclose(half, 0))


def bounded(layer: Layer, f: list[Node], domain: Domain, bound: float, tick: Tick) -> tuple[float, Any, list[Part]]:
    """A proved bound ≤ `bound` on |T − f| over the domain, rounding included; T − f, and its parts."""
    for reading in (2, 1):
        g = Difference(layer, f, domain.box, bound, reading)
        parts = parts_of(g, domain, bound)
        try:
            with ctx.workprec(WORKING):
                for part in parts:
                    claim_exists(domain, part.axes, part.jumps, tick)
                    g.rounding = plus(g.rounding, part.rounding(layer, tick))
                if len(parts) == 1:
                    more = [abs(v) + r for ends in (g.low, g.high) for v, r in zipped(ends, g.rounding)]
                    parts[0].goal = bound - max(map(up, more))
                return search(parts, g, bound, tick), g, parts
        except Verdict as found:
            if reading == 1 or not g.optional or found.verdict != UNCHECKED:
                raise
    raise AssertionError("the last reading returns or raises")


# ═══ 4. Any layer: the model's own steps in Taylor models, errors beside them ═══════════════════════════════════════


class Weights:
    """A matrix as balls, and its absolute values; and the roundings of products with it."""

    def __init__(self, rows: Any) -> None:
        self.W, self.size = arb_mat(rows), arb_mat([[abs(v) for v in row] for row in rows])
        self.used = arb_mat([[int(v != 0) for v in row] for row in rows])
        self.inexact = [not all(binary(exact(v)) for v in column if v) for column in zipped(*rows)]
        self.most = [sum(map(bool, column)) for column in zipped(*rows)]
        self.low = arb_mat([[int(v != 0 and not lossless(exact(v))) for v in row] for row in rows])

    def counts(self, sizes: list[Any], biases: list[Any]) -> list[tuple[int, int]]:
        """Of every column: additions of summands that are not 0 but one, one more for inexact products; possible underflows."""
        live = arb_mat([[int(not v.is_zero()) for v in sizes]])
        most, least = ([round(float(v)) for v in (live * m).entries()] for m in (self.used, self.low))
        more = [sum(not b[j].is_zero() for b in biases) for j in range(len(most))]
        found = zipped(most, more, self.inexact, least)
        return [(max(n + k - 1, 0) + (e and n > 0), low) for n, k, e, low in found]


Stage = tuple[Any, list[Any]]  # [coefficients of Jets, column], and how far floating point may be from it


class Dense:
    """T − f for any layer with softmax attention, as `Part` has it for constructed ones.

    T follows the model's own steps in `Jets`. Beside them goes how far the computed numbers can be off: sums as `Floats` says;
    scores that are off by d, of which the largest is subtracted, and an exp within 4u make weights w_t off by factors e^(±y_t),
    y_t = d_t + u(largest gap + 4), which move an average z by Σ w_t(e^y_t − 1)|v_t − z|; of n tokens, normaliser, division and
    sum cost γ_(2n+8) max|v|. gelu and silu are off by 16u of their argument. Behind the attention errors are followed with
    their signs: if the stream h is off by δ, the hidden units φ(h W_1 + b) are off by slopes·(δ W_1), slopes between the ends
    of φ′, so the outputs by |J|·|δ|, J = W_R + W_1 diag(slopes) W_2 W_R. What is beyond the Taylor models of h counts as δ too.
    With LayerNorm errors are added up step by step (`norm`, `one_by_one`).
    """

    def __init__(self, c: Record, w: Record, places: list[int], u: Any) -> None:
        self.c, self.w, self.places, self.floats, self.u = c, w, places, Floats(u), arb(u)
        self.smallest, self.room = arb(self.floats.smallest), arb(2) ** (1000 if self.floats.double else 120)
        flat = {k: [sum((head[m] for head in w[f"W_{k}"]), ()) for m in range(c["d_model"])] for k in "QKV"}
        rows = flat | {k: w[f"W_{k}"] for k in "EO12R"}
        self.m = {k: Weights([list(row) for row in v]) for k, v in rows.items()}
        self.charge(max(max(m.most) for m in self.m.values()) + len(w.get("S", [])) + c["tokens"] + c["d_k"])
        self.behind = self.m["2"].W * self.m["R"].W  # W_2 W_R
        self.lines: list[Any] = [None] * len(places) * c["features_out"]
        self.low = self.high = self.rounding = [arb(0) for _ in self.lines]  # all of it is in the leaves

    def on(self, f: list[Node], domain: "Domain") -> "Dense":
        need(len(domain.box) <= 6, "more than 6 coordinates depend on each other", UNCHECKED)
        self.f, self.domain, self.jumps = f, domain, jumps_of(f)
        self.box, self.axes = domain.box, range(len(domain.box))
        return self

    def sizes(self, stage: Stage) -> list[Any]:
        """How large the computed numbers of every column can be."""
        found = [sum(map(abs, column), off) for column, off in zipped(zipped(*stage[0].tolist()), stage[1])]
        self.fit(found)
        return found

    def fit(self, sizes: Sequence[Any]) -> None:
        """Refuse sums of this size, before anything in them cancels: floating point may overflow."""
        need(all(v < self.room for v in sizes), "numbers may overflow, or the box is too large", "LARGE")

    def linear(self, x: Stage, name: str, *biases: Any) -> tuple[Stage, list[Any]]:
        """x·W + biases; and what this step alone adds to its error."""
        m, given, sizes = self.m[name], [balls(b) for b in biases if b is not None], self.sizes(x)
        found, (large, passed) = x[0] * m.W, (arb_mat([sizes, x[1]]) * m.size).tolist()
        for b in given:
            large = [s + abs(v) for s, v in zipped(large, b)]
            for j, v in enumerate(b):
                found[0, j] += v
        self.fit(large)
        # the last rounding is one of the result
        fresh, units = list[Any](), [self.charge(n) for n in range(len(sizes) + len(given) + 2)]
        for column, (n, low), whole, more in zipped(zipped(*found.tolist()), m.counts(sizes, given), large, passed):
            result = sum(map(abs, column), more + units[n] * whole + low * self.smallest)
            fresh.append((units[n - 1] * whole + units[1] * result if n else arb(0)) + low * self.smallest)
        return (found, plus(passed, fresh)), fresh

    def charge(self, roundings: int) -> Any:
        return arb(self.floats.gamma(roundings))

    def average(self, jets: Jets, q: Stage, keys: list[Stage], values: list[Stage]) -> Stage:
        """What one head makes of one query, keys and values."""
        n, u, root, errors = len(keys), self.u, arb(self.c["d_k"]).sqrt(), list[Any]()
        large, scores = self.sizes(q), self.scores(jets, q, keys)
        for k in keys:
            more = self.sizes(k)
            off = summed(a * d + e * b for a, b, d, e in zipped(large, more, k[1], q[1]))
            whole = dot(large, more)
            self.fit([whole])
            errors.append((off + self.charge(len(more) + 4) * whole) / root + self.smallest * (len(more) + 2))
        if n == 1:
            return values[0]
        ends = [jets.ends(s) for s in scores]
        sure = greatest([low - e for (low, _), e in zipped(ends, errors)])
        seen = [t for t in range(n) if not ends[t][1] + errors[t] - sure <= -MASKED]
        if len(seen) < n:  # weights below e^−745 are nothing but underflow
            z, off = self.average(jets, q, [keys[t] for t in seen], [values[t] for t in seen])
            most_of = greatest([v for value in values for v in self.sizes(value)])
            return z, plus(off, [4 * n * self.smallest * (1 + most_of)] * len(off))
        z, best, weights, apart = self.mixed(jets, scores, values)
        top, most = greatest([high for _, high in ends]), [jets.ends(weight)[1].min(arb(1)) for weight in weights]
        gap, d = greatest([top - low for low, _ in ends]), 2 * greatest(errors)
        logs = [e + u * (gap + d + 4) * arb(1.01) for e in errors]
        shares = [p * (y + y * y) if y < 1 else arb("inf") for p, y in zipped(most, logs)]
        spread = [self.sizes((a, [arb(0)] * a.ncols())) for a in apart]
        around = self.sizes((z - best, [arb(0)] * z.ncols()))
        share = summed(shares)
        need(share < 0.5, "the box is too large", "LARGE")
        found, relative = list[Any](), self.charge(2 * n + 8)
        for j in range(z.ncols()):
            moves = summed(p * (a[j] + around[j]) for p, a in zipped(shares, spread)) / (1 - share)
            error = greatest([v[1][j] for v in values])
            here = greatest([sum(abs(v[0][k, j]) for k in range(v[0].nrows())) + v[1][j] for v in values])
            found.append(moves + error * (1 + relative) + relative * here + 4 * n * self.smallest * (1 + here))
        return z, found

    def scores(self, jets: Jets, q: Stage, keys: list[Stage]) -> list[Jet]:
        root = arb(self.c["d_k"]).sqrt()
        return [[v / root for v in jets.fold((q[0] * k[0].transpose()).tolist())] for k in keys]

    def mixed(self, jets: Jets, scores: list[Jet], values: list[Stage]) -> tuple[Any, Any, list[Jet], list[Any]]:
        """(Σ w_t v_t, the v of the token that leads at the centre, weights, v_t less that)."""
        best, rows = max(range(len(scores)), key=lambda t: float(scores[t][0])), range(len(jets.zeros))
        powers = [jets.apply("exp", [s[0] - scores[best][0].mid(), *s[1:]]) for s in scores]
        inverse = jets.apply("inv", [summed(column) for column in zipped(*powers)])
        weights = [jets.share(jets.times(e, inverse)) for e in powers]
        tops, apart = arb_mat(transposed(weights)), [v[0] - values[best][0] for v in values]
        lists = [a.tolist() for a in apart]
        table = [(tops * arb_mat([a[b] for a in lists])).tolist() for b in rows]
        moved = [jets.fold([[table[b][a][j] for b in rows] for a in rows]) for j in range(apart[0].ncols())]
        return values[best][0] + arb_mat(transposed(moved)), values[best][0], weights, apart

    def activated(self, jets: Jets, stage: Stage) -> tuple[Any, list[Any], list[Any]]:
        """(what hidden units make of their inputs, slopes there, how far the activation is off by itself)."""
        kind, units, slopes, acts = self.c["activation"], list[Jet](), list[Any](), list[Any]()
        for p, e in zipped(zipped(*stage[0].tolist()), stage[1]):
            ball = p[0] + within_ball(sum((abs(k) for k in p[1 : len(jets.monomials)]), e))
            units.append(jets.hinge(list(p)) if kind == "relu" else jets.apply(kind, list(p)))
            slopes.append(slope(kind, ball))
            acts.append(arb(0) if kind == "relu" else 16 * self.u * abs(ball) + self.smallest)
        return arb_mat(transposed(units)), slopes, acts

    def answers(self, x: Sequence[Any], jets: Jets, normal: bool = False) -> tuple[list[Jet], list[Any]]:
        """(T, how far the computed one can be off), per output; x: all coordinates, as Taylor models.

        normal: x is x̂ = (x − shift)·scale already, as floating point computes it.
        """
        c, w, outs = self.c, self.w, range(self.c["features_out"])
        data, d = list[Stage](), c["features_in"]
        for j in range(c["tokens"]):
            shifts, scales = ([0.0] * d, [1.0] * d) if normal else (w["shift"][j], w["scale"][j])
            self.fit([sum(map(abs, x[j * d + i]), abs(arb(a))) for i, a in enumerate(shifts)])
            hats = [[(x[j * d + i][0] - arb(shifts[i])) * arb(scales[i]), *(k * arb(scales[i]) for k in x[j * d + i][1:])]
                    for i in range(d)]  # fmt: skip
            X = arb_mat(transposed(hats))
            steps = [(a != 0) + (not binary(exact(b))) for a, b in zipped(shifts, scales)]
            off = [self.charge(k) * v + self.smallest * (1 + abs(arb(s))) * (not normal) for k, v, s in
                   zipped(steps, self.sizes((X, [arb(0)] * d)), scales)]  # fmt: skip
            data.append(self.linear((X, off), "E", w["b_E"], w["P"][j] if "P" in w else None)[0])
        zero, rest = [arb(0)] * c["d_model"], [[0] * c["d_model"] for _ in jets.zeros[1:]]
        special = [(arb_mat([list(row), *rest]), zero) for row in w.get("S", [])]
        asking = [special[p - c["output_tokens"]] if c["readout"] == "output" else data[p] for p in self.places]
        asking = data if c["readout"] == "mean" else asking
        flat = {k: [v for row in w[f"b_{k}"] for v in row] if f"b_{k}" in w else None for k in "QKV"}
        seen = [self.norm(jets, t, "1", "pre") for t in data + special]
        keys, values = ([self.linear(t, k, flat[k])[0] for t in seen] for k in "KV")
        found, offs = list[list[Jet]](), list[list[Any]]()
        for row in asking:
            q = self.linear(self.norm(jets, row, "1", "pre"), "Q", flat["Q"])[0]
            heads = [self.average(jets, cut(q, h, c["d_k"]), [cut(t, h, c["d_k"]) for t in keys],
                                  [cut(t, h, c["d_v"]) for t in values]) for h in range(c["heads"])]  # fmt: skip
            T, off = self.fed_forward(jets, row, joined(heads))
            found.append([[T[k, o] for k in range(T.nrows())] for o in outs])
            offs.append(off)
        b_R, n = [arb(v) for v in w["b_R"]], len(asking)
        if c["readout"] == "mean":
            found = [[[summed(column) / n for column in zipped(*(t[o] for t in found))] for o in outs]]
            offs = [[summed(t[o] for t in offs) / n for o in outs]]
            found, offs = found * len(self.places), offs * len(self.places)
        T = [[jet[0] + b_R[o], *jet[1:]] for t in found for o, jet in enumerate(t)]
        return T, [off for t in offs for off in t]

    def fed_forward(self, jets: Jets, row: Stage, z: Stage) -> tuple[Any, list[Any]]:
        """The outputs of one row without b_R, and how far they are off, all that comes after included."""
        if self.c["norm"] != "none":
            return self.one_by_one(jets, row, z)
        c, w, m, outs = self.c, self.w, self.m, range(self.c["features_out"])
        width, stay = c["d_model"], arb(int(c["residual"]))
        (a, passed), fresh = self.linear(z, "O", w.get("b_O"))
        own = [stay * v for v in row[1]]
        h = a + row[0] * stay
        beyond = [h[0, j].rad() for j in range(width)]
        for j in range(width):
            h[0, j] = h[0, j].mid()
        off = [p + q + r for p, q, r in zipped(passed, own, beyond)]
        sides = zipped(self.sizes((a, passed)), self.sizes(row))
        added = [c["residual"] and not (p.is_zero() or q.is_zero()) for p, q in sides]  # to 0: exact
        fresh = [p + self.charge(k) * s + r for p, k, s, r in zipped(fresh, added, self.sizes((h, off)), beyond)]
        off = plus(off, fresh)
        (hidden, wide), new = self.linear((h, off), "1", w["b_1"])
        G, slopes, acts = self.activated(jets, (hidden, wide))
        J = m["R"].W * stay + m["1"].W * arb_mat([[s * self.behind[k, o] for o in outs] for k, s in enumerate(slopes)])
        T = h * m["R"].W * stay + G * self.behind
        answers = [abs(s).upper() * e + t for s, e, t in zipped(slopes, wide, acts)]
        large = self.sizes((G, answers))
        _, last = self.linear((G, answers), "2", w["b_2"])
        stream = plus(self.sizes((h, off)), (arb_mat([large]) * m["2"].size).tolist()[0])
        stream = [s + abs(arb(b)) for s, b in zipped(stream, w["b_2"])]
        written = [not (v.is_zero() and b == 0) for v, b in
                   zipped((arb_mat([large]) * m["2"].size).entries(), w["b_2"])]  # fmt: skip
        rows = c["tokens"] if c["readout"] == "mean" else 1
        mean = rows + 1 if rows > 1 else 0
        self.fit([rows * s for s in stream])
        lost = (rows > 1) * self.smallest  # 1/rows may underflow, too
        last = [p + self.charge(mean + (c["residual"] and v)) * s + lost for p, v, s in zipped(last, written, stream)]
        live = stream if rows == 1 else [arb(1)] * width  # what is 0 in this row need not be 0 in the mean
        reads = [n for n, _ in m["R"].counts(live, [balls(w["b_R"])])]
        paths = (m["O"].W * J).tolist()
        found = list[Any]()
        for o in outs:
            T[0, o] += summed(arb(b) * r[o] for b, r in zipped(w["b_2"], m["R"].W.tolist()))
            e = summed(abs(J[j, o]) * (fresh[j] + own[j]) for j in range(width))
            e += summed(abs(p[o]) * d for p, d in zipped(paths, z[1]))
            e += summed(abs(self.behind[k, o]) * (abs(s) * n + t) for k, (s, n, t) in
                      enumerate(zipped(slopes, new, acts)))  # fmt: skip
            e += summed(abs(m["R"].W[j, o]) * last[j] for j in range(width))
            read = sum((m["R"].size[j, o] * stream[j] for j in range(width)), abs(arb(w["b_R"][o])))
            self.fit([rows * read])
            found.append(e + self.charge(reads[o]) * read + (width + 2) * self.smallest)
        return T, found

    def one_by_one(self, jets: Jets, row: Stage, z: Stage) -> tuple[Any, list[Any]]:
        """As `fed_forward`, one step after the other, with LayerNorm where the layer has it."""
        c, w = self.c, self.w
        h = self.linear(z, "O", w.get("b_O"))[0]
        h = self.norm(jets, self.added(row, h) if c["residual"] else h, "1", "post")
        hidden = self.linear(self.norm(jets, h, "2", "pre"), "1", w["b_1"])[0]
        G, slopes, acts = self.activated(jets, hidden)
        off = [abs(s).upper() * e + t for s, e, t in zipped(slopes, hidden[1], acts)]
        y = self.linear((G, off), "2", w["b_2"])[0]
        y = self.norm(jets, self.added(h, y) if c["residual"] else y, "2", "post")
        rows, sizes = c["tokens"] if c["readout"] == "mean" else 1, self.sizes(y)
        mean = [e + (rows > 1) * (self.charge(rows + 1) * s + self.smallest) for e, s in zipped(y[1], sizes)]
        self.fit([rows * s for s in sizes])
        off, large = (arb_mat([mean, sizes]) * self.m["R"].size).tolist()
        large = [v + abs(arb(b)) for v, b in zipped(large, w["b_R"])]
        self.fit([rows * v for v in large])
        more = [self.charge(n + 1) * v + (n + 2) * self.smallest for n, v in zipped(self.m["R"].most, large)]
        return y[0] * self.m["R"].W, plus(off, more)

    def added(self, x: Stage, y: Stage) -> Stage:
        found, off = x[0] + y[0], plus(x[1], y[1])
        large = plus(self.sizes(x), self.sizes(y))
        return found, [e + self.charge(1) * s for e, s in zipped(off, large)]

    def norm(self, jets: Jets, x: Stage, n: str, place: str) -> Stage:
        """LayerNorm, (x − μ)/√(v + ε)·gain + offset, if the layer has it at this place.

        Of the deployed one it is assumed that μ is within (m + 2)u·mean|x| and v within 2(m + 4)u·mean x², m numbers, and that
        the root costs 4u. With x off by δ_j, |δ_j| ≤ e_j, and c = x − μ, v moves by 2·mean(cδ) + var δ, as Σc = 0; and
        r = 1/√(v + ε) by less than a factor 1 ± 1.01·t/2, if v moves by t(v + ε), t ≤ 0.01. It may be that x·r − μ·r is computed.
        """
        if self.c["norm"] != place:
            return x
        m, u, off, sizes, rows = x[0].ncols(), self.u, x[1], self.sizes(x), x[0].tolist()
        centred = [[k - mean for k in row] for row in rows for mean in [summed(row) / m]]
        C, eps = arb_mat(centred), arb(self.c["norm_eps"])
        table = (C * C.transpose()).tolist()
        variance = jets.fold([[k / m for k in row] for row in table])
        variance[0] += eps
        least = jets.ends(variance)[0].max(eps)
        root, most = jets.apply("rpow", variance, fmpq(-1, 2)), 1 / least.sqrt()
        parts = [jets.times(list(column), root) for column in zipped(*centred)]
        need(all(k.is_finite() for p in parts for k in p), "the box is too large", "LARGE")
        far = self.sizes((C, [arb(0)] * m))
        e, size = summed(off) / m, summed(sizes) / m
        square = summed(s * s for s in sizes)
        self.fit([m * square])
        moved = summed(2 * p * q + q * q for p, q in zipped(far, off)) / m
        moved += 2 * (m + 4) * u * square / m + (m + 2) * self.smallest
        need(moved < least / 100, "the box is too large", "LARGE")
        relative, found = moved / (2 * least) * arb(1.01) + 4 * u, list[Any]()
        gain, offset = balls(self.w[f"gain_{n}"]), balls(self.w[f"offset_{n}"])
        for j, p in enumerate(parts):
            apart = off[j] + e + (m + 2) * u * size + 2 * u * (sizes[j] + size)
            y = greatest(map(abs, jets.ends(p)))
            error = apart * most * (1 + 2 * relative) + y * (relative + 3 * u) + 2 * self.smallest
            own = self.charge(3) * ((y + error) * abs(gain[j]) + abs(offset[j]))
            found.append(error * abs(gain[j]) + own + self.smallest)
            parts[j] = [k * gain[j] + (offset[j] if not a else 0) for a, k in enumerate(p)]
        return arb_mat(transposed(parts)), found

    def followed(self, x: Sides) -> tuple[Jets, list[Jet], list[Any]]:
        """T on a box, and how far the computed one can be off."""
        jets = Jets(x, self.axes)
        return jets, *self.answers([jets.variable(i) for i in self.axes], jets)

    def enclose(self, box: Box, effort: int) -> Leaf:
        """What can be proved of T − f on a box, rounding included."""
        x = Sides(box)
        leaf = Leaf.unknown(box, len(EFFORTS), widest(box, self.box, self.axes), len(self.lines))
        if self.domain.excused(x, self.jumps):
            return leaf.excused()
        try:
            jets, T, off = self.followed(x)
        except Verdict as found:
            if found.verdict != "LARGE":
                raise
            return leaf
        g = [combined(t, -1, jets.of(node)) for t, node in zipped(T, self.f)]
        ends = [jets.ends(jet) for jet in g]
        if not all(v.is_finite() for pair in ends for v in pair):
            return leaf
        leaf.low = [-up(e - low) for (low, _), e in zipped(ends, off)]
        leaf.high = [up(high + e) for (_, high), e in zipped(ends, off)]
        if self.domain.claimed(x, self.jumps):  # the centre
            leaf.seen = [(up(jet[0] + e), -up(e - jet[0])) for jet, e in zipped(g, off)]
        return leaf


def slope(kind: str, ball: Any) -> Any:
    """φ′ of an activation on a ball: between −0.13 and 1.13 everywhere."""
    if kind == "relu":
        return arb(1) if ball >= 0 else arb(0) if ball <= 0 else arb(0).union(arb(1))
    found, most = expansion(kind, ball)[1], arb(0.5) + within_ball(arb(0.63))
    return found if found.is_finite() and found.rad() < 0.63 else most


def cut(stage: Stage, h: int, width: int) -> Stage:
    """The columns of a head."""
    rows = [row[h * width : (h + 1) * width] for row in stage[0].tolist()]
    return arb_mat(rows), stage[1][h * width : (h + 1) * width]


def joined(stages: list[Stage]) -> Stage:
    rows = [[v for part in row for v in part] for row in zipped(*(s[0].tolist() for s in stages))]
    return arb_mat(rows), [v for s in stages for v in s[1]]


def read_layer(about: Record, tensors: Any, box: Box, outs: int, u: Any, general: bool = False) -> Layer | Dense:
    """The layer; `Dense` if it is not of a constructed kind."""
    c, weights, places = read_config(about, tensors, len(box), outs, norms=True)
    if c["activation"] == "relu" and c["readout"] != "mean" and c["norm"] == "none" and not general:
        try:
            return Layer(c, weights, places, box, u)
        except Verdict as found:
            if found.verdict != "GENERAL":
                raise
    with ctx.workprec(WORKING):
        return Dense(c, weights, places, u)


# ═══ 5. Composed layers: T = Σ H(z) with z near g, against f = Σ h(g) ═══════════════════════════════════════════════

Form = dict[tuple[tuple[Node, Any], ...], Any]  # Σ coefficient·Π atom^exponent, rationals
UNIT: Form = {(): fmpq(1)}
WRITTEN_OUT = ("num", "add", "mul", "pow", "rpow")  # atoms that are forms: whole powers are multiplied out


def accumulated(parts: Iterable[tuple[Any, Form]]) -> Form:
    """Σ scale·form."""
    found: Form = {}
    for scale, form in parts:
        for m, k in form.items():
            found[m] = found.get(m, ZERO) + scale * k
        need(len(found) <= FORMS * BRANCHES, "the formula has too many terms", UNCHECKED)
    return {m: k for m, k in found.items() if k}


def multiplied(P: Form, Q: Form) -> Form:
    def powers(m: Any, n: Any) -> dict[Node, Any]:
        return {a: dict(m).get(a, ZERO) + dict(n).get(a, ZERO) for a in dict(m) | dict(n)}

    return accumulated((k * l, written_out(powers(m, n))) for (m, k), (n, l) in product(P.items(), Q.items()))


def written_out(powers: dict[Node, Any]) -> Form:
    """Π atom^exponent as a form."""
    whole = {a: max(int(e.floor()), 0) if a[0] in WRITTEN_OUT else 0 for a, e in powers.items()}
    left = ((a, e - whole[a]) for a, e in powers.items() if e != whole[a])
    sums = [normal(a) for a, n in whole.items() for _ in range(n)]
    return reduce(multiplied, sums, {tuple(sorted(left, key=repr)): fmpq(1)})


def raised(form: Form, q: Any) -> Form:
    """A form to a rational power."""
    need(form or q > 0, "a formula divides by zero", UNCHECKED)
    (m, k), alone = next(iter(form.items()), ((), ZERO)), len(form) == 1
    if q.q == 1 and (q >= 0 or alone):
        form = form if q >= 0 else accumulated([(1 / k, written_out({a: -e for a, e in m}))])
        return reduce(multiplied, [form] * abs(int(q.p)), UNIT)
    single = alone and k == 1 and len(m) == 1 and m[0][1] == 1
    return {((m[0][0] if single else canonical(form), q),): fmpq(1)}


def canonical(form: Form) -> Node:
    """A form as a formula, the same for equal forms."""
    terms = list[Node]()
    for m, k in sorted(form.items(), key=repr):
        powers: list[Node] = [a if e == 1 else ("pow" if e.q == 1 else "rpow", (a,), e) for a, e in m]
        factors = powers if k == 1 and m else [num(k), *powers]
        terms.append(tree("mul", *factors) if len(factors) > 1 else factors[0])
    return tree("add", *terms) if len(terms) > 1 else terms[0] if terms else NOTHING


@cache
def normal(node: Node) -> Form:
    """A formula multiplied out, with exp(Σ c log a + …) = Π a^c·…

    Every step says: where the left side has a value, the right side has the same. So formulas with equal normal forms are
    equal wherever both, as they are written, have values; that a_i > 0, for example, is told by log(a_i) having one.
    """
    kind, operands, extra = node
    if kind == "num":
        return accumulated([(extra, UNIT)])
    if kind == "add":
        return accumulated((1, normal(a)) for a in operands)
    if kind == "mul":
        return reduce(multiplied, map(normal, operands))
    if kind == "div":
        return multiplied(normal(operands[0]), inverse(operands[1]))
    if kind == "pow":
        base = inverse(operands[0]) if extra < 0 else normal(operands[0])
        return reduce(multiplied, [base] * abs(int(extra.p)), UNIT)
    if kind == "rpow":
        return raised(normal(operands[0]), extra)
    if kind != "exp":
        return {(((kind, tuple(canonical(normal(a)) for a in operands), extra), fmpq(1)),): fmpq(1)}
    found = UNIT
    for m, k in normal(operands[0]).items():
        log = len(m) == 1 and m[0][0][0] == "log" and m[0][1] == 1
        power: Form = {((tree("exp", canonical({m: fmpq(1)})), k),): fmpq(1)}
        found = multiplied(found, raised(normal(m[0][0][1][0]), k) if log else power)
    return found


def inverse(node: Node) -> Form:
    """1/node, factor by factor: denominators are not multiplied out."""
    kind, operands, extra = node
    if kind == "mul":
        return reduce(multiplied, map(inverse, operands))
    if kind == "div":
        return multiplied(inverse(operands[0]), normal(operands[1]))
    if kind == "pow" and extra > 0:
        return reduce(multiplied, [inverse(operands[0])] * int(extra.p))
    return normal(tree("exp", minus(operands[0]))) if kind == "exp" else raised(normal(node), fmpq(-1))


def difference_of(f: Node, parts: list[Node]) -> Any:
    """f − Σ parts, which must be a constant: a ball. Forms are equal if they are after multiplication with denominators."""
    form = accumulated([(1, normal(f)), *((-1, normal(part)) for part in parts)])
    fixed = {m: k for m, k in form.items() if not any(variables(a) for a, _ in m)}
    form = {m: k for m, k in form.items() if m not in fixed}
    while divisors := [(e, a) for m in form for a, e in m if e < 0 and a[0] in WRITTEN_OUT]:
        e, a = min(divisors, key=repr)
        e = min(e for e, b in divisors if b == a).floor()
        form = accumulated((k, written_out(dict(m) | {a: dict(m).get(a, ZERO) - e})) for m, k in form.items())
    need(not form, "the hinted composition is not recognised as the formula", UNCHECKED)
    return value(canonical(fixed), [])


def defined_with(f: Node, parts: list[Node], box: Box, tick: Tick) -> None:
    """Prove that formulas, as they are written, have values wherever f has one: enclosures do not tell, they are cut off.

    What a root, asin or acos is taken of lies in its domain, as is proved here, or f has the same root, asin or acos.
    """

    def taken(node: Node) -> list[tuple[tuple[float, float], Node]]:
        some = [n for part in (node, *jumps_of([node])) for n in below(part)]
        roots = [((0.0, INF), n[1][0]) for n in some if n[0] == "rpow" and n[2] > 0]
        kinds = [(FUNCTIONS[n[0]], n[1][0]) for n in some if n[0] in FUNCTIONS]
        return roots + [((known.low, known.high), u) for known, u in kinds if known.closed]

    known = [] if jumps_of([f]) else [(ends, normal(u)) for ends, u in taken(f)]
    for ends, u in (pair for part in parts for pair in taken(part)):
        if (ends, normal(u)) not in known:
            defined([u], box, tick, *ends)


class Spread:
    """low ≤ z − g ≤ high where g lies in an interval, for a coordinate z of the stream with |z − g| ≤ δ, by cells and bins.

    z − g = Σ e_i and g = Σ g_i over the n parts. A cell of part i with g_i in [p, q] and e_i ≤ t is entered in the bins
    ⌊p/w⌋ … ⌊q/w⌋; top_i(k) is the largest t in bin k. At a point with k_i = ⌊g_i/w⌋ and K = Σ k_i, Σ e_i ≤ C(K), the largest of
    Σ top_i(k_i) with that K, and K ≤ g/w < K + n. C is found by adding one part after the other; −e likewise.
    """

    def __init__(self, lane: "Lane", count: int, tick: Tick) -> None:
        self.delta, self.ends, self.first, self.width, self.parts = lane.delta, list[list[float]](), 0, 1.0, lane.parts
        whole = Sum([arb(0)] * (len(lane.parts[0].domain.box) + 1))
        whole.add(arb(1), lane.g)
        if not count or whole.kinks:
            return
        rows = [list(self.cells(part, whole, n == 0, count, tick)) for n, part in enumerate(lane.parts)]
        lows, highs = ([end([cell[k] for cell in row]) for row in rows] for k, end in ((0, min), (1, max)))
        if not max(map(abs, lows + highs)) < 1e100:
            return
        finest = max(sum(map(operator.sub, highs, lows)) / (4 * count), max(map(abs, lows + highs)) / 2**40, 1e-150)
        self.width = 2.0 ** math.ceil(math.log2(finest))
        bins = [[(self.bin(p), self.bin(q)) for p, q, *_ in row] for row in rows]
        starts = [min(a for a, _ in row) for row in bins]
        self.first, slack = sum(starts), (up(-lane.difference.low[0]), up(lane.difference.high[0]))
        for k in (0, 1):
            C, size = [0.0], 0.0
            for row, places, start in zipped(rows, bins, starts):
                top = [-INF] * (max(b for _, b in places) - start + 1)
                for cell, (a, b) in zipped(row, places):
                    top[a - start : b - start + 1] = (max(t, cell[2 + k]) for t in top[a - start : b - start + 1])
                size += max((abs(t) for t in top if abs(t) < 1e300), default=0.0)
                C = largest_sums(C, top)
            more = up(lane.difference.rounding[0] + slack[k]) + 1e-15 * len(rows) * size
            self.ends.append([c if c == -INF else c + more + 1e-15 * (abs(c) + more) for c in C])

    def bin(self, u: Any) -> int:
        return int((exact(u) / exact(self.width)).floor())

    def cells(
        self, part: "Part", whole: Sum, first: bool, count: int, tick: Tick
    ) -> Iterator[tuple[float, float, float, float]]:
        """(p, q, upper bounds of −e and of e), 1e300 where there is none, for equal cells of a part's box."""
        own = [(k, var(i)) for i, k in enumerate(whole.line[1:]) if i in part.axes and not k.is_zero()]
        own += [(scale, node) for scale, node in whole.terms if variables(node) & set(part.axes)]
        terms = [tree("mul", num(scale), node) for scale, node in own]
        g: Node = tree("add", num(whole.line[0] if first else arb(0)), *terms)
        todo: list[tuple[Box, Shape | None, int]] = [(list(part.box), None, count)]
        while todo:
            cell, shape, left = todo.pop()
            box, ends = part.domain.whole(part.axes, cell, part.domain.box), (1e300, 1e300)
            if shape is None:
                tick(box)
                leaf = part.enclose(cell, len(EFFORTS) - 1)
                ends, shape = (min(-leaf.low[0], 1e300), min(leaf.high[0], 1e300)), next(iter(leaf.shapes), None)
            if left > 1:
                axis = part.axes.index(widest(box, part.domain.box, part.axes))
                halves: Sequence[Shape | None] = shape.halves(axis) if shape else (None, None)
                todo += [(half, some, left // 2) for half, some in zipped(halved(cell, axis), halves)]
                continue
            if shape is not None:
                tops = shape.minus().top() - part.level[0], shape.top() + part.level[0]
                ends = min(ends[0], up(tops[0])), min(ends[1], up(tops[1]))
            low, high = enclosed(g, box)
            yield -up(-low), up(high), *ends

    def on(self, a: Any, b: Any) -> tuple[Any, Any]:
        """(low, high) for g between a and b; (0, 0) if g has no such value."""
        if not self.ends:
            return -self.delta, self.delta
        first, last = self.bin(a) - len(self.parts) + 1 - self.first, self.bin(b) - self.first
        fall, rise = (max(row[max(first, 0) : max(last + 1, 0)], default=-INF) for row in self.ends)
        return (-min(exact(fall), self.delta), min(exact(rise), self.delta)) if fall > -INF < rise else (ZERO, ZERO)


def largest_sums(one: list[float], two: list[float]) -> list[float]:
    """max over i + j = k of one_i + two_j, for every k."""
    (short, long), found = sorted((one, two), key=len), [-INF] * (len(one) + len(two) - 1)
    for k, more in enumerate(short):
        if more > -INF:
            found[k : k + len(long)] = map(max, found[k : k + len(long)], [v + more for v in long])
    return found


class Lane(NamedTuple):
    """z within δ of g, u = g between the ends of a span; H stands for h in output o."""

    o: int
    g: Node
    h: Node
    H: "BentLine"
    delta: Any
    difference: Difference  # z − g
    parts: "list[Part]"


class BentLine:
    """D(u) = Σ height·relu(λu + c): slopes[n]·u + heights[n] where n knots are at or below u; units: (λ, c, height, number)."""

    def __init__(self, units: Iterable[tuple[Any, Any, Any, int]] = ()) -> None:
        self.units, changes = list(units), dict[Any, Any]()
        falling = [(k * h, c * h) for k, c, h, _ in self.units if k < 0]
        self.slopes, self.heights = [sum((k for k, _ in falling), ZERO)], [sum((c for _, c in falling), ZERO)]
        for k, c, h, _ in self.units:
            changes[-c / k] = changes.get(-c / k, ZERO) + abs(k) * h
        self.knots = sorted(changes)
        for knot in self.knots:
            self.slopes.append(self.slopes[-1] + changes[knot])
            self.heights.append(self.heights[-1] - changes[knot] * knot)

    def at(self, u: Any) -> Any:
        n = bisect_right(self.knots, u)
        return self.slopes[n] * u + self.heights[n]

    def cuts(self, low: float, high: float) -> list[Any]:
        """The ends, and the knots between them."""
        a, b = exact(low), exact(high)
        return [a, *self.knots[bisect_right(self.knots, a) : bisect_left(self.knots, b)], b]

    def less(self, node: Node, low: float, high: float) -> list[tuple[Node, Box]]:
        """D − node, a function of one variable, on pieces."""
        first = bisect_right(self.knots, exact(low))
        pieces = zip(self.slopes[first:], self.heights[first:], pairwise(self.cuts(low, high)), strict=False)
        return [(tree("add", tree("mul", num(k), VAR), num(c), minus(node)), [outward(*ends)]) for k, c, ends in pieces]

    def polynomial(self, low: float, high: float, degree: int) -> Node:
        """A polynomial through points of D between the ends, near to Chebyshev's; any would do for a proof."""
        points = self.cuts(low, high)
        ideal = [(low + high) / 2 - (high - low) / 2 * math.cos(math.pi * k / degree) for k in range(degree + 1)]
        chosen = sorted({min(points, key=lambda t: abs(t - exact(v))) for v in ideal})
        table, newton = [self.at(t) for t in chosen], list[Any]()
        for k in range(len(chosen)):
            newton.append(table[0])
            table = [(q - p) / (chosen[i + k + 1] - chosen[i]) for i, (p, q) in enumerate(pairwise(table))]
        node = num(newton[-1])
        for t, k in zipped(chosen[-2::-1], newton[-2::-1]):
            node = tree("add", num(k), tree("mul", tree("add", VAR, num(-t)), node))
        return node


class Outer:
    """H(u + e) − h(u) for u in a span, e as far as a lane spreads at u: part n of T − f.

    H is linear between knots. On an interval [a, b] there, H(u) − h(u) is bounded by Taylor models or by ends, and
    H(u + e) − H(u) = e·(slopes of H nearby) = H(a + e) − H(a) + (u − a)·(slopes of H nearby − the slope on the interval).
    """

    def __init__(self, n: int, spans: Box, outs: int, lane: Lane, near: Spread) -> None:
        self.axes, self.domain, self.box, self.outs = [n], Domain(spans, None, 0.0), [spans[n]], outs
        self.o, self.h, self.H, self.near = lane.o, lane.h, lane.H, near

    def moved(self, n: int, a: Any, b: Any) -> tuple[Any, Any]:
        """(low, high) of H(u + e) − H(u) for u between a and b, where n knots are below."""
        (low, high), knots = self.near.on(a, b), self.H.knots
        near = self.H.slopes[bisect_left(knots, a + min(low, ZERO)) : bisect_right(knots, b + max(high, ZERO)) + 1]
        ends = [e * s for e in (low, high) for s in (min(near), max(near))]
        between = knots[bisect_left(knots, a + low) : bisect_right(knots, a + high)]
        heights = [self.H.at(u) - self.H.at(a) for u in (a + low, *between, a + high)]
        falls, rises = ((b - a) * (s - self.H.slopes[n]) for s in (min(near), max(near)))
        return max(min(ends), min(heights) + falls), min(max(ends), max(heights) + rises)

    def piece(self, n: int, a: Any, b: Any) -> tuple[Any, Any]:
        """(low, high) between a and b, where n knots are below."""
        jets, slope, height = Jets(Sides([(a, b)]), [0]), arb(self.H.slopes[n]), arb(self.H.heights[n])
        line, (less, more) = combined(jets.constant(height), slope, jets.variable(0)), self.moved(n, a, b)
        (bottom, top), (low, high) = corners([slope * arb(v) + height for v in (a, b)]), interval(self.h, jets.x)
        low, high = narrower((bottom - high, top - low), jets.ends(combined(line, -1, jets.of(self.h))))
        return low + arb(less), high + arb(more)

    def enclose(self, box: Box, effort: int) -> Leaf:
        a, b, m = *map(exact, box[0]), exact(box[0][0] / 2 + box[0][1] / 2)
        n, first, last = (bisect_right(self.H.knots, v) for v in (m, a, b))
        ends = [self.piece(k, *pair) for k, pair in enumerate(pairwise([a, *self.H.knots[first:last], b]), first)]
        here, (less, more) = arb(self.H.at(m)) - value(self.h, [arb(m)]), map(arb, self.moved(n, m, m))
        leaf = Leaf(box, len(EFFORTS), 0, [0.0] * self.outs, [0.0] * self.outs, [(0.0, 0.0)] * self.outs)
        leaf.low[self.o], leaf.high[self.o] = -max(up(-v) for v, _ in ends), max(up(v) for _, v in ends)
        leaf.seen[self.o] = up(here + less), -up(-here - more)
        return leaf


class Composed(NamedTuple):
    """T − f = Σ `Outer` + something between low and high, and the rounding of the network, per output."""

    lines: list[Node]
    low: list[Any]
    high: list[Any]
    rounding: list[Any]


def stream(layer: Dense, m: int, box: Box) -> Layer:
    """The layer whose only output is the coordinate m of the stream behind the attention."""
    c, w, many = layer.c, layer.w, range(layer.c["d_model"])
    own = {"W_1": [[1.0, -1.0] if k == m else [0.0, 0.0] for k in many], "b_1": [0.0, 0.0], "b_2": [0.0 for _ in many]}
    own |= {"W_2": [[s * (k == m) for k in many] for s in (1.0, -1.0)], "W_R": [[float(k == m)] for k in many]}
    sizes = {"features_out": 1, "ffn_width": 2}
    return Layer(c | sizes, w | own | {"b_R": [0.0]}, layer.places, box, layer.floats.u)


def read_lanes(hints: Any, names: list[str], outs: int) -> list[tuple[int, Node, Node, float, float]]:
    """(output, g, h, shift, δ) of every lane, as the certificate says: all of it is to be proved."""
    found = list[tuple[int, Node, Node, float, float]]()
    for hint in list[Any](hints if isinstance(hints, list) else [None]):
        need(isinstance(hint, dict), "a lane is malformed", UNCHECKED)
        o, shift = hint.get("output"), hint.get("shift")
        need(type(o) is int and 0 <= o < outs and type(shift) in (int, float), "a lane is malformed", UNCHECKED)
        g, h = Reader(names, hint.get("inner")).node(), Reader(["u"], hint.get("outer")).node()
        found.append((o, g, h, float(shift), read_number(hint, "bound")))
    return found


def composed(layer: Dense, f: list[Node], domain: Domain, lanes: Any, bound: float, tick: Tick) -> float:
    """A proved bound on |T − f| for T = bias + Σ_j worth_j·relu(z_(k_j) + b_j) and f = constant + Σ_lanes h(g).

    A coordinate z of the stream is within δ of g − shift, rounding included. The network rounds a summand when b_j is added,
    when it is multiplied, and once for every other summand, at most. `Layer` has seen to it that nothing overflows.
    """
    c, w, box, F, M = layer.c, layer.w, domain.box, range(layer.c["ffn_width"]), range(layer.c["d_model"])
    plain = c["activation"] == "relu" and c["readout"] != "mean" and not c["residual"] and len(layer.places) == 1
    need(plain and domain.where is None and not domain.margin, "the layer is not composed", UNCHECKED)
    reads = [[k for k in M if w["W_1"][k][j]] for j in F]
    straight = all(len(row) == 1 and w["W_1"][row[0]][j] == 1 for j, row in enumerate(reads))
    need(straight, "a unit of the network does not read one coordinate as it is", UNCHECKED)
    with ctx.workprec(WORKING):
        defined(f, box, tick)
        whole = [[substituted(h, [g]) for p, g, h, *_ in lanes if p == o] for o in range(len(f))]
        fixed = list(map(difference_of, f, whole))
        for one, same in zipped(f, whole):
            defined_with(one, same, box, tick)
    W_2, W_R, b_2, b_R, b_1 = *map(matrix, (w["W_2"], w["W_R"], [w["b_2"]], [w["b_R"]])), [exact(b) for b in w["b_1"]]
    worth, bias, heavy = W_2 * W_R, b_2 * W_R + b_R, absolute(W_2) * absolute(W_R)
    left = [{reads[j][0] for j in F if heavy[j, o]} for o in range(len(f))]
    streams = {k: stream(layer, k, box) for k in set[int]().union(*left)}
    sizes, spans, outer = absolute(b_2) * absolute(W_R) + absolute(b_R), list[tuple[float, float]](), list[Lane]()
    for o, g, h, shift, hinted in lanes:
        node: Node = tree("add", g, num(-exact(shift)))
        need(left[o], "there are more lanes than coordinates of the stream", UNCHECKED)
        k = min(left[o], key=lambda k: apart(streams[k], node, domain))
        left[o].remove(k)
        delta, difference, parts = bounded(streams[k], [node], domain, hinted, tick)
        with ctx.workprec(WORKING):
            spans.append(range_of(g, box, delta / 16, tick))
        top, own = exact(spans[-1][1]) - exact(shift) + exact(delta), [j for j in F if reads[j] == [k]]
        sizes[0, o] += sum((heavy[j, o] * max(top + b_1[j], ZERO) for j in own), ZERO)
        H = BentLine((fmpq(1), b_1[j] - exact(shift), worth[j, o], j) for j in own)
        outer.append(Lane(o, g, h, H, exact(delta), difference, parts))
    need(not any(left), "there are more coordinates of the stream than lanes", UNCHECKED)
    with ctx.workprec(WORKING):
        many, found = max(additions([row[m] for row in w["W_2"]], bool(b_2[0, m])) for m in M), Composed(f, [], [], [])
        for o, rest in enumerate(fixed):
            steps = 1 + many + additions([row[o] for row in w["W_R"]], bool(w["b_R"][o]))
            lost = layer.smallest * (len(F) + len(M) + 2) * (1 + sum(abs(W_R[m, o]) for m in M))
            found.rounding.append(layer.charge(steps) * sizes[0, o] + lost)
            found.low.append((bias[0, o] - rest).lower())
            found.high.append((bias[0, o] - rest).upper())
        for cells in SPREADS:
            try:
                lanes = [Outer(n, spans, len(f), lane, Spread(lane, cells, tick)) for n, lane in enumerate(outer)]
                return search(lanes, found, bound, tick)
            except Verdict:
                if cells == SPREADS[-1]:
                    raise
                seen_to_fail(layer, f, domain, bound)  # before more work is done
    raise AssertionError("the last spread returns or raises")


def apart(layer: Layer, node: Node, domain: Domain) -> float:
    """How far a layer is seen from a formula."""
    part = Part(Difference(layer, [node], domain.box, 1.0, 0), range(len(domain.box)), True, domain, 0.0)
    return max(up(abs(part.at(balls(x))[0])) for x in some_points(domain.box, 8))


def seen_to_fail(layer: Dense, f: list[Node], domain: Domain, bound: float) -> None:
    """Refute the claim, if it fails at one of some points."""
    width = 8 if layer.floats.double else 4
    for x in ([rounded(v, width) for v in x] for x in some_points(domain.box, 64)):
        far = (abs(v) - off > bound for v, _, off in errors_at(layer, f, domain, x))
        inside = all(a <= v <= b for v, (a, b) in zipped(x, domain.box)) and domain.contains(x, jumps_of(f))
        need(not (inside and any(far)), f"the error is above the claimed {bound!r}", box=[(v, v) for v in x])


# ═══ 6. Slopes and properties: derivatives of T, as values before ═══════════════════════════════════════════════════


class Duals(Jets):
    """Taylor models with those of their slopes along some axes behind them, n coefficients each.

    φ′(c + h) = φ′(c) + φ″(c)h + φ‴(somewhere)h²/2. A hinge has a slope between 0 and 1 where its sign is open.
    """

    def __init__(self, x: Sides, axes: Sequence[int], along: Sequence[int]) -> None:
        super().__init__(x, axes)
        self.own, self.along, self.n = Jets(x, axes), along, len(self.monomials)
        self.zeros = self.zeros * (1 + len(along))

    def cut(self, p: Sequence[Any]) -> list[Jet]:
        return [list(p[k : k + self.n]) for k in range(0, len(self.zeros), self.n)]

    def variable(self, i: int) -> Jet:
        steps = [self.own.constant(arb(int(i == k))) for k in self.along]
        return sum(steps, self.own.variable(i))

    def fold(self, table: Sequence[Sequence[Any]]) -> Jet:
        rows = [list(map(self.cut, table[k : k + self.n])) for k in range(0, len(self.zeros), self.n)]
        block = [[self.own.fold([row[b] for row in rows[a]]) for b in range(len(rows)) if not a or not b]
                 for a in range(len(rows))]  # fmt: skip
        return sum((combined(block[0][d], 1, block[d][0]) for d in range(1, len(rows))), block[0][0])

    def times(self, p: Jet, q: Jet) -> Jet:
        (u, *U), (v, *V), times = self.cut(p), self.cut(q), self.own.times
        return sum((combined(times(u, b), 1, times(a, v)) for a, b in zipped(U, V)), times(u, v))

    def ends(self, p: Jet) -> tuple[Any, Any]:
        return self.own.ends(p[: self.n])

    def apply(self, kind: str, p: Jet, q: Any = None) -> Jet:
        (u, *U), c = self.cut(p), p[0].mid()
        reach = sum(map(abs, u[1:]), (u[0] - c).abs_upper())
        a, last = expansion(kind, c, q), expansion(kind, c + within_ball(reach), q, 3)[3]
        slope = [a[1] + 2 * a[2] * (u[0] - c) + 3 * last * arb(0).union(reach * reach), *(2 * a[2] * k for k in u[1:])]
        return sum((self.own.times(slope, d) for d in U), self.own.apply(kind, u, q))

    def hinge(self, p: Jet) -> Jet:
        (u, *U), (low, high) = self.cut(p), self.ends(p)
        step = arb(1) if low > 0 else arb(0) if high < 0 else arb(0).union(arb(1))
        return sum(([step * k for k in d] for d in U), self.own.hinge(u))


class Slopes:
    """∂_i^n T_o − ∂_i^n f_o as output o·D + i, n = 1 or 2, otherwise as `Difference` has T − f. T is the real function of the
    weights, so nothing is rounded. A layer with hinges has no second derivatives.
    """

    def __init__(self, layer: Layer, f: list[Node], D: int, n: int = 1) -> None:
        need(n == 1 or not layer.hinges, "second derivatives of a layer with kinks", UNCHECKED)
        sums = [Sum([arb(k if n == 1 else 0)] + [arb(0)] * D) for line in layer.lines for k in line[1:]]
        for s, (node, i) in zipped(sums, product(f, range(D))):
            s.add(arb(-1), reduce(slope_of, [i] * n, node))
        bends = [[(scale, tree("max", *map(line_node, forms))) for scale, forms in s.kinks] for s in sums]
        self.n, self.lines, self.steps = n, [s.line for s in sums], set[int]()
        self.terms: list[Terms] = [s.terms + more for s, more in zipped(sums, bends)]
        for scales, (start, *line) in layer.hinges:  # max(0, line), which may bend within `tiny` of where it seems to
            bend = line_node([arb(start) + within_ball(arb(layer.tiny)), *line])
            above: Node = ("cmp", (bend, NOTHING), operator.gt)
            self.steps.add(id(above))
            for o, i in ((o, i) for o, i in product(range(len(scales)), range(D)) if scales[o] and line[i]):
                self.terms[o * D + i].append((arb(scales[o] * line[i]), ("where", (ONE, NOTHING), above)))
        moving = [h for h in layer.heads.values() if any(k for row in h.values for v in row for k in v)]
        self.heads = [head.in_balls() for head in moving]
        lost = arb(layer.lost if n == 1 else layer.bent)
        self.low, self.high, self.rounding = [-lost for _ in sums], [lost for _ in sums], [arb(0) for _ in sums]


AnyDifference = Difference | Slopes


class SlopePart(Part):
    """As `Part`, for derivatives. A = Σ w_t v_t, where v_t has the slopes u_t and the scores have the slopes k_t, has

        ∂_i A = Σ_t w_t u_ti + Σ_t w_t v_t k_ti − (Σ_t w_t v_t)(Σ_t w_t k_ti)
              = Σ_t w_t u_ti + Σ_t Σ_s w_t w_s (v_t − v_s)(k_ti − k_si)/2.

    On an ellipse Σ|w_t| ≤ φ, φ ≥ 1, and |v_t − v_s| ≤ 2 max|v_t − c|. So, as Σ w_t = 1, with κ_i the spread of k_ti,
    |∂_i A − c_i| ≤ φ²(max|u_ti − c_i| + κ_i·max|v_t − c|). Coordinates beyond the group have no part in a head. Once more,

        A″ = 2 Cov(u, k) + Σ_t w_t(v_t − A)(k_t − k̄)² = 2(mean uk − ū k̄) + mean vk² − 2k̄ mean vk − A mean k² + 2A k̄².

    With v, u and k relative to their middles, |k| ≤ κ/2, each of these means is at most φ times its summands, so
    |A″| ≤ φ³(2κ max|u − c| + 3/2·κ² max|v − c|).
    """

    def __init__(self, g: Slopes, axes: Sequence[int], first: bool, domain: Domain, share: float) -> None:
        self.order = g.n + 1
        super().__init__(g, axes, first, domain, share)
        # T may bend anywhere, f near its kinks alone
        self.jumps = [jump for jump in self.jumps if id(jump) not in g.steps]

    def reaches(self, o: int, own: list[float], spread: tuple[float, ...]) -> Iterator[tuple[int, list[float]]]:
        for n, (i, k) in enumerate(zipped(self.axes, spread), 1):
            of_values, of_slopes = (k, 1.0) if self.order == 2 else (1.5 * k * k, 2 * k)
            most = (own[0] * of_values + own[n] * of_slopes) * UP
            yield o * len(self.domain.box) + i, [most, *(r * of_values * UP for r in own[1:])]

    def layer_at(self, grid: list[list[Any]], tilt: Affine | None = None) -> tuple[list[list[Any]], list[Any]]:
        """∂_i^n T on a grid: A(x + te_i) = Σ w_t e^(k_t t)(v_t + u_t t)/Σ w_t e^(k_t t), divided as power series in t."""
        found, zeros = [line_on(line, grid) for line in self.lines], [arb(0)] * len(grid)
        everything = [tuple(range(len(grid)))] * len(self.averages)
        for (mean, _, values, _), (scores, _) in zipped(self.means(grid, everything), self.averages):
            heights = [mean(row) for row in values]
            for n, i in enumerate(self.axes):
                keys = [s[n + 1] - scores[0][n + 1] for s in scores]
                powers = [[power(k, j) / math.factorial(j) for k in keys] for j in range(self.order)]
                under = [mean([[p, *zeros] for p in row]) for row in powers[1:]]
                for o, row in enumerate(values):
                    series = [heights[o]]
                    for before, here in pairwise(powers):
                        both = zipped(before, here, row)
                        tops = mean([[q * v[0] + p * v[n + 1], *(q * k for k in v[1:])] for p, q, v in both])
                        for a, b in zip(reversed(series), under, strict=False):
                            tops = [t - p * q for t, p, q in zipped(tops, a, b)]
                        series.append(tops)
                    p, many = o * len(self.domain.box) + i, math.factorial(self.order - 1)
                    found[p] = [f + many * a for f, a in zipped(found[p], series[-1])]
        return found, []


class Tangents(Dense):
    """∂_i T_o − ∂_i f_o for the axes `along`, at o·n + its place among these n, T the real function: nothing is rounded."""

    def __init__(self, layer: Dense, f: list[Node], domain: Domain, along: Sequence[int]) -> None:
        vars(self).update(vars(layer))
        self.along = along
        self.on([slope_of(node, i) for node in f for i in along], domain)
        self.lines = [None] * len(self.f)
        self.low = self.high = self.rounding = [arb(0) for _ in self.f]
        self.floats, self.u, self.smallest = Floats(ZERO), arb(0), arb(0)

    def sizes(self, stage: Stage) -> list[Any]:
        return [arb(0)] * stage[0].ncols()

    def linear(self, x: Stage, name: str, *biases: Any) -> tuple[Stage, list[Any]]:
        found, zeros = x[0] * self.m[name].W, [arb(0)] * self.m[name].W.ncols()
        for j, numbers in enumerate(zipped(*(b for b in biases if b is not None))):
            found[0, j] += summed(map(arb, numbers))
        return (found, zeros), zeros

    def average(self, jets: Jets, q: Stage, keys: list[Stage], values: list[Stage]) -> Stage:
        """As `Dense` has it; no token is left out."""
        return self.mixed(jets, self.scores(jets, q, keys), values)[0], values[0][1]

    def fed_forward(self, jets: Jets, row: Stage, z: Stage) -> tuple[Any, list[Any]]:
        return self.one_by_one(jets, row, z)

    def followed(self, x: Sides) -> tuple[Jets, list[Jet], list[Any]]:
        duals = Duals(x, self.axes, self.along)
        T = self.answers([duals.variable(i) for i in self.axes], duals)[0]
        return duals.own, [jet for t in T for jet in duals.cut(t)[1:]], self.low


def slope_of(node: Node, i: int) -> Node:
    """∂_i of a formula, by the chain rule. Where it has no slope, a factor has no finite enclosure, or a `where` jumps."""
    kind, u, extra = node
    if i not in variables(node):
        return NOTHING
    if kind in JUMPS:
        return tree("floor'", *u)
    if kind in KINKS:
        u, relation = (u[0], minus(u[0])) if kind == "abs" else u, operator.lt if kind == "min" else operator.gt
        if kind == "where":
            return ("where", tuple(slope_of(a, i) for a in u), extra)
        found = slope_of(u[0], i)
        for n in range(1, len(u)):
            so_far: Node = ("max" if kind == "abs" else kind, u[:n], None) if n > 1 else u[0]
            found = ("where", (found, slope_of(u[n], i)), ("cmp", (so_far, u[n]), relation))
        return found
    outer: list[Node] = [ONE] * len(u)
    if kind == "mul":
        outer = [product_of([*u[:n], *u[n + 1 :]]) for n in range(len(u))]
    elif kind in ("pow", "rpow"):
        outer = [tree("mul", num(extra), u[0] if extra == 2 else (kind, u, extra - 1))]
    elif kind in FUNCTIONS:
        outer = [substituted(template(FUNCTIONS[kind].slope, "u", "y"), (u[0], node))]
    elif kind not in ("add", "var"):
        outer = [substituted(template(text, "u", "v"), u) for text in RULES[kind].split(";")]
    terms = [product_of([a, slope_of(b, i)]) for a, b in zipped(outer, u) if i in variables(b)]
    return tree("add", *terms) if len(terms) > 1 else terms[0] if terms else ONE


def unbent(node: Node, x: Sides) -> Node:
    """The formula without the kinks of which one branch counts on all of a box."""
    node = (node[0], tuple(unbent(a, x) for a in node[1]), node[2])
    choices = choices_of(node, x) if node[0] in KINKS else []
    if len(choices) != 1:
        return node
    n = choices[0][id(node)]
    if node[0] in JUMPS:
        return num(fmpq(n))
    return minus(node[1][0]) if node[0] == "abs" and n else node[1][n]


def read_slope(record: Record) -> tuple[float, float, float] | None:
    """(tolerance, bound, observed) of the slopes, if something is claimed about them."""
    about = record.get("slope")
    need(about is None or isinstance(about, dict), "the record of the slopes is malformed")
    if about is None:
        return None
    need(set(about) == {"tolerance", "bound", "observed"}, "the record of the slopes is malformed")
    return read_number(about, "tolerance"), read_number(about, "bound", INF), read_number(about, "observed", INF)


def bounded_slopes(layer: Any, f: list[Node], domain: Domain, bound: float, tick: Tick) -> None:
    """Prove |∂_i T − ∂_i f| ≤ bound over the domain, for every coordinate and output; another verdict is raised."""
    f, D = [unbent(node, Sides(domain.box)) for node in f], len(domain.box)
    kinks = [n[0] for node in f for n in below(node) if n[0] in KINKS and variables(n)]
    need(domain.margin or not kinks, f"the formula has {'/'.join(kinks)}, so kinks or jumps, and no margin", UNCHECKED)
    if isinstance(layer, Dense):
        with ctx.workprec(WORKING):
            part = Tangents(layer, f, domain, range(D))
            claim_exists(domain, part.axes, part.jumps, tick)
            search([part], part, bound, tick)
        return
    need(layer.sure, "the sign of a unit of the network is not sure", UNCHECKED)
    g = Slopes(layer, f, D)
    with ctx.workprec(WORKING):
        parts = parts_of(g, domain, bound)
        try:
            for one in parts:
                claim_exists(domain, one.axes, one.jumps, tick)
            search(parts, g, bound, tick)
        except Verdict as found:
            if found.verdict == UNCHECKED:  # a tiny bound leaves no room for a proof, but a point may refute it
                steeper_somewhere(parts, g, domain, bound)
            raise


def steeper_somewhere(parts: list[SlopePart], g: Slopes, domain: Domain, bound: float) -> None:
    """Refute a claim about slopes, if it fails at one of some points."""
    jumps = [jump for part in parts for jump in part.jumps]
    for x in some_points(domain.box, 16):
        rows = [part.at(balls([x[i] for i in part.axes])) for part in parts]
        errors = [summed(column) for column in zipped(*rows)]
        least = [greatest([e + a, -e - b]) for e, a, b in zipped(errors, g.low, g.high)]
        inside = all(a <= v <= b for v, (a, b) in zipped(x, domain.box)) and domain.contains(x, jumps)
        failing = inside and any(e > bound for e in least)
        need(not failing, f"|∂T − ∂f| is above the claimed {bound!r}", box=[(v, v) for v in x])


class Property(NamedTuple):
    """∂^order T along an axis lies below (side 0) or above (side 1) numbers, for all outputs; not so, if `denied`."""

    text: str
    order: int
    axis: int
    limits: list[tuple[int, Node]]
    denied: bool


def read_property(text: Any, names: list[str]) -> Property:
    """What a line such as "increasing in x1", "Lipschitz 3 in x2" or "not T <= 2*pi" says."""
    line = " ".join(text.split()) if isinstance(text, str) else ""
    denied, plain = line[:4].lower() == "not ", re.sub("^not ", "", line, flags=re.IGNORECASE)
    axis, order, limits = names[0], 0, list[tuple[int, Node]]()
    if found := re.fullmatch(r"(increasing|decreasing|convex|concave) in (.+)", plain, re.IGNORECASE):
        (order, side), axis = SHAPES[found[1].lower()], found[2]
        limits = [(side, NOTHING)]
    elif found := re.fullmatch(r"lipschitz (.+?) in (.+)", plain, re.IGNORECASE):
        c, order, axis = Reader([], found[1]).node(), 1, found[2]
        limits = [(0, c), (1, minus(c))]
    elif found := re.fullmatch(r"T ?(<=|>=|<|>|≤|≥) ?(.+)", plain):
        limits = [(int(found[1] in (">", ">=", "≥")), Reader([], found[2]).node())]
    known = limits and axis in names and all(value(c, []).is_finite() for _, c in limits)
    need(known, f"the property {line[:60]!r} is not understood", UNCHECKED)
    return Property(line, order, names.index(axis), limits, denied)


def proved_property(layer: Any, said: Property, domain: Domain, tick: Tick) -> None:
    """Prove that T, the real function of the weights, has a property; another verdict is raised."""
    broken: Verdict | None = None
    for side, c in said.limits:
        try:
            kept_below(layer, said, side, c, replace(domain, margin=0.0), tick)
        except Verdict as found:
            if found.verdict != "INVALID":
                raise replace(found, reason=f"{said.text!r}: {found.reason}") from None
            broken = found
            break
    box = broken.box if broken and not said.denied else None
    need((broken is not None) == said.denied, f"{said.text!r} is claimed, and is false", box=box)


def kept_below(layer: Any, said: Property, side: int, c: Node, domain: Domain, tick: Tick) -> None:
    """Prove that derivatives of T of an order are at most c everywhere, or at least c (side 1); INVALID where one is not.

    How close boxes have to come is told by points: the room that they leave decides what interpolation may cost.
    """
    steps = 2 * len(domain.box) if said.order and isinstance(layer, Layer) else 2
    asked = slice(side + (2 * said.axis if steps > 2 else 0), None, steps)
    room = 0.0
    if isinstance(layer, Layer):
        room = room_left(*beside(layer, said, c, domain, 0, 0.0), asked, domain, not said.order or domain.where is None)
    for reading in (1, 0) if isinstance(layer, Layer) and not said.order else (0,):
        g, parts = beside(layer, said, c, domain, reading, room)
        try:
            with ctx.workprec(WORKING):
                search(parts, g, 0.0, tick, asked)
            return
        except Verdict as found:
            if not reading or found.verdict != UNCHECKED:
                raise


def beside(layer: Any, said: Property, c: Node, domain: Domain, reading: int, room: float) -> tuple[Any, list[Any]]:
    """(∂^order T − c, its parts), as `search` has them."""
    f = [product_of([c, var(said.axis)]) if said.order == 1 else c] * len(layer.lines)
    if isinstance(layer, Dense):
        need(said.order < 2, "second derivatives of a layer that is no sum of softmax averages", UNCHECKED)
        with ctx.workprec(WORKING):
            part = Tangents(layer, f, domain, [said.axis]) if said.order else layer.on(f, domain)
        return part, [part]
    need(layer.sure or not said.order, "the sign of a unit of the network is not sure", UNCHECKED)
    g: AnyDifference = Difference(layer, f, domain.box, room, reading)
    g = Slopes(layer, f, len(domain.box), said.order) if said.order else g
    return g, parts_of(g, domain, room, said.axis if said.order else None)


def room_left(g: AnyDifference, parts: list[Part], asked: slice, domain: Domain, strict: bool) -> float:
    """How far below 0 the ends of g that are asked for stay at some points, from which they are followed uphill.

    A point at which one of them is above 0 refutes the claim, if `strict`.
    """

    def heights(part: Part, x: list[float]) -> list[Any]:
        return [v for t in part.at(balls(x)) for v in (t, -t)][asked]

    def uphill(part: Part, k: int, x: list[float], best: Any) -> tuple[list[float], Any]:
        step = 0.125
        while step > 1e-4:
            moves = [(i, s * step * (b - a)) for i, (a, b) in enumerate(part.box) for s in (-1, 1)]
            near = [[*x[:i], min(max(x[i] + by, part.box[i][0]), part.box[i][1]), *x[i + 1 :]] for i, by in moves]
            tops = [(y, heights(part, y)[k]) for y in near if domain.where is None or domain.contains(y, [])]
            y, top = max([*tops, (x, best)], key=lambda t: float(t[1]))
            x, best, step = (y, top, step) if top > best else (x, best, step / 4)
        return x, best

    rooms, sizes, tried = list[float](), [1e-290], list[list[tuple[list[float], list[Any]]]]()
    with ctx.workprec(WORKING):
        for part in parts:
            points = [[x[i] for i in part.axes] for x in some_points(domain.box, 32)]
            points += [list(x) for x in product(*part.box)] if len(part.box) <= 4 else []
            tried.append([(x, heights(part, x)) for x in points if domain.where is None or domain.contains(x, [])])
        for k, end in enumerate(range(2 * len(g.lines))[asked] if all(tried) else []):
            total, where = -g.high[end // 2] if end % 2 else g.low[end // 2], dict[int, float]()
            for part, some in zipped(parts, tried):
                start = max(((x, here[k]) for x, here in some), key=lambda t: float(t[1]))
                x, best = uphill(part, k, *start)
                total, where = total + best, where | dict(zipped(part.axes, x))
                sizes.append(abs(float(best)))
            found = [(where[i], where[i]) for i in sorted(where)]
            need(not (strict and total > 0), "a point shows it", box=found)
            rooms.append(-float(total))
    return max(min(rooms, default=0.0) / 2, 1e-9 * max(sizes))


# ═══ 7. Tokens and sequences: programs on tokens, layers for all lengths, language models ═══════════════════════════


def project(row: Sequence[float], W: Any) -> list[int]:
    """row·W, all whole numbers."""
    found = [0] * len(W[0])
    for v, weights in ((int(v), weights) for v, weights in zipped(row, W) if v):
        found = [a + v * int(k) if k else a for a, k in zipped(found, weights)]
    return found


class Rounded:
    """The numbers of a layer between ends, each with a bound on how far the computed one is off."""

    def __init__(self, w: Record, u: Any) -> None:
        """Weights between 2^±400, in float32 2^±40: underflow moves a score by less than u/1000. What is behind is charged."""
        self.w, self.u, self.floats, self.columns = w, u, Floats(u), dict[str, Any]()
        self.tiny, self.gamma = self.floats.smallest, self.floats.gamma
        self.far = far = 2 ** (400 if self.floats.double else 40)
        least = {"W_2": 0.0}.get
        odd = [k for k, t in w.items() if any(v and not least(k, 1 / far) <= abs(v) <= far for v in flattened(t))]
        need(not odd, f"numbers of {', '.join(sorted(odd))} are beyond {far:.0e} or its inverse", UNCHECKED)

    def spread(self, m: int) -> Any:
        """η: weights of tokens that lead are (1 + η)/k, among m tokens.

        Exponentials of the k are 1 ± κ, κ = 4u, those of others together less than u. A sum of m positive numbers is off by
        γ_m, a reciprocal and a product by two roundings more.
        """
        u, kappa = self.u, 4 * self.u
        more = (1 + kappa) * (1 + u) ** 2 / ((1 - kappa) * (1 - self.gamma(m))) - 1
        return above(max(more, 1 - (1 - kappa) * (1 - u) ** 2 / ((1 + kappa + u) * (1 + self.gamma(m)))))

    def linear(self, x: Sequence[Any], name: str, bias: str = "", some: Sequence[int] | None = None) -> list[Any]:
        """(low, high, error) of x·W + b from those of x, of all columns or of some; sums in any order."""
        if name not in self.columns:
            W, b = self.w[name], self.w[bias] if bias else [0.0] * len(self.w[name][0])
            table = [[(m, exact(row[j])) for m, row in enumerate(W) if row[j]] for j in range(len(b))]
            rough = [not all(binary(k) for _, k in terms) for terms in table]
            self.columns[name] = list(zipped(table, map(exact, b), rough))
        found = []
        for j in range(len(self.columns[name])) if some is None else some:
            table, start, rough = self.columns[name][j]
            low = high = start
            off, sizes, summands, underflows = ZERO, abs(start), int(bool(start)), 0
            for m, k in table:
                a, b, e = x[m]
                if a is b and not a and not e:
                    continue  # adding 0 is exact
                p = k * a
                q = p if a is b else k * b
                known = a is b and not e and abs(p) >= self.tiny  # one number, and no underflow
                underflows += not (known or lossless(k))
                low, high = (low + p, high + q) if p <= q else (low + q, high + p)
                sizes, summands = sizes + max(abs(p), abs(q)), summands + 1
                if e:
                    off, sizes = off + abs(k) * e, sizes + abs(k) * e
            need(sizes * sizes * self.tiny < 1, "numbers may overflow", UNCHECKED)
            off += underflows * self.tiny
            if summands == 2 and not rough:
                off += self.u * (max(abs(low), abs(high)) + off)
            elif summands:
                off += self.gamma(summands - 1 + rough) * (sizes + underflows * self.tiny)
            found.append((low, low if low == high else high, off))
        return found


class Levels(Rounded):
    """Heads over tokens of whole numbers, no residual: scores without rounding, of which the best ones count.

    The stream of token t at position j is W_E[t] + b_E + P[j], so the score of (t', j) for a query (t, i) is the sum of
    four tables, A[t, t'] + B[t, j] + C[i, t'] + D[i, j], that of a special token a sum of two. All is whole, keys are
    multiples of a power of two: sums are exact, partial ones too, as long as sizes add up to at most that power/u.
    With `numbers`, inputs are numbers in place of unit vectors, and no part of queries and keys (`copied`).
    """

    def __init__(self, c: Record, w: Record, u: Any, numbers: bool = False, residual: bool = False) -> None:
        super().__init__(w, u)
        self.c, self.n, M = c, c["tokens"], c["d_model"]
        one = c["residual"] == residual and not c["projection_bias"] and c["activation"] == "relu"
        plain = not any(flattened(w["shift"])) and {*flattened(w["scale"])} == {1.0}
        need(one and plain and c["readout"] != "mean", "the layer is no program on whole numbers", UNCHECKED)
        kinds = "QK" if numbers else "QKV"
        heard = [any(any(W[m]) for k in kinds for W in w[f"W_{k}"]) for m in range(M)]  # by the heads
        given = [] if numbers else w["W_E"], w.get("P", []), w.get("S", []), [w["b_E"]]
        kept = [[[v if on else 0.0 for v, on in zipped(row, heard)] for row in rows] for rows in given]
        words, placed, special, (shared,) = kept
        whole = {k: flattened(w[f"W_{k}"]) for k in kinds} | {"": flattened([words, placed, special, shared])}
        need(all(v.is_integer() for row in whole.values() for v in row), "codes are no whole numbers", UNCHECKED)
        words, placed = words or [[0.0] * M], placed or [[0.0] * M] * self.n
        codes = [plus(shared, row) for row in placed]
        parts = [*words, [0.0] * M], [shared], placed, [*special, [0.0] * M]
        wide = [sum(max(abs(int(row[m])) for row in rows) for rows in parts) for m in range(M)]
        self.rows = {k: [[[project(row, W) for row in rows] for rows in (words, codes, special)] for W in w[f"W_{k}"]]
                     for k in kinds}  # fmt: skip
        self.known = dict[Any, Any]()
        unit, most = min((int(v) & -int(v) for v in whole["K"] if v), default=1), int(1 / u)
        for h in range(c["heads"]):
            query, key, *own = (project(wide, [list(map(abs, row)) for row in w[f"W_{k}"][h]]) for k in kinds)
            score = sum(map(operator.mul, query, key))
            fits = max(*wide, *query, *flattened(own)) <= most and max(*key, score) <= most * unit
            need(fits, "scores may be rounded", UNCHECKED)
        self.root = math.isqrt(c["d_k"])
        need(self.root**2 == c["d_k"] and binary(fmpq(self.root)), "scores may be rounded", UNCHECKED)

    def query(self, h: int, t: int, i: int) -> tuple[int, ...]:
        """What token t at position i asks; t = −1: the output token."""
        words, codes, special = self.rows["Q"][h]
        return tuple(special[-self.c["output_tokens"]] if t < 0 else map(operator.add, words[t], codes[i]))

    def scores(self, h: int, q: tuple[int, ...]) -> Any:
        """What a query gives to words, to positions, which are added, and to special tokens."""
        if (h, q) not in self.known:
            used = [(i, v) for i, v in enumerate(q) if v]
            self.known[h, q] = [[sum(v * k[i] for i, v in used) for k in keys] for keys in self.rows["K"][h]]
        return self.known[h, q]

    def reads(self, h: int, q: tuple[int, ...], ranges: Any, gap: int = MASKED) -> list[tuple[int, list[int]]]:
        """Where all the weight may be: (position, tokens that it holds then), (−1 − k, []) for special token k.

        ranges: (first, end, tokens that these positions can hold, whether they are there). Something sure has a score of
        `floor` or more, so what lies `gap` below that has no weight. Of all else, any two at different places lie `gap` apart.
        """
        words, codes, special = self.scores(h, q)
        far, parts, sure = gap * self.root, list[Any](), list(special)
        for a, b, some, there in ranges:
            if a < b and some:
                levels, top = dict[int, list[int]](), max(codes[a:b])
                for t in some:
                    levels.setdefault(words[t], []).append(t)
                parts.append((a, b, levels, top + max(levels)))
                sure += [top + min(levels)] if there else []
        need(sure, "no token is sure to be there", UNCHECKED)
        least = max(sure) - far
        found = [(s, -1 - k, list[int]()) for k, s in enumerate(special)]
        for a, b, levels, top in parts:
            if top > least:
                found += [(codes[j] + s, j, some) for j in range(a, b) for s, some in levels.items()]
        found = sorted((one for one in found if one[0] > least), key=operator.itemgetter(0, 1))
        for n, (score, j, _) in enumerate(found):
            for other, k, _ in found[n + 1 :]:
                if other - score >= far:
                    break
                need(k == j, "more than one token may lead", UNCHECKED)
        return [(j, some) for _, j, some in found]

    def averaged(self, h: int, k: int, sums: Sequence[int], sizes: Sequence[int]) -> list[tuple[Any, Any]]:
        """(mean, error) of every column of head h where k tokens lead whose values have these sums, and sums of sizes.

        Products and their sum add γ_(m+1) to weights, unless a special token alone has a value, a power of two. Others have
        weights ≤ 4·tiny, tiny the least normal number.
        """
        V = self.rows["V"][h]
        m, found = self.n + len(V[2]), list[tuple[Any, Any]]()
        eta = self.spread(m)
        for a, (total, large) in enumerate(zipped(sums, sizes)):
            special = [row[a] for row in V[2] if row[a]]
            alone = not any(row[a] for row in V[0] + V[1]) and len(special) == 1 and binary(fmpq(special[0]))
            most = sum(max((abs(row[a]) for row in rows), default=0) for rows in V)
            masked = fmpq(0 if (alone and large) or k == m else 8 * m * most) * self.tiny
            off = eta if alone else (1 + eta) * (1 + self.gamma(m + 1)) - 1
            found.append((fmpq(total, k), off * fmpq(large, k) + masked))
        return found

    def hidden(self, head: Sequence[tuple[Any, Any]], some: Sequence[int] | None = None) -> list[Any]:
        """(low, high, error) of what units see, for columns of the heads between these ends."""
        return self.linear(self.linear([(a, b, ZERO) for a, b in head], "W_O"), "W_1", "b_1", some)

    def behind(self, units: list[Any], idle: list[bool]) -> list[Any]:
        """(low, high, error) of every output; what units see, and which are 0 all the time."""
        z = list[Any]()
        for (a, b, e), dead in zipped(units, idle):
            low = max(a, ZERO)
            z.append((ZERO,) * 3 if dead else (low, low if b is a else max(b, ZERO), e))
        return self.linear(self.linear(z, "W_2", "b_2"), "W_R", "b_R")

    def knots(self, a: int, low: Any, high: Any, some: Sequence[int] | None = None) -> list[Any]:
        """Where units switch between two values of column a of the heads, all others being 0."""
        if ("knots", a) not in self.known:
            line, b = [(fmpq(k == a),) * 2 for k in range(len(self.w["W_O"]))], self.w["b_1"]
            chosen = range(len(b)) if some is None else some
            steep = zipped(self.hidden(line, chosen), [exact(b[j]) for j in chosen])
            self.known["knots", a] = sorted({-b / (k[0] - b) for k, b in steep if k[0] != b})
        found = self.known["knots", a]
        return list(found[bisect_right(found, low) : bisect_left(found, high)])

    def answers(self, head: list[tuple[Any, Any]]) -> list[Any]:
        """(low, high, error) of every output where the heads' columns are between these ends.

        One column is followed exactly: between knots of the units the network is affine in it, and what rounding adds is
        convex, so that both are extreme at the ends and at knots. Several are enclosed one by one.
        """
        ends, more = ([[(v, v)] for v in head[0]], self.knots(0, *head[0])) if len(head) == 1 else ([head], [])
        seen = [self.hidden(point) for point in (*ends, *([(v, v)] for v in more))]
        idle = [all(b + e <= 0 for _, b, e in units) for units in zipped(*seen[: len(ends)])]
        rows = [self.behind(units, idle) for units in seen]
        return [(min(v[0] for v in o), max(v[1] for v in o), max(v[2] for v in o)) for o in zipped(*rows)]

    def lane(self, a: int, low: Any, high: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
        """(point, value, error, size) of what the units of column a add up to, at ends and knots.

        It is for heads of one column each, whose units see no other, and for one output that is nothing but their sum.
        """
        w = self.w
        if ("lanes",) not in self.known:
            out = [m for m, row in enumerate(w["W_R"]) if row[0]]
            seen = [[m for m, v in enumerate(row) if v] for row in w["W_O"]]
            ways = [{k for k, ms in enumerate(seen) for m in ms if w["W_1"][m][j]} for j in range(len(w["b_1"]))]
            sole = self.c["d_v"] == self.c["features_out"] == len(out) == 1 and w["W_R"][out[0]][0] == 1
            sole = sole and not w["b_R"][0] and not w["b_2"][out[0]] and all(len(way) <= 1 for way in ways)
            need(sole, "the network is no sum over the heads", UNCHECKED)
            height = [exact(row[out[0]]) for row in w["W_2"]]
            units = [[j for j, way in enumerate(ways) if way == {k} and height[j]] for k in range(self.c["heads"])]
            idle = [j for j, way in enumerate(ways) if not way and height[j] and w["b_1"][j] > 0]
            need(not idle, "a unit is constant", UNCHECKED)
            self.known["lanes",] = units, height
        units, height = self.known["lanes",]
        some, zeros = units[a], [(ZERO, ZERO)] * len(w["W_O"])
        points = [low, high, *self.knots(a, low, high, some)]
        at_points = [self.hidden([*zeros[:a], (v, v), *zeros[a + 1 :]], some) for v in points]
        idle = [all(b + e <= 0 for _, b, e in pair) for pair in zipped(*at_points[:2])]
        for v, row in zipped(points, at_points):
            held = zipped((height[j] for j in some), row, idle)
            parts = [(k, max(b, ZERO), e) for k, (_, b, e), dead in held if not dead]
            off = sum((abs(k) * e for k, _, e in parts), ZERO) + len(parts) * self.tiny
            value = sum((k * b for k, b, _ in parts), ZERO)
            yield v, value, off, sum((abs(k) * b for k, b, _ in parts), off)

    def summed(self) -> Any:
        """What the sum of all units costs, per unit of its size."""
        rough = not all(map(binary, filter(None, self.known["lanes",][1])))
        return self.gamma(sum(map(len, self.known["lanes",][0])) + rough)


def carried(levels: Levels, reach: Any) -> int:
    """The coordinate of the stream that numbers |x| ≤ reach enter as they are, where T is the head's average of that, to the bit.

    Behind the head every sum that counts has one summand that is not 0, times 1, so that nothing is rounded: value, W^O, relu(z)
    − relu(−z), read-out. All weights there are 0 or ±1; other sums have at most as many summands as a column has such.
    """
    c, w = levels.c, levels.w
    names, need_plain = ("W_E", "W_V", "W_O", "W_1", "W_2", "W_R"), "the layer does not pass numbers on"
    ones = {*flattened([w[k] for k in names])} <= {0.0, 1.0, -1.0}
    plain = ones and c["features_in"] == c["features_out"] == c["heads"] == 1
    behind = (w["W_V"][0], *map(w.get, names[2:]))
    wide = math.prod(max(sum(map(bool, column)) for column in zipped(*rows)) for rows in behind)
    need(16 * wide * (reach + levels.far) * levels.tiny < 1, "numbers may overflow", UNCHECKED)
    need(plain and not any(flattened([w[k] for k in ("b_1", "b_2", "b_R")])), need_plain, UNCHECKED)

    def sole(rows: Any, j: int, one: float = 1.0) -> int:
        """The row of the one number in a column that is not 0."""
        found = [i for i, row in enumerate(rows) if row[j]]
        need(len(found) == 1 and rows[found[0]][j] == one, need_plain, UNCHECKED)
        return found[0]

    ins = [m for m, v in enumerate(w["W_E"][0]) if v]
    out = sole(w["W_R"], 0)
    pair = sorted((row[out], j) for j, row in enumerate(w["W_2"]) if row[out])
    need(len(ins) == 1 and [v for v, _ in pair] == [-1.0, 1.0] and w["W_E"][0][ins[0]] == 1, need_plain, UNCHECKED)
    seen, same = sole(w["W_1"], pair[1][1]), sole(w["W_1"], pair[0][1], -1.0)
    touched_by = [[row[ins[0]] for row in (*w.get("P", []), *w.get("S", []))], w["b_E"][ins[0]]]
    alone = seen == same and sole(w["W_V"][0], sole(w["W_O"], seen)) == ins[0] and not any(flattened(touched_by))
    need(alone, need_plain, UNCHECKED)
    return ins[0]


def copied(levels: Levels, places: list[int], sources: list[Any], reach: Any, lengths: bool = False) -> Verdict:
    """VALID if T is numbers |x| ≤ reach that are moved, to the last bit, if exp(0) = 1 and exp(s) = 0 for s ≤ −800.

    sources: the position that each position reads, None for 0, with `lengths` also where the source is past the end. One
    token leads and so has weight 1, exactly; no code, bias, query or key touches the number (`carried`).
    """
    n, none = levels.n, "the layer does not copy numbers"
    X = carried(levels, reach)
    touched_by = [levels.w["W_Q"][0][X], levels.w["W_K"][0][X]]
    plain = levels.c["readout"] == "position" and places == list(range(n)) and not any(flattened(touched_by))
    need(plain, none, UNCHECKED)
    for i, j in enumerate(sources):
        q, there = levels.query(0, 0, i), j is not None and j < n
        cases = [([(0, n, [0], True)], there)]
        if lengths:
            cases = [([(0, max(i, j or 0) + 1, [0], True), (max(i, j or 0) + 1, n, [0], False)], True)] if there else []
            if not there or (j or 0) > i:
                cases += [([(0, i + 1, [0], True), (i + 1, j if there else n, [0], False)], False)]
        for ranges, present in cases:
            found = levels.reads(0, q, ranges, 800)
            need(len(found) == 1, none, UNCHECKED)
            right = found[0][0] == j if present else found[0][0] < 0
            need(right, f"output {i + 1} is another number than the entry says")
    return Verdict("VALID", "T = f exactly, if exp(0) = 1 and exp(s) = 0 for s ≤ −800", None, 0.0)


class Program(NamedTuple):
    """An entry on tokens: numbers per answer, tokens, the longest sequence; with `lengths` all shorter ones too."""

    name: str
    own: dict[str, int]
    width: int
    tokens: int
    n: int
    lengths: bool

    @property
    def whole(self) -> bool:
        return self.name in ("parity", "majority")

    def key(self, t: int) -> int:
        """What matters of a token where one is asked about."""
        if self.name == "look_up":
            many = self.own["keys"] * self.own["values"]
            return t // self.own["values"] if t < many else t - many
        return t if self.name in ("histogram", "first_occurrence", "induction", "composition") else 0

    def answer(self, token: int | None) -> tuple[int, ...]:
        """The unit vector of the token that is read; None is "none"."""
        many = self.own.get("values", self.own.get("vocabulary", self.width))
        k = self.width - 1 if token is None else token % many
        return tuple(int(i == k) for i in range(self.width))

    def cases(self, t: int, i: int | None) -> Iterator[tuple[Any, Any]]:
        """All that sequences can be like for token t at position i, or at any: (ranges, the answer or where it is read).

        Ranges are as in `Levels.reads`; what a case leaves out of what is known makes it larger, not wrong.
        """
        n, every, same = self.n, range(self.tokens), [v for v in range(self.tokens) if self.key(v) == self.key(t)]
        others, last, later = [v for v in every if v not in same], n - 1 if i is None else i, not self.lengths
        none = self.answer(None)
        match self.name:
            case "first_occurrence":
                for p in range(last + 1):
                    yield [(0, p, others, True), (p, p + 1, same, True), (p + 1, n, every, later)], (p,)
            case "copy_where":
                V = self.own["vocabulary"]
                for p in range(n):
                    yield [(0, p, every[:V], True), (p, p + 1, every[V:], True), (p + 1, n, every, later)], p
                yield [(0, n, every[:V], later)], none
            case "look_up":
                many = self.own["keys"] * self.own["values"]
                writes, rest = [v for v in same if v < many], [v for v in every if v >= many or v not in same]
                for p in range(last + 1):
                    yield [(0, p, every, True), (p, p + 1, writes, True), (p + 1, last + 1, rest, False)], p
                yield [(0, last + 1, rest, False)], none
            case "reverse" if i is not None:
                for m in range(i + 1 if self.lengths else n, n + 1):
                    yield [(0, m, every, True)], m - 1 - i
            case "induction" if i is not None:
                here = [(i, i + 1, [t], True)]
                for p in range(i):
                    yield [(0, p, every, True), (p, p + 1, [t], True), (p + 1, i, others, True), *here], p + 1
                yield [(0, i, others, True), *here], none
            case "composition":
                m, most = self.own["vocabulary"], min(n, 2 * self.own["vocabulary"])
                for length, y in product(range(1, most + 1), range(m)):
                    more = [(most, n, every, False)] if length == most else []
                    if t < length:
                        given = [(0, t, every, True), (t, t + 1, [y], True), (t + 1, length, every, True), *more]
                        yield given, m + y if m + y < length else none
                    elif y == 0:
                        yield [(0, length, every, True), *more], none

    def right(self, x: Sequence[int], i: int) -> tuple[Any, ...]:
        """The answer at position i of a sequence, by its definition."""
        t, V = x[i], self.own.get("vocabulary", 0)
        match self.name:
            case "histogram":
                return (x.count(t),)
            case "first_occurrence":
                return (x.index(t),)
            case "parity":
                return (sum(x) % 2,)
            case "majority":
                return (int(2 * sum(x) > len(x)),)
            case "copy_where":
                return self.answer(next((v for v in x if v >= V), None))
            case "look_up":
                many = self.own["keys"] * self.own["values"]
                return self.answer(next((v for v in x[i::-1] if v < many and self.key(v) == self.key(t)), None))
            case "reverse":
                return self.answer(x[len(x) - 1 - i])
            case "induction":
                return self.answer(next((x[j + 1] for j in range(i - 1, -1, -1) if x[j] == t), None))
            case "composition":
                y = x[t] + V if t < len(x) else len(x)
                return self.answer(x[y] if y < len(x) else None)
        depths = list(accumulate(1 - 2 * v for v in x[: i + 1]))
        if self.name == "depth":
            return (depths[i],)
        parts = [fmpq(depths[min(p, i)], min(p, i) + 1) for p in range(self.n)]
        return (self.scale * (sum(max(-v, ZERO) for v in parts) + max(parts[-1], ZERO)),)

    @property
    def scale(self) -> int:
        """Of `balanced`, whose numbers are 0 or from 1 on: the least power of two that is n or more."""
        return 1 << (self.n - 1).bit_length()


def read_program(target: Record, record: Record, n: int, lengths: bool = False) -> Program:
    """The program on tokens of a folder; entry, parameters, shapes and domain must fit."""
    name, given = str(target.get("entry")), target.get("parameters")
    own = dict(given) if isinstance(given, dict) else {}
    bits = name in ("parity", "majority", "depth", "balanced")
    several = ("depth", "balanced", "look_up", "induction", "composition") if lengths else ("parity",)
    known = name in ("majority", "histogram", "first_occurrence", "copy_where", "reverse", *several)
    need(known, "the entry is not known here", UNCHECKED)
    names = () if bits else ("keys", "values") if name == "look_up" else ("vocabulary",)
    whole = all(type(own.get(k)) is int and own[k] >= 1 + (k == "vocabulary") for k in names)
    fits = {*own} == {"longest" if lengths else "n", *names} and own.pop("longest" if lengths else "n") == n and whole
    need(fits, "the parameters do not fit the entry")
    V = own.get("vocabulary", 2)
    tokens = {"copy_where": 2 * V, "look_up": (own.get("values", 0) + 1) * own.get("keys", 0)}.get(name, V)
    width = {"reverse": V, "look_up": own.get("values", 0) + 1}.get(name, V + 1)
    width = width if name in ("copy_where", "reverse", "look_up", "induction", "composition") else 1
    kind = "largest" if width > 1 or name == "look_up" else "zero" if name == "balanced" else "round"
    found = Program(name, own, width, tokens, n, lengths)
    fits = target.get("vocabulary") == tokens and target.get("decoding") == {"kind": kind, "labels": []}
    if lengths:
        fits &= (target["answer"] == "whole") == found.whole and target["outputs"] == width
        fits &= target["ends"] == [0, tokens - 1]
    else:
        shape = [1] if found.whole else [n, width] if kind == "largest" else [n]
        fits &= target.get("output_shape") == shape and target.get("shape") == [n, 1] and target.get("within") is None
        fits &= target.get("lower") == [0] * n and target.get("upper") == [tokens - 1] * n
        fits &= target.get("ends") == [["0", str(tokens - 1)]] * n
        fits &= record.get("domain") == f"all sequences of {n} tokens out of {tokens}"
    need(fits, "entry, shapes, domain and decoding do not fit each other")
    return found


def program(levels: Levels, places: list[int], about: Program, bound: float, tick: Tick) -> Any:
    """A proved bound ≤ `bound` on |T − answer| for all sequences of tokens."""
    n, c = levels.n, levels.c
    asked = places == ([0] if about.whole else list(range(n)))
    shaped = (c["features_in"], c["features_out"]) == (about.tokens, about.width)
    asked &= c["readout"] == ("output" if about.whole else "position")
    need(asked and shaped, "the layer has other tokens, or is read at other places", UNCHECKED)
    if about.name in ("depth", "balanced"):
        return bracketed(levels, about, tick)
    how = counted if about.name in ("histogram", "parity", "majority") else looked_up
    proved, sure = ZERO, about.name != "composition"  # whose cases may be those of no sequence
    for found, right in how(levels, about, tick):
        for (low, high, off), y in zipped(found, right):
            wrong = max(low - y, y - high) - off > exact(bound)
            said = f"an answer is {y}, and the layer is further from it than {bound!r}"
            need(not wrong, said, "INVALID" if sure else UNCHECKED)
            proved = max(proved, max(high - y, y - low) + off)
    return proved


def looked_up(levels: Levels, about: Program, tick: Tick) -> Iterator[tuple[list[Any], Any]]:
    """(outputs, answer) of all that heads which read one token each can add up to.

    In every case of `Program.cases` each head reads one position, or tokens that have the same value. Values are passed on as
    whole numbers, so their sum is known, up to positions of which it does not depend on the token, and one that decides the
    answer; and up to rounding, which is bounded for the largest values of the heads.
    """
    c, w, V, seen = levels.c, levels.w, levels.rows["V"], set[Any]()
    heads, d_v = range(c["heads"]), c["d_v"]
    need(all(v.is_integer() for v in flattened(w["W_O"])), "values are not added up as whole numbers", UNCHECKED)
    written = [[[project(list(map(float, row)), w["W_O"][h * d_v : (h + 1) * d_v]) for row in rows] for rows in V[h]]
               for h in heads]  # fmt: skip
    tops = [[[max((abs(row[a]) for row in rows), default=0) for rows in V[h]] for a in range(d_v)] for h in heads]
    most = [[max(word + code, special) for word, code, special in rows] for rows in tops]
    columns = [(fmpq(-v), fmpq(v), e) for h in heads
               for v, (_, e) in zipped(most[h], levels.averaged(h, 1, most[h], most[h]))]  # fmt: skip
    errors = [off for _, _, off in levels.linear(columns, "W_O")]

    def value(h: int, j: int, t: int) -> tuple[int, ...]:
        words, codes, special = written[h]
        return tuple(special[-1 - j]) if j < 0 else tuple(map(operator.add, words[t], codes[j]))

    fixed = all(row == rows[0] for rows in (q[1] for q in levels.rows["Q"]) for row in rows)
    places = [None] if fixed and about.name not in ("reverse", "induction") else range(levels.n)
    groups = dict[Any, int]()
    for t in range(about.tokens):
        groups.setdefault((about.key(t), *(tuple(levels.rows["Q"][h][0][t]) for h in heads)), t)
    for t, i in product(groups.values(), places):
        asks = [levels.query(h, t, i or 0) for h in heads]
        for ranges, right in about.cases(t, i):
            tick([])
            total, live = (0,) * c["d_model"], dict[Any, dict[Any, tuple[int, ...]]]()

            def held_by(j: int, ranges: Any = ranges) -> Any:
                return next(some for a, b, some, _ in ranges if a <= j < b)

            for h in heads:
                found = [(j, v) for j, some in levels.reads(h, asks[h], ranges) for v in (some if j >= 0 else [0])]
                values = {(j, v): value(h, j, v) for j, v in found}
                if len({*values.values()}) == 1:
                    total = tuple(map(operator.add, total, values[found[0]]))
                    continue
                known = len({j for j, _ in found}) == 1 and sorted(v for _, v in found) == sorted(held_by(found[0][0]))
                need(known, "what a head reads is not decided", UNCHECKED)
                own = live.setdefault(found[0][0], {})
                for (_, v), row in values.items():
                    own[v] = tuple(map(operator.add, own.get(v, (0,) * len(row)), row))
            for j in [j for j, rows in live.items() if len({*rows.values()}) == 1]:
                total = tuple(map(operator.add, total, next(iter(live.pop(j).values()))))
            decides = right if isinstance(right, int) else None
            need({*live} <= {decides}, "the answer depends on tokens that do not matter", UNCHECKED)
            for held in [None] if decides is None else held_by(decides):
                z = tuple(map(operator.add, total, live[decides][held])) if live else total
                answer = right if held is None else about.answer(held)
                if (z, answer) not in seen:
                    seen.add((z, answer))
                    stream = [(fmpq(k), fmpq(k), e) for k, e in zipped(z, errors)]
                    units = levels.linear(stream, "W_1", "b_1")
                    yield levels.behind(units, [b + e <= 0 for _, b, e in units]), answer


def counted(levels: Levels, about: Program, tick: Tick) -> Iterator[tuple[list[Any], Any]]:
    """(outputs, answer) for every count: one head, in which equal tokens and special tokens share the weight."""
    need(levels.c["heads"] == 1, "more heads than one count", UNCHECKED)
    lengths, bits, seen = range(1 if about.lengths else about.n, about.n + 1), about.whole, set[Any]()
    for t in [-1] if bits else range(about.tokens):
        tick([])
        asks = {levels.query(0, t, i) for i in range(1 if bits else about.n)}
        for q in asks:
            kinds, others = level(levels, 0, q, about.n)
            need(kinds == ([0, 1] if bits else [t]), "tokens lead that are not counted", UNCHECKED)
            values, ends = [value_of(levels, 0, k) for k in kinds], dict[int, list[Any]]()
            if about.name == "histogram":
                counts = [(c, [c], c) for c in range(1, about.n + 1)]
            elif about.name == "parity":
                counts = [(n, [n - c, c], c % 2) for n in lengths for c in range(n + 1)]
            else:  # a mean rises or falls with the number of ones, and all means of one answer lie between the ends
                counts = [(n, [n - c, c], int(2 * c > n)) for n in lengths for c in {0, n // 2, n // 2 + 1, n}]
            for k, own, right in counts:
                leaders = [*zipped(own, values), *((1, v) for v in others)]
                columns = list(zipped(*(v for _, v in leaders)))
                sums, sizes = ([sum(c * size(v) for (c, _), v in zipped(leaders, column)) for column in columns]
                               for size in (int, abs))  # fmt: skip
                case = (k + len(others), *sums, *sizes, right)
                if case in seen:
                    continue
                seen.add(case)
                head = [(-above(e - v), above(v + e)) for v, e in levels.averaged(0, case[0], sums, sizes)]
                if about.name != "majority":
                    yield levels.answers(head), (right,)
                elif len(head) == 1:
                    ends.setdefault(right, []).append(head[0])
            need(about.name != "majority" or ends, "a head of one column is needed", UNCHECKED)
            for right, some in ends.items():
                yield levels.answers([(min(a for a, _ in some), max(b for _, b in some))]), (right,)


def level(levels: Levels, h: int, q: tuple[int, ...], end: int) -> tuple[list[int], list[list[int]]]:
    """The tokens that lead wherever they are among the first positions, and the values of special tokens that do.

    All others, and all later positions, lie 745 below.
    """
    words, codes, special = levels.scores(h, q)
    far, tops = MASKED * levels.root, [w + codes[0] for w in words]
    top = max(*tops, *special)
    alike = len({*codes[:end]}) == 1 and all(v == top or v <= top - far for v in (*tops, *special))
    alike &= all(max(words) + v <= top - far for v in codes[end:])
    need(alike, "scores that are neither equal nor far apart", UNCHECKED)
    leading = [levels.rows["V"][h][2][k] for k, v in enumerate(special) if v == top]
    return [t for t, v in enumerate(tops) if v == top], leading


def value_of(levels: Levels, h: int, t: int) -> list[int]:
    """The value of a token, the same at all positions."""
    words, codes, _ = levels.rows["V"][h]
    need(all(row == codes[0] for row in codes), "values depend on positions", UNCHECKED)
    return plus(words[t], codes[0])


def bracketed(levels: Levels, about: Program, tick: Tick) -> Any:
    """A proved bound for `depth` and `balanced`, causal layers in which every head counts by itself.

    T is a sum over the heads (`Levels.lane`) and so is f; what they are apart, and what rounding adds, is added up too. Depth:
    over all o and c with o + c ≤ n. Balanced: head p is the mean of the first p + 1 tokens, or of all that there are.
    """
    n, heads, deep = about.n, levels.c["heads"], about.name == "depth"
    asks = [{levels.query(h, t, i) for t in (0, 1) for i in range(n)} for h in range(heads)]
    plain = heads == (2 if deep else n) and levels.c["d_v"] == 1 and all(len(q) == 1 for q in asks)
    need(plain, "heads of another kind", UNCHECKED)
    lanes = list[list[Any]]()
    for h, (q,) in enumerate(map(tuple, asks)):
        tick([])
        kinds, others = level(levels, h, q, n if deep else h + 1)
        values = [value_of(levels, h, t) for t in (0, 1)]
        if deep:
            good = kinds == [h] and others
            need(good, "tokens lead that are not counted", UNCHECKED)
            rows = list[Any]()
            for count in range(n + 1):
                sums = [count * v + sum(o[0] for o in others) for v in values[h]]
                large = [count * abs(v) + sum(abs(o[0]) for o in others) for v in values[h]]
                ((v, e),) = levels.averaged(h, count + len(others), sums, large)
                y = count * (1 - 2 * h)
                points = levels.lane(h, -above(e - v), above(v + e))
                rows.append(max(abs(T - y) + off + levels.summed() * size for _, T, off, size in points))
            lanes.append(rows)
        else:
            need(kinds == [0, 1] and not others and values == [[1], [-1]], "heads of another kind", UNCHECKED)
            ((_, e),) = levels.averaged(h, 1, [1], [1])
            M, last = about.scale, h == n - 1
            rows = []
            for v, T, off, size in [*levels.lane(h, -1 - e, ZERO), *levels.lane(h, ZERO, 1 + e)]:
                y = M * (max(-v, ZERO) + (max(v, ZERO) if last else 0))
                rows.append(abs(T - y) + off + levels.summed() * size)
            lanes.append([max(rows) + M * e])
    if not deep:
        return sum((row[0] for row in lanes), ZERO)
    most = list(accumulate(lanes[1], max))  # over all c ≤ k, at k
    return max(a + most[n - o] for o, a in enumerate(lanes[0]))


TASK = {*re.findall(r"\w+", "kind text longest ends answer outputs vocabulary decoding entry parameters words")}
CAUSAL = ("running_mean", "running_max", "look_up", "depth", "balanced", "induction")


def sequences(target: Record, record: Record, weights: Any, bound: float, tick: Tick) -> Verdict:
    """The verdict on a layer for all lengths up to the longest: an entry of the gallery, a language model, a function of sets."""
    about, tensors, u = weights
    given: list[Any] = [target.get(k) for k in ("longest", "ends", "vocabulary", "kind")]
    N, ends, tokens, kind = given
    whole = type(N) is int and N >= 1 and {*target} == {*TASK, "schema"} and type(target["outputs"]) is int
    good = whole and isinstance(ends, list) and len(ends) == 2 and all(type(v) in (int, float) for v in ends)
    good = good and ends[0] < ends[1] and all(abs(v) <= 1.7e308 and float(v) == v for v in ends)
    good = good and target["answer"] in ("position", "whole")
    need(good and (tokens is None or (type(tokens) is int and ends == [0, tokens - 1])), "the task is malformed")
    sides = ", ".join(f"{float(v)!r}".removesuffix(".0") for v in ends)
    said = f"x in [{sides}]^n" if tokens is None else f"sequences of n tokens out of {tokens:,}"
    said = f"all n ≤ {N:,} and all {said}"
    need(record.get("domain") == said, "target and certificate speak of different sequences")
    need(kind in ("gallery", "language", "set"), f"a task of the kind {str(kind)[:20]!r} is not checked", UNCHECKED)
    outs = target["outputs"] * (N if target["answer"] == "position" else 1)
    c, w, places = read_config(about, tensors, N * (tokens or 1), outs, lengths=True)
    need(c["tokens"] == N and (target["words"] == [] or kind == "language"), "the layer has another number of tokens")
    name, text, assumed = str(target["entry"]), kind == "language", ", if exp(0) = 1 and exp(s) = 0 for s ≤ −800"
    fits = c["causal"] == (text or name in CAUSAL) and (c["readout"] == "position") == (target["answer"] == "position")
    off: Any = None
    try:
        need(fits, "the layer has another mask, or is read at other places", UNCHECKED)
        if text:
            with ctx.workprec(WORKING):
                proved = language(c, w, u, target, bound, tick)
        elif kind == "set":
            need(tokens is None, "a set of tokens is not checked", UNCHECKED)
            with ctx.workprec(WORKING):
                proved, off = set_bound(c, w, u, target, (read_number(record, "tolerance"), bound), tick)
        elif tokens is not None:
            proved = program(Levels(c, w, u), places, read_program(target, record, N, True), bound, tick)
        else:
            read_numbers(target)
            proved = numbered(c, w, u, places, target, tick)
        need(proved <= exact(bound), f"not decided: {float(proved)!r} is proved, not {bound!r}", UNCHECKED)
    except Verdict as found:
        if found.verdict == UNCHECKED:
            seen_to_be_wrong(c, w, u, target, record, bound, off)
        raise
    claimed = f"total variation ≤ {bound!r} from the counts" if text else f"|T − f| ≤ {bound!r}"
    said = f"{claimed} for {said}{assumed if text or name == 'shift' else ''}"
    return Verdict("VALID", said, None, min(bound, up(arb(proved))))


def read_followers(target: Record) -> dict[tuple[int, ...], dict[int, int]]:
    """What followed which context of up to order − 1 tokens, and how often: "a b" → "c:3 d:1"."""
    own, V, words = target["parameters"], target["vocabulary"], target["words"]
    need(isinstance(own, dict) and "followers" in own, "the counts are not stored", UNCHECKED)
    plain = own.get("order") in (2, 3) and isinstance(own.get("followers"), dict)
    plain = plain and {*own} == {"order", "tokens", "counts", "followers"} and type(V) is int and V >= 2
    plain = plain and isinstance(words, list) and len(words) == V and target["entry"] == ""
    plain = plain and target["decoding"] is None and target["answer"] == "position"
    need(plain and target["outputs"] == V, "the task is malformed")
    found = dict[tuple[int, ...], dict[int, int]]()
    for context, text in own["followers"].items():
        good = re.fullmatch(r"(\d{1,9}( \d{1,9})*)?", context, re.ASCII) and isinstance(text, str)
        need(good and re.fullmatch(r"\d{1,9}:\d{1,18}( \d{1,9}:\d{1,18})*", text, re.ASCII), "the counts are malformed")
        pairs = [(int(a), int(b)) for a, b in (part.split(":") for part in text.split(" "))]
        key, row = tuple(map(int, context.split())), dict(pairs)
        fits = len(key) < own["order"] and max((*key, *row)) < V and min(row.values()) > 0 and len(row) == len(pairs)
        need(fits and key not in found, "the counts are malformed")
        found[key] = row
    need(() in found, "there are no counts")
    return found


def language(c: Record, w: Record, u: Any, target: Record, bound: float, tick: Tick) -> Any:
    """A proved bound on the total variation of the next token's distribution from that of the counts, for every context.

    The head reads the token before, at the first position a special token, with weight 1 to the last bit. So the stream at a
    position is known from its token b and the one before, a; units see whole numbers of it, and at most one is not 0 but 1.
    What is read out, one float addition for each coordinate, follows: one case for each b, each unit and each context (a, b)
    that was counted. In each, ½Σ|p − q| is computed in balls, q the softmax of the logits. Logits off by δ, and exponents off
    by h = uD + 4u where logits are D apart, move log q within ± that: by (δ + h)/2 in total variation (tanh(ρ/4) if logarithms
    of factors lie ρ apart); the sum of V exponentials and the quotient by half of γ_(V+3).
    """
    followers, V, N = read_followers(target), target["vocabulary"], c["tokens"]
    levels, M, none = Levels(c, w, u, residual=True), c["d_model"], "the layer is no n-gram model"
    words, codes, special = levels.rows["V"][0]
    plain = c["heads"] == 1 and (c["features_in"], c["features_out"]) == (V, V) and not any(map(any, codes))
    need(plain and "P" in w and all(v.is_integer() for v in flattened(w["W_O"])), none, UNCHECKED)
    firsts, askers = list[int](), {tuple(row): t for t, row in enumerate(levels.rows["Q"][0][0])}.values()
    sums = project([max(map(abs, a)) for a in zipped(*words, *special)], [list(map(abs, r)) for r in w["W_O"]])
    need(max(sums) <= int(1 / u), none, UNCHECKED)
    for i in range(N):
        tick([])
        for q in (levels.query(0, t, i) for t in askers):
            found = {j for j, _ in levels.reads(0, q, [(0, i + 1, range(V), True)], 800)}
            before = len(found) == 1 and (max(found) == i - 1 if i else max(found) < 0)
            need(before, "not the token before is read", UNCHECKED)
            firsts += found if not i else ()
    need(len({*firsts}) == 1, none, UNCHECKED)
    placed = [any(row[m] for row in w["P"]) for m in range(M)]
    written = [any(row[m] for row in w["W_O"]) for m in range(M)]
    embedded = [any(row[m] for row in w["W_E"]) for m in range(M)]
    for m in range(M):
        used = any(w["W_1"][m]) or any(w["W_R"][m])
        alone = placed[m] + written[m] + embedded[m] + bool(w["b_E"][m]) <= 1
        need(not used or (alone and not placed[m]), "sums that may be rounded, or depend on positions", UNCHECKED)
    said = [*words, special[-1 - firsts[0]]]  # the last: at the start
    passed = [project(list(map(float, row)), w["W_O"]) for row in said]
    seen = [m for m in range(M) if any(w["W_1"][m])]
    whole = [[v for m in seen for v in rows(m)] for rows in (lambda m: w["W_1"][m], lambda m: [r[m] for r in w["W_E"]])]
    whole += [[w["b_E"][m] for m in seen], w["b_1"]]
    need(all(v.is_integer() and abs(v) < 2**16 for row in whole for v in row), none, UNCHECKED)
    need(max(map(abs, flattened(passed))) < 2**16 and len(seen) < 2**6 and not any(w["b_2"]), none, UNCHECKED)
    wide = max(map(abs, (1, *flattened(passed), *(v for m in seen for row in (*w["W_E"], w["b_E"]) for v in [row[m]]))))
    fires = dict[tuple[int, int], int]()  # (a, b) → the unit that is 1; a = V: nothing before
    for j, bias in enumerate(w["b_1"]):
        tick([])
        if any(w["W_2"][j]):
            column = [(m, int(w["W_1"][m][j])) for m in seen if w["W_1"][m][j]]
            need((sum(abs(k) for _, k in column) * 2 * wide + abs(bias)) <= int(1 / u), none, UNCHECKED)
            earlier = [sum(k * row[m] for m, k in column) for row in passed]
            here = [sum(k * int(row[m] + w["b_E"][m]) for m, k in column) + int(bias) for row in w["W_E"]]
            most = max(earlier)
            for b in (b for b, v in enumerate(here) if v + most > 0):
                for a in (a for a, v in enumerate(earlier) if v + here[b] > 0):
                    need(earlier[a] + here[b] == 1 and (a, b) not in fires, "more than one unit is at work", UNCHECKED)
                    fires[a, b] = j
    width, read = 8 if levels.floats.double else 4, [m for m in range(M) if any(w["W_R"][m])]
    need(not any(written[m] for m in read), "the head writes what is read out", UNCHECKED)
    columns = list(zipped(*(w["W_R"][m] for m in read)))
    terms = [(sum(map(bool, row)), not all(binary(exact(v)) for v in row if v)) for row in columns]
    R, sizes = (arb_mat([balls(list(map(size, w["W_R"][m]))) for m in read]) for size in (float, abs))
    contexts = {*fires, *product((V, -1), range(V)), *(k for k in followers if len(k) == 2)}
    worst, done = arb(0), set[Any]()
    for a, b in sorted(contexts):
        p = followers.get((a, b)) or followers.get((b,)) or followers[()]
        case = (b, fires.get((a, b)), tuple(sorted(p.items())))
        if case in done or (a == -1 and all((k, b) in fires or (k, b) in followers for k in range(V))):
            continue
        done.add(case)
        tick([])
        h = [w["W_E"][b][m] + w["b_E"][m] for m in read]
        if case[1] is not None:
            h = [rounded(v + w["W_2"][case[1]][m], width) for v, m in zipped(h, read)]
        least, most = total_variation(levels, h, (R, sizes, terms, balls(w["b_R"])), p)
        where = ([a] if 0 <= a < V else []) + [b]
        need(not least > bound, f"the total variation is above {bound!r} after {where}")
        worst = worst.max(most)
    return middle(worst.upper())


def total_variation(levels: Rounded, h: list[float], reading: Any, p: dict[int, int]) -> tuple[Any, Any]:
    """Balls below and above the total variation of softmax(h·R + b) as it is computed, and p, in counts."""
    (R, sizes, terms, biases), u, V = reading, levels.u, len(reading[2])
    used, signs = sum(map(bool, h)), {*map(abs, h)} <= {0.0, 1.0}  # products with 1 are exact
    products, large = ((arb_mat([list(row)]) * W).entries() for row, W in ((h, R), (map(abs, h), sizes)))
    logits, delta = list[Any](), arb(0)
    for v, size, (many, rough), bias in zipped(products, large, terms, biases):
        steps = max(min(many, used) + (not bias.is_zero()) - 1, 0) + (rough and not signs)
        lost = arb((not signs) * many * levels.tiny)
        delta = delta.max(arb(levels.gamma(steps)) * (size + abs(bias)) + lost)
        logits.append(v + bias)
        need(size + abs(bias) < 2.0**60, "numbers may overflow", UNCHECKED)
    top, total = greatest(logits), sum(p.values())
    e = [(v - top).exp() for v in logits]
    norm = summed(e)
    apart = summed(abs(v / norm - arb(p.get(k, 0)) / total) for k, v in enumerate(e)) / 2
    step = arb(u) * (top - lowest(logits) + 2 * delta + 5)
    off = ((delta + step) / 2 + arb(levels.gamma(V + 3) / 2 + 4 * V * levels.tiny)) * arb(1.001)
    return apart - off, apart + off


def read_numbers(target: Record) -> None:
    """Refuse an entry on numbers whose parameters, answers and decoding do not fit each other."""
    name, own, by_name = str(target["entry"]), target["parameters"], {"shift": "by", "sort": "tolerance"}
    one = name in ("mean", "maximum", "minimum")
    known = one or name in ("running_mean", "running_max", *by_name)
    need(known, "the entry is not known here", UNCHECKED)
    fits = isinstance(own, dict) and {*own} == {"longest", *([by_name[name]] if name in by_name else [])}
    fits = fits and own["longest"] == target["longest"] and target["outputs"] == 1 and target["decoding"] is None
    fits = fits and (name != "shift" or type(own["by"]) is int)
    need(fits and (target["answer"] == "whole") == one, "entry, parameters and answers do not fit each other")


def numbered(c: Record, w: Record, u: Any, places: list[int], target: Record, tick: Tick) -> Any:
    """A proved bound on |T − f| for an entry on numbers, all lengths up to the longest.

    Scores are constant, or a power of two times the number: they are exact. Special tokens lie 745 below.
    """
    name, N, (low, high) = target["entry"], target["longest"], map(exact, target["ends"])
    if name == "sort":
        return sorted_bound(c, w, u, (N, low, high), tick)
    levels = Levels(c, w, u, numbers=True)
    reach = max(abs(low), abs(high))
    if name == "shift":
        by = target["parameters"]["by"]
        copied(levels, places, [i - by if 0 <= i - by < N else None for i in range(N)], reach, lengths=True)
        return ZERO
    X = carried(levels, reach)
    need("P" not in w and not any(w["W_Q"][0][X]), "positions or numbers matter to queries", UNCHECKED)
    q = levels.query(0, -1 if c["readout"] == "output" else 0, 0)
    slope = sloped(levels, q, w["W_K"][0][X], reach)
    rises = {"mean": 0, "running_mean": 0, "minimum": -1}.get(name, 1)
    need((slope > 0) - (slope < 0) == rises, "the head does not prefer the numbers that it should", UNCHECKED)
    m = N + len(w.get("S", []))
    return smooth_bound(levels, m, N, abs(slope), reach)


def sloped(levels: Levels, q: tuple[int, ...], row: Sequence[float], reach: Any) -> Any:
    """β, where the score of a number x is βx exactly (or constant, β = 0), and those of special tokens lie 745 below."""
    _, codes, special = levels.scores(0, q)
    used = [d for d, (v, k) in enumerate(zipped(q, row)) if v and k]
    slope, near = ZERO, fmpq(codes[0])
    if used:
        constant = levels.rows["K"][0][1][0]
        alone = len(used) == 1 and not any(v and k for v, k in zipped(q, constant)) and not constant[used[0]]
        exact_ones = [fmpq(q[used[0]]), exact(row[used[0]])]
        need(alone and all(map(binary, exact_ones)), "scores may be rounded", UNCHECKED)
        slope = exact_ones[0] * exact_ones[1]
        near = -abs(slope) * reach
    far = all(v <= near - MASKED * levels.root for v in special)
    need(far, "special tokens may have weight", UNCHECKED)
    need(abs(slope) * 16 * reach * levels.tiny < 1, "numbers may overflow", UNCHECKED)
    return slope / levels.root


def smooth_bound(levels: Rounded, m: int, n: int, slope: Any, reach: Any) -> Any:
    """How far the average of up to n of m numbers x with scores ±βx can be from the largest or smallest, or the mean (β = 0).

    Exactly it is short by W((n − 1)/e)/β at most. Exponents, differences to the largest, are off by u of at most 745.2, or
    104 in float32 (what lies further below vanishes), exp by 4u: weights are right up to factors e^(±2H), and so is what each
    number takes off, which has one sign. Normaliser, division, products and their sum are 2m + 3 roundings.
    Numbers that vanish do not count among the m: adding t changes a sum by at most 3t, rounding included.
    """
    u, tiny = levels.u, levels.tiny
    lost = 16 * m * tiny * max(reach, fmpq(1))
    if not slope:
        return ((1 + levels.spread(m)) * (1 + levels.gamma(m + 1)) - 1) * reach + lost
    rest = levels.gamma(2 * m + 3) * reach + lost
    gap = min(fmpq(7452, 10) if levels.floats.double else fmpq(104), 2 * slope * reach)
    H = (gap * u + 4 * u) * fmpq(1001, 1000)
    with ctx.workprec(READING):
        short = (arb(n - 1) / arb.const_e()).lambertw() * (2 * arb(H)).exp() / arb(slope)
        return middle(short.upper()) + rest


def sorted_bound(c: Record, w: Record, u: Any, about: tuple[int, Any, Any], tick: Tick) -> Any:
    """A proved bound on |T − sorted x| for up to N numbers: a smooth minimum for every set of positions and the anchor.

    Pad a sequence of n numbers with the anchor's, which is not smaller than any. By the maximum–minimums identity its k-th
    smallest is Σ_S c_S min_S, c_S = (−1)^(|S|−r) C(|S|−1, r−1), r = N − k + 1, over sets of r or more positions; W^O is
    compared with that number by number. So the network sees ranks, codes and x, all between known ends, each off by a known
    error. Units of proved sign make it linear at each position, where it must be the rank that is asked for.
    """
    N, low, high = about
    net, M, heads = Rounded(w, u), c["d_model"], range(c["heads"])
    plain = c["residual"] and not c["projection_bias"] and c["activation"] == "relu" and c["readout"] == "position"
    plain &= c["features_in"] == c["features_out"] == c["d_v"] == len(w.get("S", [])) == 1 and "P" in w and N <= 8
    plain &= not any(flattened(w["shift"])) and {*flattened(w["scale"])} == {1.0}
    ins, whole = [m for m, v in enumerate(w["W_E"][0]) if v], [*w["b_E"], *flattened(w["P"])]
    need(plain and len(ins) == 1 and w["W_E"][0][ins[0]] == 1, "the layer does not sort like the gallery's", UNCHECKED)
    X, codes = ins[0], [plus(w["b_E"], row) for row in w["P"]]
    top, anchor = exact(w["S"][0][X]), [0.0 if m == X else v for m, v in enumerate(w["S"][0])]
    good = all(v.is_integer() and abs(v) < 2**20 for v in (*whole, *anchor))
    good &= not any(row[X] for row in (w["b_E"], *w["P"]))
    good &= top >= high and all([m for m, row in enumerate(w["W_V"][h]) if row[0]] == [X] for h in heads)
    need(good and all(w["W_V"][h][X][0] == 1 for h in heads), "values are not the numbers themselves", UNCHECKED)
    reach, errors, sets = max(abs(low), abs(top)), list[Any](), list[frozenset[int]]()
    for h in heads:
        tick([])
        slope, members = members_of(net, h, codes, anchor, X, (reach, top - low), c["d_k"])
        k = len(members) + 1
        short = smooth_bound(net, k, k, slope, reach)
        errors.append(short + 16 * (N + 1) * net.tiny * max(reach, fmpq(1)))
        sets.append(members)
    ranks, E = dict[int, int](), dict[int, Any]()
    for m in range(M):
        rows = [(exact(w["W_O"][h][m]), h) for h in heads if w["W_O"][h][m]]
        if rows:
            found = dict[frozenset[int], Any]()
            for v, h in rows:
                found[sets[h]] = found.get(sets[h], ZERO) + v
            fits = [r for r in range(1, N + 1) if all(
                found.get(frozenset(S), ZERO) == (-1) ** (size - r) * math.comb(size - 1, r - 1)
                for size in range(r, N + 1) for S in combinations(range(N), size))
                and all(len(S) >= r or not v for S, v in found.items())]  # fmt: skip
            own = any(row[m] for row in codes) or m == X
            need(len(fits) == 1 and not own, "heads do not add up to a rank", UNCHECKED)
            ranks[m] = N - fits[0]
            size = sum((abs(v) * (reach + errors[h]) for v, h in rows), ZERO)
            rough = not all(binary(v) for v, _ in rows)
            E[m] = net.gamma(len(rows) - 1 + rough) * size + len(rows) * net.tiny
            E[m] += sum((abs(v) * errors[h] for v, h in rows), ZERO)
    proved = ZERO
    for i in range(N):
        stream = [(low, top, E[m]) if m in ranks else (low, high, ZERO) if m == X else (exact(codes[i][m]),) * 2 + (ZERO,)
                  for m in range(M)]  # fmt: skip
        units = net.linear(stream, "W_1", "b_1")
        live = [b + e > 0 for _, b, e in units]
        need(all(a >= 0 or not on for (a, _, _), on in zipped(units, live)), "a unit may switch", UNCHECKED)
        z = [v if on else (ZERO,) * 3 for v, on in zipped(units, live)]
        more = net.linear(z, "W_2", "b_2")
        after = list[Any]()
        for (a, b, e), (p, q, f) in zipped(stream, more):
            step = u * (max(abs(a), abs(b)) + max(abs(p), abs(q)) + e + f) if (a or b or e) and (p or q or f) else 0
            after.append((a + p, b + q, e + f + step))
        ((_, _, off),) = net.linear(after, "W_R", "b_R")
        read, worth = matrix(w["W_R"]), matrix(w["W_2"]) * matrix(w["W_R"])
        worth = matrix([[worth[j, 0] if on else 0] for j, on in enumerate(live)])
        gain, biases = read + matrix(w["W_1"]) * worth, matrix([w["b_1"]]) * worth + matrix([w["b_2"]]) * read
        constant = biases[0, 0] + exact(w["b_R"][0])
        constant += sum((exact(codes[i][m]) * gain[m, 0] for m in range(M) if m not in ranks and m != X), ZERO)
        shares = [sum((gain[m, 0] for m, k in ranks.items() if k == rank), ZERO) for rank in range(N)]
        right = shares == [fmpq(k == i) for k in range(N)] and not gain[X, 0]
        need(right, f"position {i + 1} has another rank", UNCHECKED)
        proved = max(proved, off + abs(constant))
    return proved


def members_of(net: Rounded, h: int, codes: Any, anchor: list[float], X: int, sizes: Any, d_k: int) -> tuple[Any, Any]:
    """(β, the positions that head h sees), if their scores and the anchor's are −βx exactly; others lie 745 below that."""
    w, root, none = net.w, math.isqrt(d_k), "scores may be rounded"
    need(root**2 == d_k and binary(fmpq(root)) and not any(w["W_Q"][h][X]), none, UNCHECKED)
    whole, wide = w["W_Q"][h], [max(abs(row[m]) for row in w["P"]) + abs(b) for m, b in enumerate(w["b_E"])]
    small = all(v <= 1 / net.u for v in project(wide, [[abs(v) for v in row] for row in whole]))
    asks = {tuple(project(row, whole)) for row in codes}
    need(small and all(v.is_integer() for v in flattened(whole)) and len(asks) == 1, none, UNCHECKED)
    most = sum(map(exact, wide), sizes[0]) * exact(max(map(abs, flattened(w["W_K"][h])))) * d_k / net.u  # of |score|
    need(most * most * net.tiny < 1, "numbers may overflow", UNCHECKED)
    q = next(iter(asks))
    used = [d for d, v in enumerate(q) if v]
    need(len(used) == 1 and binary(fmpq(q[used[0]])) and w["W_K"][h][X][used[0]], none, UNCHECKED)
    ask, keys = fmpq(q[used[0]]) / root, [exact(row[used[0]]) for row in w["W_K"][h]]
    slope = ask * keys[X]
    need(binary(slope) and slope < 0, none, UNCHECKED)
    parts = [[ask * k * exact(v) for k, v in zipped(keys, row) if k and v] for row in (anchor, *codes)]
    need(not parts[0], "the anchor has another score", UNCHECKED)
    hidden = [sum(part, ZERO) + sum(map(abs, part), -slope * sizes[0]) * fmpq(1, 2**10) for part in parts[1:]]
    far = [v - slope * sizes[1] <= -MASKED for v in hidden]
    need(all(away or not part for away, part in zipped(far, parts[1:])), "a position may have weight", UNCHECKED)
    return -slope, frozenset(j for j, part in enumerate(parts[1:]) if not part)


def seen_to_be_wrong(c: Record, w: Record, u: Any, target: Record, record: Record, bound: float, off: Any) -> None:
    """Refute a claim about sequences, if it fails at one of some short ones, where T is evaluated step by step.

    At the last position, which sees all others, a causal layer is like any other. Rounding is at most `off`, if that is known.
    """
    N, tokens, draw, positions = target["longest"], target["vocabulary"], 1, c["readout"] == "position"
    text = target["kind"] == "language"
    followers = read_followers(target) if text else {}
    about = None if tokens is None or text else read_program(target, record, N, True)
    (low, high), width = target["ends"], 8 if u < fmpq(1, 2**30) else 4
    for n in [n for n in (1, 2, 3, 4, 5, 6, 2, 3, 4, 5) if n <= N]:
        x = list[Any]()
        for _ in range(n):
            draw = (draw * 1103515245 + 12345) % 2**31
            share = draw // 2**8 % 1024
            x.append(share % tokens if tokens else rounded(low + (high - low) * share / 1024, width))
        if tokens is None and not all(low <= v <= high for v in x):
            continue
        places = [0] if not positions else [n - 1] if c["causal"] else list(range(n))
        short = {k: w[k][:n] for k in ("shift", "scale", "P") if k in w}
        given = [float(v == t) for v in x for t in range(tokens)] if tokens else x
        with ctx.workprec(WORKING):
            layer = Dense(c | {"tokens": n}, w | short, places, u)
            T, steps = layer.answers([[arb(v)] for v in given], Jets(Sides([]), []))
            steps, far = [v if off is None else v.min(arb(off)) for v in steps], list[Any]()
            for i, at in zipped(places, range(0, len(T), target["outputs"])):
                rows = list(zip(T[at : at + target["outputs"]], steps[at:], strict=False))
                if text:
                    shown = (tuple(x[max(i - k, 0) : i + 1]) for k in range(target["parameters"]["order"] - 2, -1, -1))
                    known = map(followers.get, shown)
                    p, e = next(filter(None, known), followers[()]), [t[0].exp() for t, _ in rows]
                    total, count = summed(e), sum(p.values())
                    apart = summed(abs(v / total - arb(p.get(k, 0)) / count) for k, v in enumerate(e)) / 2
                    far.append(apart - greatest([v for _, v in rows]) - arb(u) * (tokens + 4000))
                else:
                    right = about.right(x, i) if about else [number_right(target, x, i)]
                    far += [abs(t[0] - arb(y)) - v for (t, v), y in zipped(rows, right)]
        need(not any(v > bound for v in far), f"the error is above the claimed {bound!r} at the sequence {x}")


def number_right(target: Record, x: list[float], i: int) -> Any:
    """What an entry on numbers, or a function of sets, says at position i of a sequence."""
    if target["kind"] == "set":
        return set_value(target, x, i)
    seen = x[: i + 1] if target["answer"] == "position" else x
    match target["entry"]:
        case "mean" | "running_mean":
            return sum(map(exact, seen), ZERO) / len(seen)
        case "maximum" | "running_max":
            return exact(max(seen))
        case "minimum":
            return exact(min(seen))
        case "sort":
            return exact(sorted(x)[i])
    source = i - target["parameters"]["by"]
    return exact(x[source]) if 0 <= source < len(x) else ZERO


def flattened(numbers: Any) -> list[Any]:
    """Nested lists, or an array, as one list."""
    numbers = numbers.tolist() if hasattr(numbers, "tolist") else numbers
    return [v for part in numbers for v in flattened(part)] if isinstance(numbers, (list, tuple)) else [numbers]


# ═══ 8. Sets: functions of sets of any size ═════════════════════════════════════════════════════════════════════════


class SetReader(Reader):
    """A formula of a set: sum, mean, max and min of one argument are aggregates, variables 1, 2, … beside x, variable 0."""

    def __init__(self, text: object) -> None:
        self.found, self.inside = list[tuple[str, Node]](), False
        plain = isinstance(text, str) and text.isascii()
        need(plain, "the formula of a set is read in ASCII alone", UNCHECKED)
        super().__init__(["x"], str(text).replace("^", "**"))

    def node(self, t: ast.expr | None = None, depth: int = 0) -> Node:
        match t or self.tree:
            case ast.Call(func=ast.Name(id="sum" | "mean" | "max" | "min" as kind), args=[inner], keywords=[]):
                need(not self.inside, "an aggregate within another is not read", UNCHECKED)
                self.inside = True
                one = (kind, super().node(inner, depth + 1))
                self.inside = False
                self.found += [one] if one not in self.found else []
                return var(1 + self.found.index(one))
        return super().node(t, depth)


def read_set(target: Record, dtype: str, tolerance: float) -> tuple[Node, list[tuple[str, Node]]]:
    """(f over x and aggregates, the aggregates), if task and parameters say the same."""
    own: Any = {"formula": target["text"], "longest": target["longest"], "tolerance": tolerance, "dtype": dtype}
    same = target["parameters"] == own | {"domain": target["ends"]} and target["entry"] == "" and target["outputs"] == 1
    need(same and target["decoding"] is None, "task and parameters do not fit each other")
    try:
        reader = SetReader(target["text"])
        f = reader.node()
    except Verdict as found:  # the engine's language is larger
        raise replace(found, verdict=UNCHECKED) from None
    need((0 in variables(f)) == (target["answer"] == "position"), "formula and answers do not fit each other")
    return f, reader.found


def set_value(target: Record, x: list[float], i: int) -> Any:
    """f at number i of a set."""
    f, aggregates = read_set(target, target["parameters"]["dtype"], target["parameters"]["tolerance"])
    found = [arb(x[i])]
    for kind, phi in aggregates:
        values = [value(phi, [arb(v)]) for v in x]
        total = summed(values)
        best = arb.max if kind == "max" else arb.min
        found.append(reduce(best, values) if kind in ("max", "min") else total if kind == "sum" else total / len(x))
    return value(f, found)


Input = tuple[str, Node]  # own, mean, max, min (of x); sum, average (of a function of x)


class SetLayer(Rounded):
    """A layer for functions of sets of up to N numbers x between two ends, read from the weights; x̂ = (x − shift)·scale.

    Scores are βx̂ on numbers, constants on special tokens, whose values are 0. If a special token leads by far, with score A,
    a head says Σ_j v_j e^(βx̂_j − A), relative errors apart (`exponential`): a sum over the set. If special tokens have no
    weight, it is the mean of x̂ (β = 0) or the maximum or minimum (`smooth_bound`). A coordinate of the stream that W^O adds
    up from exponential heads is Σ_j ψ(x̂_j), with ψ known, and is compared with functions φ inside aggregates. So units are
    relu(Σ weights·inputs + c), polylines of linear forms of inputs. Units that see a code which silences them at all later
    positions see nothing but sums and n, at the first one: Σ_j ψ(x̂_j) = n·average, and the mean read-out divides by n.
    """

    def __init__(self, c: Record, w: Record, u: Any, about: tuple[int, Any, Any]) -> None:
        super().__init__(w, u)
        self.c, (self.N, self.low, self.high), self.M = c, about, range(c["d_model"])
        plain = c["residual"] and not c["projection_bias"] and c["activation"] == "relu" and not c["causal"]
        plain &= c["features_in"] == c["features_out"] == 1
        plain &= len({row[0] for row in w["shift"]}) == len({row[0] for row in w["scale"]}) == 1
        need(plain, "the layer is not made like those for functions of sets", UNCHECKED)
        self.shift, self.scale = exact(w["shift"][0][0]), exact(w["scale"][0][0])
        ends = [(v - self.shift) * self.scale for v in (self.low, self.high)]
        need(binary(self.scale) and self.scale > 0, "numbers are scaled by no power of two", UNCHECKED)
        self.hat, self.reach = (ends[0], ends[1]), max(map(abs, ends))
        self.own = u * self.reach + self.tiny  # how far x̂ is off
        large = (abs(self.shift) + abs(self.low) + abs(self.high)) * max(self.scale, fmpq(1))
        need(large * large * self.tiny < 1, "numbers may overflow", UNCHECKED)
        self.codes, self.special = w.get("P", [[0.0] * len(self.M)]), w.get("S", [])
        self.placed = [any(row[m] for row in self.codes) for m in self.M]
        ins = [m for m in self.M if w["W_E"][0][m]]
        alone = len(ins) == 1 and w["W_E"][0][ins[0]] == 1 and not w["b_E"][ins[0]] and not self.placed[ins[0]]
        need(alone and not any(row[ins[0]] for row in self.special), "a number enters in several places", UNCHECKED)
        self.X, self.asks = ins[0], self.special[-c["output_tokens"]] if c["readout"] == "output" else w["b_E"]
        heard = [any(any(W[m]) for k in "QKV" for W in w[f"W_{k}"]) for m in self.M]
        hidden = not any(h and p for h, p in zipped(heard, self.placed))
        asked = not any(any(W[self.X]) for W in w["W_Q"]) and not any(p and b for p, b in zipped(self.placed, w["b_E"]))
        need(hidden and asked, "positions matter to heads, or numbers to queries", UNCHECKED)
        largest = max(map(abs, flattened([w[k] for k in ("W_Q", "W_K", "W_V", "b_E", "S", "P") if k in w])))
        product = (len(self.M) * (1 + self.reach) * (1 + exact(largest)) ** 2) ** 2
        need(product * self.tiny < 1, "numbers may overflow", UNCHECKED)
        self.heads = [self.head(h) for h in range(c["heads"])]

    def sole(self, row: Sequence[float], W: Any, d: int) -> Any:
        """row·W in column d, a sum with at most one summand, 1·weight: exact."""
        found = [(row[m], W[m][d]) for m in self.M if row[m] and W[m][d]]
        need(len(found) <= 1 and all(v == 1 for v, _ in found), "codes are not 0 and 1", UNCHECKED)
        return exact(found[0][1]) if found else ZERO

    def head(self, h: int) -> tuple[str, Any, dict[int, Any]]:
        """(kind, (β, A) or the error of x̂'s average, column of W^O → (whether it is x̂, factor, size, error) of a number)."""
        w, u, c, used = self.w, self.u, self.c, list[Any]()
        W_Q, W_K, W_V = (w[f"W_{k}"][h] for k in "QKV")
        ask, root = [self.sole(self.asks, W_Q, d) for d in range(c["d_k"])], math.isqrt(c["d_k"])
        used = [d for d, v in enumerate(ask) if v]
        fits = len(used) == 1 and binary(ask[used[0]]) and root**2 == c["d_k"] and binary(fmpq(root))
        need(fits, "scores may be rounded", UNCHECKED)
        d, factor = used[0], ask[used[0]] / root
        need(not self.sole(w["b_E"], W_K, d), "scores of numbers have a constant", UNCHECKED)
        key, special = exact(W_K[self.X][d]), [factor * self.sole(row, W_K, d) for row in self.special]
        beta, rough = factor * key, int(bool(key) and not binary(key))
        most = abs(beta) * self.reach
        small = max(map(abs, [most, *special, *(v / factor for v in special), most / factor]))
        need(small * small * self.tiny < 1, "numbers may overflow", UNCHECKED)
        A, m = max(special, default=-most - MASKED - 1), self.N + len(special)
        columns = dict[int, Any]()
        for v in range(c["d_v"]):
            if any(w["W_O"][h * c["d_v"] + v]):
                silent = not any(self.sole(row, W_V, v) for row in self.special)
                fixed, moving = self.sole(w["b_E"], W_V, v), exact(W_V[self.X][v])
                pure = silent and not (fixed and moving) and (not moving or binary(moving))
                need(pure, "values are neither numbers nor constants, or special tokens have one", UNCHECKED)
                if fixed or moving:
                    columns[h * c["d_v"] + v] = (bool(moving), moving or fixed)
        if A + most + abs(beta) * self.own + MASKED <= 0:
            need(all(one for one, _ in columns.values()) and not rough, "an average of something else", UNCHECKED)
            short = smooth_bound(self, m, self.N, abs(beta), self.reach + self.own) + self.own
            short += max((17 * m * self.tiny / abs(by) for _, by in columns.values()), default=ZERO)  # of values x̂·by
            return ("max" if beta > 0 else "min" if beta < 0 else "mean"), short, columns
        rest = sorted(special)[:-1]
        far = A - most >= 1 and all(v <= A - MASKED for v in rest) and A + most < (706 if self.floats.double else 85)
        need(far, "special tokens have some weight, not all", UNCHECKED)
        with ctx.workprec(READING):
            # d: of exponents; then exp twice, division, the crowd S in the normaliser, and sums
            off = abs(beta) * ((self.reach + self.own) * self.gamma(rough) + self.own) + abs(factor) * self.tiny
            off += u * (A + most + off)
            top = (arb(max(beta * v for v in self.hat)) - arb(A)).exp()
            crowd = self.N * top * arb(off).exp()
            y = arb(off) + crowd + arb(11 * u + m * self.tiny + self.gamma(m))
            for k, (one, by) in columns.items():
                steps = self.N + one + (not binary(by)) + 1
                relative = (y + arb(self.gamma(steps))).expm1()
                size = top * arb(abs(by) * (self.reach if one else 1))
                need(relative < 0.5, "exponents are rounded too much", UNCHECKED)
                pair = [middle(v.upper()) for v in (size, size * relative)]
                columns[k] = (one, by, pair[0], pair[1] + (2 + 2 * abs(by)) * u * self.tiny)
        return "sum", (beta, A), columns

    def psi(self, m: int) -> tuple[Node, Any]:
        """(ψ as a formula of x, how far the computed sum is off, for each number of the set) of a coordinate."""
        xhat: Node = tree("mul", num(self.scale), tree("add", VAR, num(-self.shift)))
        parts, sizes, off, n = list[Node](), ZERO, ZERO, 0
        for kind, about, columns in self.heads:
            for k, column in columns.items():
                weight = exact(self.w["W_O"][k][m])
                if weight:
                    need(kind == "sum", "heads of several kinds add up to one number", UNCHECKED)
                    (beta, A), (one, by, size, error) = about, column
                    inner: Node = tree("add", tree("mul", num(beta), xhat), num(-A))
                    factors = (num(weight * by), *([xhat] if one else []), tree("exp", inner))
                    parts.append(tree("mul", *factors))
                    sizes, off, n = sizes + abs(weight) * (size + error), off + abs(weight) * error, n + 1
        need((self.N * sizes) ** 2 * self.tiny < 1, "numbers may overflow", UNCHECKED)
        return tree("add", *parts), off + self.gamma(n) * sizes + n * self.u * self.tiny


class SetProof:
    """|T − f| for all sets: f and T as functions of inputs that are taken to be independent, each between proved ends.

    With z' the computed stream and z that of the inputs themselves, T' − f = (D(z') − D(z)) + (D(z) − f) + rounding behind
    the stream. The first is at most the steepest slope of each polyline times what its inputs are off by. For averages,
    Σ height·relu(s' − tn') = n'D(s'/n') with s' within ne of ns and n' within ne_n of n: divided by n it is off by
    (1 + e_n)L(e + |s|e_n)/(1 − e_n) + e_n max|D|. The second is enclosed between knots, form by form; where f is no sum of
    functions of the linear forms, a polynomial of each form stands between.
    """

    def __init__(self, layer: SetLayer, target: Record, bound: float, tick: Tick) -> None:
        self.layer, self.bound, self.tick, self.each = layer, bound, tick, target["answer"] == "position"
        self.inputs: list[Input] = [("own", VAR)]
        self.sides = [(float(target["ends"][0]), float(target["ends"][1]))]
        self.ends = [self.sides[0]]
        self.ranges: dict[Node, tuple[float, float]] = {VAR: self.sides[0], ONE: (1.0, 1.0)}

    def variable(self, kind: str, phi: Node = VAR) -> Node:
        """The variable that stands for an input; its ends are found when it is new."""
        if (kind, phi) not in self.inputs:
            if phi not in self.ranges:
                self.ranges[phi] = range_of(phi, self.ends, 1e-9 * self.bound, self.tick)
            (a, b), N = map(exact, self.ranges[phi]), self.layer.N if kind == "sum" else 1
            self.inputs.append((kind, phi))
            self.sides.append(outward(min(a, N * a), max(b, N * b)))
        return var(self.inputs.index((kind, phi)))

    def rises(self, phi: Node) -> bool:
        """Whether a function is increasing between the ends, or else decreasing: another verdict if neither is proved."""
        (a, b), slope = self.ends[0], slope_of(phi, 0)
        cuts = [a, *(a + (b - a) * k / 64 for k in range(1, 64)), b]
        signs = {(bool(low >= 0), bool(high <= 0)) if low.is_finite() and high.is_finite() else (False, False)
                 for low, high in (enclosed(slope, [side]) for side in pairwise(cuts))}  # fmt: skip
        up_all, down_all = all(rising for rising, _ in signs), all(falling for _, falling in signs)
        one_way = (up_all or down_all) and not jumps_of([phi])  # a slope says nothing of jumps
        need(one_way, "max or min of a function that may both rise and fall", UNCHECKED)
        return up_all

    def terms(self, f: Node, aggregates: list[tuple[str, Node]]) -> list[Node]:
        """f as a sum of functions of inputs: mean(a + bx) is a + b·mean(x), max(φ) is φ(max x) or φ(min x)."""
        by: list[Node] = [VAR]
        for kind, phi in aggregates:
            defined([phi], self.ends, self.tick)
            require_values([phi], Domain(self.ends, None, 0.0))
            if kind == "mean" and affine(phi, 1) is not None:
                by.append(substituted(phi, [self.variable("mean")]))
            elif kind in ("max", "min"):
                other = "min" if kind == "max" else "max"
                by.append(substituted(phi, [self.variable(kind if self.rises(phi) else other)]))
            else:
                by.append(self.variable("sum" if kind == "sum" else "average", phi))
        found = list[Node]()
        for term in terms_of(substituted(f, by)):
            own = variables(term)
            averages = [v for v in own if self.inputs[v][0] == "average"]
            names: list[Node] = [var(v) for v in range(len(self.inputs))]
            spread = averages and len(own) == 1 and affine(term, len(names)) is not None
            if spread and not self.each:  # c·mean(φ) is the mean of c·φ(x_i)
                names[averages[0]] = self.inputs[averages[0]][1]
            elif averages and ("mean", VAR) in self.inputs:
                names[self.inputs.index(("mean", VAR))] = self.variable("average")
            found.append(substituted(term, names))
        need(not (self.each and any(self.inputs[v][0] == "average" for t in found for v in variables(t))),
             "an average of a function at every position", UNCHECKED)  # fmt: skip
        return found

    def coordinates(self) -> None:
        """What every coordinate of the stream holds that heads write to: (kind, factor) or (sum, φ, ψ, rounding)."""
        s, w, self.held, known = self.layer, self.layer.w, dict[int, Any](), [phi for _, phi in self.inputs]
        points = [[arb(self.ends[0][0] + (self.ends[0][1] - self.ends[0][0]) * k / 6)] for k in range(1, 6)]
        for m in s.M:
            rows = [(n, k) for n, (_, _, columns) in enumerate(s.heads) for k in columns if w["W_O"][k][m]]
            if not rows:
                continue
            free = not s.placed[m] and m != s.X and not s.asks[m]
            need(free, "heads write where something else is", UNCHECKED)
            if s.heads[rows[0][0]][0] != "sum":
                kind, _, columns = s.heads[rows[0][0]]
                g = exact(w["W_O"][rows[0][1]][m]) * columns[rows[0][1]][1]
                need(len(rows) == 1 and binary(g), "heads of several kinds add up to one number", UNCHECKED)
                need((g * (1 + s.reach)) ** 2 * s.tiny < 1, "numbers may overflow", UNCHECKED)
                self.held[m] = (kind, g, s.heads[rows[0][0]][1] + s.tiny / abs(g))  # the product may underflow
            else:
                psi, off = s.psi(m)
                gaps = [(summed(abs(value(psi, x) - value(phi, x)) for x in points), n)
                        for n, phi in enumerate([ONE, *known])]  # fmt: skip
                near = min((up(gap), n) for gap, n in gaps)[1]
                self.held[m] = ("sum", [ONE, *known][near], psi, off)

    def units(self) -> None:
        """The polylines of the layer, by inputs and by where they are seen; a linear form has 1 as its first slope."""
        s, w, lines = self.layer, self.layer.w, dict[Any, list[Any]]()
        out = [m for m in s.M if w["W_R"][m][0]]
        need(len(out) == 1 and w["W_R"][out[0]][0] == 1, "the answer is not one coordinate", UNCHECKED)
        idle = [m for m in s.M if m != out[0] and any(row[m] for row in w["W_2"])]
        free = not (idle or w["b_2"][out[0]] or out[0] in self.held or s.placed[out[0]] or s.asks[out[0]])
        need(free and out[0] != s.X, "the answer is more than the sum of the units", UNCHECKED)
        self.counts = [m for m, one in self.held.items() if one[0] == "sum" and one[1] == ONE]
        self.seen = dict[int, tuple[bool, Any]]()  # unit → whether it is silenced, its polyline's key
        for k in range(len(w["b_1"])):
            height, constant, form = exact(w["W_2"][k][out[0]]), exact(w["b_1"][k]), dict[int, Any]()
            coordinates = [m for m in s.M if w["W_1"][m][k] and (m != s.X or s.c["readout"] != "output")]
            silenced = any(s.placed[m] for m in coordinates)
            for m in coordinates:
                weight = exact(w["W_1"][m][k])
                one: Any = ("own", fmpq(1)) if m == s.X else self.held.get(m, ("", ZERO))
                if one[0] == "sum":
                    kind = "average" if silenced else "sum"
                    if silenced and m in self.counts:
                        constant += weight
                        continue
                    need((kind, one[1]) in self.inputs, "a unit sees what the formula does not have", UNCHECKED)
                    form[m] = (self.inputs.index((kind, one[1])), weight)
                elif one[0]:
                    known = (one[0], VAR) in self.inputs
                    need(known and not silenced, "a unit sees what the formula does not have", UNCHECKED)
                    form[m] = (self.inputs.index((one[0], VAR)), weight * one[1] * s.scale)
                    constant -= form[m][1] * s.shift
                else:
                    constant += weight * exact(s.asks[m])
                    need(not silenced or not s.asks[m], "a silenced unit sees a constant", UNCHECKED)
            if not form:
                need(constant <= 0 and not coordinates, "a unit is constant", UNCHECKED)
                continue
            need(len({v for v, _ in form.values()}) == len(form), "a unit sees an input twice", UNCHECKED)
            if silenced:
                alone = not w["b_1"][k] and s.c["readout"] == "mean" and len(self.counts) == 1
                need(alone, "a silenced unit sees a constant, or n is not known", UNCHECKED)
            places = tuple(sorted(form, key=lambda m: form[m][0]))
            first = form[places[0]][1]
            key = (places, tuple(form[m][0] for m in places), tuple(form[m][1] / first for m in places))
            self.seen[k] = (silenced, key)
            lines.setdefault(key, []).append((first, constant, height, k))
        self.lines = {key: BentLine(units) for key, units in lines.items()}

    def off(self) -> Any:
        """How far computed numbers and those of exponential sums are off, all in all; errors of inputs are found on the way."""
        s, N = self.layer, self.layer.N
        steep = {key: max(map(abs, line.slopes)) for key, line in self.lines.items()}
        felt = dict[int, Any]()
        for (places, own, slopes), L in steep.items():
            for m, v, k in zipped(places, own, slopes):
                felt[m] = felt.get(m, ZERO) + L * abs(k) * (N if self.inputs[v][0] == "sum" else 1)
        errors, stream, each = {s.X: s.own / s.scale}, [(ZERO,) * 3 for _ in s.M], [(ZERO,) * 3 for _ in s.M]
        if s.c["readout"] != "output":
            stream[s.X] = (s.hat[0] - s.own, s.hat[1] + s.own, ZERO)
        for m in s.M:
            if m not in self.held and m != s.X and not s.placed[m] and s.asks[m]:
                stream[m] = (exact(s.asks[m]), exact(s.asks[m]), ZERO)
        for m, one in self.held.items():
            if one[0] != "sum":
                errors[m], ends = one[2] / s.scale, [one[1] * v for v in s.hat]
                reach = abs(one[1]) * one[2]
                stream[m] = (min(ends) - reach, max(ends) + reach, ZERO)
                continue
            gap: Node = tree("add", one[2], minus(one[1]))
            close = 1e-3 * self.bound / float(max(felt.get(m, ZERO), fmpq(1, 10**6)))
            low, high = extent([(gap, self.ends)], close, self.tick)
            errors[m] = middle(abs(low).max(abs(high)).upper()) + one[3]
            a, b = (exact(v) + sign * errors[m] for v, sign in zipped(self.ranges[one[1]], (-1, 1)))
            each[m], stream[m] = (a, b, ZERO), (min(a, N * a), max(b, N * b), ZERO)
        units, apart = {k: silenced for k, (silenced, _) in self.seen.items()}, dict[int, Any]()
        for mode, numbers in ((False, stream), (True, each)):
            some = [k for k, silenced in units.items() if silenced == mode]
            apart |= dict(zipped(some, (e for _, _, e in s.linear(numbers, "W_1", "b_1", some))))
        for k in (k for k, silenced in units.items() if silenced):
            self.silent(k, each)
        total, size, number = ZERO, abs(exact(s.w["b_R"][0])), len(self.seen)
        for key, line in self.lines.items():
            places, own, slopes = key
            reach = sum((abs(k) * errors[m] * (N if self.inputs[v][0] == "sum" else 1)
                         for m, v, k in zipped(places, own, slopes)), ZERO)  # fmt: skip
            sides = self.span_of(own, slopes)
            low, high = map(exact, sides)
            moved, L = sum((abs(h) * apart[k] for _, _, h, k in line.units), ZERO), steep[key]
            spread, growth = L * reach, fmpq(1)
            if self.inputs[own[0]][0] == "average":
                e = errors[self.counts[0]]
                need(e < fmpq(1, 2), "n is not known", UNCHECKED)
                largest = max(abs(line.at(t)) for t in line.cuts(*sides))
                growth, reach = (1 + e) / (1 - e), reach + max(abs(low), abs(high)) * e
                spread = L * growth * reach + e * largest
            total += spread + moved
            heights = sum((abs(h * k) for k, _, h, _ in line.units), ZERO)
            tops = [sum((abs(h) * max(k * t + c, ZERO) for k, c, h, _ in line.units), ZERO) for t in (low, high)]
            size += (max(tops) + heights * reach + moved) * growth * growth
        need((N * size) ** 2 * s.tiny < 1, "numbers may overflow", UNCHECKED)
        steps = number + 2 + (N + 2 if s.c["readout"] == "mean" else 0)
        return total + s.gamma(steps) * size + 4 * number * s.tiny

    def silent(self, k: int, each: list[Any]) -> None:
        """A unit of averages sees no code at the first position, and one that outweighs everything at all others."""
        s, w, N = self.layer, self.layer.w, self.layer.N
        codes = [(m, exact(w["W_1"][m][k])) for m in s.M if s.placed[m] and w["W_1"][m][k]]
        heard = sum((abs(exact(w["W_1"][m][k])) * max(map(abs, each[m])) for m in self.held if w["W_1"][m][k]), ZERO)
        first, *later = [[weight * exact(row[m]) for m, weight in codes] for row in s.codes]
        good = not any(first) and all(max(row) <= 0 and -sum(row, ZERO) >= 4 * N * heard for row in later)
        small = all(sum(row, ZERO) ** 2 * s.tiny < 1 for row in later)
        need(good and small, "a unit is not silent at later positions", UNCHECKED)

    def span_of(self, own: Sequence[int], slopes: Sequence[Any]) -> tuple[float, float]:
        """The ends of a linear form of inputs."""
        corners = [[k * exact(end) for end in self.sides[v]] for v, k in zipped(own, slopes)]
        return outward(sum(map(min, corners), ZERO), sum(map(max, corners), ZERO))

    def gap(self, terms: list[Node]) -> tuple[Any, Any]:
        """(low, high) of D − f for inputs between their ends, without rounding."""
        units, ends = dict[Any, list[Any]](), [arb(exact(self.layer.w["b_R"][0]))] * 2
        for (_, own, slopes), line in self.lines.items():
            units.setdefault((own, slopes), []).extend(line.units)
        joined = {key: BentLine(some) for key, some in units.items()}
        sets = {frozenset(variables(t)) for t in terms} | {frozenset(own) for own, _ in joined}
        for group in [set[int](), *map(set, grouped(len(self.inputs), [set(one) for one in sets]))]:
            here = [t for t in terms if variables(t) & group or not variables(t) | group]
            lines = {key: line for key, line in joined.items() if group & {*key[0]}}
            if not group:
                for term in here:
                    ends = [v - value(term, []) for v in ends]
            elif here or lines:
                require_values(here, Domain(self.sides, None, 0.0))
                for low, high in self.alone(here, lines) or self.ridges(sorted(group), here, lines):
                    ends = [ends[0] + low, ends[1] + high]
        return ends[0], ends[1]

    def alone(self, terms: list[Node], lines: dict[Any, BentLine]) -> list[tuple[Any, Any]] | None:
        """`gap` of terms that are functions of one linear form each, the one of the polylines with the same inputs."""
        found = list[tuple[Any, Any]]()
        for own in {tuple(sorted(variables(t))) for t in terms} | {own for own, _ in lines}:
            forms = {slopes for seen, slopes in lines if seen == own} or ({(fmpq(1),)} if len(own) == 1 else set())
            here = [self.of_form(t, own, next(iter(forms))) for t in terms if {*own} == variables(t)] if forms else []
            if len(forms) != 1 or None in here:
                return None
            slopes = next(iter(forms))
            node: Node = tree("add", NOTHING, *(t for t in here if t is not None))
            found.append(self.between(lines.get((own, slopes), BentLine()), node, self.span_of(own, slopes)))
        return found

    def between(self, line: BentLine, node: Node, ends: tuple[float, float]) -> tuple[Any, Any]:
        return extent(line.less(node, *ends), 1e-3 * self.bound, self.tick)

    def of_form(self, term: Node, own: tuple[int, ...], slopes: tuple[Any, ...]) -> Node | None:
        """A term as a function of the linear form u, if it sees its inputs through that alone."""
        if len(own) == 1:
            return substituted(term, [VAR] * len(self.inputs))
        for part in below(term):
            form = affine(part, len(self.inputs)) if variables(part) == {*own} and not jumps_of([term]) else None
            if form is not None and all(form[v + 1].is_exact() for v in own):
                rates = [middle(form[v + 1]) for v in own]
                if rates[0] and all(rate == rates[0] * k for rate, k in zipped(rates, slopes)):
                    u: Node = tree("mul", num(rates[0]), var(-1))
                    found = replaced(term, part, tree("add", u, num(form[0])))
                    if variables(found) == {-1}:
                        return replaced(found, var(-1), VAR)
        return None

    def ridges(self, group: list[int], terms: list[Node], lines: dict[Any, BentLine]) -> list[tuple[Any, Any]]:
        """`gap` by way of a polynomial for each linear form: D less that, and their sum less f."""
        need(len(group) == 2 and lines, "a function of several inputs that interact", UNCHECKED)
        found, parts = list[tuple[Any, Any]](), list[Node]()
        places: list[Node] = [var(group.index(v) if v in group else 0) for v in range(len(self.inputs))]
        degree = min(max(len(lines) - 1, 2), 14)
        for (own, slopes), line in lines.items():
            ends = self.span_of(own, slopes)
            best: tuple[float, Any, Node] = (INF, None, VAR)
            for more in range(degree, 15, 3):  # until that helps little
                polynomial = line.polynomial(*ends, more)
                low, high = self.between(line, polynomial, ends)
                if not up(high - low) < best[0] / 2:
                    break
                best = (up(high - low), (low, high), polynomial)
            polynomial = best[2]
            found.append(best[1])
            form = tuple(tree("mul", num(k), places[v]) for v, k in zipped(own, slopes))
            parts.append(substituted(polynomial, [tree("add", *form)]))
        rest: Node = tree("add", *parts, *(minus(substituted(t, places)) for t in terms))
        found.append(extent([(rest, [self.sides[v] for v in group])], 1e-2 * self.bound, self.tick))
        return found


def set_bound(c: Record, w: Record, u: Any, target: Record, numbers: tuple[float, float], tick: Tick) -> Any:
    """A proved bound on |T − f| for a function of sets of up to `longest` numbers; and one on rounding."""
    f, aggregates = read_set(target, "float64" if u < fmpq(1, 2**30) else "float32", numbers[0])
    layer = SetLayer(c, w, u, (target["longest"], *map(exact, target["ends"])))
    proof = SetProof(layer, target, numbers[1], tick)
    terms = proof.terms(f, aggregates)
    proof.coordinates()
    proof.units()
    off = proof.off()
    low, high = proof.gap(terms)
    return middle(abs(low).max(abs(high)).upper()) + off, 2 * off


# ═══ 9. Samples: stored data, point by point ════════════════════════════════════════════════════════════════════════


def read_table(path: Path, names: list[str]) -> tuple[list[list[str]], list[list[str]]]:
    """The cells of a CSV file: the columns of the variables, and all other columns, which hold the answers."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file) if len(row) > 1 or "".join(row).strip()]
    except (OSError, UnicodeError, csv.Error) as error:
        raise Verdict(UNCHECKED, f"the data cannot be read: {' '.join(str(error).split())[:80]}") from None
    header = rows[0] if rows else []
    fits = set(names) < set(header) and all(len(row) == len(header) == len(set(header)) for row in rows)
    need(fits, f"the data have no columns {', '.join(names)[:60]} and answers beside them", UNCHECKED)
    others = [i for i, name in enumerate(header) if name not in names]
    places = [header.index(name) for name in names]
    return [[row[i] for i in places] for row in rows[1:]], [[row[i] for i in others] for row in rows[1:]]


def read_samples(data: Any, target: Record) -> tuple[list[list[float]], list[list[float]]]:
    """Inputs and answers (scores, for labels), which have the digest that the folder names."""
    x, y = read_table(Path(data), target["names"]) if isinstance(data, (str, Path)) else (list(part) for part in data)
    X, cells, encoded = [flattened(row) for row in x], [flattened(row) for row in y], target.get("decoding")
    labels: Any = encoded.get("labels") if isinstance(encoded, dict) else None
    parameters: Any = target.get("parameters")
    for order in permutations(range(len(cells[0]))) if cells and len(cells[0]) <= 4 else [None]:
        try:
            X = [[float(v) + 0.0 for v in row] for row in X]
            Y = [[v for i in order or range(len(row)) for v in scores(row[i], labels)] for row in cells]
        except (TypeError, ValueError, IndexError):
            continue
        flat = [v for rows in (X, Y) for row in rows for v in row]
        digest = hashlib.sha256(struct.pack(f"<{len(flat)}d", *flat)).hexdigest()
        if isinstance(parameters, dict) and digest == parameters.get("sha256") and len(X) == len(Y):
            return X, Y
    raise Verdict(UNCHECKED, "the data are not those that were stored: their SHA-256 is another one")


def scores(answer: Any, labels: list[Any] | None) -> list[float]:
    """An answer as numbers: itself, or 1 for its label and 0 for all others."""
    if labels is None:
        return [float(answer) + 0.0]
    kinds = {type(label) for label in labels}
    if isinstance(answer, str) and kinds <= {int, float}:
        answer = int(answer) if kinds == {int} else float(answer)
    return [float(k == labels.index(answer)) for k in range(len(labels))]


def normalised(layer: Dense, x: list[float], width: int) -> list[float]:
    """x̂ = (x − shift)·scale as the model computes it: one operation at a time, each rounded, the same everywhere."""
    shift, scale = ([v for row in layer.w[name] for v in row] for name in ("shift", "scale"))
    moved = [rounded(rounded(v, width) - a, width) for v, a in zipped(x, shift)]
    return [rounded(v * b, width) for v, b in zipped(moved, scale)]


def stored(layer: Dense, samples: Any, numbers: tuple[float, float], width: int, tick: Tick) -> Verdict:
    """VALID if T is within the bound of the answer at every stored sample, rounding included."""
    bound, proved, (X, Y) = numbers[0], 0.0, samples
    for n, (x, y) in enumerate(zipped(X, Y), 1):
        tick([(v, v) for v in x])
        fits = len(x) == layer.c["tokens"] * layer.c["features_in"] and len(y) == len(layer.lines)
        need(fits, "samples of another shape")
        T, off = layer.answers([[arb(v)] for v in normalised(layer, x, width)], Jets(Sides([]), []), True)
        for t, e, v in zipped(T, off, y):
            error = abs(t[0] - arb(v))
            said = f"at sample {n} the error is above the claimed {bound!r}"
            need(not error - e > bound, said, box=[(v, v) for v in x])
            proved = max(proved, up(error + e))
    need(proved <= bound, f"not decided: rounding leaves no room below {bound!r}, {proved!r} is proved", UNCHECKED)
    return Verdict("VALID", f"|T − y| ≤ {bound!r} ≤ {numbers[1]!r} at all {len(X):,} stored samples", None, proved)


def memorised(record: Record, target: Record, weights: Any, data: Any, tick: Tick) -> Verdict:
    """The verdict on a folder of stored samples, with these beside it."""
    names, (about, tensors, width) = target.get("names"), weights
    need(isinstance(names, list) and all(isinstance(n, str) for n in names), "the names of the variables are malformed")
    X, Y = read_samples(data, target)
    need(X and len({len(x) for x in X}) == 1, "no samples, or samples of different shapes", UNCHECKED)
    single = struct.Struct(f"<{len(X[0])}{'d' if width == 8 else 'f'}")
    said = f"the {len({single.pack(*x) for x in X}):,} stored samples, at which alone it holds"
    same = record.get("domain") == said and record.get("norm") == NORM
    need(same, "the claim is about other points, or in another norm")
    evidence: Any = record.get("evidence")
    alone = record.get("method") == "lemma" and isinstance(evidence, dict) and evidence.get("relative") is None
    need(alone, "more is claimed than an error at stored samples")
    need(record.get("witness") is None, "a sample as a witness cannot be checked", UNCHECKED)
    u, box = fmpq(1, 2 ** (53 if width == 8 else 24)), [(0.0, 1.0)] * len(names or [])
    layer = read_layer(about, tensors, box, len(Y[0]), u, general=True)
    assert isinstance(layer, Dense)
    return stored(layer, (X, Y), (read_number(record, "bound"), read_number(record, "tolerance")), width, tick)


# ═══ 10. The verdict: which claim is made, and what decides it ══════════════════════════════════════════════════════

NORM = "maximum absolute difference over all output entries"
VARIATION = "total variation of the next-token distribution, ½ Σ|p − q|"


def read_relative(record: Record, tolerance: float, lemma: bool) -> tuple[float, float] | None:
    """(share, m) where the tolerance is claimed to be a share of |f| ≥ m; other evidence is not read."""
    evidence = record.get("evidence")
    need(isinstance(evidence, dict), "the evidence is malformed")
    need(lemma or dict(evidence or {}).get("lemma") is None, "the claim rests on a lemma", UNCHECKED)
    about = dict(evidence or {}).get("relative")
    if about is None:
        return None
    need(isinstance(about, dict) and about.get("known") == "proved", "the smallest |f| of a formula is to be proved")
    share, m = read_number(about, "share"), read_number(about, "least")
    product = exact(share) * exact(m)
    fits = product * (1 - fmpq(1, 2**50)) <= exact(tolerance) <= product and m > 0
    need(fits, f"the tolerance {tolerance!r} is not {share!r} of |f| ≥ {m!r}")
    return share, m


def require_prompt(folder: Path, sums: Record, tensors: Any) -> None:
    """A prompt's two files, where the certificate lists them, hold the numbers of the model: weights, and S as `tokens`."""
    if not any(name in sums for name in BESIDE):
        return
    for name in BESIDE:
        need((folder / name).is_file() and (folder / name).stat().st_size < 2**31, f"no {name} of a sensible size")
    content = [(folder / name).read_bytes() for name in BESIDE]
    for name, held in zipped(BESIDE, content):
        need(sums.get(name) == hashlib.sha256(held).hexdigest(), f"{name} was edited: its digest does not fit")
    held, (_, prompt, _, _) = dict(read_tensors(content[0])[1]), read_tensors(content[1])
    need({"W_E", "S"} <= set(tensors) and {"W_E", "shift", "scale"} <= set(held), "no prompt fits this model")
    D = len(tensors["W_E"][1])  # of the frozen layer's variables those that the function has
    numbers = {name: numbers for name, (_, numbers) in held.items()} | {"S": prompt.get("tokens", (0, 0))[1]}
    numbers |= {"W_E": numbers["W_E"][:D]} | {name: [row[:D] for row in numbers[name]] for name in ("shift", "scale")}
    same = {name: numbers for name, (_, numbers) in tensors.items()} == numbers
    need(same, "the frozen weights and the prompt are not the model that the certificate is about")


def prove(folder: Path, tick: Tick, data: Any = None) -> Verdict:
    """VALID, or another verdict is raised."""
    for name in FILES:
        need((folder / name).is_file() and (folder / name).stat().st_size < 2**31, f"no {name} of a sensible size")
    content = [(folder / name).read_bytes() for name in FILES]
    target, record = (read_json(c, name) for c, name in zipped(content[1:], FILES[1:]))
    digest, sums = record.pop("digest", None), record.get("sha256")
    text = json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False).encode("utf-8", "surrogatepass")
    need(digest == hashlib.sha256(text).hexdigest(), "certificate.json was edited: its digest does not fit")
    for name, held in zipped(FILES[:2], content[:2]):
        fits = isinstance(sums, dict) and sums.get(name) == hashlib.sha256(held).hexdigest()
        need(fits, f"{name} was edited: its digest does not fit the certificate")
    for about in (record, target):
        known = type(about.get("schema")) is int and about["schema"] in SCHEMAS
        need(known, f"schema {str(about.get('schema'))[:20]} is unknown")
    about, tensors, width, fingerprint = read_tensors(content[0], str(record.get("weight_format", "")))
    need(record.get("weights") == fingerprint, "the certificate speaks of other weights")
    require_prompt(folder, dict(sums or {}), tensors)
    tolerance, margin = read_number(record, "tolerance"), read_number(record, "margin", 0.0)
    need(read_number(target, "margin", 0.0) == margin, "target and certificate have different margins")
    bound, observed, witness = *(read_number(record, k, INF) for k in ("bound", "observed")), record.get("witness")
    lower = read_number(record, "lower", 0.0)
    need(lower <= bound, f"a lower bound of {lower!r}, above the upper one of {bound!r}")
    slope, properties = read_slope(record), record.get("properties") or []
    listed = properties if isinstance(properties, list) else [None]
    judged = all(isinstance(p, dict) and set(p) == {"text", "verdict"} for p in listed)
    need(judged, "the record of the properties is malformed")
    holds = observed <= bound <= tolerance and (slope is None or slope[2] <= slope[1] <= slope[0])
    holds = holds and all(p["verdict"] == "PROVED" for p in properties)
    implied = "CERTIFIED" if holds else "UNDECIDED"
    implied, claimed = implied if witness is None else "REFUTED", str(record.get("verdict"))[:20]
    need(claimed == implied, f"the numbers imply {implied}, the record says {claimed}")
    need(implied != "UNDECIDED", "nothing is claimed (UNDECIDED)", UNCHECKED)
    unknown = {"data": "data that are", "samples": "samples that are"}
    kind, given = unknown.get(str(target.get("kind")), "a callable that is"), data is not None
    entry = (target.get("kind") == "gallery" or "longest" in target) and target.get("formula") is None
    known = entry or target.get("formula") is not None or (given and target.get("kind") == "samples")
    how = "; pass the data (--data FILE)" if target.get("kind") == "samples" else ""
    need(known, f"the target is {kind} not stored{how}", UNCHECKED)
    more = slope is not None or properties
    need(not more or target.get("formula") is not None, "slopes or properties are claimed without a formula", UNCHECKED)
    need(lower == 0 or entry or target.get("formula") is not None, "samples that are stored have no lower bound")
    arithmetic = "float64" if width == 8 else "float32"
    need(record.get("arithmetic") == arithmetic, f"the weights are {arithmetic}, the claim is about something else")
    if not entry and target.get("formula") is None:
        with ctx.workprec(WORKING):
            return memorised(record, target, (about, tensors, width), data, tick)
    need(not given, "there is a formula: no data are needed", UNCHECKED)
    norm = VARIATION if entry and target.get("kind") == "language" else NORM
    need(record.get("norm") == norm, "the error is claimed in another norm", UNCHECKED)
    relative, u = read_relative(record, tolerance, entry), fmpq(1, 2 ** (53 if width == 8 else 24))
    plain = relative is None and witness is None and margin == 0 and target.get("within") is None
    need(not entry or plain, "more or less is claimed than the error of an entry everywhere", UNCHECKED)
    if entry and "longest" in target:
        need(lower == 0, "a lower bound without a formula is not checked", UNCHECKED)
        return sequences(target, record, (about, tensors, u), bound, tick)
    if entry and target.get("vocabulary") is not None:
        n = len(target["names"]) if isinstance(target.get("names"), list) else 0
        what = read_program(target, record, n)
        size = math.prod(target["output_shape"])
        config = read_config(about, tensors, n * target["vocabulary"], size)
        need(config[0]["tokens"] == n, "the layer has another number of tokens")
        need(lower == 0, "a lower bound without a formula is not checked", UNCHECKED)
        proved = program(Levels(*config[:2], u), config[2], what, bound, tick)
        need(proved <= exact(bound), f"not decided: {float(proved)!r} is proved, not {bound!r}", UNCHECKED)
        said = f"|T − f| ≤ {bound!r} ≤ {tolerance!r} for {record['domain']}"
        return Verdict("VALID", said, None, min(bound, up(arb(proved))))
    with ctx.workprec(READING):
        f, domain, said = read_target(target, margin, (arithmetic, tolerance))
        need(record.get("domain") == said, "target and certificate speak of different domains")
        if relative is not None:
            with ctx.workprec(WORKING):
                bounded_below(f, domain, relative[1], tick)
        if entry and bound == 0:
            config = read_config(about, tensors, len(domain.box), len(f))
            moved = all(node[0] == "var" or node == NOTHING for node in f)
            need(moved, "the layer does not copy numbers", UNCHECKED)
            sources, reach = [node[2] if node[0] == "var" else None for node in f], max(map(abs, flattened(domain.box)))
            return copied(Levels(*config[:2], u, numbers=True), config[2], sources, exact(reach))
        layer = read_layer(about, tensors, domain.box, len(f), u)
        if lower > 0:
            step_by_step = partial(read_layer, about, tensors, domain.box, len(f), u, general=True)
            attained(layer, step_by_step, f, domain, record.get("lower_point"), lower)
        if witness is not None:
            found = refuted(layer, f, domain, witness, (tolerance, bound))
            same = all(rounded(v, width) == v for v in witness)
            need(same, "the witness is no point in float32, which the claim is about")
            return found
        said = claim((lower, bound), tolerance, relative, domain, target, arithmetic)
        require_values(f, domain)
        hints = record["evidence"].get("lanes")
        if isinstance(layer, Dense) and hints is not None and layer.c["norm"] == "none":
            try:
                lanes = read_lanes(hints, target["names"], len(f))
                proved = composed(layer, f, domain, lanes, bound, tick)
            except Verdict as found:  # hints that are wrong refute nothing
                with ctx.workprec(WORKING):
                    seen_to_fail(layer, f, domain, bound)
                why = found.reason if found.verdict == UNCHECKED else "the hinted composition does not prove it"
                raise replace(found, verdict=UNCHECKED, reason=why, box=None) from None
        elif isinstance(layer, Dense):
            with ctx.workprec(WORKING):
                part = layer.on(f, domain)
                claim_exists(domain, part.axes, part.jumps, tick)
                proved = search([part], part, bound, tick)
        else:
            proved = bounded(layer, f, domain, bound, tick)[0]
        if slope is not None:
            try:
                bounded_slopes(layer, f, domain, slope[1], tick)
            except Verdict as found:
                before = "the slopes: " if found.verdict == "INVALID" else "the values were proved, the slopes not: "
                raise replace(found, reason=before + found.reason.replace("T − f", "∂T − ∂f"), bound=proved) from None
            said += f"; sup |∂T − ∂f| ≤ {slope[1]!r} ≤ {slope[0]!r} for all partial derivatives"
            said += f", more than {margin!r} away from every kink of the formula" if margin else ""
        for text in [p["text"] for p in properties]:
            try:
                proved_property(layer, read_property(text, target["names"]), domain, tick)
            except Verdict as found:
                before = "" if found.verdict == "INVALID" else f"{said}: that was proved, not the property "
                raise replace(found, reason=before + found.reason, bound=proved) from None
            said += f"; {' '.join(text.split())}"
        return Verdict("VALID", said, None, proved)


def claim(
    ends: tuple[float, float], tolerance: float, relative: Any, domain: Domain, target: Record, arithmetic: str
) -> str:
    """What was proved, in a line: where, how far from jumps, and for which inputs."""
    share = f" = {relative[0]!r}·m, |f| ≥ m = {relative[1]!r}" if relative else ""
    where = f", where {' '.join(target['within'].split())}" if domain.where is not None else ""
    apart = f", more than {domain.margin!r} away from every jump" if domain.margin else ""
    single = ", at float32 inputs" if arithmetic == "float32" else ""
    least = f"{ends[0]!r} ≤ " if ends[0] else ""
    return f"{least}sup |T − f| ≤ {ends[1]!r} ≤ {tolerance!r}{share}{where}{apart}{single}"


def refuted(layer: Layer | Dense, f: list[Node], domain: Domain, witness: Any, numbers: tuple[float, float]) -> Verdict:
    """VALID if |T(x) − f(x)| > tolerance at the witness, by more than rounding can explain. The bound is not proved again."""
    tolerance, bound = numbers
    need(bound > tolerance, "a witness, and a bound within the tolerance")
    require_point(witness, f, domain, "the witness")
    least = [abs(v) - off - rounding for v, off, rounding in errors_at(layer, f, domain, witness)]
    need(any(v > tolerance for v in least), "at the witness the error is not proved to exceed the tolerance")
    need(not any(v > bound for v in least), "the witness exceeds the bound too")
    return Verdict("VALID", f"REFUTED is right: |T − f| > {tolerance!r} at {witness}")


def require_point(x: Any, f: list[Node], domain: Domain, name: str) -> None:
    """Refuse what is no point of the domain; where a jump may be near, nothing is known."""
    good = isinstance(x, list) and all(type(v) in (int, float) for v in x) and len(x) == len(domain.box)
    inside = good and all(a <= v <= b for v, (a, b) in zipped(x, domain.box))
    claimed = inside and (domain.where is None or truth(domain.where, balls(x)) == {True})
    need(claimed, f"{name} is not in the domain")
    need(domain.contains(x, jumps_of(f)), f"{name} may lie within the margin of a jump", UNCHECKED)


def errors_at(layer: Layer | Dense, f: list[Node], domain: Domain, x: list[float]) -> list[tuple[Any, Any, Any]]:
    """(T − f at a point, T being the real function of the weights; how far that, and rounding, can be off), per output."""
    if isinstance(layer, Dense):
        with ctx.workprec(WORKING):
            T, rounding = layer.answers([[arb(v)] for v in x], Jets(Sides([]), []))
            return [(t[0] - value(node, balls(x)), arb(0), off) for t, node, off in zipped(T, f, rounding)]
    g = Difference(layer, f, domain.box, 0.0, 0)
    rows = [layer.rounding([(v, v) for v in map(float, x)], head) for head in g.heads]
    found = Part(g, range(len(domain.box)), True, domain, 0.0).at(balls(x))
    return list(zipped(found, g.high, map(summed, zipped(g.rounding, *rows))))


def attained(
    layer: Layer | Dense, step_by_step: Callable[[], Any], f: list[Node], domain: Domain, x: Any, lower: float
) -> None:
    """Prove |T − f| ≥ lower at the point that the certificate names; another verdict is raised.

    Where kinks of T and f are merged, up to a trifle that matters here, T is evaluated step by step.
    """
    require_point(x, f, domain, "the point of the lower bound")
    if isinstance(layer, Layer) and any(abs(v) - off >= lower for v, off, _ in errors_at(layer, f, domain, x)):
        return
    found, here = [abs(v) for v, _, _ in errors_at(step_by_step(), f, domain, x)], [(float(v), float(v)) for v in x]
    need(not all(v < lower for v in found), f"at its point the error is below the lower bound {lower!r}", box=here)
    need(any(v >= lower for v in found), "the lower bound is not decided", UNCHECKED, here)


def check(folder: str | Path, seconds: float = SECONDS, boxes: int = BOXES, *, data: Any = None) -> Verdict:
    """The verdict on a model folder, within this many seconds and boxes.

    A folder of memorised samples does not hold them: `data` is the CSV file that was memorised, or a pair (X, Y).
    """
    started, done = time.monotonic(), count(1)

    def tick(box: Box) -> None:
        if next(done) > boxes or time.monotonic() - started > seconds:
            raise Verdict(UNCHECKED, f"not decided within {seconds:.0f} s and {boxes} boxes", box)

    try:
        found = prove(Path(folder), tick, data)
    except Verdict as verdict:
        found = verdict if verdict.verdict in STATUS else replace(verdict, verdict=UNCHECKED)
    except UnicodeError:
        found = Verdict("INVALID", "the files are not text")
    except RecursionError:
        found = Verdict(UNCHECKED, "the formula is nested too deeply")
    except OverflowError:
        found = Verdict(UNCHECKED, "numbers may overflow")
    return replace(found, boxes=next(done) - 1, seconds=time.monotonic() - started)


def main(arguments: list[str]) -> int:
    many = len(arguments) == 1 or (len(arguments) == 3 and arguments[1] == "--data")
    if not many or not all((Path(arguments[0]) / name).is_file() for name in FILES):
        print("usage: checker.py FOLDER [--data FILE.csv], a folder with " + ", ".join(FILES), file=sys.stderr)
        return 2
    found = check(arguments[0], data=arguments[2] if len(arguments) == 3 else None)
    print(found)
    return STATUS[found.verdict]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
