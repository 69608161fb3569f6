"""Folders and files that are complete or absent: written beside their destination under another name, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def move(fresh: Path, folder: Path) -> None:
    """Rename a finished folder into place; an old folder steps aside first and is removed last."""
    if not folder.exists():
        os.rename(fresh, folder)
        return
    aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.old.", dir=folder.parent))
    os.rename(folder, aside / "old")
    try:
        os.rename(fresh, folder)
    except BaseException:  # an interrupt too: the old folder comes back
        os.rename(aside / "old", folder)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def fresh_folder(folder: Path) -> Iterator[Path]:
    """A folder to write into, which takes its place when all is written; nothing is left of it if something goes wrong."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield fresh
        fresh.chmod(0o777 & ~umask())
        move(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def written(path: Path, content: str | bytes) -> Path:
    """Write a file, complete or absent; its folder is made if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(fresh, 0o666 & ~umask())
        os.replace(fresh, path)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return path


def umask() -> int:
    """The permissions that new files do without (temporary folders and files have stricter ones of their own)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
