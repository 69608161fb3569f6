"""VNN-LIB 2.0: questions for neural-network verifiers whose answers are known, with a certificate for each answer.

A folder that is also a model folder, so that `onelayer check` proves all labels again:

    model.onnx                              the layer for verifiers (`static_graph`)
    property-01.vnnlib, …                   is there a counterexample?
    instances.csv                           which network, which question, the answer, the margin, and what proves it
    model.safetensors, target.json, certificate.json    the layer, with one proved statement or more for every answer

For two layers: first.onnx, second.onnx and their difference as one network, difference.onnx, with questions of its own. The model
folder holds the difference, first.safetensors and second.safetensors the two layers that it was made of.

A label is about the real function of the stored weights. Margins are larger than rounding, so that floats agree.
"""

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ....approximation import Approximation
from ....common.budget import Budget
from ....common.errors import InputError
from ....layer.facts import Facts
from ....layer.side_by_side import side_by_side
from ....proof.certificate import PropertyRecord
from ....proof.claim import Claim
from ....proof.decision import decide
from ....proof.properties.real_function import layer_function
from ....proof.supremum import layer_and_target, supremum_of
from ....target.domain import Domain
from ....target.target import Target
from ...folder import files_of
from ..onnx import packages, session_of
from ..subject import Made, Measured, Subject
from . import query
from .labels import CLOSE, KINDS, Judge, Label, distance_labels, labels_of
from .static_graph import StaticGraph

COLUMNS = ["networks", "vnnlib", "expected", "kind", "property", "margin", "truth_from", "truth_to", "proved"]
COLUMNS += ["witness", "difference_vnnlib"]
INSTANCES = "instances.csv"
FILES = (
    INSTANCES, "model.onnx", "*.vnnlib", "first.onnx", "second.onnx", "difference.onnx", "model.safetensors",
    "first.safetensors", "second.safetensors", "target.json", "certificate.json",
)  # fmt: skip
ROUNDING = 100.0  # times the largest difference that was observed: margins are larger than this
SECONDS = 60.0  # to enclose sup |T₁ − T₂|, and to certify it
REAL = "T: the real function of the stored weights. sat: a counterexample exists."


def make(subject: Subject, x: np.ndarray, against: Subject | None = None, kinds: Sequence[str] = KINDS) -> Made:
    """The files; the networks are compared with our own layer at the points x. `kinds` are the questions about one layer."""
    for one in (subject, *([against] if against else [])):
        _require_plain(one)
    return _alone(subject, x, kinds) if against is None else _pair(subject, against, x)


def onnx_file(subject: Subject, x: np.ndarray) -> tuple[bytes, Measured]:
    """The static graph of a layer, in float64, and how it compares with our own evaluation."""
    onnx, runtime = packages()
    model = StaticGraph(subject.model, subject.places).built(onnx)
    onnx.checker.check_model(model, full_check=True)
    session = session_of(runtime, model)

    def answer(points: np.ndarray) -> np.ndarray:
        return np.concatenate([session.run(["y"], {"x": point[None]})[0] for point in points])

    return model.SerializeToString(), subject.measure(answer, x)


def _alone(subject: Subject, x: np.ndarray, kinds: Sequence[str]) -> Made:
    """One layer: its range and its slopes."""
    a = subject.approximation
    _require_checkable(a)
    content, measured = onnx_file(subject, x)
    judge = Judge(layer_function(a.model, a.facts.places, a.domain))
    labels = labels_of(judge, kinds, ROUNDING * measured.difference)
    files = {"model.onnx": content}
    rows = []
    for number, label in enumerate(labels, 1):
        name = f"property-{number:02d}.vnnlib"
        files[name] = _file(label, query.counterexample(label.text, a.domain, subject.outputs))
        rows.append(["model.onnx", name, *label.row(), ""])
    return _made(files, rows, _with(a, judge), measured, judge)


