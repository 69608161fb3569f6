"""Sequences at which a token program's error is observed: all of them where they are few."""

import itertools

import numpy as np
from jaxtyping import Int

MOST = 2000  # sequences, fewer when they are long: attention has n² weights each
NUMBERS = 2**24  # attention weights in all, or entries of unit vectors


def sequences(n: int, tokens: int, special: list[list[int]], seed: int) -> Int[np.ndarray, "batch n"]:
    """All sequences of n tokens, or constant ones, ones without repetition, half and half, `special` and random ones."""
    most = max(64, min(MOST, NUMBERS // (n * max(n, tokens))))
    if tokens**n <= most:
        return np.array(list(itertools.product(range(tokens), repeat=n)), dtype=np.int64)
    count = np.arange(n)
    chosen = [
        *(np.full(n, v) for v in {0, tokens // 2, tokens - 1}),
        *((count + v) % tokens for v in (0, 1)),
        *((tokens - 1) * (count < n - k) for k in {1, n // 2, (n + 1) // 2}),
        *(np.array(row) for row in special),
    ]
    generator = np.random.default_rng(seed)
    few = [generator.integers(0, min(k, tokens), size=(most // 4, n)) for k in (2, 3)]  # tokens that occur often
    return np.concatenate([np.array(chosen), *few, generator.integers(0, tokens, size=(most // 2, n))]).astype(np.int64)
