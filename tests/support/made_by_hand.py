"""Weights made by hand, and what both engines prove of them."""

import math

import torch

import onelayer as ol
from onelayer.common.budget import Budget
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


def proved(model, target):
    """The smallest bound of both engines, before anything that was observed can withdraw it."""
    found = [prove_by(method, model, Claim(target, 0.5), 0.0, Budget(0.4)) for method in ("analytic", "bisect")]
    return min((proof.bound for proof in found if proof is not None), default=math.inf)
