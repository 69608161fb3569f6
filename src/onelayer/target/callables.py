"""Batched: a user's callable, called with many points at a time, as NumPy or torch, whichever it accepts."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from ..common.errors import InputError


class Batched:
    """[point, D] → answers; the callable itself sees [batch, D], or [batch, n, d] where `shape` is given."""

    def __init__(self, function: Callable[[Any], Any], shape: tuple[int, int] | None) -> None:
        self.function, self.shape = function, shape
        self._library: Literal["numpy", "torch"] | None = None

    def output_shape(self, x: np.ndarray) -> tuple[int, ...]:
        """The shape of one answer, found by calling the function."""
        y = self._answer(x)
        if y.ndim == 0 or len(y) != len(x):
            raise InputError(
                f"a batched function: {len(x)} points in, {len(x)} values out",
                f"output of shape {list(y.shape)}",
                "return [batch] or [batch, …]",
            )
        return y.shape[1:] or (1,)

    def __call__(self, x: np.ndarray, output_shape: tuple[int, ...]) -> np.ndarray:
        """[point, out], finite or not."""
        y = self._answer(x)
        if y.shape[:1] != x.shape[:1] or math.prod(y.shape[1:]) != math.prod(output_shape):
            wanted = [len(x), *output_shape]
            raise InputError(f"output of shape {wanted}", f"{list(y.shape)}", "return one value per point")
        return y.reshape(len(x), -1)

    def _answer(self, x: np.ndarray) -> np.ndarray:
        """The callable's answer as float64; it is called with NumPy first, and with torch if that raises a TypeError."""
        batch = (x if self.shape is None else x.reshape(len(x), *self.shape)).copy()  # the function may write into it
        if self._library != "torch":
            try:
                y = self.function(batch)
                self._library = "numpy"
                return np.asarray(y, dtype=np.float64)
            except TypeError:
                if self._library == "numpy":
                    raise
        import torch

        with torch.no_grad():
            y = self.function(torch.from_numpy(np.ascontiguousarray(batch)))
        self._library = "torch"
        return np.asarray(y, dtype=np.float64)
