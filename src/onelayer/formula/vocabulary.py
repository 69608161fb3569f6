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
    "expm1": "e^x - 1, accurate near 0",
    "log1p": "log(1 + x), accurate near 0",
    "softplus": "log(1 + e^x)",
    "sinc": "sin(x)/x, and 1 at 0 (no factor pi)",
    "exprel": "(e^x - 1)/x, and 1 at 0",
    "cbrt": "cube root, of negative numbers too",
    "abs": "absolute value",
    "sqr": "square",
}
BINARY = {  # two arguments
    "atan2": "angle of the point with coordinates x and y, from -pi to pi; it jumps where y = 0 and x < 0",
    "hypot": "sqrt(x^2 + y^2)",
}
VARIADIC = {"min": "smallest of two or more", "max": "largest of two or more"}
WHERE = "a where the condition holds, b elsewhere"
FUNCTIONS = frozenset([*UNARY, *BINARY, *VARIADIC, "where"])
CONSTANTS = frozenset(["pi", "e"])

# what people type → what is read and stored
SYMBOLS = {
    **{"^": "**", "−": "-", "–": "-", "·": "*", "⋅": "*", "∙": "*", "×": "*", "÷": "/"},
    **{"≤": "<=", "≥": ">="},
}
SYNONYMS = {
    "ln": "log",
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "π": "pi",
    "√": "sqrt",
}
LOGARITHMS = {"log10": 10, "log2": 2}  # name → base; log(…)/log(base)
# functions that are not read, and what to write; "" where nothing short does
INSTEAD = {
    **{"sec": "(1/cos(…))", "csc": "(1/sin(…))", "cosec": "(1/sin(…))", "cot": "cos(…)/sin(…)", "ctg": "cos(…)/sin(…)"},
    **{"tg": "tan(…)", "arctg": "atan(…)", "lg": "(log(…)/log(10))", "log_10": "(log(…)/log(10))"},
    **{"log_2": "(log(…)/log(2))", "ld": "(log(…)/log(2))", "log_e": "log(…)"},
    **{"exp2": "(2**(…))", "square": "sqr(…)", "pow": "…^…"},
    **{"relu": "max(0, …)", "logistic": "sigmoid(…)"},
    **dict.fromkeys(["sign", "sgn", "signum"], "where(… < 0, -1, where(… > 0, 1, 0))"),
    **{"heaviside": "where(… < 0, 0, 1)", "step": "where(… < 0, 0, 1)"},
    **{"asinh": "log(… + sqrt(…^2 + 1))", "acosh": "log(… + sqrt(…^2 - 1))", "atanh": "log((1 + …)/(1 - …))/2"},
    **dict.fromkeys(["arsinh", "arcsinh"], "log(… + sqrt(…^2 + 1))"),
    **dict.fromkeys(["arcosh", "arccosh"], "log(… + sqrt(…^2 - 1))"),
    **dict.fromkeys(["artanh", "arctanh"], "log((1 + …)/(1 - …))/2"),
    **dict.fromkeys(["floor", "ceil", "round", "mod", "fmod", "gamma", "erfc", "erfinv"], ""),
    **dict.fromkeys(["sum", "prod", "mean", "int", "integral", "diff"], ""),
}
FIRST = ("x", "y", "z", "t")  # the order of variables: these, then the other names from A to Z

MAX_CHARACTERS = 10_000
MAX_DEPTH = 100
MAX_NODES = 5_000
MAX_DIGITS = 400  # characters of one literal
MAX_MAGNITUDE = 300  # a nonzero literal lies between 10^-300 and 10^300
MAX_EXPONENT = 1_000  # of an integer power
MAX_VARIABLE = 10_000  # largest index in x1, x2, …

ALLOWED = (
    "numbers, pi, e, variables, + - * / ^, parentheses and the functions "
    + ", ".join([*UNARY, *BINARY, *VARIADIC])
    + ", where"
)
PAGE = "docs/start/formulas.md"
