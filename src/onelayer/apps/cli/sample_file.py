"""Samples from a file: CSV or Parquet with a target column, or NumPy arrays; errors name the line or row."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...common.errors import InputError
from ...deployment.files.cells import cells_of, listed, number_of, short
from ...target.sides import read_domain, split

if TYPE_CHECKING:
    from ...target.target import Target


SUFFIXES = (".csv", ".parquet", ".npy")


@dataclass(frozen=True)
class Columns:
    """Inputs and answers as arrays, the names of the variables if the file has them, and the name of each row."""

    x: Any
    y: Any
    names: list[str] | None
    rows: list[str]
    targets: list[str] | None = None  # the names of the answers

    def __str__(self) -> str:
        """Which columns are what."""
        count = f"{len(self.rows):,} samples"
        if self.names is None or self.targets is None:
            return f"{count} of X and Y"
        return f"{count}: {listed(self.names)} → {listed(self.targets)}"


def names_samples(text: str) -> bool:
    """Whether a target is the name of a file of samples, rather than a formula."""
    return Path(text.strip()).suffix.lower() in SUFFIXES


def read_sample_file(path: Path, target: str | None) -> Columns:
    """The samples of a file; its suffix tells the format. Without a target the last column is the answers."""
    if not path.is_file():
        raise InputError("a file with samples", f"no file {path}", "name an existing file")
    if path.suffix.lower() == ".npy":
        return _arrays(path, Path(target)) if target is not None else _last_column(path)
    targets = None if target is None else [name for name in split(target, ",") if name]
    if targets == []:
        raise InputError("the column with the answers as --target", f"{target!r}", "name one, or several: y1,y2")
    if path.suffix.lower() == ".parquet":
        return _parquet(path, targets)
    return _csv(path, targets)


def samples_beside(folder: Path | str, path: Path | None) -> tuple[Any, Any] | None:
    """Inputs and answers from the CSV file that a folder was memorised from: its variables, and all other columns."""
    if path is None:
        return None
    from ...deployment.folder import load_certified

    loaded = load_certified(folder)
    names = list(loaded.domain.names) if hasattr(loaded, "domain") else []
    first = next(cells_of(path), None) if path.is_file() and path.suffix.lower() == ".csv" else None
    header = [cell.strip() for cell in first[1]] if first is not None else []
    targets = [name for name in header if name not in names]
    if not targets or not set(names) <= set(header):
        asked = f"the CSV file that was memorised, with columns {listed(names)} and answers, for --data"
        raise InputError(asked, f"{path} without them", "name that file")
    found = _csv(path, targets)
    return found.x[:, [(found.names or []).index(name) for name in names]], found.y


def target_of_samples(samples: Columns, domain: str | None, about: dict[str, Any]) -> "Target":
    """The target of samples, its variables named as the columns; without a domain on the box around the samples."""
    sides: Any = None if domain is None else read_domain(domain)
    from ...target.samples import data_of
    from ...target.target import Target

    if samples.y.dtype.kind not in "fiub":
        change = "name a column of numbers with --target, or store labels with onelayer memorize"
        word = next((cell for cell in map(str, samples.y.flat) if number_of(cell) is None), str(samples.y.flat[0]))
        raise InputError("numbers as answers", word, change)
    _require_one_answer(samples)
    pair = (samples.x, samples.y)
    names = samples.names or [f"x{j + 1}" for j in range(math.prod(samples.x.shape[1:]))]
    if sides is None:
        sides = data_of(pair).box()
    elif isinstance(sides, dict):
        if set(sides) != set(names):
            raise InputError(f"a side for each of {listed(names)}", listed(list(sides)), "name the columns of inputs")
        sides = [sides[name] for name in names]
    elif len(sides) == 1:
        sides *= len(names)
    elif len(sides) != len(names):
        raise InputError(f"a side for each of {listed(names)}", f"{len(sides)} sides", "give one for all, or every one")
    return Target(pair, dict(zip(names, sides, strict=True)), **about)


def _require_one_answer(samples: Columns) -> None:
    """Refuse an input that has two answers, by the names of its rows."""
    first: dict[bytes, int] = {}
    for i, point in enumerate(samples.x + 0.0):
        k = first.setdefault(point.tobytes(), i)
        if (samples.y[i] != samples.y[k]).any():
            found = f"the same input with different answers: {samples.rows[k]} and {samples.rows[i]}"
            raise InputError("one answer for every input", found, "keep one of each")


def _csv(path: Path, targets: list[str] | None) -> Columns:
    cells = cells_of(path)
    first = next(cells, None)
    if first is None:
        raise InputError(f"samples in {path.name}", "an empty file", "write a header and one sample per line")
    line, header = first[0], [cell.strip() for cell in first[1]]
    if all(number_of(cell) is not None for cell in header):
        found, change = f"numbers in line {line}: {short(header)}", "write the names of the columns in the first line"
        raise InputError(f"a header in {path.name}", found, change)
    if len(header) == 1 and (sign := next((sign for sign in ";\t" if sign in header[0]), None)):
        found = f"{'semicolons' if sign == ';' else 'tabs'} in line {line}: {short(header)}"
        raise InputError(
            f"columns separated by commas in {path.name}", found, "write commas, and decimals with a point"
        )
    targets = header[-1:] if targets is None else targets
    names = _inputs(path, header, targets)
    columns: dict[str, list[str]] = {name: [] for name in header}
    rows = []
    for line, row in cells:
        if len(row) != len(header):
            found = f"{len(row)} in line {line}: {short(row)}"
            raise InputError(f"{len(header)} columns in {path.name}", found, "correct that line")
        rows.append(f"line {line}")
        for name, cell in zip(header, row, strict=True):
            columns[name].append(cell.strip())
    if not rows:
        raise InputError(f"samples in {path.name}", "a header alone", "write one sample per line")
    import numpy as np

    x = np.array([_numbers(path, name, columns[name], rows) for name in names]).T
    return Columns(x, _typed(path, [columns[name] for name in targets], rows), names, rows, targets)


def _inputs(path: Path, header: list[str], targets: list[str]) -> list[str]:
    """The columns that are not targets."""
    if twice := [name for name in header if header.count(name) > 1]:
        raise InputError(f"distinct column names in {path.name}", f"{twice[0]!r} twice", "rename one of them")
    if missing := [name for name in targets if name not in header]:
        found = f"no column {missing[0]!r} among {listed(header)}"
        raise InputError(f"--target, a column of {path.name}", found, "name a column of the header")
    names = [name for name in header if name not in targets]
    if not names:
        raise InputError(f"a column of inputs in {path.name}", f"{listed(header)} alone", "name fewer targets")
    return names


def _numbers(path: Path, name: str, cells: list[str], rows: list[str]) -> list[float]:
    """A column of finite numbers."""
    numbers = [number_of(cell) for cell in cells]
    for number, cell, row in zip(numbers, cells, rows, strict=True):
        if number is None or not math.isfinite(number):
            found = f"{short([cell])} in column {name}, {row}"
            raise InputError(f"finite numbers in {path.name}", found, "correct that cell, or leave the column out")
    return [number for number in numbers if number is not None]


def _typed(path: Path, columns: list[list[str]], rows: list[str]) -> Any:
    """Answers as whole numbers if all of them are, else as real numbers if all of them are, else as words."""
    import numpy as np

    for cells in columns:
        for cell, row in zip(cells, rows, strict=True):
            if not cell:
                raise InputError(f"an answer on every line of {path.name}", f"none in {row}", "fill it in")
    flat = [cell for cells in columns for cell in cells]
    kept: Sequence[object] = flat
    if all(cell.lstrip("+-").isascii() and cell.lstrip("+-").isdigit() and len(cell) < 18 for cell in flat):
        kept = [int(cell) for cell in flat]
    elif all(number_of(cell) is not None for cell in flat):
        kept = [number for column in columns for number in _numbers(path, "of the target", column, rows)]
    y = np.array(kept).reshape(len(columns), -1).T
    return y[:, 0] if len(columns) == 1 else y


def _parquet(path: Path, targets: list[str] | None) -> Columns:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        change = "pip install 'onelayer[files]', or write CSV"
        raise InputError("a Parquet file, which pyarrow reads", "pyarrow is not installed", change) from None
    try:
        table = parquet.read_table(path)
    except ArrowException as error:
        raise InputError(f"Parquet in {path.name}", " ".join(str(error).split())[:100], "correct the file") from None
    targets = list(table.column_names)[-1:] if targets is None else targets
    names = _inputs(path, list(table.column_names), targets)
    import numpy as np

    rows = [f"row {i}" for i in range(table.num_rows)]
    if not rows:
        raise InputError(f"samples in {path.name}", "no rows", "write one sample per row")
    x = [_numbers(path, name, [str(value) for value in table[name].to_pylist()], rows) for name in names]
    answers = [table[name].to_pylist() for name in targets]
    if None in [value for column in answers for value in column]:
        raise InputError(f"an answer in every row of {path.name}", "missing ones", "fill them in")
    y = np.array(answers).T
    return Columns(np.array(x).T, y[:, 0] if len(targets) == 1 else y, names, rows, targets)


def _arrays(path: Path, target: Path) -> Columns:
    """X from one NumPy file and Y from another."""
    if not target.is_file():
        raise InputError(
            f"answers for {path.name} in a file of their own", f"no file {target}", "name it with --target Y.npy"
        )
    x, y = _array(path), _array(target)
    return Columns(x, y, None, [f"row {i}" for i in range(len(x) if x.ndim else 0)])


def _last_column(path: Path) -> Columns:
    """X and Y from one NumPy file [N, D + 1]."""
    both = _array(path)
    if both.ndim != 2 or both.shape[1] < 2:
        found = f"an array of shape {list(both.shape)}"
        raise InputError(f"inputs and answers [N, D + 1] in {path.name}", found, "name the answers with --target Y.npy")
    names = [f"x{j + 1}" for j in range(both.shape[1] - 1)]
    return Columns(both[:, :-1], both[:, -1], names, [f"row {i}" for i in range(len(both))], ["the last column"])


def _array(path: Path) -> Any:
    """The array of a NumPy file, which may not hold Python objects."""
    import numpy as np

    try:
        with path.open("rb") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError) as error:
        why = " ".join(str(error).split())[:100]
        raise InputError(f"an array of numbers or words in {path.name}", why, "write it with numpy.save") from None
