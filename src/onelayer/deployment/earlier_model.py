"""What a folder holds before a model is written into it: the files of an earlier model may be replaced on request, no others."""

import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from ..common.atomic import FORCE, alone
from ..common.errors import InputError

MODEL_FILES = ("model.safetensors", "target.json", "certificate.json")
STUDENT_FILES = ("student.safetensors", "distillation.json")
PROMPT_FILES = ("weights.safetensors", "prompt.safetensors")  # beside those of a model
REPORT = "report.html"
CIRCUIT = "circuit.json"
PAGE_MARK = '<meta name="generator" content="onelayer, {kind}">'  # in the first lines of every page
MOST_NAMES = 6  # in a refusal


def require_place(folder: Path, overwrite: bool, report: bool = False) -> None:
    """Refuse a folder that holds something, unless `overwrite`; and always one where others' files have the names of ours."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        kind = "a link" if folder.is_symlink() else "a file"
        raise InputError(f"a new folder {folder}", f"{kind} with that name", "choose another name")
    if not folder.exists():
        return
    names = (*MODEL_FILES, *STUDENT_FILES, *PROMPT_FILES, *((REPORT,) if report else ()))
    with alone(folder):
        foreign = [name for name in names if os.path.lexists(folder / name) and not is_ours(folder / name)]
    if foreign:
        found = f"{' and '.join(foreign)} in it, not written by onelayer"
        raise InputError(f"a folder {folder} for a model", found, "choose another folder")
    if not overwrite and any(folder.iterdir()):
        ours = any((folder / name).exists() for name in names)
        instead = "replace the model in it and nothing else" if ours else "write the model beside these"
        change = f"choose another name, or {instead}: {FORCE}"
        raise InputError(f"a new folder {folder}", f"one that holds {_contents(folder)}", change)


def stale_files(folder: Path, files: Iterable[str]) -> list[str]:
    """The files of an earlier model that a new one, which consists of `files`, does not replace."""
    known = {*MODEL_FILES, *STUDENT_FILES, *PROMPT_FILES, REPORT, CIRCUIT} - set(files)
    if not folder.exists():
        return []
    with alone(folder):
        return sorted(name for name in known if is_ours(folder / name))


def require_no_model_file(path: Path) -> None:
    """Refuse to put something else in the place of a file of a model, which would be lost with it."""
    if path.name in (*MODEL_FILES, *STUDENT_FILES, *PROMPT_FILES) and is_ours(path):
        raise InputError(f"a file {path}", "a file of the model in that folder", "choose another name")


def is_ours(path: Path) -> bool:
    """Whether a file with the name of one of ours was written by us."""
    return path.is_file() and not path.is_symlink() and _RECOGNISED[path.name](path)


def is_page(path: Path, kind: str) -> bool:
    """Whether a file is a page of this kind that onelayer wrote."""
    with path.open("rb") as file:
        return PAGE_MARK.format(kind=kind).encode() in file.read(1000)


def _has_metadata(*keys: str) -> Callable[[Path], bool]:
    def found(path: Path) -> bool:
        try:
            with safe_open(path, framework="np") as file:
                return set(keys) <= set(file.metadata() or {})
        except SafetensorError:
            return False

    return found


def _has_fields(*keys: str, or_else: tuple[str, ...] = ()) -> Callable[[Path], bool]:
    def found(path: Path) -> bool:
        try:
            record: Any = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            return False
        choices = [set(keys), set(or_else or keys)]
        return isinstance(record, dict) and any(choice <= set(record) for choice in choices)

    return found


_RECOGNISED: dict[str, Callable[[Path], bool]] = {
    "model.safetensors": _has_metadata("config", "facts"),
    "target.json": _has_fields("schema", "kind", "lower", or_else=("schema", "kind", "longest")),
    "certificate.json": _has_fields("schema", "weights", "digest"),
    "student.safetensors": _has_metadata("student"),
    "weights.safetensors": _has_metadata("frozen"),
    "prompt.safetensors": _has_metadata("prompt"),
    "distillation.json": _has_fields("how", "teacher_parameters"),
    CIRCUIT: _has_fields("schema", "meaning", "nodes"),
    REPORT: lambda path: is_page(path, "one layer"),
}


def _contents(folder: Path) -> str:
    """The names in a folder, visible ones first."""
    names = sorted(os.listdir(folder), key=lambda name: (name.startswith("."), name))
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more if names else "nothing"
