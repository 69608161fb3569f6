"""Layers of one head whose answer is one attention weight: with a query of 1 and the keys βx and 0 they are known functions."""

from dataclasses import replace

import torch

import onelayer as ol
from onelayer.layer.facts import Facts

LOGISTIC = "1/(1 + exp(-4*x1))"
PHI = "(exp(min(4*x1, 0)) + max(4*x1, 0))"
FORMULAS = {  # α of the data token, β = 4
    "softmax": LOGISTIC,
    "sigmoid": LOGISTIC,
    "local": LOGISTIC,
    "sparsemax": "min(max((1 + 4*x1)/2, 0), 1)",
    "linear": f"{PHI}/(1 + {PHI})",
}


def one_weight(attention: str, dtype: torch.dtype = torch.float64) -> ol.SingleLayerTransformer:
    """T(x) = α of the data token, beside an anchor."""
    config = ol.LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=4, heads=1, d_k=1, d_v=1, ffn_width=1, anchor_tokens=1,
        attention=attention,
    )  # fmt: skip
    model = ol.SingleLayerTransformer(config, dtype=dtype).eval()
    with torch.no_grad():
        for name, t in model.named_parameters():
            if name != "P":
                t.zero_()
        model.W_E[0, 0] = 1.0  # the stream: x, the code of the data token, the anchor, α
        model.S[0, 2] = 1.0
        model.W_Q[0, 1, 0] = model.W_V[0, 1, 0] = model.W_O[0, 3] = model.W_R[3, 0] = 1.0
        model.W_K[0, 0, 0] = 4.0
    return model


def one_weight_layer(attention: str) -> ol.Approximation:
    """The same with its formula and a certificate."""
    model, target = one_weight(attention), ol.Target(FORMULAS[attention], [(-1, 1)])
    facts = Facts("by hand", "", "token", (("weight", 1),), 1)
    return ol.Approximation.of(model, target, ol.certify(model, target, 1e-3), facts)


def with_attention(layer: ol.Approximation, attention: str) -> ol.Approximation:
    """The same weights and certificate with another attention."""
    model = ol.SingleLayerTransformer(replace(layer.model.config, attention=attention))
    model.load_state_dict(layer.model.state_dict())
    return replace(layer, model=model.eval())
