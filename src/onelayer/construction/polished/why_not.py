"""Why a polished layer is not certified, in plain words, and an estimate of what it would take."""

import math

from ...common.numbers import at_least, at_most
from ..forecast import extrapolated
from .refine import Refined
from .search import UnitSearch

UNBELIEVABLE = 10**5  # units: a larger estimate only says that the error no longer falls


def explain_failure(found: Refined) -> tuple[str, ...]:
    """Notes for the report; none if the layer is certified and nothing was interrupted."""
    candidate, certificate = found.candidate, found.certificate
    notes = []
    if candidate.budget.interrupted.is_set():
        notes.append("interrupted: this is the best layer so far")
    if certificate.verdict == "CERTIFIED":
        return tuple(notes)
    slope, tolerance = certificate.slope, certificate.tolerance
    if slope is not None and not slope.holds and certificate.bound <= tolerance:
        found_slopes = f"the values are proved; the slopes are not: bound {slope}"
        return (*notes, f"{found_slopes}; allow a larger error of slopes, or a smaller one of values")
    rounding = certificate.evidence.rounding or 0.0
    if rounding > tolerance / 2:
        alone = f"rounding in {certificate.arithmetic} alone may reach {at_most(rounding, 2)}"
        notes.append(f"{alone}: a tolerance this small cannot be proved")
    if candidate.remainder.error > tolerance / 2:
        off = at_most(candidate.remainder.error, 2)
        notes.append(f"the sharpest heads that {certificate.arithmetic} allows are off by {off} at kinks")
    if candidate.remainder.kinks_left:
        kinks = ", ".join(candidate.remainder.kinks_left[:3])
        notes.append(f"kinks that are not sums of maxima of affine functions: {kinks}; they take many units")
        if "where(" in kinks and not candidate.target.margin:
            notes.append(
                "if f jumps there, no layer is close to it: `margin` leaves the points near a jump out of the claim"
            )
    if candidate.observed > tolerance:
        names = candidate.target.domain.names
        short = [s for s in candidate.searches.values() if s.best is not None and s.best.observed > s.goal]
        notes += [_needed(s, _listed([names[j] for j in s.source.group])) for s in short]
    elif certificate.observed > tolerance:
        notes.append(_missed(found))
    elif not math.isfinite(certificate.bound):
        notes.append(_unproved(found))
    proved = at_most(certificate.bound, 3) if math.isfinite(certificate.bound) else None
    single = certificate.arithmetic == "float32"
    if proved and not single and certificate.observed <= tolerance and rounding <= tolerance / 2:
        notes.append(f"no error above the tolerance was seen, but no more than {proved} could be proved")
    elif proved:
        where = " in float32" if single else ""
        notes.append(f"the smallest tolerance that this layer is certified for{where} is {proved}")
    return tuple(notes)


def _listed(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 5 else [*names[:2], "…", names[-1]])


def _needed(search: UnitSearch, names: str) -> str:
    """Where one group's search ended, and what the errors so far suggest."""
    assert search.best is not None
    units, data = search.best.units, search.source.target.data
    count = f"{units} unit{'s' * (units != 1)}"
    error, goal = at_least(search.best.observed, 2), at_least(search.goal, 2)
    reached = f"the part in {names}: {count} reach an error of {error}, where {goal} was the aim"
    if search.exactly:
        return f"{reached}, with the given number of units"
    if data is not None and units >= search.most:
        return f"{reached}, as many units as {len(data.fitted):,} samples can tell apart"
    needed = units_needed(search)
    if needed is None:
        return f"{reached} when the time was up: give it more `seconds`"
    if needed > UNBELIEVABLE:
        return f"{reached}, and more units hardly help (noise, a jump, a kink, many interacting variables, or rounding)"
    return f"{reached}; the errors so far suggest about {needed:,} units (an estimate): give it more `seconds`"


def units_needed(search: UnitSearch) -> int | None:
    """An estimate from the sizes tried, made as in `forecast`; None if there are too few."""
    seen = sorted((units, error) for units, error in search.tried.items() if 0 < error < math.inf)
    if len(seen) < 3:
        return None
    return extrapolated(seen, search.goal, lambda n: n ** (1 / len(search.source.group)))


def _missed(found: Refined) -> str:
    """The error is small at the samples, but not at other points."""
    error = at_least(found.certificate.observed, 3)
    if found.candidate.target.data is not None:
        return f"the fitted samples are met, but held-out ones are missed by {error}: more samples are needed"
    between = f"an error of {error} was found between them"
    return f"the samples are met, but {between}: f has a feature too narrow for them"


def _unproved(found: Refined) -> str:
    """Why there is no bound at all."""
    target = found.candidate.target
    if target.formula is None and target.modulus.kind == "estimated":
        return "nothing can be proved about a function that is only known at points: declare `lipschitz`"
    largest = max(map(len, found.candidate.fitted), default=target.dimension)
    if largest > 4:
        return f"{largest} variables interact: the proof over that many was not finished in time"
    return "the proof was not finished in time: give it more seconds, here or with `certify`"
