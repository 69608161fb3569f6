"""Description: what a model folder says about a target. A formula is loaded from it; anything else is only described."""

from dataclasses import dataclass, field
from typing import Any, Literal

from .decoding import Decoding
from .domain import MOST_VARIABLES, Domain, domain_of
from .target import Target

Kind = Literal["formula", "callable", "data", "gallery", "samples"]


@dataclass(frozen=True, kw_only=True)
class Description:
    """A target in words and numbers: which one, on which domain, how inputs are encoded and answers decoded."""

    kind: Kind
    text: str
    domain: Domain
    shape: tuple[int, int]
    output_shape: tuple[int, ...]
    sequence: bool = True
    formula: str | None = None
    data: dict[str, Any] | None = None  # about samples that are not stored
    margin: float = 0.0
    entry: str = ""  # of the gallery
    parameters: dict[str, Any] = field(default_factory=dict)
    vocabulary: int | None = None  # inputs are token numbers below this
    decoding: Decoding | None = None

    @staticmethod
    def of(target: Target) -> "Description":
        return Description(
            kind=target.kind,
            text=target.text,
            domain=target.domain,
            shape=target.shape,
            output_shape=target.output_shape,
            sequence=target.sequence,
            formula=target.formula.text if target.formula else None,
            data=target.data.record() if target.data is not None else None,
            margin=target.margin,
        )

    def target(self) -> Target | None:
        """The target of a formula; None for what is only described."""
        if self.formula is None:
            return None
        shape = self.shape if self.sequence else None
        return Target(self.formula, self.domain, shape=shape, output_shape=self.output_shape, margin=self.margin)

    def as_json(self) -> dict[str, Any]:
        """For target.json; entry, parameters, vocabulary and decoding only where there are any."""
        d = self.domain
        decoding = None if self.decoding is None else self.decoding.record()
        special = {
            "entry": self.entry,
            "parameters": self.parameters,
            "vocabulary": self.vocabulary,
            "decoding": decoding,
        }
        return {
            "kind": self.kind,
            "data": self.data,
            "formula": self.formula,
            "description": self.text,
            "names": list(d.names),
            "ends": [list(pair) for pair in d.ends],
            "lower": list(d.lower),
            "upper": list(d.upper),
            "within": d.within.text if d.within else None,
            "sequence": self.sequence,
            "shape": list(self.shape),
            "output_shape": list(self.output_shape),
            "margin": self.margin,
        } | {name: value for name, value in special.items() if value}

    @staticmethod
    def from_json(about: dict[str, Any]) -> "Description":
        """The description in a record; its domain has exactly the floats that were certified."""
        sides = {name: (a, b) for name, a, b in zip(about["names"], about["lower"], about["upper"], strict=True)}
        most = None if about["kind"] in ("samples", "data") else MOST_VARIABLES  # samples have no formula to search
        box = domain_of(sides, about["within"], most)
        return Description(
            kind=about["kind"],
            text=str(about["description"]),
            domain=Domain(box.names, box.lower, box.upper, tuple((a, b) for a, b in about["ends"]), box.within),
            shape=(int(about["shape"][0]), int(about["shape"][1])),
            output_shape=tuple(map(int, about["output_shape"])),
            sequence=bool(about["sequence"]),
            formula=about["formula"],
            data=about["data"],
            margin=float(about["margin"]),
            entry=about.get("entry", ""),
            parameters=about.get("parameters", {}),
            vocabulary=about.get("vocabulary"),
            decoding=Decoding.of(about.get("decoding")),
        )
