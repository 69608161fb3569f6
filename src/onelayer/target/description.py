"""Description: what a model folder says about a target. A formula is loaded from it; anything else is only described."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..common.errors import InputError
from ..common.numbers import exact
from ..formula.own import own_names
from .decoding import Decoding
from .domain import Domain, domain_of
from .sides import MOST_VARIABLES
from .target import Target

SPECIAL = ("entry", "parameters", "vocabulary", "decoding")  # of targets that are only described
Kind = Literal["formula", "callable", "data", "gallery", "samples"]
Outside = Literal["allow", "error", "clip"]  # what to do with points that are not covered


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
        own = target.formula is not None and own_names(target.formula.outputs)  # which a folder cannot keep
        return Description(
            kind="callable" if own else target.kind,
            text=target.text,
            domain=target.domain,
            shape=target.shape,
            output_shape=target.output_shape,
            sequence=target.sequence,
            formula=target.formula.text if target.formula and not own else None,
            data=target.data.record() if target.data is not None else None,
            margin=target.margin,
        )

    def target(self) -> Target | None:
        """The target of a formula; None for what is only described."""
        if self.formula is None:
            return None
        shape = self.shape if self.sequence else None
        return Target(self.formula, self.domain, shape=shape, output_shape=self.output_shape, margin=self.margin)

    @property
    def observed_at(self) -> str:
        """What the error is observed at, in words."""
        data = "samples in context" if (self.data or {}).get("in_context") else "held-out samples"
        return {"data": data, "samples": "stored samples"}.get(self.kind, "points")

    def batch(self, x: Tensor) -> tuple[Tensor, bool]:
        """(x as [batch, D], whether it was a single point)."""
        D, (n, d) = self.domain.dimension, self.shape
        if x.shape == (D,) or (x.shape == (n, d) and D > 1) or (D == 1 and x.ndim == 0):
            return x.reshape(1, D), True
        if (x.ndim == 2 and x.shape[1] == D) or x.shape[1:] == (n, d):
            return x.reshape(len(x), D), False
        if D == 1 and x.ndim == 1:
            return x.reshape(-1, 1), False
        wanted = f"[batch, {D}] or [{D}]" + (f" or [batch, {n}, {d}]" if d > 1 else "")
        raise InputError(f"points of shape {wanted}", f"shape {list(x.shape)}", "reshape the input")

    def clipped(self, x: Tensor) -> Tensor:
        """Points [batch, D] moved to the box, to numbers of their own type; a condition or a margin may still exclude them."""
        box = replace(self.domain, within=None)
        ends = box.representable(np.array([box.lower, box.upper]), x.dtype == torch.float32)
        low, high = torch.from_numpy(ends).to(x)
        return x.clamp(low, high)

    def known_tokens(self, x: Tensor) -> Tensor:
        """Which numbers are tokens of the vocabulary."""
        assert self.vocabulary is not None
        return (x >= 0) & (x < self.vocabulary) & (x == x.round())

    def one_hot(self, x: Tensor) -> Tensor:
        """Token numbers as unit vectors."""
        assert self.vocabulary is not None
        known = self.known_tokens(x)
        if not known.all():
            found = x[~known][0].item()
            raise InputError(f"tokens from 0 to {self.vocabulary - 1}", exact(found), "number the tokens from 0 on")
        return torch.nn.functional.one_hot(x.long(), self.vocabulary).to(x.dtype)

    def shaped(self, y: Tensor, single: bool) -> Tensor:
        """Outputs [batch, outputs] in the shape of the target's answers."""
        y = y[:, 0] if self.output_shape == (1,) else y.reshape(len(y), *self.output_shape)
        return y[0] if single else y

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
        if about["formula"] is not None and (special := sorted(set(SPECIAL) & set(about))):
            raise InputError("a formula alone in target.json", ", ".join(special), "build the folder again")
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
