"""How large the numbers of a layer are: what rounding acts on, and what makes certificates expensive."""

import torch

from .layer import GateLayer, Layer
from .symmetric import SymmetricLayer

HALF = 0.5  # |x̂_j| on the box


def total_of(layer: Layer | SymmetricLayer) -> float:
    """Σ|c| over all values, the largest over the outputs: how much the heads cancel."""
    if isinstance(layer, SymmetricLayer):
        return float(layer.coefficients.abs().sum(dim=0).max())
    parts = [layer.linear, layer.hinge_values]
    if isinstance(layer, GateLayer):
        parts += [layer.gate_values.flatten(0, 1), layer.max_values]
    else:
        parts += [layer.memory_values, layer.ridge_values, layer.bumps.local(layer.bump_values).flatten(0, 1)]
    return float(sum(p.abs().sum(dim=0) for p in parts).max())  # type: ignore[union-attr]


def amplitude_of(layer: Layer) -> float:
    """Σ over heads of (largest − smallest value)/2, the largest over the outputs: the most that the heads can contribute."""
    total = torch.zeros(layer.outputs, dtype=torch.float64)
    if isinstance(layer, GateLayer):
        if len(layer.gates):
            values = layer.gate_values[:, :-1].clone()
            values[:, 1:][~layer.gates.kept] = values[:, :1].expand(-1, layer.dimension, -1)[~layer.gates.kept]
            spread = values.amax(dim=1) - values.amin(dim=1)
            total += (spread / 2 + HALF * layer.gate_values[:, -1].abs()).sum(dim=0)
        return float((total + HALF * layer.max_values.abs().sum(dim=0)).max())
    for g in range(layer.memory.groups):
        own = layer.memory_values[layer.memory.group == g]
        total += (own.amax(dim=0) - own.amin(dim=0)) / 2
    total += layer.bumps.local(layer.bump_values).abs().sum(dim=(0, 1)) / 3  # |s|/(1 + 2cosh s) < 1/3, too
    return float((total + layer.ridge_values.abs().sum(dim=0) / 2).max())


def largest_score_of(layer: Layer) -> float:
    """The largest |score| that a head can give on the box; 0 without heads."""
    found = [0.0]
    if isinstance(layer, GateLayer):
        for bank in (layer.gates, layer.maxima):
            scores = bank.sharpness.abs()[:, None] * (HALF + bank.offsets.abs())
            found += scores[bank.kept].tolist()
    else:
        found += (HALF * layer.memory.keys.abs().sum(dim=1) + layer.memory.biases.abs()).tolist()
        for kind in (layer.ridges, layer.bumps):
            found += (HALF * kind.directions.abs().sum(dim=1) + kind.offsets.abs()).tolist()
    return max(found)
