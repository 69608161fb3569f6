"""A part of two inputs: slices along one of them, Taylor models in the other.

At the ends of a slice a ≤ v ≤ b the error e(y, v) is a function of y alone, and Taylor models bound it by ε0. Between them it is
near its chord: |e(y, v)| ≤ ε0 + M(b − a)²/8 where M bounds the second derivative in v. Coq differentiates e itself, as an
expression that is data, and halves slices until M is small enough; all of that is one computation of the kernel.
"""

from collections.abc import Sequence
from fractions import Fraction

from .exact import Range
from .formula import number
from .heads import Kept
from .parts import Part, definitions

IMPORTS = "From Coquelicot Require Import Coquelicot.\n"  # before the others, some of whose names it has too
LEVELS = 14  # slices are halved at most so often
FIRST = 4  # halvings before the first try
DEGREES = 6, 5  # of the Taylor models, at the ends and between them
DEPTH = 5  # bisections of a slice or of an end


def _rational(value: Fraction) -> str:
    return f"(Ebinary Div (int ({value.numerator})) (int {value.denominator}))"


def sliced(name: int, part: Part, kept: Sequence[Kept], sides: Sequence[Range]) -> str:
    """One part of two inputs and its bound."""
    order = (
        (0, 1) if part.along == part.coordinates[1] else (1, 0)
    )  # Taylor models in the first, slices along the second
    y, v = (f"x{part.coordinates[i] + 1}" for i in order)
    (low, high), (start, stop) = (sides[i] for i in order)
    step = (stop - start) / 2**LEVELS
    ends = part.share * Fraction(19, 20)
    if part.seen < part.share:
        ends = (Fraction(part.seen) + part.share) / 2
    ends = ends.limit_denominator(10**30)
    room = 8 * (part.share - ends) / step**2
    box = " -> ".join(
        f"{number(a)} <= x{j + 1} <= {number(b)}" for j, (a, b) in zip(part.coordinates, sides, strict=True)
    )
    heads = "".join(f"g{h + 1} " for h, _ in part.heads)
    units = " ".join(f"u{j + 1}" for j in part.coordinates)
    options = f"{DEGREES[0]} {DEGREES[1]} {DEPTH} {LEVELS - FIRST}"
    given = [_rational(value) for value in (low, high, start, step, ends, room)]
    arguments = f"tree{name} {' '.join(given)} {options} ends{name} bends{name}"
    return f"""{definitions(name, part, kept)}
Definition tree{name} : expr := Eval cbv beta in ltac:(exact ((fun {y} {v} : R => ltac:(
  let t := eval cbv beta iota delta [part{name} f{name} {heads}{units} map dot sum tanh sinh cosh] in
    (part{name} {part.xs} - f{name} {part.xs}) in
  let found := reify t [{y}; {v}] in exact found)) 0 0)).
Lemma tree{name}_ok {y} {v} : eval tree{name} [{y}; {v}] = part{name} {part.xs} - f{name} {part.xs}.
Proof. reflexivity. Qed.
Definition ends{name} := Eval vm_compute in program tree{name}.
Definition bends{name} := Eval vm_compute in program (derive (derive tree{name})).
Lemma covered_{name} : covered {arguments} {LEVELS} = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Lemma close_{name} {part.xs} : {box} -> Rabs (part{name} {part.xs} - f{name} {part.xs}) <= {number(part.share)}.
Proof.
  intros. rewrite <- tree{name}_ok.
  eapply Rle_trans; [apply (covered_ok {arguments}) with (k := {LEVELS}%nat)|].
  - vm_cast_no_check (eq_refl ends{name}).
  - vm_cast_no_check (eq_refl bends{name}).
  - cbn; lra.
  - cbn; lra.
  - exact covered_{name}.
  - cbn; lra.
  - cbn; lra.
Qed.
"""


