"""Which points a certificate speaks of, as they are given, and why not of the others.

A point is covered if every coordinate is a number of the layer's float type, it lies in the float box of the domain, the
domain's condition is proved there, and no jump of `where(…)` is within the margin. Tokens are whole numbers of the vocabulary.
Of memorised samples only a digest is kept, so that no point is known to be one of them.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from ..common.errors import InputError
from ..common.numbers import exact, point
from ..formula import Formula
from ..formula.float_bounds import proved_at
from ..target.description import Description
from ..target.margin import away_from_jumps

WHOLE = 2**53  # whole numbers below this are float64 numbers
MONOMIALS = 2**22  # of the Taylor models around points, at a time
SHOWN = 8  # coordinates of a point in a message

Rows = Int[np.ndarray, " row"]
Demand = tuple[str, str, Callable[[Rows], Bool[np.ndarray, " row"]]]  # asked, change, where it holds


@dataclass(frozen=True)
class Scope:
    """The points that a certificate with this margin speaks of, for a layer of this float type."""

    description: Description
    formula: Formula | None
    margin: float
    dtype: torch.dtype

    def covers(self, given: Any) -> tuple[Bool[np.ndarray, " point"], bool]:
        """(which points are covered, whether a single point was given)."""
        x, representable, single = self._points(given)
        rows = np.arange(len(x))
        for _, _, holds in self._demands(x, representable):
            rows = rows[holds(rows)]
        covered = np.zeros(len(x), dtype=bool)
        covered[rows] = True
        return covered, single

    def require(self, given: Any, name: Callable[[int], str] | None = None) -> None:
        """Refuse the first point that is not covered and say why; `name` says what to call a point."""
        x, representable, _ = self._points(given)
        rows = np.arange(len(x))
        for asked, change, holds in self._demands(x, representable):
            good = holds(rows)
            if not good.all():
                i = int(good.argmin())
                raise InputError(asked, f"x = {point(x[i, :SHOWN])}" if name is None else name(i), change)

    def _demands(self, x: Float[np.ndarray, "point coordinate"], representable: np.ndarray) -> Iterator[Demand]:
        """What is asked of a covered point; each test may count on those before it."""
        d, allow = self.description, "allow points that are not covered (outside='allow')"
        if d.kind == "samples":
            asked = "stored samples: the certificate holds for these alone, and the layer does not keep them"
            yield asked, allow, lambda rows: np.zeros(len(rows), dtype=bool)
        if d.vocabulary is not None:
            known = d.known_tokens(torch.from_numpy(x)).all(dim=1).numpy()
            yield f"tokens from 0 to {d.vocabulary - 1}", "number the tokens from 0 on", lambda rows: known[rows]
        low, high = np.array(d.domain.lower), np.array(d.domain.upper)
        inside, move = np.asarray(((low <= x) & (x <= high)).all(axis=1)), f"move it, or {allow}"
        yield f"points in the domain: {d.domain}", move, lambda rows: inside[rows]
        name = str(self.dtype).removeprefix("torch.")
        yield f"points in {name}, as the layer takes them", f"round it, or {allow}", lambda rows: representable[rows]
        if (within := d.domain.within) is not None:
            yield f"points in the domain: {d.domain}", move, lambda rows: proved_at(within, x[rows])
        if self.margin and (formula := self.formula) is not None:
            asked = f"points more than {exact(self.margin)} away from every jump of where(…)"
            yield asked, move, lambda rows: self._away(formula, x[rows])

    def _away(self, formula: Formula, x: np.ndarray) -> np.ndarray:
        size = max(1, MONOMIALS // math.comb(x.shape[1] + 3, 3))
        parts = [x[i : i + size] for i in range(0, len(x), size)]
        found = [away_from_jumps(formula, self.description.domain, self.margin, part) for part in parts]
        return np.concatenate([np.zeros(0, dtype=bool), *found])

    def _points(self, given: Any) -> tuple[np.ndarray, np.ndarray, bool]:
        """(points [batch, D], which of them are numbers of the layer's float type, whether a single point was given)."""
        x, same = _as_float64(given)
        if self.dtype != torch.float64:
            same &= torch.from_numpy(x).to(self.dtype).double().numpy() == x
        batch, single = self.description.batch(torch.from_numpy(x))
        return batch.numpy(), np.asarray(same.reshape(batch.shape).all(axis=1)), single


def _as_float64(given: Any) -> tuple[np.ndarray, np.ndarray]:
    """(numbers in float64, which of them are as they were given)."""
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        given = (given.double() if given.is_floating_point() else given).numpy()
    try:
        found = np.array(given, dtype=np.float64)
        array = np.asarray(given, dtype=object if isinstance(given, list | tuple) else None)  # lists would be rounded
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("numbers as input", f"{type(given).__name__}: {error}", "pass an array of numbers") from None
    if array.dtype.kind in "iu":
        return found, np.abs(found) < WHOLE
    return found, np.asarray(array == found, dtype=bool)
