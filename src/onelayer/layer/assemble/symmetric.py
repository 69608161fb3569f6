"""The symmetric form: no positional codes, the same embedding at every position, an anchor and an output token.

Stream of a data token: (x_j, 1, 0, 0); anchor token (0, 0, 1, 0); output token (0, 0, 0, 1).
"""

import torch

from ...model.config import LayerConfig
from ...model.transformer import SingleLayerTransformer
from ..heads import MASKED
from ..symmetric import SymmetricLayer
from .frame import Frame, blank, write_identity

X, DATA, ANCHOR, OUTPUT = range(4)  # coordinates of the stream


def assemble_symmetric(layer: SymmetricLayer, frame: Frame) -> SingleLayerTransformer:
    """The model. The frame is that of a box whose sides are all equal."""
    heads, coefficients = layer.heads, layer.coefficients
    m, H = layer.outputs, len(heads)
    config = LayerConfig(
        tokens=layer.dimension,
        features_in=1,
        features_out=m,
        d_model=max(4, m),
        heads=H,
        d_k=1,
        d_v=m,
        ffn_width=2 * m,
        code="none",
        anchor_tokens=1,
        output_tokens=1,
        residual=False,
        readout="output",
    )
    model = blank(config, frame)
    gates = heads.anchored
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[DATA] = 1.0
        model.S[0, ANCHOR] = model.S[1, OUTPUT] = 1.0
        model.W_Q[:, [DATA, ANCHOR, OUTPUT], 0] = 1.0
        model.W_K[:, X, 0] = -heads.sharpness
        model.W_K[:, DATA, 0] = heads.sharpness * heads.offsets
        lowest = -heads.sharpness.abs() * (heads.offsets.abs() + 0.51)  # at most the score of any data token
        model.W_K[:, ANCHOR, 0] = torch.where(gates, 0.0, lowest - MASKED)
        model.W_K[:, OUTPUT, 0] = torch.where(gates, -MASKED, lowest - MASKED)
        model.W_V[:, X] = coefficients[1 : 1 + H]
        model.W_V[gates, ANCHOR] = coefficients[1 + H :]
        model.W_O[:, :m] = torch.eye(m, dtype=torch.float64).repeat(H, 1)
        write_identity(model, m, coefficients[0])
    return model
