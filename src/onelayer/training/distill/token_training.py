"""A student of token sequences, trained on the answers of its teacher.

The loss is the mean square of the differences, as a share of the teacher's variance; where the teacher has a head on its hidden
states, the Kullback–Leibler divergence of the head's answers at a temperature is added; for logits that divergence is the loss.
The best step is chosen by sequences that are neither learned from nor held out. Every random choice is a function of the seed
and the step: an interrupted training resumes from its checkpoint.
"""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...common.budget import Budget
from ...common.checks import is_number, require_whole
from ...common.errors import InputError
from ...common.machine import device_of
from ...common.progress import Progress
from ...model.token_encoder import TokenEncoder
from ...target.determinism import require_same_twice
from ..checkpoint import require_limits
from ..recipe import LARGEST_COUNT, Recipe
from ..steps import Training
from . import STEP_OPTIONS
from .fidelity import Fidelity, FidelityMeter
from .result import Distillation, parameters_of, ratio_of_times
from .sequences import split, tokens_of, unseen
from .teachers import Teacher, teacher_of

RECIPE: dict[str, Any] = {"rate": 1e-3, "batch": 64, "steps": 2000, "every": 200}  # where the defaults differ
VALIDATED = 256  # sequences per validation, at most: set apart from those learned from, to choose the best step by
TIMED = 64  # sequences that teacher and student are timed on


@dataclass(frozen=True, eq=False)
class TokenOptions:
    """The options of a distillation on tokens that do not concern its steps, checked."""

    heads: int = 4
    width: int = 512
    d_model: int = 128
    read: str = "hidden"
    temperature: float = 1.0
    mask: Any = None
    held_out: float = 0.1
    judge: Any = None
    student: nn.Module | None = None
    checkpoint: str | Path | None = None
    device: str = "cpu"
    seconds: float | None = None

    def __post_init__(self) -> None:
        require_limits(self.seconds, self.checkpoint)
        if not (is_number(self.temperature) and 0 < self.temperature < math.inf):
            raise InputError("temperature, finite and above 0", f"{self.temperature!r}", "choose for instance 2")
        judge, student = self.judge, self.student
        if judge is not None and (not isinstance(judge, tuple | list) or len(judge) != 2):
            raise InputError("judge, tokens and a mask (or None)", type(judge).__name__, "pass (tokens, mask)")
        if student is not None and not isinstance(student, nn.Module):
            raise InputError("student, a module", type(student).__name__, "pass an nn.Module, or leave it out")
        for name in ("heads", "width", "d_model"):
            require_whole(name, getattr(self, name), 1, LARGEST_COUNT)
        if self.d_model % self.heads:
            found = f"d_model={self.d_model}, heads={self.heads}"
            raise InputError("d_model, a multiple of heads", found, "make them agree")


def train_on_tokens(teacher: Any, inputs: Any, progress: Progress | None, given: dict[str, Any]) -> Distillation:
    """A student of one layer for a teacher of token sequences, trained and judged at sequences that were held out."""
    recipe = Recipe(**(RECIPE | {name: value for name, value in given.items() if name in STEP_OPTIONS}))
    options = TokenOptions(**{name: value for name, value in given.items() if name not in STEP_OPTIONS})
    budget = Budget(math.inf if options.seconds is None else options.seconds)
    device = device_of(options.device)
    found = teacher_of(teacher, options.read).to(device)
    tokens, mask = _tokens(found, inputs, options.mask)
    if options.judge is None:
        fitted, held = split(len(tokens), options.held_out, recipe.seed)
    else:
        tokens, mask, fitted, held = _joined(tokens, mask, *options.judge)
    plain = tokens.masked_fill(~mask, -1).numpy()
    held = held[torch.from_numpy(unseen(plain[held.numpy()], plain[fitted.numpy()]))]
    largest = tokens.max(dim=1).values.argmax()  # the sequence that a teacher is most likely to have no embedding for
    x, m = tokens[largest, None].to(device), mask[largest, None].to(device)
    require_same_twice(lambda: found.answers(x, m).cpu())
    student = options.student
    if student is None:
        answers = found.answers(x, m)
        student = TokenEncoder(
            int(tokens.max()) + 1, tokens.shape[1], answers.shape[-1], options.heads, options.width, options.d_model,
            pooled=answers.ndim == 2, seed=recipe.seed,
        )  # fmt: skip
    training = TokenTraining(found, student.to(device), (tokens, mask), (fitted, held), recipe, options, device)
    checkpoint = None if options.checkpoint is None else Path(options.checkpoint)
    history = training.train(checkpoint, budget, progress)
    fidelity = training.fidelity(held)
    x, m = (t[held[:TIMED]].to(device) for t in (tokens, mask))
    speed = ratio_of_times(lambda: found.answers(x, m), lambda: student(x, m), device)
    parameters = (parameters_of(found.module), parameters_of(student))
    how = f"one layer, trained on {len(fitted):,} sequences ({options.read}): observed, not proved"
    return Distillation(student.cpu().eval(), None, fidelity, parameters, speed, how, history)


