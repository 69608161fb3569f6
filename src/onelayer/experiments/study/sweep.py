"""Sweep: which points a study measures, written down in TOML.

    title = "…"                       the question of the study
    [targets.wave]                    more targets, besides those of builtin/targets.toml
    formula = "sin(x1)"
    domain = "0:2*pi"
    targets = "mine.csv"              or all of them from a suite beside this file (`suite`); a sweep without the axis
                                      `target` measures every one of them
    [[sweep]]                         one or several; a point is one choice from each axis
    measure = "construct"
    axes = { target = ["wave"], tolerance = [0.1, 0.01], seed = [0, 1] }
    exclude = [{ target = "wave", tolerance = 0.01 }]      points to leave out
    full = true                       measured only with `full`
    [[rate]]                          what is fitted (`rates`)
    [[table]]                         what is summed up (`summary`)
    [[figure]]                        what is drawn (`views.study_figure`)

A target's entries (formula, domain, …) become part of the point. So a point says everything about what was measured, and two
sweeps that share a point share its result. The key of a point is SHA-256 of its measure and values as canonical JSON.

Suites: many targets in one CSV file, a row for each: its name, its formula, then variable, low, high for every variable.
"""

import csv
import hashlib
import inspect
import io
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from ...common.checks import require_choice
from ...common.errors import InputError
from . import measures
from .axes import Task, require_few_points, tasks_of
from .entries import column_of, names_of, require_known, tables_of, where_of
from .fitted_rates import RateSpec
from .measures import Measure, Point
from .summary import TableSpec

SUFFIX = ".csv"
ROW = "name, formula, then variable, low, high for each variable"


def targets_in(text: str, file: str) -> dict[str, dict[str, Any]]:
    """The targets of a suite by name, as [targets.NAME] would give them; `file` is what errors call it."""
    found: dict[str, dict[str, Any]] = {}
    for number, row in enumerate(csv.reader(io.StringIO(text), skipinitialspace=True), start=1):
        if not row:
            continue
        name, *cells = (cell.strip() for cell in row)
        if len(cells) < 4 or len(cells) % 3 != 1 or not all([name, *cells]):
            raise InputError(ROW, f"{len(row)} cells in line {number} of {file}", "correct the line")
        if name in found:
            raise InputError(f"names that differ in {file}", f"{name!r} again in line {number}", "rename one of them")
        formula, sides = cells[0], [cells[i : i + 3] for i in range(1, len(cells), 3)]
        found[name] = {"formula": formula, "domain": ", ".join(f"{v}={low}:{high}" for v, low, high in sides)}
    if not found:
        raise InputError(f"a suite in {file}: {ROW}", "no line", "add targets")
    return found


BUILTIN = "builtin:"
BUILTIN_FOLDER = resources.files("onelayer.experiments.study") / "builtin"
ENTRIES = {"title", "about", "targets", "sweep", "rate", "table", "figure", "limits"}
SCALES = ("log-log", "linear-log", "log-linear", "linear-linear", "categories-log", "categories-linear")
FIGURE_ENTRIES = {"title", "x", "y", "by", "where", "scale"}


@dataclass(frozen=True)
class FigureSpec:
    """A picture: one or several columns y against x, a line for every combination of `by`, bars over everything else."""

    x: str
    y: tuple[str, ...]
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    scale: str = "log-log"  # of x and of y

    @staticmethod
    def read(entry: Mapping[str, Any]) -> "FigureSpec":
        """From a table [[figure]]."""
        require_known("entries of [[figure]]", entry, FIGURE_ENTRIES)
        scale = entry.get("scale", SCALES[0])
        require_choice("scale", scale, SCALES)
        x, y = column_of(entry, "x"), names_of(entry, "y")
        if not y:
            raise InputError("y, one column or several", "none", "name one")
        return FigureSpec(x, y, names_of(entry, "by"), where_of(entry), str(entry.get("title", "")), scale)


