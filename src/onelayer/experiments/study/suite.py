"""Suites: many targets in one CSV file, a row for each: its name, its formula, then variable, low, high for every variable."""

import csv
import io
from typing import Any

from ...common.errors import InputError

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
