"""Memory tokens of one head, with nothing beside them: no linear part, no groups of variables, no heads for kinks."""

from ...target.group_samples import GroupSamples
from ..fitted_groups import FittedGroup
from ..kinks.remainder import Remainder
from ..polished.candidate import Candidate
from ..polished.families import MemoryFamily
from ..polished.layer import DETAIL_SHARE
from ..request import SEARCH_TIME, Request


class TokensAlone(Candidate):
    """The search for the fewest tokens of one head that are all there is."""

    def without_units(self, source: GroupSamples, share: float) -> FittedGroup | None:
        return None

    def family_for(self, source: GroupSamples) -> MemoryFamily:
        return MemoryFamily(len(source.group), graded=bool(source.faces()), straight=False)


def tokens_alone(request: Request) -> TokensAlone:
    """The candidate for a request, fitted in all variables at once."""
    target, whole = request.target, tuple(range(request.target.dimension))
    source = GroupSamples(target, whole, request.seed, detail=DETAIL_SHARE * request.fit_tolerance)
    budget = request.budget.share(SEARCH_TIME)
    found = TokensAlone(request, "memory", Remainder(target, request.frame), [source], budget)
    found.run()
    return found
