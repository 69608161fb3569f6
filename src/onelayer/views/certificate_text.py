"""A certificate in plain sentences: what is proved, how, under which assumptions, and how to check it again."""

import math
from typing import Any

from ..approximation import Approximation
from ..common.numbers import at_least, at_most, exact, point
from ..common.table import Table
from ..proof.certificate import Certificate
from ..sequence_layer import SequenceLayer

Shown = Approximation | SequenceLayer
CHECKED = ("formula", "gallery", "set", "language")  # kinds of targets that are stored in the folder

HOW = {
    "theorem": (
        "Proved before anything was evaluated, from the modulus of continuity of f: the paper's construction with its gaps"
        " closed. Every cell of the lattice costs at most its share of the tolerance, and the tails of the softmax are"
        " included in the sum."
    ),
    "analytic": (
        "Proved by interpolation. T and f are analytic; on every box T − f, or its numerator and denominator, are interpolated at"
        " Chebyshev points, and what the polynomials miss is bounded by higher derivatives, or by how large T and f get on an"
        " ellipse around the box in the complex plane, computed in intervals. The rounding of the model's own arithmetic is"
        " added."
    ),
    "bisect": (
        "Proved by bisection. Boxes are halved until a Taylor model with a proved remainder bounds |T − f| on each of them."
        " The rounding of the model's own arithmetic is added."
    ),
    "lemma": "Proved by a lemma about this kind of layer, with the numbers of its own weights.",
    "none": "No bound was proved.",
}


def statement(approximation: Shown) -> str:
    """What the certificate claims, in a sentence or two: at which points, and under which declarations."""
    c = approximation.certificate
    if c.verdict == "CERTIFIED":
        believed = f"If {c.condition}, then for" if c.condition else "For"
        claim = f"{believed} {_points(approximation)}: {_error(c)} ≤ {c.bound_text}."
        return f"{claim} This is proved, rounding in {c.arithmetic} included.{_share(c)}{_slopes(c)}"
    if c.verdict == "REFUTED":
        at = point(c.witness or ())
        return f"The tolerance {exact(c.tolerance)} does not hold: at x = {at} the error is proved to be larger."
    proved = f" What is proved is {_error(c)} ≤ {c.stated_bound}." if math.isfinite(c.bound) else ""
    return f"Whether the error is below {exact(c.tolerance)} is not decided.{proved}"


def _error(certificate: Certificate) -> str:
    """What is bounded: the difference of numbers, unless the certificate says otherwise."""
    usual = certificate.norm == Certificate.norm
    return "|T(x) − f(x)|" if usual else f"the {certificate.norm.partition(',')[0]}"


def _points(approximation: Shown) -> str:
    """The points that the certificate covers."""
    c = approximation.certificate
    if c.method == "lemma" or isinstance(approximation, SequenceLayer):
        return c.domain
    single = "float32 " if c.arithmetic == "float32" else ""
    target = approximation.target
    jumps = c.slope is None or target is None or target.leaves_points_out  # a margin may be about kinks alone
    apart = f", more than {exact(c.margin)} away from every jump of f" if c.margin and jumps else ""
    return f"every {single}x with {approximation.domain}{apart}"


def _share(certificate: Certificate) -> str:
    """What a certified bound means as a share of |f|, if a relative tolerance was asked for."""
    about = certificate.evidence.relative
    if not about:
        return ""
    how = "proved" if about.known == "proved" else "by the declared modulus"
    return f" It is at most {exact(about.share)}·|f(x)|, since |f| ≥ {at_least(about.least, 6)} ({how})."


def _slopes(certificate: Certificate) -> str:
    """What is proved about slopes, if a tolerance for them was given."""
    slope = certificate.slope
    if slope is None or not math.isfinite(slope.bound):
        return ""
    apart = f", more than {exact(certificate.margin)} away from every kink of f" if certificate.margin else ""
    bound = at_most(slope.bound, limit=slope.tolerance)
    return f" Every slope of T is within {bound} of that of f{apart}, T being the real function of the stored weights."


def band(approximation: Approximation) -> str:
    """What is proved about T(x) at a point of the box; nothing for samples, whose proof covers only them."""
    c, domain = approximation.certificate, approximation.domain
    if not math.isfinite(c.bound) or approximation.description.kind == "samples":
        return ""
    whole = domain.within is None and not c.margin and (c.method != "lemma" or c.domain == str(domain))
    where = "" if whole else f", for {_points(approximation)}"
    return f"|T(x) − f(x)| ≤ {c.bound_text} is proved for the model itself{where}{c.if_declared}."


def method(certificate: Certificate) -> str:
    """How the bound was proved."""
    lemma = certificate.evidence.lemma
    return HOW[certificate.method] + (f" The lemma: {lemma}." if lemma else "")


def observation(approximation: Shown) -> str:
    """What was observed, which does not prove that no error is larger."""
    c = approximation.certificate
    where = "sequences" if isinstance(approximation, SequenceLayer) else approximation.description.observed_at
    seen = f"The largest error seen at {c.observed_points:,} {where} is {c.observed_text}."
    seen += " That is an observation: it does not prove that none is larger."
    if not c.lower > 0:
        return seen
    return f"{seen} That the error of T reaches {at_least(c.lower)} somewhere is proved{c.if_declared}."


def how_to_check(approximation: Shown) -> str:
    """How to check the certificate again, or why the independent checker cannot."""
    kind = approximation.description.kind
    if approximation.certificate.verdict == "CERTIFIED" and kind in CHECKED:
        return (
            "Check it again with `onelayer check FOLDER`: the checker is a single file that shares no code with the prover,"
            " reads weights and target from the folder, and proves the bound (and, where the tolerance is a share of it, the"
            " smallest |f|) in ball arithmetic."
        )
    if approximation.certificate.verdict == "CERTIFIED" and kind == "samples":
        return (
            "Check it again with `onelayer check FOLDER --data FILE`, FILE being the CSV file that was memorised: the checker is"
            " a single file that shares no code with the prover and evaluates the layer at every sample in ball arithmetic."
        )
    reason = {
        "formula": "there is no proved bound within the tolerance",
        "callable": "the target is a Python callable, which is not stored in the folder",
        "data": "the samples are not stored in the folder",
        "samples": "there is no proved bound within the tolerance",
    }.get(kind, "the target is not stored")
    if kind == "data" and approximation.certificate.method == "lemma":
        reason = "the bound rests on a lemma about samples in context, which it does not know"
    return f"The independent checker has nothing to check here: {reason}."


def evidence_table(certificate: Certificate) -> Table:
    """The numbers of the proof, with all their digits: notes, of which the checker believes none."""
    table = Table("Evidence (notes of the prover)", ("", "value"))
    for name, value in certificate.evidence.as_json().items():
        if name != "lemma":
            table.rows.extend(_rows(str(name), value))
    return table


def _rows(name: str, value: Any) -> list[tuple[object, ...]]:
    if isinstance(value, dict):
        return [row for key, entry in value.items() for row in _rows(f"{name}: {key}", entry)]
    if isinstance(value, list | tuple):
        if any(isinstance(entry, dict) for entry in value):
            return [row for i, entry in enumerate(value[:3]) for row in _rows(f"{name} {i + 1}", entry)]
        shown = ", ".join(_short(entry) for entry in value[:12]) + (", …" if len(value) > 12 else "")
        return [(name, shown)]
    return [(name, _short(value))]


def _short(value: Any) -> str:
    return exact(value) if isinstance(value, float) else str(value)
