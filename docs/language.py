"""Write docs/start/formulas.md, the page on the formula language, from its vocabulary: `python docs/language.py`.

Every example on the page goes through the parser when the page is written; what it says is what the page says. What is known of
functions comes from their records, what was built from benchmarks/data/functions_built.csv. Nothing is built here.
"""

import csv
import math
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from onelayer.common.errors import InputError
from onelayer.common.numbers import counted
from onelayer.common.table import Table
from onelayer.formula import parse, to_text
from onelayer.formula import vocabulary as words
from onelayer.formula.record import BetweenPoles, DefinedOn

DATA = Path(__file__).parents[1] / "benchmarks" / "data"
sys.path.append(str(DATA))

from function_table import GROUPS, SHARES, Group, Shown, Sides  # noqa: E402

PAGE = Path(__file__).parent / "start" / "formulas.md"
GLUE, NO_BREAK = "~", "\N{NO-BREAK SPACE}"  # tables drop the latter
ENDS = {words.RECORDS["lambertw"].domain.lo: "−1/e"}

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
    "asinh(x)/x",
    "erf(x)/x",
    "j1(x)/x",
    "(cosh(x) - 1)/x^2",
)
ELSEWHERE = (  # in NumPy or SciPy, here, what to know
    ("np.sinc(x)", "sinc(pi*x)", "there sin(πx)/(πx), here sin(x)/x"),
    ("special.spherical_jn(0, x)", "sinc(x)", ""),
    ("special.ellipk(x)", "ellipk(x)", "of the parameter m = k², as there; with the modulus k write `ellipk(k^2)`"),
    ("special.ellipe(x)", "ellipe(x)", "likewise"),
    ("special.fresnel(x)[0]", "fresnels(x)", "of sin(πt²/2), as there; books also integrate sin(t²)"),
    ("special.fresnel(x)[1]", "fresnelc(x)", "of cos(πt²/2)"),
    ("special.sici(x)[0]", "si(x)", ""),
    ("special.sici(x)[1]", "ci(x)", ""),
    ("special.airy(x)[0]", "ai(x)", ""),
    ("special.airy(x)[2]", "bi(x)", ""),
    ("special.expi(x)", "expi(x)", ""),
    ("special.exp1(x)", "-ei(-x)", ""),
    ("special.lambertw(x).real", "lambertw(x)", "the principal branch, and real"),
    ("special.ndtr(x)", "ndtr(x)", ""),
    ("special.log_ndtr(x)", "log(normcdf(x))", ""),
    ("special.gammaln(x)", "gammaln(x)", "for x > 0 only, as `gamma`"),
    ("special.psi(x)", "psi(x)", "for x > 0 only"),
    ("special.jv(3, x)", "jv(3, x)", "of whole order only"),
    ("special.eval_legendre(5, x)", "eval_legendre(5, x)", "of whole degree only, up to 50"),
    ("special.eval_chebyt(5, x)", "eval_chebyt(5, x)", "likewise; of the first kind"),
    ("special.polygamma(1, x)", "polygamma(1, x)", "orders 1 to 4"),
    ("np.mod(x, 2)", "mod(x, 2)", "has the sign of the divisor, as there and in Python's `%`; `np.fmod` does not"),
    ("np.floor(x + 0.5)", "round(x)", "halves go up; `np.round` takes them to the even neighbour"),
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

Ambiguous input is never guessed at. The answer names every fault and, where there is a likely repair, a formula to paste:

{answered}
## Variables

Variables are x1, x2, … or names of your own, not both. **Their order** is x, y, z, t, then the other names from A to Z
(capitals first); `f(k, T) = …` states another order, and names in the domain decide before anything else:
`"k=1:2, T=280:350"` on the command line, `{{"k": (1, 2), "T": (280, 350)}}` in Python. The order is that of the domain, of the
columns of a batch and of the numbers after `onelayer eval`; tables and reports show it in the row *domain*.

{ordered}
If the intervals differ and the variables are not x, y, z, t, name each interval. A name begins with a letter, Latin or Greek
unless the domain has it, and goes on with letters, digits and underscores; `pi`, the names of functions and Python's keywords
(`lambda`) are taken. `e` is 2.718… unless the domain has a variable of that name.

## Functions and constants

`pi` (or `π`) and `e` are constants. Names such as `gamma`, `zeta`, `y1`, `k0` are functions before a bracket and variables
elsewhere.

For every function, layers were built with default options on two domains, each to a thousandth and to a millionth of the
function's range. {told}

The tables give units and processor seconds on one thread. `python benchmarks/measure/functions_built.py` builds and checks the
layers, `python benchmarks/draw/curves.py` draws the pictures.

{functions}Where it says *a function of its own*, the package knows the derivative, but you cannot write it in a formula.
`exp(u) - 1` is computed as `expm1(u)` and `log(1 + u)` as `log1p(u)`, whatever u is: the same function, without cancellation.

### Called differently in NumPy and SciPy

Most names are those of NumPy and `scipy.special`, or are understood: `arcsinh`, `gammaln`, `psi`, `ndtr`, `expit`, `arctan2`.
These deserve a second look (`np` is NumPy, `special` is `scipy.special`):

{elsewhere}
### Functions of your own

You can add a function that the language lacks, for one target at a time. `ol.Function` needs a function that encloses it on a
`python-flint` ball, and its derivative as a formula in the argument u and the value y. Dawson's function has D′ = 1 − 2uD:

```python
dawson = ol.Function("dawson", ball=lambda z: z.pi().sqrt() / 2 * (-z * z).exp() * z.erfi(), slope="1 - 2*u*y")
target = ol.Target("x*dawson(3*x)", (0, 2), functions=[dawson])
layer = ol.build(target, tolerance=1e-3)
print(layer.certificate.verdict, layer.certificate.assumptions[-1])
```

```text
CERTIFIED dawson as enclosed by its record
```

Giving a `shape` ("increasing", "decreasing", or "even": increasing in |u|), bounds `least` and `most`, and a `domain` tightens
the enclosures; a slope may name the other functions of the same target. What you declare is spot-checked and otherwise taken
on trust; the certificate says so. The independent checker cannot check such a function, and model folders do not store it.

A Python function can be a target by itself, `ol.build(f, domain)`, where f takes a batch of points. What is proved then rests on
what is declared of f, its Lipschitz constant for instance ([guarantees](../trust/guarantees.md)).

## Where a formula is 0/0, and where it is not defined

A quotient that is 0/0 at some points and has a limit there is read as the function with that limit:

{limits_taken}
So are their products, powers and reciprocals, with any formula in place of x: `sin((x - y)*t)^2/(x - y)^2`. A certificate names
the points: *where x = 0 the formula is undefined; its limit is taken*. `si`, `i1`, `lambertw`, `atan` and others have such limits
too. Any other division by 0 stays undefined.

`sqrt`, `asin`, `acos` and powers such as `x^0.5` are undefined outside their domain. A formula that has no value at a sampled
point of the domain is refused. Rounding cannot always tell an argument that reaches the edge of such a function from one that
passes it; [only points where the formula is defined are claimed](../trust/guarantees.md).

## Conditions

`where(condition, a, b)` and `--within` take comparisons with `<`, `<=`, `>`, `>=`, chains such as `0 < x < y`, and `and`, `or`,
`not`. A formula with `where` may jump; `--margin` leaves the points near its jumps out of the claim.

## Limits

They keep hostile text cheap and do not affect any result.

{limits}"""


def understood(formula: str) -> bool:
    try:
        parse(formula)
    except InputError:
        return False
    return True


def group_text(group: Group) -> str:
    """A heading, a table, and what is to be said of it."""
    rows = [shown_cells(row) for row in group.rows if understood(row.formula)]
    if not rows:
        return ""
    shares = (f"to {share:.0e} of the range".replace("e-0", "e-") for share in SHARES)
    columns = ("", "function", "defined for, slope", "layers on", *shares)
    note = f"{group.note}\n\n" if group.note else ""
    return f"### {group.title}\n\n{_table(columns, rows).replace(GLUE, NO_BREAK)}\n{note}"


def shown_cells(row: Shown) -> tuple[str, ...]:
    """Picture; name and meaning; domain and slope; and what was built on two domains."""
    f = words.RECORDS.get(row.record)
    other = ", ".join(f"`{synonym}`" for synonym in [*(f.synonyms if f else ()), *row.synonyms])
    meaning = row.words or (without_domain(f.words) if f else "")
    picture = f"![{_alternative(row)}](../figures/functions/{row.name}.svg)"
    function = f"`{row.title}`<br>{meaning}" + (f"; also {other}" if other else "")
    if row.formula != row.title and not row.drawn:
        function += f"<br>here `{row.formula}`"
    domains = "<br>".join(_domain(domain) for domain in row.domains)
    made = [
        "<br>".join(built_text(built_row(row.formula, domain, share)) for domain in row.domains) for share in SHARES
    ]
    known = f"{where_text(row)}<br>{slope_text(row)}"
    return picture, function, known, domains, *made


def without_domain(text: str) -> str:
    """The meaning of a function alone: its domain has a column of its own."""
    return re.sub(r", [-\d x]*[<>].*", "", text)


def where_text(row: Shown) -> str:
    f = words.RECORDS.get(row.record)
    if row.where or f is None:
        return row.where
    if isinstance(f.shape, BetweenPoles):
        return "x ≠ (k + ½)π"
    return domain_text(f.domain or DefinedOn())


def domain_text(d: DefinedOn) -> str:
    """A domain in terms of x."""
    less, more = ("≤", "≥") if d.closed else ("<", ">")
    low, high = (ENDS.get(end, f"{end:g}".replace("-", "−")) for end in (d.lo, d.hi))
    if d.without is not None:
        return f"x ≠ {d.without:g}"
    if not any(map(math.isfinite, (d.lo, d.hi))):
        return "all x"
    if math.isfinite(d.lo) and math.isfinite(d.hi):
        return f"{low} {less} x {less} {high}"
    return f"x {more} {low}" if math.isfinite(d.lo) else f"x {less} {high}"


def slope_text(row: Shown) -> str:
    """The slope of the record, in x."""
    f = words.RECORDS.get(row.record)
    if understood(row.slope):
        return _code(row.slope)
    if f is None:
        return row.slope
    named = words.RECORDS.get(f.slope.removesuffix("(u)"))
    return "slope: a function of its own" if named and named.hidden else _code(in_x(f.slope, row))


def in_x(slope: str, row: Shown) -> str:
    """A slope in u and y = φ(u) as one in x."""
    slope = re.sub(r"\by\b", row.formula, slope.replace("pi - pi", "0"))
    return re.sub(r"\bu\b", "x", slope)


@cache
def stored() -> dict[tuple[str, str, float], dict[str, str]]:
    """What was built, by formula, domain and share of the range."""
    with (DATA / "functions_built.csv").open(newline="", encoding="utf-8") as file:
        return {(row["formula"], row["domain"], float(row["share"])): row for row in csv.DictReader(file)}


def built_row(formula: str, domain: Sides, share: float) -> dict[str, str] | None:
    sides = ", ".join(f"{name}={low:g}:{high:g}" for name, (low, high) in domain.items())
    return stored().get((formula, sides, share))


def built_text(row: dict[str, str] | None) -> str:
    """Units and seconds of a layer, and what is not as it should be."""
    if row is None:
        return "–"
    seconds = float(row["seconds"])
    took = f"{seconds:.1f}" if seconds >= 0.095 else f"{seconds:.2f}"
    wrong = [said for said, right in ((row["verdict"], "CERTIFIED"), (row["check"], "VALID")) if said != right]
    return ", ".join([glued(f"{counted(int(row['units']), 'unit')}, {took} s"), *map(glued, wrong)])


def glued(text: str) -> str:
    """A text that is not broken into lines."""
    return text.replace(" ", GLUE)


def told() -> str:
    """How many of the layers are certified, and to how many the checker says so."""
    shown = [row for group in GROUPS for row in group.rows if understood(row.formula)]
    rows = [built_row(row.formula, domain, share) for row in shown for domain in row.domains for share in SHARES]
    certified = [row for row in rows if row and row["verdict"] == "CERTIFIED"]
    valid = [row for row in certified if row["check"] == "VALID"]
    checker = "the independent [checker](../trust/checker.md) says VALID to"
    return f"**{len(certified)} of {len(rows)} layers are CERTIFIED**; {checker} {len(valid)} of them."


def _alternative(row: Shown) -> str:
    low, high = (f"{end:g}".replace("-", "−") for end in row.window)
    return f"{', '.join(row.curves)} for x from {low} to {high}".replace("|", "")


def _domain(domain: Sides) -> str:
    sides = [f"[{low:g}, {high:g}]".replace("-", "−") for low, high in domain.values()]
    return glued(" × ".join(sides))


def page() -> str:
    """The whole page."""
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
        told=told(),
        functions="".join(map(group_text, GROUPS)),
        elsewhere=_table(
            ("there", "here", ""),
            [(_code(there), _code(here), note) for there, here, note in ELSEWHERE if understood(here)],
        ),
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


def _table(columns: tuple[str, ...], rows: Sequence[tuple[object, ...]]) -> str:
    return Table("", columns, list(rows)).markdown()


if __name__ == "__main__":
    PAGE.write_text(page())
