"""Disguised layers for benchmarks of interpretability: the same function, in weights in which nothing stands out.

Every vector of the stream is turned by one random orthogonal matrix, the queries and keys, and the values, of every head by
others (T does not change: they stand between factors of one product). Heads and hidden units change places. Distractor heads are
added, which attend as heads of the layer do:

    quiet   writes to what is read, but so little that its effect is at most δ,
    aside   writes as much as a head of the layer, into two directions of the stream that nobody reads,
    pair    two heads that write as much as one of the layer, one the opposite of the other: each has an effect, both have none.

What is proved: the disguised layer is within `distance` of the layer, so that the certificate holds with this much more. It is
the sum of the effects of quiet heads, and of what the rounding of the turned weights can do (`proof.circuit.same_function`).
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ..approximation import Approximation
from ..common.budget import Budget
from ..common.checks import require_seed, require_whole
from ..common.errors import InputError
from ..model.transformer import SingleLayerTransformer
from ..proof.bisection.transformer import opposite_pairs
from ..proof.certificate import Certificate, Evidence
from ..proof.circuit.circuit import Circuit
from ..proof.circuit.effects import AblatedLayer
from ..proof.circuit.graph import Node
from ..proof.circuit.same_function import apart
from ..proof.claim import Claim
from ..proof.decision import decide
from .earlier_model import CIRCUIT, is_ours

QUIET = 2.0**-34  # δ, the largest effect of a quiet head: 5.8e-11
ASIDE_LANES = 2
MOST_DISTRACTORS = 64  # of each kind
REPROVED_VARIABLES = 2  # up to here the certificate is proved again, from the new weights
STATEMENT = (
    "a certified layer in another basis, with distractor heads: its bound, and how far the two layers can be apart"
)


@dataclass(frozen=True)
class Distractors:
    """How many heads of each kind are added; a pair is two heads."""

    quiet: int = 2
    aside: int = 1
    pairs: int = 1

    def __post_init__(self) -> None:
        for name in ("quiet", "aside", "pairs"):
            require_whole(name, getattr(self, name), 0, MOST_DISTRACTORS)


@dataclass(frozen=True, eq=False)
class Disguise:
    """A disguised layer, the role of each of its heads, and how far it can be from the original layer (proved)."""

    layer: Approximation
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
    if certificate.verdict != "CERTIFIED":
        raise InputError(asked, certificate.verdict, "choose a layer that is certified")
    draw = np.random.default_rng(seed)
    extended, roles = _extended(approximation, distractors or Distractors(), draw)
    turned = _turned(extended, draw)
    layer = _ablated(approximation, turned)
    before = _ablated(approximation, extended)
    assert layer.paths is not None
    assert before.paths is not None
    quiet = sum(before.paths.most(Node("head", h)) for h, role in enumerate(roles) if role == "quiet")
    basis = apart(extended, turned, before.edge, before.paths.reach, before.unit_vectors)
    terms = {
        "the layer": certificate.bound,
        "quiet heads": quiet,
        "change of basis": basis,
        "rounding": before.paths.reach.rounding + layer.paths.reach.rounding,
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
    composed = _composed(certificate, turned, terms)
    variant = replace(approximation, model=turned, certificate=composed, facts=facts, history=None)
    again = _proved_again(variant, seconds, seed)
    variant = variant if again is None else replace(variant, certificate=again)
    return Disguise(variant, roles, (quiet + basis) * (1 + 1e-9), seed)


def _ablated(approximation: Approximation, model: SingleLayerTransformer) -> AblatedLayer:
    return AblatedLayer(model, approximation.domain, approximation.facts.places, approximation.vocabulary)


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


def _extended(
    approximation: Approximation, extra: Distractors, draw: np.random.Generator
) -> tuple[SingleLayerTransformer, tuple[str, ...]]:
    """The layer with more lanes, wider heads and distractors, all in a random order, in the old basis."""
    model = approximation.model
    c, w = model.config, {name: t.detach().clone() for name, t in model.state_dict().items()}
    wide_k = 4 * c.d_k if c.d_k < 4 else c.d_k  # √d_k doubles, exactly
    wide_v, lanes = max(c.d_v, 3), c.d_model + ASIDE_LANES
    count = c.heads + extra.quiet + extra.aside + 2 * extra.pairs
    config = replace(
        c, d_model=lanes, d_k=wide_k, d_v=wide_v, heads=count, code="none" if c.code == "none" else "learned"
    )
    for name, t in w.items():  # the stream gets new lanes, which are read by nobody
        if name in ("W_E", "b_E", "P", "S", "b_O", "W_2", "b_2"):
            w[name] = _padded(t, -1, lanes)
        elif name in ("W_1", "W_R"):
            w[name] = _padded(t, 0, lanes)
    double = 2.0 if wide_k != c.d_k else 1.0
    for name, width, factor in (("Q", wide_k, double), ("K", wide_k, 1.0), ("V", wide_v, 1.0)):
        w[f"W_{name}"] = _padded(_padded(w[f"W_{name}"], 1, lanes), 2, width) * factor
        if c.projection_bias:
            w[f"b_{name}"] = _padded(w[f"b_{name}"], 1, width) * factor
    W_O = _padded(_padded(w["W_O"].reshape(c.heads, c.d_v, c.d_model), 2, lanes), 1, wide_v)
    chosen, writes, roles = list(range(c.heads)), list(W_O), ["layer"] * c.heads
    for role, number in (("quiet", extra.quiet), ("aside", extra.aside), ("pair", extra.pairs)):
        for _ in range(number):
            like = int(draw.integers(c.heads))
            write = _mixed(W_O[like], draw)
            if role == "aside":
                write = torch.zeros_like(write)
                size = float(W_O[like].abs().max())
                write[:, c.d_model :] = size * torch.from_numpy(draw.standard_normal((wide_v, ASIDE_LANES)))
            chosen += [like] * (2 if role == "pair" else 1)
            writes += [write, -write] if role == "pair" else [write]
            roles += [role] * (2 if role == "pair" else 1)
    order = draw.permutation(count)
    units = torch.from_numpy(draw.permutation(c.ffn_width))
    heads = torch.tensor([chosen[i] for i in order])
    for name in ("W_Q", "W_K", "W_V", "b_Q", "b_K", "b_V"):
        if name in w:
            w[name] = w[name][heads]
    w["W_O"] = torch.stack([writes[i] for i in order]).flatten(0, 1)
    w["W_1"], w["b_1"], w["W_2"] = w["W_1"][:, units], w["b_1"][units], w["W_2"][units]
    extended = SingleLayerTransformer(config)
    extended.load_state_dict(w)
    sorted_roles = tuple(roles[i] for i in order)
    _hush(approximation, extended.eval(), sorted_roles)
    return extended, sorted_roles


def _hush(approximation: Approximation, model: SingleLayerTransformer, roles: tuple[str, ...]) -> None:
    """Quiet heads write less, by a power of two, until their effect is at most δ."""
    paths, d_v = _ablated(approximation, model).paths, model.config.d_v
    assert paths is not None
    with torch.no_grad():
        for h, role in enumerate(roles):
            if role == "quiet":
                most = max(paths.most(Node("head", h)), 1e-300)
                model.W_O[h * d_v : (h + 1) * d_v] *= 2.0 ** np.floor(np.log2(QUIET / most) - 1)


def _mixed(write: Tensor, draw: np.random.Generator) -> Tensor:
    """Rows of W^O of the same size in the same directions of the stream, with other signs and shares."""
    turn = torch.from_numpy(np.linalg.qr(draw.standard_normal((len(write), len(write))))[0])
    return turn @ write


def _turned(model: SingleLayerTransformer, draw: np.random.Generator) -> SingleLayerTransformer:
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
    turned = SingleLayerTransformer(c)
    turned.load_state_dict({name: torch.from_numpy(t.astype(np.float64)) for name, t in w.items()})
    return turned.eval()


def _orthogonal(n: int, draw: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix: a product of n reflections, and signs."""
    Q = np.diag(draw.choice([-1.0, 1.0], n)).astype(np.longdouble)
    for _ in range(n if n > 1 else 0):
        v = draw.standard_normal(n).astype(np.longdouble)
        Q = Q - np.outer(Q @ v, 2 * v / (v @ v))
    return Q


def _padded(t: Tensor, axis: int, size: int) -> Tensor:
    """More zeros along an axis."""
    shape = list(t.shape)
    shape[axis] = size - t.shape[axis]
    return torch.cat([t, t.new_zeros(shape)], dim=axis)
