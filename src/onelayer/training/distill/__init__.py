"""Distillation: a deep Transformer, or any other network, turned into one layer (Sections VI.B and VI.C of the paper).

    a teacher of few real variables    constructed, with a certificate: its own formula where its operations allow that
                                       (`expression`), a declared Lipschitz constant otherwise; without one only observed
    a teacher on given real inputs     trained on its answers (`train`), judged at held-out inputs
    a teacher of token sequences       one stock encoder layer over an embedding (`student`), trained likewise (`lesson`)

How faithful the layer is, is measured at inputs that were held out (`fidelity`), and never called a bound.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError

if TYPE_CHECKING:
    from torch import nn

    from .result import Distillation

Progress = Callable[[str, float], None]


def distill(
    teacher: "nn.Module | Callable[..., Any] | str | Path",
    inputs: Any = None,
    *,
    domain: Any = None,
    tolerance: float = 1e-2,
    progress: Progress | None = None,
    **wishes: Any,
) -> "Distillation":
    """One layer for a teacher: any `nn.Module`, a batched callable, or the folder of a `transformers` model.

    With a `domain` (sides as for `build`) the layer is constructed, and certified if the teacher's operations can be written as
    a formula or a `lipschitz` constant is declared; `wishes` are those of `build`.
    With `inputs`, an array [N, D] or [N, n, d] of real numbers, it is trained on the teacher's answers; `wishes` are those of
    `train`. With token numbers [N, n] or texts it is a stock encoder layer over an embedding; `wishes` are heads, width, d_model,
    `read` ("hidden", "logits" or "pooled"), temperature, mask, held_out (a share) or judge (tokens and mask of their own),
    student (a module to train instead), checkpoint, device, seconds, and those of a recipe (steps, batch, rate, seed, …).
    """
    if (inputs is None) == (domain is None):
        found = "both" if inputs is not None else "neither"
        raise InputError("inputs or a domain", found, "give inputs to train on, or a domain to construct on")
    if domain is not None:
        from .continuous import constructed

        return constructed(teacher, domain, tolerance, progress, wishes)
    from .sequences import are_tokens

    if are_tokens(inputs) or isinstance(teacher, str | Path):
        from .token_training import taught

        return taught(teacher, inputs, progress, wishes)
    from .continuous import trained

    return trained(teacher, inputs, tolerance, progress, wishes)
