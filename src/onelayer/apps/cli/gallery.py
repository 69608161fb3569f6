"""`onelayer gallery`: functions that one layer computes with a proved error: list them, or build one."""

import inspect
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import typer

from ...common.errors import InputError
from ...common.numbers import exact
from . import options as given
from .build import record_of, record_of_sequence_layer, usable
from .show import print_json, print_wrapped


def gallery(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[ENTRY]", help="The entry to build; lists them all if left out.")
    ] = None,
    out: Annotated[str | None, typer.Option(metavar="FOLDER", help="The model folder to write.")] = None,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """List the gallery, or build one of its entries.

    For example: onelayer gallery sort --n 5 --out folder.

    The options of an entry are the parameters that the list shows: --n 5, --domain 0:1, --order 2,0,1, --matrix "1,2; 3,4".
    With --longest 1000 the layer is for sequences of every length up to that.
    """
    from ...construction.gallery import ENTRIES, any_length

    if name is None:
        if context.args or out is not None:
            raise InputError("the name of an entry before its options", "options alone", "see onelayer gallery")
        return _listed(ENTRIES, any_length.ENTRIES, json)
    lengthwise = any(word.startswith("--longest") for word in context.args) or name not in ENTRIES
    entries: dict[str, Callable[..., Any]] = any_length.ENTRIES if lengthwise else ENTRIES
    if name not in entries:
        known = any_length.ENTRIES if name in ENTRIES else ENTRIES | any_length.ENTRIES
        raise InputError(f"one of {', '.join(known)}", name, "see onelayer gallery")
    function = entries[name]
    arguments = _arguments(function, context.args)
    folder = usable(out, force) if out is not None else None
    approximation = function(**arguments)
    written = approximation.save(folder, overwrite=force) if folder is not None else Path()
    if json:
        record = record_of_sequence_layer(approximation, written) if lengthwise else record_of(approximation, written)
        print_json(record if folder is not None else record | {"folder": None})
    else:
        print(approximation)
        print(f"written to {out}" if folder is not None else "not written: name a folder with --out")
    return 0 if approximation.certificate.verdict == "CERTIFIED" else 1


def _listed(entries: dict[str, Callable[..., Any]], any_length: dict[str, Callable[..., Any]], json: bool) -> int:
    rows = [(name, _signature(f), (inspect.getdoc(f) or "").splitlines()[0]) for name, f in entries.items()]
    longer = [(name, _signature(f), (inspect.getdoc(f) or "").splitlines()[0]) for name, f in any_length.items()]
    if json:
        print_json([{"entry": name, "options": options, "computes": text} for name, options, text in rows + longer])
        return 0
    for title, listed in (("For one length:", rows), ("For every length up to the longest:", longer)):
        print(title)
        for name, options, text in listed:
            print_wrapped(f"{name:<20} ", text)
            print_wrapped(" " * 21, options)
    return 0


def _signature(function: Callable[..., Any]) -> str:
    """The options of an entry as the user types them; those in brackets are optional."""
    shown = []
    for p in inspect.signature(function).parameters.values():
        flag = "--" + p.name.replace("_", "-")
        needed = p.default is inspect.Parameter.empty
        value = p.name.upper() if needed or p.default is None else _typed(p.default)
        option = flag if p.default is False else f"{flag} {value}"
        shown.append(option if needed else f"[{option}]")
    return " ".join(shown)


def _typed(value: Any) -> str:
    """A default as the user would type it."""
    if isinstance(value, tuple):
        return ":".join(map(exact, value))
    if isinstance(value, str):
        return value if value.isalnum() else f'"{value}"'
    return exact(value) if isinstance(value, float) else str(value)


def _arguments(function: Callable[..., Any], words: Sequence[str]) -> dict[str, Any]:
    """`--name value` pairs (a switch has no value) as arguments of the entry."""
    parameters, kinds = inspect.signature(function).parameters, get_type_hints(function)
    found, queue = dict[str, Any](), list(words)
    while queue:
        word = queue.pop(0)
        flag, _, inline = word.partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        name = "tolerance" if name == "eps" else name
        if not flag.startswith("--") or name not in parameters:
            raise InputError(f"options {_signature(function)}", word, "see onelayer gallery")
        if kinds[name] is bool and not inline:
            found[name] = True
            continue
        if not inline and not queue:
            raise InputError(f"a value for {flag}", "none", f"write {flag} VALUE")
        found[name] = _value(inline or queue.pop(0), kinds[name], flag)
    missing = [p for p, about in parameters.items() if about.default is inspect.Parameter.empty and p not in found]
    if missing:
        raise InputError(f"--{missing[0]} for {function.__name__}", "none", f"give {_signature(function)}")
    return found


def _value(text: str, kind: Any, flag: str) -> Any:
    """The text as a value of the annotated kind."""
    if get_origin(kind) in (Union, types.UnionType):  # … | None
        kind = next(k for k in get_args(kind) if k is not type(None))
    if kind is str:
        return text
    if kind is bool:
        if text not in ("true", "false"):
            raise InputError(f"{flag} true or false", text, "choose one of the two")
        return text == "true"
    if kind is int:
        return _whole(text, flag)
    if get_origin(kind) is tuple:  # two ends
        ends = text.split(":")
        if len(ends) != 2:
            raise InputError(f"{flag} low:high", text, "write for instance 0:1")
        return tuple(given.number(end, flag) for end in ends)
    if get_origin(kind) is not None and get_origin(get_args(kind)[0]) is not None:  # rows of numbers
        return [[given.number(v, flag) for v in row.split(",")] for row in text.split(";")]
    if get_origin(kind) is not None:
        whole = get_args(kind)[0] is int
        return [_whole(v, flag) if whole else given.number(v, flag) for v in text.split(",")]
    return given.number(text, flag)


def _whole(text: str, flag: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"a whole number for {flag}", text, "write digits") from None
