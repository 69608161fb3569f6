"""Gradients as formulas: all partial derivatives of a formula, tree to tree, so that slopes have every reading that values have.

`gradient(f)` has the names of f and the outputs ∂f_o/∂x_i, one after another: index o·D + i. What holds for it:

  boxes    A finite enclosure on a box, or at a point, contains the slope of f wherever f has one there, and every difference
           quotient along x_i inside the box; f is f̃ of `real_balls`. Where f has no value there is no finite enclosure: a part
           of f that its slope no longer shows is kept as + 0*log(x).
  numbers  Plain floating point takes one side of a kink or jump.
  kinks    The slope of abs, min, max is `where`, the hull of both sides around a kink. Comparisons are with b + (pi - pi): a zero
           that no enclosure takes for 0, so a tie is undecided at a single point as well. (Else |x| − |−x| had the slope 2 at 0.)
  jumps    A slope across an undecided `where`, or across the cut of atan2, is divided by where(…, 1, -1): no enclosure.
  limits   Quotients 0/0 that f reads as limits (`removable`) are differentiated as the functions with these limits.

Functions that occur in slopes only, as sinc′, are hidden members of the language (`functions`).

Not guaranteed: a value wherever f has a slope. 0·∞ in the chain rule has none, as in sqrt(x**4) at 0.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from ..common.errors import InputError
from . import tree as trees
from .additive import ONE, ZERO, negated, over, plus, power, times
from .demands import GIVES, Key, key_of, needed
from .expression import Formula
from .functions import FUNCTIONS
from .own import own_names
from .parser import parse
from .printing import to_text
from .record import Function
from .tree import Node, Predicate, Tree, at, children, postorder
from .vocabulary import LETTERS, MAX_CHARACTERS

BLUR = trees.Sum((trees.Constant("pi"), trees.Negation(trees.Constant("pi"))))


def blurred(node: Node) -> Node:
    """node + (pi - pi): equal, and no enclosure of it is a point."""
    if node == BLUR or (isinstance(node, trees.Sum) and node.terms[-1] == BLUR):
        return node
    return BLUR if node == ZERO else trees.Sum((node, BLUR))


def clear(test: Predicate) -> Predicate:
    """The same condition, which enclosures leave undecided where the sides of a comparison are equal."""
    match test:
        case trees.Relation(sign, left, right):
            return trees.Relation(sign, left, blurred(right))
        case trees.And(parts) | trees.Or(parts):
            return type(test)(tuple(map(clear, parts)))
        case trees.Not(part):
            return trees.Not(clear(part))


def tells(test: Predicate) -> bool:
    """Whether a condition is of that kind."""
    return clear(test) == test


MINUS = trees.Negation(ONE)


def gradient(formula: Formula) -> Formula | None:
    """The formula of all partial derivatives; None without variables, or if its text is beyond the limits of `vocabulary`.

    Its text reads back as the same trees. Where there is none, `slopes` still has the trees.
    """
    for lean in (True, False):  # a divisor that cancels when the text is read no longer tells where f has a value
        outputs = [slope for row in slopes(formula, lean) for slope in row]
        if not outputs or _size(outputs) > MAX_CHARACTERS:
            return None
        names = formula.names if LETTERS.isdisjoint(formula.names) else None  # y1(…) would be a product
        try:
            found = parse("; ".join(to_text(output, names) for output in outputs), names, _own(outputs))
        except InputError:
            return None
        if not found.limits:
            break
    limits = formula.limits + tuple(factor for factor in found.limits if factor not in formula.limits)
    return replace(found, names=formula.names, declared=formula.declared, limits=limits)


def slopes(formula: Formula, lean: bool = True) -> list[list[Node]]:
    """∂f_o/∂x_i as trees with shared parts, of any size, [output][variable].

    If not lean, it does not rely on a division to tell where f has a value: quotients of f are kept beside it.
    """
    differentiation = _Differentiation(formula, lean)
    columns = [differentiation.by(index) for index in range(1, formula.dimension + 1)]
    return [[column[place] for column in columns] for place in range(len(formula.outputs))]


class _Differentiation:
    """Forward differentiation of one formula. `proves`: made nodes that have a value only where others of the formula do."""

    def __init__(self, formula: Formula, lean: bool) -> None:
        self.formula, self.lean = formula, lean
        self.order = postorder(formula.outputs)
        self.depends: dict[int, frozenset[int]] = {}
        self.partial: set[int] = set()  # may have no value, though their variables have
        self.slopes: dict[int, Node] = {}
        self.proves: dict[int, tuple[Node, Key]] = {}
        for tree in self.order:
            own = frozenset([tree.index] if isinstance(tree, trees.Variable) else [])
            self.depends[id(tree)] = own.union(*(self.depends[id(child)] for child in children(tree)))
            inner = any(id(child) in self.partial for child in children(tree))
            if inner or (not isinstance(tree, trees.Where) and key_of(tree) and not self.certain(tree)):
                self.partial.add(id(tree))

    def certain(self, tree: Tree) -> bool:
        """Whether the tree, or the divisor in it, is a constant that has been seen to have a value."""
        probe = trees.Quotient(ONE, tree.divisor) if isinstance(tree, trees.Quotient) else tree
        if any(self.depends[id(child)] for child in children(probe) if child is not ONE):
            return False
        from .real_balls import enclose

        return enclose(Formula("", (), (probe,)), [], strict=True)[0].is_finite()  # type: ignore[arg-type]

    def by(self, index: int) -> list[Node]:
        """The partial derivatives of all outputs by one variable."""
        done: dict[int, Node] = {}
        for tree in self.order:
            varies = index in self.depends[id(tree)]
            if not isinstance(tree, trees.Relation | trees.And | trees.Or | trees.Not):
                done[id(tree)] = self.derivative(tree, index, done) if varies else ZERO
        return [self.kept(output, done[id(output)]) for output in self.formula.outputs]

    def derivative(self, tree: Node, index: int, done: dict[int, Node]) -> Node:
        match tree:
            case trees.Sum(terms):
                return plus(done[id(term)] for term in terms)
            case trees.Negation(operand):
                return negated(done[id(operand)])
            case trees.Product(factors):
                return plus(times(*factors[:i], done[id(one)], *factors[i + 1 :]) for i, one in enumerate(factors))
            case trees.Quotient(top, trees.Where(condition, yes, no) as mark) if (yes, no) == (ONE, MINUS) and tells(
                condition
            ):
                if isinstance(top, trees.Where) and top.condition == condition:
                    return trees.Quotient(self.pieces(top, condition, done, 1), mark)
                return trees.Quotient(done[id(top)], mark)
            case trees.Quotient(dividend, divisor):
                return over(plus([done[id(dividend)], negated(times(tree, done[id(divisor)]))]), divisor)
            case trees.IntegerPower(base, n):
                return times(trees.Number(Fraction(n)), power(base, n - 1), done[id(base)])
            case trees.Power(base, trees.Number(q)):
                return times(trees.Number(q), trees.Power(base, trees.Number(q - 1)), done[id(base)])
            case trees.Power(base, exponent):
                by_base = times(exponent, trees.Power(base, trees.Sum((exponent, MINUS))), done[id(base)])
                return plus([by_base, times(tree, trees.Call("log", (base,)), done[id(exponent)])])
            case trees.Call("min" | "max" as name, (first, *others)):
                slope = done[id(first)]
                for other in others:
                    test = trees.Relation(">" if name == "max" else "<", first, blurred(other))
                    first, slope = trees.Call(name, (first, other)), _where(test, slope, done[id(other)])
                return slope
            case trees.Call("atan2", (y, x)):
                square = trees.Sum((power(x, 2), power(y, 2)))
                turn = over(plus([times(x, done[id(y)]), negated(times(y, done[id(x)]))]), square)
                sides = [trees.Relation(sign, side, BLUR) for sign, side in ((">", x), ("<", y), (">=", y))]
                return trees.Quotient(turn, self.marked(trees.Where(trees.Or(tuple(sides)), ONE, MINUS), tree))
            case trees.Call(_, (u,)):
                return times(self.slope(tree), done[id(u)])
            case trees.Where(condition, _, _) if index not in self.depends[id(condition)]:
                return self.pieces(tree, condition, done, 1)
            case trees.Where(condition, _, _):
                cut = clear(condition)
                return trees.Quotient(self.pieces(tree, cut, done, -1), self.marked(trees.Where(cut, ONE, MINUS), tree))
            case _:
                return ONE

    def slope(self, call: trees.Call) -> Node:
        """The derivative of a function of one argument."""
        if id(call) not in self.slopes:
            parts = call.arguments[0], call
            found = at(FUNCTIONS[call.name].slope_formula.outputs[0], lambda index: parts[index - 1])
            for root in postorder([found]) if call.name in ("asin", "acos") else ():
                if isinstance(root, trees.Call) and root.name == "sqrt":
                    self.marked(root, call)
            self.slopes[id(call)] = found
        return self.slopes[id(call)]

    def pieces(self, tree: trees.Where, condition: Predicate, done: dict[int, Node], sign: int) -> Node:
        """where(condition, yes′, ±no′), each with a value only where its branch has one."""
        yes, no = (self.kept(branch, done[id(branch)]) for branch in (tree.yes, tree.no))
        return self.marked(_where(condition, yes, no if sign > 0 else negated(no)), tree)

    def marked(self, made: Node, tree: Node) -> Node:
        """A new node that has a value only where the tree has."""
        key = key_of(tree)
        if key and isinstance(made, trees.Where | trees.Call):
            self.proves[id(made)] = made, key
        return made

    def kept(self, tree: Node, slope: Node) -> Node:
        """The slope of a tree, with no value where the tree has none: plus 0 times what may have none and left no trace."""
        known = self.told(slope)
        for part in needed(tree) if id(tree) in self.partial else ():
            key = key_of(part)
            if id(part) in self.partial and key and key not in known:
                slope = plus([slope, trees.Product((ZERO, part))])  # type: ignore[arg-type]
                known |= self.told(part) | {key}
        return slope

    def told(self, tree: Tree) -> set[Key]:
        """What must hold for a tree to have a value."""
        found = {key for part in needed(tree) if (key := key_of(part))}
        found |= {self.proves[id(part)][1] for part in needed(tree) if id(part) in self.proves}
        found |= {(other, *key[1:]) for key in found for other in GIVES.get(str(key[0]), ())}
        return found if self.lean else {key for key in found if key[0] != "not zero"}


def _where(test: Predicate, yes: Node, no: Node) -> Node:
    return yes if yes is no else trees.Where(test, yes, no)


def _own(roots: Sequence[Node]) -> dict[str, Function]:
    """The functions of the user's own in trees, and those beside them."""
    return {other: f for name in own_names(roots) for other, f in name.record.beside.items()}


def _size(roots: Sequence[Node]) -> int:
    """How many nodes the trees have, shared ones counted as often as they are written."""
    sizes: dict[int, int] = {}
    for tree in postorder(roots):
        sizes[id(tree)] = 1 + sum(sizes[id(child)] for child in children(tree))
    return sum(sizes[id(root)] for root in roots)
