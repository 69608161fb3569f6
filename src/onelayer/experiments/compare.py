"""Compare: what construction buys over training. One target, one run, one table, all with as many parameters.

    constructed      `build` at the tolerance: its number of parameters is everybody's budget
    trained          the same kind of layer by gradient descent, one row per optimiser (`train`)
    warm-started     the constructed layer, trained on
    peers            stock Transformer, perceptrons, KAN, random features, Chebyshev interpolation (`peers`)

All are judged at the same dense test points, faces and corners included. Seconds are processor seconds. Only a
certificate is a bound; all other errors are observed.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from ..approximation import Approximation
from ..common.errors import InputError
from ..common.table import Table, at_most
from ..model.config import LayerConfig
from ..pipeline import build
from ..proof.decision import certify
from ..target.points import fitting_points
from ..target.target import Target, require_tolerance, target_of
from ..training.recipe import Optimizer, Recipe
from ..training.start import StartingLayer, prepare
from ..training.train import train
from .peers import PEERS
from .peers.task import TEST_POINTS, TEST_SEED, Function, matched

Progress = Callable[[str, float], None]
PILOT = 60  # steps that tell how long a step takes
SEEDS = 2  # that a layer of a given size is trained from: small ones depend on luck
EVERY = 50  # validations in a training
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class Entrant:
    """One way to approximate the target; errors are NaN if it did not run, the bound is infinite if nothing is proved."""

    name: str
    kind: str  # "constructed", "trained", "warm-started" or "peer"
    parameters: int
    seconds: float
    observed: float
    rmse: float
    bound: float = math.inf
    points_per_second: float = 0.0
    note: str = ""
    size: int = 0  # heads, width or samples, where the comparison is about these

    @property
    def cells(self) -> tuple[object, ...]:
        if math.isnan(self.observed):
            return (self.name, "–", "–", "–", "–", "–", "–", self.note)
        bound = f"{at_most(self.bound, 3)}" if math.isfinite(self.bound) else "–"
        numbers = (f"{self.parameters:,}", f"{self.seconds:.1f}", f"{self.observed:.2g}", f"{self.rmse:.2g}", bound)
        return (self.name, *numbers, f"{self.points_per_second:.2g}", self.note)


COLUMNS = ("", "parameters", "seconds", "observed error", "RMSE", "bound (proved)", "points/s", "note")


@dataclass(frozen=True)
class Comparison:
    """All entrants on one target, and how errors fall with heads, with the width of the FFN and with samples, if asked."""

    target: str
    domain: str
    tolerance: float
    entrants: tuple[Entrant, ...]
    growth: tuple[Entrant, ...] = field(default=())
    samples: tuple[Entrant, ...] = field(default=())

    def table(self) -> Table:
        return Table(f"{self.target}, tolerance {self.tolerance:g}", COLUMNS, [e.cells for e in self.entrants])

    def tables(self) -> list[Table]:
        """The comparison, and what else was asked."""
        more = [("Error against size", self.growth), ("Error against the number of samples", self.samples)]
        return [self.table(), *(Table(t, COLUMNS, [e.cells for e in rows]) for t, rows in more if rows)]

    def best(self, *kinds: str) -> Entrant | None:
        """The entrant of these kinds with the least observed error."""
        ran = [e for e in self.entrants if e.kind in kinds and not math.isnan(e.observed)]
        return min(ran, key=lambda e: e.observed, default=None)

    def __str__(self) -> str:
        return "\n".join(map(str, self.tables()))

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.tables())


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
    **about: Any,
) -> Comparison:
    """Construction, training and peers with as many parameters; at most `seconds` for everything that is trained.

    `prove` > 0 spends so many seconds on a certificate for every trained layer. `growth=(1, 2, 4, …)` adds layers with so
    many heads, with an FFN of twice that width, and constructed ones of so many units; `samples=(100, 1000, …)` adds layers
    fitted to so many samples.
    """
    target = target_of(function, domain, about)
    require_tolerance(tolerance)
    if not (isinstance(seconds, Real) and 0 < seconds < math.inf):
        raise InputError("seconds, finite and above 0", f"{seconds!r}", "give the time for every training")
    if not (isinstance(prove, Real) and 0 <= prove < math.inf):
        raise InputError("prove, finite seconds", f"{prove!r}", "give 0, or the time for a certificate")
    for name, sizes in (("growth", growth), ("samples", samples)):
        if not isinstance(sizes, Sequence) or not all(isinstance(k, Integral) and k > 0 for k in sizes):
            raise InputError(f"{name}, whole numbers above 0", f"{sizes!r}", "give for instance (1, 2, 4)")
    test = target.domain.points(fitting_points(TEST_POINTS, target.dimension, TEST_SEED).numpy())
    court = _Court(target, test[target.domain.contains(test)], seed, seconds)
    jobs: list[tuple[str, Callable[[], Entrant]]] = []
    started = time.process_time()
    built = build(target, tolerance=tolerance, seed=seed)
    spent = time.process_time() - started
    entrants = [court.judged(built, "constructed", "constructed", spent, built.certificate.bound)]
    budget = built.parameters
    for name in optimizers:
        jobs.append((f"trained, {name}", lambda name=name: court.trained(name, budget, prove)))
    jobs.append(("warm-started", lambda: court.warm(built, prove)))
    if peers:
        jobs += [(peer.name, lambda peer=peer: court.peer(peer, budget)) for peer in PEERS]
    grown, fitted = list[Entrant](), list[Entrant]()
    late: list[tuple[str, list[Entrant], Callable[[], list[Entrant]]]] = [
        *((f"{k} heads", grown, lambda k=k: court.grown(k)) for k in growth),
        *((f"{k} samples", fitted, lambda k=k: court.sampled(k, budget, tolerance)) for k in samples),
    ]
    for i, (name, job) in enumerate(jobs):
        if progress is not None:
            progress(name, (i + 1) / (len(jobs) + len(late) + 1))
        entrants.append(job())
    for i, (name, rows, several) in enumerate(late):
        if progress is not None:
            progress(name, (len(jobs) + i + 1) / (len(jobs) + len(late) + 1))
        rows += several()
    return Comparison(target.text, str(target.domain), tolerance, tuple(entrants), tuple(grown), tuple(fitted))


@dataclass(frozen=True)
class _Court:
    """What all are judged by: the target, the test points, the seed and the time for a training."""

    target: Target
    points: np.ndarray
    seed: int
    seconds: float

    def judged(
        self,
        found: "Approximation | Function",
        name: str,
        kind: str,
        seconds: float,
        bound: float = math.inf,
        parameters: int = 0,
        note: str = "",
        size: int = 0,
    ) -> Entrant:
        started = time.process_time()
        y = np.asarray(found(self.points), dtype=np.float64).reshape(len(self.points), -1)
        rate = len(self.points) / max(time.process_time() - started, 1e-9)
        errors = np.abs(y - self.target(self.points))
        largest = float(errors.max()) if np.isfinite(errors).all() else math.inf
        parameters = found.parameters if isinstance(found, Approximation) else parameters
        return Entrant(
            name, kind, parameters, seconds, largest, float(np.sqrt(np.square(errors).mean())), bound, rate, note, size
        )

    def trained(self, optimizer: Optimizer, budget: int, prove: float) -> Entrant:
        size = layer_size(self.target, budget)
        name = f"trained, {optimizer}"
        if size is None:
            return Entrant(name, "trained", 0, 0.0, math.nan, math.nan, note="no size matches the budget")
        found, spent = self._training(optimizer, size)
        note = f"d {size[2]}, heads {size[0]}, FFN {size[1]}; {found.history.steps:,} steps" if found.history else ""
        return self.judged(found, name, "trained", spent, self._bound(found, prove), note=note)

    def _training(
        self, optimizer: Optimizer, size: tuple[int, int, int], samples: int | None = None
    ) -> tuple[Approximation, float]:
        """(a layer of (heads, width, d_model) trained for the time, processor seconds); a pilot tells how many steps that is."""
        heads, width, d_model = size
        recipe = Recipe(optimizer=optimizer, seed=self.seed, steps=PILOT, every=PILOT)
        start = StartingLayer(heads=heads, width=width, d_model=d_model, dtype="float64")
        steps = self._steps(recipe, start, samples)
        started = time.process_time()
        found = train(
            self.target, heads=heads, width=width, d_model=d_model, dtype="float64", samples=samples,
            optimizer=optimizer, seed=self.seed, steps=steps, every=max(1, steps // EVERY),
        )  # fmt: skip
        return found, time.process_time() - started

    def _steps(self, recipe: Recipe, start: StartingLayer, samples: int | None = None) -> int:
        """How many steps the time allows for, from a few of them."""
        run = prepare(self.target, None, recipe, start, samples=samples)
        run.step(0)  # warms up
        started = time.process_time()
        for step in range(1, PILOT):
            run.step(step)
        spent = max(time.process_time() - started, 1e-6 * PILOT)
        return max(PILOT, int(self.seconds * (PILOT - 1) / spent))

    def _bound(self, found: Approximation, prove: float) -> float:
        return certify(found, seconds=prove).bound if prove > 0 else math.inf

    def warm(self, built: Approximation, prove: float) -> Entrant:
        recipe = Recipe(loss="sup", seed=self.seed, steps=PILOT, every=PILOT)
        steps = self._steps(recipe, StartingLayer(init=built))
        started = time.process_time()
        found = train(self.target, init=built, loss="sup", seed=self.seed, steps=steps, every=max(1, steps // EVERY))
        spent = time.process_time() - started
        same = found.history is not None and found.history.best == 0
        note = "not improved: returned as built" if same else f"{found.history.best if found.history else 0:,} steps"
        bound = built.certificate.bound if same else self._bound(found, prove)
        return self.judged(found, "warm-started", "warm-started", spent, bound, note=note)

    def peer(self, peer: Any, budget: int) -> Entrant:
        nothing = Entrant(peer.name, "peer", 0, 0.0, math.nan, math.nan, note="no size matches the budget")
        if not peer.available():
            return Entrant(peer.name, "peer", 0, 0.0, math.nan, math.nan, note="skipped: not installed")
        fitted = peer.fit(self.target, budget, self.seconds, self.seed)
        if fitted is None:
            return nothing
        return self.judged(
            fitted.function, peer.name, "peer", fitted.seconds, parameters=fitted.parameters, note=fitted.note
        )

    def grown(self, k: int) -> list[Entrant]:
        """A layer with k heads of width 4, one with an FFN of 2k, both trained from several seeds; one constructed of k units."""
        rows = []
        for what, size in ((f"trained, {k} heads", (k, 4, 4 * k)), (f"trained, FFN of {2 * k}", (1, 2 * k, 4))):
            tries = [replace(self, seed=self.seed + i)._training("adam", size) for i in range(SEEDS)]
            found, _ = min(tries, key=lambda t: t[0].history.smallest_error if t[0].history else math.inf)
            spent = sum(seconds for _, seconds in tries)
            rows.append(self.judged(found, what, "trained", spent, note=f"best of {SEEDS} seeds", size=k))
        started = time.process_time()
        try:
            built = build(self.target, tolerance=1e-9, units=k, seed=self.seed, seconds=self.seconds)
        except InputError:  # fewer units than groups of variables
            return rows
        spent = time.process_time() - started
        rows.append(
            self.judged(built, f"constructed, {k} units", "constructed", spent, built.certificate.bound, size=k)
        )
        return rows

    def sampled(self, k: int, budget: int, tolerance: float) -> list[Entrant]:
        """Layers fitted to k random samples alone."""
        rows = []
        size = layer_size(self.target, budget)
        if size is not None:
            found, spent = self._training("adam", size, samples=k)
            rows.append(self.judged(found, f"trained on {k} samples", "trained", spent, size=k))
        x = self.target.domain.points(fitting_points(k, self.target.dimension, self.seed).numpy())
        started = time.process_time()
        built = build((x, self.target(x)), self.target.domain, tolerance, seed=self.seed, seconds=self.seconds)
        spent = time.process_time() - started
        rows.append(self.judged(built, f"constructed from {k} samples", "constructed", spent, size=k))
        return rows


def layer_size(target: Target, budget: int) -> tuple[int, int, int] | None:
    """(heads, width, d_model) of a trained layer whose parameters match the budget, the FFN near four times d_model."""
    n, d = target.shape
    found = []
    for d_model in WIDTHS:
        heads = next(h for h in (4, 2, 1) if h == 1 or d_model / h >= 4)
        per_head = -(-d_model // heads)
        for width in range(1, 1 + max(8, 8 * d_model)):
            config = LayerConfig(
                tokens=n,
                features_in=d,
                features_out=target.outputs,
                d_model=d_model,
                heads=heads,
                d_k=per_head,
                d_v=per_head,
                ffn_width=width,
                code="learned",
                readout="mean",
                projection_bias=True,
            )
            if matched(config.parameter_count, budget):
                found.append((max(width / (4 * d_model), 4 * d_model / width), (heads, width, d_model)))
    return min(found)[1] if found else None
