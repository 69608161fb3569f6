"""Blocks of many heads of one coordinate, of all kinds."""

import torch

from onelayer.layer.form import Block


def some_block(heads, tokens, seed, outputs=2, steep=300.0):
    """Heads with all kinds of scores; some tokens are not there, some have equal keys."""
    g = torch.Generator().manual_seed(seed)

    def r(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    keys = steep * r(heads, tokens, 1)
    keys[::5, 1] = keys[::5, 0]
    biases = -keys[..., 0] * (torch.rand(heads, 1, generator=g, dtype=torch.float64) - 0.5) + r(heads, tokens)
    biases[::7, -1] = -torch.inf
    return Block(keys, biases, r(heads, tokens, outputs), 50 * r(heads, tokens, 1, outputs))
