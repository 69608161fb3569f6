"""Sweep: which points a study measures, written down in TOML.

    title = "…"                       what the study asks
    [targets.wave]                    targets of its own, beside those of builtin/targets.toml
    formula = "sin(x1)"
    domain = "0:2*pi"
    [[sweep]]                         one or several; a point is one choice from each axis
    measure = "construct"
    axes = { target = ["wave"], tolerance = [0.1, 0.01], seed = [0, 1] }
    exclude = [{ target = "wave", tolerance = 0.01 }]      points to leave out
    full = true                       only if the whole study is asked for
    [[rate]]                          what is fitted (`rates`)
    [[table]]                         what is summed up (`tables`)
    [[figure]]                        what is drawn (`views.studyfigure`)

A target's entries (formula, domain, …) become part of the point, so that a point says everything that was measured, and two
sweeps that share a point share its result. The key of a point is SHA-256 of its measure and values as canonical JSON.
"""

import hashlib
import itertools
import json
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from ..errors import InputError
from . import measures
from .measures import Measure, Point
from .rates import RateAsked
from .tables import TableAsked
from .words import choices

BUILTIN = "builtin:"
MOST = 100_000  # points of one sweep: more is a slip of the pen
ENTRIES = {"title", "about", "targets", "sweep", "rate", "table", "figure", "limits"}
SCALES = ("log-log", "linear-log", "log-linear", "linear-linear", "categories-log", "categories-linear")
FIGURE = {"title", "x", "y", "by", "where", "scale"}


