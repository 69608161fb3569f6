"""Compare construction with training and with peers on one target, in one run, with the same number of parameters (±10 %).

    constructed      `build` at the tolerance; its number of parameters is the budget of all others
    trained          the same kind of layer by gradient descent, one row per optimiser (`train`)
    warm-started     the constructed layer, trained further
    peers            stock Transformer, perceptrons, KAN, random features, Chebyshev interpolation (`peers`)

All are judged at the same dense test points, faces and corners included, and each at the points that an ascent from its own
worst ones finds. Seconds are processor seconds. Only a certificate is a bound; all other errors are observed.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..approximation import Approximation
from ..common.checks import is_number, is_whole, known_options, require_seconds
from ..common.errors import InputError
from ..common.numbers import at_least, at_most, exact
from ..common.progress import Progress
from ..common.table import Table
from ..pipeline import build, certify
from ..target.points import fitting_points
from ..target.target import Target, require_tolerance, target_of
from ..training.descent import train
from ..training.recipe import Recipe
from ..training.start import StartingLayer, prepare
from .matched_size import layer_size
from .peers import PEERS, Peer
from .peers.task import Function, held_out_points, observed_error

PILOT_STEPS = 60  # to measure how long a step takes
SEEDS = 2  # from which a layer of a given size is trained: small ones depend on luck
VALIDATIONS = 50  # in one training
Timed = tuple[Approximation, float]  # and the processor seconds it took


@dataclass(frozen=True)
class Entrant:
    """One way to approximate the target. Errors are NaN if it did not run; the bound is infinite if nothing is proved."""

    name: str
    kind: str  # "constructed", "trained", "warm-started" or "peer"
    parameters: int = 0
    seconds: float = 0.0
    observed: float = math.nan
    rmse: float = math.nan
    bound: float = math.inf
    points_per_second: float = 0.0
    note: str = ""
    size: int = 0  # heads, width or samples, where the comparison is about these

    @property
    def cells(self) -> tuple[object, ...]:
        if math.isnan(self.observed):
            return (self.name, "–", "–", "–", "–", "–", "–", self.note)
        costs, speed = (f"{self.parameters:,}", f"{self.seconds:.1f}"), f"{self.points_per_second:.2g}"
        errors = (at_least(self.observed, 2), f"{self.rmse:.2g}", self.bound_text)
        return (self.name, *costs, *errors, speed, self.note)

    @property
    def bound_text(self) -> str:
        """The bound as text, rounded up; a dash where nothing is proved."""
        return at_most(self.bound, 3) if math.isfinite(self.bound) else "–"


COLUMNS = ("", "parameters", "seconds", "observed error", "RMSE", "bound (proved)", "points/s", "note")


@dataclass(frozen=True)
class Comparison:
    """All entrants on one target; on request, how errors fall with heads, with the width of the FFN and with samples."""

    target: str
    domain: str
    tolerance: float
    entrants: tuple[Entrant, ...]
    growth: tuple[Entrant, ...] = ()
    samples: tuple[Entrant, ...] = ()
    condition: str = ""  # what was declared about f and all bounds rest on

    @property
    def title(self) -> str:
        proved = f"; bounds are proved if {self.condition}" if self.condition else ""
        return f"{self.target}, tolerance {exact(self.tolerance)}{proved}"

    def table(self) -> Table:
        return Table(self.title, COLUMNS, [e.cells for e in self.entrants])

    def tables(self) -> list[Table]:
        """The comparison, then error against size and against the number of samples, if requested."""
        more = [("Error against size", self.growth), ("Error against the number of samples", self.samples)]
        return [self.table(), *(Table(title, COLUMNS, [e.cells for e in rows]) for title, rows in more if rows)]

    def best(self, *kinds: str) -> Entrant | None:
        """The entrant of these kinds with the smallest observed error."""
        ran = [e for e in self.entrants if e.kind in kinds and not math.isnan(e.observed)]
        return min(ran, key=lambda e: e.observed, default=None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


@known_options
def compare(
    function: "str | Callable[[Any], Any] | Target",
    domain: Any = None,
    tolerance: float = 1e-3,
    *,
    seconds: float = 20.0,
    optimizers: Sequence[str] = ("adam", "momentum", "sgd"),
    peers: bool = True,
    prove: float = 0.0,
    growth: Sequence[int] = (),
    samples: Sequence[int] = (),
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Construction, training and peers with the same number of parameters (±10 %); at most `seconds` for each training.

    Pass a `Target` to declare more about the function than its domain. `prove` > 0 spends this many seconds on a certificate
    for each trained layer. `growth=(1, 2, 4, …)` adds trained layers with this many heads, trained layers with an FFN of twice
    that width, and constructed layers of this many units; `samples=(100, 1000, …)` adds layers fitted to this many samples.
    """
    target = target_of(function, domain)
    require_tolerance(tolerance)
    require_seconds(seconds, "each training")
    if not (is_number(prove) and 0 <= prove < math.inf):
        raise InputError("prove, finite seconds", f"{prove!r}", "give 0, or the time for a certificate")
    for name, sizes in (("growth", growth), ("samples", samples)):
        if not isinstance(sizes, Sequence) or not all(is_whole(k) and k > 0 for k in sizes):
            raise InputError(f"{name}, whole numbers above 0", f"{sizes!r}", "give for instance (1, 2, 4)")
    started = time.process_time()
    built = build(target, tolerance=tolerance, seed=seed)
    spent = time.process_time() - started
    contest = _Contest(target, held_out_points(target), built.parameters, tolerance, seed, seconds, prove)
    entrants, grown, sampled = list[Entrant](), list[Entrant](), list[Entrant]()
    first = Entrant("constructed", "constructed", built.parameters, spent, bound=built.certificate.bound)
    entrants.append(contest.judged(first, built))
    jobs: list[tuple[str, list[Entrant], Callable[[], list[Entrant]]]] = [
        *((f"trained, {name}", entrants, lambda name=name: [contest.trained(name)]) for name in optimizers),
        ("warm-started", entrants, lambda: [contest.warm_started(built)]),
        *((peer.name, entrants, lambda peer=peer: [contest.peer(peer)]) for peer in PEERS if peers),
        *((f"{k} heads", grown, lambda k=k: contest.grown(k)) for k in growth),
        *((f"{k} samples", sampled, lambda k=k: contest.sampled(k)) for k in samples),
    ]
    for i, (name, rows, job) in enumerate(jobs):
        if progress is not None:
            progress(name, (i + 1) / (len(jobs) + 1))
        rows += job()
    found = (tuple(entrants), tuple(grown), tuple(sampled))
    return Comparison(target.text, str(target.domain), tolerance, *found, condition=built.certificate.condition)


