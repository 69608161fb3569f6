"""How large a layer may be to take the place of another: fewer numbers at no more units, or far fewer numbers.

A unit of one family may store twice the numbers of another's: a layer of a few gates is read and explained, one of many
memory tokens is not, so that a tenth of the numbers is no reason for twice the units.
"""

from dataclasses import dataclass

from ...layer.assemble import outputs_of
from ...layer.assemble.gates import gate_config
from ...layer.assemble.memory import memory_config
from ...target.group_samples import GroupSamples
from ...target.target import Target
from .even import affordable_even

MOST_UNITS = 400  # of one group: a step costs the cube of it
FAR_FEWER = 0.5  # share of the numbers that a layer with more units may store


@dataclass(frozen=True)
class Size:
    """Units of a layer and the numbers that it stores."""

    units: int
    parameters: int

    def replaces(self, other: "Size") -> bool:
        limit = other.parameters - 1 if self.units <= other.units else FAR_FEWER * other.parameters
        return self.parameters <= limit


def parameters_of(target: Target, family: str, sources: list[GroupSamples], units: int) -> int:
    """The parameters of a layer with this many units."""
    if family == "gates":
        config = gate_config(target.dimension, outputs_of(target), "token", units=units, plain=False, anchored=False)
        return config.parameter_count
    if family != "memory":
        return memory_config(target.dimension, target.outputs, 0, [], ridges=units).parameter_count
    groups = [len(source.group) for source in sources]
    return memory_config(target.dimension, target.outputs, units, groups).parameter_count


def most_units(target: Target, family: str, sources: list[GroupSamples], other: Size) -> int:
    """With how many units a layer of this family takes the place of another."""

    def fewer_than(parameters: int) -> int:
        one, two = (parameters_of(target, family, sources, units) for units in (1, 2))
        return min(max(0, 1 + (parameters - 1 - one) // (two - one)), MOST_UNITS)

    return max(min(fewer_than(other.parameters), other.units), fewer_than(int(FAR_FEWER * other.parameters)))


def most_even_units(other: Size) -> int:
    """The same for gates at the centre of an even function."""
    return max(min(affordable_even(other.parameters), other.units), affordable_even(int(FAR_FEWER * other.parameters)))
