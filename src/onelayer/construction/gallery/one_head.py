"""The empty layer that most of the gallery fills in: one head, and inputs that are taken as they are."""

from ...layer.assemble.frame import Frame, blank
from ...model.config import Code, LayerConfig, Readout
from ...model.transformer import SingleLayerTransformer


def one_head(
    tokens: int,
    features: tuple[int, int],
    d_model: int,
    d_k: int,
    d_v: int,
    ffn_width: int,
    *,
    code: Code = "one-hot",
    anchor_tokens: int = 0,
    output_tokens: int = 0,
    frame: Frame | None = None,
    residual: bool = False,
) -> SingleLayerTransformer:
    """A model of zeros with (in, out) features; read at its output token if there is one, else at every position."""
    readout: Readout = "output" if output_tokens else "position"
    config = LayerConfig(
        tokens=tokens, features_in=features[0], features_out=features[1], d_model=d_model, heads=1, d_k=d_k, d_v=d_v,
        ffn_width=ffn_width, code=code, anchor_tokens=anchor_tokens, output_tokens=output_tokens, residual=residual,
        readout=readout,
    )  # fmt: skip
    sides = tokens * features[0]
    return blank(config, frame or Frame((0.0,) * sides, (1.0,) * sides))