@dataclass(frozen=True)
class _Contest:
    """What all entrants share: target, test points, budget of parameters, tolerance, seed, seconds to train and to prove."""

    target: Target
    points: np.ndarray
    budget: int
    tolerance: float
    seed: int
    seconds: float
    prove: float

    def judged(self, entrant: Entrant, function: "Approximation | Function") -> Entrant:
        """The entrant with its observed errors and its speed at the test points."""
        started = time.process_time()
        y = np.asarray(function(self.points), dtype=np.float64).reshape(len(self.points), -1)
        rate = len(self.points) / max(time.process_time() - started, 1e-9)
        errors = np.abs(y - self.target(self.points))
        rmse = float(np.sqrt(np.square(errors).mean()))
        largest = observed_error(function, self.target)
        return replace(entrant, observed=largest, rmse=rmse, points_per_second=rate)

    def trained(self, optimizer: str) -> Entrant:
        name = f"trained, {optimizer}"
        size = layer_size(self.target, self.budget)
        if size is None:
            return Entrant(name, "trained", note="no size matches the budget")
        found, spent = self._train_layer(optimizer, size)
        note = f"d {size[2]}, heads {size[0]}, FFN {size[1]}; {found.history.steps:,} steps" if found.history else ""
        entrant = Entrant(name, "trained", found.parameters, spent, bound=self._bound(found), note=note)
        return self.judged(entrant, found)

    def warm_started(self, built: Approximation) -> Entrant:
        found, spent = self._train({"loss": "sup", "seed": self.seed}, {"init": built})
        best = found.history.best if found.history else 0
        unchanged = found.history is not None and best == 0
        note = "not improved: returned as built" if unchanged else f"{best:,} steps"
        bound = built.certificate.bound if unchanged else self._bound(found)
        entrant = Entrant("warm-started", "warm-started", found.parameters, spent, bound=bound, note=note)
        return self.judged(entrant, found)

    def peer(self, peer: Peer) -> Entrant:
        fitted = peer.try_fit(self.target, self.budget, self.seconds, self.seed)
        if isinstance(fitted, str):
            return Entrant(peer.name, "peer", note=fitted)
        entrant = Entrant(peer.name, "peer", fitted.parameters, fitted.seconds, note=fitted.note)
        return self.judged(entrant, fitted.function)

    def grown(self, k: int) -> list[Entrant]:
        """Layers trained with k heads of width 4 and with an FFN of 2k, best of several seeds; one constructed of k units."""
        rows = []
        for name, size in ((f"trained, {k} heads", (k, 4, 4 * k)), (f"trained, FFN of {2 * k}", (1, 2 * k, 4))):
            tries = [replace(self, seed=self.seed + i)._train_layer("adam", size) for i in range(SEEDS)]
            found, _ = min(tries, key=lambda t: t[0].history.smallest_error if t[0].history else math.inf)
            spent = sum(seconds for _, seconds in tries)
            entrant = Entrant(name, "trained", found.parameters, spent, note=f"best of {SEEDS} seeds", size=k)
            rows.append(self.judged(entrant, found))
        started = time.process_time()
        try:
            built = build(self.target, tolerance=1e-9, units=k, seed=self.seed, seconds=self.seconds)
        except InputError:  # fewer units than groups of variables
            return rows
        spent, bound = time.process_time() - started, built.certificate.bound
        entrant = Entrant(f"constructed, {k} units", "constructed", built.parameters, spent, bound=bound, size=k)
        return [*rows, self.judged(entrant, built)]

    def sampled(self, k: int) -> list[Entrant]:
        """Layers fitted to k random samples alone."""
        rows = []
        size = layer_size(self.target, self.budget)
        if size is not None:
            found, spent = self._train_layer("adam", size, samples=k)
            entrant = Entrant(f"trained on {k} samples", "trained", found.parameters, spent, size=k)
            rows.append(self.judged(entrant, found))
        x = self.target.domain.points(fitting_points(k, self.target.dimension, self.seed).numpy())
        started = time.process_time()
        built = build((x, self.target(x)), self.target.domain, self.tolerance, seed=self.seed, seconds=self.seconds)
        spent = time.process_time() - started
        entrant = Entrant(f"constructed from {k} samples", "constructed", built.parameters, spent, size=k)
        return [*rows, self.judged(entrant, built)]

    def _train_layer(self, optimizer: str, size: tuple[int, int, int], samples: int | None = None) -> Timed:
        """(a layer of (heads, width, d_model) trained from random weights, processor seconds)."""
        start = dict(zip(("heads", "width", "d_model"), size, strict=True)) | {"dtype": "float64"}
        return self._train({"optimizer": optimizer, "seed": self.seed}, start, samples)

    def _train(self, how: dict[str, Any], start: dict[str, Any], samples: int | None = None) -> Timed:
        """(a layer trained for the time, processor seconds); a pilot tells how many steps the time allows."""
        recipe = Recipe(steps=PILOT_STEPS, every=PILOT_STEPS, **how)
        pilot = prepare(self.target, None, recipe, StartingLayer(**start), samples=samples)
        pilot.step(0)  # warms up
        started = time.process_time()
        for step in range(1, PILOT_STEPS):
            pilot.step(step)
        spent = max(time.process_time() - started, 1e-6 * PILOT_STEPS)
        steps = max(PILOT_STEPS, int(self.seconds * (PILOT_STEPS - 1) / spent))
        started = time.process_time()
        found = train(self.target, steps=steps, every=max(1, steps // VALIDATIONS), samples=samples, **how, **start)
        return found, time.process_time() - started

    def _bound(self, found: Approximation) -> float:
        return certify(found, seconds=self.prove).bound if self.prove > 0 else math.inf
