"""Trained on noisy samples: held-out samples say how many steps are enough, then all samples are trained on for so many.

With too few samples to hold any out, all steps are made on all of them. Weight decay, dropout and a LayerNorm are what keeps a
layer from learning the noise; they are those that did best on held-out handwritten digits, and are not tuned for other data.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..approximation import Approximation
from ..errors import InputError
from ..rows import Rows
from ..train import train

HELD = 0.1  # of the samples
FEWEST = 100  # samples; a tenth of fewer says nothing
BATCH = 128
EPOCHS = 75  # all samples are seen so often, unless steps are asked for
LEAST, MOST = 200, 5000  # steps, unless asked for
VALIDATIONS = 32  # over all steps
PATIENCE = 10  # validations without progress
RECIPE: dict[str, Any] = {"norm": "post", "dropout": 0.2, "weight_decay": 0.3, "rate": 3e-3}


def trained(
    rows: Rows,
    labels: bool,
    tokens: tuple[int, int] | None,
    size: dict[str, Any],
    steps: int | None,
    seed: int,
    dtype: str,
) -> Approximation:
    """A layer for the rows; with `labels` the only column of y numbers the classes. A row is one token, or `tokens`."""
    N, D = rows.x.shape
    n, d = (1, D) if tokens is None else tokens
    if n * d != D:
        raise InputError(f"tokens (n, d) with n·d = {D}, the features", f"{(n, d)}", "make the two agree")
    steps = min(max(EPOCHS * math.ceil(N / BATCH), LEAST), MOST) if steps is None else steps
    mean, spread = rows.answer_units
    answers = rows.y[:, 0].astype(np.int64) if labels else (rows.y - mean) / spread
    weights = rows.weights * (N / rows.total)

    def run(steps: int, validation: float) -> Approximation:
        return train(
            (rows.x.reshape(N, n, d), answers, weights),
            **size, **RECIPE,
            loss="cross_entropy" if labels else "mse", alike=tokens is not None, dtype=dtype, seed=seed,
            batch=BATCH, steps=steps, every=max(1, steps // VALIDATIONS), patience=PATIENCE, validation=validation,
        )  # fmt: skip

    if N < FEWEST:
        found = run(steps, 0.0)
        found = replace(found, certificate=replace(found.certificate, observed=math.nan, observed_points=0))
    else:
        judged = run(steps, HELD)
        assert judged.history is not None
        found = run(max(1, judged.history.best), 0.0)
        seen: dict[str, Any] = {
            "observed": judged.certificate.observed,
            "observed_points": judged.certificate.observed_points,
        }
        chosen = f"{judged.history.best:,} steps by held-out error, then as many on all samples"
        facts = replace(
            found.facts, notes=(*found.facts.notes, chosen), seconds=found.facts.seconds + judged.facts.seconds
        )
        found = replace(found, certificate=replace(found.certificate, **seen), facts=facts, history=judged.history)
    return found if labels else _in_units(found, mean, spread)


def _in_units(found: Approximation, mean: np.ndarray, spread: np.ndarray) -> Approximation:
    """The read-out in the units of the answers."""
    model = found.model
    with torch.no_grad():
        s, m = (torch.from_numpy(t).to(model.W_R.dtype) for t in (spread, mean))
        model.W_R.mul_(s)
        model.b_R.mul_(s).add_(m)
    observed = found.certificate.observed * float(spread.max())
    return replace(found, certificate=replace(found.certificate, weights=model.fingerprint(), observed=observed))
