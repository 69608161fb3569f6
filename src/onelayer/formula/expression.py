"""Formula and Condition: parsed text, ready to be interpreted.

A formula is f = (f_1, …, f_m) on ℝ^D. D is `dimension`: the number of names; for x1, x2, … the largest index. An
interpretation accepts more coordinates than D and ignores the rest.
"""

from dataclasses import dataclass, field
from functools import cached_property

from .tape import Tape
from .tree import Node, Predicate, variables


@dataclass(frozen=True)
class Formula:
    """The functions that `text` writes down; `names[j-1]` is the name of Variable(j)."""

    text: str
    names: tuple[str, ...]
    outputs: tuple[Node, ...]
    declared: bool = field(default=False, compare=False)  # its text says in which order: f(x, y) = …
    limits: tuple[Node, ...] = field(default=(), compare=False)  # where these are 0 a limit is taken: x for sin(x)/x

    @property
    def dimension(self) -> int:
        return len(self.names)

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices, from 1, of the variables that occur in some output."""
        return variables(*self.outputs)

    @cached_property
    def output_variables(self) -> tuple[tuple[int, ...], ...]:
        """The same for every output by itself."""
        return tuple(variables(output) for output in self.outputs)

    @cached_property
    def tape(self) -> Tape:
        return Tape(self.outputs)

    @cached_property
    def slopes(self) -> "Formula | None":
        """All partial derivatives (`gradients.gradient`), derived once."""
        from .gradients import gradient

        return gradient(self)

    @cached_property
    def jet(self) -> Tape:
        """The outputs, and after them all partial derivatives, output by output."""
        from .gradients import slopes

        return Tape((*self.outputs, *(slope for row in slopes(self) for slope in row)))


@dataclass(frozen=True)
class Condition:
    """The subset of ℝ^D that `text` writes down, such as x1**2 + x2**2 <= 1."""

    text: str
    names: tuple[str, ...]
    root: Predicate

    @property
    def dimension(self) -> int:
        return len(self.names)

    @cached_property
    def variables(self) -> tuple[int, ...]:
        """Indices, from 1, of the variables that occur."""
        return variables(self.root)

    @cached_property
    def tape(self) -> Tape:
        return Tape((self.root,))
