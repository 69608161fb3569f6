"""The words of every refusal in the source, read once: they say what to do, to whoever reads them."""

import ast
import re
from functools import cache
from pathlib import Path

import onelayer

SOURCE = Path(onelayer.__file__).parent
EMPTY = {"change it", "correct it", "fix it", "give such a number", "give a valid constant", "declare a valid modulus"}


def words(node: ast.AST) -> str:
    """The text of a literal, with … for what is filled in; "" for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


@cache
def refusals() -> list[tuple[str, list[str]]]:
    """(file:line, [asked, found, change]) of every InputError that is made in the source."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "InputError":
                found.append((f"{file.relative_to(SOURCE)}:{node.lineno}", [words(argument) for argument in node.args]))
    return found


def test_there_are_many():
    assert len(refusals()) > 300


def test_a_change_says_what_to_do():
    """A verb comes first: change: use …, not change: a larger tolerance."""
    for place, parts in refusals():
        change = parts[2] if len(parts) == 3 else ""
        assert change not in EMPTY, place
        assert not re.match(r"(a|an|the|for|one|\w+=|--)\b", change.replace("one of", "")), (place, change)


def test_python_users_hear_no_flags():
    for place, parts in refusals():
        if not place.startswith("apps/"):
            assert not any(re.search(r"(^|\s)--[a-z]", part) for part in parts), place