def _pair(first: Subject, second: Subject, x: np.ndarray) -> Made:
    """Two layers: how far apart they are."""
    a, b = first.approximation, second.approximation
    _require_same_domain(a, b)
    model, places = side_by_side(first.model, second.model), a.facts.places
    target = Target("; ".join(["0"] * first.outputs), a.domain)
    apart = supremum_of(layer_and_target(model, target, places, Budget(SECONDS)), CLOSE / 2, Budget(SECONDS))
    if not apart.lower or apart.point is None:
        raise InputError("two layers that differ", "no point where they do", "give another layer")
    certificate = decide(model, Claim(target, 1.1 * apart.upper, places, close=0.02), Budget(SECONDS))
    facts = Facts("difference", "", a.facts.layout, (("heads", model.config.heads),), model.config.heads, places=places)
    difference = Approximation.of(model, target, certificate, facts)
    _require_checkable(difference)
    judge = Judge(layer_function(model, places, a.domain))
    beside = Subject(difference, model)
    made = {name: onnx_file(one, x) for name, one in (("first", first), ("second", second), ("difference", beside))}
    measured = max((seen for _, seen in made.values()), key=lambda seen: seen.difference)
    labels = distance_labels(judge, apart.lower, ROUNDING * measured.difference)
    files = {f"{name}.onnx": content for name, (content, _) in made.items()}
    files |= {f"{name}.safetensors": files_of(one)["model.safetensors"] for name, one in (("first", a), ("second", b))}
    rows = []
    for number, label in enumerate(labels, 1):
        limit, names = query.limit_of(label.text), (f"property-{number:02d}.vnnlib", f"difference-{number:02d}.vnnlib")
        files[names[0]] = _file(label, query.apart(limit, a.domain, first.outputs))
        files[names[1]] = _file(label, query.beyond(limit, a.domain, first.outputs))
        rows.append(["first.onnx second.onnx", names[0], *label.row(), names[1]])
    return _made(files, rows, _with(difference, judge), measured, judge)


def _made(
    files: dict[str, bytes], rows: list[list[str]], certified: Approximation, measured: Measured, judge: Judge
) -> Made:
    if not rows:
        found = f"none proved: {'; '.join(judge.open[:2]) or 'the layer is constant'}"
        raise InputError("properties whose truth is proved", found, "choose another layer")
    table = io.StringIO()
    csv.writer(table, lineterminator="\n").writerows([COLUMNS, *rows])
    holds = sum(row[2] == "unsat" for row in rows)
    notes = [f"{len(rows)} questions: {holds} unsat (the property holds), {len(rows) - holds} sat"]
    notes += [f"not decided, and left out: {text}" for text in judge.open]
    return Made(files | {INSTANCES: table.getvalue().encode()} | files_of(certified), measured, notes=tuple(notes))


def _with(approximation: Approximation, judge: Judge) -> Approximation:
    """The approximation whose certificate has everything that was proved, beside the properties that it had."""
    held = {p.text for p in approximation.certificate.properties}
    more = tuple(PropertyRecord(text, "PROVED") for text in judge.proved if text not in held)
    certificate = replace(approximation.certificate, properties=approximation.certificate.properties + more)
    return replace(approximation, certificate=certificate)


def _file(label: Label, text: str) -> bytes:
    return f"; {label.text}\n; {REAL}\n{text}".encode()


def _require_plain(subject: Subject) -> None:
    """Refuse what VNN-LIB cannot say, or no verifier would read."""
    a, asked = subject.approximation, "a layer of numbers on a box, as vnnlib"
    a.require_numbers()
    if a.domain.within is not None:
        raise InputError(asked, f"the condition {a.domain.within.text}", "build it on the whole box")
    if not subject.same:
        found = "a float32 layer, whose certificate is about float32 inputs"
        raise InputError(f"{asked}, about all real inputs", found, "build it with dtype='float64'")
    if subject.model.config.activation == "gelu":
        raise InputError(asked, "GELU, which ONNX Runtime has only in float32", "choose relu or silu")


def _require_checkable(approximation: Approximation) -> None:
    """Refuse a layer about which the checker has nothing to check."""
    a, asked = approximation, "a certified layer of a formula, whose labels `check` can prove again"
    if a.description.kind != "formula":
        raise InputError(asked, f"a target that is a {a.description.kind}", "build it from a formula")
    if a.certificate.verdict != "CERTIFIED" or a.certificate.condition:
        raise InputError(asked, a.certificate.headline, "certify it first, or build it with a larger tolerance")


def _require_same_domain(a: Approximation, b: Approximation) -> None:
    def box(domain: Domain) -> tuple[Any, ...]:
        return domain.names, domain.lower, domain.upper

    if box(a.domain) != box(b.domain) or a.output_shape != b.output_shape or a.facts.places != b.facts.places:
        found = f"{a.domain} and {b.domain}" if box(a.domain) != box(b.domain) else "outputs of other shapes"
        raise InputError("two layers on one domain, with outputs alike", found, "build both on one domain")
