"""A wish: what a visitor asks for, read from JSON and checked before any work is done."""

import math
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, get_args

from ...common.errors import InputError
from ...construction.request import Construction, Method
from ...formula import Formula, parse
from ...target.domain import MOST_VARIABLES, Domain, domain_of
from ...target.sides import Sides, read_domain
from .limits import Limits

DTYPES = ("float64", "float32")
LEAST, MOST = 1e-12, 1e6  # tolerances
LARGEST_TRAINED = 1e6  # parameters


@dataclass(frozen=True)
class Wish:
    """A layer to build: formula and domain as typed, tolerance, method, construction, number type, units if not derived."""

    formula: str
    domain: str
    tolerance: float = 1e-2
    method: str = "polished"
    construction: str = "auto"
    dtype: str = "float64"
    units: int | None = None

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sides(self) -> Sides:
        """(low, high) for every variable; one side stands for all of them."""
        sides = read_domain(self.domain)
        if not isinstance(sides, list) or len(sides) > 1:
            return sides
        return sides * min(max(1, len(parse(self.formula).names)), MOST_VARIABLES + 1)  # more are refused in any case

    def code(self, limits: Limits) -> str:
        """The Python that builds the same layer, with as much time to look for it."""
        plain = Wish("", "").record()
        options = {
            k: v for k, v in self.record().items() if v != plain[k] and k not in ("formula", "domain", "tolerance")
        }
        if self.method == "polished":
            options["seconds"] = limits.search
        given = "".join(f", {k}={v!r}" for k, v in options.items())
        return (
            "import onelayer as ol\n\n"
            f"approx = ol.build({self.formula!r}, {self.sides!r}, {self.tolerance!r}{given})\n"
            "print(approx)\n"
            'approx.save("layer")  # then, on the command line: onelayer check layer\n'
        )


def wish_of(record: Any, limits: Limits) -> Wish:
    """The wish of a JSON object, or InputError in one line."""
    if not isinstance(record, dict):
        raise InputError("a JSON object", type(record).__name__, "send the fields of a wish")
    fields = Wish.__dataclass_fields__
    if unknown := sorted(set(map(str, record)) - set(fields)):
        raise InputError(f"fields among {', '.join(fields)}", ", ".join(unknown)[:200], "leave the others out")
    for name in ("formula", "domain"):
        _require_text(name, record.get(name), limits)
    for name, choices in (("method", get_args(Method)), ("construction", get_args(Construction)), ("dtype", DTYPES)):
        if record.get(name, choices[0]) not in choices:
            raise InputError(f"{name}, one of {', '.join(choices)}", f"{record[name]!r}"[:200], "choose one of them")
    tolerance = _number("tolerance", record.get("tolerance", 1e-2), LEAST, MOST)
    units = record.get("units")
    if units is not None:
        units = int(_number("units", units, 1.0, float(limits.units), whole=True))
    wish = Wish(**(record | {"tolerance": tolerance, "units": units}))
    read_wish(wish, limits)
    return wish


def read_wish(wish: Wish, limits: Limits) -> tuple[Formula, Domain]:
    """The formula and the domain that the texts stand for."""
    sides = wish.sides
    if len(sides) > limits.variables:
        raise InputError(f"at most {limits.variables} variables here", f"{len(sides)}", "use the Python package")
    domain = domain_of(sides)
    formula = parse(wish.formula, domain.names)
    if len(formula.outputs) > limits.outputs:
        raise InputError(f"at most {limits.outputs} outputs here", f"{len(formula.outputs)}", "use the Python package")
    return formula, domain


def training_of(record: Any, limits: Limits) -> tuple[Wish, int]:
    """(wish, parameters): a layer to train on the same function, with as many parameters."""
    if not isinstance(record, dict):
        raise InputError("a JSON object", type(record).__name__, "send the fields of a wish, and parameters")
    own = dict(record)
    parameters = int(_number("parameters", own.pop("parameters", None), 1.0, LARGEST_TRAINED, whole=True))
    return wish_of(own, limits), parameters


def _require_text(name: str, value: Any, limits: Limits) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"a {name}, as text", f"{value!r}"[:100], f"send a {name}")
    if len(value) > limits.formula:
        raise InputError(f"a {name} of at most {limits.formula:,} characters", f"{len(value):,}", "use the package")


def _number(name: str, value: Any, low: float, high: float, whole: bool = False) -> float:
    number = isinstance(value, Real) and not isinstance(value, bool)
    try:
        fits = number and math.isfinite(value) and low <= value <= high and (not whole or float(value).is_integer())
    except OverflowError:
        fits = False
    if not fits:
        kind = "a whole number" if whole else "a number"
        raise InputError(f"{name}, {kind} from {low:g} to {high:g}", f"{value!r}"[:100], "change it")
    return float(value)
