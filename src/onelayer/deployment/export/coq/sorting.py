"""Sorting and ranks: smooth maxima of all sets of the inputs, whose signed sum is near the k-th smallest of them.

With n numbers, sharpness b and W Lambert's function the sum is at most W(k/e)/b below and (n − 1 − k) W((k + 1)/e)/b above the
k-th smallest, k from 0 (`lemmas/ranks.v`, any n). The proof draws the largest number first, as Plackett and Luce do.
"""

import copy
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import lambertw

from ....common.errors import InputError
from ....common.numbers import exact as exact_text
from ..subject import Subject
from .exact import Exact, exact_of
from .formula import number
from .heads import Kept, kept_of
from .library import lemmas
from .max_heads import ROOM, SOFTMAX, sharpness
from .prelude import PRELUDE
from .proof import box_text
from .text import layer, listed, polynomial

MOST = 6  # inputs: 2^6 − 1 heads
ENTRIES = ("sort", "top_k", "maximum")
OTHER = "export it as onnx, torch or c"


def refused(found: str) -> InputError:
    return InputError(
        f"a gallery entry sort, top_k or maximum of up to {MOST} numbers, for a proof in Coq", found, OTHER
    )


@dataclass(frozen=True)
class Ranks:
    """The layer with all its outputs: output i is the ranks[i]-th smallest input, from 0."""

    outputs: list[Exact]
    kept: list[Kept]
    ranks: list[int]
    beta: Fraction
    shift: Fraction
    scale: Fraction
    lower: list[Fraction]
    upper: list[Fraction]
    tolerance: Fraction

    @property
    def n(self) -> int:
        return len(self.lower)

    @property
    def xs(self) -> str:
        return " ".join(f"x{j + 1}" for j in range(self.n))

    @property
    def inputs(self) -> str:
        return listed(self.xs.split())

    @property
    def units(self) -> str:
        return listed([f"u{j + 1} x{j + 1}" for j in range(self.n)])

    @property
    def box(self) -> str:
        return box_text(self.lower, self.upper)


def sorting(subject: Subject) -> str:
    """The file but for its header."""
    it = _ranks_of(subject)
    weights = "\n(** ** The weights, as exact numbers; W i reads output i *)\n\n"
    weights += layer(subject.model, subject.places[0], several=True)
    imports = "From Coq Require Import Lia Permutation Sorted.\n"
    proofs = [_head(it, h) for h in range(len(it.kept))] + [_output(it, i) for i in range(len(it.ranks))]
    return imports + PRELUDE + SOFTMAX + lemmas("ranks") + weights + _opening(it) + "\n".join(proofs) + _theorem(it)


def _ranks_of(subject: Subject) -> Ranks:
    """Read from the weights; refused where a head is not a smooth maximum of inputs, or where they differ in sharpness."""
    a, model, c = subject.approximation, subject.model, subject.model.config
    n = c.tokens
    if n > MOST or a.description.entry not in ENTRIES:
        raise refused(f"{a.description.entry} of {n} numbers")
    if c.features_in != 1 or c.d_k != 1 or c.d_v != 1 or c.norm != "none" or c.projection_bias or not subject.same:
        raise refused("a layer of another shape, or weights rounded to another dtype")
    shift, scale = ({Fraction(v) for v in t.double().flatten().tolist()} for t in (model.shift, model.scale))
    outputs = []
    for i in range(c.features_out):
        one = copy.deepcopy(model)
        one.W_R.data, one.b_R.data = one.W_R.data[:, i : i + 1], one.b_R.data[i : i + 1]
        outputs.append(exact_of(one, subject.places[0]))
    lower, upper = ([Fraction(v) for v in ends] for ends in (a.domain.lower, a.domain.upper))
    if len(shift) > 1 or len(scale) > 1 or min(scale) <= 0:
        raise refused("inputs that are normalised differently")
    (by,), (factor,) = shift, scale
    ranges = [((low - by) * factor, (high - by) * factor) for low, high in zip(lower, upper, strict=True)]
    kept = [kept_of(head, ranges) for head in outputs[0].heads]
    betas = {beta for one in kept if (beta := sharpness(one)) != 0}
    if len(betas) > 1 or None in betas or any(t >= n for one in kept for t in (one.base, *one.others)):
        raise refused("heads that are not smooth maxima of the inputs with one sharpness")
    beta = next((beta for beta in betas if beta is not None), Fraction(1))
    names = a.description.parameters
    up = a.description.entry == "sort" and not names.get("descending")
    ranks = [i if up else n - 1 - i for i in range(c.features_out)]
    tolerance = Fraction(repr(a.certificate.tolerance))
    found = Ranks(outputs, kept, ranks, beta, by, factor, lower, upper, tolerance)
    for k in ranks:
        low, high = _constants(found, k)
        if max(low, (n - 1 - k) * high) / factor > tolerance:
            most = exact_text(float(tolerance))
            raise InputError(f"a proof in Coq of an error within {most}", "heads that are not sharp enough", OTHER)
    return found


