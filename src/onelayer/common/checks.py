"""Checks of options: their names, paths, whole numbers, shapes, seeds, seconds, and choices among a few words."""

import difflib
import functools
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from .errors import InputError

LARGEST_SEED = 2**32 - 1
OTHER_NAMES = {
    "eps": "tolerance",
    "epsilon": "tolerance",
    "where": "within",
    "L": "lipschitz",
    "alike": "shared_scale",
    "force": "overwrite",
}
TARGET_OPTIONS = (
    "shape",
    "output_shape",
    "lipschitz",
    "modulus",
    "within",
    "evaluation_error",
    "margin",
    "split",
    "symmetric",
)

P = ParamSpec("P")
R = TypeVar("R")


def known_options(function: Callable[P, R]) -> Callable[P, R]:
    """The door of a public function: NumPy's numbers become Python's, and unknown options and wrong paths are refused.

    For an option that the function does not have, the nearest one that it has is named.
    """
    parameters = inspect.signature(function).parameters
    names, owner = list(parameters), function.__qualname__.removesuffix(".__init__")
    paths = {name: p.annotation for name, p in parameters.items() if p.annotation in (str | Path, str | Path | None)}

    @functools.wraps(function)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in names:
                raise InputError(f"an option of {owner}", name, _nearest(name, names))
        for name, value in [*zip(names, args, strict=False), *options.items()]:
            if name in paths and not isinstance(value, paths[name] | PathLike):
                raise InputError(f"{name}, a path", f"{type(value).__name__}", "name a folder or a file")
        call: Callable[..., R] = function
        return call(*map(_plain, args), **{name: _plain(value) for name, value in options.items()})

    return checked


def _plain(value: Any) -> Any:
    """A NumPy number as Python's, which can be written as JSON; anything else as it is."""
    return value.item() if type(value).__module__ == "numpy" and getattr(value, "shape", None) == () else value


def _nearest(name: str, names: list[str]) -> str:
    if (meant := OTHER_NAMES.get(name, name)) in TARGET_OPTIONS and meant not in names:
        return f"put it into the target: Target(function, domain, {meant}=…)"
    near = [n for n in [OTHER_NAMES.get(name, ""), *difflib.get_close_matches(name, names, n=1)] if n in names]
    return f"did you mean {near[0]}?" if near else f"use one of {', '.join(n for n in names if n != 'self')}"


def is_whole(value: object) -> bool:
    """Whether it is a whole number; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: object) -> bool:
    """Whether it is a real number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_shape(value: object) -> bool:
    """Whether it is a sequence of one or more whole numbers from 1 on."""
    return isinstance(value, Sequence) and all(isinstance(n, Integral) and int(n) >= 1 for n in value) and bool(value)


def require_whole(name: str, value: object, low: int, high: int) -> None:
    """`value` is a whole number from `low` to `high`."""
    if not (is_whole(value) and low <= int(value) <= high):  # type: ignore[call-overload]
        raise InputError(f"{name}, a whole number from {low} to {high}", f"{value!r}", "choose a number in that range")


def require_seed(seed: object) -> None:
    require_whole("seed", seed, 0, LARGEST_SEED)


def require_not_negative(name: str, value: object, change: str) -> None:
    """`value` is a finite number ≥ 0."""
    if not (is_number(value) and 0 <= float(value) < math.inf):  # type: ignore[arg-type]
        raise InputError(f"{name}, finite and ≥ 0", f"{value!r}", change)


def require_seconds(seconds: object, purpose: str, finite: bool = True) -> None:
    """`seconds` is a number above 0, and not ∞ if `finite`; `purpose` says what may take that long."""
    if not (is_number(seconds) and float(seconds) > 0 and (float(seconds) < math.inf or not finite)):  # type: ignore[arg-type]
        asked = "seconds, finite and above 0" if finite else "seconds above 0"
        raise InputError(asked, f"{seconds!r}", f"give the time that {purpose} may take")


def require_flag(name: str, value: object) -> None:
    """`value` is True or False."""
    if not isinstance(value, bool):
        raise InputError(f"{name}, True or False", f"{value!r}", "give one of the two")


def require_choice(name: str, value: object, choices: Iterable[str]) -> None:
    """`value` is one of the choices."""
    choices = tuple(choices)
    if value not in choices:
        raise InputError(f"{name}, one of {', '.join(choices)}", f"{value!r}", "choose one of these")


def require_files(folder: Path, names: Iterable[str]) -> None:
    """`folder` is a folder with these files."""
    asked, change = f"a model folder at {folder}", "name a folder that `build` wrote"
    if folder.is_file():
        raise InputError(asked, "a file", change)
    if not folder.exists():
        raise InputError(asked, "no such folder", change)
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise InputError(asked, f"no {missing[0]} in it", change)
