"""How far another program can take a layer from our own evaluation, proved: both are within a known distance of one function.

Our own layer is within R of the real function of its weights, the other program within R' (`layer/rounding/online_softmax` says
what is assumed of it), and so the two are within R + R' of each other. This needs a layer that is a sum of softmax averages on
its domain, without hinges, in its own dtype; any other layer is only measured.
"""

from dataclasses import replace

import torch

from ...common.outward import UP_FEW
from ...layer.arithmetic import Arithmetic
from ...layer.reading import Reading, form_of_model
from ...layer.rounding.deployed import deployed_rounding
from ...layer.rounding.online_softmax import Backend
from ...proof.decision import cannot_overflow, deployment_of
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
    """R + R', where the other program adds up at least this many terms; None if nothing is proved."""
    if not subject.same or len(reading.hinges):
        return None
    low, high = (t.flatten() for t in subject.reach)
    enough = NEGLIGIBLE * subject.approximation.certificate.tolerance

    def rounding(arithmetic: Arithmetic) -> float:
        how = deployment_of(reading, arithmetic)
        how = replace(how, summands=max(how.summands, terms))
        return float(deployed_rounding(reading.form, low, high, how, enough).max())

    own = rounding(subject.arithmetic)
    its = own if other == subject.arithmetic else rounding(other)
    found = (own + its) * UP_FEW
    of = f"any difference on the domain{where}, rounding included, for {', '.join(other.assumptions)}"
    return Bound(found, of, its) if found < float("inf") else None
