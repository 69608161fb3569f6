"""RepeatedLayer: ONE layer applied again and again to its own stream, until a halting unit says that it is done.

The data tokens are embedded once, the same block (Eq. (5)–(8) and the feed-forward network) is applied to them step after step,
and the read-out is applied once at the end. Special tokens are constants: every step sees the same ones. One coordinate of the
stream is the halting unit. The block writes it like any other coordinate, as "what is left to do", and a sequence stops after the
first step in which it is at most the threshold at all of its positions. Other sequences of the batch go on.

This is adaptive computation time (Graves 2016) in the form of the Universal Transformer (Dehghani et al. 2018), simplified:

    halting        there: a sigmoid at every position, summed until it reaches 1 − ε. Here: one coordinate and a threshold
    answer         there: the mean of all states, weighted by the halting probabilities. Here: the last state
    positions      there: each position halts on its own, and its state is copied on. Here: a sequence halts as a whole
    step number    there: a code of the step is added to the stream. Here: nothing; a block that counts keeps a coordinate for it
    training       there: a ponder cost is added to the loss. Here: nothing; steps are not a differentiable quantity
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..common.checks import is_number, require_whole
from ..common.errors import InputError
from .transformer import SingleLayerTransformer

MOST_STEPS = 2**20


@dataclass(frozen=True)
class Halted:
    """What a repeated layer found: answers, steps taken by each sequence, and whether its halting unit stopped it."""

    answers: Float[Tensor, "batch place out"]
    steps: Int[Tensor, " batch"]
    halted: Bool[Tensor, " batch"]


class RepeatedLayer(nn.Module):
    """x ↦ read(block(…block(embed(x)))), as often as the halting unit asks, and at most `most_steps` times."""

    def __init__(self, layer: SingleLayerTransformer, *, halting: int, threshold: float, most_steps: int) -> None:
        super().__init__()
        if not isinstance(layer, SingleLayerTransformer):
            raise InputError("a SingleLayerTransformer to repeat", type(layer).__name__, "pass the model itself")
        require_whole("halting, a coordinate of the stream", halting, 0, layer.config.d_model - 1)
        require_whole("most_steps", most_steps, 1, MOST_STEPS)
        if not is_number(threshold) or math.isnan(threshold):
            raise InputError("threshold, a number", f"{threshold!r}", "give the value at which the halting unit stops")
        if layer.config.readout == "output":
            raise InputError("a layer read at its data tokens", "readout='output'", "choose 'position' or 'mean'")
        self.layer, self.halting, self.threshold, self.most_steps = layer, halting, float(threshold), most_steps

    def forward(
        self, x: Float[Tensor, "batch data feature"], padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch place out"]:
        """The answers when each sequence has stopped."""
        return self.run(x, padding).answers

    def run(self, x: Float[Tensor, "batch data feature"], padding: Bool[Tensor, "batch data"] | None = None) -> Halted:
        """Step until each sequence has halted, or has taken `most_steps` steps; only those that go on are computed."""
        e = self.layer.embed(x)
        steps = torch.zeros(len(x), dtype=torch.int64, device=x.device)
        halted = torch.zeros(len(x), dtype=torch.bool, device=x.device)
        for _ in range(self.most_steps):
            (going,) = torch.where(~halted)
            if not len(going):
                break
            hidden = None if padding is None else padding[going]
            stepped = self.layer.advance(e[going], hidden)
            e = e.index_copy(0, going, stepped)
            steps[going] += 1
            halted[going] = self._done(stepped, hidden)
        return Halted(self.layer.read(e, padding), steps, halted)

    def after(
        self, x: Float[Tensor, "batch data feature"], steps: int, padding: Bool[Tensor, "batch data"] | None = None
    ) -> Float[Tensor, "batch place out"]:
        """The answers after exactly this many steps, whatever the halting unit says."""
        require_whole("steps", steps, 0, self.most_steps)
        e = self.layer.embed(x)
        for _ in range(steps):
            e = self.layer.advance(e, padding)
        return self.layer.read(e, padding)

    def _done(self, e: Float[Tensor, "batch data model"], padding: Tensor | None) -> Bool[Tensor, " batch"]:
        """Whether the halting unit is at most the threshold wherever there is a token; a NaN never is."""
        below = e[..., self.halting].double() <= self.threshold  # in float64: the threshold is not rounded
        return (below if padding is None else below | padding).all(dim=1)
