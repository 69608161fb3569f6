"""What the page on the formula language shows of every function: its picture, and two domains on which layers are built.

`formula` is what is built; `drawn` are the curves of the picture where those are others (functions of two arguments). Domain,
slope, meaning and synonyms come from the record of the function; `where`, `slope` and `words` stand here for functions that are
written in terms of others, and have none. A record without a row here has one all the same (`default`).
"""

import math
from dataclasses import dataclass, field

from onelayer.formula.functions import FUNCTIONS
from onelayer.formula.record import DefinedOn, Function

Side = tuple[float, float]
Sides = dict[str, Side]
SHARES = (1e-3, 1e-6)  # of the range of f on the domain: the tolerances


@dataclass(frozen=True)
class Shown:
    """One row of a table."""

    title: str  # as in the table: sin(x)
    formula: str
    window: Side  # of the picture
    domains: tuple[Sides, ...]
    heights: Side | None = None  # of the picture; None: all values
    drawn: tuple[str, ...] = ()
    record: str = ""
    where: str = ""
    slope: str = ""
    words: str = ""
    synonyms: tuple[str, ...] = ()
    margin: float = 0.0  # points that are this close to a jump are out of scope

    @property
    def name(self) -> str:
        """Of the picture's file, and for `--only`."""
        return self.title.partition("(")[0]

    @property
    def curves(self) -> tuple[str, ...]:
        return self.drawn or (self.formula,)


@dataclass(frozen=True)
class Group:
    title: str
    rows: tuple[Shown, ...]
    note: str = field(default="", kw_only=True)


def one(name: str, window: Side, *sides: Side, heights: Side | None = None, slope: str = "") -> Shown:
    """A function of one variable that has a record."""
    domains = tuple({"x": side} for side in sides)
    return Shown(f"{name}(x)", f"{name}(x)", window, domains, heights, record=name, slope=slope)


def of_order(
    name: str, order: int, record: str, words: str, window: Side, *sides: Side,
    heights: Side | None = None, slope: str = "", synonyms: tuple[str, ...] = (),
) -> Shown:  # fmt: skip
    """A function of a whole order and x; one of them is shown."""
    title, formula, domains = f"{name}(n, x)", f"{name}({order}, x)", tuple({"x": side} for side in sides)
    return Shown(title, formula, window, domains, heights, record=record, words=words, slope=slope, synonyms=synonyms)


def written(
    title: str, words: str, where: str, slope: str, window: Side, *sides: Side,
    heights: Side | None = None, margin: float = 0.0, formula: str = "",
) -> Shown:  # fmt: skip
    """A function of x that is written in terms of others."""
    domains = tuple({"x": side} for side in sides)
    return Shown(
        title, formula or title, window, domains, heights, words=words, where=where, slope=slope, margin=margin
    )


PI = 3.141592653589793
EVERY, WHOLE = "all x", "0 between jumps"

