"""The effect of a node, sup |T − T without it| over the domain, the outputs and the positions: proved from both sides.

T and T' are the real functions of the stored weights; the upper bound holds for the computed answers, too, as their rounding is
part of it. Real inputs: points with a large difference are looked for, the lower bound is proved there in balls, and branch and
bound (`supremum`) brings the upper one down. Tokens are finitely many: all sequences are tried, where there are few enough; else
sequences are drawn at random, and the upper bound is the coarse one that every layer without LayerNorm has (`Paths.most`).
"""

import itertools
import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from flint import arb

from ...common.budget import Budget
from ...common.errors import InputError
from ...common.outward import UP_FEW
from ...formula.float_bounds import ULPS
from ...layer.arithmetic import FLOAT32, arithmetic_of
from ...model.transformer import SingleLayerTransformer
from ...target.domain import Domain
from ...target.target import Target
from ..attained import InBalls, real_function
from ..bisection.prove import MOST_COORDINATES, BranchAndBound, proof_by
from ..certificate import Method
from ..claim import Claim, Proof
from ..observation import OBSERVED_POINTS, answer_of
from ..overflow import refusal
from ..supremum import FLOOR, Pair, supremum_of
from .graph import Node, without
from .number_sizes import edges_of_inputs, number_sizes
from .removed import Paths, Removed, Subtracted

IGNORABLE = 0.01  # share of the effect that was seen: what may be bounded instead of enclosed
MOST_ROUNDING = (
    0.02  # share of the effect that was seen: where the coarse bound on rounding is larger, it is found box by box
)
MOST_SEQUENCES = 2**17  # all of them are tried up to here
CHUNK = 2**22  # attention weights held at a time


@dataclass(frozen=True)
class Effect:
    """lower ≤ sup |T − T'| ≤ upper, both proved; at the point the difference is at least `lower`. ∞ where nothing is proved."""

    lower: float
    upper: float
    point: tuple[float, ...] | None = None
    method: str = "none"


