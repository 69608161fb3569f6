"""What is wrong with a formula, all of it in one line."""

from collections.abc import Sequence
from dataclasses import dataclass

from ..common.errors import InputError

MOST = 5  # faults that are told
LONGEST = 300  # characters of a correction that is shown


@dataclass(frozen=True)
class Fault:
    """A piece that is not in the language, what to do about it, and whether the writer has repaired it.

    `instead` is what else may be meant, after "or".
    """

    found: str
    change: str
    repaired: bool
    instead: str


class TooManyFaults(Exception):
    """There is no point in reading on."""


def add_fault(faults: list[Fault], found: str, change: str, repaired: bool = False, instead: str = "") -> None:
    """Note a fault once; raises when there are too many to tell."""
    if all(fault.found != found for fault in faults):
        faults.append(Fault(found, change, repaired, instead))
    if len(faults) > MOST:
        raise TooManyFaults


def refusal_of(asked: str, faults: Sequence[Fault], correction: str | None) -> InputError:
    """The InputError that tells all faults; `correction` is a formula without them."""
    told = list(faults[:MOST])
    found = _listed([fault.found for fault in told]) + (" and more" if len(faults) > MOST else "")
    if correction is not None and len(correction) <= LONGEST:
        others = dict.fromkeys(fault.instead for fault in told if fault.instead)
        return InputError(asked, found, ", or ".join([f"write {correction}", *others]))
    changes = [fault.change for fault in told]
    return InputError(asked, found, changes[0] if len(set(changes)) == 1 else _listed(changes))


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else " ".join(f"({i}) {part}" for i, part in enumerate(parts, 1))
