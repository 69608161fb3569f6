"""What a visitor asks for, read from JSON and checked before any work is done."""

import math
from dataclasses import asdict, dataclass
from typing import Any, get_args

from ...common.checks import is_number
from ...common.errors import InputError
from ...construction.menu import Construction, Method
from ...formula import Formula, parse
from ...proof.properties.statement import read
from ...target.domain import Domain, domain_of
from ...target.naming import named, spread
from ...target.sides import MOST_VARIABLES, TextSides, read_domain
from .limits import VisitorLimits

DTYPES = ("float64", "float32")
SMALLEST_TOLERANCE, LARGEST_TOLERANCE = 1e-12, 1e6
LONGEST_TAB = 40  # characters of the name that a tab gives itself
MOST_TRAINED = 1e6  # parameters of a trained layer


@dataclass(frozen=True)
class LayerSpec:
    """A layer to build. Formula and domain are as typed; without `units` their number is derived."""

    formula: str
    domain: str
    tolerance: float = 1e-2
    method: str = "polished"
    construction: str = "auto"
    dtype: str = "float64"
    units: int | None = None
    slope_tolerance: float | None = None
    properties: str = ""  # texts such as "increasing in x1", separated by ;

    def record(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def sides(self) -> TextSides:
        """(low, high) for every variable; a single interval applies to all of them."""
        sides: TextSides = spread(read_domain(self.domain), self.formula)
        return sides if isinstance(sides, dict) else named(sides[: MOST_VARIABLES + 1], self.formula)

    @property
    def statements(self) -> list[str]:
        """The properties one by one."""
        return [part.strip() for part in self.properties.split(";") if part.strip()]

    def code(self, limits: VisitorLimits) -> str:
        """Python code that builds the same layer, in the same time."""
        defaults = LayerSpec("", "").record()
        named = ("slope_tolerance", "method", "construction", "dtype", "units")
        options = {k: v for k, v in self.record().items() if k in named and v != defaults[k]}
        if self.statements:
            options["properties"] = self.statements
        if self.method == "polished":
            options["seconds"] = limits.build
        given = "".join(f", {k}={v!r}" for k, v in options.items())
        return (
            "import onelayer as ol\n\n"
            f"approx = ol.build({self.formula!r}, {self.sides!r}, {self.tolerance!r}{given})\n"
            "print(approx)\n"
            'approx.save("layer")  # then, on the command line: onelayer check layer\n'
        )


def spec_of(record: Any, limits: VisitorLimits) -> LayerSpec:
    """The LayerSpec in a JSON object, or an InputError."""
    if not isinstance(record, dict):
        raise InputError("a JSON object", type(record).__name__, "send the fields of a request")
    fields = LayerSpec.__dataclass_fields__
    if unknown := sorted(set(map(str, record)) - set(fields)):
        raise InputError(f"fields among {', '.join(fields)}", ", ".join(unknown)[:200], "leave the others out")
    for name in ("formula", "domain"):
        _require_text(name, record.get(name), limits)
    if record.get("properties", "") != "":
        _require_text("properties", record["properties"], limits)
    for name, choices in (("method", get_args(Method)), ("construction", get_args(Construction)), ("dtype", DTYPES)):
        if record.get(name, choices[0]) not in choices:  # what was sent may be long
            raise InputError(f"{name}, one of {', '.join(choices)}", f"{record[name]!r}"[:200], "choose one of these")
    tolerance = _number("tolerance", record.get("tolerance", 1e-2), SMALLEST_TOLERANCE, LARGEST_TOLERANCE)
    units = record.get("units")
    if units is not None:
        units = int(_number("units", units, 1.0, float(limits.units), whole=True))
    slope = record.get("slope_tolerance")
    if slope is not None:
        slope = _number("slope_tolerance", slope, SMALLEST_TOLERANCE, LARGEST_TOLERANCE)
    spec = LayerSpec(**(record | {"tolerance": tolerance, "units": units, "slope_tolerance": slope}))
    read_spec(spec, limits)
    return spec


def read_spec(spec: LayerSpec, limits: VisitorLimits) -> tuple[Formula, Domain]:
    """The parsed formula and domain."""
    sides = spec.sides
    if len(sides) > limits.variables:
        raise InputError(f"at most {limits.variables} variables here", f"{len(sides)}", "use the Python package")
    domain = domain_of(sides)
    formula = parse(spec.formula, domain.names)
    if len(formula.outputs) > limits.outputs:
        raise InputError(f"at most {limits.outputs} outputs here", f"{len(formula.outputs)}", "use the Python package")
    for text in spec.statements:
        try:
            read(text, domain.names)
        except InputError as refusal:
            raise InputError(f"properties: {refusal.asked}", refusal.found, refusal.change) from None
    return formula, domain


def building_of(record: Any, limits: VisitorLimits) -> tuple[LayerSpec, bool, str]:
    """(spec, coarse, tab): a layer to build, whether a coarse one is to come first, and the tab that it is for."""
    if not isinstance(record, dict):
        raise InputError("a JSON object", type(record).__name__, "send the fields of a request")
    rest = dict(record)
    coarse, tab = rest.pop("coarse", False), rest.pop("tab", "")
    if not isinstance(coarse, bool):
        raise InputError("coarse, true or false", f"{coarse!r}"[:100], "leave it out")
    if not (isinstance(tab, str) and len(tab) <= LONGEST_TAB and tab.isascii()):
        raise InputError(f"tab, at most {LONGEST_TAB} ASCII characters", f"{tab!r}"[:100], "leave it out")
    return spec_of(rest, limits), coarse, tab


def training_of(record: Any, limits: VisitorLimits) -> tuple[LayerSpec, int]:
    """(spec, parameters): a layer to train on the same function, with this many parameters."""
    if not isinstance(record, dict):
        raise InputError("a JSON object", type(record).__name__, "send the fields of a request, and parameters")
    rest = dict(record)
    parameters = int(_number("parameters", rest.pop("parameters", None), 1.0, MOST_TRAINED, whole=True))
    return spec_of(rest, limits), parameters


def _require_text(name: str, value: Any, limits: VisitorLimits) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{name}, as text", f"{value!r}"[:100], f"send {name} as text")
    if len(value) > limits.formula:
        asked = f"a {name} of at most {limits.formula:,} characters"
        raise InputError(asked, f"{len(value):,}", "use the Python package")


def _number(name: str, value: Any, low: float, high: float, whole: bool = False) -> float:
    try:
        fits = (
            is_number(value)
            and math.isfinite(value)
            and low <= value <= high
            and (not whole or float(value).is_integer())
        )
    except OverflowError:
        fits = False
    if not fits:
        kind = "a whole number" if whole else "a number"
        raise InputError(
            f"{name}, {kind} from {low:g} to {high:g}", f"{value!r}"[:100], "choose a number in that range"
        )
    return float(value)
