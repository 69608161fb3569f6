"""What an export of a layer for any length starts from: the layer in the requested dtype, and the comparison with it."""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ... import __version__
from ...common.errors import InputError
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.rounding.deployed import edges
from ...model.transformer import SingleLayerTransformer
from ...sequence_layer import SequenceLayer
from .subject import Measured

ROWS = 64  # sequences of one length that are compared
PaddedAnswer = Callable[[np.ndarray, np.ndarray], np.ndarray]  # x, padding [batch, length] → y, in the exported dtype


@dataclass(frozen=True)
class SequenceSubject:
    """A layer for any length, and its model in the dtype of the export."""

    layer: SequenceLayer
    model: SingleLayerTransformer

    @property
    def arithmetic(self) -> Arithmetic:
        return arithmetic_of(self.model.W_E.dtype)

    @property
    def target(self) -> str:
        return self.layer.description.text

    @property
    def vocabulary(self) -> int | None:
        return self.layer.description.vocabulary

    @property
    def reach(self) -> tuple[torch.Tensor, torch.Tensor]:
        """(lowest, highest) x̂ at every position, rounded outward, of a layer whose inputs are numbers."""
        shift, scale = (t.double().flatten() for t in (self.model.shift, self.model.scale))
        lower, upper = (torch.full_like(shift, end) for end in self.layer.description.ends)
        low, high = edges(lower, upper, shift, scale)
        return torch.minimum(low, high).reshape(-1, 1), torch.maximum(low, high).reshape(-1, 1)

    def about(self) -> dict[str, str]:
        """What the layer is, in words, as metadata."""
        d, c = self.layer.description, self.layer.certificate
        answers = ("length, " if d.answer == "position" else "") + f"{d.outputs}"
        return {
            "producer": f"onelayer {__version__}",
            "target": self.target,
            "domain": c.domain,
            "input": f"x [batch, length], length ≤ {d.longest}; padding [batch, length], True where there is no token",
            "output": f"y [batch, {answers}]",
            "dtype": self.arithmetic.name,
            "tolerance": c.tolerance_text,
            "verdict": f"{c.headline}, of the layer in onelayer, {c.arithmetic}",
            "bound": f"{c.stated_bound}, of the layer in onelayer, {c.arithmetic}",
        }

    def measure(self, answer: PaddedAnswer, seed: int) -> Measured:
        """The largest difference from our own layer, at sequences of several lengths in padded batches."""
        d, rng, worst, count = self.layer.description, np.random.default_rng(seed), 0.0, 0
        for n in sorted({1, min(2, d.longest), min(7, d.longest), max(1, d.longest // 2), d.longest}):
            rows = max(2, min(ROWS, 2**21 // (n * n * self.model.config.heads)))
            low, high = d.ends
            x = rng.integers(0, d.vocabulary, (rows, n)) if d.vocabulary else low + (high - low) * rng.random((rows, n))
            given = x.astype(self.arithmetic.name).clip(low, high)
            padding = np.arange(n) >= rng.integers(1, n + 1, (rows, 1))
            padding[0] = False
            found = answer(given, padding)
            own = self.layer.values(torch.from_numpy(given.astype(np.float64)), torch.from_numpy(padding))
            difference = np.abs(found.astype(np.float64).reshape(own.shape) - own)
            if not np.isfinite(difference).all():
                asked = f"a layer that can be evaluated in {self.arithmetic.name}"
                raise InputError(asked, "values that are not finite", "export in float64")
            worst, count = max(worst, float(difference.max())), count + rows
        return Measured(count, worst, None)


def sequence_subject_of(layer: SequenceLayer, dtype: str | None) -> SequenceSubject:
    """The layer in `dtype` (its own, if None)."""
    layer.require_unchanged()  # the file repeats what the certificate says
    layer.model.config.require_softmax("an export")
    wanted = layer.model.W_E.dtype if dtype is None else arithmetic_of(dtype).dtype
    return SequenceSubject(layer, copy.deepcopy(layer.model).to(wanted).eval())
