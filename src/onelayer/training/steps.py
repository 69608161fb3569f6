"""Run: the steps of one training, from the first or from where a checkpoint stands, to the best weights.

Batches, dropout and rates are functions of the seed and the step alone; validation looks at held-out samples and keeps the
weights that did best there.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..common.interrupts import Interruption
from ..model.history import History, Moment
from ..model.transformer import SingleLayerTransformer
from .checkpoint import Standing, load_standing, purpose, save_standing
from .material import Material
from .recipe import MOMENTUM, POWER, Recipe

Progress = Callable[[str, float], None]
AT_ONCE = 2**22  # numbers held at a time when a layer is validated


class Run:
    """One training: the layer in units where answers have mean 0 and spread 1, the material on its device."""

    def __init__(
        self,
        model: SingleLayerTransformer,
        places: tuple[int, ...],
        material: Material,
        recipe: Recipe,
        device: torch.device,
        constructed: bool,
    ) -> None:
        self.material, self.recipe, self.constructed, self.places = material, recipe, constructed, places
        self.start = model.fingerprint()
        dtype = model.W_E.dtype
        middle, spread = material.answers()
        if constructed:  # its read-out speaks in the units of the answers already
            middle, spread = torch.zeros_like(middle), torch.ones_like(spread)
        self.middle, self.spread = (t.to(device, dtype) for t in (middle, spread))
        self.model = model.to(device)
        tokens = (-1, model.config.tokens, model.config.features_in)  # a construction may see the vector as one token
        self.x, self.held_x = (t.to(device, dtype).reshape(tokens) for t in (material.x, material.held_x))
        self.y = (
            material.y.to(device)
            if material.labels
            else ((material.y.to(device) - self.middle) / self.spread).to(dtype)
        )
        self.weights = None if material.weights is None else material.weights.to(device, dtype)
        self.optimizer = self._optimizer()

    def _optimizer(self) -> torch.optim.Optimizer:
        r, parameters = self.recipe, list(self.model.parameters())
        if r.optimizer == "adam":
            return torch.optim.AdamW(parameters, lr=1.0, weight_decay=r.weight_decay)
        momentum = MOMENTUM if r.optimizer == "momentum" else 0.0
        return torch.optim.SGD(parameters, lr=1.0, momentum=momentum, weight_decay=r.weight_decay)

    def train(self, checkpoint: Path | None, seconds: float | None, progress: Progress | None) -> History:
        """All steps from where the checkpoint stands; the best weights are the model's in the end."""
        started = time.perf_counter()
        made_for = purpose(self.recipe, self.model.config, self.material, self.start)
        at = self._standing(checkpoint, made_for)
        before, stopped = at.seconds, "all steps made"
        r = self.recipe
        with Interruption() as interrupted:
            while at.step < r.steps and not self._stuck(at):
                at.losses.append(self.step(at.step))
                at.step += 1
                at.seconds = before + time.perf_counter() - started
                if at.step % r.every == 0 or at.step == r.steps:
                    self._validate(at)
                    if checkpoint is not None:
                        save_standing(self._filled(at), made_for, checkpoint)
                    if progress is not None:
                        now = at.moments[-1]
                        interrupted.ask(progress, f"loss {now.loss:.3g}, error {now.validated:.3g}", at.step / r.steps)
                if interrupted or (seconds is not None and at.seconds - before >= seconds):
                    stopped = "interrupted" if interrupted else "time is up"
                    break
        if self._stuck(at):
            stopped = f"no progress in {r.patience} validations"
        if checkpoint is not None:
            save_standing(self._filled(at), made_for, checkpoint)
        if at.losses:  # steps that no validation has seen
            self._validate(at, counted=False)
        self.model.load_state_dict(at.best_weights)
        self._settle()
        return History(tuple(at.moments), at.best, stopped, at.seconds)

    def _stuck(self, at: Standing) -> bool:
        """Whether patience has run out, now or before a checkpoint was written."""
        return self.recipe.patience is not None and at.idle >= self.recipe.patience

    def _standing(self, checkpoint: Path | None, made_for: str) -> Standing:
        found = None if checkpoint is None else load_standing(checkpoint, made_for)
        if found is not None:
            self.model.load_state_dict(found.weights)
            self.optimizer.load_state_dict(found.optimizer)
            return found
        least = self._judged(self.validated()) if self.constructed else math.inf
        return Standing(0, {}, {}, self._weights(), 0, least, 0, [], [], 0.0)

    def _filled(self, at: Standing) -> Standing:
        """The standing with the weights and the optimiser's numbers of now."""
        return replace(at, weights=self._weights(), optimizer=self.optimizer.state_dict())

    def _weights(self) -> dict[str, Tensor]:
        return {name: t.detach().clone() for name, t in self.model.state_dict().items()}

    def step(self, step: int) -> float:
        """One step of the optimiser on the batch of that step; its loss."""
        r = self.recipe
        for group in self.optimizer.param_groups:
            group["lr"] = r.rate_at(step, self.constructed)
        self.model.train()
        batch = self._batch(step)
        self.optimizer.zero_grad(set_to_none=True)
        with self._random(step):
            loss = self._loss(self.model(self.x[batch]), batch)
        loss.backward()
        if r.clipping:
            nn.utils.clip_grad_norm_(self.model.parameters(), r.clipping)
        self.optimizer.step()
        return float(loss.detach())

    @contextmanager
    def _random(self, step: int) -> Iterator[None]:
        """Dropout draws from torch's global generator: borrowed, seeded by the step, and given back as it was."""
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

    def _batch(self, step: int) -> Tensor:
        """Samples of a step: every epoch goes through all of them in an order of its own."""
        N, size = len(self.x), min(self.recipe.batch, len(self.x))
        per_epoch = -(-N // size)
        epoch, place = divmod(step, per_epoch)
        if getattr(self, "_epoch", None) != epoch:
            generator = torch.Generator().manual_seed(self.recipe.seed * 1_000_003 + epoch)
            self._epoch, self._order = epoch, torch.randperm(N, generator=generator).to(self.x.device)
        return self._order[place * size : (place + 1) * size]

    def _loss(self, out: Tensor, batch: Tensor) -> Tensor:
        given = out[:, list(self.places)].flatten(1)
        if self.material.labels:
            errors = nn.functional.cross_entropy(given, self.y[batch], reduction="none")
        else:
            errors = (given - self.y[batch]).square().mean(dim=1)
            if self.recipe.loss == "sup":
                return ((given - self.y[batch]).abs().amax(dim=1) + 1e-30).pow(POWER).mean().pow(1 / POWER)
        if self.weights is None:
            return errors.mean()
        own = self.weights[batch]
        return (own * errors).sum() / own.sum().clamp_min(torch.finfo(own.dtype).tiny)

    def validated(self) -> tuple[float, float]:
        """(largest error, RMSE) on held-out samples, in the units of the answers; for labels (share wrong, cross-entropy)."""
        self.model.eval()
        c = self.model.config
        rows = max(1, AT_ONCE // (c.heads * c.all_tokens**2 + c.all_tokens * c.ffn_width))
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
        """The mean over held-out samples, each as much as it counts."""
        weights = self.material.held_weights
        return float(held.mean() if weights is None else (held.cpu() * weights).sum() / weights.sum())

    def _judged(self, validated: tuple[float, float]) -> float:
        """What the best weights have least of: the largest error of a function, else the RMSE or cross-entropy."""
        largest, mean = validated
        return largest if self.material.target is not None or self.constructed else mean

    def _validate(self, at: Standing, counted: bool = True) -> None:
        found = self.validated()
        judged = self._judged(found)
        if judged < at.least:
            at.least, at.best, at.best_weights, at.idle = judged, at.step, self._weights(), 0
        elif counted:
            at.idle += 1
        if counted:
            rate = self.recipe.rate_at(at.step - 1, self.constructed)
            at.moments.append(Moment(at.step, math.fsum(at.losses) / len(at.losses), *found, rate))
            at.losses.clear()

    def _settle(self) -> None:
        """The read-out in the units of the answers, on the CPU; a construction that was not improved is returned as it was."""
        with torch.no_grad():
            if not self.constructed and not self.material.labels:
                self.model.W_R.mul_(self.spread)
                self.model.b_R.mul_(self.spread).add_(self.middle[: self.model.config.features_out])
        self.model = self.model.cpu().eval()
