"""method="polished": the fewest units that are certified within the tolerance, keys and offsets optimised too.

    groups → for each group and family: search (start, polish, grow, prune) → one layer → certify
           → on a failed certificate the points of the worst boxes go back into the samples, and it is polished again

An additive target is polished group by group (`candidate.py`); groups may overlap where a formula's terms do.
`construction="auto"` begins with the family that is likely to be cheaper and then tries the other, with no more units than
would take its place (`layer_size.py`); in the same way disjoint groups are tried after overlapping ones.
"""

from ...common.errors import InputError
from ...proof.analytic.summand import MOST_WITH_HEADS
from ...target.group_samples import GroupSamples
from ..fitted_groups import splittings
from ..kinks.remainder import Remainder, remainders_of
from ..request import SEARCH_TIME, Request
from .candidate import Candidate
from .layer_size import MOST_UNITS, Size, most_units

FAR_MORE = 2.0  # times the parameters found: a family that is expected to take more than this is not tried
NEAR = 1.25  # times the parameters of memory tokens: gates that are expected to take no more come first, being fewer
FIRST_FAMILY_TIME = 0.6  # share of the seconds for the first of two families
DETAIL_SHARE = 0.1  # share of the tolerance: smaller changes of f near infinite slopes need no samples


def polished(
    request: Request, certified: Size | None = None, remainders: dict[str, Remainder] | None = None
) -> list[Candidate]:
    """The polished families, the preferred one first: within the goal and of the better size, else less error.

    With `certified`, the size of another layer, only those that would take its place. `remainders` are found if not given.
    """
    budget = request.budget.share(SEARCH_TIME)
    found: list[Candidate] = []
    remainders = remainders or remainders_of(request)
    share = FIRST_FAMILY_TIME if len(remainders) > 1 else 1.0
    ways = [
        Candidate(request, family, remainder, sources, budget)
        for family, remainder in remainders.items()
        for sources in _groupings(remainder, request)
    ]
    best = certified
    for candidate in _in_order(ways):
        if found and budget.over():
            break
        most = most_units(request.target, candidate.family, candidate.sources, best) if best else MOST_UNITS
        wide = max((len(s.group) for s in candidate.sources), default=0) > MOST_WITH_HEADS
        candidate.budget = budget.share(1.0 if found else share)
        met = any(p.observed <= p.goal for p in found)
        hopeless = best is not None and met and candidate.forecast > FAR_MORE * best.parameters
        if most and not hopeless and not (found and wide):
            candidate.run(most, limited=best is not None)
            reached = candidate.observed <= candidate.goal
            preferred = reached and (best is None or candidate.size.replaces(best))
            best = candidate.size if preferred else best
            found = [candidate, *found] if preferred else [*found, candidate]
    return found if best else sorted(found, key=lambda p: p.observed)


def _in_order(ways: list[Candidate]) -> list[Candidate]:
    """The family that is likely to be cheaper first: gates where most groups are single coordinates, else as pilots say."""
    families = {way.family: way for way in reversed(ways)}  # the first way of each
    if len(families) < 2 or ways[0].request.units is not None or not all(way.sources for way in ways):
        return ways
    if all(2 * sum(len(s.group) for s in way.sources) < 3 * len(way.sources) for way in families.values()):
        return sorted(ways, key=lambda way: way.family)  # gates before memory tokens
    if max(len(s.group) for way in families.values() for s in way.sources) > MOST_WITH_HEADS:
        return ways
    expected = {family: way.expected() for family, way in families.items()}
    for way in ways:
        way.forecast = expected[way.family]
    return sorted(ways, key=lambda way: way.forecast * (NEAR if way.family == "memory" else 1.0))


def _groupings(remainder: Remainder, request: Request) -> list[list[GroupSamples]]:
    """The ways to split the remainder into groups; those with a unit for each where units are given."""
    if remainder.nothing_left:
        return [[]]
    windows = request.attention == "local" and request.layout != "token"
    detail = DETAIL_SHARE * request.fit_tolerance
    ways = splittings(remainder.target, request.seed, remainder.ratios, detail, finest=windows)[
        : 1 if windows else None
    ]
    if request.units is None:
        return ways
    found = [way for way in ways if len(way) <= request.units]
    if not found:
        raise InputError(f"units={request.units}", f"{len(ways[-1])} groups of coordinates", "ask for a unit per group")
    return found
