"""Disguised layers for benchmarks of interpretability: the same function, in weights in which nothing stands out.

Every vector of the stream is turned by one random orthogonal matrix, the queries and keys, and the values, of every head by
others (T does not change: they stand between factors of one product). Heads and hidden units change places. Distractor heads are
added, which attend as heads of the layer do:

    quiet   writes to what is read, but so little that its effect is at most δ,
    aside   writes as much as a head of the layer, into two directions of the stream that nobody reads,
    pair    two heads that write half to twice as much as one of the layer, each the opposite of the other: together nothing.

What is proved: the disguised layer is within `distance` of the layer, so that the certificate holds with this much more. It is
the sum of the effects of quiet heads, and of what the rounding of the turned weights can do (`proof.circuit.same_function`).

A layer in another basis: the same function, up to rounding, from weights that look different.
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ..approximation import Approximation
from ..common.budget import Budget
from ..common.checks import require_seed
from ..common.errors import InputError
from ..common.outward import UP
from ..layer.affine_layer import opposite_pairs
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import Certificate, Evidence
from ..proof.circuit.circuit import Circuit
from ..proof.circuit.effects import AblatedLayer
from ..proof.circuit.graph import Node
from ..proof.circuit.same_function import apart
from ..proof.claim import Claim
from ..proof.decision import decide
from .distractors import Distractors, extended
from .earlier_model import CIRCUIT, is_ours


def turned(model: SingleLayerTransformer, draw: np.random.Generator) -> SingleLayerTransformer:
    """The layer in a random orthogonal basis of the stream, and of every head's queries and keys, and values.

    Products are computed in long doubles where the machine has them, and rounded once.
    """
    c, w = model.config, {name: t.detach().numpy().astype(np.longdouble) for name, t in model.state_dict().items()}
    first, second = opposite_pairs(*(model.state_dict()[name].numpy() for name in ("W_1", "b_1", "W_2")))
    Q = _orthogonal(c.d_model, draw)
    for name in ("W_E", "b_E", "P", "S", "b_O", "W_2", "b_2"):
        if name in w:
            w[name] = w[name] @ Q
    for name in ("W_1", "W_R"):
        w[name] = Q.T @ w[name]
    keys, values = (np.stack([_orthogonal(n, draw) for _ in range(c.heads)]) for n in (c.d_k, c.d_v))
    for name, turn in (("Q", keys), ("K", keys), ("V", values)):
        w[f"W_{name}"] = Q.T @ w[f"W_{name}"] @ turn
        if c.projection_bias:
            w[f"b_{name}"] = (w[f"b_{name}"][:, None] @ turn)[:, 0]
    w["W_O"] = (values.swapaxes(1, 2) @ w["W_O"].reshape(c.heads, c.d_v, c.d_model) @ Q).reshape(-1, c.d_model)
    w["W_1"][:, second], w["W_2"][second] = -w["W_1"][:, first], -w["W_2"][first]  # opposite units stay opposite
    found = SingleLayerTransformer(c)
    found.load_state_dict({name: torch.from_numpy(t.astype(np.float64)) for name, t in w.items()})
    return found.eval()


def _orthogonal(n: int, draw: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix: a product of n reflections, and signs."""
    Q = np.diag(draw.choice([-1.0, 1.0], n)).astype(np.longdouble)
    for _ in range(n if n > 1 else 0):
        v = draw.standard_normal(n).astype(np.longdouble)
        Q = Q - np.outer(Q @ v, 2 * v / (v @ v))
    return Q


REPROVED_VARIABLES = 2  # up to here the certificate is proved again, from the new weights
STATEMENT = (
    "a certified layer in another basis, with distractor heads: its bound, and how far the two layers can be apart"
)


@dataclass(frozen=True, eq=False)
class Disguise:
    """A disguised layer, the role of each of its heads, and how far it can be from the original layer (proved).

    `plain` has the same heads in the same order, in the basis in which the layer was built.
    """

    layer: Approximation
    plain: SingleLayerTransformer
    roles: tuple[str, ...]
    distance: float
    seed: int

    def circuit(self, seconds: float = 60.0, accuracy: float = 0.05) -> Circuit:
        """The circuit of the disguised layer, with the roles of its heads: the truth that the weights do not show."""
        found = self.layer.circuit(seconds=seconds, accuracy=accuracy)
        nodes = tuple(replace(n, role=self.roles[n.index] if n.kind == "head" else "layer") for n in found.nodes)
        return replace(found, nodes=nodes, together=2 * self.distance)

    def save(self, folder: str | Path, circuit: Circuit | None = None, overwrite: bool = False) -> Path:
        """Write the model folder, and circuit.json with the truth in it: the circuit found before, or found now."""
        path = Path(folder) / CIRCUIT
        if path.exists() and not is_ours(path):
            raise InputError(
                f"a folder {folder} for a model", f"{CIRCUIT} in it, of something else", "choose another folder"
            )
        truth = self.circuit() if circuit is None else circuit
        place = self.layer.save(folder, overwrite=overwrite)
        truth.save(place / CIRCUIT, overwrite=True)
        return place


