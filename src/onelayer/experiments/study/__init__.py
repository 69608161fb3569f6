"""Studies: a sweep of points, each measured in a process of its own and stored at once; then a table, rates, a report.

sweep.py → run.py or cluster.py (point.py, measures/) → store.py → result.py (rates.py, theory.py) → views/study_page.py
"""

from pathlib import Path

from ...common.errors import InputError
from .cluster import run_on
from .result import Study
from .run import Progress, Watch, run, workers_of
from .store import Store
from .sweep import Sweep, sweep_of

__all__ = ["Study", "Sweep", "study"]


def study(
    sweep: "Sweep | str | Path",
    out: str | Path | None = None,
    *,
    workers: int | None = None,
    dask: str | None = None,
    full: bool = False,
    only: int | None = None,
    retry: bool = False,
    progress: Progress | None = None,
) -> Study:
    """Measure the points of a sweep that are not stored yet; the results so far as a value.

    `sweep` is a built-in study ("builtin:epsilon"), a TOML file, or `Sweep.of_axes(measure, {axis: […], …})`. Results go to
    `out`/points.sqlite (study-NAME by default), one row the moment a point is done, and to `out`/points.csv at the end; the same
    call goes on after an interrupt or a kill. A point that fails is stored with its error, and tried again with `retry`.

    `workers` processes run at a time (as many as cores), or those of a Dask scheduler, `dask="tcp://host:8786"`. `full` takes in
    the larger part of a built-in study, `only` stops after so many new points.
    """
    chosen = sweep_of(sweep, full)
    if only is not None and (isinstance(only, bool) or not isinstance(only, int) or only < 0):
        raise InputError("only, a whole number of points", f"{only!r}", "say how many new points to measure")
    count = workers_of(workers)
    folder = Path(out if out is not None else f"study-{chosen.name}")
    store = Store.open(folder, chosen)
    if retry:
        store.forget_failed(chosen)
    stored = store.outcomes()
    left = [task for task in chosen.tasks if task.key not in stored]
    watch = Watch(len(chosen.tasks), progress, before=len(chosen.tasks) - len(left))
    left = left if only is None else left[:only]
    if left and dask is not None:
        run_on(dask, store, left, watch)
    elif left:
        run(store, left, min(count, len(left)), watch)
    found = Study.of(chosen, store.outcomes(), folder)
    found.csv(folder / "points.csv")
    return found
