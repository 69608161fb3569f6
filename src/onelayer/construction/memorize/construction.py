"""`memorize`: one layer that fits any finite dataset exactly, with proof.

    samples → normalisation → projection to one number → polygon through N samples, N − 1 ReLUs → model → residual, proved

"Exactly" means up to a residual that is proved for every stored sample, rounding included; labels are right if it is below ½.
Nothing is claimed between the samples or elsewhere (`docs/build/memorize.md`).

The projection: one direction u along which samples are far enough apart, or agree where they are close.

Random directions are drawn, and each is judged by what the proof (`residual`) will say of it, up to a constant that all share:

    γ_(N/2+2)·G + δ·L      G the sum of |a_i||z − k_i| at the outermost samples, L the steepest slope, δ the rounding of z

The directions are drawn from a private generator; the smaller the dataset, the more of them are tried.
"""

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ...approximation import Approximation
from ...common.checks import known_options, require_seed
from ...common.errors import InputError
from ...common.numbers import at_most, counted, exact
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.assemble.frame import Frame
from ...layer.facts import Facts
from ...layer.heads import MASKED
from ...model.transformer import SingleLayerTransformer
from ...target.decoding import DECODING_MARGIN
from ...target.description import Description
from ...target.domain import domain_of
from ...target.target import require_tolerance
from ..lemma import Lemma, approximation_by_lemma
from .dataset import Dataset, dataset_of
from .interpolation import Interpolation, interpolate, slopes_between
from .residual import Residual, gamma, residual_of

WORK = 2**26  # numbers that all trials together may look at: about two seconds
TRIALS = (16, 512)  # the fewest and the most directions tried
STEEPEST_SCALE = {torch.float64: 500, torch.float32: 60}  # powers of 2: what underflows stays below rounding


def frame_around(samples: Dataset, arithmetic: Arithmetic) -> Frame:
    """Normalisation of every coordinate to about [−½, ½], by powers of 2; coordinates that never change become 0."""
    low, high = samples.x.min(axis=0), samples.x.max(axis=0)
    _, exponent = np.frexp(high - low)
    scale = np.ldexp(1.0, np.where(high > low, np.minimum(-exponent, STEEPEST_SCALE[arithmetic.dtype]), 0))
    shift = torch.from_numpy(low + (high - low) / 2).to(arithmetic.dtype).double()
    return Frame(tuple(shift.tolist()), tuple(scale.tolist()))


