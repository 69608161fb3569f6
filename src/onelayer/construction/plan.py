"""Plan: how large the layer will be, and what is known about its error, before anything is built."""

from collections.abc import Callable
from dataclasses import dataclass

from ..common.checks import known_options, require_choice
from ..common.errors import InputError
from ..common.numbers import at_most, exact
from ..common.table import Table
from ..layer.assemble import Layout
from ..model.config import LayerConfig
from ..target.domain import Sides
from ..target.target import TargetLike, require_tolerance, target_of


@dataclass(frozen=True)
class Plan:
    """A forecast. For `representative` the size is exact and `bound` is proved in exact arithmetic; else both are estimates.

    What rounding adds is known only once the layer is built: its certificate has it.
    """

    method: str
    tolerance: float
    units: int
    sharpness: float
    config: LayerConfig
    bound: float
    proved: bool
    counts: tuple[int, ...] = ()
    modulus: str = ""
    condition: str = ""  # what was declared about f and the bound rests on

    @property
    def known(self) -> str:
        """How the bound is known; a method without a forecast of the error aims at the tolerance."""
        if self.proved:
            return "proved in exact arithmetic"
        return "estimate, aimed at" if self.bound == self.tolerance else "estimate"

    @property
    def bound_text(self) -> str:
        """The bound as text: rounded up, but not above the tolerance; with the condition that it rests on."""
        condition = f" if {self.condition}" if self.proved and self.condition else ""
        return at_most(self.bound, limit=self.tolerance) + condition

    @property
    def parameters(self) -> int:
        return self.config.parameter_count

    @property
    def bytes(self) -> int:
        return 8 * self.parameters

    @property
    def operations(self) -> int:
        return self.config.operations

    def table(self) -> Table:
        rows: list[tuple[object, ...]] = [
            ("method", self.method),
            ("tolerance", exact(self.tolerance)),
            ("units", f"{self.units:,}"),
            ("cells", " × ".join(map(str, self.counts)) if self.counts else "-"),
            ("sharpness (per side)", f"{self.sharpness:.4g}"),
            ("parameters", f"{self.parameters:,}"),
            ("bytes", f"{self.bytes:,}"),
            ("operations per evaluation", f"{self.operations:,}"),
            (f"bound ({self.known})", self.bound_text),
            ("modulus", self.modulus),
        ]
        return Table("Plan", ("", "value"), rows)

    def as_json(self) -> dict[str, object]:
        names = ("method", "tolerance", "units", "sharpness", "bound", "known", "condition", "counts", "modulus")
        sizes = {"parameters": self.parameters, "bytes": self.bytes, "operations": self.operations}
        return {name: getattr(self, name) for name in names} | sizes

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@known_options
def plan(
    function: TargetLike,
    domain: Sides | None = None,
    tolerance: float = 1e-2,
    *,
    relative: bool = False,
    method: str | None = None,
    layout: Layout = "token",
) -> "Plan | Plans":
    """The forecast of one method, or of every method; nothing is built. Refuses what would not fit in memory.

    `relative=True` as for `build`. Everything else that is known about the function goes into a `Target`.
    """
    from .forecast import plan_polished, plan_solved
    from .relative import relative_to
    from .representative.layer import plan_representative

    target = target_of(function, domain)
    require_tolerance(tolerance)
    if target.symmetric:
        given, change = "symmetric=True", "build it, or plan without"
        raise InputError("a forecast, which there is none of for layers without codes", given, change)
    tolerance = relative_to(target, tolerance).tolerance if relative else tolerance
    makers: dict[str, Callable[[], Plan]] = {
        "representative": lambda: plan_representative(target, tolerance, layout=layout),
        "solved": lambda: plan_solved(target, tolerance, layout),
        "polished": lambda: plan_polished(target, tolerance, layout),
    }
    if method is not None:
        require_choice("method", method, makers)
        return makers[method]()
    found: list[Plan] = []
    refusals: list[InputError] = []
    for make in makers.values():
        try:
            found.append(make())
        except InputError as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return Plans(tuple(found), tuple(map(str, refusals)))


@dataclass(frozen=True)
class Plans:
    """Forecasts side by side, and why some methods were refused."""

    plans: tuple[Plan, ...]
    refusals: tuple[str, ...] = ()

    def __getitem__(self, method: str) -> Plan:
        for p in self.plans:
            if p.method == method:
                return p
        raise KeyError(method)

    def table(self) -> Table:
        columns = ("method", "units", "parameters", "bytes", "operations", "sharpness", "bound", "")
        table = Table("Plan", columns)
        for p in self.plans:
            size = (f"{p.units:,}", f"{p.parameters:,}", f"{p.bytes:,}", f"{p.operations:,}")
            table.rows.append((p.method, *size, f"{p.sharpness:.4g}", p.bound_text, p.known))
        return table

    def __str__(self) -> str:
        return "\n".join([str(self.table()), *self.refusals])

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def as_json(self) -> dict[str, object]:
        return {"plans": [p.as_json() for p in self.plans], "refusals": list(self.refusals)}
