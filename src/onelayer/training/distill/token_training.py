"""The lesson: a student of token sequences is trained on what its teacher answers.

The loss is the mean square of the differences, as a share of the teacher's variance; for logits, and where the teacher has a head
on its hidden states, the Kullback–Leibler divergence at a temperature is added (or stands alone, for logits). The best step is
chosen by sequences that are neither learned from nor held out. Every random choice is a function of the seed and the step:
an interrupted lesson goes on from its checkpoint.
"""

import hashlib
import math
import time
from collections.abc import Callable
from numbers import Real
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...common.errors import InputError
from ...common.interrupts import Interruption
from ...common.machine import device_of
from ...model.history import History, Moment
from ...model.token_encoder import Student
from ..checkpoint import Standing, load_standing, save_standing
from ..recipe import Recipe
from .determinism import require_repeated
from .fidelity import Comparing, Fidelity
from .result import Distillation, parameters_of, ratio_of_times
from .sequences import split, tokens_of, unseen
from .teachers import Teacher, teacher_of

Progress = Callable[[str, float], None]
RATE, BATCH, STEPS, EVERY = 1e-3, 64, 2000, 200
CHOOSING = 256  # sequences per validation, at most: set apart from those learned from, to choose the best step by
TIMED = 64


def taught(teacher: Any, inputs: Any, progress: Progress | None, wishes: dict[str, Any]) -> Distillation:
    """A student of one layer for a teacher of token sequences, trained and judged at sequences that were held out."""
    own: dict[str, Any] = {"heads": 4, "width": 512, "d_model": 128, "read": "hidden", "temperature": 1.0, "mask": None}
    own |= {"held_out": 0.1, "checkpoint": None, "device": "cpu", "seconds": None, "student": None, "judge": None}
    recipe_names = set(Recipe.__dataclass_fields__) - {"loss", "optimizer", "validation", "dropout"}
    if unknown := sorted(set(wishes) - set(own) - recipe_names):
        known = ", ".join(sorted(set(own) | recipe_names))
        raise InputError(f"wishes among {known}", ", ".join(unknown), "correct the name")
    asked = own | {k: v for k, v in wishes.items() if k in own}
    plan: dict[str, Any] = {"rate": RATE, "batch": BATCH, "steps": STEPS, "every": EVERY}
    recipe = Recipe(**(plan | {k: v for k, v in wishes.items() if k in recipe_names}))
    _require(asked)
    device = device_of(asked["device"])
    found = teacher_of(teacher, asked["read"]).to(device)
    tokens, there = _tokens(found, inputs, asked["mask"])
    if asked["judge"] is None:
        fitted, held = split(len(tokens), asked["held_out"], recipe.seed)
    else:
        tokens, there, fitted, held = _beside(tokens, there, *asked["judge"])
    plain = tokens.masked_fill(~there, -1).numpy()
    held = held[torch.from_numpy(unseen(plain[held], plain[fitted]))]
    largest = tokens.max(dim=1).values.argmax()  # the sequence that a teacher is most likely to have no embedding for
    x, m = tokens[largest, None].to(device), there[largest, None].to(device)
    require_repeated(lambda: found.answers(x, m).cpu())
    student = asked["student"]
    if student is None:
        student = _student(found.answers(x, m), tokens, asked, recipe.seed)
    lesson = Lesson(found, student.to(device), (tokens, there), (fitted, held), recipe, asked, device)
    checkpoint = None if asked["checkpoint"] is None else Path(asked["checkpoint"])
    history = lesson.give(checkpoint, asked["seconds"], progress)
    fidelity = lesson.judged(held)
    few = held[:TIMED]
    x, m = tokens[few].to(device), there[few].to(device)
    speed = ratio_of_times(lambda: found.answers(x, m), lambda: student(x, m), device)
    parameters = (parameters_of(found.module), parameters_of(student))
    how = f"one layer, trained on {len(fitted):,} sequences ({asked['read']}): observed, not proved"
    return Distillation(student.cpu().eval(), None, fidelity, parameters, speed, how, history)


