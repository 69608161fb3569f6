"""Removable singularities: a quotient 0/0 that has a limit is read as the function with that limit.

    sin(u)/u = sinc(u)      (exp(u) − 1)/u = exprel(u)      (1 − cos(u))/u² = sinc(u/2)²/2      u·v/(exp(v) − 1) = u/exprel(v)

Numerator and divisor are taken apart into factors. A factor φ(v) of either that vanishes with v to the order k is
v^k·ψ(v) with ψ without zero at 0 (`Function.root`), and then v cancels against the other side.

Where the quotient is defined its value is unchanged. Where a factor that cancels is 0, it had none, and now has its limit; these
factors are remembered. Nothing is rewritten unless zeros that meet cancel altogether.

Beside these, rewritings that change no value and avoid cancellation: e^u − 1, log(1 + u), and under a root the law of cosines.
"""

import math
from dataclasses import dataclass, field
from fractions import Fraction

from . import tree as trees
from .additive import gathered
from .demands import key_of
from .functions import FUNCTIONS
from .printing import to_text
from .tree import Call, IntegerPower, Make, Negation, Node, Number, Product, Quotient, Sum, at

ONE = Fraction(1)
WAVES = {"cos": "0.5*sinc(u/2)**2", "cosh": "-0.5*exp(u)*exprel(-u)**2"}  # (1 − cos u)/u², (1 − cosh u)/u²
LARGEST = 10**280  # of the whole numbers that a rewritten quotient may have


@dataclass
class Factors:
    """coefficient · Π node^exponent; nodes by identity, in the order in which they came."""

    coefficient: Fraction = ONE
    powers: dict[int, tuple[Node, int]] = field(default_factory=dict)

    def times(self, other: "Factors", exponent: int = 1) -> None:
        self.coefficient *= other.coefficient**exponent
        for node, n in other.powers.values():
            self.multiply(node, n * exponent)

    def multiply(self, node: Node, exponent: int) -> None:
        self.powers[id(node)] = node, self.exponent(node) + exponent

    def exponent(self, node: Node) -> int:
        return self.powers.get(id(node), (node, 0))[1]


def factors_of(node: Node, make: Make) -> Factors | None:
    """The factors of products, quotients and integer powers, y − x as −(x − y); None where a number is 0 or too long."""
    found, parts = Factors(), list[tuple[Node, int]]()
    match node:
        case Number(value):
            return Factors(value) if value else None
        case Negation(operand):
            found, parts = Factors(-ONE), [(operand, 1)]
        case Product(factors):
            parts = [(factor, 1) for factor in factors]
        case Quotient(dividend, divisor):
            parts = [(dividend, 1), (divisor, -1)]
        case IntegerPower(base, exponent) if exponent:
            parts = [(base, exponent)]
        case Call("sqr", (base,)):
            parts = [(base, 2)]
        case Sum((Negation(b), a)) | Sum((a, Negation(b))) if not isinstance(a, Negation):
            turned = to_text(a) > to_text(b)
            node = make(Sum, (b, make(Negation, a)) if turned else (a, make(Negation, b)))
            return Factors(-ONE if turned else ONE, {id(node): (node, 1)})
        case _:
            return Factors(ONE, {id(node): (node, 1)})
    for part, exponent in parts:
        inner = factors_of(part, make)
        if inner is None or (abs(exponent) > 1 and not _short(inner.coefficient, abs(exponent))):
            return None
        found.times(inner, exponent)
    return found if _short(found.coefficient) else None


def _short(value: Fraction, times: int = 1) -> bool:
    return max(value.numerator.bit_length(), value.denominator.bit_length()) * times < LARGEST.bit_length()


Zero = tuple[Node, int, str, int]  # (v, k, ψ, ±1): the node is ±v^k·ψ, ψ as text in u = v and y = the node


def _zero_of(node: Node) -> Zero | None:
    """How a node vanishes with another one; None if it does not, or that is not known."""
    if isinstance(node, Sum) and len(node.terms) == 2:
        for first, second in (node.terms, node.terms[::-1]):
            taken = second.operand if isinstance(second, Negation) else None
            for one, wave, sign in ((first, taken, 1), (taken, first, -1)):  # ±(1 − cos v), ±(1 − cosh v)
                if one == Number(ONE) and isinstance(wave, Call) and wave.name in WAVES:
                    return wave.arguments[0], 2, WAVES[wave.name], sign
    if isinstance(node, Call) and len(node.arguments) == 1 and (root := FUNCTIONS[node.name].root):
        return node.arguments[0], *root, 1
    return None


def _rest(node: Node, root: Zero, make: Make) -> Factors | None:
    """The factors of ±ψ."""
    from .parser import parse

    v, _, text, sign = root
    psi = parse(text, ("u", "y")).outputs[0]
    found = factors_of(at(psi, lambda index: (v, node)[index - 1], make), make)
    return found and Factors(found.coefficient * sign, found.powers)


