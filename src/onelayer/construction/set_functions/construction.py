"""Functions of sets: from a formula to one layer for every set size up to the largest, with a bound for all of them."""

import math
import time
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from ...common.checks import known_options, require_whole
from ...common.errors import InputError
from ...common.numbers import at_most, exact
from ...formula import evaluate
from ...layer.arithmetic import Arithmetic, arithmetic_of
from ...layer.facts import Facts
from ...layer.heads import shortfall
from ...sequence_layer import SequenceLayer
from ...target.domain import domain_of
from ...target.sequence_task import SequenceTask
from ...target.target import require_tolerance
from ..gallery.any_length.numbers import LONGEST
from ..gallery.entry import Ends
from ..gallery.tokens.program import MOST_LENGTH
from ..lemma import Lemma, sequence_layer_by_lemma
from .aggregates import EXAMPLE, SetFormula, composed_text, parse_set
from .design import Computed, Design, base_of, range_in_stream
from .error_bound import lemma_of
from .exponential_sums import ExponentialSum, Normalisation, exponential_sum
from .network_inputs import Input
from .profile import profile_of
from .ridges import ridges_of
from .terms import SumOfTerms, split, value_of_constant
from .weights_of_sets import transformer_of_set

SHARES = (0.5, 0.25, 0.75)  # of the tolerance for chords, tried in this order; heads get half of what is left
LARGEST_SINGLE, SHORTEST_SINGLE = 1e36, 1e-30  # of domains in float32: x̂, its scale and the inverse of that are normal
RIDGE_SHARE = 0.25  # of the tolerance for ridge polynomials, where there are any


@known_options
def set_function(
    formula: str | None = None,
    domain: Ends = (0.0, 1.0),
    tolerance: float = 1e-3,
    *,
    longest: int = LONGEST,
    dtype: str = "float64",
    rho: str | None = None,
    phi: str | None = None,
) -> SequenceLayer:
    """One layer for a function of sets of 1 to `longest` numbers in an interval, with a bound that holds for all of them.

    The formula uses sum(…), mean(…), max(…) and min(…) of a function of x over the set: "sqrt(mean(x^2))". With x outside of
    them there is an answer for every number of the set: "x - mean(x)". rho="sqrt(m)", phi="x^2" is rho(mean(phi(x))).
    """
    started, arithmetic = time.perf_counter(), arithmetic_of(dtype)
    require_tolerance(tolerance)
    require_whole("longest", longest, 1, MOST_LENGTH)
    f = parse_set(_text(formula, rho, phi))
    box = domain_of([domain])
    ends = box.lower[0], box.upper[0]
    frame = _frame(ends, arithmetic)
    parts = split(f, ends, longest)
    best: tuple[Design, Lemma] | None = None
    for share in SHARES:
        found = _designed(parts, ends, frame, longest, tolerance, share, arithmetic)
        if best is None or found[1].bound < best[1].bound:
            best = found
        if best[1].bound <= tolerance:
            break
    assert best is not None
    design, lemma = best
    _require_proved(lemma, f, longest, tolerance, arithmetic)
    task = SequenceTask(
        kind="set",
        text=f.canonical,
        longest=longest,
        ends=ends,
        answer="position" if f.each else "whole",
        parameters={
            "formula": f.canonical,
            "longest": longest,
            "tolerance": tolerance,
            "domain": list(ends),
            "dtype": arithmetic.name,
        },
    )
    facts = Facts(
        method="set function",
        construction="set",
        layout=design.readout,
        heads=_kinds(design),
        units=design.units,
        seconds=time.perf_counter() - started,
        story=_story(design),
    )
    sets = _sets(task, design, answers_of(f))
    return sequence_layer_by_lemma(transformer_of_set(design), task, lemma, facts, tolerance, sets)


