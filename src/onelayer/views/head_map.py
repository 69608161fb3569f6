"""Where the heads of a layer are: gates switch somewhere, memory tokens sit somewhere, ridges and maxima have an edge.

Read from the weights (`layer.reading`), so that the picture shows what the model computes, not what was intended:

    gate    opens where x_j passes `at[j]`, upwards or downwards, for every coordinate j that it depends on
    edge    two tokens of a ridge gate or of a max-head have equal weight on the plane normal·x = level
    token   a memory token sits at the mean of x under its attention weight, over points spread over the domain

`value` is what the unit adds to the first output when it is open (a gate), on one side (an edge), or alone (a token).
Layers that cannot be read this way (trained ones, LayerNorm), and those with nothing but planes in three or more variables,
have attention averaged over the domain instead.
"""

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from ..approximation import Approximation
from ..layer.form import Block
from ..layer.reading import Reading, form_of_model
from ..target.points import uniform_points

MOST_POINTS, MOST_WEIGHTS = 4096, 2e7  # points spread over the domain, and attention weights held at a time
MEAN_POINTS = 256  # for averaged attention


@dataclass(frozen=True)
class Gate:
    """A gate's corner in the units of x, per coordinate that it depends on; `opens` is +1 upwards, −1 downwards."""

    at: dict[int, float]
    opens: dict[int, int]
    value: float
    sharpness: float


@dataclass(frozen=True)
class Edge:
    """The plane normal·x = level, in the units of x, where two tokens have equal weight."""

    normal: tuple[float, ...]
    level: float
    value: float


@dataclass(frozen=True)
class Token:
    """A memory token: where it sits, and the largest weight it gets anywhere."""

    at: tuple[float, ...]
    weight: float
    value: float


@dataclass(frozen=True)
class HeadMap:
    """All units, in the order of the heads; or, in `mean`, attention [head, token] averaged over the domain."""

    gates: tuple[Gate, ...] = ()
    edges: tuple[Edge, ...] = ()
    tokens: tuple[Token, ...] = ()
    mean: np.ndarray | None = field(default=None, compare=False)


def head_map_of(approximation: Approximation) -> HeadMap:
    """The units of an approximation over its domain."""
    reading = form_of_model(approximation.model, approximation.facts.places)
    if reading is None or approximation.vocabulary is not None:
        return HeadMap(mean=_mean_attention(approximation))
    gates: list[Gate] = []
    edges: list[Edge] = []
    tokens: list[Token] = []
    memory = approximation.facts.construction == "memory"
    for block in reading.form.blocks:
        anchored = _anchored(block)
        if memory and not (anchored.all() and block.biases.shape[1] == 2):
            tokens += _tokens(block, reading)
            continue
        for h in range(len(block.biases)):
            if anchored[h] and not memory:
                gates.append(_gate(block, h, reading))
            else:
                edges += _edges(block, h, reading)
    if edges and not (gates or tokens) and approximation.domain.dimension > 2:  # planes cannot be drawn
        return HeadMap(mean=_mean_attention(approximation))
    return HeadMap(tuple(gates), tuple(edges), tuple(tokens))


def _anchored(block: Block) -> np.ndarray:
    """Which heads have one token with a constant score."""
    constant = (block.keys == 0).all(dim=2) & block.there
    return np.asarray((constant.sum(dim=1) == 1).numpy())


def _gate(block: Block, h: int, reading: Reading) -> Gate:
    """The corner of a gate: score_j(x̂) = keys_j x̂_j + biases_j equals the anchor's."""
    keys, there = block.keys[h], block.there[h]
    anchor = int(((keys == 0).all(dim=1) & there).nonzero()[0])
    at: dict[int, float] = {}
    opens: dict[int, int] = {}
    others = [int(t) for t in there.nonzero().flatten() if int(t) != anchor]
    for t in others:
        j = int(keys[t].abs().argmax())
        key = float(keys[t, j])
        hat = float(block.biases[h, anchor] - block.biases[h, t]) / key
        at[j] = hat / reading.frame.scale[j] + reading.frame.shift[j]
        opens[j] = -1 if key > 0 else 1
    value = float(block.values[h, anchor, 0] - block.values[h, others, 0].mean())
    return Gate(at, opens, value, float(keys.abs().max()))


def _edges(block: Block, h: int, reading: Reading) -> list[Edge]:
    """Planes of equal scores between the tokens of a head, two at a time."""
    there = [int(t) for t in block.there[h].nonzero().flatten()]
    scale, shift = np.array(reading.frame.scale), np.array(reading.frame.shift)
    found = []
    for i, s in enumerate(there):
        for t in there[i + 1 :]:
            normal = (block.keys[h, s] - block.keys[h, t]).numpy() * scale
            level = float(normal @ shift) + float(block.biases[h, t] - block.biases[h, s])
            slopes = block.slopes[h, s, :, 0]
            steepest = float(slopes[slopes.abs().argmax()])
            value = float(block.values[h, s, 0] - block.values[h, t, 0]) + steepest
            found.append(Edge(tuple(normal.tolist()), level, value))
    return found


def _tokens(block: Block, reading: Reading) -> list[Token]:
    D = block.keys.shape[2]
    count = int(max(64, min(MOST_POINTS, MOST_WEIGHTS / block.biases.numel())))
    hat = uniform_points(count, D, 0) - 0.5
    weights = torch.softmax(torch.einsum("bd,htd->bht", hat, block.keys) + block.biases, dim=-1)
    mass = weights.sum(dim=0)  # [head, token]
    centre = torch.einsum("bht,bd->htd", weights, hat) / mass.clamp_min(1e-300)[..., None]
    unseen = mass < 1e-290  # placed where its key points to
    centre[unseen] = _direction(block.keys)[unseen]
    place = centre / torch.tensor(reading.frame.scale) + torch.tensor(reading.frame.shift)
    top = weights.amax(dim=0)
    return [
        Token(tuple(place[h, t].tolist()), float(top[h, t]), float(block.values[h, t, 0]))
        for h in range(len(block.biases))
        for t in range(block.biases.shape[1])
        if bool(block.there[h, t])
    ]


def _direction(keys: Tensor) -> Tensor:
    """The point of the box |x̂| ≤ ½ in the direction of a key."""
    return keys / keys.abs().amax(dim=-1, keepdim=True).clamp_min(1e-300) / 2


def _mean_attention(approximation: Approximation) -> np.ndarray:
    """[head, token]: attention weights at the first row that is read, averaged over random inputs."""
    c = approximation.model.config
    count = int(max(1, min(MEAN_POINTS, MOST_WEIGHTS / (c.heads * c.all_tokens**2))))
    x = approximation.domain.points(uniform_points(count, approximation.domain.dimension, 0).numpy())
    if approximation.vocabulary is not None:
        x = np.clip(np.floor(x), 0, approximation.vocabulary - 1)
    given = approximation.as_tokens(torch.from_numpy(x).to(approximation.model.W_E.dtype))
    row = c.read_rows.start + approximation.facts.places[0]
    with torch.no_grad():
        return np.asarray(approximation.model.attention(given)[:, :, row].mean(dim=0).double().numpy())
