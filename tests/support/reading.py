"""Numbers read back from text: which number of a certificate each stands for, and whether it claims more than that one."""

import html
import json
import re
from dataclasses import dataclass, field

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
NEAR = 0.006  # as a share: what rounding to two digits changes the numbers of the tests by


@dataclass
class Truth:
    """The true numbers by name. No two are near each other, and none is near anything else that is printed."""

    upper: dict[str, float] = field(default_factory=dict)  # proved: may be printed larger
    lower: dict[str, float] = field(default_factory=dict)  # may be printed smaller
    exact: dict[str, float] = field(default_factory=dict)

    def read(self, text: str) -> set[str]:
        """The names of all numbers in the text; fails on the first one that says more than is true."""
        found = set()
        for token in NUMBER.findall(plain(text)):
            value = float(token)
            for kind in ("upper", "lower", "exact"):
                for name, true in getattr(self, kind).items():
                    if value == true or abs(value - true) <= NEAR * abs(true):
                        good = {"upper": value >= true, "lower": value <= true, "exact": value == true}[kind]
                        assert good, f"{name} is {true!r}, printed as {token} in: {around(text, token)}"
                        found.add(name)
        return found


def plain(text: str) -> str:
    """Text as a reader sees it: without scripts and tags, with a plain minus sign."""
    text = re.sub(r"<(script|style)\b.*?</\1>", " ", text, flags=re.DOTALL)
    text = re.sub(r"<input[^>]*>|<\/?[a-z][^>]*>", " ", text)
    return html.unescape(text).replace("−", "-").replace("±", " ")


def around(text: str, token: str) -> str:
    at = plain(text).find(token)
    return " ".join(plain(text)[max(0, at - 60) : at + 60].split())


def words_of(figure: object) -> str:
    """All texts of a plotly figure: titles, annotations, names, what appears under the mouse."""
    found: list[str] = []

    def walk(part: object) -> None:
        if isinstance(part, dict):
            for name, value in part.items():
                if name != "template":
                    walk(value)
        elif isinstance(part, list):
            for value in part:
                walk(value)
        elif isinstance(part, str):
            found.append(part)

    walk(json.loads(figure.to_json()))
    return "\n".join(found)