def _text(formula: str | None, rho: str | None, phi: str | None) -> str:
    if formula is not None and rho is None and phi is None:
        return formula
    if formula is None and rho is not None and phi is not None:
        return composed_text(rho, phi)
    raise InputError(EXAMPLE, "not exactly one of a formula, or rho and phi together", "give one of the two")


def _frame(ends: tuple[float, float], arithmetic: Arithmetic) -> Normalisation:
    """x̂ in [−½, ½] or a little more, with numbers of the layer's type and a power of two as scale."""
    low, high = ends
    single = arithmetic.name == "float32"
    if single and not (high - low >= SHORTEST_SINGLE and max(abs(low), abs(high)) <= LARGEST_SINGLE):
        asked = f"a domain of at least {SHORTEST_SINGLE} in length and at most {LARGEST_SINGLE} in size in float32"
        raise InputError(asked, f"[{exact(low)}, {exact(high)}]", "choose another domain, or float64")
    shift = float(np.float32(low + (high - low) / 2)) if single else low + (high - low) / 2
    scale = 2.0 ** -math.ceil(math.log2(high - low))
    return Normalisation(shift, scale, max(high - shift, shift - low) * scale * (1 + 8 * arithmetic.u))


def _designed(
    parts: SumOfTerms,
    ends: tuple[float, float],
    frame: Normalisation,
    longest: int,
    tolerance: float,
    share: float,
    arithmetic: Arithmetic,
) -> tuple[Design, Lemma]:
    """A design that spends this share of the tolerance on chords, and its bound."""
    dtype = np.float64 if arithmetic.name == "float64" else np.float32
    ridged = [ridges_of(group, RIDGE_SHARE * tolerance / len(parts.groups)) for group in parts.groups]
    terms = [*parts.terms, *(term for ridges in ridged for term in ridges.terms)]
    left = tolerance * (1 - RIDGE_SHARE * bool(ridged))
    computed = []
    for term in terms:
        outer, base = term.outer, base_of(term, frame)
        profile = profile_of(outer, base, range_in_stream(term, frame), share * left / len(terms), dtype)
        computed.append(Computed(term, profile))
    room = left * (1 - share) / 2
    sharpness = 2.0
    sums: dict[Input, ExponentialSum] = {}
    used = dict.fromkeys(one for part in computed for one in part.term.inputs if one.source not in ("own", "mean"))
    for one in used:
        weight = math.fsum(_weight(part, one) for part in computed) or 1.0
        goal = room / len(used) / weight
        if one.summed:
            assert one.inner is not None
            per_number = goal / (longest if one.source == "sum" else 1)
            sums[one] = exponential_sum(one.inner, ends, frame, per_number, 4 * (longest + 50) * arithmetic.u)
        else:
            needed = shortfall(longest) / frame.scale / goal
            sharpness = max(sharpness, 2.0 ** math.ceil(math.log2(max(needed, 2.0))))
    constant = value_of_constant(parts.constant) + sum((ridges.constant for ridges in ridged), Fraction(0))
    design = Design(longest, frame, tuple(computed), sums, sharpness, constant, parts.each, arithmetic)
    return design, lemma_of(design, math.fsum(ridges.error for ridges in ridged))


def _weight(part: Computed, one: Input) -> float:
    """How much an error of an input counts for in a term."""
    forms = zip(part.term.weights, part.term.inputs, strict=True)
    return math.fsum(abs(w) for w, v in forms if v == one) * part.profile.steepest


def _require_proved(lemma: Lemma, f: SetFormula, longest: int, tolerance: float, arithmetic: Arithmetic) -> None:
    """A tolerance that is out of reach is refused with the numbers."""
    if lemma.bound <= tolerance:
        return
    terms = ", ".join(f"{name} {at_most(value, 2)}" for name, value in lemma.terms.items())
    raise InputError(
        f"{f.text} of up to {longest:,} numbers within {exact(tolerance)} in {arithmetic.name}",
        f"no proof below {at_most(lemma.bound, 3)} ({terms})",
        "ask for a larger tolerance or a smaller `longest`" + (", or use float64" if arithmetic.u > 1e-10 else ""),
    )


