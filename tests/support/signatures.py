"""Shapes and types of every signature, enforced at every call: jaxtyping's import hook with a quicker decorator.

`jaxtyping.jaxtyped` binds the arguments of each call and calls two functions that do nothing but check: on small functions
this takes ten times as long as the function. Here beartype checks the function itself, within one `jaxtyped("context")`
where a signature has shapes. What is checked is the same; annotations that cannot be resolved yet say nothing in both.
"""

import dataclasses
import functools
import inspect
import types
import typing

import jaxtyping
from beartype import beartype

whole = jaxtyping.jaxtyped
enforced = True


def install() -> None:
    """Modules of onelayer imported from now on check their signatures, as long as `enforced`."""
    jaxtyping.jaxtyped = checked  # the hook's decorator
    jaxtyping.install_import_hook("onelayer", "beartype.beartype")


def checked(thing=None, *, typechecker=beartype):
    if thing is None:
        return functools.partial(checked, typechecker=typechecker)
    if isinstance(thing, type):
        if dataclasses.is_dataclass(thing) and "__init__" in vars(thing):
            thing.__init__ = checked(thing.__init__)
        return thing
    if not inspect.isfunction(thing) or inspect.isgeneratorfunction(thing) or inspect.iscoroutinefunction(thing):
        return whole(thing, typechecker=typechecker)
    return checked_function(thing)


def checked_function(function):
    hints = {name: resolved(hint, function.__globals__) for name, hint in function.__annotations__.items()}
    if all(hint is typing.Any for hint in hints.values()):
        return function
    strict = beartype(with_hints(function, hints))

    def plain_call(*args, **kwargs):
        return strict(*args, **kwargs) if enforced else function(*args, **kwargs)

    def shaped_call(*args, **kwargs):
        if not enforced:
            return function(*args, **kwargs)
        with whole("context"):
            return strict(*args, **kwargs)

    return functools.wraps(function)(shaped_call if "jaxtyping" in str(hints) else plain_call)


def resolved(hint, names):
    """The hint without quotation marks; Any where a name in it is not there (yet)."""
    try:
        return typing.get_type_hints(types.SimpleNamespace(__annotations__={"it": hint}), names, include_extras=True)[
            "it"
        ]
    except Exception:
        return typing.Any


def with_hints(function, hints):
    """The same function with other annotations."""
    code = (function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    copy = types.FunctionType(*code)
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, hints
    copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
    return copy
