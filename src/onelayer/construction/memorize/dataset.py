"""The dataset to store: inputs and answers as numbers, each input once.

Answers are labels (whole numbers, words, truth values), stored as scores that are 1 for the right class and 0 for the others,
or real numbers. Equal inputs must have equal answers.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int

from ...common.errors import InputError
from ...common.numbers import exact
from ...layer.arithmetic import Arithmetic
from ...target.decoding import Decoding
from ...target.samples import LARGEST, read_samples, row_name

LARGEST_FLOAT32 = 1e30  # sums and products of such numbers, normalised, stay far from overflow
SHOWN = 3  # conflicts that a refusal names


@dataclass(frozen=True, eq=False)
class Dataset:
    """Distinct samples in the order given; `rows` are their places in what was given, `called` what to call those."""

    x: Float[np.ndarray, "sample coordinate"]  # rounded to the model's dtype
    y: Float[np.ndarray, "sample out"]
    rows: Int[np.ndarray, " sample"]
    called: Sequence[str] | None
    given: int  # how many there were before equal ones were merged
    tokens: tuple[int, int]  # n tokens of d numbers, as the model takes them
    shape: tuple[int, int]  # as users give them
    output_shape: tuple[int, ...]
    decoding: Decoding | None
    sha256: str  # of X and Y as numbers, little-endian float64 in row order

    def __len__(self) -> int:
        return len(self.x)

    def name(self, sample: int) -> str:
        return row_name(int(self.rows[sample]), self.called)

    @property
    def box(self) -> list[tuple[float, float]]:
        """The smallest box around the samples, a little wider in the coordinates in which they all agree."""
        low, high = self.x.min(axis=0), self.x.max(axis=0)
        flat = ~(high - low > 1e-290)  # the smallest width that a domain may have
        low = np.where(flat, np.minimum(np.nextafter(low, -np.inf), low - 1e-289), low)
        high = np.where(flat, np.maximum(np.nextafter(high, np.inf), high + 1e-289), high)
        return list(zip(low.tolist(), high.tolist(), strict=True))


def dataset_of(
    X: Any, Y: Any, labels: bool | None, arithmetic: Arithmetic, called: Sequence[str] | None = None
) -> Dataset:
    """X [N], [N, D] or [N, n, d] and Y [N] or [N, …], checked; labels by their kind, unless `labels` says so."""
    answers, decoding = _answers(Y, labels)
    x3, y3 = read_samples(X, answers, LARGEST if arithmetic.dtype == torch.float64 else LARGEST_FLOAT32, called)
    x, y = x3.reshape(len(x3), -1), y3.reshape(len(y3), -1)
    digest = hashlib.sha256(x3.astype("<f8").tobytes() + y3.astype("<f8").tobytes()).hexdigest()
    if arithmetic.dtype == torch.float32:
        x = x.astype(np.float32).astype(np.float64)
    rows = _distinct(x, y, called)
    D = x.shape[1]
    sequence = (x3.shape[1], x3.shape[2]) if x3.ndim == 3 else None
    tokens, shape, output_shape = sequence or (1, D), sequence or (D, 1), y3.shape[1:] or (1,)
    return Dataset(x[rows], y[rows], rows, called, len(x), tokens, shape, output_shape, decoding, digest)


def _answers(Y: Any, labels: bool | None) -> tuple[np.ndarray, Decoding | None]:
    """(real numbers, None) or (scores of the classes, how they become labels)."""
    try:
        y = np.asarray(Y.detach().cpu() if hasattr(Y, "detach") else Y)
        y = np.array(y.tolist()) if y.dtype.kind in "OT" else y
    except (TypeError, ValueError) as error:
        raise InputError("numbers or labels as Y", " ".join(str(error).split())[:100], "pass an array") from None
    if y.dtype.kind not in "iubfU" or y.ndim == 0 or 0 in y.shape[1:]:
        found = f"{y.dtype}, shape {list(y.shape)}"
        raise InputError("Y of shape [N] or [N, …]: numbers, or words as labels", found, "pass one answer per sample")
    if labels is None:
        labels = y.dtype.kind != "f"
    if not labels:
        if y.dtype.kind == "U":
            raise InputError("numbers as Y", f"words such as {str(y.flat[0])!r}", "leave labels=False out")
        return y, None
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("finite labels", exact(y[~np.isfinite(y)][0]), "leave such samples out")
    classes, index = np.unique(y, return_inverse=True)
    scores = np.eye(len(classes))[index.reshape(y.shape)]
    return scores, Decoding("largest", tuple(classes.tolist()))


def _distinct(x: np.ndarray, y: np.ndarray, called: Sequence[str] | None) -> Int[np.ndarray, " sample"]:
    """The first of every set of equal samples; the same x with another y is refused."""
    first: dict[bytes, int] = {}
    conflicts = []
    for i, point in enumerate(x):
        k = first.setdefault(point.tobytes(), i)
        if k != i and not np.array_equal(y[i], y[k]):
            conflicts.append(f"{row_name(k, called)} and {row_name(i, called)}")
    if conflicts:
        more = f" and {len(conflicts) - SHOWN} more" if len(conflicts) > SHOWN else ""
        found = f"the same input with different answers: {', '.join(conflicts[:SHOWN])}{more}"
        raise InputError("one answer for every input", found, "keep one of each")
    return np.array(list(first.values()), dtype=np.int64)