def answers_of(f: SetFormula) -> Callable[[np.ndarray], np.ndarray]:
    """f at sets of one size, [set, n] → [set] or [set, n], in double precision."""

    def answers(x: np.ndarray) -> np.ndarray:
        columns = []
        for aggregate in f.aggregates:
            values = np.asarray(evaluate(aggregate.inner, x.reshape(-1, 1)))[:, 0].reshape(x.shape)
            reduced = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min}[aggregate.kind]
            columns.append(np.broadcast_to(reduced(values, axis=1, keepdims=True), x.shape))  # type: ignore[operator]
        table = np.stack([x, *columns], axis=-1).reshape(-1, 1 + len(columns))
        found = np.asarray(evaluate(f.outer, table))[:, 0].reshape(x.shape)
        return found if f.each else found[:, 0]

    return answers


def _sets(
    task: SequenceTask, design: Design, answers: Callable[[np.ndarray], np.ndarray]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Sets of several sizes with their answers: random, all equal, at the ends, in two clusters."""
    rng, found = np.random.default_rng(0), []
    low, high = task.ends
    for n in sorted({1, 2, 3, 10, max(1, task.longest // 2), task.longest}):
        if n > task.longest:
            continue
        rows = int(np.clip(2_000_000 // (design.heads * n * (1 if design.readout == "output" else n)), 4, 400))
        unit = rng.random((rows, n))
        unit[::4] = unit[::4, :1]
        unit[1::4] = np.round(unit[1::4])
        unit[2::4] = np.where(rng.random(unit[2::4].shape) < 0.5, unit[2::4, :1], 1 - unit[2::4, :1])
        close = (1 + shortfall(n)) / design.sharpness  # where a smooth maximum is worst
        unit[3::8] = np.where(np.arange(n) == 0, unit[3::8, :1], unit[3::8, :1] - close).clip(0.0, 1.0)
        x = np.clip(low + (high - low) * unit, low, high)
        if design.arithmetic.name == "float32":
            x = x.astype(np.float32).astype(np.float64)
            x = np.where((x < low) | (x > high), float(np.float32(design.frame.shift)), x)
        found.append((x, answers(x)))
    return found


def _kinds(d: Design) -> tuple[tuple[str, int], ...]:
    plain = [one.source for one in d.plain]
    counts = {"exponential": len(d.exponential), "mean": plain.count("mean")}
    counts["max"] = plain.count("max") + plain.count("min")
    found = tuple((kind, count) for kind, count in counts.items() if count)
    return found or (("idle", 1),)


def _story(d: Design) -> str:
    """What the heads and the network do, in words."""
    said = list[str]()
    if d.exponential:
        betas = ", ".join(exact(beta) for beta in d.exponential)
        said.append(
            f"Exponential heads have the score βx̂ on the numbers (β = {betas}) and a much higher one on the anchor: what they"
            " say is proportional to Σ e^(βx̂_j) and to Σ x̂_j e^(βx̂_j) over the set. W^O combines that to the sums of f."
        )
    if any(one.source == "mean" for one in d.plain):
        said.append("One head gives all numbers the same score and outputs their mean.")
    for which, word in (("max", "largest"), ("min", "smallest")):
        if any(one.source == which for one in d.plain):
            said.append(f"One head attends to the {word} number (sharpness {d.sharpness:.3g}).")
    if not d.plain and not d.exponential:
        said.append("The head is idle.")
    said.append(f"{d.units} ReLUs compute piecewise linear functions of these.")
    if d.averaged:
        said.append("Averages: only the first position speaks, n times the answer, and the mean read-out divides by n.")
    elif d.readout == "mean":
        said.append("The mean read-out averages them over the numbers.")
    return " ".join(said)
