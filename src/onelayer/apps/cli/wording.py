"""What the library says in the words of Python, said in the words of the command line: method='solved' is --method solved."""

import re
from collections.abc import Callable
from inspect import signature
from typing import Any

import typer

from ...common.checks import OTHER_NAMES
from ...common.errors import InputError

_PYTHON = re.compile(
    r"`(?P<quoted>\w+)`|(?<!--axis )\b(?P<name>[a-z_]+)=(?P<value>'[^']*'|True|[0-9]+(?:\.[0-9]+)?(?![\w.:]))"
)
_OPTION = {
    "overwrite": "force",
    "slope_tolerance": "slope-eps",
}  # Python's name → that of the option, where they differ
_PARSER = {  # what the option parser says, and what we say
    "Value error, ": "",
    "Input should be a valid number, unable to parse string as a number": "not a number",
    "Input should be a valid integer, unable to parse string as an integer": "not a whole number",
    "Input should be": "it should be",
}


def flags_of(command: Any) -> frozenset[str]:
    """The long options of a command and of its subcommands."""
    own = [flag for option in command.params for flag in option.opts]
    return frozenset(own).union(*(flags_of(sub) for sub in getattr(command, "commands", {}).values()))


def in_options(text: str, flags: frozenset[str]) -> str:
    """The text with Python's options as those of the command line, where there are such."""

    def option(match: re.Match[str]) -> str:
        name = match["quoted"] or match["name"]
        flag = "--" + _OPTION.get(name, name).replace("_", "-")
        if flag not in flags:
            return match[0]
        value = "" if match["quoted"] or match["value"] == "True" else match["value"].strip("'")
        return f"{flag} {value}".strip()

    return _PYTHON.sub(option, text)


def said(found: object, command: Callable[..., int]) -> str:
    """A result as text, its notes in the words of the command that prints it."""
    return in_options(str(found), frozenset(f"--{name.replace('_', '-')}" for name in signature(command).parameters))


def refusal_of(error: InputError, command: Any) -> str:
    """The line for bad input."""
    return in_options(str(error), flags_of(command))


def usage_of(error: Any) -> str:
    """The line for a command that is not written as `--help` says: what it needs, what is wrong, the option meant."""
    context: typer.Context | None = getattr(error, "ctx", None)
    path = context.command_path if context else "onelayer"
    text = error.format_message().rstrip(".").split(" (Possible options")[0]
    for theirs, ours in _PARSER.items():
        text = text.replace(theirs, ours)
    change = f"see {path} --help"
    near = getattr(error, "possibilities", None) or []
    other = OTHER_NAMES.get(getattr(error, "option_name", "").lstrip("-"))
    if context and f"--{other}" in flags_of(context.command):
        near = [f"--{other}", *near]
    if near:
        change = f"write {near[0]}, or {change}"
    asked = " ".join([path, *_needed(context.command)]) if context else path
    if not near and re.match("-[^-]", getattr(error, "option_name", "")) and "FORMULA" in asked:
        change = f"write a formula that starts with - in brackets, or {change}"
    return str(InputError(asked, text[0].lower() + text[1:], change))


def _needed(command: Any) -> list[str]:
    """What a command cannot do without, as one types it."""
    if getattr(command, "commands", None):
        return ["COMMAND"]
    options = [option for option in command.params if option.required]
    return [
        option.metavar or name.upper() if option.param_type_name == "argument" else f"{name} …"
        for option in options
        for name in option.opts[:1]
    ]
