"""Weights made by hand, and what both engines prove of them."""

import math

import torch

import onelayer as ol
from onelayer.common.budget import Budget
from onelayer.model import program
from onelayer.model.on_tensors import OnTensors
from onelayer.proof.claim import Claim
from onelayer.proof.decision import prove_by


def blank(dtype, **changes):
    """A model of one number, without codes, whose weights are all 0."""
    shape = {"d_model": 6, "heads": 1, "d_k": 1, "d_v": 1, "ffn_width": 1, "code": "none", "memory_tokens": 1}
    shape |= {"tokens": 1, "features_in": 1, "features_out": 1} | changes
    model = ol.SingleLayerTransformer(ol.LayerConfig(**shape), dtype=dtype)
    with torch.no_grad():
        for name, t in model.state_dict().items():
            t.fill_(float(name == "scale"))
    return model.eval().requires_grad_(False)


class OneAfterAnother(OnTensors):
    """Sums from the left, one term after another, without fused operations: the same numbers on every processor."""

    def linear(self, x, name):
        W = getattr(self.model, f"W_{name}")
        y = x[..., :1] * W[0]
        for i in range(1, len(W)):
            y = y + x[..., i : i + 1] * W[i]
        return y + getattr(self.model, f"b_{name}") if name != "O" or self.config.projection_bias else y


def answers(model, x):
    """[program, input]: as torch computes them, with sums in whatever order this processor likes, and from the left."""
    batch = x[:, None, None]
    return torch.stack([model(batch), program.answer(OneAfterAnother(model, batch))])[:, :, 0, 0]


def proved(model, target):
    """The smallest bound of both engines, before anything that was observed can withdraw it."""
    found = [prove_by(method, model, Claim(target, 0.5), 0.0, Budget(0.4)) for method in ("analytic", "bisect")]
    return min((proof.bound for proof in found if proof is not None), default=math.inf)
