"""The errors of onelayer.

    OneLayerError
    └── InputError (also a ValueError)   what was asked for cannot be: one line, asked / found / change

A layer that could not be certified is no error: its certificate carries the verdict.
"""


class OneLayerError(Exception):
    """Base of every error that onelayer raises on purpose."""


class InputError(OneLayerError, ValueError):
    """Bad input, in one line that says what was asked for, what was found and what to change."""

    def __init__(self, asked: str, found: str, change: str) -> None:
        self.asked, self.found, self.change = asked, found, change
        super().__init__(f"asked: {asked}; found: {found}; change: {change}")

    def __reduce__(self) -> tuple[type["InputError"], tuple[str, str, str]]:
        return type(self), (self.asked, self.found, self.change)
