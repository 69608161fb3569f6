"""Layers of any width as Coq reads them: every weight is a pair (m, e) of whole numbers, m·2^e.

They are evaluated in exact arithmetic where attention is hard: every score is the largest or at least 100 below it. That is so
for token programs and stored samples, and `check` in `lemmas/hard.v` decides it for a given input, by computation.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from ....common.errors import InputError
from ..subject import Subject
from .formula import number

OTHER = "export it as onnx, torch or c"
BITS = 64  # of a tolerance that is no multiple of a power of two


def pair(value: Fraction | float) -> str:
    """A number that is a whole multiple of a power of two."""
    value = Fraction(value)
    m, e = value.numerator, 1 - value.denominator.bit_length()
    assert value.denominator == 1 << -e
    while m and m % 2 == 0:
        m, e = m // 2, e + 1
    return f"({m}, {e})" if m else "(0, 0)"


def pairs(values: Sequence[float]) -> str:
    return f"[{'; '.join(map(pair, values))}]"


def rows(values: Sequence[Sequence[float]]) -> str:
    """A matrix; rows that are all alike are written once."""
    if len(values) > 1 and all(row == values[0] for row in values):
        return f"repeat {pairs(values[0])} {len(values)}"
    return "[" + ";\n    ".join(map(pairs, values)) + "]"


def require_plain(subject: Subject) -> None:
    """No residual, no LayerNorm, ReLUs, and the weights that were certified."""
    c, found = subject.model.config, None
    if c.residual or c.norm != "none" or c.projection_bias or c.activation != "relu" or c.causal:
        found = "residuals, LayerNorm, biases of projections, masks or another activation than relu"
    elif c.readout == "mean":
        found = "the mean of all positions"
    elif not subject.same:
        found = "weights rounded to another dtype"
    if found is not None:
        raise InputError("a plain layer of softmax attention and ReLUs, for a proof in Coq", found, OTHER)


def weights(subject: Subject) -> str:
    """The layer, and the tolerance as a pair below it."""
    c = subject.model.config
    w: dict[str, Any] = {name: t.detach().double().tolist() for name, t in subject.model.state_dict().items()}
    codes, special = w.get("P", [[0.0] * c.d_model] * c.tokens), w.get("S", [])
    heads = (
        f"({rows(q)},\n    {rows(k)},\n    {rows(v)})" for q, k, v in zip(w["W_Q"], w["W_K"], w["W_V"], strict=True)
    )
    return f"""
(** ** The weights, as exact numbers *)

Local Open Scope Z_scope.
Definition W : layer num := {{|
  d_model := {c.d_model}; d_ff := {c.ffn_width}; d_k := {c.d_k}; d_v := {c.d_v}; d_out := {c.features_out};
  shift := {rows(w["shift"])};
  scale := {rows(w["scale"])};
  W_E := {rows(w["W_E"])}; b_E := {pairs(w["b_E"])};
  P := {rows(codes)};
  S := {rows(special)};
  heads := [{"; ".join(heads)}];
  W_O := {rows(w["W_O"])};
  W_1 := {rows(w["W_1"])};
  b_1 := {pairs(w["b_1"])};
  W_2 := {rows(w["W_2"])};
  b_2 := {pairs(w["b_2"])};
  W_R := {rows(w["W_R"])}; b_R := {pairs(w["b_R"])} |}}.
Definition tol : num := {pair(below(tolerance(subject)))}.
Local Close Scope Z_scope.
Lemma tol_small : val tol <= {number(tolerance(subject))}.
Proof. unfold val, tol. cbn [fst snd]. interval with (i_prec 120). Qed.
"""


def tolerance(subject: Subject) -> Fraction:
    return Fraction(repr(subject.approximation.certificate.tolerance))


def below(value: Fraction) -> Fraction:
    """The number itself, or a little less, as a multiple of a power of two."""
    if value.denominator & (value.denominator - 1) == 0:
        return value
    unit = Fraction(2) ** (value.numerator.bit_length() - value.denominator.bit_length() - BITS)
    return value // unit * unit
