"""Numbers in several digits: each digit has its own coordinate of the stream.

    S     numbers of special tokens. W_K and W_V multiply all digits of a number with the same power of two, so that a key or
          value is their sum, which float32 adds without rounding (`grid`). Data tokens have 0 in these coordinates.
    W_R   what the read-out multiplies x with. The further coordinates hold x times 2^−7, 2^−14, and the digits are as many times
          larger, so that all have the exponent of their column.
    b_R   the bias of an output, where biases are on the grid, too. The further coordinates hold a digit as b_E, and the read-out
          adds it.

The one data token is what is read out.
"""

import math
from dataclasses import replace

import torch
from torch import Tensor

from ..model.transformer import SingleLayerTransformer
from .grid import DIGIT_BITS, Grid

MOST_BALANCE = 60  # binary places that are moved at most
COLUMNS, ROWS = ("W_E", "b_E", "S", "P", "W_O", "W_2", "b_2"), {"W_Q": 1, "W_K": 1, "W_V": 1, "W_1": 0, "W_R": 0}


def has_digits(model: SingleLayerTransformer) -> bool:
    """Whether the numbers of a model can have several digits: the data token is read out."""
    c = model.config
    return c.tokens == 1 and c.readout == "position" and c.residual


def with_digits(model: SingleLayerTransformer, grid: Grid, counts: list[int], readout: int) -> SingleLayerTransformer:
    """The model with S on the grid, coordinate i in at most counts[i] digits, and the read-out in at most `readout`.

    Digits that are all 0 are left out.
    """
    first = {name: t.detach().clone() for name, t in model.state_dict().items()}
    tokens: list[tuple[int, Tensor]] = []  # (coordinate, a further digit of its numbers)
    for lane, count in enumerate(counts if model.config.special_tokens else []):
        digits = grid.digits(first["S"][:, lane], count)
        first["S"][:, lane] = digits[0]
        tokens += [(lane, digit) for digit in digits[1:] if digit.any()]
    slopes, biases = _slope_digits(first, grid, readout), _bias_digits(first, grid, readout)
    d, more = model.config.d_model, len(tokens) + len(slopes) + len(biases)
    wide = SingleLayerTransformer(replace(model.config, d_model=d + more), dtype=model.W_E.dtype)
    state = wide.state_dict()
    with torch.no_grad():
        for name, t in state.items():
            part = t[..., :d] if name in COLUMNS else t.narrow(ROWS[name], 0, d) if name in ROWS else t
            t.zero_()
            part.copy_(first[name])
        for i, (lane, digit) in enumerate(tokens, start=d):
            state["S"][:, i] = digit
            for name in ("W_K", "W_V"):
                state[name][:, i] = first[name][:, lane]
        for i, (lane, place, digit) in enumerate(slopes, start=d + len(tokens)):
            factor = 2.0 ** (DIGIT_BITS * place)
            state["W_E"][:, i] = first["W_E"][:, lane] / factor
            state["W_R"][i] = digit * factor
        for i, (output, digit) in enumerate(biases, start=d + len(tokens) + len(slopes)):
            state["b_E"][i], state["W_R"][i, output] = digit, 1.0
    return wide


def _bias_digits(first: dict[str, Tensor], grid: Grid, count: int) -> list[tuple[int, Tensor]]:
    """(output, a further digit of its bias); the first digits are written into b_R. Biases beside int8 weights are float32."""
    if grid.fixed:
        return []
    digits = grid.digits(first["b_R"], count)
    first["b_R"] = digits[0]
    return [(o, digit[o]) for digit in digits[1:] for o in digit.nonzero().flatten().tolist()]


def _slope_digits(first: dict[str, Tensor], grid: Grid, count: int) -> list[tuple[int, int, Tensor]]:
    """(coordinate of x, place of the digit, the digit for every output); the first digits are written into W_R."""
    written = first["W_O"].ne(0).any(dim=0) | first["W_2"].ne(0).any(dim=0)
    lanes = (first["W_E"].ne(0).any(dim=0) & ~written).nonzero().flatten()
    W_R = first["W_R"]
    largest = W_R.abs().amax(dim=0).tolist()
    columns = [grid.digits(W_R[lanes, o], count, largest[o]) for o in range(W_R.shape[1])]
    found = []
    for place in range(count):
        rows = torch.stack([column[place] for column in columns], dim=1)  # [coordinate, output]
        if place == 0:
            W_R[lanes] = rows
        else:
            found += [(int(lane), place, row) for lane, row in zip(lanes, rows, strict=True) if row.any()]
    return found


def balance_readout(model: SingleLayerTransformer) -> None:
    """Powers of two moved from W_O and W_2 to W_R, so that the numbers of its columns are of one size; nothing else changes."""
    W_O, W_2, W_R = model.W_O, model.W_2, model.W_R
    written = W_O.ne(0).any(dim=0) | W_2.ne(0).any(dim=0) | model.b_2.ne(0)
    if bool((model.b_E[written] != 0).any()):
        return
    with torch.no_grad():
        for lane in written.nonzero().flatten().tolist():
            for o in W_R[lane].nonzero().flatten().tolist():
                size = float(W_R[~written, o].abs().max()) if bool((~written).any()) else 0.0
                factor = 2.0 ** max(-MOST_BALANCE, min(math.frexp(size)[1], MOST_BALANCE)) if size else 1.0
                W_R[lane, o] *= factor
                for t in (W_O[:, lane], W_2[:, lane], model.b_2[lane]):
                    t /= factor
