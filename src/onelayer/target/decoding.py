"""Decoding: how the numbers that a layer gives become whole numbers, tokens or labels.

round      the nearest whole number: right if the layer is off by less than ½
zero       1 for 0 and 0 for numbers from 1 on: likewise
largest    the label of the largest entry of the last axis, where the right answer is 1 there and 0 elsewhere: likewise
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

DECODING_MARGIN = 0.5  # a proved bound below this excludes wrong answers
Kind = Literal["round", "zero", "largest"]


@dataclass(frozen=True)
class Decoding:
    """From numbers to answers; `labels` belong to `largest`, and are 0, 1, … if none are given."""

    kind: Kind
    labels: tuple[str | int | float, ...] = ()

    def __call__(self, y: np.ndarray) -> np.ndarray:
        """The answers that these numbers stand for."""
        if self.kind == "round":
            return np.asarray(np.rint(y), dtype=np.int64)
        if self.kind == "zero":
            return np.asarray(y < DECODING_MARGIN, dtype=np.int64)
        index = np.asarray(y.argmax(axis=-1))
        return np.asarray(np.array(self.labels)[index]) if self.labels else index

    def record(self) -> dict[str, Any]:
        return {"kind": self.kind, "labels": list(self.labels)}

    @staticmethod
    def of(record: dict[str, Any] | None) -> "Decoding | None":
        if record is None:
            return None
        if record["kind"] not in get_args(Kind) or not isinstance(record["labels"], list):
            raise ValueError(f"no decoding: {record}")
        return Decoding(record["kind"], tuple(record["labels"]))
