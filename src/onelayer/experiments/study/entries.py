"""Entries of a TOML document: known ones, of the right type, or one line that says what is wrong."""

from collections.abc import Mapping
from typing import Any

from ...common.errors import InputError


def require_known(what: str, given: Any, known: set[str]) -> None:
    """Refuse anything but a table, and unknown entries."""
    if not isinstance(given, Mapping):
        raise InputError(f"{what}, a table", f"{given!r}", "write name = value inside of it")
    for key in given:
        if key not in known:
            raise InputError(f"{what}: {', '.join(sorted(known))}", repr(key), "correct its name, or leave it out")


def tables_of(record: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """The tables [[key]] of a document."""
    found = record.get(key, [])
    if not isinstance(found, list) or not all(isinstance(entry, Mapping) for entry in found):
        raise InputError(f"{key}, a list of tables", f"{found!r}", f"write [[{key}]]")
    return found


def names_of(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """One column name, or several."""
    found = entry.get(key, [])
    several = found if isinstance(found, list) else [found]
    if not all(isinstance(name, str) for name in several):
        raise InputError(f"{key}, names of columns", f"{found!r}", 'write for instance ["target", "method"]')
    return tuple(several)


def column_of(entry: Mapping[str, Any], key: str) -> str:
    """One column name, which is required."""
    found = entry.get(key)
    if not isinstance(found, str) or not found:
        raise InputError(f"{key}, the name of a column", "none" if found is None else f"{found!r}", "name one")
    return found


def where_of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    """Columns, and the values allowed in them."""
    found = entry.get("where", {})
    if not isinstance(found, Mapping):
        raise InputError("where, a table", f"{found!r}", "write where = { column = value }")
    return found