def _constants(it: Ranks, k: int) -> tuple[Fraction, Fraction]:
    """W(k/e)/b and W((k + 1)/e)/b, a little more."""
    low, high = (
        Fraction(ROOM * float(lambertw(m / 2.718281828459045).real) / float(it.beta)).limit_denominator(10**18)
        for m in (k, k + 1)
    )
    return low, high


def _opening(it: Ranks) -> str:
    ask = f"(nth (read (W 0)) (tokens (W 0) {it.inputs}) [])"
    lines = ["\n(** ** The heads: smooth maxima *)\n"]
    for j in range(it.n):
        u = f"(x{j + 1} - {number(it.shift)}) * {number(it.scale)}"
        lines.append(f"Definition u{j + 1} (x{j + 1} : R) : R := {u}.")
    for h in range(len(it.kept)):
        columns = " ".join(f"(nth {h} ({w} (W 0)) [])" for w in ("W_Q", "W_K", "W_V"))
        lines.append(f"Definition H{h + 1} ({it.xs} : R) : R := head (tokens (W 0) {it.inputs}) {ask} {columns}.")
    return "\n".join(lines) + "\n"


def _members(one: Kept) -> list[int]:
    return sorted((one.base, *one.others))


def _soft(it: Ranks, one: Kept) -> str:
    """The smooth maximum that a head is near to, its inputs in order."""
    return f"soft {number(it.beta)} {listed([f'u{t + 1} x{t + 1}' for t in _members(one)])}"


def _head(it: Ranks, h: int) -> str:
    """|head − smooth maximum| ≤ 1e-30."""
    one, name = it.kept[h], h + 1
    tokens = range(len(one.head.scores))
    order = [one.base, *one.others, *one.dropped]
    scores = {t: polynomial(one.score(t)) if t != one.base else "0" for t in order}
    values = {t: polynomial(one.head.values[t]) for t in order}
    s, v, s0, v0 = (listed([of[t] for t in which]) for which in (one.others, one.dropped) for of in (scores, values))
    base, w = polynomial(one.head.scores[one.base]), values[one.base]
    in_order = _members(one)
    shifted = listed([scores[t] for t in in_order])
    held, plain = listed([values[t] for t in in_order]), listed([f"u{t + 1} x{t + 1}" for t in in_order])
    all_scores, all_values = (listed([of[t] for t in tokens]) for of in (scores, values))
    units = ", ".join(f"u{j + 1}" for j in range(it.n))
    bounds = f"unfold w, v, {units}; repeat constructor; interval"
    last = "rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; lra"
    if one.dropped:
        last = (
            f"apply (masked {one.largest}); [reflexivity | reflexivity | {bounds} | {bounds} |"
            f" cbn [map sum]; unfold {units}; interval]"
        )
    more_s, more_v = (f" ++ {s0}", f" ++ {v0}") if one.dropped else ("", "")
    return f"""Lemma head_{name} {it.xs} : {it.box} -> Rabs (H{name} {it.xs} - {_soft(it, one)}) <= 1 / 10 ^ 30.
Proof.
  intros.
  assert (E : H{name} {it.xs} = attend (map (Rplus {base}) {all_scores}) {all_values})
    by (unfold H{name}, head; apply attend_eq; entries).
  rewrite E, attend_shift; clear E.
  pose (w := {w}); pose (s := {s} : vec); pose (v := {v} : vec).
  replace (soft {number(it.beta)} {plain}) with (attend (0 :: s) (w :: v)).
  2: {{ unfold w, s, v, soft. transitivity (attend {shifted} {held}); [reorder|].
    rewrite <- (attend_shift ({number(it.beta)} * {w})). apply attend_eq; entries. }}
  replace (attend {all_scores} {all_values})
    with (attend (0 :: s{more_s}) (w :: v{more_v})) by (unfold w, s, v; reorder).
  {last}.
Qed.
"""


