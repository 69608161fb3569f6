"""Training on noisy samples: held-out samples show how many steps are enough, then a layer is trained on all samples.

Several trainings of different lengths run to their end, where the rate has fallen to 0; the one with the smallest held-out error
(root mean square, or cross-entropy of labels) is repeated on all samples. With too few samples to hold any out, or with a given
number of steps, there is nothing to choose. Weight decay, dropout and a LayerNorm keep a layer from learning the noise; their
strengths were chosen on splits of the handwritten digits, and are not tuned for other data.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...common.errors import InputError
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...proof.certificate import unproved
from ..descent import train
from .rows import Rows

HELD_OUT_SHARE = 0.1  # of the samples
FEWEST_TO_SPLIT = 100  # samples; a tenth of fewer says nothing
BATCH = 128
EPOCHS = 60  # passes through all samples in the longest training
FEWEST_STEPS, MOST_STEPS = 200, 5000  # of the longest training, whatever the number of samples
LENGTHS = (1 / 16, 1 / 4, 1)  # lengths to choose from, as shares of the longest
VALIDATIONS = 16  # over all steps, for the history
RECIPE: dict[str, Any] = {"norm": "post", "dropout": 0.3, "weight_decay": 0.3, "rate": 3e-3}


@dataclass(frozen=True)
class LayerShape:
    """The shape of a layer to be trained; a row is one token, or `tokens` = (n, d)."""

    heads: int
    width: int
    d_model: int
    tokens: tuple[int, int] | None
    dtype: str  # in which the layer is stored and evaluated; it is trained in float32


def trained(rows: Rows, labels: bool, shape: LayerShape, steps: int | None, seed: int) -> Approximation:
    """A layer for the rows; with `labels` the only column of y numbers the classes."""
    arithmetic = arithmetic_of(shape.dtype)
    N, D = rows.x.shape
    n, d = (1, D) if shape.tokens is None else shape.tokens
    if n * d != D:
        raise InputError(f"tokens (n, d) with n·d = {D}, the features", f"{(n, d)}", "make the two agree")
    mean, spread = rows.answer_units
    answers = rows.y[:, 0].astype(np.int64) if labels else (rows.y - mean) / spread
    weights = rows.weights * (N / rows.total)

    def run(steps: int, validation: float) -> Approximation:
        every = max(1, steps // VALIDATIONS) if validation else steps
        return train(
            (rows.x.reshape(N, n, d), answers, weights), **RECIPE,
            heads=shape.heads, width=shape.width, d_model=shape.d_model, dtype="float32",
            shared_scale=shape.tokens is not None, loss="cross_entropy" if labels else "mse",
            seed=seed, batch=BATCH, steps=steps, every=every, validation=validation,
        )  # fmt: skip

    if steps is not None or N < FEWEST_TO_SPLIT:
        found = run(FEWEST_STEPS if steps is None else steps, 0.0)
        return _in_units(found, labels, rows.answer_units, (math.nan, 0), arithmetic)
    longest = min(max(EPOCHS * math.ceil(N / BATCH), FEWEST_STEPS), MOST_STEPS)
    judged = min((run(round(share * longest), HELD_OUT_SHARE) for share in LENGTHS), key=_at_the_end)
    assert judged.history is not None
    length, last = judged.history.steps, judged.history.moments[-1]
    seen = (last.validated, judged.certificate.observed_points)
    found = run(length, 0.0)
    chosen = f"{length:,} steps, chosen by held-out error; observed error and history are those of the layer that was trained"
    facts = replace(found.facts, notes=(*found.facts.notes, f"{chosen} without the held-out samples"))
    found = replace(found, facts=facts, history=judged.history)
    return _in_units(found, labels, rows.answer_units, seen, arithmetic)


def _at_the_end(judged: Approximation) -> float:
    assert judged.history is not None
    return judged.history.moments[-1].rmse


def _in_units(
    found: Approximation,
    labels: bool,
    units: tuple[np.ndarray, np.ndarray],
    seen: tuple[float, int],
    arithmetic: Arithmetic,
) -> Approximation:
    """The layer in the given dtype; its read-out and its observed error in the units of the answers."""
    observed, points = seen
    model = found.model.to(arithmetic.dtype)
    if not labels:
        mean, spread = units
        observed *= float(spread.max())
        with torch.no_grad():
            s, m = (torch.from_numpy(t).to(model.W_R.dtype) for t in (spread, mean))
            model.W_R.mul_(s)
            model.b_R.mul_(s).add_(m)
    certificate = unproved(model, found.certificate.tolerance, found.certificate.domain, observed, points)
    return replace(found, certificate=certificate)
