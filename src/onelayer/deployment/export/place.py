"""Writing an export: complete or absent, and never over something else."""

import os
import shutil
import tempfile
from pathlib import Path

from ...common.atomic import move, umask
from ...common.errors import InputError


def require_place(path: str | Path, names: tuple[str, ...], force: bool) -> Path:
    """The absolute path, once it may be written: nothing is there, or with `force` an earlier export of that kind.

    One name is a file at `path` itself; several are files in a folder `path`.
    """
    place = Path(path).absolute()
    if not str(path).strip() or not place.name or place.name == "..":
        raise InputError("a path to write to", f"{str(path)!r}", "name a new file or folder")
    if not (place.exists() or place.is_symlink()):
        return place
    if not force:
        raise InputError(f"a new name, not {place.name}", "something of that name", "choose another, or use force")
    earlier = (
        place.is_file() if len(names) == 1 else place.is_dir() and set(os.listdir(place)) <= {*names, "__pycache__"}
    )
    if place.is_symlink() or not earlier:
        raise InputError(f"an earlier export at {place.name}", "something else", "choose another name")
    return place


def write(place: Path, files: dict[str, bytes]) -> None:
    """All files or none: they are written beside the destination and renamed."""
    place.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{place.name}.", dir=place.parent))
    try:
        for name, content in files.items():
            (fresh / name).write_bytes(content)
        if len(files) == 1:
            os.replace(fresh / next(iter(files)), place)
            fresh.rmdir()
        else:
            fresh.chmod(0o777 & ~umask())
            move(fresh, place)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
