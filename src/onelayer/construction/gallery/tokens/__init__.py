"""Token programs: one-layer Transformers on sequences of tokens, written down weight by weight, with a lemma each."""

from .counting import Histogram, Majority, Parity, histogram, majority, parity
from .lookup import CopyWhere, FirstOccurrence, Reverse, copy_where, first_occurrence, reverse_tokens
from .program import Program, prove

# by the name that a folder's target.json gives as `entry`: PROGRAMS[entry](**parameters)
PROGRAMS: dict[str, type[Program]] = {
    program.name: program for program in (Histogram, FirstOccurrence, Reverse, CopyWhere, Parity, Majority)
}

__all__ = [
    "PROGRAMS", "CopyWhere", "FirstOccurrence", "Histogram", "Majority", "Parity", "Program", "Reverse", "copy_where",
    "first_occurrence", "histogram", "majority", "parity", "prove", "reverse_tokens",
]  # fmt: skip