@dataclass(frozen=True)
class AblatedLayer:
    """A layer whose nodes are ablated one by one, and the inputs over which an effect is meant."""

    model: SingleLayerTransformer
    domain: Domain
    places: tuple[int, ...] = (0,)
    vocabulary: int | None = None  # inputs are token numbers below this

    def __post_init__(self) -> None:
        """Refuse models whose answers vary, or whose rounding is unknown."""
        c = self.model.config
        c.require_one_length()
        c.require_softmax("the circuit")
        if (reason := refusal(self.model, float(self.edge.max()))) is not None:
            raise InputError("weights that proofs can multiply", reason, "scale the weights, or ask for another layer")
        if c.attention == "fused":
            raise InputError("explicit softmax attention", "attention='fused'", "take a copy with attention='softmax'")
        if self.vocabulary is None:
            Claim(self._zero, 0.0, self.places).require_fit(self.model)

    @property
    def unit_vectors(self) -> bool:
        """Whether x̂ of every token is a unit vector."""
        return self.vocabulary is not None and not self.model.shift.any() and bool(self.model.scale.eq(1).all())

    @property
    def edge(self) -> np.ndarray:
        """The largest |x̂| [token, feature]."""
        c, ends = self.model.config, (np.array(self.domain.lower), np.array(self.domain.upper))
        if self.vocabulary is not None:
            ends = np.zeros(c.tokens * c.features_in), np.ones(c.tokens * c.features_in)
        return edges_of_inputs(self.model, *ends)

    @cached_property
    def paths(self) -> Paths | None:
        """How much can pass from heads and units to the outputs; None for layers with LayerNorm."""
        if self.model.config.norm != "none":
            return None
        return Paths(self.model, number_sizes(self.model, self.edge, self.unit_vectors))

    @cached_property
    def _zero(self) -> Target:
        """What T − T' is compared with."""
        return Target("; ".join(["0"] * (len(self.places) * self.model.config.features_out)), self.domain)

    @property
    def inputs(self) -> str:
        """The inputs in words."""
        n, V = self.model.config.tokens, self.vocabulary
        return str(self.domain) if V is None else f"all sequences of {n} tokens out of {V}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the effects assume."""
        engine = (f"elementary functions of NumPy and SciPy within {ULPS} units in the last place",)
        return (*arithmetic_of(self.model.W_E.dtype).assumptions, *(engine if self.vocabulary is None else ()))

    def effect(self, node: Node, accuracy: float, budget: Budget, seed: int = 0) -> Effect:
        """The effect of one node, both ends within the accuracy if the budget allows it."""
        paths, coarse = self.paths, math.inf
        if paths is not None:
            coarse = (paths.most(node) + 2 * paths.reach.rounding) * UP_FEW
            coarse = coarse if math.isfinite(coarse) else math.inf
        numbers = self.vocabulary is None
        found = self._of_numbers(node, accuracy, budget, seed) if numbers else self._of_tokens(node, seed)
        found = found if found.upper <= coarse else replace(found, upper=coarse, method="sizes of the weights")
        return found if found.lower <= found.upper else replace(found, upper=math.inf, method="contradicted")

    def _of_numbers(self, node: Node, accuracy: float, budget: Budget, seed: int) -> Effect:
        model, places, c, paths = self.model, self.places, self.model.config, self.paths
        fewer = without(model, node)
        own, other = (answer_of(m, places, budget) for m in (model, fewer))
        balls: list[InBalls] = [real_function(m, places) for m in (model, fewer)]
        zero = self._zero
        arithmetic = arithmetic_of(model.W_E.dtype)
        dtype = np.float32 if arithmetic is FLOAT32 else np.float64

        def answer(x: np.ndarray) -> np.ndarray:
            one, two = own(x), other(x)
            n = min(len(one), len(two))
            return one[:n] - two[:n]

        def in_balls(x: list[float]) -> list[arb]:
            return [a - b for a, b in zip(balls[0](x), balls[1](x), strict=True)]

        def prove(method: Method, claim: Claim, observed: float, left: Budget) -> Proof | None:
            if c.tokens * c.features_in > MOST_COORDINATES:
                return None
            if paths is not None and paths.most(node) <= (1 + accuracy) * observed + paths.reach.rounding:
                return None  # the coarse bound is as good, or all of it is rounding
            network: Removed | Subtracted
            if paths is None or not 2 * paths.reach.rounding <= MOST_ROUNDING * observed:
                network = Subtracted(model, node)
            else:
                network = Removed(model, node, paths, IGNORABLE * observed)
            columns = [r * c.features_out + o for r in places for o in range(c.features_out)]
            search = BranchAndBound(network, zero, columns, network.numbers)
            return proof_by(search, claim, observed, left, self.assumptions)

        rounding = math.inf if paths is None or arithmetic is FLOAT32 else paths.reach.rounding
        size = 4 * rounding / FLOOR if math.isfinite(rounding) else 0.0  # less than rounding is not asked for
        pair = Pair(zero, answer, in_balls, ["bisect"], prove, ("T", "T without it"), places, dtype, size)
        found = supremum_of(pair, accuracy, budget, seed)
        return Effect(found.lower, found.upper, found.point, found.method)

    def _of_tokens(self, node: Node, seed: int) -> Effect:
        """Over all sequences of tokens, or over random ones: then the upper end is open."""
        assert self.vocabulary is not None
        model, n, V, paths = self.model, self.model.config.tokens, self.vocabulary, self.paths
        rounding = math.inf if paths is None else paths.reach.rounding
        every = V**n <= MOST_SEQUENCES
        everything = itertools.product(range(V), repeat=n)
        x = np.array(list(everything)) if every else token_samples(V, n, OBSERVED_POINTS, seed)
        apart = np.abs(self._answers(model, x) - self._answers(without(model, node), x)).max(axis=1)
        worst = int(apart.argmax())
        largest = float(apart[worst])
        lower = max(0.0, math.nextafter(largest - 2 * rounding * UP_FEW, 0.0)) if math.isfinite(rounding) else 0.0
        upper = (largest + 4 * rounding) * UP_FEW if every and math.isfinite(largest) else math.inf
        return Effect(lower, upper, tuple(map(float, x[worst])), "all sequences" if every else "none")

    def _answers(self, model: SingleLayerTransformer, x: np.ndarray) -> np.ndarray:
        assert self.vocabulary is not None
        c = model.config
        rows = max(1, CHUNK // (max(c.heads * c.all_tokens, c.ffn_width, c.features_in) * c.all_tokens))
        found = []
        with torch.no_grad():
            for part in torch.from_numpy(x).long().split(rows):
                hot = torch.nn.functional.one_hot(part, self.vocabulary).to(model.W_E.dtype)
                found.append(model(hot)[:, list(self.places)].flatten(1).double())
        return np.asarray(torch.cat(found).numpy())


def token_samples(vocabulary: int, n: int, count: int, seed: int) -> np.ndarray:
    """Random sequences: with all tokens, and with few different ones, which make large counts."""
    rng = np.random.default_rng(seed)
    free = rng.integers(0, vocabulary, (count // 2, n))
    few = rng.integers(0, vocabulary, (count - count // 2, 2))
    mixed = np.take_along_axis(few, rng.integers(0, 2, (len(few), n)), axis=1)
    same = np.repeat(np.arange(vocabulary)[:, None], n, axis=1)
    return np.concatenate([same, free, mixed])