class Lesson:
    """Teacher, student and sequences, on one device."""

    def __init__(
        self,
        teacher: Teacher,
        student: nn.Module,
        sequences: tuple[Tensor, Tensor],
        parts: tuple[Tensor, Tensor],
        recipe: Recipe,
        asked: dict[str, Any],
        device: torch.device,
    ) -> None:
        self.teacher, self.student, self.recipe, self.asked, self.device = teacher, student, recipe, asked, device
        self.tokens, self.there = (t.to(device) for t in sequences)
        self.fitted, self.held = parts
        apart = min(CHOOSING, len(self.fitted) // 10) if recipe.every < recipe.steps else 0  # one validation: no choice
        self.choosing = self.fitted[:apart] if apart else self.held[:CHOOSING]
        self.fitted = self.fitted[apart:]
        self.optimizer = torch.optim.AdamW(student.parameters(), lr=1.0, weight_decay=recipe.weight_decay)
        self.variance = self._variance()

    def give(self, checkpoint: Path | None, seconds: float | None, progress: Progress | None) -> History:
        """All steps from where the checkpoint stands; the best weights are the student's in the end."""
        r, started = self.recipe, time.perf_counter()
        made_for = self._purpose()
        at = self._standing(checkpoint, made_for)
        before, stopped = at.seconds, "all steps made"
        with Interruption() as interrupted:
            while at.step < r.steps:
                at.losses.append(self.step(at.step))
                at.step += 1
                at.seconds = before + time.perf_counter() - started
                if at.step % r.every == 0 or at.step == r.steps:
                    self._validate(at)
                    if checkpoint is not None:
                        self._save(at, made_for, checkpoint)
                    if progress is not None:
                        now = at.moments[-1]
                        interrupted.ask(progress, f"loss {now.loss:.3g}, RMSE {now.rmse:.3g}", at.step / r.steps)
                if interrupted or (seconds is not None and at.seconds - before >= seconds):
                    stopped = "interrupted" if interrupted else "time is up"
                    if checkpoint is not None:
                        self._save(at, made_for, checkpoint)
                    break
        if at.losses:
            self._validate(at)
        self.student.load_state_dict(at.best_weights)
        return History(tuple(at.moments), at.best, stopped, at.seconds)

    def step(self, step: int) -> float:
        """One step of AdamW on the batch of that step; its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate_at(step, False)
        self.student.train()
        rows = self._batch(step)
        tokens, there = self._cut(rows)
        with torch.no_grad():
            theirs = self.teacher.answers(tokens, there)
        self.optimizer.zero_grad(set_to_none=True)
        loss = self._loss(self.student(tokens, there), theirs, there)
        loss.backward()
        if self.recipe.clipping:
            nn.utils.clip_grad_norm_(self.student.parameters(), self.recipe.clipping)
        self.optimizer.step()
        return float(loss.detach())

    def judged(self, rows: Tensor) -> Fidelity:
        """Fidelity at the given sequences, token by token (or once a sequence, if pooled)."""
        self.student.eval()
        seen, head = Comparing(), self.teacher.head
        with torch.no_grad():
            for part in rows.split(self.recipe.batch):
                tokens, there = self._cut(part)
                both = (self.student(tokens, there), self.teacher.answers(tokens, there))
                mine, theirs = (self._kept(answers, there) for answers in both)
                seen.add(mine, theirs, None if head is None else (head(mine), head(theirs)))
        return seen.result()

    def _loss(self, mine: Tensor, theirs: Tensor, there: Tensor) -> Tensor:
        mine, theirs = self._kept(mine, there), self._kept(theirs, there)
        squares = (mine - theirs).square().mean() / self.variance
        if self.asked["read"] == "logits":
            return self._divergence(mine, theirs)
        head = self.teacher.head
        return squares if head is None else squares + self._divergence(head(mine), head(theirs))

    def _divergence(self, mine: Tensor, theirs: Tensor) -> Tensor:
        T = self.asked["temperature"]
        own, other = (torch.log_softmax(v / T, dim=-1) for v in (mine, theirs))
        return T * T * nn.functional.kl_div(own, other, reduction="batchmean", log_target=True)

    def _kept(self, y: Tensor, there: Tensor) -> Tensor:
        """Answers [answer, number] of the tokens that are there."""
        return y[there] if y.ndim == 3 else y.reshape(len(y), -1)

    def _cut(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The sequences of a batch, without columns that are padding for all of them."""
        rows = rows.to(self.device)
        tokens, there = self.tokens[rows], self.there[rows]
        used = int(there.any(dim=0).nonzero().max()) + 1
        return tokens[:, :used], there[:, :used]

    def _batch(self, step: int) -> Tensor:
        size = min(self.recipe.batch, len(self.fitted))
        epoch, place = divmod(step, -(-len(self.fitted) // size))
        generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + epoch)
        order = torch.randperm(len(self.fitted), generator=generator)
        return self.fitted[order[place * size : (place + 1) * size]]

    def _variance(self) -> float:
        """The teacher's variance at some of the sequences that are learned from."""
        tokens, there = self._cut(self.fitted[:CHOOSING])
        with torch.no_grad():
            theirs = self._kept(self.teacher.answers(tokens, there), there)
        variance = float(theirs.var(dim=0, correction=0).mean())
        if not math.isfinite(variance):
            raise InputError("a teacher with finite answers", "NaN or infinity", "correct the teacher")
        return max(variance, 1e-12)

    def _validate(self, at: Standing) -> None:
        found = self.judged(self.choosing)
        if found.rmse < at.least:
            at.least, at.best, at.best_weights = found.rmse, at.step, self._weights()
        rate = self.recipe.rate_at(at.step - 1, False)
        at.moments.append(Moment(at.step, math.fsum(at.losses) / len(at.losses), found.sup, found.rmse, rate))
        at.losses.clear()

    def _save(self, at: Standing, made_for: str, checkpoint: Path) -> None:
        at.weights, at.optimizer = self._weights(), self.optimizer.state_dict()
        save_standing(at, made_for, checkpoint)

    def _standing(self, checkpoint: Path | None, made_for: str) -> Standing:
        found = None if checkpoint is None else load_standing(checkpoint, made_for)
        if found is None:
            return Standing(0, {}, {}, self._weights(), 0, math.inf, 0, [], [], 0.0)
        self.student.load_state_dict(found.weights)
        self.optimizer.load_state_dict(found.optimizer)
        return found

    def _weights(self) -> dict[str, Tensor]:
        return {name: t.detach().cpu().clone() for name, t in self.student.state_dict().items()}

    def _purpose(self) -> str:
        """Recipe, teacher, student and sequences, as a digest: a checkpoint of anything else is refused."""
        digest = hashlib.sha256(f"{self.recipe} {self.asked['read']} {self.asked['temperature']}".encode())
        known = self.teacher.module.state_dict().values()
        for t in (self.tokens, self.there, self.fitted, self.held, *self._weights().values(), *known):
            if isinstance(t, Tensor):  # a module may keep other things beside its numbers
                digest.update(t.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
        return digest.hexdigest()


def _tokens(teacher: Teacher, inputs: Any, mask: Any) -> tuple[Tensor, Tensor]:
    texts = not isinstance(inputs, Tensor) and len(inputs) and isinstance(inputs[0], str)
    if not texts:
        return tokens_of(inputs, mask)
    if teacher.tokenise is None:
        raise InputError("a teacher that reads texts", "no tokeniser beside it", "pass token numbers")
    return tokens_of(*(t.numpy() for t in teacher.tokenise(inputs)))


def _beside(tokens: Tensor, there: Tensor, judge: Any, mask: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Sequences to learn from and, behind them, those that only judge; and which are which."""
    others, other_mask = tokens_of(judge, mask)
    width, n = max(tokens.shape[1], others.shape[1]), len(tokens)

    def wide(t: Tensor) -> Tensor:
        return nn.functional.pad(t, (0, width - t.shape[1]))

    both = torch.cat([wide(tokens), wide(others)]), torch.cat([wide(there), wide(other_mask)])
    return *both, torch.arange(n), torch.arange(n, n + len(others))


def _student(answers: Tensor, tokens: Tensor, asked: dict[str, Any], seed: int) -> Student:
    """A fresh student as wide as asked, with as many outputs as the teacher has answers."""
    heads, width, d_model = (asked[name] for name in ("heads", "width", "d_model"))
    for name in ("heads", "width", "d_model"):
        if isinstance(asked[name], bool) or not isinstance(asked[name], int) or asked[name] < 1:
            raise InputError(f"{name}, a whole number above 0", f"{asked[name]!r}", "change it")
    if d_model % heads:
        raise InputError("d_model, a multiple of heads", f"d_model={d_model}, heads={heads}", "make them agree")
    once = answers.ndim == 2  # one answer for a sequence
    return Student(int(tokens.max()) + 1, tokens.shape[1], answers.shape[-1], heads, width, d_model, once, seed)


def _require(asked: dict[str, Any]) -> None:
    """Refuse wishes that no lesson can grant."""
    for name in ("seconds", "temperature"):
        value = asked[name]
        real = isinstance(value, Real) and not isinstance(value, bool) and 0 < float(value) < math.inf
        if not real and (name, value) != ("seconds", None):
            raise InputError(f"{name}, finite and above 0", f"{value!r}", "change it")
    file, judge, student = asked["checkpoint"], asked["judge"], asked["student"]
    if file is not None and (not isinstance(file, str | Path) or not Path(file).name):
        raise InputError("checkpoint, the name of a file", f"{file!r}", "name a file")
    if judge is not None and (not isinstance(judge, tuple | list) or len(judge) != 2):
        raise InputError("judge, tokens and a mask (or None)", type(judge).__name__, "pass (tokens, mask)")
    if student is not None and not isinstance(student, nn.Module):
        raise InputError("student, a module", type(student).__name__, "pass an nn.Module, or leave it out")
