"""Targets that are no formulas: entries of the gallery and stored samples, each with a proof of its own."""

from ....common.errors import InputError
from ..subject import Subject
from . import counting, sorting
from .samples import Pair, samples

SORTED = (
    "The theorem [certified], at the end, is about the weights of this layer as exact numbers, on the box whose ends are floats\n"
    "    around the given ones."
)
FINITE = "The theorem [certified], at the end, is about the weights of this layer as exact numbers."


def without_formula(subject: Subject, data: Pair | None) -> tuple[str, str] | None:
    """(what the theorem is about, the file but for its header); None for a formula."""
    about = subject.approximation.description
    if data is not None and about.kind != "samples":
        raise InputError("samples for a layer that stores some", f"a target of kind {about.kind}", "leave the data out")
    if about.kind == "samples":
        return FINITE, samples(subject, data)
    if about.kind == "gallery" and about.entry in counting.ENTRIES:
        return FINITE, counting.counting(subject)
    if about.kind == "gallery" and about.entry in sorting.ENTRIES:
        return SORTED, sorting.sorting(subject)
    return None
