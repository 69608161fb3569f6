"""Files that are complete or absent: written under another name beside their destination, then renamed."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import InputError

FORCE = "overwrite=True"


def write_file(path: Path, content: str | bytes) -> Path:
    """Write a file, complete or absent; its folder is created if need be."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = _written(path, content)
    try:
        os.replace(fresh, path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    return path


def write_folder(folder: Path, files: Mapping[str, bytes], stale: Iterable[str] = ()) -> Path:
    """Write files of which the last vouches for the others; nothing else in the folder is touched, except `stale` files.

    A new folder appears complete. In an existing one the last file is moved aside before anything else changes and the new one
    comes last, so that whoever finds it also finds the files that belong to it, even if the writer is killed on the way. The
    earlier files come back if anything fails; where even that fails, or the writer is killed, they stay in `.earlier.…`.
    Of several writers one waits for the other.
    """
    if not folder.exists():
        return _new_folder(folder, files)
    with alone(folder):
        return _replaced(folder, files, stale)


def _replaced(folder: Path, files: Mapping[str, bytes], stale: Iterable[str]) -> Path:
    """New files in the place of earlier ones."""
    *others, last = files
    fresh: dict[str, Path] = {}
    earlier = Path(tempfile.mkdtemp(prefix=".earlier.", dir=folder))
    replaced = [name for name in (last, *stale, *others) if (folder / name).exists()]
    try:
        for name, content in files.items():
            fresh[name] = _written(folder / name, content)
        for name in replaced:
            os.replace(folder / name, earlier / name)
        for name, path in fresh.items():
            os.replace(path, folder / name)
    except BaseException:  # an interrupt too: the earlier files come back, the last one last
        for name, path in fresh.items():
            (path if path.exists() else folder / name).unlink(missing_ok=True)
        for name in reversed(replaced):
            if (earlier / name).exists():
                os.replace(earlier / name, folder / name)
        earlier.rmdir()
        raise
    shutil.rmtree(earlier, ignore_errors=True)
    return folder


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """No other writer in a folder meanwhile, where the system has locks; they end with their process."""
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def require_new(path: Path, overwrite: bool) -> None:
    """Refuse a name that is taken; with `overwrite` only that of a folder or a link."""
    if path.is_symlink() or path.is_dir():
        kind = "a link" if path.is_symlink() else "a folder"
        raise InputError(f"a new file {path}", f"{path} is {kind}", "choose another name")
    if path.exists() and not overwrite:
        raise InputError(f"a new file {path}", "a file with that name", f"choose another name, or replace it: {FORCE}")


def _new_folder(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write beside the destination, and rename."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, content in files.items():
            os.replace(_written(fresh / name, content), fresh / name)
        fresh.chmod(0o777 & ~_umask())
        os.rename(fresh, folder)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
    return folder


def _written(path: Path, content: str | bytes) -> Path:
    """A file with this content beside `path`, under another name."""
    handle, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        os.chmod(fresh, 0o666 & ~_umask())
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
    return Path(fresh)


def _umask() -> int:
    """The permissions that new files are denied (temporary files and folders start with stricter ones)."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