TABLES = (
    Group("Powers, circular functions, and their inverses", (
        one("sqr", (-2.5, 2.5), (-1, 1), (0, 10)),
        one("sqrt", (-0.5, 6), (1, 9), (0.01, 1)),
        one("cbrt", (-4, 4), (1, 27), (-8, -0.1)),
        one("abs", (-3, 3), (-1, 1), (-1, 3)),
        one("sin", (-7, 7), (0, 6), (-10, 10)),
        one("cos", (-7, 7), (0, 6), (-10, 10)),
        one("tan", (-4.6, 4.6), (-1, 1), (0, 1.5), heights=(-5, 5)),
        written("sec(x)", "1/cos(x)", "x ≠ (k + ½)π", "sin(x)/cos(x)**2", (-4.6, 4.6), (-1, 1), (2, 4), heights=(-5, 5)),
        written("csc(x)", "1/sin(x)", "x ≠ kπ", "-cos(x)/sin(x)**2", (-5, 5), (0.5, 2.5), (-3, -0.2), heights=(-5, 5)),
        written("cot(x)", "cos(x)/sin(x)", "x ≠ kπ", "-1/sin(x)**2", (-5, 5), (0.5, 2.5), (-3, -0.2), heights=(-5, 5)),
        one("asin", (-1.3, 1.3), (-0.9, 0.9), (0, 0.99)),
        one("acos", (-1.3, 1.3), (-0.9, 0.9), (0, 0.99)),
        one("atan", (-6, 6), (-1, 1), (-10, 10)),
        one("sinc", (-16, 16), (-10, 10), (0, 20), slope="(cos(x) - sinc(x))/x"),
    )),
    Group("Exponential and hyperbolic functions", (
        one("exp", (-3, 2.5), (-1, 1), (0, 5)),
        written("exp2(x)", "2^x", EVERY, "log(2)*exp2(x)", (-4, 3.5), (-1, 1), (0, 10)),
        one("expm1", (-3, 2.5), (-1, 1), (0, 5)),
        one("exprel", (-5, 3), (-1, 1), (-20, 2), slope="(exp(x) - exprel(x))/x"),
        one("log", (-0.5, 6), (1, 3), (0.1, 10), heights=(-3, 2)),
        written("log2(x)", "logarithm to the base 2", "x > 0", "1/(x*log(2))", (-0.5, 6), (1, 8), (0.1, 10),
                heights=(-4, 3)),
        written("log10(x)", "logarithm to the base 10", "x > 0", "1/(x*log(10))", (-0.5, 6), (1, 100), (0.1, 10),
                heights=(-1.5, 1)),
        one("log1p", (-1.5, 5), (0, 2), (-0.9, 10), heights=(-3, 2)),
        one("sinh", (-3, 3), (-1, 1), (0, 5)),
        one("cosh", (-3, 3), (-1, 1), (0, 5)),
        one("tanh", (-4, 4), (-2, 2), (-10, 10)),
        one("asinh", (-8, 8), (-2, 2), (-50, 50)),
        one("acosh", (0, 8), (1.1, 3), (2, 100)),
        one("atanh", (-1.3, 1.3), (-0.9, 0.9), (0, 0.99), heights=(-2.6, 2.6)),
        one("sigmoid", (-8, 8), (-2, 2), (-20, 20)),
        one("softplus", (-6, 6), (-2, 2), (-20, 20)),
    )),
    Group("Error functions and the normal distribution", (
        one("erf", (-3, 3), (-1, 1), (-4, 4)),
        one("erfc", (-3, 3), (-1, 1), (0, 5)),
        one("erfcx", (-1.5, 5), (0, 10), (-1, 2)),
        one("erfinv", (-1.3, 1.3), (-0.9, 0.9), (0, 0.99), heights=(-2, 2)),
        one("normcdf", (-4, 4), (-1, 1), (-6, 6)),
        one("norminv", (-0.15, 1.15), (0.05, 0.95), (0.5, 0.99), heights=(-3, 3)),
    )),
    Group("Gamma function and its relatives", (
        one("gamma", (-0.4, 4.5), (1, 4), (0.2, 2), heights=(0, 8)),
        one("lgamma", (-0.4, 6), (1, 4), (0.1, 20), heights=(-0.6, 4)),
        one("digamma", (-0.4, 6), (1, 4), (0.1, 2), heights=(-4, 2), slope="polygamma(1, x)"),
        of_order("polygamma", 1, "digamma1", "derivative of order n of digamma, from 1 to 4",
                 (-0.4, 6), (1, 4), (0.5, 2), heights=(0, 5), slope="polygamma(2, x)"),
    )),
    Group("Bessel and Airy functions", (
        one("j0", (-22, 22), (0, 20), (-5, 5)),
        one("j1", (-22, 22), (0, 20), (-5, 5)),
        of_order("j", 3, "j3", "Bessel function of the first kind, of whole order n up to 20",
                 (-22, 22), (0, 20), (-5, 5), synonyms=("jv", "jn")),
        one("y0", (-1, 22), (1, 10), (0.1, 2), heights=(-1.2, 0.7)),
        one("y1", (-1, 22), (1, 10), (0.2, 2), heights=(-1.5, 0.7)),
        one("i0", (-3.5, 3.5), (-2, 2), (0, 5)),
        one("i1", (-3.5, 3.5), (-2, 2), (0, 5), slope="i0(x) - i1(x)/x"),
        one("k0", (-0.3, 4), (0.1, 2), (1, 10), heights=(0, 3)),
        one("k1", (-0.3, 4), (0.2, 2), (1, 10), heights=(0, 4)),
        one("ai", (-12, 5), (-2, 2), (-10, 3)),
        one("bi", (-12, 2.3), (-2, 2), (-8, 1)),
    )),
    Group("Integrals", (
        one("si", (-22, 22), (-5, 5), (0, 20)),
        one("ci", (-1, 22), (1, 10), (0.1, 3), heights=(-1.4, 0.7)),
        one("ei", (-3, 2), (0.5, 3), (-4, -0.1), heights=(-3.5, 4)),
        one("fresnels", (-5, 5), (-1, 1), (0, 4)),
        one("fresnelc", (-5, 5), (-1, 1), (0, 4)),
    )),
    Group("Elliptic integrals, zeta, Lambert's W", (
        one("ellipk", (-5, 1.4), (0, 0.9), (-5, 0.5), heights=(0, 3.5), slope="(ellipe(x)/(1 - x) - ellipk(x))/(2*x)"),
        one("ellipe", (-5, 1.4), (0, 0.9), (-5, 0.5), slope="(ellipe(x) - ellipk(x))/(2*x)"),
        one("zeta", (0, 6), (1.2, 8), (2, 4), heights=(0, 5)),
        one("lambertw", (-0.8, 5), (0, 5), (-0.3, 1)),
    )),
    Group("Polynomials by order", (
        of_order("legendre", 5, "legendre5", "Legendre polynomial of degree n, up to 50",
                 (-1.1, 1.1), (-1, 1), (0, 1.2), heights=(-1.1, 1.1), synonyms=("eval_legendre",)),
        of_order("chebyshev", 5, "chebyshev5", "Chebyshev polynomial of the first kind, of degree n up to 50",
                 (-1.1, 1.1), (-1, 1), (0, 1.2), heights=(-1.1, 1.1), synonyms=("eval_chebyt",)),
    )),
    Group("Steps", (
        written("sign(x)", "-1, 0 or 1", EVERY, WHOLE, (-3, 3), (-1, 1), (-1, 3), margin=0.05),
        written("floor(x)", "largest whole number that is at most x", EVERY, WHOLE, (-2.99, 2.99), (-0.5, 1.5), (0, 4),
                margin=0.05),
        written("ceil(x)", "smallest whole number that is at least x", EVERY, WHOLE, (-2.99, 2.99), (-0.5, 1.5), (0, 4),
                margin=0.05),
        written("round(x)", "floor(x + 0.5)", EVERY, WHOLE, (-3.2, 3.2), (0, 1), (0, 4), margin=0.05),
        Shown("mod(x, y)", "mod(x, 2)", (-5, 5), ({"x": (0, 3)}, {"x": (-2, 4)}), words="x - y*floor(x/y)", where="y ≠ 0",
              slope="1 in x, between jumps", margin=0.05),
        Shown("where(condition, a, b)", "where(x < 1, x, 3 - x^2)", (-1, 2.2), ({"x": (0, 2)}, {"x": (-1, 3)}),
              words="a where the condition holds, b elsewhere", where="as a and b", slope="as a or b", margin=0.05),
    ), note="Points within `margin` (here 0.05) of a jump are left out of the claim."),
    Group("Two arguments and more", (
        Shown("atan2(y, x)", "atan2(y, x)", (-4, 4), ({"x": (1, 3), "y": (-1, 1)}, {"x": (0.2, 2), "y": (0, 2)}),
              drawn=("atan2(x, 0.3)", "atan2(x, 1)", "atan2(x, 3)"), where="x ≠ 0 or y ≠ 0",
              slope="`-y/(x**2 + y**2)` in x, `x/(x**2 + y**2)` in y",
              words="angle of the point with coordinates x and y, from -pi to pi; it jumps where y = 0 and x < 0"),
        Shown("hypot(x, y)", "hypot(x, y)", (-3, 3), ({"x": (1, 3), "y": (0, 2)}, {"x": (-2, 2), "y": (0.5, 2)}),
              drawn=("hypot(x, 0.2)", "hypot(x, 1)", "hypot(x, 2)"), where="all x, y", slope="`x/hypot(x, y)` in x",
              words="sqrt(x^2 + y^2)"),
        Shown("beta(x, y)", "beta(x, y)", (-0.3, 4), ({"x": (1, 3), "y": (1, 3)}, {"x": (0.5, 2), "y": (1, 2)}), (0, 3),
              ("beta(x, 0.5)", "beta(x, 1)", "beta(x, 2)"), where="x > 0, y > 0",
              slope="`beta(x, y)*(digamma(x) - digamma(x + y))` in x", words="gamma(x)*gamma(y)/gamma(x + y)"),
        Shown("min(x, y, …)", "min(x, y)", (-3, 3), ({"x": (0, 1), "y": (0, 1)}, {"x": (-2, 2), "y": (-1, 1)}),
              drawn=("min(x, -1)", "min(x, 0)", "min(x, 1)"), where="all x, y", slope="1 or 0 in x",
              words="smallest of two or more"),
        Shown("max(x, y, …)", "max(x, y)", (-3, 3), ({"x": (0, 1), "y": (0, 1)}, {"x": (-2, 2), "y": (-1, 1)}),
              drawn=("max(x, -1)", "max(x, 0)", "max(x, 1)"), where="all x, y", slope="1 or 0 in x",
              words="largest of two or more"),
    ), note="Pictures are functions of x with the other argument fixed: three curves each."),
)  # fmt: skip


