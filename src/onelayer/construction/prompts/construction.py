"""`prompt`: tokens that make one frozen layer compute a function, with proof.

    f, domain, tolerance → memory tokens of one head → tokens of the frozen layer → certificate
    samples, steepest slope → a token per sample → certificate for every function that fits them

The frozen layer is the same for all prompts (`layer.assemble.prompt_tokens`): its weights know nothing of f.

Memory tokens of one head, with nothing beside them: no linear part, no groups of variables, no heads for kinks.
"""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...approximation import CHUNK, Approximation
from ...common.budget import Budget
from ...common.checks import known_options, require_seconds
from ...common.errors import InputError
from ...common.progress import Progress
from ...layer.assemble import Frame
from ...layer.assemble.prompt_tokens import VARIABLES, WIDTH, assemble_prompt, frozen_layer
from ...layer.composed import ComposedLayer
from ...layer.facts import Facts
from ...layer.layer import Layer, MemoryLayer
from ...layer.magnitudes import amplitude_of, largest_score_of, total_of
from ...model.prompted_layer import FrozenLayer
from ...proof.certificate import Certificate
from ...proof.decision import decide
from ...target.domain import Sides
from ...target.group_samples import GroupSamples
from ...target.target import Target, TargetLike, require_tolerance, target_of
from ..fitted_groups import FittedGroup
from ..kinks.remainder import Remainder
from ..polished.candidate import Candidate
from ..polished.families import MemoryFamily
from ..polished.layer import DETAIL_SHARE
from ..polished.refine import refined
from ..polished.why_not import explain_failure
from ..request import BUILD_SECONDS, SEARCH_TIME, Request
from .nadaraya_watson import in_context


class TokensAlone(Candidate):
    """The search for the fewest tokens of one head that are all there is."""

    def without_units(self, source: GroupSamples, share: float) -> FittedGroup | None:
        return None

    def family_for(self, source: GroupSamples) -> MemoryFamily:
        return MemoryFamily(len(source.group), graded=bool(source.faces()), straight=False)


def tokens_alone(request: Request) -> TokensAlone:
    """The candidate for a request, fitted in all variables at once."""
    target, whole = request.target, tuple(range(request.target.dimension))
    source = GroupSamples(target, whole, request.seed, detail=DETAIL_SHARE * request.fit_tolerance)
    budget = request.budget.share(SEARCH_TIME)
    found = TokensAlone(request, "memory", Remainder(target, request.frame), [source], budget)
    found.run()
    return found


STORY = (
    "The one head of the frozen layer compares x with the key of every prompt token and answers with the mean of their values, "
    "weighted by softmax. The weights are the same for every function."
)


@dataclass(frozen=True, eq=False)
class Prompt:
    """Tokens for the frozen layer, and what is proved about what it then computes.

    `approximation` is the same layer with the prompt among its weights: the model that the certificate is about, and what
    `certify`, `report` and `export` take. A prompt that was saved is `Prompt(ol.load(folder))`.
    """

    approximation: Approximation

    def __post_init__(self) -> None:
        model = self.approximation.model
        fits = model.config.memory_tokens and model.W_E.shape[0] <= VARIABLES and self.tokens.shape[1:] == (WIDTH,)
        if not fits or frozen_layer().with_prompt(self.tokens, len(model.W_E)).fingerprint() != model.fingerprint():
            change = "make one with ol.prompt(function, domain, tolerance)"
            raise InputError("the frozen layer with a prompt", "another layer", change)

    @property
    def tokens(self) -> Tensor:
        """[token, d_model]: all that depends on the function."""
        return self.approximation.model.special.detach()

    @property
    def frozen(self) -> FrozenLayer:
        """The layer that takes x and the tokens; its weights are those of every other prompt."""
        return frozen_layer()

    @property
    def certificate(self) -> Certificate:
        return self.approximation.certificate

    def __call__(self, x: Any) -> Any:
        """The frozen layer's answer to x | prompt, for one point or a batch."""
        frozen, tokens = self.frozen, self.tokens
        rows = max(1, CHUNK // len(tokens))  # bounds the memory of the attention weights

        def values(batch: Tensor) -> Tensor:
            return torch.cat([frozen(part, tokens) for part in batch.split(rows)])

        return self.approximation.call_with(values, x, "allow")

    @known_options
    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the model folder, and beside it weights.safetensors, the same for every prompt, and prompt.safetensors."""
        return self.approximation.save(folder, overwrite)

    def __repr__(self) -> str:
        return f"{len(self.tokens):,} prompt tokens of {WIDTH} numbers\n{self.approximation}"


@known_options
def prompt(
    function: TargetLike,
    domain: Sides | None = None,
    tolerance: float = 1e-2,
    *,
    steepest: float | None = None,
    seconds: float = BUILD_SECONDS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Prompt:
    """The prompt that makes the frozen layer compute f on a domain, with a certificate of its error.

    f has one to three variables and one output: a formula, a function, a `Target`. The search is for the fewest tokens.
    With samples (X, y) in place of f there is a token for each of them, nothing is fitted, and the frozen layer computes their
    Nadaraya–Watson estimate. `steepest` is then the largest slope of f in any direction, |f(x) − f(x')| ≤ steepest·|x − x'| in
    the Euclidean norm, and the bound holds for every such f that has these values.
    """
    started = time.perf_counter()
    require_seconds(seconds, "the search")
    require_tolerance(tolerance)
    if isinstance(function, tuple):
        return Prompt(in_context(*function, domain, tolerance, steepest))
    if steepest is not None:
        found = "a function that can be asked anywhere"
        raise InputError("`steepest` with samples (X, y)", found, "leave `steepest` out")
    target = target_of(function, domain)
    _require_fit(target)
    request = Request(
        target, tolerance, construction="memory", seed=seed, budget=Budget(seconds), progress=progress
    ).checked()
    best = refined([tokens_alone(request)], _certified)
    assert isinstance(best.layer, MemoryLayer)
    facts = Facts(
        method="polished",
        construction="prompt",
        layout="token",
        heads=(("memory", 1),),
        units=best.layer.units,
        total=total_of(best.layer),
        amplitude=amplitude_of(best.layer),
        largest_score=largest_score_of(best.layer),
        seconds=time.perf_counter() - started,
        seed=int(seed),
        notes=explain_failure(best),
        story=STORY,
    )
    model = assemble_prompt(best.layer, request.frame)
    return Prompt(Approximation.of(model, target, best.certificate, facts))


def _certified(request: Request, layer: Layer | ComposedLayer, frame: Frame, budget: Budget) -> Certificate:
    """What can be proved about the frozen layer with the tokens of a layer."""
    assert isinstance(layer, MemoryLayer)
    return decide(assemble_prompt(layer, frame), request.claim, budget)


def _require_fit(target: Target) -> None:
    if target.dimension > VARIABLES or target.outputs > 1:
        found = f"{target.dimension} variables and {target.outputs} outputs"
        raise InputError(f"a function of 1 to {VARIABLES} variables with one output", found, "build a layer for it")
