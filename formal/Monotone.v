(** * Completely monotone functions: why 1/(1+s) has differences of one sign

    The denominator of a softmax enters the model through phi(s) = 1/(1+s). All of its differences, of every order, are
    non-negative: a difference of 1/(c+s) is a product of two functions of its kind. (The page proves the same with random
    variables: docs/theory/theorem.md, Lemma 2.) *)
From Coq Require Import Reals Lra.
Open Scope R_scope.

(** ** Completely monotone functions, to a given order *)

(** [monotone m phi]: on s >= 0, phi and its differences phi(s) - phi(s+h), h >= 0, up to order m, are non-negative. *)
Fixpoint monotone (m : nat) (phi : R -> R) : Prop :=
  (forall s, 0 <= s -> 0 <= phi s) /\
  match m with
  | O => True
  | S m' => monotone m' phi /\ forall h, 0 <= h -> monotone m' (fun s => phi s - phi (s + h))
  end.

Lemma monotone_ext m : forall phi psi, (forall s, 0 <= s -> phi s = psi s) -> monotone m phi -> monotone m psi.
Proof.
  induction m as [|m IH]; intros phi psi E [H1 H2].
  - split; [|easy]. intros s Hs. rewrite <- E by easy. auto.
  - destruct H2 as [H2 H3]. split; [intros s Hs; rewrite <- E by easy; auto|]. split; [now apply (IH phi)|].
    intros h Hh. apply (IH (fun s => phi s - phi (s + h))); [|auto]. intros s Hs. rewrite !E by lra. easy.
Qed.

Lemma monotone_shift m : forall phi a, 0 <= a -> monotone m phi -> monotone m (fun s => phi (s + a)).
Proof.
  induction m as [|m IH]; intros phi a Ha [H1 H2].
  - split; [|easy]. intros s Hs. apply H1. lra.
  - destruct H2 as [H2 H3]. split; [intros s Hs; apply H1; lra|]. split; [now apply IH|].
    intros h Hh. apply (monotone_ext m (fun s => phi (s + a) - phi (s + a + h))).
    + intros s Hs. do 2 f_equal. ring.
    + apply (IH (fun s => phi s - phi (s + h)) a Ha). auto.
Qed.

Lemma monotone_plus m : forall phi psi, monotone m phi -> monotone m psi -> monotone m (fun s => phi s + psi s).
Proof.
  induction m as [|m IH]; intros phi psi [H1 H2] [K1 K2].
  - split; [|easy]. intros s Hs. specialize (H1 s Hs). specialize (K1 s Hs). lra.
  - destruct H2 as [H2 H3], K2 as [K2 K3].
    split; [intros s Hs; specialize (H1 s Hs); specialize (K1 s Hs); lra|]. split; [now apply IH|].
    intros h Hh. apply (monotone_ext m (fun s => (phi s - phi (s + h)) + (psi s - psi (s + h)))).
    + intros s Hs. ring.
    + apply IH; auto.
Qed.

(** The product rule: differences of a product are sums of products of differences and shifts. *)
Lemma monotone_mult m : forall phi psi, monotone m phi -> monotone m psi -> monotone m (fun s => phi s * psi s).
Proof.
  induction m as [|m IH]; intros phi psi [H1 H2] [K1 K2].
  - split; [|easy]. intros s Hs. apply Rmult_le_pos; auto.
  - destruct H2 as [H2 H3], K2 as [K2 K3].
    split; [intros s Hs; apply Rmult_le_pos; auto|]. split; [now apply IH|].
    intros h Hh.
    apply (monotone_ext m (fun s => (phi s - phi (s + h)) * psi s + phi (s + h) * (psi s - psi (s + h)))).
    + intros s Hs. ring.
    + apply monotone_plus; apply IH; auto. now apply (monotone_shift m phi h).
Qed.

Lemma monotone_constant m : forall c, 0 <= c -> monotone m (fun _ => c).
Proof.
  induction m as [|m IH]; intros c Hc; [split; auto|]. split; [auto|]. split; [auto|].
  intros h Hh. apply (monotone_ext m (fun _ => 0)); [intros; ring|]. apply IH. lra.
Qed.

(** 1/(c+s) is completely monotone: 1/(c+s) - 1/(c+h+s) = h 1/(c+s) 1/(c+h+s). *)
Lemma monotone_inverse m : forall c, 0 < c -> monotone m (fun s => / (c + s)).
Proof.
  assert (Pos : forall c, 0 < c -> forall s, 0 <= s -> 0 <= / (c + s)) by (intros; left; apply Rinv_0_lt_compat; lra).
  induction m as [|m IH]; intros c Hc; [split; auto|]. split; [auto|]. split; [auto|].
  intros h Hh. apply (monotone_ext m (fun s => h * (/ (c + s) * / (c + h + s)))).
  - intros s Hs. field. lra.
  - apply monotone_mult; [now apply monotone_constant|]. apply monotone_mult; apply IH; lra.
Qed.