def disguised(
    approximation: Approximation, distractors: Distractors | None = None, seed: int = 0, seconds: float = 20.0
) -> Disguise:
    """A disguised variant of a certified layer. The certificate is proved again within these seconds, or else composed."""
    require_seed(seed)
    approximation.require_unchanged()
    model, certificate, asked = (
        approximation.model,
        approximation.certificate,
        "a certified layer in float64 without LayerNorm",
    )
    if model.config.norm != "none":
        raise InputError(
            asked, f"norm={model.config.norm!r}, which sees the basis", "build a layer instead of training it"
        )
    if model.W_E.dtype != torch.float64:
        raise InputError(
            asked, f"{model.W_E.dtype}, which rounds a turned weight too much", "build it with dtype='float64'"
        )
    if certificate.norm != Certificate.norm:
        raise InputError(asked, f"a claim about the {certificate.norm}", "choose a layer with a bound on every output")
    if certificate.verdict != "CERTIFIED":
        raise InputError(asked, certificate.verdict, "choose a layer that is certified")
    draw = np.random.default_rng(seed)
    own = AblatedLayer(model, approximation.domain, approximation.facts.places, approximation.vocabulary)
    plain, roles = extended(own, distractors or Distractors(), draw)
    other = turned(plain, draw)
    before, after = replace(own, model=plain), replace(own, model=other)
    assert before.paths is not None
    assert after.paths is not None
    quiet = sum(before.paths.most(Node("head", h)) for h, role in enumerate(roles) if role == "quiet")
    basis = apart(plain, other, before.edge, before.paths.reach, before.unit_vectors)
    terms = {
        "the layer": certificate.bound,
        "quiet heads": quiet,
        "change of basis": basis,
        "rounding": before.paths.reach.rounding + after.paths.reach.rounding,
    }
    facts = replace(
        approximation.facts,
        construction="disguised",
        heads=(("head", len(roles)),),
        notes=(f"a disguised variant, seed {seed}: another basis, heads in another order, distractor heads",),
        story="",
        total=None,
        amplitude=None,
        largest_score=None,
    )
    composed = _composed(certificate, other, terms)
    variant = replace(approximation, model=other, certificate=composed, facts=facts, history=None)
    again = _proved_again(variant, seconds, seed)
    variant = variant if again is None else replace(variant, certificate=again)
    return Disguise(variant, plain, roles, (quiet + basis) * UP, seed)


def _composed(certificate: Certificate, turned: SingleLayerTransformer, terms: dict[str, float]) -> Certificate:
    """The old bound and all that was added to it. What is claimed beside values is left out."""
    bound = float(np.nextafter(sum(terms.values()) * (1 + 1e-15), np.inf))
    return replace(
        certificate,
        bound=bound,
        tolerance=certificate.tolerance if certificate.tolerance_asked else bound,
        method="lemma",
        evidence=Evidence(lemma=STATEMENT, terms=terms, relative=certificate.evidence.relative),
        observed=0.0,
        observed_points=0,
        weights=turned.fingerprint(),
        witness=None,
        slope=None,
        properties=(),
        lower=0.0,
        lower_point=None,
    )


def _proved_again(variant: Approximation, seconds: float, seed: int) -> Certificate | None:
    """A certificate from the new weights alone, where the target is a formula of few variables and time suffices."""
    target, old = variant.target, variant.certificate
    if target is None or target.formula is None or target.dimension > REPROVED_VARIABLES:
        return None
    claim = Claim(target, old.tolerance, variant.facts.places, seed)
    found = decide(variant.model, claim, Budget(seconds))
    if old.evidence.relative is not None:
        found = replace(found, evidence=found.evidence | Evidence(relative=old.evidence.relative))
    return found if found.verdict == "CERTIFIED" else None
