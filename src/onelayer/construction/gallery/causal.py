"""A causal max-head: attention that only looks back, by positional codes alone, in an ordinary softmax layer."""

import math

import torch

from ...layer.assemble.frame import power_of_4, write_identity
from ...layer.heads import MASKED
from ...model.transformer import SingleLayerTransformer
from .entry import Entry
from .one_head import one_head


def causal(it: Entry, beta: float) -> SingleLayerTransformer:
    """q_i = (1, code_i), k_j = √d_k·(βx_j, −S in the codes of all positions before j): score βx_j, or βx_j − S for j > i."""
    n = it.n
    d_k = power_of_4(n + 1)
    root = math.sqrt(d_k)
    model = one_head(n, (1, 1), n + 2, d_k, 1, 2, frame=it.frame)
    X, codes, ONE = 0, slice(1, n + 1), n + 1  # coordinates of the stream
    hidden = 2 * beta + 2 * MASKED  # more than scores can differ by
    later = torch.ones(n, n, dtype=torch.float64).triu(1)  # [query position, later position]
    with torch.no_grad():
        model.W_E[0, X] = model.b_E[ONE] = 1.0
        model.W_Q[0, ONE, 0] = 1.0
        model.W_Q[0, codes, codes] = torch.eye(n, dtype=torch.float64)
        model.W_K[0, X, 0] = root * beta
        model.W_K[0, codes, codes] = -root * hidden * later.T
        model.W_V[0, X, 0] = 1.0
        model.W_O[0, 0] = it.span
        write_identity(model, 1, torch.tensor([it.frame.shift[0]], dtype=torch.float64))
    return model
