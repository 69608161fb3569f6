"""Does descent find a bigram? One causal layer trained on sequences of a binary Markov chain, after Makkuva et al. (2024).

The chain switches from 0 to 1 with probability p and from 1 to 0 with q. A layer that only learns how often each symbol occurs
has the entropy H(π) of the stationary distribution π = (q, p)/(p + q) as its loss; one that learns the transitions has the
entropy rate. Makkuva et al. (arXiv 2402.04161) prove for a tied layer, whose read-out is its embedding transposed, that the
first is a local minimum where p + q > 1 and not where p + q < 1; without tying it is a saddle point. As in their layer the
symbol 0 is embedded as the vector 0 and the symbol 1 as a vector e; tied, the logit of 1 against 0 is ⟨e, ·⟩ plus a bias.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import functional_call

from onelayer.model.config import LayerConfig
from onelayer.model.transformer import SingleLayerTransformer

LENGTH, BATCH, STEPS, RATE, SPREAD = 16, 64, 1500, 1e-3, 0.02
HELD_OUT = 4096  # sequences that judge
CONFIG = LayerConfig(
    tokens=LENGTH, features_in=2, features_out=2, d_model=8, heads=1, d_k=8, d_v=8, ffn_width=32,
    code="learned", any_length=True, causal=True,
)  # fmt: skip


@dataclass(frozen=True)
class Chain:
    """Probabilities of switching."""

    p: float
    q: float

    @property
    def stationary(self) -> float:
        """How often 1 occurs."""
        return self.p / (self.p + self.q)

    @property
    def unigram_entropy(self) -> float:
        return _entropy(self.stationary)

    @property
    def entropy_rate(self) -> float:
        return (1 - self.stationary) * _entropy(self.p) + self.stationary * _entropy(self.q)

    def sequences(self, count: int, length: int, rng: np.random.Generator) -> Int[np.ndarray, "count length"]:
        """Stationary sequences."""
        found = np.empty((count, length), dtype=np.int64)
        found[:, 0] = rng.random(count) < self.stationary
        for i in range(1, length):
            switch = np.where(found[:, i - 1] == 0, self.p, self.q)
            found[:, i] = found[:, i - 1] ^ (rng.random(count) < switch)
        return found


@dataclass(frozen=True)
class ChainOutcome:
    """The loss of a trained layer on sequences that it has not seen, in nats per symbol."""

    chain: Chain
    tied: bool
    seed: int
    loss: float

    @property
    def share(self) -> float:
        """How far it got from the unigram (0) to the bigram (1)."""
        c = self.chain
        return (c.unigram_entropy - self.loss) / (c.unigram_entropy - c.entropy_rate)


def trained_on_chain(
    chain: Chain, tied: bool, seeds: int, steps: int = STEPS, spread: float = SPREAD
) -> list[ChainOutcome]:
    """One layer per seed, trained side by side: Adam with a cosine schedule, fresh sequences at every step.

    First weights are normal with standard deviation `spread`, biases are 0.
    """
    model = SingleLayerTransformer(CONFIG, dtype=torch.float32)
    drawn = [_drawn(model, seed, spread) for seed in range(seeds)]
    weights = {name: torch.stack([w[name] for w in drawn]).requires_grad_() for name in drawn[0]}
    optimizer = torch.optim.Adam([w for name, w in weights.items() if not (tied and name == "W_R")], lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)

    def losses(count: int, rng: np.random.Generator) -> Float[Tensor, " seed"]:
        x = torch.from_numpy(chain.sequences(seeds * count, LENGTH + 1, rng)).reshape(seeds, count, LENGTH + 1)
        return torch.func.vmap(lambda own, tokens: _loss(model, own, tied, tokens))(weights, x)

    rng = np.random.default_rng(1)
    for _ in range(steps):
        optimizer.zero_grad()
        losses(BATCH, rng).sum().backward()
        optimizer.step()
        schedule.step()
    with torch.no_grad():
        found = losses(HELD_OUT, np.random.default_rng(2)).tolist()
    return [ChainOutcome(chain, tied, seed, loss) for seed, loss in enumerate(found)]


def _drawn(model: SingleLayerTransformer, seed: int, spread: float) -> dict[str, Tensor]:
    """Fresh weights of every name."""
    draw = torch.Generator().manual_seed(seed)
    return {
        name: spread * torch.randn(w.shape, generator=draw) if w.ndim > 1 else torch.zeros_like(w)
        for name, w in ((name, w.detach()) for name, w in model.named_parameters())
    }


def _loss(model: SingleLayerTransformer, weights: dict[str, Tensor], tied: bool, tokens: Tensor) -> Tensor:
    """The mean cross-entropy of the next symbol, over all positions."""
    x = torch.nn.functional.one_hot(tokens[:, :-1], 2).float()
    W_E = weights["W_E"] * torch.tensor([[0.0], [1.0]])
    W_R = W_E.T if tied else weights["W_R"]
    logits = functional_call(model, weights | {"W_E": W_E, "W_R": W_R}, (x,))
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


def _entropy(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log1p(-p)