def continued(quotient: Node, make: Make) -> tuple[Node, list[Node]] | None:
    """(the quotient with its limits, the factors at whose zeros they are taken), or None if there is nothing to do."""
    found = factors_of(quotient, make)
    if found is None:
        return None
    cancelled: list[Node] = []
    # above and below, as x in x·y/(x·z)
    met = [node for node, n in found.powers.values() if n == 0 and trees.variables(node)]
    for node, m in list(found.powers.values()):
        root = _zero_of(node) if m else None
        inner = factors_of(root[0], make) if root else None
        if root is None or inner is None:
            continue
        order = root[1]
        zeros = [f for f, n in inner.powers.values() if n > 0 and found.exponent(f) * m < 0 and trees.variables(f)]
        if not zeros or any(found.exponent(f) + order * m * inner.exponent(f) < 0 for f in zeros):
            continue
        if any(
            trees.has_kinks(tree) and not (isinstance(tree, Call) and tree.name == "abs")
            for tree in trees.postorder(zeros)
        ):
            continue  # it may be 0 on a whole region
        rest = _rest(node, root, make)
        if rest is None or not _short(inner.coefficient, order * m):
            continue
        found.multiply(node, -m)
        found.times(inner, order * m)
        found.times(rest, m)
        cancelled += zeros
    if not cancelled or not _short(found.coefficient):
        return None
    written = _written(found, make)
    for node in met:
        if all(key_of(tree) is None and not trees.has_kinks(tree) for tree in trees.postorder([node])):
            cancelled += [] if node in cancelled else [node]
        else:  # it stays: without a value it leaves none
            written = make(Product, (written, make(Quotient, node, node)))
    return written, cancelled


def _written(found: Factors, make: Make) -> Node:
    """The factors as a tree: a product, or a quotient of two."""

    def product(number: int, sign: int) -> Node:
        powers = [(node, sign * n) for node, n in found.powers.values() if sign * n > 0]
        parts = [node if n == 1 else make(IntegerPower, node, n) for node, n in powers]
        return gathered(Product, parts if number == 1 and parts else [make(Number, Fraction(number)), *parts], make)

    top, bottom = product(abs(found.coefficient.numerator), 1), product(found.coefficient.denominator, -1)
    node: Node = top if bottom == Number(ONE) else make(Quotient, top, bottom)
    return make(Negation, node) if found.coefficient < 0 else node


def accurate_sum(terms: tuple[Node, ...], make: Make) -> Node:
    """The sum, with e^u − 1 as expm1(u): the same function, without cancellation near u = 0."""
    for sign in (1, -1):
        one: Node = make(Number, ONE)
        wanted = make(Negation, one) if sign > 0 else one
        for term in terms if wanted in terms else ():
            grown = term if sign > 0 else term.operand if isinstance(term, Negation) else None
            if isinstance(grown, Call) and grown.name == "exp":
                new: Node = make(Call, "expm1", grown.arguments)
                rest = list(terms)
                rest.remove(term)
                rest.remove(wanted)
                return gathered(Sum, [new if sign > 0 else make(Negation, new), *rest], make)
    return make(Sum, terms)


def accurate_log(argument: Node, make: Make) -> Node:
    """log(1 + u) as log1p(u), and log(1 + e^u) as softplus(u): the same functions."""
    terms = list(argument.terms) if isinstance(argument, Sum) else []
    if Number(ONE) not in terms:
        return make(Call, "log", (argument,))
    terms.remove(Number(ONE))
    rest = gathered(Sum, terms, make)
    if isinstance(rest, Call) and rest.name == "exp":
        return make(Call, "softplus", rest.arguments)
    return make(Call, "log1p", (rest,))


def sum_of_squares(argument: Node, make: Make) -> Node:
    """p² + q² ± 2pq·cos t as (p ± q·cos t)² + (q·sin t)²: the same number, and plainly not negative."""
    terms = list(argument.terms) if isinstance(argument, Sum) else []
    found = [factors_of(term, make) for term in terms]
    for k, mixed in enumerate(found):
        powers = mixed.powers.values() if mixed else ()
        waves = [node for node, n in powers if isinstance(node, Call) and node.name == "cos" and n == 1]
        if mixed is None or len(waves) != 1:
            continue
        wave, pairs = waves[0], [(i, j) for i in range(len(terms)) for j in range(i) if k not in (i, j)]
        rest = Factors(mixed.coefficient, dict(mixed.powers))
        rest.multiply(wave, -1)
        for i, j in pairs:
            p, q = (_root(found[place]) for place in (j, i))
            if p is None or q is None:
                continue
            ratio = Factors()
            for one, exponent in ((rest, -1), (p, 1), (q, 1)):
                ratio.times(one, exponent)
            if abs(ratio.coefficient) != Fraction(1, 2) or any(n for _, n in ratio.powers.values()):
                continue
            parts = [Factors(q.coefficient, dict(q.powers)) for _ in range(2)]
            for part, factor in zip(parts, (wave, make(Call, "sin", wave.arguments)), strict=True):
                part.multiply(factor, 1)
            turned, across = (_written(part, make) for part in parts)
            along = make(Sum, (_written(p, make), turned if rest.coefficient > 0 else make(Negation, turned)))
            squares = [make(IntegerPower, along, 2), make(IntegerPower, across, 2)]
            return make(Sum, (*squares, *(term for n, term in enumerate(terms) if n not in (i, j, k))))
    return argument


def _root(square: Factors | None) -> Factors | None:
    """The factors of p, where p² is given."""
    if square is None or square.coefficient <= 0 or any(n % 2 for _, n in square.powers.values()):
        return None
    top, bottom = math.isqrt(square.coefficient.numerator), math.isqrt(square.coefficient.denominator)
    if Fraction(top, bottom) ** 2 != square.coefficient:
        return None
    return Factors(Fraction(top, bottom), {key: (node, n // 2) for key, (node, n) in square.powers.items()})