def direction_of(
    samples: Dataset, frame: Frame, arithmetic: Arithmetic, seed: int
) -> tuple[Float[np.ndarray, "token feature"], int]:
    """(the best of many random directions, how many were tried); Σ|u| is about 1."""
    hat = frame(torch.from_numpy(samples.x).to(arithmetic.dtype)).double().numpy()
    N, D = hat.shape
    trials = min(max(WORK // (N * (8 * samples.y.shape[1] + D)), TRIALS[0]), TRIALS[1])
    rng = np.random.default_rng(seed)
    best, least = np.zeros(D), math.inf
    for start in range(0, trials, TRIALS[0]):
        drawn = rng.standard_normal((min(TRIALS[0], trials - start), D))
        drawn /= np.abs(drawn).sum(axis=1, keepdims=True)
        drawn = torch.from_numpy(drawn).to(arithmetic.dtype).double().numpy()
        z = torch.from_numpy(drawn @ hat.T).to(arithmetic.dtype).double().numpy()
        for u, projected in zip(drawn, z, strict=True):
            judged = forecast(projected, samples, arithmetic)
            if judged < least or not best.any():
                best, least = u, judged
    return best.reshape(samples.tokens), trials


def forecast(z: Float[np.ndarray, " sample"], samples: Dataset, arithmetic: Arithmetic) -> float:
    """Roughly the residual that the projections z lead to; infinite where samples with different answers coincide."""
    order = np.argsort(z)
    knots, y = z[order], samples.y[order]
    N, c = len(z), len(z) // 2
    if N == 1:
        return 0.0
    if ((np.diff(knots) == 0) & (np.diff(y, axis=0) != 0).any(axis=1)).any():
        return math.inf
    slope = slopes_between(knots, y)
    turn = np.abs(np.diff(slope, axis=0))
    right = (knots[-1] - knots[c + 1 : -1]) @ turn[c:] + np.abs(slope[c : c + 1]).sum(axis=0) * (knots[-1] - knots[c])
    left = (knots[1:c] - knots[0]) @ turn[: c - 1] + np.abs(slope[c - 1]) * (knots[c] - knots[0])
    n, d = samples.tokens
    G = float(np.maximum(left, right).max())
    delta = float(gamma(np.array(d + n), arithmetic.u)) * float(np.abs(knots[[0, -1]]).max())
    return float(gamma(np.array(N // 2 + 2), arithmetic.u)) * G + delta * float(np.abs(slope).max())


LABEL_TOLERANCE = 0.49  # scores within less than ½ of 0 and 1 leave no doubt about the label
STATEMENT = (
    "at every stored sample |T(x) − y| is at most the sum of: how far the polygon of the stored weights is from y at the "
    "sample's projection; its steepest slope near there times the rounding of the projection; the rounding of the feed-forward "
    "sum. For products and sums in any order, exp(0) = 1 and exp(−800) = 0. The terms are those of the worst sample"
)


@known_options
def memorize(
    X: Any,
    Y: Any,
    *,
    tolerance: float | None = None,
    labels: bool | None = None,
    names: Sequence[str] | None = None,
    rows: Sequence[str] | None = None,
    seed: int = 0,
    dtype: str = "float64",
) -> Approximation:
    """One layer that stores the samples (X, Y), with a proof for each of them.

    X is [N, D] (vectors, each one token) or [N, n, d] (sequences). Y are labels (whole numbers, words, truth values; `answer`
    gives them back) or real numbers of any shape [N, …]; `labels` overrides what their type says. Labels are proved to be
    right. Real numbers are within `tolerance` or, if none is given, within the residual that is proved. Equal inputs with
    different answers are refused, and so are samples too close to each other for the float type.

    `names` are those of the variables (x1, x2, … by default), `rows` what messages call the samples (row 0, row 1, …).
    """
    start = time.perf_counter()
    arithmetic = arithmetic_of(dtype)
    require_seed(seed)
    if tolerance is not None:
        require_tolerance(tolerance)
    samples = dataset_of(X, Y, labels, arithmetic, rows)
    if samples.decoding is not None and tolerance is not None and tolerance >= DECODING_MARGIN:
        raise InputError("a tolerance below ½ for labels", exact(tolerance), "leave it out")
    frame = frame_around(samples, arithmetic)
    with np.errstate(over="ignore", invalid="ignore"):  # weights that overflow get no bound
        direction, trials = direction_of(samples, frame, arithmetic, seed)
        model, f, t = _model(samples, frame, direction, arithmetic.dtype)
    residual = residual_of(model, samples.x, samples.y)
    lemma = Lemma(STATEMENT, residual.worst())
    most, why = _largest_accepted(samples, tolerance)
    if not (lemma.bound <= most and np.isfinite(lemma.bound)):
        raise _too_close(samples, residual, t, f"at most {exact(most)}{why}", dtype)
    allowed = lemma.bound if tolerance is None and samples.decoding is None else most
    facts = Facts(
        method="memorized",
        construction="read",
        layout="token",
        heads=(("read", samples.tokens[0]),),
        units=0,
        total=float(np.abs(f.values).sum(axis=0).max()),
        seconds=time.perf_counter() - start,
        seed=int(seed),
        notes=(f"{counted(len(f.knots), 'ReLU')}; the best of {trials:,} random directions",),
        amplitude=float((np.abs(f.values) * np.abs(f.knots[:, None] - np.mean(t))).sum(axis=0).max()),
        largest_score=MASKED,
        story="head j reads token j; together they project the input to one number, in which the FFN interpolates",
    )
    domain = f"the {len(samples.x):,} stored samples, at which alone it holds"
    description = _description(samples, names)
    return approximation_by_lemma(model, description, lemma, facts, allowed, (samples.x, samples.y), domain)


def _largest_accepted(samples: Dataset, tolerance: float | None) -> tuple[float, str]:
    """(the largest residual that is accepted, why that one)."""
    if tolerance is not None:
        return float(tolerance), ""
    if samples.decoding is not None:
        return LABEL_TOLERANCE, ""
    spread = float(np.ptp(samples.y, axis=0).max())
    return (spread / 2, " (what a constant achieves)") if spread else (np.inf, "")


def _model(
    samples: Dataset, frame: Frame, direction: np.ndarray, dtype: torch.dtype
) -> tuple[SingleLayerTransformer, Interpolation, np.ndarray]:
    """(the layer, its numbers before rounding to dtype, the projections of the samples)."""
    hat = frame(torch.from_numpy(samples.x).to(dtype)).double().numpy()
    z = torch.from_numpy(hat @ direction.ravel()).to(dtype).double().numpy()
    order = np.argsort(z, kind="stable")
    f = interpolate(frame, direction, z[order], samples.y[order])
    return f.model(dtype), f, z


def _description(samples: Dataset, names: Sequence[str] | None) -> Description:
    """The description that the folder keeps."""
    N, D = samples.x.shape
    if names is not None and (len(names) != D or len(set(names)) < D):
        raise InputError(f"{D} distinct names of variables", f"{list(names)[:8]}", "name every variable once")
    box = samples.box
    domain = domain_of(box if names is None else dict(zip(names, box, strict=True)), most=None)
    what = "labels" if samples.decoding is not None else "values"
    return Description(
        kind="samples",
        text=f"{N:,} stored samples of {D} variable{'s' * (D > 1)} with {what}",
        domain=domain,
        shape=samples.shape,
        output_shape=samples.output_shape,
        parameters={"given": samples.given, "distinct": N, "sha256": samples.sha256},
        decoding=samples.decoding,
    )


def _too_close(samples: Dataset, residual: Residual, t: np.ndarray, accepted: str, dtype: str) -> InputError:
    """The refusal, naming the neighbours along the projection between which the polygon is steepest."""
    asked = f"a proved residual of {accepted} at all {len(samples):,} samples in {dtype}"
    found = at_most(float(residual.total.max()), 3)
    if len(samples) > 1:
        order = np.argsort(t, kind="stable")
        rise = np.abs(np.diff(samples.y[order], axis=0)).max(axis=1)
        gap = np.diff(t[order])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            p = int(np.nanargmax(np.where(rise > 0, rise / gap, 0.0)))
        i, j = sorted((int(order[p]), int(order[p + 1])))
        apart = np.abs(samples.x[i] - samples.x[j]).max()
        found += f"; closest are {samples.name(i)} and {samples.name(j)}, {apart:.3g} apart, projected {gap[p]:.3g}"
    change = "use dtype='float64', " if dtype == "float32" else ""
    return InputError(asked, found, f"{change}leave such samples out, store fewer, or allow a larger residual")
