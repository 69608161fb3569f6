"""A coarse layer, at once: memory tokens at fixed places and one least-squares solution, in about ten milliseconds.

For a page that shows something while the layer that was asked for is being built. Its size does not depend on the
tolerance, and nothing about it is proved.
"""

from ..layer.layer import Layer
from ..target.group_samples import GroupSamples
from .fitted_groups import combined, groups_to_fit
from .request import Request
from .solved.layer import quick_fits

COARSE_TOKENS = 64  # memory tokens of all groups together
POOL_POINTS = 600  # of a group, to look for the worst error on
NARROWNESS, PADDING = 0.35, 2.0  # of the tokens: what serves most functions


def coarse_layer(request: Request) -> Layer:
    """A layer of few memory tokens that follows f roughly."""
    target, groups, fitted = request.target, groups_to_fit(request.target), []
    for group in groups:
        source = GroupSamples(target, group, request.seed)
        pool, tokens = source.sample(POOL_POINTS, 99 + request.seed), max(2, COARSE_TOKENS // len(groups))
        fitted.append(quick_fits(source, "memory", tokens, pool, ((NARROWNESS, PADDING),))[0][1])
    return combined(target, fitted, "memory")