SLICES = r"""
(** ** Slices: Taylor models in y at both ends, and between them the second derivative in v *)

Definition program (e : expr) := match extract e 2 with Eprog p c => Some (p, c) | Eabort => None end.
Definition within (degree depth : nat) (idx : list nat) (low high a b : expr) p (goal : gol) : bool := match p with
  | None => false
  | Some (p, c) => Private.IT2.IH.eval_bisect_taylor 53%Z degree depth idx
    [[Hlele true true low high]; [Hlele true true a b]] p c goal end.
Lemma within_ok degree depth idx low high a b e goal y v : within degree depth idx low high a b (program e) goal = true ->
  eval low [] <= y <= eval high [] -> eval a [] <= v <= eval b [] -> eval_goal goal (eval e [y; v]).
Proof.
  unfold within, program. pose proof (extract_correct e [y; v]) as E. change (length [y; v]) with 2%nat in E.
  destruct (extract e 2) as [|p c]; [easy|]. intros H Hy Hv.
  apply Private.IT2.IH.eval_bisect_taylor_correct with (vars := [y; v]) in H. rewrite <- E. exact (H Hy Hv).
Qed.

Section Slices.
Variables (e low high start step ends room : expr) (degree degree2 depth first : nat) (p p2 : option (list term * list expr)).
Definition place (i : Z) := Ebinary Add start (Ebinary Mul (int i) step).
Definition line (i : Z) := within degree depth [0%nat] low high (place i) (place i) p (Gabsle true ends).
Definition bend (i n : Z) := within degree2 depth [0%nat; 1%nat] low high (place i) (place (i + n)) p2
  (Gabsle true (Ebinary Div room (Eunary Sqr (int n)))).
Definition size (k : nat) := Z.pow 2 (Z.of_nat k).
Fixpoint cover (k : nat) (i : Z) : bool :=
  if (if Nat.leb k first then bend i (size k) else false) then line i else match k with
  | O => false
  | Datatypes.S k => if cover k i then cover k (i + size k) else false end.
Definition defined (n : Z) := forallb (fun c : bool * expr => within degree2 depth [0%nat; 1%nat] low high (place 0) (place n)
  (program (snd c)) (if fst c then Ggt (int 0) else Gne true (int 0))) (needs e).
Definition covered (k : nat) : bool :=
  if defined (size k) then if cover k 0 then line (size k) else false else false.

Hypothesis p_ok : p = program e.
Hypothesis p2_ok : p2 = program (derive (derive e)).
Hypothesis step_pos : 0 < eval step [].
Variable y : R.
Hypothesis y_side : eval low [] <= y <= eval high [].
Let F v := eval e [y; v].
Let at_ i := eval (place i) [].

Lemma at_eq i : at_ i = eval start [] + IZR i * eval step []. Proof. reflexivity. Qed.
Lemma size_pos k : (0 < size k)%Z. Proof. apply Z.pow_pos_nonneg; lia. Qed.
Lemma size_next k : size (Datatypes.S k) = (size k + size k)%Z.
Proof. unfold size. rewrite Nat2Z.inj_succ, Z.pow_succ_r; lia. Qed.
Lemma at_mono i j : (i <= j)%Z -> at_ i <= at_ j.
Proof. intros H. apply IZR_le in H. rewrite !at_eq. apply Rplus_le_compat_l, Rmult_le_compat_r; lra. Qed.
Lemma cover_line k : forall i, cover k i = true -> line i = true.
Proof.
  induction k as [|k IH]; intros i; cbn [cover]; destruct (if Nat.leb _ _ then _ else _); try easy.
  destruct (cover k i) eqn:H; [intros _; now apply IH | easy].
Qed.
Lemma line_ok i : line i = true -> Rabs (F (at_ i)) <= eval ends [].
Proof.
  unfold line. rewrite p_ok. intros H. exact (within_ok _ _ _ _ _ _ _ _ _ _ _ H y_side (conj (Rle_refl _) (Rle_refl _))).
Qed.
Lemma defined_ok n : defined n = true -> forall v, at_ 0 <= v <= at_ n -> smooth e [y; v].
Proof.
  unfold defined. intros H v Hv. apply needs_smooth, Forall_forall. intros [b c] Hc. rewrite forallb_forall in H.
  apply H, within_ok with (y := y) (v := v) in Hc; [|easy|easy]. unfold holds. cbn [fst snd] in *. now destruct b.
Qed.

Lemma slice i n : (0 < n)%Z -> (forall v, at_ i <= v <= at_ (i + n) -> smooth e [y; v]) -> bend i n = true -> line i = true ->
  line (i + n) = true -> forall v, at_ i <= v <= at_ (i + n) ->
  Rabs (F v) <= eval ends [] + eval room [] * (eval step [] * eval step []) / 8.
Proof.
  intros Hn Hs Hb H0 H1 v Hv. apply line_ok in H0, H1. assert (N := IZR_lt _ _ Hn).
  assert (W : at_ (i + n) - at_ i = IZR n * eval step []) by (rewrite !at_eq, plus_IZR; ring).
  assert (0 < IZR n * eval step []) by (now apply Rmult_lt_0_compat).
  pose proof (chord F (fun v => eval (derive e) [y; v]) (fun v => eval (derive (derive e)) [y; v]) (at_ i) (at_ (i + n))
    (eval room [] / (IZR n * IZR n)) (eval ends []) ltac:(lra)) as C.
  rewrite W in C. replace (eval room [] * (eval step [] * eval step []) / 8) with
    (eval room [] / (IZR n * IZR n) * (IZR n * eval step [] * (IZR n * eval step [])) / 8) by (field; lra).
  apply C; try easy; clear C.
  - intros t Ht. now apply derive_correct, Hs.
  - intros t Ht. now apply derive_correct, smooth_derive, Hs.
  - intros t Ht. unfold bend in Hb. rewrite p2_ok in Hb. exact (within_ok _ _ _ _ _ _ _ _ _ _ _ Hb y_side Ht).
Qed.

Lemma cover_ok k : forall i, (forall v, at_ i <= v <= at_ (i + size k) -> smooth e [y; v]) -> cover k i = true ->
  line (i + size k) = true -> forall v, at_ i <= v <= at_ (i + size k) ->
  Rabs (F v) <= eval ends [] + eval room [] * (eval step [] * eval step []) / 8.
Proof.
  induction k as [|k IH]; intros i Hs H; pose proof (cover_line _ i H) as L; cbn [cover] in H;
    destruct (if Nat.leb _ _ then _ else _) eqn:E in H; try easy.
  1, 2: destruct (Nat.leb _ _) in E; [|easy]; intros H1; apply slice; auto using size_pos.
  destruct (cover k i) eqn:E0; [|easy]. intros H1 v Hv. pose proof (size_pos k) as N.
  rewrite size_next, Z.add_assoc in *.
  pose proof (at_mono i (i + size k) ltac:(lia)). pose proof (at_mono (i + size k) (i + size k + size k) ltac:(lia)).
  destruct (Rle_dec v (at_ (i + size k))).
  - apply (IH i); [intros; apply Hs; lra | easy | now apply (cover_line k) | lra].
  - apply (IH (i + size k)%Z); [intros; apply Hs; lra | easy | easy | lra].
Qed.

Theorem covered_ok k v : covered k = true -> at_ 0 <= v <= at_ (size k) ->
  Rabs (eval e [y; v]) <= eval ends [] + eval room [] * (eval step [] * eval step []) / 8.
Proof.
  unfold covered. intros H Hv. destruct (defined (size k)) eqn:D; [|easy]. destruct (cover k 0) eqn:C; [|easy].
  apply (cover_ok k 0%Z); try easy. exact (defined_ok _ D).
Qed.
End Slices.
"""
