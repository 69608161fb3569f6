"""Functions of one coordinate by sparsemax attention: a polyline with well placed knots, a ramp for every piece but the first.

A ramp over a piece from knot k to the next, of length l, is (u − k)/l, cut off at 0 and 1. With the slope of the first piece in
the linear part, every other piece adds (its slope − the first)·l times its ramp: n pieces take n − 1 units, exactly.
"""

import numpy as np
import torch

from ...target.group_samples import GroupSamples
from ..composed.curve import Polyline, best_polyline, fitted_polyline, samples_of
from .fit import Fit

SAMPLING = 0.1  # share of the range of f: the error down to which f is sampled where units are given, times 1/units²
FEWER = 0.85  # share of the pieces found, from which on fewer are tried


def polyline_fit(source: GroupSamples, error: float, most: int, units: int | None = None) -> Fit | None:
    """The group within `error` with at most this many units, or as well as these many units can; None if that is too few.

    None for data, several outputs and several coordinates too.
    """
    target, group = source.target, source.group
    if target.data is not None or target.domain.within or target.outputs != 1 or len(group) != 1:
        return None
    ratio = 1.0 if source.ratios is None else source.ratios[group[0]]

    def h(u: np.ndarray) -> np.ndarray:
        unit = np.full((len(u), target.dimension), 0.5)
        unit[:, group[0]] = np.clip(u / ratio + 0.5, 0.0, 1.0)
        return source.values(target.domain.points(unit))[:, 0].numpy()

    if units is not None:
        error = SAMPLING * float(np.ptp(h(np.linspace(-ratio / 2, ratio / 2, 65)))) / (1 + units) ** 2 or error
    drawn = samples_of(h, -ratio / 2, ratio / 2, error)
    if drawn is None:
        return None
    found = fitted_polyline(*drawn, error, most + 1) if units is None else best_polyline(*drawn, units + 1)
    if found is None:
        return None
    pieces = len(found.knots) - 1  # perhaps a few too many: their number is raised by a tenth at a time
    few = () if units is not None else range(int(FEWER * pieces), pieces, max(1, pieces // 50))
    fewer = (best_polyline(*drawn, n) for n in few if n >= 1)
    return _ramps(next((line for line in fewer if line.error <= error), found))


def _ramps(line: Polyline) -> Fit:
    """The polyline as a fit of `RampFamily`: scores 2(u − k)/l − 1, coefficients of 1, u and the ramps."""
    knots, slopes = torch.from_numpy(line.knots), torch.from_numpy(line.slopes)
    begin, length = knots[1:-1], knots.diff()[1:]
    c = torch.cat([line.values[0] - slopes[:1] * knots[0], slopes[:1], (slopes[1:] - slopes[0]) * length])
    return Fit(torch.stack([2 / length, -2 * begin / length - 1], dim=1), c[:, None], line.error)
