(** * Max-heads: a softmax average against the maximum

    A head whose scores are beta times its values falls short of their maximum by at most c, as soon as
    n - 1 <= beta c exp(beta c + 1): the sharp constant is c = W((n-1)/e) / beta, with Lambert's W. Any number n of tokens, any
    sharpness. *)
From Coq Require Import Reals List Lra.
From Onelayer Require Import Attention.
Import ListNotations.
Open Scope R_scope.

(** t exp(-t) is largest at t = 1. *)
Lemma t_exp t : t * exp (- t) <= exp (-1).
Proof.
  pose proof (exp_ineq1_le (t - 1)). pose proof (exp_pos (- t)).
  replace (exp (-1)) with (exp (t - 1) * exp (- t)) by (rewrite <- exp_plus; f_equal; ring).
  apply Rmult_le_compat_r; lra.
Qed.

Section Max.
Variables beta c M : R.
Hypothesis Hbeta : 0 < beta.

(** Denominator and numerator of the softmax average, and the most that one token can cost. *)
Definition denominator (l : vec) : R := sum (map exp (map (Rmult beta) l)).
Definition numerator (l : vec) : R := dot (map exp (map (Rmult beta) l)) l.
Definition cost : R := exp (beta * M) * (exp (- (beta * c) - 1) / beta).

(** A token of value x pulls the average below M - c by at most [cost]. *)
Lemma one_token x : (M - c - x) * exp (beta * x) <= cost.
Proof.
  set (t := beta * (M - c - x)). pose proof (t_exp t) as H. pose proof (exp_pos (beta * (M - c))).
  replace (exp (beta * x)) with (exp (beta * (M - c)) * exp (- t)) by (unfold t; rewrite <- exp_plus; f_equal; ring).
  replace cost with (exp (beta * (M - c)) * exp (-1) / beta).
  2: { unfold cost, Rdiv. rewrite <- Rmult_assoc, <- !exp_plus. do 2 f_equal. ring. }
  apply Rmult_le_reg_l with beta; [easy|].
  replace (beta * ((M - c - x) * (exp (beta * (M - c)) * exp (- t)))) with (exp (beta * (M - c)) * (t * exp (- t))) by (unfold t; ring).
  replace (beta * (exp (beta * (M - c)) * exp (-1) / beta)) with (exp (beta * (M - c)) * exp (-1)) by (field; lra).
  apply Rmult_le_compat_l; lra.
Qed.

Lemma all_tokens l : (M - c) * denominator l - numerator l <= INR (length l) * cost.
Proof.
  unfold denominator, numerator. induction l as [|x l IH]; [simpl; lra|]. cbn [map sum dot].
  replace (length (x :: l)) with (Datatypes.S (length l)) by easy. rewrite S_INR. pose proof (one_token x). lra.
Qed.

(** The token that has the maximum pays for the others. *)
Lemma with_maximum l : In M l -> (M - c) * denominator l - numerator l <= (INR (length l) - 1) * cost - c * exp (beta * M).
Proof.
  induction l as [|x l IH]; [easy|]. replace (length (x :: l)) with (Datatypes.S (length l)) by easy. rewrite S_INR.
  unfold denominator, numerator in *. intros [->|Hin]; cbn [map sum dot].
  - pose proof (all_tokens l) as H. unfold denominator, numerator in H. lra.
  - specialize (IH Hin). pose proof (one_token x). lra.
Qed.

Lemma denominator_pos l : l <> [] -> 0 < denominator l.
Proof.
  unfold denominator. induction l as [|x [|y l] IH]; [easy| |]; intros _; cbn [map sum] in *; pose proof (exp_pos (beta * x)); [lra|].
  specialize (IH ltac:(easy)). lra.
Qed.

(** An average is at most the maximum. *)
Lemma numerator_le l : (forall x, In x l -> x <= M) -> numerator l <= M * denominator l.
Proof.
  unfold numerator, denominator. induction l as [|x l IH]; intros H; cbn [map sum dot]; [lra|].
  pose proof (IH (fun y Hy => H y (or_intror Hy))).
  pose proof (Rmult_le_compat_l (exp (beta * x)) x M ltac:(left; apply exp_pos) (H x (or_introl eq_refl))). lra.
Qed.

Theorem softmax_max l : In M l -> (forall x, In x l -> x <= M) -> INR (length l) - 1 <= beta * c * exp (beta * c + 1) ->
  0 <= M - attend (map (Rmult beta) l) l <= c.
Proof.
  intros Hin Hle Hc. assert (Z : 0 < denominator l) by (apply denominator_pos; now intros ->).
  unfold attend. fold (denominator l) (numerator l).
  assert (Pay : (INR (length l) - 1) * cost <= c * exp (beta * M)).
  { pose proof (exp_pos (beta * c + 1)). pose proof (exp_pos (- (beta * c) - 1)). pose proof (exp_pos (beta * M)).
    replace (c * exp (beta * M)) with (beta * c * exp (beta * c + 1) * cost).
    - apply Rmult_le_compat_r; [|easy]. unfold cost. apply Rmult_le_pos; [lra|]. apply Rlt_le, Rdiv_lt_0_compat; lra.
    - unfold cost. replace (- (beta * c) - 1) with (- (beta * c + 1)) by ring. rewrite exp_Ropp. field. lra. }
  pose proof (with_maximum l Hin). pose proof (numerator_le l Hle).
  replace (M - numerator l / denominator l) with ((M * denominator l - numerator l) / denominator l) by (field; lra).
  split; apply Rmult_le_reg_r with (denominator l); try easy; unfold Rdiv; rewrite Rmult_assoc, Rinv_l by lra; lra.
Qed.
End Max.

(** c = (n-1)/(e beta) always qualifies. *)
Corollary softmax_max_simple beta M l : 0 < beta -> In M l -> (forall x, In x l -> x <= M) ->
  0 <= M - attend (map (Rmult beta) l) l <= (INR (length l) - 1) / (exp 1 * beta).
Proof.
  intros Hb Hin Hle. apply softmax_max; try easy. set (k := INR (length l) - 1).
  assert (Hk : 0 <= k).
  { unfold k. destruct l as [|x l]; [easy|]. replace (length (x :: l)) with (Datatypes.S (length l)) by easy.
    rewrite S_INR. pose proof (pos_INR (length l)). lra. }
  pose proof (exp_pos 1). replace (beta * (k / (exp 1 * beta))) with (k / exp 1) by (field; lra). rewrite exp_plus.
  assert (0 <= k / exp 1) by (apply Rmult_le_pos; [lra|apply Rlt_le, Rinv_0_lt_compat; lra]).
  pose proof (exp_ineq1_le (k / exp 1)).
  replace (k / exp 1 * (exp (k / exp 1) * exp 1)) with (k * exp (k / exp 1)) by (field; lra).
  rewrite <- (Rmult_1_r k) at 1. apply Rmult_le_compat_l; lra.
Qed.
