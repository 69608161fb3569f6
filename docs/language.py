"""Write docs/start/formulas.md, the page on the formula language, from its vocabulary: `python docs/language.py`.

Every example on the page goes through the parser when the page is written; what it says is what the page says.
"""

from pathlib import Path

from onelayer.common.errors import InputError
from onelayer.common.table import Table
from onelayer.formula import parse, to_text
from onelayer.formula import vocabulary as words

PAGE = Path(__file__).parent / "start" / "formulas.md"

TYPED = (
    *("x*exp(-x^2)", "2x", "2(x + 1)", "(x + 1)(x - 1)", "3sin(x)cos(y)", "πr²", "10⁻³x", "x − 1·y", "|x| + 2|y|"),
    *("ln(x) + arctan(y)", "log10(x)", "√(x)", "-x^2", "2^-x", "x^y^z", "y = x^2", "f(x, y) = x/y", "x₁ + x₂"),
)
ANSWERED = ("1/2x", "x^2y", "xy", "sin x", "sin^2(x)", "sin2x", "cosec(x)", "x(x + 1)", "x1 + x", "sine(x) + 1/3y")
LIMITS = (
    "sin(x)/x",
    "tan(x)/x",
    "(exp(x) - 1)/x",
    "x/(exp(x) - 1)",
    "(1 - cos(x))/x^2",
    "log(1 + x)/x",
    "sinh(x)/x",
    "tanh(x)/x",
    "asin(x)/x",
)
ORDERED = ("t*y + x", "k*T + x", "x3", "f(k, T) = k/T")

TEXT = """\
# The formula language

Written by `python docs/language.py` from the vocabulary; a test compares the two.

A formula is numbers, variables and functions with `+ - * / ^` and round brackets. Decimals are exact: 0.1 is 1/10. Several
outputs are separated by `;`. Text is data: it is read against a list of allowed words and never executed. What a model folder
keeps, and what the [checker](../trust/checker.md) reads, is the canonical spelling in the right column (`^` is stored as `**`).

```python
import onelayer as ol

target = ol.Target("f(x, y) = 2x·exp(-y²)", [(0, 1), (0, 2)])
print(target.text, "on", target.domain)
```

```text
2*x*exp(-y**2) on x in [0, 1], y in [0, 2]
```

## What you type, and how it is read

{typed}
Powers bind tighter than signs and are read from the right, as in mathematics: -x^2 is -(x^2), and x^y^z is x^(y^z).

What can be read in two ways is not guessed. The answer names every fault and, where there is a likely repair, a formula to paste:

{answered}
## Variables

Variables are x1, x2, … or names of your own, not both. **Their order** is x, y, z, t, then the other names from A to Z
(capitals first); `f(k, T) = …` states another order, and names in the domain decide before anything else:
`"k=1:2, T=280:350"` on the command line, `{{"k": (1, 2), "T": (280, 350)}}` in Python. The order is that of the domain, of the
columns of a batch and of the numbers after `onelayer eval`; tables and reports show it in the row *domain*.

{ordered}
Sides that differ, for names other than x, y, z and t, must be named. A name begins with a letter, Latin or Greek unless the
domain has it, and goes on with letters, digits and underscores; `pi`, the names of functions and Python's keywords (`lambda`) are
taken. `e` is 2.718… unless the domain has a variable of that name.

## Functions and constants

{functions}
`pi` (or `π`) and `e` are constants, and `arctan2` is `atan2`. Names such as `gamma`, `zeta`, `y1`, `k0` are functions before a
bracket and variables elsewhere. `log10`, `log2`, `exp2`, `sec`, `csc` and `cot` are stored in terms of `log`, powers, `cos`,
`sin` and `tan`. `exp(u) - 1` is computed as `expm1(u)` and `log(1 + u)` as `log1p(u)`, whatever u
is: the same numbers, without cancellation.

## Where a formula is 0/0, and where it is not defined

A quotient that is 0/0 at some points and has a limit there is read as the function with that limit:

{limits_taken}
So are their products, powers and reciprocals, with any formula in place of x: `sin((x - y)*t)^2/(x - y)^2`. A certificate names
the points: *where x = 0 the formula is undefined; its limit is taken*. Any other division by 0 stays undefined.

`sqrt`, `asin`, `acos` and powers such as `x^0.5` are undefined outside their domain. A formula that has no value at a sampled
point of the domain is refused. Rounding cannot always tell an argument that reaches the edge of such a function from one that
passes it; [only points where the formula is defined are claimed](../trust/guarantees.md).

## Conditions

`where(condition, a, b)` and `--within` take comparisons with `<`, `<=`, `>`, `>=`, chains such as `0 < x < y`, and `and`, `or`,
`not`. A formula with `where` may jump; `--margin` leaves the points near its jumps out of the claim.

## Limits

They keep hostile text cheap and do not affect any result.

{limits}"""


def described(name: str) -> str:
    """What a function is, and its other names."""
    other = ", ".join(f"`{synonym}`" for synonym in words.RECORDS[name].synonyms)
    return words.UNARY[name] + (f"; also {other}" if other else "")


def page() -> str:
    """The whole page."""
    functions = [(f"`{name}(x)`", described(name)) for name in words.UNARY]
    functions += [
        (f"`{name}({'y, x' if name == 'atan2' else 'x, y'})`", meaning) for name, meaning in words.BINARY.items()
    ]
    functions += [(f"`{name}(x, y, …)`", meaning) for name, meaning in words.VARIADIC.items()]
    functions += [("`where(condition, a, b)`", words.WHERE)]
    limits = [
        ("characters of a formula, as typed and as stored", words.MAX_CHARACTERS),
        ("operations", words.MAX_NODES),
        ("nesting", words.MAX_DEPTH),
        ("characters of one number or name", words.MAX_DIGITS),
        ("size of a number other than 0", f"1e-{words.MAX_MAGNITUDE} to 1e{words.MAX_MAGNITUDE}"),
        ("size of a constant exponent", words.MAX_EXPONENT),
        ("index in x1, x2, …", words.MAX_VARIABLE),
    ]
    return TEXT.format(
        typed=_table(("you type", "is read as"), [(_code(text), _code(parse(text).text)) for text in TYPED]),
        answered=_table(("you type", "the answer"), [(_code(text), _answer(text)) for text in ANSWERED]),
        ordered=_table(("formula", "variables"), [(_code(text), ", ".join(parse(text).names)) for text in ORDERED]),
        limits_taken=_table(("you type", "is computed as"), [(_code(text), _code(_computed(text))) for text in LIMITS]),
        functions=_table(("function", "meaning"), functions),
        limits=_table(("what", "at most"), limits),
    )


def _answer(text: str) -> str:
    try:
        parse(text)
    except InputError as refusal:
        return f"{refusal.found}; change: {refusal.change}".replace("*", r"\*")
    raise AssertionError(f"{text} is understood")


def _computed(text: str) -> str:
    formula = parse(text)
    assert formula.limits, text
    return to_text(formula.outputs[0], formula.names)


def _code(text: str) -> str:
    return f"`{text}`"


def _table(columns: tuple[str, str], rows: list[tuple[str, object]]) -> str:
    return Table("", columns, list(rows)).markdown()


if __name__ == "__main__":
    PAGE.write_text(page())