def _output(it: Ranks, i: int) -> str:
    """Output i against the k-th smallest input."""
    exact, k, D = it.outputs[i], it.ranks[i], it.n
    n = len(it.kept)
    factors = [exact.output.get((D + h,), Fraction(0)) for h in range(n)]
    rest = exact.output.get((), Fraction(0))
    if set(exact.output) - {()} - {(D + h,) for h in range(n)}:
        raise refused("outputs that are not sums of heads")
    zs = [f"z{h + 1}" for h in range(n)]

    def combined(names: list[str]) -> str:
        terms = [f"{number(c)} * {z}" for c, z in zip(factors, names, strict=True) if c]
        return " + ".join([number(rest), *terms])

    low, high = (number(c) for c in _constants(it, k))
    b, units, xs = number(it.beta), it.units, it.xs
    ask = f"(nth (read (W 0)) (tokens (W 0) {it.inputs}) [])"
    applied = [f"(H{h + 1} {xs})" for h in range(n)]
    softs = [f"({_soft(it, one)})" for one in it.kept]
    hold = " ltac:(assumption)" * D
    near = "\n".join(
        f"  pose proof (between _ _ (head_{h + 1} {xs}{hold})). set (h{h + 1} := H{h + 1} {xs}) in *. clearbody h{h + 1}."
        for h in range(n)
        if factors[h]
    )
    names = ", ".join(f"u{j + 1}" for j in range(D))
    return f"""Lemma behind_{i} {xs} {" ".join(zs)} : behind (W {i}) {ask} {listed(zs)} = {combined(zs)}.
Proof. unroll. relus. Qed.
Lemma reduced_{i} {xs} : run (W {i}) {it.inputs} = {combined(applied)}.
Proof. exact (behind_{i} {xs} {" ".join(applied)}). Qed.
Lemma signs_{i} {xs} : {combined(softs)} = {number(rest)} + (1 / {number(it.scale)}) * ranked {b} {k} {units}.
Proof.
  unfold ranked. cbn [total signed coefficient length].
  repeat match goal with |- context [soft {b} ?l] => lazymatch l with [] => fail | _ => generalize (soft {b} l); intros ? end end.
  lra.
Qed.
Lemma output_{i} {xs} : {it.box} -> Rabs (run (W {i}) {it.inputs} - nth {k} (sort {it.inputs}) 0) <= {number(it.tolerance)}.
Proof.
  intros. rewrite reduced_{i}. pose proof (signs_{i} {xs}) as E.
  assert (A : nth {k} (sort {units}) 0
    = {number(it.scale)} * nth {k} (sort {it.inputs}) 0 + - ({number(it.shift)} * {number(it.scale)})).
  {{ rewrite <- (affine_nth {number(it.scale)} _ {k} {it.inputs}) by (cbn [length]; lra || lia).
    f_equal. f_equal. unfold {names}. cbn [map]. repeat (apply cons_eq; [lra|]). reflexivity. }}
  pose proof (rank {b} {k} {low} {high} {D - 1 - k} {units} ltac:(lra) eq_refl ltac:(simpl INR; interval with (i_prec 60))
    ltac:(lra) ltac:(simpl INR; interval with (i_prec 60))) as B.
  rewrite A in B. clear A. change (INR {D - 1 - k}) with (INR (Z.to_nat {D - 1 - k})) in B.
  rewrite INR_IZR_INZ in B. simpl IZR in B.
  set (r := ranked _ _ _) in *. set (y := nth {k} (sort {it.inputs}) 0) in *. clearbody r y.
{near}
  repeat match goal with _ : context [soft {b} ?l] |- _ => set (soft {b} l) in * end.
  apply Rabs_le. lra.
Qed.
"""


def _theorem(it: Ranks) -> str:
    m = len(it.ranks)
    ascending = it.ranks == list(range(m))
    rank = "i" if ascending else f"({it.n - 1} - i)"
    cases = "\n".join(f"  destruct i as [|i]; [now apply output_{i}|]." for i in range(m))
    return f"""
(** ** The theorem: output i is the number of rank {rank} (from 0) in ascending order *)

Theorem certified {it.xs} : {it.box} -> forall i, (i < {m})%nat ->
  Rabs (run (W i) {it.inputs} - nth {rank} (sort {it.inputs}) 0) <= {number(it.tolerance)}.
Proof.
  intros.
{cases}
  exfalso. lia.
Qed.
"""