def default(f: Function) -> Shown:
    """A row for a record that has none."""
    d = f.domain or DefinedOn()
    if d.without is not None:
        sides = (d.without + 0.5, d.without + 3), (d.without - 4, d.without - 0.5)
    elif math.isfinite(d.lo) and math.isfinite(d.hi):
        w = d.hi - d.lo
        sides = (d.lo + 0.1 * w, d.hi - 0.1 * w), (d.lo + 0.5 * w, d.hi - 0.05 * w)
    elif math.isfinite(d.lo):
        sides = (d.lo + 0.5, d.lo + 3), (d.lo + 1, d.lo + 10)
    elif math.isfinite(d.hi):
        sides = (d.hi - 3, d.hi - 0.5), (d.hi - 10, d.hi - 1)
    else:
        sides = (-1, 1), (0, 3)
    window = min(a for a, _ in sides), max(b for _, b in sides)
    return one(f.name, window, *sides)


def rest() -> tuple[Shown, ...]:
    """Rows for the records that no table above shows; the orders of a family are shown by one of them."""
    rows = [row for group in TABLES for row in group.rows]
    shown = {row.record for row in rows} | {row.name for row in rows}
    families = {row.record.rstrip("0123456789") for row in rows if "(n, x)" in row.title}
    left = [f for name, f in FUNCTIONS.items() if not f.hidden and name not in shown]
    return tuple(default(f) for f in left if f.name.rstrip("0123456789") not in families)


GROUPS = (*TABLES, Group("Others", rest()))
ROWS = tuple(row for group in GROUPS for row in group.rows)
