"""Folders and files that are complete or absent: written beside their destination under another name, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_folder(fresh: Path, folder: Path) -> None:
    """Rename a finished folder into place; an old one is moved aside first and removed last."""
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
    """A folder to write into; it becomes `folder` when all is written, and is removed if anything fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield fresh
        fresh.chmod(0o777 & ~umask())
        replace_folder(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file, complete or absent; its folder is created if need be."""
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
    """The permissions that new files are denied (temporary files and folders start with stricter ones)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
