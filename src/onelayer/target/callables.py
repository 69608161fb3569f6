"""Batched: a user's function, called with many points at a time; what goes wrong in it is told in one line.

A function is called with a NumPy array, and with a torch tensor if that raises a TypeError. A module of torch is called with
tensors of its own dtype, on its own device.
"""

import math
import sys
from collections.abc import Callable
from typing import Any, Literal, NoReturn

import numpy as np

from ..common.errors import InputError

BATCH = 4096  # points that a module answers at a time
CHANGE = "take one batch [batch, D], and return [batch] or [batch, …]"
MODULE_CHANGE = f"{CHANGE}; a model of tokens goes to ol.distill"


def is_module(function: object) -> bool:
    """Whether it is an `nn.Module`; torch is not imported for the answer."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(function, torch.nn.Module)


class Batched:
    """[point, D] → answers; the function itself sees [batch, D], or [batch, n, d] where `shape` is given."""

    def __init__(self, function: Callable[..., Any], shape: tuple[int, int] | None = None) -> None:
        self.function, self.shape = function, shape
        self._library: Literal["numpy", "torch", "module"] | None = None
        if is_module(function):
            from .determinism import require_deterministic

            require_deterministic(function)
            self._library = "module"

    @property
    def name(self) -> str:
        """What tables call it."""
        if self._library == "module":
            return type(self.function).__name__
        return getattr(self.function, "__name__", repr(self.function))

    def output_shape(self, x: np.ndarray) -> tuple[int, ...]:
        """The shape of one answer, found by calling the function."""
        y = self.answers(x)
        if y.ndim == 0 or len(y) != len(x):
            raise InputError(
                f"a batched function: {len(x)} points in, {len(x)} values out",
                f"output of shape {list(y.shape)} for input of shape {list(self._batch(x).shape)}",
                "return [batch] or [batch, …]",
            )
        if self._library == "module":
            from .determinism import require_same_twice

            require_same_twice(lambda: self.answers(x))
        return y.shape[1:] or (1,)

    def __call__(self, x: np.ndarray, output_shape: tuple[int, ...]) -> np.ndarray:
        """[point, out], finite or not."""
        y = self.answers(x)
        if y.shape[:1] != x.shape[:1] or math.prod(y.shape[1:]) != math.prod(output_shape):
            wanted = [len(x), *output_shape]
            raise InputError(f"output of shape {wanted}", f"{list(y.shape)}", "return one value per point")
        return y.reshape(len(x), math.prod(output_shape))

    def answers(self, x: np.ndarray) -> np.ndarray:
        """What the function answers to points, as float64."""
        if self._library == "module":
            parts = np.array_split(self._batch(x), max(1, -(-len(x) // BATCH)))
            return np.concatenate([self._by_module(part) for part in parts])
        raised: list[Exception] = []
        if self._library != "torch":
            try:
                y = self.function(self._batch(x))
                self._library = "numpy"
                return self._numbers(y)
            except InputError:
                raise
            except TypeError as error:
                raised.append(error)
            except Exception as error:
                self._refuse(x, error)
            if self._library == "numpy":
                self._refuse(x, *raised)
        import torch

        try:
            with torch.no_grad():
                y = self.function(torch.from_numpy(np.ascontiguousarray(self._batch(x))))
        except InputError:
            raise
        except Exception as error:
            self._refuse(x, *raised, error)
        self._library = "torch"
        return self._numbers(y)

    def _batch(self, x: np.ndarray) -> np.ndarray:
        """Points in the shape that the function reads; a copy, as it may write into it."""
        return (x if self.shape is None else x.reshape(len(x), *self.shape)).copy()

    def _by_module(self, batch: np.ndarray) -> np.ndarray:
        """One answer for every input, computed in the module's dtype and on its device."""
        import torch

        first = next(iter(self.function.parameters()), torch.zeros(1, dtype=torch.float64))  # type: ignore[attr-defined]
        try:
            with torch.no_grad():
                y = self.function(torch.from_numpy(batch).to(first.device, first.dtype))
        except InputError:
            raise
        except Exception as error:
            self._refuse(batch, error)
        tensor = isinstance(y, torch.Tensor) and not y.is_meta
        if not (tensor and not y.is_complex() and y.ndim and len(y) == len(batch)):
            found = f"shape {list(y.shape)} of {y.dtype}" if tensor else type(y).__name__
            raise InputError("a tensor of real answers, one for every input", found, MODULE_CHANGE)
        return self._numbers(y)

    def _numbers(self, y: Any) -> np.ndarray:
        y = y.detach().cpu().double() if hasattr(y, "detach") and not y.is_complex() else y
        try:
            if not np.iscomplexobj(y):
                return np.asarray(y, dtype=np.float64)
            found = "complex ones"
        except (TypeError, ValueError) as error:
            found = f"{type(y).__name__}: {' '.join(str(error).split())[:120]}"
        raise InputError("real numbers as answers of the function", found, "return an array of floats")

    def _refuse(self, x: np.ndarray, *errors: Exception) -> NoReturn:
        """The function failed: say what it was called with and what it raised."""
        kind, shape = "module" if self._library == "module" else "function", list(self._batch(x).shape)
        told = dict.fromkeys(" ".join(f"{type(e).__name__}: {e}".split())[:160] for e in errors)
        found = " and, with a torch tensor, ".join(told)
        change = MODULE_CHANGE if kind == "module" else CHANGE
        raise InputError(f"a {kind} that answers inputs of shape {shape}", found, change) from None
