"""Studies: a sweep of points, measured in parallel processes and stored one by one; then a table, rates, a report.

sweep → run or cluster (measurement, measures/) → store → result (fitted_rates, theory) → views/study_page
"""

from pathlib import Path

from ...common.checks import known_options, require_whole
from ...common.errors import InputError
from ...common.progress import Progress
from ...training.recipe import LARGEST_COUNT
from .result import Study
from .run import ProgressCounter, cluster_outcomes, local_outcomes, workers_of
from .store import POINTS, Store, require_no_other
from .sweep import Sweep, sweep_of

__all__ = ["Study", "Sweep", "study"]


@known_options
def study(
    sweep: "Sweep | str | Path",
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    full: bool = False,
    only: int | None = None,
    retry: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Measure the points of a sweep that are not stored yet, and return all results so far.

    `sweep` is a built-in study ("builtin:epsilon"), a TOML file, or `Sweep.of_axes(measure, {axis: […], …})`. Results go to
    `out`/points.sqlite (`out` is study-NAME by default), one row as soon as a point is done, and to `out`/points.csv at the end.
    After an interrupt or a kill, the same call resumes. A point that fails is stored with its error; `retry` tries it again.

    `workers` processes run at a time (by default one per core), or those of a Dask scheduler, `dask="tcp://host:8786"`. `full`
    includes the larger part of a built-in study; `only` stops after this many new points. A model folder is refused, and so is a
    folder whose points.csv or report.html no study wrote, unless `overwrite`.
    """
    chosen = sweep_of(sweep, full)
    if only is not None:
        require_whole("only", only, 0, LARGEST_COUNT)
    if dask is not None and workers is not None:
        raise InputError("`workers` here, or those of `dask`", "both", "leave one out")
    count = workers_of(workers)
    folder = Path(out if out is not None else f"study-{chosen.name}")
    require_no_other(folder, overwrite)
    store = Store.open(folder, chosen)
    if retry:
        store.forget_failed(chosen)
    stored = store.outcomes()
    left = [task for task in chosen.tasks if task.key not in stored]
    counter = ProgressCounter(len(chosen.tasks), progress, before=len(chosen.tasks) - len(left))
    left = left if only is None else left[:only]
    if left:
        counter.report()
        found = cluster_outcomes(dask, left) if dask is not None else local_outcomes(left, min(count, len(left)))
        try:
            for task, outcome in found:
                store.write(task, outcome)
                counter.add(outcome)
        except InputError:  # no scheduler there: nothing is left behind
            if not stored and not counter.done:
                store.remove()
            raise
        except KeyboardInterrupt:
            done = f"{counter.before + counter.done} of {counter.total} points"
            raise KeyboardInterrupt(f"after {done}; run the same command again to resume") from None
    result = Study.of(chosen, store.outcomes(), folder)
    result.csv(folder / POINTS, overwrite=True)
    return result