@dataclass(frozen=True)
class Task:
    """One point of a sweep, with the measure that it is for."""

    measure: Measure
    point: Point

    @property
    def key(self) -> str:
        text = json.dumps([self.measure.name, self.point], sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Figure:
    """A picture: one or several columns y against x, a line for every combination of `by`, bars over all that is left."""

    x: str
    y: tuple[str, ...]
    by: tuple[str, ...] = ()
    where: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    scale: str = "log-log"  # of x and of y


@dataclass(frozen=True)
class Sweep:
    """A named list of points, what is fitted to their results and what is drawn."""

    name: str
    tasks: tuple[Task, ...]
    title: str = ""
    about: str = ""
    limits: str = ""  # where rates and theory disagree, and why
    rates: tuple[RateAsked, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[TableAsked, ...] = ()

    @property
    def digest(self) -> str:
        """SHA-256 over the keys of all points."""
        return hashlib.sha256("".join(sorted(task.key for task in self.tasks)).encode()).hexdigest()

    @staticmethod
    def of_axes(measure: str | Callable[[Point], Any], axes: Mapping[str, Any], name: str = "sweep") -> "Sweep":
        """All combinations of the axes for one measure: a registered one by name, or a function of your own.

        The name of a function is part of its points' keys; what it does is not: change the name when you change what it does.
        """
        if isinstance(measure, str):
            return read({"sweep": [{"measure": measure, "axes": axes}]}, name)
        first = {axis: listed(axis, values)[0] for axis, values in axes.items()}
        own = Measure(getattr(measure, "__name__", "measure"), measure, first)
        return Sweep(name, _distinct(_block({"axes": axes}, own, {}, name)), title=name)


def listed(axis: str, values: Any) -> list[Any]:
    """The values of an axis, one or several, each plain."""
    several = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    if not several or not all(isinstance(v, str | int | float) for v in several):
        raise InputError(f"axis {axis}: numbers, texts or true/false", f"{values!r}", "write for instance [0.1, 0.01]")
    return several


def names() -> list[str]:
    """The built-in studies."""
    folder = resources.files("onelayer.study") / "builtin"
    found = (entry.name for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return sorted(name.removesuffix(".toml") for name in found if name != "targets.toml")


def builtin(name: str) -> dict[str, Any]:
    """The text of a built-in study, or of the shared targets, read."""
    if name != "targets" and name not in names():
        raise InputError(f"a built-in study: {', '.join(names())}", repr(name), "choose one of them")
    text = (resources.files("onelayer.study") / "builtin" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def sweep_of(given: "str | Path | Sweep", full: bool = False) -> Sweep:
    """A sweep as it is, a built-in one by its name ("builtin:epsilon"), or that of a TOML file."""
    if isinstance(given, Sweep):
        return given
    if isinstance(given, str) and given.startswith(BUILTIN):
        name = given.removeprefix(BUILTIN)
        return read(builtin(name), name, full)
    path = Path(given)
    if not path.is_file():
        raise InputError("a TOML file, or builtin:NAME", f"{given}", f"name a file, or builtin:{'|'.join(names())}")
    try:
        record = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"TOML in {path}", " ".join(str(error).split()), "correct the file") from None
    return read(record, path.stem, full)


def read(record: Mapping[str, Any], name: str, full: bool = False) -> Sweep:
    """The sweep that a TOML document writes down; blocks marked `full` only if asked for."""
    _known("entries of a study", record, ENTRIES)
    blocks = record.get("sweep", [])
    if not isinstance(blocks, list) or not blocks:
        raise InputError("[[sweep]], at least one", "none", "add a sweep with a measure and axes")
    targets = {**builtin("targets"), **record.get("targets", {})}
    tasks: list[Task] = []
    for block in blocks:
        _known("entries of [[sweep]]", block, {"measure", "axes", "exclude", "full"})
        found = measures.found(str(block.get("measure", "construct")))
        if full or not block.get("full", False):
            tasks += _block(block, found, targets, name)
    distinct = _distinct(tasks)
    rates = tuple(RateAsked.read(entry) for entry in record.get("rate", []))
    figures = tuple(_figure(entry) for entry in record.get("figure", []))
    tables = tuple(TableAsked.read(entry) for entry in record.get("table", []))
    texts = {key: " ".join(str(record.get(key, "")).split()) for key in ("title", "about", "limits")}
    return Sweep(name, distinct, texts["title"] or name, texts["about"], texts["limits"], rates, figures, tables)


def _known(what: str, given: Mapping[str, Any], known: set[str]) -> None:
    for key in given:
        if key not in known:
            raise InputError(f"{what}: {', '.join(sorted(known))}", repr(key), "correct its name, or leave it out")


def _figure(entry: Mapping[str, Any]) -> Figure:
    _known("entries of [[figure]]", entry, FIGURE)
    if "x" not in entry or "y" not in entry:
        raise InputError("[[figure]] with x and y", ", ".join(entry) or "nothing", "name two columns")
    if entry.get("scale", SCALES[0]) not in SCALES:
        raise InputError(f"scale, one of {', '.join(SCALES)}", repr(entry["scale"]), "choose one of them")
    several = entry["y"] if isinstance(entry["y"], list) else [entry["y"]]
    return Figure(**{**entry, "y": tuple(several), "by": tuple(entry.get("by", ()))})


def _distinct(tasks: Sequence[Task]) -> tuple[Task, ...]:
    if len(tasks) > MOST:
        raise InputError(f"at most {MOST:,} points", f"{len(tasks):,}", "shorten the axes")
    return tuple({task.key: task for task in tasks}.values())


def _block(block: Mapping[str, Any], measure: Measure, targets: Mapping[str, Any], name: str) -> list[Task]:
    """All points of one [[sweep]]."""
    axes = block.get("axes", {})
    if not isinstance(axes, Mapping):
        raise InputError("axes, a table", f"{axes!r}", "write axes = { … }")
    for axis in axes:
        if axis not in measure.axes:
            raise InputError(f"axes of {measure.name}: {choices(measure.axes)}", repr(axis), f"correct study {name}")
    missing = [axis for axis, default in measure.axes.items() if isinstance(default, type) and axis not in axes]
    missing = [axis for axis in missing if axis not in TARGET or "target" not in axes]
    if missing:
        raise InputError(f"axis {missing[0]} of {measure.name}", "no value", "give it one or several")
    values = [[_checked(measure, axis, v) for v in listed(axis, axes[axis])] for axis in axes]
    excluded = block.get("exclude", [])
    for entry in excluded:
        _known(f"axes in exclude: those of study {name}", entry, set(axes))
    return [Task(measure, point) for point in _points(measure, tuple(axes), values, excluded, targets)]


TARGET = ("formula", "domain", "dimension", "lipschitz", "margin")  # what a named target brings along


def _points(
    measure: Measure, axes: tuple[str, ...], values: Any, excluded: Any, targets: Mapping[str, Any]
) -> Iterator[Point]:
    defaults = {axis: value for axis, value in measure.axes.items() if not isinstance(value, type)}
    for chosen in itertools.product(*values):
        given = dict(zip(axes, chosen, strict=True))
        if any(all(given[axis] == value for axis, value in entry.items()) for entry in excluded):
            continue
        point = {**defaults, **given}
        if "formula" in measure.axes and "formula" not in given:
            point |= _target(str(given["target"]), targets, measure)
        yield {axis: point[axis] for axis in measure.axes}


def _target(name: str, targets: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    if name not in targets:
        raise InputError(f"a target among {', '.join(targets)}", repr(name), "choose one, or add [targets.NAME]")
    entry = targets[name]
    _known(f"entries of target {name}", entry, {*TARGET, "kind"})
    if "formula" not in entry or "domain" not in entry:
        raise InputError(f"target {name} with formula and domain", ", ".join(entry), "add what is missing")
    return {key: value for key, value in entry.items() if key in measure.axes}


def _checked(measure: Measure, axis: str, value: Any) -> Any:
    """The value, if it is of the kind of the axis; whole numbers do for real ones."""
    default = measure.axes[axis]
    kind = default if isinstance(default, type) else type(default)
    fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not fits:
        word = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}.get(kind, kind.__name__)
        raise InputError(f"{axis}, {word}", repr(value), "correct the value")
    return value
