"""Certificate: what is proved about sup |T − f|, under which assumptions, with the evidence to check it again.

Three verdicts, never mixed up:

    CERTIFIED   a proved bound is at most the tolerance
    REFUTED     a point of the domain where the error is proved to exceed the tolerance
    UNDECIDED   neither; the best bound, if any, is given

`bound` is proved, rounding included; `observed` is a maximum over sampled points and proves nothing.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from ..common.table import Table, at_least, at_most

SCHEMA = 2
Verdict = Literal["CERTIFIED", "REFUTED", "UNDECIDED"]
Method = Literal["theorem", "analytic", "bisect", "lemma", "none"]


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
    evidence: dict[str, Any] = field(default_factory=dict)
    witness: tuple[float, ...] | None = None  # a point of the domain where the error is proved to exceed the tolerance
    margin: float = 0.0  # distance kept from the jumps of `where(…)`
    weights: str = ""  # digest of the weights that this certificate speaks of

    @property
    def verdict(self) -> Verdict:
        if self.witness is not None:
            return "REFUTED"
        consistent = self.observed <= self.bound  # also false for NaN: a model that answers NaN is never certified
        proved = math.isfinite(self.bound) and self.bound <= self.tolerance
        return "CERTIFIED" if proved and consistent else "UNDECIDED"

    @property
    def _relative(self) -> str:
        """Where a relative tolerance was asked for: of what."""
        about = self.evidence.get("relative")
        return f" = {about['share']:g} of |f| ≥ {at_least(about['least'], 6)} ({about['known']})" if about else ""

    def as_json(self) -> dict[str, Any]:
        """A dictionary for JSON; an infinite bound is null, and so is an observed error that is not finite."""
        record = asdict(self) | {"schema": SCHEMA, "verdict": self.verdict}
        for name in ("bound", "observed"):
            record[name] = record[name] if math.isfinite(record[name]) else None
        return record

    @staticmethod
    def from_json(record: dict[str, Any]) -> "Certificate":
        """The certificate of a record; its verdict is derived again, never read."""
        kept = {k: v for k, v in record.items() if k in Certificate.__dataclass_fields__}
        for name in ("bound", "observed"):
            kept[name] = math.inf if kept.get(name) is None else float(kept[name])
        kept["assumptions"] = tuple(kept.get("assumptions", ()))
        kept["witness"] = None if kept.get("witness") is None else tuple(kept["witness"])
        return Certificate(**kept)

    def table(self) -> Table:
        bound = at_most(self.bound) if math.isfinite(self.bound) else "none proved"
        rows: list[tuple[object, ...]] = [
            ("verdict", self.verdict),
            ("tolerance", f"{self.tolerance:.4g}{self._relative}"),
            ("bound (proved)", bound),
            ("observed error", f"{self.observed:.4g} at {self.observed_points:,} points"),
            ("method", self.method),
            ("arithmetic", self.arithmetic),
            ("domain", self.domain),
            *([("margin around jumps", f"{self.margin:g}")] if self.margin else []),
            *([("witness", ", ".join(f"{v!r}" for v in self.witness))] if self.witness is not None else []),
            *(("assumes", a) for a in self.assumptions),
        ]
        return Table("Certificate", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()