class TokenTraining(Training):
    """Teacher, student and sequences, on one device."""

    def __init__(
        self,
        teacher: Teacher,
        student: nn.Module,
        sequences: tuple[Tensor, Tensor],
        parts: tuple[Tensor, Tensor],
        recipe: Recipe,
        options: TokenOptions,
        device: torch.device,
    ) -> None:
        self.teacher, self.options = teacher, options
        self.tokens, self.mask = (t.to(device) for t in sequences)
        fitted, self.held = (t.to(device) for t in parts)
        apart = min(VALIDATED, len(fitted) // 10) if recipe.every < recipe.steps else 0  # one validation: no choice
        self.choosing = fitted[:apart] if apart else self.held[:VALIDATED]
        self.fitted = fitted[apart:]
        super().__init__(student, recipe, len(self.fitted), device, constructed=False)
        self.variance = self._variance()

    def loss(self, batch: Tensor, step: int) -> Tensor:
        tokens, mask = self._cut(self.fitted[batch])
        with torch.no_grad():
            theirs = _flat(self.teacher.answers(tokens, mask), mask)
        mine = _flat(self.model(tokens, mask), mask)
        if self.options.read == "logits":
            return self._divergence(mine, theirs)
        squares, head = (mine - theirs).square().mean() / self.variance, self.teacher.head
        return squares if head is None else squares + self._divergence(head(mine), head(theirs))

    def validated(self) -> tuple[float, float]:
        found = self.fidelity(self.choosing)
        return found.sup, found.rmse

    def error(self, validated: tuple[float, float]) -> float:
        return validated[1]

    def fidelity(self, rows: Tensor) -> Fidelity:
        """Fidelity at the given sequences, token by token (or once a sequence, if pooled)."""
        self.model.eval()
        meter, head = FidelityMeter(), self.teacher.head
        with torch.no_grad():
            for part in rows.split(self.recipe.batch):
                tokens, mask = self._cut(part)
                both = (self.model(tokens, mask), self.teacher.answers(tokens, mask))
                mine, theirs = (_flat(answers, mask) for answers in both)
                meter.add(mine, theirs, None if head is None else (head(mine), head(theirs)))
        return meter.result()

    def digest(self) -> str:
        """Recipe, teacher, student and sequences."""
        digest = hashlib.sha256(f"{self.recipe} {self.options.read} {self.options.temperature}".encode())
        numbers = self.teacher.module.state_dict().values()
        for t in (self.tokens, self.mask, self.fitted, self.held, *self.weights().values(), *numbers):
            if isinstance(t, Tensor):  # a module's state may hold other things, too
                digest.update(t.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()

    def _divergence(self, mine: Tensor, theirs: Tensor) -> Tensor:
        T = self.options.temperature
        own, other = (torch.log_softmax(v / T, dim=-1) for v in (mine, theirs))
        return T * T * nn.functional.kl_div(own, other, reduction="batchmean", log_target=True)

    def _cut(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The sequences of a batch, without columns that are padding for all of them."""
        rows = rows.to(self.device)
        tokens, mask = self.tokens[rows], self.mask[rows]
        used = int(mask.any(dim=0).nonzero().max()) + 1
        return tokens[:, :used], mask[:, :used]

    def _variance(self) -> float:
        """The teacher's variance at some of the sequences that are learned from."""
        tokens, mask = self._cut(self.fitted[:VALIDATED])
        with torch.no_grad():
            theirs = _flat(self.teacher.answers(tokens, mask), mask)
        variance = float(theirs.var(dim=0, correction=0).mean())
        if not math.isfinite(variance):
            raise InputError("a teacher with finite answers", "NaN or infinity", "correct the teacher")
        return max(variance, 1e-12)


def _flat(y: Tensor, mask: Tensor) -> Tensor:
    """Answers [answer, number], without those of padding."""
    return y[mask] if y.ndim == 3 else y.reshape(len(y), -1)


def _tokens(teacher: Teacher, inputs: Any, mask: Any) -> tuple[Tensor, Tensor]:
    texts = not isinstance(inputs, Tensor) and len(inputs) and isinstance(inputs[0], str)
    if not texts:
        return tokens_of(inputs, mask)
    if teacher.tokenise is None:
        raise InputError("a teacher that reads texts", "no tokeniser", "pass token numbers")
    return tokens_of(*(t.numpy() for t in teacher.tokenise(inputs)))


def _joined(tokens: Tensor, mask: Tensor, judge: Any, judge_mask: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Tokens and mask of the sequences to learn from, followed by those that judge; and which are which."""
    others, other_mask = tokens_of(judge, judge_mask)
    width, n = max(tokens.shape[1], others.shape[1]), len(tokens)

    def wide(t: Tensor) -> Tensor:
        return nn.functional.pad(t, (0, width - t.shape[1]))

    both = torch.cat([wide(tokens), wide(others)]), torch.cat([wide(mask), wide(other_mask)])
    return *both, torch.arange(n), torch.arange(n, n + len(others))
