"""What stood in the way when a polished layer is not certified, in plain words, and an estimate of what it would need."""

import math

import numpy as np

from .refinement import Refined
from .search import Search

HARDLY = 0.25  # a rate below it, as a power of the units, means that more units will not help


def told(found: Refined) -> tuple[str, ...]:
    """Notes for the report; none if all is well."""
    source, certificate = found.source, found.certificate
    notes = []
    if source.effort.interrupted.is_set():
        notes.append("interrupted: this is the best layer so far")
    if certificate.verdict == "CERTIFIED":
        return tuple(notes)
    tolerance = certificate.tolerance
    rounding = float(certificate.evidence.get("rounding", 0.0))
    if rounding > tolerance / 2:
        notes.append(
            f"rounding in {certificate.arithmetic} alone may reach {rounding:.2g}: so small a tolerance cannot be proved"
        )
    if source.rest.left:
        kinks = ", ".join(source.rest.left[:3])
        notes.append(f"kinks that are not sums of maxima of affine functions: {kinks}; they take many units")
    short = [s for s in source.searches.values() if s.best is not None and s.best.observed > s.goal]
    if source.observed > tolerance:
        names = source.target.domain.names
        notes += [_needed(s, _listed([names[j] for j in s.source.group])) for s in short]
    elif not math.isfinite(certificate.bound):
        notes.append(_unproved(found))
    if certificate.arithmetic == "float32" and math.isfinite(certificate.bound):
        notes.append(f"the smallest tolerance that this layer is certified for in float32 is {certificate.bound:.3g}")
    elif math.isfinite(certificate.bound) and source.observed <= tolerance and rounding <= tolerance / 2:
        notes.append(f"no error above the tolerance was seen, but no more than {certificate.bound:.3g} could be proved")
    return tuple(notes)


def _listed(names: list[str]) -> str:
    return ", ".join(names if len(names) <= 5 else [*names[:2], "…", names[-1]])


def _needed(search: Search, names: str) -> str:
    """Where one group's search ended, and what its rate suggests."""
    assert search.best is not None
    reached = f"the part in {names}: {search.best.units} units reach {search.best.observed:.2g} of {search.goal:.2g}"
    units, rate = needed_units(search.tried, search.goal)
    if rate < HARDLY:
        return f"{reached}, and more units hardly help (noise, a jump, a kink, many interacting variables, or rounding)"
    return f"{reached}; the rate seen so far suggests about {units:,} units (an estimate)"


def needed_units(tried: dict[int, float], goal: float) -> tuple[int, float]:
    """(units at which the error would meet the goal, rate): a power of the units, fitted to what was tried."""
    sizes = sorted(n for n, error in tried.items() if 0 < error < math.inf)
    if len(sizes) < 2:
        return 0, 0.0
    x, y = np.log(sizes), np.log([tried[n] for n in sizes])
    rate = -float(np.polyfit(x, y, 1)[0])
    if rate <= 0:
        return 0, rate
    least = min(y)
    ahead = (least - math.log(max(goal, 1e-300))) / rate
    return math.ceil(math.exp(min(float(x[int(np.argmin(y))]) + max(ahead, 0.0), math.log(1e12)))), rate


def _unproved(found: Refined) -> str:
    """Why there is no bound at all."""
    target = found.source.target
    if target.formula is None and target.modulus.kind == "estimated":
        return "nothing can be proved about a function that is only known at points: declare `lipschitz` or `modulus`"
    largest = max(map(len, found.source.parts))
    if largest > 4:
        return f"{largest} variables interact: the proof over so many was not finished within its budget"
    return "the proof was not finished within its budget: give `certify` more seconds"
