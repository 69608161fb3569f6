"""The words of the formula language and its limits: everything else is refused.

The limits keep hostile text cheap. They bound the work of the parser, never the accuracy of a result. `docs/language.py`
writes the page on the language from this file.
"""

UNARY = {  # one argument → what it is
    "sin": "sine, of an angle in radians",
    "cos": "cosine",
    "tan": "tangent",
    "exp": "e^x",
    "log": "natural logarithm",
    "sqrt": "square root",
    "tanh": "hyperbolic tangent",
    "sinh": "hyperbolic sine",
    "cosh": "hyperbolic cosine",
    "atan": "inverse tangent",
    "asin": "inverse sine",
    "acos": "inverse cosine",
    "sigmoid": "1/(1 + e^(-x))",
    "erf": "error function",
    "abs": "absolute value",
    "sqr": "square",
}
VARIADIC = {"min": "smallest of two or more", "max": "largest of two or more"}
WHERE = "a where the condition holds, b elsewhere"
FUNCTIONS = frozenset([*UNARY, *VARIADIC, "where"])
CONSTANTS = frozenset(["pi", "e"])

# what people type → what is read and stored
SYMBOLS = {
    **{"^": "**", "−": "-", "–": "-", "·": "*", "⋅": "*", "∙": "*", "×": "*", "÷": "/"},
    **{"≤": "<=", "≥": ">="},
}
SYNONYMS = {"ln": "log", "arcsin": "asin", "arccos": "acos", "arctan": "atan", "π": "pi", "√": "sqrt"}
LOGARITHMS = {"log10": 10, "log2": 2}  # name → base; log(…)/log(base)
FIRST = ("x", "y", "z", "t")  # the order of variables: these, then the other names from A to Z

MAX_CHARACTERS = 10_000
MAX_DEPTH = 100
MAX_NODES = 5_000
MAX_DIGITS = 400  # characters of one literal
MAX_MAGNITUDE = 300  # a nonzero literal lies between 10^-300 and 10^300
MAX_EXPONENT = 1_000  # of an integer power
MAX_VARIABLE = 10_000  # largest index in x1, x2, …

ALLOWED = (
    "numbers, pi, e, variables, + - * / ^, parentheses and the functions " + ", ".join([*UNARY, *VARIADIC]) + ", where"
)
PAGE = "docs/start/formulas.md"
