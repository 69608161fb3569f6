"""Whether the fields of a dataclass that was read from a file have the types that they are declared with."""

import sys
import types
from dataclasses import fields
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from .errors import InputError


def require_types(record: Any, file: str) -> None:
    """Refuse a dataclass with a field of another type; `file` is where it was read from."""
    hints = get_type_hints(type(record))
    for field in fields(record):
        value = getattr(record, field.name)
        if not fits(value, hints[field.name]):
            asked = f"{field.name.replace('_', ' ')} of the right type in {file}"
            raise InputError(asked, f"{value!r}"[:80], "build the folder again")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of a type: plain ones, Literal, unions, tuples and dictionaries; whole numbers count as floats."""
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return True
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    if origin in (Union, types.UnionType):
        return any(fits(value, choice) for choice in inner)
    if origin is tuple:
        kinds = inner[:1] * len(value) if isinstance(value, tuple) and inner[-1:] == (...,) else inner
        return isinstance(value, tuple) and len(value) == len(kinds) and all(map(fits, value, kinds))
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, inner[0]) and fits(v, inner[1]) for k, v in value.items())
    if hint is float:
        return isinstance(value, float) or (type(value) is int and abs(value) <= sys.float_info.max)
    return type(value) is int if hint is int else isinstance(value, hint)
