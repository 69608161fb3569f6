"""The steps of a training, from the first or from a checkpoint, to the weights that did best at a validation.

Batches, dropout and rates are functions of the seed and the step alone; validation uses held-out samples and keeps the
weights that did best there. `LayerTraining` is the training of a SingleLayerTransformer.
"""

import hashlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common.budget import Budget
from ..common.interrupts import DeferredInterrupt
from ..common.numbers import at_least
from ..common.progress import Progress
from ..model.history import History, Moment
from ..model.transformer import SingleLayerTransformer
from .checkpoint import TrainingState, load_state, save_state
from .material import Material
from .recipe import MOMENTUM, SUP_POWER, Recipe

VALIDATION_NUMBERS = 2**22  # held in memory at a time when a layer is validated


class Training(ABC):
    """A module on its device with its optimiser. A subclass defines the loss, the validation and the digest."""

    def __init__(self, model: nn.Module, recipe: Recipe, count: int, device: torch.device, constructed: bool) -> None:
        self.model, self.recipe, self.count, self.device, self.constructed = model, recipe, count, device, constructed
        self.optimizer = self._optimizer()
        self._epoch = -1

    @abstractmethod
    def loss(self, batch: Tensor, step: int) -> Tensor:
        """The loss on a batch, given by the numbers of its samples."""

    @abstractmethod
    def validated(self) -> tuple[float, float]:
        """(largest error, RMSE) on held-out samples; for labels (share of wrong answers, cross-entropy)."""

    @abstractmethod
    def error(self, validated: tuple[float, float]) -> float:
        """Which of the two errors the best weights are chosen by."""

    @abstractmethod
    def digest(self) -> str:
        """What identifies this training: a checkpoint with another digest is refused."""

    def train(self, checkpoint: Path | None, budget: Budget, progress: Progress | None) -> History:
        """All steps, from the state of the checkpoint if there is one; the model ends with the best weights."""
        started = time.perf_counter()
        digest = self.digest()
        at = self._first_state(checkpoint, digest)
        before, stopped, r = at.seconds, "all steps made", self.recipe
        with DeferredInterrupt() as interrupted:
            while at.step < r.steps and not self._stuck(at):
                at.losses.append(self.step(at.step))
                at.step += 1
                at.seconds = before + time.perf_counter() - started
                if at.step % r.every == 0 or at.step == r.steps:
                    self._validate(at)
                    self._save(at, digest, checkpoint)
                    if progress is not None:
                        now = at.moments[-1]
                        stage = f"loss {now.loss:.3g}, error {at_least(now.validated, 3)}"
                        interrupted.call(progress, stage, at.step / r.steps)
                if interrupted or budget.over():
                    stopped = "interrupted" if interrupted else "time is up"
                    break
        if self._stuck(at):
            stopped = f"no progress in {r.patience} validations"
        self._save(at, digest, checkpoint)
        if at.losses:  # steps since the last validation
            self._validate(at)
        self.model.load_state_dict(at.best_weights)
        return History(tuple(at.moments), at.best_step, stopped, at.seconds)

    def step(self, step: int) -> float:
        """One step of the optimiser on the batch of that step; its loss."""
        r = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = r.rate_at(step, self.constructed)
        self.model.train()
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(self._batch(step), step)
        loss.backward()
        if r.clipping:
            nn.utils.clip_grad_norm_(self.model.parameters(), r.clipping)
        self.optimizer.step()
        return float(loss.detach())

    def weights(self) -> dict[str, Tensor]:
        """A copy of all weights, on the CPU."""
        return {name: t.detach().cpu().clone() for name, t in self.model.state_dict().items()}

    def _optimizer(self) -> torch.optim.Optimizer:
        r, parameters = self.recipe, list(self.model.parameters())
        if r.optimizer == "adam":
            return torch.optim.AdamW(parameters, lr=1.0, weight_decay=r.weight_decay)
        momentum = MOMENTUM if r.optimizer == "momentum" else 0.0
        return torch.optim.SGD(parameters, lr=1.0, momentum=momentum, weight_decay=r.weight_decay)

    def _first_state(self, checkpoint: Path | None, digest: str) -> TrainingState:
        found = None if checkpoint is None else load_state(checkpoint, digest)
        if found is not None:
            self.model.load_state_dict(found.weights)
            self.optimizer.load_state_dict(found.optimizer)
            return found
        error = self.error(self.validated()) if self.constructed else math.inf
        return TrainingState(0, {}, {}, self.weights(), 0, error, 0, [], [], 0.0)

    def _save(self, at: TrainingState, digest: str, checkpoint: Path | None) -> None:
        if checkpoint is not None:
            at.weights, at.optimizer = self.weights(), self.optimizer.state_dict()
            save_state(at, digest, checkpoint)

    def _stuck(self, at: TrainingState) -> bool:
        """Whether patience has run out, now or before a checkpoint was written."""
        return self.recipe.patience is not None and at.idle >= self.recipe.patience

    def _batch(self, step: int) -> Tensor:
        """The samples of a step: every epoch goes through all of them, in an order drawn for that epoch."""
        size = min(self.recipe.batch, self.count)
        epoch, place = divmod(step, -(-self.count // size))
        if self._epoch != epoch:
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + epoch)
            self._epoch, self._order = epoch, torch.randperm(self.count, generator=generator).to(self.device)
        return self._order[place * size : (place + 1) * size]

    def _validate(self, at: TrainingState) -> None:
        found = self.validated()
        error = self.error(found)
        if error < at.best_error:
            at.best_error, at.best_step, at.best_weights, at.idle = error, at.step, self.weights(), 0
        else:
            at.idle += 1
        rate = self.recipe.rate_at(at.step - 1, self.constructed)
        at.moments.append(Moment(at.step, math.fsum(at.losses) / len(at.losses), *found, rate))
        at.losses.clear()


class LayerTraining(Training):
    """The training of one layer, in units where answers have mean 0 and spread 1."""

    model: SingleLayerTransformer

    def __init__(
        self,
        model: SingleLayerTransformer,
        places: tuple[int, ...],
        material: Material,
        recipe: Recipe,
        device: torch.device,
        constructed: bool,
    ) -> None:
        self.material, self.places, self.start = material, places, model.fingerprint()
        dtype = model.W_E.dtype
        middle, spread = material.answer_scale()
        if constructed:  # its read-out is in the units of the answers already
            middle, spread = torch.zeros_like(middle), torch.ones_like(spread)
        self.middle, self.spread = (t.to(device, dtype) for t in (middle, spread))
        tokens = (-1, model.config.tokens, model.config.features_in)  # a construction may see the vector as one token
        self.x, self.held_x = (t.to(device, dtype).reshape(tokens) for t in (material.x, material.held_x))
        y = material.y.to(device)
        self.y = y if material.labels else ((y - self.middle) / self.spread).to(dtype)
        self.sample_weights = None if material.weights is None else material.weights.to(device, dtype)
        super().__init__(model.to(device), recipe, len(self.x), device, constructed)

    def train(self, checkpoint: Path | None, budget: Budget, progress: Progress | None) -> History:
        """All steps, then the best weights, on the CPU and in the units of the answers.

        A construction that was not improved comes back unchanged.
        """
        history = super().train(checkpoint, budget, progress)
        with torch.no_grad():
            if not self.constructed and not self.material.labels:
                self.model.W_R.mul_(self.spread)
                self.model.b_R.mul_(self.spread).add_(self.middle[: self.model.config.features_out])
        self.model = self.model.cpu().eval()
        return history

    def digest(self) -> str:
        """Recipe, shape of the layer, all samples, the weights it starts from."""
        digest = hashlib.sha256(f"{asdict(self.recipe)} {asdict(self.model.config)} {self.start}".encode())
        m = self.material
        for t in (m.x, m.y, m.held_x, m.held_y, m.weights, m.held_weights):
            digest.update(b"none" if t is None else t.contiguous().numpy().tobytes())
        return digest.hexdigest()

    def loss(self, batch: Tensor, step: int) -> Tensor:
        with self._dropout_seed(step):
            given = self.model(self.x[batch])[:, list(self.places)].flatten(1)
        if self.material.labels:
            errors = nn.functional.cross_entropy(given, self.y[batch], reduction="none")
        else:
            errors = (given - self.y[batch]).square().mean(dim=1)
            if self.recipe.loss == "sup":
                return ((given - self.y[batch]).abs().amax(dim=1) + 1e-30).pow(SUP_POWER).mean().pow(1 / SUP_POWER)
        if self.sample_weights is None:
            return errors.mean()
        own = self.sample_weights[batch]
        return (own * errors).sum() / own.sum().clamp_min(torch.finfo(own.dtype).tiny)

    @contextmanager
    def _dropout_seed(self, step: int) -> Iterator[None]:
        """Dropout draws from torch's global generator: it is seeded by the step and restored afterwards."""
        if not self.recipe.dropout:
            yield
            return
        with torch.random.fork_rng(devices=[self.x.device] if self.x.is_cuda else []):
            seed = self.recipe.seed * 1_000_003 + step
            if self.x.is_cuda:
                torch.manual_seed(seed)
            else:  # the same, without looking for a device at every step
                torch.default_generator.manual_seed(seed)
            yield

    def validated(self) -> tuple[float, float]:
        """As for every training, in the units of the answers."""
        self.model.eval()
        c = self.model.config
        rows = max(1, VALIDATION_NUMBERS // (c.heads * c.all_tokens**2 + c.all_tokens * c.ffn_width))
        with torch.no_grad():
            out = torch.cat([self.model(part)[:, list(self.places)].flatten(1) for part in self.held_x.split(rows)])
            if self.material.labels:
                y = self.material.held_y.to(out.device)
                wrong = (out.argmax(dim=1) != y).double()
                entropy = nn.functional.cross_entropy(out.double(), y, reduction="none")
                return self._mean(wrong), self._mean(entropy)
            errors = (out * self.spread + self.middle).double().cpu() - self.material.held_y
        return float(errors.abs().max()), math.sqrt(self._mean(errors.square().mean(dim=1)))

    def _mean(self, held: Tensor) -> float:
        """The weighted mean over held-out samples."""
        weights = self.material.held_weights
        return float(held.mean() if weights is None else (held.cpu() * weights).sum() / weights.sum())

    def error(self, validated: tuple[float, float]) -> float:
        """The largest error for a function, else the RMSE or the cross-entropy."""
        largest, mean = validated
        return largest if self.material.target is not None or self.constructed else mean
