"""A formula in the language of Coq's real numbers, printed from its tree, everything in brackets."""

from fractions import Fraction

from ....common.errors import InputError
from ....formula import tree as trees
from ....formula.tree import Node, Tree, children, postorder

NAMED = {"sin": "sin", "cos": "cos", "tan": "tan", "exp": "exp", "log": "ln", "sqrt": "sqrt", "atan": "atan"}
NAMED |= {"abs": "Rabs", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh"}
WRITTEN = {
    "sqr": "(({0}) ^ 2)",
    "sigmoid": "(1 / (1 + exp (- ({0}))))",
    "expm1": "(exp ({0}) - 1)",
    "log1p": "(ln (1 + ({0})))",
    "softplus": "(ln (1 + exp ({0})))",
    "hypot": "(sqrt (({0}) ^ 2 + ({1}) ^ 2))",
}
FOLDED = {"max": "Rmax", "min": "Rmin"}
CONSTANTS = {"pi": "PI", "e": "(exp 1)"}
TRIGONOMETRIC = {"sin", "cos", "tan"}


def number(value: Fraction | float) -> str:
    """An exact number."""
    value = Fraction(value)
    top = str(abs(value.numerator))
    word = top if value.denominator == 1 else f"{top} / {value.denominator}"
    return f"(- ({word}))" if value < 0 else f"({word})" if "/" in word else word


def printed(root: Node) -> str:
    """The formula, with variables x1, x2, …; refused where Coq's interval arithmetic does not know a function."""
    words: dict[int, str] = {}
    for tree in postorder((root,)):
        words[id(tree)] = _written(tree, [words[id(part)] for part in children(tree)])
    return words[id(root)]


def _written(tree: Tree, parts: list[str]) -> str:
    match tree:
        case trees.Number(value):
            return number(value)
        case trees.Constant(name):
            return CONSTANTS[name]
        case trees.Variable(index):
            return f"x{index}"
        case trees.Sum():
            return f"({' + '.join(parts)})"
        case trees.Negation():
            return f"(- {parts[0]})"
        case trees.Product():
            return f"({' * '.join(parts)})"
        case trees.Quotient():
            return f"({parts[0]} / {parts[1]})"
        case trees.IntegerPower(_, exponent):
            power = f"({parts[0]} ^ {abs(exponent)})"
            return power if exponent >= 0 else f"(/ {power})"
        case trees.Power(_, trees.Number(value)) if value == Fraction(1, 2):
            return f"(sqrt ({parts[0]}))"
        case trees.Power():
            return f"(exp ({parts[1]} * ln ({parts[0]})))"
        case trees.Call(name) if name in NAMED:
            return f"({NAMED[name]} ({parts[0]}))"
        case trees.Call(name) if name in WRITTEN:
            return WRITTEN[name].format(*parts)
        case trees.Call(name) if name in FOLDED:
            found = parts[-1]
            for part in reversed(parts[:-1]):
                found = f"({FOLDED[name]} ({part}) ({found}))"
            return found
    named = tree.name if isinstance(tree, trees.Call) else "where"
    asked = "functions that Coq's interval arithmetic knows"
    raise InputError(asked, f"{named} in the formula", "export it as onnx, torch or c")


def is_trigonometric(root: Node) -> bool:
    """Whether sin, cos or tan occur: their enclosures fail near multiples of pi as ends of a box."""
    return any(isinstance(tree, trees.Call) and tree.name in TRIGONOMETRIC for tree in postorder((root,)))
