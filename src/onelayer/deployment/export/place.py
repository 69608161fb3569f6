"""Writing an export: complete or absent, and never over something else."""

import os
from fnmatch import fnmatch
from pathlib import Path

from safetensors import SafetensorError, safe_open

from ...common.atomic import FORCE, write_file, write_folder
from ...common.errors import InputError
from ..earlier_model import require_no_model_file


def require_place(path: str | Path, names: tuple[str, ...], overwrite: bool) -> Path:
    """The absolute path, if nothing is there or, with `overwrite`, a file or an earlier export to a folder.

    One name means a file at `path` itself; several mean files in a folder `path`.
    """
    place = Path(path).absolute()
    if not str(path).strip() or not place.name or place.name == "..":
        raise InputError("a path to write to", f"{str(path)!r}", "name a new file or folder")
    if not os.path.lexists(place):
        return place
    if not overwrite:
        change = f"choose another, or replace it: {FORCE}"
        raise InputError(f"a new name, not {place}", "something with that name", change)
    earlier = place.is_file() if len(names) == 1 else place.is_dir() and _is_export(place, names)
    if place.is_symlink() or not earlier:
        raise InputError(f"an earlier export at {place}", "something else", "choose another name")
    require_no_model_file(place)
    return place


def _is_export(place: Path, names: tuple[str, ...]) -> bool:
    """Whether a folder holds an earlier export and nothing else."""
    held = set(os.listdir(place)) - {"__pycache__"}
    if not held or not all(any(fnmatch(name, known) for known in names) for name in held):
        return not held
    if names[0].endswith(".csv"):  # that names all other files
        return names[0] in held
    try:
        with safe_open(place / "model.safetensors", framework="np") as file:
            return "layer" in (file.metadata() or {})
    except (SafetensorError, OSError):
        return False


def write(place: Path, files: dict[str, bytes]) -> None:
    """One file at `place`, or several in a folder there: all or none. What else an earlier export has there is removed."""
    if len(files) == 1:
        write_file(place, next(iter(files.values())))
    else:
        earlier = os.listdir(place) if place.is_dir() else []  # of an export: `require_place` has looked
        write_folder(place, files, [name for name in earlier if name not in files and (place / name).is_file()])
