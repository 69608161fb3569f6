"""Axes: all points of one [[sweep]]; every value is checked against the measure's axes before anything is measured."""

import hashlib
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...common.checks import OTHER_NAMES
from ...common.errors import InputError
from .entries import require_known, tables_of
from .measures import Measure, Point

TARGET_ENTRIES = ("formula", "domain", "lipschitz", "margin")  # filled in by a named target
MAX_POINTS = 100_000  # in one sweep: more is a typing error
MAX_WHOLE = 10**300  # whole numbers below this convert to floats
KIND_NAMES = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


@dataclass(frozen=True)
class Task:
    """One point of a sweep and its measure."""

    measure: Measure
    point: Point

    @property
    def key(self) -> str:
        named = [self.measure.name, *([self.measure.source] if self.measure.source else [])]
        text = json.dumps([*named, self.point], sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()


def tasks_of(block: Mapping[str, Any], measure: Measure, targets: Mapping[str, Any], name: str) -> list[Task]:
    """All points of one [[sweep]]."""
    axes = block.get("axes", {})
    if not isinstance(axes, Mapping):
        raise InputError("axes, a table", f"{axes!r}", "write axes = { … }")
    for axis in axes:
        if axis not in measure.axes:
            meant = OTHER_NAMES.get(axis)
            change = f"did you mean {meant}?" if meant in measure.axes else f"correct the axes of study {name}"
            raise InputError(f"axes of {measure.name}: {', '.join(measure.axes)}", repr(axis), change)
    missing = [axis for axis, default in measure.axes.items() if isinstance(default, type) and axis not in axes]
    missing = [axis for axis in missing if axis not in TARGET_ENTRIES or "formula" in axes or "target" not in axes]
    if missing:
        raise InputError(f"axis {missing[0]} of {measure.name}", "no value", "give it one or several")
    values = [[_checked(measure, axis, v) for v in values_of(axis, axes[axis])] for axis in axes]
    require_few_points(math.prod(map(len, values)))
    excluded = tables_of(block, "exclude")
    for entry in excluded:
        require_known(f"axes in exclude: those of study {name}", entry, set(axes))
    return [Task(measure, point) for point in _points(measure, tuple(axes), values, excluded, targets)]


def require_few_points(count: int) -> None:
    """Refuse more points than anybody could mean, before they are listed."""
    if count > MAX_POINTS:
        raise InputError(f"at most {MAX_POINTS:,} points", f"{count:,}", "shorten the axes")


def _points(
    measure: Measure, axes: tuple[str, ...], values: Any, excluded: Any, targets: Mapping[str, Any]
) -> Iterator[Point]:
    defaults = {axis: value for axis, value in measure.axes.items() if not isinstance(value, type)}
    for chosen in itertools.product(*values):
        given = dict(zip(axes, chosen, strict=True))
        if any(all(given[axis] == value for axis, value in entry.items()) for entry in excluded):
            continue
        named = "formula" in measure.axes and "formula" not in given
        entries = _target_entries(str(given["target"]), targets, measure) if named else {}
        point = {**defaults, **entries, **given}
        yield {axis: point[axis] for axis in measure.axes}


def _target_entries(name: str, targets: Mapping[str, Any], measure: Measure) -> dict[str, Any]:
    if name not in targets:
        raise InputError(f"a target among {', '.join(targets)}", repr(name), "choose one, or add [targets.NAME]")
    entry = targets[name]
    require_known(f"entries of target {name}", entry, {*TARGET_ENTRIES, "kind"})
    if "formula" not in entry or "domain" not in entry:
        raise InputError(f"target {name} with formula and domain", ", ".join(entry), "add what is missing")
    return {key: _checked(measure, key, value) for key, value in entry.items() if key in measure.axes}


def _checked(measure: Measure, axis: str, value: Any) -> Any:
    """The value, if it has the type of the axis; a whole number may stand for a real one."""
    default = measure.axes[axis]
    kind = default if isinstance(default, type) else type(default)
    fits = kind is object or (isinstance(value, kind) and isinstance(value, bool) == (kind is bool))
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < MAX_WHOLE:
        return float(value)
    if not fits:
        raise InputError(f"{axis}, {KIND_NAMES[kind]}", repr(value), "correct the value")
    return value


def values_of(axis: str, values: Any) -> list[Any]:
    """The values of an axis, one or several; all have to be plain."""
    several = list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values]
    plain = all(isinstance(v, str | int) or (isinstance(v, float) and math.isfinite(v)) for v in several)
    if not several or not plain:
        kinds = "finite numbers, texts or true/false"
        raise InputError(f"axis {axis}: {kinds}", f"{values!r}", "write for instance [0.1, 0.01]")
    return several
