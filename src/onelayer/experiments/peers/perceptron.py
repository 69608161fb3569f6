"""Multilayer perceptrons in float64, trained by Adam and then L-BFGS."""

import math
from itertools import pairwise

from torch import nn

from ...target.target import Target
from .descent import adam, lbfgs, race, seeded, stored_numbers
from .task import Clock, FittedPeer, matches_budget, samples_of

DEPTHS = (1, 2, 3)  # hidden layers
ADAM_SHARE = 0.2  # of the time; the remainder is for L-BFGS
ADAM_RATE = 1e-2

Widths = tuple[int, ...]


def perceptron(inputs: int, widths: Widths, outputs: int, activation: type[nn.Module]) -> nn.Module:
    """Linear layers with an activation between them."""
    layers: list[nn.Module] = []
    for before, after in zip((inputs, *widths[:-1]), widths, strict=True):
        layers += [nn.Linear(before, after), activation()]
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs))


def shapes(dimension: int, outputs: int, budget: int) -> list[Widths]:
    """For every depth, the hidden widths (equal up to one) with parameters closest to the budget, if they match it."""
    found = []
    for depth in DEPTHS:
        best: tuple[float, Widths] = (math.inf, ())
        neurons = depth
        while True:
            widths = tuple(neurons // depth + (i < neurons % depth) for i in range(depth))
            count = parameters_of(dimension, widths, outputs)
            best = min(best, (abs(count - budget), widths))
            if count > budget:
                break
            neurons += 1
        if matches_budget(parameters_of(dimension, best[1], outputs), budget):
            found.append(best[1])
    return found


def parameters_of(dimension: int, widths: Widths, outputs: int) -> int:
    sides = (dimension, *widths, outputs)
    return sum((before + 1) * after for before, after in pairwise(sides))


def fit(target: Target, parameters: int, seconds: float, seed: int, activation: type[nn.Module]) -> FittedPeer | None:
    """Best of one to three hidden layers; None if no shape matches the budget."""
    clock = Clock(seconds)
    samples = samples_of(target, parameters)
    candidates = shapes(target.dimension, target.outputs, parameters)
    if not candidates:
        return None

    def train(widths: Widths, cap: float) -> nn.Module:
        model = seeded(lambda: perceptron(target.dimension, widths, target.outputs, activation), seed)
        adam(model, samples, ADAM_SHARE * cap, ADAM_RATE, seed)
        lbfgs(model, samples, (1 - ADAM_SHARE) * cap)
        return model

    model = race(candidates, train, samples, seconds)
    note = f"hidden {hidden(model)}; {clock.end}"
    return FittedPeer(samples.function(model), stored_numbers(model), clock.spent, note)


def hidden(model: nn.Module) -> str:
    """The hidden widths of a perceptron, as text."""
    linear = [layer.out_features for layer in model.children() if isinstance(layer, nn.Linear)]
    return "×".join(map(str, linear[:-1]))


def fit_tanh(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    return fit(target, parameters, seconds, seed, nn.Tanh)


def fit_relu(target: Target, parameters: int, seconds: float, seed: int = 0) -> FittedPeer | None:
    return fit(target, parameters, seconds, seed, nn.ReLU)
