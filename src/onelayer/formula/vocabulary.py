"""The words of the formula language and its limits: everything else is refused.

The limits keep hostile text cheap. They bound the work of the parser, never the accuracy of a result.
"""

UNARY = [  # one argument
    *["sin", "cos", "tan", "exp", "log", "sqrt", "tanh", "sinh", "cosh"],
    *["atan", "asin", "acos", "sigmoid", "erf", "abs", "sqr"],
]
VARIADIC = ["min", "max"]  # two or more arguments
FUNCTIONS = frozenset([*UNARY, *VARIADIC, "where"])
CONSTANTS = frozenset(["pi", "e"])

MAX_CHARACTERS = 10_000
MAX_DEPTH = 100
MAX_NODES = 5_000
MAX_DIGITS = 400  # characters of one literal
MAX_MAGNITUDE = 300  # a nonzero literal lies between 10^-300 and 10^300
MAX_EXPONENT = 1_000  # of an integer power
MAX_VARIABLE = 10_000  # largest index in x1, x2, …

ALLOWED = (
    "numbers, pi, e, variables, + - * / **, parentheses and the functions " + ", ".join([*UNARY, *VARIADIC]) + ", where"
)
