"""Recipe: how a layer is trained. It is checked when it is made, and needs no torch.

The learning rate follows a schedule over all steps: it rises linearly during the warm-up, then stays ("constant") or falls to
0 as half a cosine ("cosine"). The default rate depends on the optimiser; weights that were constructed get a much smaller one.
"""

import math
from dataclasses import dataclass, fields
from typing import Literal, get_args, get_origin

from ..common.checks import LARGEST_SEED, is_number, require_choice
from ..common.errors import InputError

Optimizer = Literal["adam", "sgd", "momentum"]
Loss = Literal["mse", "cross_entropy", "sup"]
Schedule = Literal["cosine", "constant"]

LARGEST_COUNT = 10**9  # of steps, samples or units: time or memory end long before
DEFAULT_RATES = {"adam": 1e-2, "sgd": 5e-2, "momentum": 2e-2}
CONSTRUCTED_RATE = 1e-3  # share of those rates for weights that were constructed
MOMENTUM = 0.9
SUP_POWER = 8  # loss "sup" is the mean of the errors to this power, a smooth maximum

_RANGES: dict[str, tuple[float, float]] = {  # smallest and largest value
    "rate": (0.0, 1e6),
    "steps": (1, LARGEST_COUNT),
    "batch": (1, LARGEST_COUNT),
    "seed": (0, LARGEST_SEED),
    "warm_up": (0.0, 1.0),
    "clipping": (0.0, math.inf),
    "weight_decay": (0.0, 1.0),
    "dropout": (0.0, 0.99),
    "validation": (0.0, 0.9),
    "every": (1, LARGEST_COUNT),
    "patience": (1, LARGEST_COUNT),
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Optimiser, loss, schedule and all numbers of a training; equal recipes on equal material give equal layers."""

    optimizer: Optimizer = "adam"
    loss: Loss = "mse"
    schedule: Schedule = "cosine"
    rate: float | None = None  # None: the default of the optimiser
    steps: int = 5000
    batch: int = 256
    seed: int = 0
    warm_up: float = 0.05  # share of the steps
    clipping: float = 1.0  # largest norm of a gradient; 0: no limit
    weight_decay: float = 0.0
    dropout: float = 0.0
    validation: float = 0.1  # share of given samples that is held out
    every: int = 250  # steps from one validation to the next
    patience: int | None = None  # validations without progress before training stops; None: never

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if get_origin(f.type) is Literal:
                require_choice(f.name, value, get_args(f.type))
                continue
            if f.name in ("rate", "patience") and value is None:
                continue
            low, high = _RANGES[f.name]
            whole = f.type in (int, int | None)
            number = is_number(value) and (not whole or float(value).is_integer())
            if not (number and low <= value <= high):
                kind = "a whole number" if whole else "a number"
                raise InputError(
                    f"{f.name}, {kind} from {low:g} to {high:g}", f"{value!r}", "choose a number in that range"
                )
            object.__setattr__(self, f.name, int(value) if whole else float(value))

    def rate_at(self, step: int, constructed: bool) -> float:
        """The learning rate of a step; steps are counted from 0."""
        default = DEFAULT_RATES[self.optimizer] * (CONSTRUCTED_RATE if constructed else 1.0)
        top = default if self.rate is None else self.rate
        rising = min(1.0, (step + 1) / max(self.warm_up * self.steps, 1.0))
        falling = (1 + math.cos(math.pi * step / self.steps)) / 2 if self.schedule == "cosine" else 1.0
        return top * rising * falling
