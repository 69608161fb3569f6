"""How far another program can take a layer from our own evaluation, proved: both are within a known distance of one function.

Our own layer is within R of the real function of its weights, the other program within R' (`layer/rounding/online_softmax` says
what is assumed of it), and so the two are within R + R' of each other. This needs a layer that is a sum of softmax averages on
its domain, without hinges, in its own dtype; any other layer is only measured.
"""

import torch

from ...common.outward import UP_FEW
from ...layer.arithmetic import Arithmetic
from ...layer.reading import Reading, form_of_model
from ...layer.rounding.deployed import FormProgram
from ...layer.rounding.online_softmax import Backend
from ...proof.overflow import cannot_overflow
from .subject import Bound, Subject

NEGLIGIBLE = 0.005  # share of the tolerance: a bound this small is not refined


def reading_of(subject: Subject) -> Reading | None:
    """The layer as a form on its domain, if it has one."""
    low, high = subject.reach
    edge = float(torch.maximum(low.abs(), high.abs()).max())
    if subject.approximation.vocabulary is not None or not cannot_overflow(subject.model, edge, subject.arithmetic):
        return None
    return form_of_model(subject.model, subject.places, edge * (1 + 4 * subject.arithmetic.u))


def backend_bound(subject: Subject, backend: Backend) -> Bound | None:
    """A bound on the distance from our own layer when this program evaluates the graph of the model."""
    reading = reading_of(subject)
    if reading is None:
        return None
    other = backend.arithmetic(subject.arithmetic, subject.model.config.all_tokens)
    return distance(subject, reading, other, f" in {backend.name}")


def distance(subject: Subject, reading: Reading, other: Arithmetic, where: str = "", terms: int = 0) -> Bound | None:
    """R + R'; with `terms` the other program evaluates the form itself, and adds up this many of them; None if unproved."""
    if not subject.same or len(reading.hinges):
        return None
    low, high = (t.flatten() for t in subject.reach)
    enough = NEGLIGIBLE * subject.approximation.certificate.tolerance

    def rounding(program: FormProgram) -> float:
        return float(program.rounding(low, high, enough).max())

    own = rounding(reading.program)
    if terms:
        its = rounding(FormProgram.of_form(reading.form, other, reading.frame, terms, stores=True))
        its = its + float(reading.error.max())
    elif other == reading.program.arithmetic:
        its = own
    else:
        again = form_of_model(subject.model, subject.places, reading.edge, other)
        its = rounding(again.program) if again is not None else float("inf")
    found = (own + its) * UP_FEW
    of = f"any difference on the domain{where}, rounding included, for {', '.join(other.assumptions)}"
    return Bound(found, of, its) if found < float("inf") else None