@dataclass(frozen=True)
class Sweep:
    """A named list of points, with the rates, figures and tables to make from their results."""

    name: str
    tasks: tuple[Task, ...]
    title: str = ""
    about: str = ""
    limits: str = ""  # where rates and theory disagree, and why
    rates: tuple[RateSpec, ...] = ()
    figures: tuple[FigureSpec, ...] = ()
    tables: tuple[TableSpec, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over the keys of all points."""
        return hashlib.sha256("".join(sorted(task.key for task in self.tasks)).encode()).hexdigest()

    @staticmethod
    def of_axes(measure: str | Callable[[Point], Any], axes: Mapping[str, Any], name: str = "sweep") -> "Sweep":
        """All combinations of the axes for one measure: a registered one by name, or your own function.

        The name and the source text of a function are part of its points' keys, so a changed function is measured again. What
        it calls is not part of them: when you change that, change the name.
        """
        if isinstance(measure, str):
            return read({"sweep": [{"measure": measure, "axes": axes}]}, name)
        if not callable(measure):
            raise InputError("a measure: a name or a function", type(measure).__name__, "pass one of these")
        name_of = getattr(measure, "__name__", "measure")
        own = Measure(name_of, measure, dict.fromkeys(axes, object), _source(measure))
        return Sweep(name, _distinct(tasks_of({"axes": axes}, own, {}, name)), title=name)


def names() -> list[str]:
    """The names of the built-in studies."""
    found = (entry.name for entry in BUILTIN_FOLDER.iterdir() if entry.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in found if name != "targets.toml")


def builtin(name: str) -> dict[str, Any]:
    """The TOML record of a built-in study, or of the shared targets."""
    if name != "targets":
        require_choice("a built-in study", name, names())
    return tomllib.loads((BUILTIN_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


def sweep_of(given: "str | Path | Sweep", full: bool = False) -> Sweep:
    """A sweep as given, a built-in one by name ("builtin:epsilon"), or one from a TOML file."""
    if isinstance(given, Sweep):
        return given
    if isinstance(given, str) and given.startswith(BUILTIN):
        name = given.removeprefix(BUILTIN)
        return read(builtin(name), name, full, BUILTIN_FOLDER)
    path = Path(given) if isinstance(given, str | Path) else None
    if path is None or not path.is_file():
        raise InputError("a TOML file, or builtin:NAME", f"{given}", f"name a file, or builtin:{'|'.join(names())}")
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"TOML in {path}", " ".join(str(error).split()), "correct the file") from None
    return read(record, path.stem, full, path.parent)


def read(record: Mapping[str, Any], name: str, full: bool = False, folder: Traversable | Path = Path()) -> Sweep:
    """The sweep that a TOML document describes; blocks marked `full` only with `full`. A suite is looked for in the folder."""
    require_known("entries of a study", record, ENTRIES)
    blocks = tables_of(record, "sweep")
    if not blocks:
        raise InputError("[[sweep]], at least one", "none", "add a sweep with a measure and axes")
    own = record.get("targets", {})
    suite = targets_in(_suite_text(folder, own), own) if isinstance(own, str) else {}
    own = suite or own
    if not isinstance(own, Mapping):
        raise InputError("targets, a table", f"{own!r}", "write [targets.NAME]")
    targets = {**builtin("targets"), **own}
    tasks: list[Task] = []
    for block in blocks:
        require_known("entries of [[sweep]]", block, {"measure", "axes", "exclude", "full"})
        found = measures.measure_of(str(block.get("measure", "construct")))
        if not isinstance(block.get("full", False), bool):
            raise InputError("full, true or false", f"{block['full']!r}", "write full = true")
        if suite and isinstance(axes := block.get("axes", {}), Mapping) and "target" not in axes:
            block = {**block, "axes": {"target": list(suite), **axes}}
        if full or not block.get("full", False):
            tasks += tasks_of(block, found, targets, name)
    distinct = _distinct(tasks)
    rates = tuple(map(RateSpec.read, tables_of(record, "rate")))
    figures = tuple(map(FigureSpec.read, tables_of(record, "figure")))
    tables = tuple(map(TableSpec.read, tables_of(record, "table")))
    texts = {key: " ".join(str(record.get(key, "")).split()) for key in ("title", "about", "limits")}
    return Sweep(name, distinct, texts["title"] or name, texts["about"], texts["limits"], rates, figures, tables)


def _suite_text(folder: Traversable | Path, file: str) -> str:
    """The text of a suite, a CSV file beside the study's own file."""
    if Path(file).name != file or not file.endswith(SUFFIX) or not (folder / file).is_file():
        raise InputError(f"targets, a table or a {SUFFIX} file beside the study", repr(file), "name such a file")
    try:
        return (folder / file).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise InputError(f"text in {file}", "bytes that are not UTF-8", "save it as UTF-8") from None


def _source(function: Callable[[Point], Any]) -> str:
    """SHA-256 of a function's source text; empty if it has none, as at a prompt."""
    try:
        return hashlib.sha256(inspect.getsource(function).encode()).hexdigest()
    except (OSError, TypeError):
        return ""


def _distinct(tasks: Sequence[Task]) -> tuple[Task, ...]:
    require_few_points(len(tasks))
    if not tasks:
        raise InputError("at least one point", "none", "exclude less, or ask for the full study")
    return tuple({task.key: task for task in tasks}.values())
