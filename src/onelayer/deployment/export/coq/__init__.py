"""Coq: one file that states and proves |T(x) − f(x)| ≤ ε on the domain, about the stored weights as exact numbers.

The file contains the definition of the layer, so that it needs Coq and CoqInterval alone. T is the real function of the weights:
rounding is not covered. Covered are gates in one input or in two and sums of such, sums of max-heads, sorting, counting and
stored samples (`without_formula`); anything else is refused in one line.
"""

from fractions import Fraction

from ....common.errors import InputError
from ....common.numbers import exact as exact_text
from ..subject import Bound, Made, Subject
from .calculus import CALCULUS
from .exact import exact_of
from .heads import kept_of
from .max_heads import SOFTMAX, kink_ending, kinks_only
from .mixed import IMPORTS, SLICES
from .parts import OTHER, parts
from .prelude import PRELUDE
from .proof import CoqClaim, ending, opening
from .run import NAME, run
from .samples import Pair
from .text import layer
from .without_formula import without_formula

MOST_HEADS = 64
SECONDS = 300.0  # that coqc may take before a file is written


def make(subject: Subject, data: Pair | None = None) -> Made:
    """The file, compiled before it is written if Coq is here; one that Coq does not accept is refused."""
    text = source(subject, data)
    tolerance = subject.approximation.certificate.tolerance
    done = run(text, SECONDS, assumptions=False)
    if done.accepted is False:
        asked, change = (
            f"a proof in Coq of an error within {exact_text(tolerance)}",
            f"build with more room, or {OTHER}",
        )
        raise InputError(asked, done.reason, change)
    files = {NAME: text.encode()}
    if done.accepted is None:
        return Made(files, None, None, (f"not compiled, not proved: {done.reason}",))
    bound = Bound(tolerance, "|T - f| on the domain, T the real function of the weights, by the kernel of Coq")
    return Made(files, None, bound, (f"coqc took {done.seconds:.0f} s; rounding of the deployed layer is not covered",))


def source(subject: Subject, data: Pair | None = None, anyway: bool = False) -> str:
    """The text of the file; `data` are stored samples, which a folder does not hold.

    `anyway`: even where some points show that the claim is false, to see Coq reject it.
    """
    other = without_formula(subject, data)
    if other is not None:
        return _header(subject, other[0]) + other[1]
    _require_covered(subject)
    a, model = subject.approximation, subject.model
    assert a.target is not None
    assert a.target.formula is not None
    exact = exact_of(model, subject.places[0])
    lower, upper = ([Fraction(v) for v in ends] for ends in (a.domain.lower, a.domain.upper))
    shift, scale = (t.double().flatten().tolist() for t in (model.shift, model.scale))
    ranges = []
    for low, high, by, factor in zip(lower, upper, shift, scale, strict=True):
        ends = [(end - Fraction(by)) * Fraction(factor) for end in (low, high)]
        ranges.append((min(ends), max(ends)))
    kept = [kept_of(head, ranges) for head in exact.heads]
    tolerance = Fraction(repr(a.certificate.tolerance))
    claim = CoqClaim(exact, kept, a.target.formula.outputs[0], tolerance, lower, upper)
    kinks = kinks_only(claim)
    own = [] if kinks else parts(subject, exact, kept, tolerance, anyway)
    proof = kink_ending(claim) if kinks else ending(claim, own)
    pairs = any(len(part.coordinates) > 1 for part in own)
    prelude = PRELUDE + SOFTMAX if kinks else IMPORTS + PRELUDE + CALCULUS + SLICES if pairs else PRELUDE
    weights = "\n(** ** The weights, as exact numbers *)\n\n" + layer(model, subject.places[0])
    return _header(subject) + prelude + weights + opening(claim, shift, scale) + proof


def _require_covered(subject: Subject) -> None:
    """One formula on a box, heads of width one, no LayerNorm."""
    a, c = subject.approximation, subject.model.config
    target = a.target
    if target is None or target.formula is None or a.vocabulary is not None:
        raise InputError("a formula as target, for a proof in Coq", f"a target of kind {a.description.kind}", OTHER)
    found = None
    if subject.outputs != 1 or c.features_out != 1:
        found = f"{subject.outputs} outputs"
    elif a.domain.within is not None or a.certificate.margin:
        found = "a condition or a margin"
    elif target.formula.limits:
        found = "quotients 0/0 that have a limit"
    elif c.norm != "none" or c.projection_bias or c.activation != "relu" or c.readout == "mean" or c.causal:
        found = "LayerNorm, biases of projections or another activation than relu"
    elif c.features_in != 1 or c.d_k != 1 or c.d_v != 1:
        found = "tokens of several numbers, or heads wider than 1 (memory tokens)"
    elif not subject.same:
        found = "weights rounded to another dtype"
    elif c.heads > MOST_HEADS:
        found = f"{c.heads} heads (at most {MOST_HEADS})"
    if found is not None:
        raise InputError(
            "one output, a formula on a box, scalar tokens and narrow heads, for a proof in Coq", found, OTHER
        )


def _header(subject: Subject, claim: str | None = None) -> str:
    about = subject.about()
    plain = {name: " ".join(about[name].split()).encode("ascii", "backslashreplace").decode() for name in about}
    kept = ("producer", "target", "domain", "tolerance")
    lines = "\n".join(f"    {name:<10} {plain[name].replace('*)', '* )').replace('(*', '( *')}" for name in kept)
    return HEADER.format(lines=lines, claim=claim or CLAIM)


CLAIM = (
    "The theorem [certified], at the end, is about the weights of this layer as exact numbers and the function f below, on the"
    " box\n    whose ends are floats around the given ones."
)
HEADER = """(** * A single-layer Transformer and its error bound

{lines}

    {claim}
    Rounding of a deployed layer is not covered: T is its real function. Coq 8.16 and CoqInterval compile the file: coqc
    onelayer.v. What the theorem assumes (Print Assumptions certified): Coq's classical real numbers, and its machine integers
    and floats, which compute as IEEE 754 says. *)
"""
