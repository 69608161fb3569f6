"""Certificate: the verdict on sup |T − f|, what is proved, under which assumptions, with the evidence to check it again.

Three verdicts, never mixed up:

    CERTIFIED   a proved bound is at most the tolerance
    REFUTED     a point of the domain where the error is proved to exceed the tolerance
    UNDECIDED   neither; the best bound, if any, is given

`bound` is proved, rounding included; `observed` is a maximum over sampled points and proves nothing. `lower` is proved too:
at `lower_point` |T − f| is at least that, T the real function of the stored weights. So lower ≤ sup |T − f| ≤ bound.
"""

import math
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ..common.fields import require_types
from ..common.numbers import at_least, at_most, exact
from ..common.table import Table
from ..layer.arithmetic import arithmetic_of
from ..model.transformer import SingleLayerTransformer

SCHEMA = 4
READABLE = (3, SCHEMA)  # version 3 has no `lower`
Verdict = Literal["CERTIFIED", "REFUTED", "UNDECIDED"]
Method = Literal["theorem", "analytic", "bisect", "lemma", "none"]


@dataclass(frozen=True)
class Box:
    """A box in some of the coordinates (from 0), in the units of x."""

    coordinates: tuple[int, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class RelativeTolerance:
    """A tolerance given as a share of |f|, the lower bound of |f|, and how that is known."""

    share: float
    least: float
    known: Literal["proved", "declared", "sampled"]

    @property
    def tolerance(self) -> float:
        """share · least, rounded down."""
        return math.nextafter(self.share * self.least, 0.0)

    def __str__(self) -> str:
        how = {"proved": "proved", "declared": "by the declared modulus", "sampled": "sampled, not proved"}[self.known]
        return f"{exact(self.share)} of |f| ≥ {at_least(self.least, 6)} ({how})"


@dataclass(frozen=True)
class SlopeBound:
    """What is proved about |∂_i T − ∂_i f| for every i, T the real function of the stored weights; ∞ for nothing.

    `observed` is the largest error of a slope at sampled points: it proves nothing.
    """

    tolerance: float
    bound: float
    observed: float

    @property
    def holds(self) -> bool:
        """Whether the tolerance is proved; never where an observation contradicts the bound."""
        return math.isfinite(self.bound) and self.observed <= self.bound <= self.tolerance

    @property
    def bound_text(self) -> str:
        """The bound as text, rounded up, but not above a tolerance that it keeps."""
        return at_most(self.bound, limit=self.tolerance) if math.isfinite(self.bound) else "none proved"

    def __str__(self) -> str:
        return f"{self.bound_text}, tolerance {exact(self.tolerance)}, observed {at_least(self.observed)}"


@dataclass(frozen=True)
class PropertyRecord:
    """A property that was asked for, such as "increasing in x1", and what is proved about it."""

    text: str
    verdict: Literal["PROVED", "REFUTED", "UNDECIDED"]

    def __str__(self) -> str:
        return f"{self.text}: {self.verdict}"


@dataclass(frozen=True)
class Evidence:
    """What a proof leaves behind; None where it does not apply. In JSON the names have spaces, and None is left out."""

    # a theorem or a lemma
    lemma: str | None = None
    terms: dict[str, float] | None = None  # what the bound is the sum of
    cells: tuple[int, ...] | None = None
    sharpness: float | None = None
    modulus: str | None = None
    lipschitz: tuple[float, ...] | None = None
    total: float | None = None  # Σ|c|
    # interpolation: one entry per group of coordinates; bisection: boxes evaluated, and boxes left
    groups: tuple[tuple[int, ...], ...] | None = None
    boxes: int | tuple[int, ...] | None = None
    degrees: tuple[int, ...] | None = None
    ellipses: tuple[float, ...] | None = None
    truncation: float | None = None
    rounding: float | None = None
    kinks: float | None = None
    lanes: tuple[dict[str, Any], ...] | None = (
        None  # of a composed layer: output, inner, outer, shift and bound of each
    )
    left: int | None = None
    dropped_at_jumps: int | None = None
    order: int | None = None
    worst_boxes: tuple[Box, ...] | None = None
    interrupted: bool | None = None
    # data
    samples: int | None = None
    held_out: int | None = None
    fitted_error: float | None = None
    possible_error: float | None = None
    left_open: float | None = None
    # a relative tolerance
    relative: RelativeTolerance | None = None

    def __or__(self, other: "Evidence") -> "Evidence":
        """Both together; where both have a value, the other's counts."""
        return Evidence(**(self._given() | other._given()))

    def _given(self) -> dict[str, Any]:
        return {f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None}

    def as_json(self) -> dict[str, Any]:
        return {name.replace("_", " "): value for name, value in asdict(self).items() if value is not None}

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Evidence":
        given = {name.replace(" ", "_"): _tuples(value) for name, value in record.items()}
        if "worst_boxes" in given:
            given["worst_boxes"] = tuple(Box(**box) for box in given["worst_boxes"])
        if "relative" in given:
            given["relative"] = RelativeTolerance(**given["relative"])
        found = Evidence(**given)
        for part in (found, *(found.worst_boxes or ()), *([found.relative] if found.relative else [])):
            require_types(part, "certificate.json")
        return found


@dataclass(frozen=True)
class Certificate:
    """A verdict on ‖T − f‖ over the domain, in the maximum norm over all output entries."""

    tolerance: float
    bound: float  # infinite when nothing is proved
    observed: float
    observed_points: int
    method: Method
    domain: str
    arithmetic: str = "float64"
    norm: str = "maximum absolute difference over all output entries"
    assumptions: tuple[str, ...] = ()
    evidence: Evidence = field(default_factory=Evidence)
    witness: tuple[float, ...] | None = None  # a point of the domain where the error is proved to exceed the tolerance
    margin: float = 0.0  # distance kept from the jumps of `where(…)`
    weights: str = ""  # digest of the weights that this certificate is about
    condition: str = ""  # what was declared about f and the bound rests on; empty for nothing
    slope: SlopeBound | None = None  # where a tolerance for slopes was given
    properties: tuple[PropertyRecord, ...] = ()  # that were asked for; of the real function of the weights
    lower: float = 0.0  # proved: sup |T − f| ≥ lower, T the real function of the weights; 0 when nothing is proved
    lower_point: tuple[float, ...] | None = None  # the point of the domain where that is proved
    weight_format: str = ""  # "bfloat16" or "int8" where weights are stored so; empty where as the arithmetic's numbers

    @property
    def verdict(self) -> Verdict:
        if self.witness is not None:
            return "REFUTED"
        # also false for NaN: a model that answers NaN is never certified
        consistent = self.observed <= self.bound and self.lower <= self.bound
        proved = math.isfinite(self.bound) and self.bound <= self.tolerance
        slopes = self.slope is None or self.slope.holds
        properties = all(p.verdict == "PROVED" for p in self.properties)
        return "CERTIFIED" if proved and consistent and slopes and properties else "UNDECIDED"

    @property
    def headline(self) -> str:
        """The verdict as it is shown: `CERTIFIED if |f(x) − f(y)| ≤ …` where it rests on what was declared.

        A witness is a value of f, so only among samples, where f is known through its constants, does REFUTED rest on them.
        """
        rests = self.verdict == "CERTIFIED" or (self.verdict == "REFUTED" and self.evidence.samples is not None)
        return f"{self.verdict}{self.if_declared}" if rests else self.verdict

    @property
    def if_declared(self) -> str:
        """The condition after the word "if", or nothing."""
        return f" if {self.condition}" if self.condition else ""

    @property
    def tolerance_asked(self) -> bool:
        """Whether there is a tolerance beside the bound; a lemma may give its own bound where nobody asked for one."""
        return self.method != "lemma" or self.tolerance != self.bound

    @property
    def tolerance_text(self) -> str:
        """The tolerance as text, with all its digits."""
        return exact(self.tolerance) if self.tolerance_asked else "none asked for"

    @property
    def bound_text(self) -> str:
        """The bound as text, rounded up, but not above a tolerance that it keeps."""
        limit = self.tolerance if self.tolerance_asked else math.inf
        return at_most(self.bound, limit=limit) if math.isfinite(self.bound) else "none proved"

    @property
    def observed_text(self) -> str:
        """The observed error as text, rounded down: the supremum is at least this large."""
        return at_least(self.observed)

    @property
    def lower_text(self) -> str:
        """The proved lower bound as text, rounded down, and how closely the supremum is known."""
        known = 0 < self.lower <= self.bound <= 2 * self.lower
        within = f": the supremum is known within {at_most(100 * (self.bound / self.lower - 1), 2)}%" if known else ""
        return f"{at_least(self.lower)}{within}" if self.lower else "nothing proved"

    @property
    def arithmetic_text(self) -> str:
        """The arithmetic, and the format of the weights where that is another one."""
        return f"{self.arithmetic}, weights {self.weight_format}" if self.weight_format else self.arithmetic

    @property
    def stated_bound(self) -> str:
        """The bound as text, with the condition unless the headline has it already."""
        proved = math.isfinite(self.bound) and self.headline == self.verdict
        return f"{self.bound_text}{self.if_declared}" if proved else self.bound_text

    @property
    def _relative(self) -> str:
        """What a relative tolerance is relative to; empty for an absolute one."""
        about = self.evidence.relative
        return f" = {exact(about.share)} of |f| ≥ {at_least(about.least, 6)} ({about.known})" if about else ""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for JSON; an infinite bound is null, and so is an observed error that is not finite."""
        record = asdict(self) | {"schema": SCHEMA, "verdict": self.verdict, "evidence": self.evidence.as_json()}
        if not self.weight_format:
            del record["weight_format"]
        for part in (record, *([record["slope"]] if self.slope else [])):
            for name in ("bound", "observed"):
                part[name] = part[name] if math.isfinite(part[name]) else None
        return record

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Certificate":
        """The certificate of a record, every field of its type; its verdict is derived again, never read."""
        kept = {k: _tuples(v) for k, v in record.items() if k in Certificate.__dataclass_fields__}
        for part in (kept, *([kept["slope"]] if isinstance(kept.get("slope"), dict) else [])):
            for name in ("bound", "observed"):
                part[name] = math.inf if part.get(name) is None else part[name]
        if isinstance(kept.get("slope"), dict):
            kept["slope"] = SlopeBound(**kept["slope"])
            require_types(kept["slope"], "certificate.json")
        if isinstance(kept.get("properties"), tuple) and all(isinstance(p, dict) for p in kept["properties"]):
            kept["properties"] = tuple(PropertyRecord(**p) for p in kept["properties"])
            for part in kept["properties"]:
                require_types(part, "certificate.json")
        kept["evidence"] = Evidence.from_json(record.get("evidence", {}))
        found = Certificate(**kept)
        require_types(found, "certificate.json")
        return found

    @property
    def beside(self) -> list[tuple[object, ...]]:
        """Rows of a table: what is claimed beside values, and the margin that the claims keep."""
        around = "margin around jumps" + (" and kinks" if self.slope else "")
        return [
            *([("slopes: bound (proved)", str(self.slope))] if self.slope else []),
            *(("property", str(p)) for p in self.properties),
            *([(around, exact(self.margin))] if self.margin else []),
        ]

    def table(self) -> Table:
        rows: list[tuple[object, ...]] = [
            ("verdict", self.headline),
            ("tolerance", f"{self.tolerance_text}{self._relative}"),
            ("bound (proved)", self.stated_bound),
            *([("at least (proved)", self.lower_text)] if self.lower else []),
            ("observed error", f"{self.observed_text} at {self.observed_points:,} points"),
            *self.beside,
            ("method", self.method),
            ("arithmetic", self.arithmetic_text),
            ("domain", self.domain),
            *([("witness", ", ".join(map(exact, self.witness)))] if self.witness is not None else []),
            *(("assumes", a) for a in self.assumptions),
        ]
        return Table("Certificate", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def unproved(
    model: SingleLayerTransformer,
    tolerance: float,
    domain: str,
    observed: float = math.nan,
    points: int = 0,
    margin: float = 0.0,
    evidence: Evidence | None = None,
) -> Certificate:
    """The certificate of a model about which nothing is proved."""
    return Certificate(
        tolerance,
        math.inf,
        observed,
        points,
        "none",
        domain,
        arithmetic_of(model.W_E.dtype).name,
        evidence=evidence or Evidence(),
        margin=margin,
        weights=model.fingerprint(),
    )


def _tuples(value: Any) -> Any:
    """JSON's lists as tuples, all the way down."""
    if isinstance(value, dict):
        return {name: _tuples(part) for name, part in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
