"""The words of the formula language and its limits: everything else is refused.

The limits keep hostile text cheap. They bound the work of the parser, never the accuracy of a result. `docs/language.py`
writes the page on the language from this file.
"""

from .functions import FUNCTIONS as RECORDS

UNARY = {name: f.words for name, f in RECORDS.items() if not f.hidden}  # one argument → what it is
BINARY = {  # two arguments
    "atan2": "angle of the point with coordinates x and y, from -pi to pi; it jumps where y = 0 and x < 0",
    "hypot": "sqrt(x^2 + y^2)",
}
VARIADIC = {"min": "smallest of two or more", "max": "largest of two or more"}
WHERE = "a where the condition holds, b elsewhere"
FUNCTIONS = frozenset([*RECORDS, *BINARY, *VARIADIC, "where"])
LETTERS = frozenset(name for name, f in RECORDS.items() if f.letter)  # variables, too, where no bracket follows
RESERVED = FUNCTIONS - LETTERS
SPOKEN = frozenset([*UNARY, *BINARY, *VARIADIC, "where"])  # those that people are told of
CONSTANTS = frozenset(["pi", "e"])

# what people type → what is read and stored
SYMBOLS = {
    **{"^": "**", "−": "-", "–": "-", "·": "*", "⋅": "*", "∙": "*", "×": "*", "÷": "/"},
    **{"≤": "<=", "≥": ">="},
}
SYNONYMS = {synonym: name for name, f in RECORDS.items() for synonym in f.synonyms} | {"arctan2": "atan2", "π": "pi"}
WRITTEN = {  # what is stored instead: before the bracket of the argument, and what closes it
    **{"log10": ("(log", ")/log(10))"), "log2": ("(log", ")/log(2))"), "exp2": ("(2**", "))")},
    **{"sec": ("(1/cos", "))"), "csc": ("(1/sin", "))"), "cot": ("tan(pi/2 - ", "))")},
}
# functions that are not read, and what to write; "" where nothing short does
INSTEAD = {
    **{"cosec": "csc(…)", "ctg": "cot(…)"},
    **{"tg": "tan(…)", "arctg": "atan(…)", "lg": "(log(…)/log(10))", "log_10": "(log(…)/log(10))"},
    **{"log_2": "(log(…)/log(2))", "ld": "(log(…)/log(2))", "log_e": "log(…)"},
    **{"square": "sqr(…)", "pow": "…^…"},
    **{"relu": "max(0, …)", "logistic": "sigmoid(…)"},
    **dict.fromkeys(["sign", "sgn", "signum"], "where(… < 0, -1, where(… > 0, 1, 0))"),
    **{"heaviside": "where(… < 0, 0, 1)", "step": "where(… < 0, 0, 1)"},
    **dict.fromkeys(["floor", "ceil", "round", "mod", "fmod"], ""),
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
