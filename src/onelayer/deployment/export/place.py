"""Writing an export: complete or absent, and never over something else."""

import os
from pathlib import Path

from ...common.atomic import fresh_folder, write_file
from ...common.errors import InputError


def require_place(path: str | Path, names: tuple[str, ...], force: bool) -> Path:
    """The absolute path, if nothing is there or, with `force`, an earlier export of that kind.

    One name means a file at `path` itself; several mean files in a folder `path`.
    """
    place = Path(path).absolute()
    if not str(path).strip() or not place.name or place.name == "..":
        raise InputError("a path to write to", f"{str(path)!r}", "name a new file or folder")
    if not (place.exists() or place.is_symlink()):
        return place
    if not force:
        raise InputError(f"a new name, not {place.name}", "something with that name", "choose another, or use force")
    known = {*names, "__pycache__"}
    earlier = place.is_file() if len(names) == 1 else place.is_dir() and set(os.listdir(place)) <= known
    if place.is_symlink() or not earlier:
        raise InputError(f"an earlier export at {place.name}", "something else", "choose another name")
    return place


def write(place: Path, files: dict[str, bytes]) -> None:
    """One file at `place`, or several in a folder there: all or none."""
    if len(files) == 1:
        write_file(place, next(iter(files.values())))
        return
    with fresh_folder(place) as fresh:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
