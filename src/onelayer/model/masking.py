"""Which tokens are hidden from which rows: sequences of different length in one batch, and layers that only look back.

A hidden token has score −∞ and therefore weight exactly 0, in exact arithmetic and in floating point. Adding zeros to a sum
changes nothing, but it may change the order in which the other terms are added: a padded sequence gets the answers of the
sequence alone up to that rounding.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Bool
from torch import Tensor

from ..common.errors import InputError
from .config import LayerConfig

if TYPE_CHECKING:
    from .transformer import SingleLayerTransformer

LENGTHWISE = ("shift", "scale", "P")  # tensors with a row for each position


def hidden_tokens(
    config: LayerConfig,
    n: int,
    padding: Bool[Tensor, "batch data"] | None,
    device: torch.device,
    every_row: bool = False,
) -> Bool[Tensor, "#batch #row token"] | None:
    """Where token j is hidden from row i: j holds no token, comes later in a causal layer, or is outside the window.

    None: nothing is hidden. Rows are the tokens that are read out, or all of them with `every_row`. Special tokens are seen by
    all and see all that is there. A position always sees itself, so that no row is without weights: where it holds no token its
    answer is not used.
    """
    if not config.hides_tokens and padding is None:
        return None
    special, of_data = config.special_tokens, every_row or config.readout != "output"
    empty = torch.zeros(1, n, dtype=torch.bool, device=device) if padding is None else padding
    found = empty[:, None].expand(-1, n, -1)
    position = torch.arange(n, device=device)
    found = found | config.hides(position[:, None], position)
    found = found & ~torch.eye(n, dtype=torch.bool, device=device)
    others = empty[:, None].expand(-1, special if every_row else 1, -1)
    rows = [found, others] if every_row else [found if of_data else others]
    return F.pad(torch.cat(rows, dim=1), (0, special))


def require_padding(config: LayerConfig, padding: Tensor, shape: torch.Size) -> None:
    """Refuse padding for a layer of one length, or of another shape than the batch."""
    if config.any_length and padding.dtype == torch.bool and padding.shape == shape:
        return
    raise InputError(
        f"padding for a layer of any length, booleans of shape {list(shape)}",
        f"{padding.dtype} of shape {list(padding.shape)}, any_length={config.any_length}",
        "give True where a position holds no token, or no padding",
    )


def of_length(model: "SingleLayerTransformer", n: int) -> "SingleLayerTransformer":
    """The same layer for sequences of exactly n tokens."""
    c = model.config
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= c.tokens or (n < c.tokens and not c.any_length):
        found = f"a layer for any length up to {c.tokens}" if c.any_length else f"a layer for {c.tokens} tokens alone"
        raise InputError(
            f"the layer for {n!r} tokens", found, f"choose n up to {c.tokens}, of a layer with any_length=True"
        )
    own = model.state_dict()
    short = type(model)(replace(c, tokens=n, any_length=False), dtype=model.W_E.dtype).to(model.W_E.device)
    short.load_state_dict({name: own[name][:n] if name in LENGTHWISE else own[name] for name in short.state_dict()})
    return short.train(model.training)


def of_any_length(model: "SingleLayerTransformer", causal: bool = False) -> "SingleLayerTransformer":
    """The same weights for sequences of any length up to that of the layer; `causal` lets positions look back only."""
    longer = type(model)(replace(model.config, any_length=True, causal=causal), dtype=model.W_E.dtype)
    longer.load_state_dict(model.state_dict())
    return longer.train(model.training)
