"""The beginning of every file: the layer as a definition, and the lemmas that its proof uses."""

PRELUDE = r"""From Coq Require Import Reals List Lra Lia ZArith.
From Interval Require Import Tactic.
Import ListNotations.
Open Scope R_scope.

(** ** A single-layer softmax Transformer over the real numbers *)

Definition vec := list R.
Definition mat := list vec.
Fixpoint sum (a : vec) : R := match a with [] => 0 | x :: a' => x + sum a' end.
Fixpoint dot (a b : vec) : R := match a, b with x :: a', y :: b' => x * y + dot a' b' | _, _ => 0 end.
Fixpoint vadd (a b : vec) : vec := match a, b with x :: a', y :: b' => (x + y) :: vadd a' b' | _, _ => [] end.
(* a row vector times a matrix of d columns *)
Fixpoint vm (a : vec) (M : mat) (d : nat) : vec :=
  match a, M with x :: a', r :: M' => vadd (map (Rmult x) r) (vm a' M' d) | _, _ => repeat 0 d end.
Definition relu (z : R) : R := Rmax 0 z.

(* One number per data token, d_k = d_v = 1: W_Q, W_K and W_V have one column per head. No LayerNorm. *)
Record layer := { d_model : nat; d_ff : nat; residual : bool; read : nat;  (* the token that is read out *)
  shift : vec; scale : vec; W_E : vec; b_E : vec; P : mat; S : mat;
  W_Q : list vec; W_K : list vec; W_V : list vec; W_O : mat;
  W_1 : mat; b_1 : vec; W_2 : mat; b_2 : vec; W_R : vec; b_R : R }.

(* Data tokens (x_j - shift_j) scale_j W_E + b_E + p_j, then the special tokens. *)
Definition tokens (L : layer) (x : vec) : mat :=
  map (fun '(xj, (sh, (sc, p))) => vadd (vadd (map (Rmult ((xj - sh) * sc)) (W_E L)) (b_E L)) p)
    (combine x (combine (shift L) (combine (scale L) (P L)))) ++ S L.

(* Softmax attention with scores s and values v. *)
Definition attend (s v : vec) : R := dot (map exp s) v / sum (map exp s).
Definition head (t : mat) (ask wq wk wv : vec) : R :=
  attend (map (fun r => dot ask wq * dot r wk) t) (map (fun r => dot r wv) t).
Fixpoint heads (t : mat) (ask : vec) (wq wk wv : list vec) : vec :=
  match wq, wk, wv with q :: wq', k :: wk', v :: wv' => head t ask q k v :: heads t ask wq' wk' wv' | _, _, _ => [] end.

Definition behind (L : layer) (ask z : vec) : R :=
  let a := vm z (W_O L) (d_model L) in
  let h := if residual L then vadd ask a else a in
  let f := vadd (vm (map relu (vadd (vm h (W_1 L) (d_ff L)) (b_1 L))) (W_2 L) (d_model L)) (b_2 L) in
  let y := if residual L then vadd h f else f in dot y (W_R L) + b_R L.
Definition run (L : layer) (x : vec) : R :=
  let t := tokens L x in let ask := nth (read L) t [] in behind L ask (heads t ask (W_Q L) (W_K L) (W_V L)).

(** ** Lemmas: scores move together, and tokens of nearly no weight *)

Lemma relu_pair z : relu z - relu (- z) = z.
Proof. unfold relu, Rmax. destruct (Rle_dec 0 z), (Rle_dec 0 (- z)); lra. Qed.
Lemma attend_eq s s' v v' : s = s' -> v = v' -> attend s v = attend s' v'.
Proof. now intros -> ->. Qed.
Lemma cons_eq (x y : R) (a b : vec) : x = y -> a = b -> x :: a = y :: b.
Proof. now intros -> ->. Qed.

Lemma attend_shift c s v : attend (map (Rplus c) s) v = attend s v.
Proof.
  unfold attend.
  assert (N : forall v, dot (map exp (map (Rplus c) s)) v = exp c * dot (map exp s) v).
  { induction s as [|r s IH]; intros [|q w]; simpl; try ring. rewrite IH, exp_plus. ring. }
  assert (Z : sum (map exp (map (Rplus c) s)) = exp c * sum (map exp s)).
  { clear. induction s as [|r s IH]; simpl; [ring|]. rewrite IH, exp_plus. ring. }
  rewrite N, Z. pose proof (exp_pos c). destruct (Req_dec (sum (map exp s)) 0) as [->|H0].
  - rewrite Rmult_0_r. unfold Rdiv. rewrite Rinv_0. ring.
  - field. lra.
Qed.

Lemma sum_exp_pos s : 0 <= sum (map exp s).
Proof. induction s as [|r s IH]; simpl; [lra|]. pose proof (exp_pos r). lra. Qed.

Lemma dot_bound V s : forall v, Forall (fun q => Rabs q <= V) v -> length s = length v ->
  Rabs (dot (map exp s) v) <= V * sum (map exp s).
Proof.
  induction s as [|r s IH]; intros [|q v] H E; try discriminate; simpl; [rewrite Rabs_R0; lra|].
  inversion H; subst. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult.
  pose proof (exp_pos r). rewrite (Rabs_right (exp r)) by lra.
  pose proof (IH v ltac:(easy) ltac:(now injection E)).
  assert (exp r * Rabs q <= exp r * V) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* The head without the tokens s', whose scores are far below 0, the score of the first token. *)
Lemma masked V eta w s v s' v' : length s = length v -> length s' = length v' ->
  Forall (fun q => Rabs q <= V) (w :: v) -> Forall (fun q => Rabs q <= V) v' -> 2 * V * sum (map exp s') <= eta ->
  Rabs (attend (0 :: s ++ s') (w :: v ++ v') - attend (0 :: s) (w :: v)) <= eta.
Proof.
  intros Hl Hl' Hv Hv' He.
  pose proof (dot_bound V (0 :: s) (w :: v) Hv ltac:(simpl; now rewrite Hl)) as B.
  pose proof (dot_bound V s' v' Hv' Hl') as B'.
  assert (N : dot (map exp (0 :: s ++ s')) (w :: v ++ v') = dot (map exp (0 :: s)) (w :: v) + dot (map exp s') v').
  { cbn [map dot]. rewrite Rplus_assoc. f_equal. clear - Hl. revert v Hl.
    induction s as [|r s IH]; intros [|q v] E; try discriminate; simpl; [ring|]. rewrite IH by now injection E. ring. }
  assert (Z : sum (map exp (0 :: s ++ s')) = sum (map exp (0 :: s)) + sum (map exp s')).
  { cbn [map sum]. rewrite Rplus_assoc. f_equal. clear. induction s as [|r s IH]; simpl; [ring|]. rewrite IH. ring. }
  unfold attend. rewrite N, Z.
  assert (H1 : 1 <= sum (map exp (0 :: s))).
  { cbn [map sum]. rewrite exp_0. pose proof (sum_exp_pos s). lra. }
  pose proof (sum_exp_pos s') as H2.
  set (n := dot _ (w :: v)) in *. set (z := sum (map exp (0 :: s))) in *. set (n' := dot _ v') in *.
  set (z' := sum (map exp s')) in *. clearbody n z n' z'.
  replace ((n + n') / (z + z') - n / z) with ((n' - n / z * z') / (z + z')) by (field; lra).
  assert (A : Rabs (n / z) <= V).
  { unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right z) by lra. apply Rmult_le_reg_r with z; [lra|].
    rewrite Rmult_assoc, Rinv_l by lra. lra. }
  assert (C : Rabs (n' - n / z * z') <= eta).
  { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp, Rabs_mult, (Rabs_right z') by lra.
    assert (Rabs (n / z) * z' <= V * z') by (apply Rmult_le_compat_r; lra). lra. }
  unfold Rdiv at 1. rewrite Rabs_mult, Rabs_inv, (Rabs_right (z + z')) by lra.
  apply Rmult_le_reg_r with (z + z'); [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  assert (0 <= eta) by (pose proof (Rabs_pos (n' - n / z * z')); lra).
  assert (eta * 1 <= eta * (z + z')) by (apply Rmult_le_compat_l; lra). lra.
Qed.

(* A head whose first token has score 0. *)
Lemma gate w s v p : length s = length v -> map (fun q => q - w) v = p ->
  attend (0 :: s) (w :: v) = w + dot (map exp s) p / (1 + sum (map exp s)).
Proof.
  intros H <-. unfold attend. cbn [map dot sum]. rewrite exp_0. pose proof (sum_exp_pos s).
  assert (E : dot (map exp s) (map (fun q => q - w) v) = dot (map exp s) v - w * sum (map exp s)).
  { revert v H. clear. induction s as [|r s IH]; intros [|q v] E; try discriminate; simpl; [ring|].
    rewrite IH by now injection E. ring. }
  rewrite E. field. lra.
Qed.

Lemma between a b : Rabs a <= b -> - b <= a <= b.
Proof. unfold Rabs. destruct (Rcase_abs a); lra. Qed.

Ltac unroll := cbv -[Rplus Rmult Rminus Rdiv Rinv Ropp exp IZR relu Rle Rlt Rabs].
Ltac entries := unroll; repeat (apply cons_eq; [first [lra | field]|]); reflexivity.
Ltac reorder := unfold attend; cbn [map dot sum app]; f_equal; ring.
Ltac small := repeat constructor; interval.
(* Units of the network that cancel, relu z - relu (- z) = z; others have weight 0. *)
Ltac relus := repeat match goal with |- context [relu ?a] =>
  match goal with |- context [relu ?b] =>
    lazymatch a with b => fail | _ => replace (relu b) with (relu a - a) by
      (replace b with (- a) by lra; pose proof (relu_pair a); lra) end end end; generalize relu; intros; lra.
"""
