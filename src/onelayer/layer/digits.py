"""Numbers in several digits: each digit has its own coordinate of the stream.

S     numbers of special tokens. W_K and W_V multiply all digits of a number with the same power of two, so that a key or
      value is their sum, which float32 adds without rounding (`grid`). Data tokens have 0 in these coordinates.
W_R   what the read-out multiplies x with. The further coordinates hold x times 2^−7, 2^−14, and the digits are as many times
      larger, so that all have the exponent of their column.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ..model.transformer import SingleLayerTransformer
from .grid import DIGIT_BITS, Grid

COLUMNS, ROWS = ("W_E", "b_E", "S", "P", "W_O", "W_2", "b_2"), {"W_Q": 1, "W_K": 1, "W_V": 1, "W_1": 0, "W_R": 0}


def with_digits(model: SingleLayerTransformer, grid: Grid, counts: list[int], of_x: int) -> SingleLayerTransformer:
    """The model with S on the grid, coordinate i in at most counts[i] digits, and the weights of x in W_R in at most `of_x`.

    Digits that are all 0 are left out.
    """
    first = {name: t.detach().clone() for name, t in model.state_dict().items()}
    tokens: list[tuple[int, Tensor]] = []  # (coordinate, a further digit of its numbers)
    for lane, count in enumerate(counts):
        digits = grid.digits(first["S"][:, lane], count)
        first["S"][:, lane] = digits[0]
        tokens += [(lane, digit) for digit in digits[1:] if digit.any()]
    readout = _readout_digits(first, grid, of_x)
    d, c = model.config.d_model, model.config
    wide = SingleLayerTransformer(replace(c, d_model=d + len(tokens) + len(readout)), dtype=model.W_E.dtype)
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
        for i, (lane, place, digit) in enumerate(readout, start=d + len(tokens)):
            factor = 2.0 ** (DIGIT_BITS * place)
            state["W_E"][:, i] = first["W_E"][:, lane] / factor
            state["W_R"][i] = digit * factor
    return wide


def _readout_digits(first: dict[str, Tensor], grid: Grid, count: int) -> list[tuple[int, int, Tensor]]:
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
