"""Distillation: a deep Transformer, or any other network, turned into one layer (Sections VI.B and VI.C of the paper).

    a teacher of few real variables    what `build` made of it, certified or not, compared with it
    a teacher on given real inputs     trained on its answers (`train`), judged at held-out inputs
    a teacher of token sequences       one stock encoder layer over an embedding (`TokenEncoder`), trained on its answers
                                       (`token_training`), judged at held-out sequences

How faithful the layer is to its teacher is measured at held-out inputs (`fidelity`), and never called a bound.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...common.checks import known_options, require_seconds
from ...common.errors import InputError
from ...common.progress import Progress

if TYPE_CHECKING:
    import torch
    from torch import nn

    from ...approximation import Approximation
    from ...model.config import Activation, Norm
    from ..recipe import Loss, Optimizer, Schedule
    from .result import Distillation

STEP_OPTIONS = {
    "schedule",
    "rate",
    "steps",
    "batch",
    "warm_up",
    "clipping",
    "weight_decay",
    "every",
    "patience",
    "seed",
}
TRAINING_OPTIONS = STEP_OPTIONS | {"heads", "width", "d_model", "checkpoint", "device", "seconds"}
OPTIONS = {  # by what the teacher is distilled on
    "a domain": set(),
    "real inputs": TRAINING_OPTIONS
    | {"activation", "norm", "shared_scale", "init", "samples", "optimizer", "loss", "dropout", "validation", "dtype", "shape"},
    "tokens": TRAINING_OPTIONS | {"read", "temperature", "mask", "held_out", "judge", "student"},
}  # fmt: skip


@known_options
def distill(
    teacher: "nn.Module | Callable[..., Any] | str | Path",
    inputs: Any = None,
    *,
    domain: Any = None,
    tolerance: float = 1e-2,
    progress: Progress | None = None,
    seed: int | None = None,
    seconds: float | None = None,
    device: str | None = None,
    dtype: "str | torch.dtype | None" = None,
    shape: tuple[int, int] | None = None,
    heads: int | None = None,
    width: int | None = None,
    d_model: int | None = None,
    activation: "Activation | None" = None,
    norm: "Norm | None" = None,
    shared_scale: bool | None = None,
    init: "Literal['random'] | Approximation | None" = None,
    samples: int | None = None,
    optimizer: "Optimizer | None" = None,
    loss: "Loss | None" = None,
    schedule: "Schedule | None" = None,
    rate: float | None = None,
    steps: int | None = None,
    batch: int | None = None,
    warm_up: float | None = None,
    clipping: float | None = None,
    weight_decay: float | None = None,
    dropout: float | None = None,
    validation: float | None = None,
    every: int | None = None,
    patience: int | None = None,
    checkpoint: str | Path | None = None,
    read: Literal["hidden", "logits", "pooled"] | None = None,
    temperature: float | None = None,
    mask: Any = None,
    held_out: float | None = None,
    judge: Sequence[Any] | None = None,
    student: "nn.Module | None" = None,
) -> "Distillation":
    """One layer for a teacher: any `nn.Module`, a batched callable, or the folder of a `transformers` model.

    With a `domain` the layer is `build(teacher, domain, tolerance)`, constructed, and certified if the teacher's operations can
    be written as a formula. For other options of `build`, such as a declared `lipschitz` constant, build the layer first and give
    it as `inputs`: `distill(teacher, build(teacher, domain, …))`.

    With `inputs`, an array [N, D] or [N, n, d] of real numbers, the layer is trained on the teacher's answers. It takes
    the options of `train`, `heads` to `checkpoint`, and `shape`.

    With token numbers [N, n] or texts the layer is a stock encoder layer over an embedding. The teacher is called as
    `forward(tokens, mask)`, or as `forward(tokens)` if it takes no mask, and answers [N, n, d], or [N, d] for a whole sequence.
    It takes `heads`, `width` and `d_model`, the options of its steps (`schedule` to `clipping`, `weight_decay`, `every`,
    `patience`), `checkpoint`, and those from `read` on: `read` is what it learns of the teacher ("hidden" states, "logits" or one
    "pooled" vector), `temperature` that of the logits, `mask` is true where there is a token, `held_out` the share of sequences
    that judge, or `judge` such sequences themselves (tokens and a mask), `student` a module to train instead.

    None stands for the default of `train`, or of a training on tokens; an option that does not apply is refused.
    """
    options = {name: value for name, value in locals().items() if value is not None}
    for name in ("teacher", "inputs", "domain", "tolerance", "progress"):
        options.pop(name, None)
    if seconds is not None:
        require_seconds(seconds, "the distillation")
    if (inputs is None) == (domain is None):
        found = "both" if inputs is not None else "neither"
        raise InputError("inputs or a domain", found, "give inputs to train on, or a domain to construct on")
    from ...approximation import Approximation

    if domain is not None or isinstance(inputs, Approximation):
        from .continuous import construct, judge_built

        _require_known(options, "a domain")
        if isinstance(inputs, Approximation):
            return judge_built(teacher, inputs)
        return construct(teacher, domain, tolerance, progress)
    from .sequences import are_tokens

    if are_tokens(inputs) or isinstance(teacher, str | Path):
        from .token_training import train_on_tokens

        _require_known(options, "tokens")
        return train_on_tokens(teacher, inputs, progress, options)
    from .continuous import train_on_inputs

    _require_known(options, "real inputs")
    return train_on_inputs(teacher, inputs, tolerance, progress, options)


def _require_known(options: dict[str, Any], given: str) -> None:
    if others := sorted(set(options) - OPTIONS[given]):
        raise InputError(f"options of a distillation on {given}", ", ".join(others), "leave them out")
