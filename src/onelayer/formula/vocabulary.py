"""The words of the formula language and its limits: everything else is refused.

The limits keep hostile text cheap. They bound the work of the parser, never the accuracy of a result. `docs/language.py`
writes the page on the language from this file.
"""

from .functions import FUNCTIONS as RECORDS
from .functions import LAST_DEGREE, LAST_DERIVATIVE

WRITTEN = {  # in terms of others: of u, or of u and v
    "sec": ("1/cos(u)", "secant"),
    "csc": ("1/sin(u)", "cosecant"),
    "cot": ("cos(u)/sin(u)", "cotangent"),
    "exp2": ("2**u", "2^x"),
    "log2": ("log(u)/log(2)", "logarithm to the base 2"),
    "log10": ("log(u)/log(10)", "logarithm to the base 10"),
    "sign": ("where(u < 0, -1, where(u > 0, 1, 0))", "-1, 0 or 1; it jumps at 0"),
    "ceil": ("-floor(-u)", "smallest whole number that is not below x; it jumps"),
    "round": ("floor(u + 0.5)", "nearest whole number, halves upward; it jumps"),
    "hypot": ("sqrt(u**2 + v**2)", "sqrt(x^2 + y^2)"),
    "beta": ("exp(lgamma(u) + lgamma(v) - lgamma(u + v))", "beta function, x > 0 and y > 0"),
    "mod": ("u - v*floor(u/v)", "remainder of x/y, with the sign of y; it jumps"),
}
ORDERED = {  # name(n, x) with a whole number n → the name to which n is added, the largest n, what it is
    "j": ("j", 20, "Bessel function of the first kind, of order n"),
    "legendre": ("legendre", LAST_DEGREE, "Legendre polynomial of degree n"),
    "chebyshev": ("chebyshev", LAST_DEGREE, "Chebyshev polynomial of the first kind, of degree n"),
    "polygamma": ("digamma", LAST_DERIVATIVE - 1, "derivative of order n of digamma, x > 0"),
}
ORDERED |= dict.fromkeys(("jv", "jn", "besselj"), ORDERED["j"])  # as others have them
ORDERED |= dict.fromkeys(("legendreP", "eval_legendre"), ORDERED["legendre"])
ORDERED |= dict.fromkeys(("chebyshevT", "eval_chebyt"), ORDERED["chebyshev"])
UNARY = {name: f.words for name, f in RECORDS.items() if not f.hidden}  # one argument → what it is
UNARY |= {name: words for name, (text, words) in WRITTEN.items() if "v" not in text.replace("where", "")}
BINARY = {  # two arguments
    "atan2": "angle of the point with coordinates x and y, from -pi to pi; it jumps where y = 0 and x < 0",
    **{name: words for name, (_, words) in WRITTEN.items() if name not in UNARY},
}
VARIADIC = {"min": "smallest of two or more", "max": "largest of two or more"}
WHERE = "a where the condition holds, b elsewhere"
FUNCTIONS = frozenset([*RECORDS, *UNARY, *BINARY, *VARIADIC, "where"])
# variables, too, where no bracket follows
LETTERS = frozenset(["beta", *(name for name, f in RECORDS.items() if f.letter)])
RESERVED = FUNCTIONS - LETTERS
SPOKEN = frozenset([*UNARY, *BINARY, *VARIADIC, "where"])  # those that people are told of
CONSTANTS = frozenset(["pi", "e"])

# what people type → what is read and stored
SYMBOLS = {"^": "**", "−": "-", "–": "-", "·": "*", "⋅": "*", "∙": "*", "×": "*", "÷": "/", "≤": "<=", "≥": ">="}
SYNONYMS = {synonym: name for name, f in RECORDS.items() for synonym in f.synonyms} | {"arctan2": "atan2", "π": "pi"}
# functions that are not read, and what to write; "" where nothing short does
INSTEAD = {
    **{"cosec": "csc(…)", "ctg": "cot(…)"},
    **{"tg": "tan(…)", "arctg": "atan(…)", "lg": "(log(…)/log(10))", "log_10": "(log(…)/log(10))"},
    **{"log_2": "(log(…)/log(2))", "ld": "(log(…)/log(2))", "log_e": "log(…)"},
    **{"square": "sqr(…)", "pow": "…^…"},
    **{"relu": "max(0, …)", "logistic": "sigmoid(…)"},
    **dict.fromkeys(["sgn", "signum"], "sign(…)"),
    **dict.fromkeys(["heaviside", "heavyside", "step"], "where(… < 0, 0, 1)"),
    **{"ceiling": "ceil(…)", "rint": "round(…)", "fmod": ""} | dict.fromkeys(["exp1", "expint"], "(-ei(-(…)))"),
    **{"erfcinv": "erfinv(1 - (…))", "normpdf": "(exp(-(…)**2/2)/sqrt(2*pi))", "factorial": "gamma(… + 1)"},
    **{"sinint": "si(…)", "cosint": "ci(…)", "coth": "(1/tanh(…))", "sech": "(1/cosh(…))", "csch": "(1/sinh(…))"},
    **dict.fromkeys(["erfi", "dawson", "hermiteh", "betainc", "gammainc", "nthroot", "rem", "fix", "norm"], ""),
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

PAGE = "docs/start/formulas.md"
ALLOWED = f"numbers, pi, e, variables, + - * / ^, parentheses and functions, all of which are listed in {PAGE}"
