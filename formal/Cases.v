(** * Cases of the theorem: one output, one and two variables, sequences; and how large a layer must be

    The layer and its bound are those of Universal.v; nothing new is built here. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Gates Universal.
Import ListNotations.
Open Scope R_scope.

(** ** One output *)

Theorem universal_run (f : vec -> R) (K : vec) (beta : R) (low side : vec) (ns : list nat) :
  length K = length ns -> length low = length ns -> length side = length ns ->
  Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (le 1) ns -> 0 < beta ->
  (forall x y, in_box low side x -> in_box low side y -> Rabs (f x - f y) <= change K x y) ->
  forall x, in_box low side x ->
  Rabs (run (universal_layer 1 (fun x => [f x]) beta low side ns) x - f x) <= bound beta (per_side K side) ns.
Proof.
  intros HK Hl Hs PK Ps Hn Hb Lip x Hx. unfold run.
  pose proof (universal 1 (fun x => [f x]) K beta low side ns 0 HK Hl Hs PK Ps Hn Hb ltac:(lia)) as U.
  cbn [nth] in U.
  replace (hd 0 (outputs (universal_layer 1 (fun x => [f x]) beta low side ns) x))
    with (nth 0 (outputs (universal_layer 1 (fun x => [f x]) beta low side ns) x) 0) by (now destruct (outputs _ _)).
  now apply U.
Qed.

(** ** One variable: L (1/(2n) + 2 ln 2 / beta) on the unit interval *)

Theorem universal_1 (f : R -> R) (L beta : R) (n : nat) : 0 <= L -> (1 <= n)%nat -> 0 < beta ->
  (forall x y, 0 <= x <= 1 -> 0 <= y <= 1 -> Rabs (f x - f y) <= L * Rabs (x - y)) ->
  forall x, 0 <= x <= 1 ->
  Rabs (run (universal_layer 1 (fun x => [f (nth 0 x 0)]) beta [0] [1] [n]) [x] - f x)
    <= L * (/ (2 * INR n) + 2 * ln 2 / beta).
Proof.
  intros HL Hn Hb Lip x Hx.
  pose proof (universal_run (fun x => f (nth 0 x 0)) [L] beta [0] [1] [n] eq_refl eq_refl eq_refl) as U.
  cbn [nth] in U. eapply Rle_trans; [apply U|]; auto using Rlt_0_1.
  - intros [|a [|? ?]] [|c [|? ?]] [Ha Ba] [Hc Bc]; try discriminate. inversion Ba; inversion Bc; subst. cbn.
    rewrite Rplus_0_r. apply Lip; lra.
  - split; [easy|]. cbn. constructor; [lra|constructor].
  - cbn. apply Req_le. ring.
Qed.

(** ** Two variables, on the unit square *)

Theorem universal_2 (f : R -> R -> R) (L1 L2 beta : R) (n1 n2 : nat) :
  0 <= L1 -> 0 <= L2 -> (1 <= n1)%nat -> (1 <= n2)%nat -> 0 < beta ->
  (forall x1 x2 y1 y2, 0 <= x1 <= 1 -> 0 <= x2 <= 1 -> 0 <= y1 <= 1 -> 0 <= y2 <= 1 ->
    Rabs (f x1 x2 - f y1 y2) <= L1 * Rabs (x1 - y1) + L2 * Rabs (x2 - y2)) ->
  forall x1 x2, 0 <= x1 <= 1 -> 0 <= x2 <= 1 ->
  Rabs (run (universal_layer 1 (fun x => [f (nth 0 x 0) (nth 1 x 0)]) beta [0; 0] [1; 1] [n1; n2]) [x1; x2] - f x1 x2)
    <= L1 * (/ (2 * INR n1) + 2 * ln 2 / beta) + L2 * (/ (2 * INR n2) + 2 * ln 2 / beta).
Proof.
  intros H1 H2 Hn1 Hn2 Hb Lip x1 x2 Hx1 Hx2.
  pose proof (universal_run (fun x => f (nth 0 x 0) (nth 1 x 0)) [L1; L2] beta [0; 0] [1; 1] [n1; n2] eq_refl eq_refl eq_refl) as U.
  cbn [nth] in U. eapply Rle_trans; [apply U|]; auto using Rlt_0_1.
  - intros [|a [|a' [|? ?]]] [|c [|c' [|? ?]]] [Ha Ba] [Hc Bc]; try discriminate.
    inversion Ba as [|? ? A1 A2]; inversion Bc as [|? ? C1 C2]; subst. inversion A2; inversion C2; subst. cbn in *.
    rewrite Rplus_0_r. apply Lip; lra.
  - split; [easy|]. cbn. constructor; [lra|]. constructor; [lra|constructor].
  - cbn. apply Req_le. ring.
Qed.

(** ** Sequences of n vectors of d numbers: D = n d scalar tokens, row after row *)

(** A list of numbers, cut into n rows of d. *)
Fixpoint cut (n d : nat) (x : vec) : mat :=
  match n with
  | O => []
  | Datatypes.S n' => firstn d x :: cut n' d (skipn d x)
  end.

Lemma cut_concat n d X : length X = n -> Forall (fun r => length r = d) X -> cut n d (concat X) = X.
Proof.
  intros Hn H. revert n Hn; induction H as [|r X Hr _ IH]; intros [|n] Hn; try discriminate; [easy|]. subst d.
  cbn [concat cut]. rewrite firstn_app, firstn_all, Nat.sub_diag, skipn_app, skipn_all, Nat.sub_diag. simpl.
  rewrite app_nil_r. f_equal. apply IH. now injection Hn.
Qed.

(** f maps sequences to sequences; both are written row after row. *)
Theorem universal_sequence (n d n' d' : nat) (f : mat -> mat) (K : vec) (beta : R) (low side : vec) (ns : list nat) (q : nat) :
  length ns = (n * d)%nat -> length K = length ns -> length low = length ns -> length side = length ns ->
  Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (le 1) ns -> 0 < beta -> (q < n' * d')%nat ->
  let entry X := nth q (concat (f X)) 0 in
  (forall x y, in_box low side x -> in_box low side y -> Rabs (entry (cut n d x) - entry (cut n d y)) <= change K x y) ->
  forall X, length X = n -> Forall (fun r => length r = d) X -> in_box low side (concat X) ->
  Rabs (nth q (outputs (universal_layer (n' * d') (fun x => concat (f (cut n d x))) beta low side ns) (concat X)) 0 - entry X)
    <= bound beta (per_side K side) ns.
Proof.
  intros _ HK Hl Hs PK Ps Hn Hb Hq entry Lip X HX HX' Hx.
  pose proof (universal (n' * d') (fun x => concat (f (cut n d x))) K beta low side ns q HK Hl Hs PK Ps Hn Hb Hq) as U.
  unfold entry. rewrite <- (cut_concat n d X HX HX') at 2. now apply U.
Qed.

(** ** How large: sharpness and cells for a tolerance (Section 3, Sizes)

    A share of the tolerance goes to beta, the rest to the cells: beta >= 2 ln 2 sum L_j / (share eps) and
    n_j >= D L_j / (2 (1 - share) eps). *)

Fixpoint enough (a : R) (L : vec) (ns : list nat) : Prop :=
  match L, ns with
  | l :: L', n :: ns' => (1 <= n)%nat /\ a * l <= INR n /\ enough a L' ns'
  | [], [] => True
  | _, _ => False
  end.

Theorem sizes (eps share beta : R) (L : vec) (ns : list nat) : 0 < eps -> 0 < share < 1 -> 0 < beta -> Forall (Rle 0) L ->
  2 * ln 2 * sum L <= share * eps * beta -> enough (INR (length L) / (2 * (1 - share) * eps)) L ns ->
  bound beta L ns <= eps.
Proof.
  intros He Hs Hb PL HB HN. destruct L as [|l0 L0]; [destruct ns; simpl; lra|]. set (L := l0 :: L0) in *.
  assert (D : 0 < INR (length L)) by (apply lt_0_INR; simpl; lia). set (p := (1 - share) * eps / INR (length L)).
  assert (P : 0 < p) by (unfold p; apply Rdiv_lt_0_compat; [apply Rmult_lt_0_compat; lra|easy]).
  assert (A : bound beta L ns <= INR (length L) * p + 2 * ln 2 / beta * sum L).
  { assert (E : INR (length L) / (2 * (1 - share) * eps) = / (2 * p)) by (unfold p; field; lra). rewrite E in HN.
    clearbody L. clear D E HB l0 L0. clearbody p. revert ns HN; induction PL as [|l L Hl _ IH]; intros [|n ns] HN; try easy; [simpl; lra|].
    destruct HN as [Hn [Hln HN]]. specialize (IH ns HN). cbn [bound sum]. replace (length (l :: L)) with (Datatypes.S (length L)) by easy.
    rewrite S_INR. assert (N : 0 < INR n) by (apply lt_0_INR; lia).
    assert (B : l * / (2 * INR n) <= p).
    { apply Rmult_le_reg_r with (/ p * INR n); [apply Rmult_lt_0_compat; [now apply Rinv_0_lt_compat|easy]|].
      replace (l * / (2 * INR n) * (/ p * INR n)) with (/ (2 * p) * l) by (field; lra).
      replace (p * (/ p * INR n)) with (INR n) by (field; lra). easy. }
    lra. }
  assert (B : 2 * ln 2 / beta * sum L <= share * eps).
  { apply Rmult_le_reg_r with beta; [easy|]. replace (2 * ln 2 / beta * sum L * beta) with (2 * ln 2 * sum L) by (field; lra). easy. }
  assert (C : INR (length L) * p = (1 - share) * eps) by (unfold p; field; lra). lra.
Qed.

Lemma above_any (r : R) : exists n, r < INR n.
Proof.
  exists (Z.to_nat (Z.max 0 (up r))). rewrite INR_IZR_INZ, Z2Nat.id by lia. destruct (archimed r) as [A _].
  pose proof (IZR_le _ _ (Z.le_max_r 0 (up r))). lra.
Qed.

(** Such sizes exist for every tolerance. *)
Corollary sizes_exist (eps : R) (L : vec) : 0 < eps -> Forall (Rle 0) L ->
  exists beta ns, 0 < beta /\ length ns = length L /\ Forall (le 1) ns /\ bound beta L ns <= eps.
Proof.
  intros He PL. assert (Hs : 0 <= sum L) by (clear - PL; induction PL; simpl; lra).
  assert (H2 : 0 < ln 2) by (rewrite <- ln_1; apply ln_increasing; lra).
  set (beta := 1 + 2 * (2 * ln 2 * sum L) / eps).
  assert (B : 2 * ln 2 * sum L <= / 2 * eps * beta).
  { unfold beta. replace (/ 2 * eps * (1 + 2 * (2 * ln 2 * sum L) / eps)) with (/ 2 * eps + 2 * ln 2 * sum L) by (field; lra). lra. }
  assert (Pb : 0 < beta).
  { unfold beta. assert (0 <= 2 * (2 * ln 2 * sum L) / eps); [|lra].
    apply Rmult_le_pos; [|left; now apply Rinv_0_lt_compat]. pose proof (Rmult_le_pos (ln 2) (sum L) ltac:(lra) Hs). lra. }
  assert (N : forall a, exists ns, length ns = length L /\ Forall (le 1) ns /\ enough a L ns).
  { intros a. clear. induction L as [|l L [ns [H1 [H2 H3]]]]; [now exists []|].
    destruct (above_any (a * l)) as [n Hn]. exists (Datatypes.S n :: ns). split; [simpl; congruence|].
    split; [constructor; [lia|easy]|]. cbn [enough]. rewrite S_INR. split; [lia|]. split; [lra|easy]. }
  destruct (N (INR (length L) / (2 * (1 - / 2) * eps))) as [ns [H1 [H3 H4]]].
  exists beta, ns. repeat split; auto. apply (sizes eps (/ 2)); auto; lra.
Qed.
