(** * How far the average looks, along one axis

    Along one axis a gate with corner t is 1/(1 + exp(beta (t - x))) at x: a logistic distribution function. This file bounds the
    mean distance between x and the centres of the cells, which is where the constant 2 ln 2 / beta of the theorem comes from
    (docs/theory/theorem.md, Section 3: E|Z| = 2 ln 2). No integral and no derivative is needed: the mean over each cell is a
    difference of a function that is known in closed form. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Monotone Differences.
Import ListNotations.
Open Scope R_scope.

(** ** The tail of the logistic law *)

Section Tail.
Variable b : R.
Hypothesis Hb : 0 < b.

(** The probability of being above s, *)
Definition tail (s : R) : R := / (1 + exp (b * s)).
(** its integral from s on, *)
Definition integral (s : R) : R := ln (1 + exp (- (b * s))) / b.
(** and the part of the mean that lies above s. *)
Definition above (s : R) : R := s * tail s + integral s.

Lemma tail_pos s : 0 < tail s.
Proof. unfold tail. apply Rinv_0_lt_compat. pose proof (exp_pos (b * s)). lra. Qed.

Lemma tail_other s : 1 - tail (- s) = tail s.
Proof.
  unfold tail. replace (b * - s) with (- (b * s)) by ring. rewrite exp_Ropp. pose proof (exp_pos (b * s)). field. lra.
Qed.

(** Exp is convex: the chord from 0 to z lies above it. *)
Lemma exp_chord l z : 0 <= l <= 1 -> exp (l * z) <= 1 - l + l * exp z.
Proof.
  intros Hl. pose proof (exp_ineq1_le (- (l * z))) as H1. pose proof (exp_ineq1_le (z - l * z)) as H2.
  pose proof (exp_pos (l * z)) as P.
  assert (E1 : exp (- (l * z)) * exp (l * z) = 1) by (rewrite <- exp_plus; replace (- (l * z) + l * z) with 0 by ring; apply exp_0).
  assert (E2 : exp (z - l * z) * exp (l * z) = exp z) by (rewrite <- exp_plus; f_equal; ring).
  set (p := exp (l * z)) in *. rewrite <- E2. rewrite <- E1 at 1.
  apply Rle_trans with (p * ((1 - l) * (1 + - (l * z)) + l * (1 + (z - l * z)))).
  - apply Req_le. ring.
  - replace (exp (- (l * z)) * p - l + l * (exp (z - l * z) * p))
      with (p * ((1 - l) * exp (- (l * z)) + l * exp (z - l * z)) + (exp (- (l * z)) * p - 1) * l) by ring.
    rewrite E1. replace ((1 - 1) * l) with 0 by ring. rewrite Rplus_0_r.
    apply Rmult_le_compat_l; [lra|]. apply Rplus_le_compat; apply Rmult_le_compat_l; lra.
Qed.

(** The integral of a decreasing function is at least length times its last value. *)
Lemma integral_step s t : s <= t -> (t - s) * tail t <= integral s - integral t.
Proof.
  intros H. unfold integral. set (q := exp (- (b * t))). assert (Q : 0 < q) by apply exp_pos.
  assert (T : tail t = q / (1 + q)).
  { unfold tail, q. rewrite exp_Ropp. pose proof (exp_pos (b * t)). field. lra. }
  assert (L : 0 <= tail t <= 1).
  { pose proof (tail_pos t). split; [lra|]. rewrite T. apply Rmult_le_reg_r with (1 + q); [lra|].
    replace (q / (1 + q) * (1 + q)) with q by (field; lra). lra. }
  pose proof (exp_chord (tail t) (b * (t - s)) L) as C.
  assert (E : 1 - tail t + tail t * exp (b * (t - s)) = (1 + exp (- (b * s))) / (1 + q)).
  { replace (exp (- (b * s))) with (exp (b * (t - s)) * q) by (unfold q; rewrite <- exp_plus; f_equal; ring).
    rewrite T. field. lra. }
  pose proof (exp_pos (- (b * s))) as PS.
  assert (K : tail t * (b * (t - s)) <= ln (1 + exp (- (b * s))) - ln (1 + q)).
  { rewrite <- (ln_exp (tail t * (b * (t - s)))). rewrite E in C.
    assert (D : ln ((1 + exp (- (b * s))) / (1 + q)) = ln (1 + exp (- (b * s))) - ln (1 + q)).
    { unfold Rdiv. rewrite ln_mult, ln_Rinv; try lra. apply Rinv_0_lt_compat. lra. }
    rewrite <- D. destruct C as [C|C]; [left; apply ln_increasing; [apply exp_pos|easy]|rewrite C; lra]. }
  apply Rmult_le_reg_r with b; [easy|]. unfold Rdiv.
  replace ((ln (1 + exp (- (b * s))) * / b - ln (1 + q) * / b) * b) with (ln (1 + exp (- (b * s))) - ln (1 + q)) by (field; lra).
  lra.
Qed.

Lemma integral_pos s : 0 < integral s.
Proof.
  unfold integral. apply Rdiv_lt_0_compat; [|easy]. rewrite <- ln_1. apply ln_increasing; [lra|].
  pose proof (exp_pos (- (b * s))). lra.
Qed.

Lemma integral_le s t : s <= t -> integral t <= integral s.
Proof.
  intros H. pose proof (integral_step s t H). pose proof (tail_pos t).
  pose proof (Rmult_le_pos (t - s) (tail t) ltac:(lra) ltac:(lra)). lra.
Qed.

Lemma above_0 : above 0 = ln 2 / b.
Proof. unfold above, integral. rewrite Rmult_0_r, Ropp_0, exp_0, Rmult_0_l, Rplus_0_l. reflexivity. Qed.

(** A cell from s to t, s >= 0 away from x, adds its distance times its probability: at most what it adds to the mean. *)
Lemma above_step s t : 0 <= s <= t -> s * (tail s - tail t) <= above s - above t.
Proof. intros H. pose proof (integral_step s t (proj2 H)). unfold above. lra. Qed.

Lemma above_le s : 0 <= s -> above s <= above 0.
Proof. intros H. pose proof (above_step 0 s ltac:(lra)). lra. Qed.

(** The mean has room to spare: this pays for corners at a finite place instead of minus infinity. *)
Lemma room : exp (- b) / (2 * b) <= integral 1.
Proof.
  set (t := exp (- b)). assert (T : 0 < t <= 1).
  { unfold t. split; [apply exp_pos|]. rewrite <- exp_0. left. apply exp_increasing. lra. }
  assert (H : t / 2 <= ln (1 + t)).
  { assert (A : exp (t / 2) <= 1 + t).
    { pose proof (exp_chord (t / 2) 1 ltac:(lra)) as C. rewrite Rmult_1_r in C. pose proof exp_le_3.
      pose proof (Rmult_le_compat_l (t / 2) (exp 1) 3 ltac:(lra) ltac:(lra)). lra. }
    rewrite <- (ln_exp (t / 2)). destruct A as [A|A]; [left; apply ln_increasing; [apply exp_pos|easy]|rewrite A; lra]. }
  unfold integral. rewrite Rmult_1_r. fold t. replace (t / (2 * b)) with (t / 2 / b) by (field; lra).
  apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|easy].
Qed.
End Tail.

(** ** The mean distance *)

(** The logistic function as a function of the exponential, and the lower corners of n cells: i/n, but the first is far away. *)
Definition phi (s : R) : R := / (1 + s).
Definition corner (far : R) (n i : nat) : R :=
  match i with
  | O => - far
  | _ => INR i / INR n
  end.
Definition expo (b far : R) (n : nat) (x : R) (i : nat) : R := exp (b * (corner far n i - x)).
Definition centre (n i : nat) : R := (INR i + / 2) / INR n.

Section Axis.
Variables (b far x : R) (n : nat).
Hypothesis Hb : 0 < b.
Hypothesis Hfar : 0 <= far.
Hypothesis Hn : (1 <= n)%nat.
Hypothesis Hx : 0 <= x <= 1.

Definition edge (i : nat) : R := INR i / INR n.
Definition distance (i : nat) : R := Rmax 0 (Rmax (edge i - x) (x - edge (S i))).
Definition level (i : nat) : R := match i with O => 1 | _ => tail b (edge i - x) end.
Definition reached (m : nat) : R := total (seq 0 m) (fun i => distance i * (level i - level (S i))).

Lemma n_pos : 0 < INR n. Proof. apply lt_0_INR. lia. Qed.
Lemma edge_S i : edge (S i) = edge i + / INR n. Proof. unfold edge. rewrite S_INR. field. pose proof n_pos. lra. Qed.
Lemma edge_le i j : (i <= j)%nat -> edge i <= edge j.
Proof. intros H. apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat, n_pos|now apply le_INR]. Qed.
Lemma edge_0 : edge 0 = 0. Proof. unfold edge. simpl. unfold Rdiv. ring. Qed.
Lemma edge_n : edge n = 1. Proof. unfold edge. field. pose proof n_pos. lra. Qed.

Lemma expo_increasing : increasing (expo b far n x).
Proof.
  intros i j H. split; [left; apply exp_pos|]. unfold expo.
  assert (C : corner far n i <= corner far n j).
  { destruct i, j; cbn [corner]; try lia; [lra| |now apply edge_le]. pose proof (edge_le 0 (S j) ltac:(lia)). rewrite edge_0 in *. unfold edge in *. lra. }
  destruct C as [C|C]; [left; apply exp_increasing, Rmult_lt_compat_l; lra|rewrite C; lra].
Qed.

Lemma reached_S m : reached (S m) = reached m + distance m * (level m - level (S m)).
Proof. unfold reached. now rewrite total_seq_S. Qed.

(** Cells to the left of x, at x and to its right have these distances. *)
Lemma distance_left i : edge (S i) <= x -> distance i = x - edge (S i).
Proof. intros H. pose proof (edge_le i (S i) ltac:(lia)). unfold distance. rewrite !Rmax_right; try lra. rewrite Rmax_right; lra. Qed.
Lemma distance_here i : edge i <= x <= edge (S i) -> distance i = 0.
Proof. intros H. unfold distance. rewrite Rmax_left; [easy|]. apply Rmax_lub; lra. Qed.
Lemma distance_right i : x <= edge i -> distance i = edge i - x.
Proof. intros H. pose proof (edge_le i (S i) ltac:(lia)). unfold distance. rewrite Rmax_right; rewrite ?Rmax_left; lra. Qed.

(** Cells to the left of x. *)
Lemma left_cells m : edge (S m) <= x -> reached (S m) <= above b (x - edge (S m)) - integral b 1.
Proof.
  induction m as [|m IH]; intros H; rewrite reached_S, distance_left by easy; cbn [level].
  - change (reached 0) with 0.
    pose proof (integral_le b Hb (x - edge 1) 1 ltac:(pose proof (edge_le 0 1 ltac:(lia)); rewrite edge_0 in *; lra)).
    pose proof (tail_other b (x - edge 1)) as O. replace (- (x - edge 1)) with (edge 1 - x) in O by ring.
    unfold above. rewrite <- O. lra.
  - pose proof (edge_le (S m) (S (S m)) ltac:(lia)). specialize (IH ltac:(lra)).
    pose proof (above_step b Hb (x - edge (S (S m))) (x - edge (S m)) ltac:(lra)) as St.
    pose proof (tail_other b (x - edge (S m))) as O1. pose proof (tail_other b (x - edge (S (S m)))) as O2.
    replace (- (x - edge (S m))) with (edge (S m) - x) in O1 by ring.
    replace (- (x - edge (S (S m)))) with (edge (S (S m)) - x) in O2 by ring.
    rewrite <- O1, <- O2 in St.
    replace (1 - tail b (edge (S (S m)) - x) - (1 - tail b (edge (S m) - x)))
      with (tail b (edge (S m) - x) - tail b (edge (S (S m)) - x)) in St by ring. lra.
Qed.

(** Up to the cell of x. *)
Lemma to_x j : edge j <= x <= edge (S j) -> reached (S j) <= above b 0 - integral b 1.
Proof.
  intros H. rewrite reached_S, distance_here by easy.
  destruct j as [|j].
  - change (reached 0) with 0. pose proof (integral_le b Hb 0 1 ltac:(lra)). unfold above. lra.
  - pose proof (left_cells j (proj1 H)). pose proof (above_le b Hb (x - edge (S j)) ltac:(lra)). lra.
Qed.

(** Cells to the right of x. *)
Lemma right_cells j m : edge j <= x <= edge (S j) -> (j <= m)%nat ->
  reached (S m) <= 2 * above b 0 - integral b 1 - above b (edge (S m) - x).
Proof.
  intros Hj. induction 1 as [|m Hm IH].
  - pose proof (to_x j Hj). pose proof (above_le b Hb (edge (S j) - x) ltac:(lra)). lra.
  - pose proof (edge_le (S j) (S m) ltac:(lia)). pose proof (edge_le (S m) (S (S m)) ltac:(lia)).
    rewrite reached_S, distance_right by lra. cbn [level]. pose proof (above_step b Hb (edge (S m) - x) (edge (S (S m)) - x) ltac:(lra)). lra.
Qed.

(** x lies in one of the cells. *)
Lemma cell_of_x : exists j, (j < n)%nat /\ edge j <= x <= edge (S j).
Proof.
  assert (H : forall m, x <= edge m -> (m <= n)%nat -> m = O \/ exists j, (j < n)%nat /\ edge j <= x <= edge (S j)).
  { induction m as [|m IH]; intros Hm Hmn; [now left|right]. destruct (Rle_dec x (edge m)) as [Hle|Hgt].
    - destruct (IH Hle ltac:(lia)) as [->|E]; [|easy]. exists O. rewrite edge_0 in *. split; [lia|lra].
    - exists m. split; [lia|lra]. }
  destruct (H n) as [E|E]; [rewrite edge_n; lra|lia|lia|easy].
Qed.

(** All cells; the last one reaches to infinity. *)
Lemma all_cells : total (seq 0 n) (fun i => difference distance i * level i) <= 2 * above b 0 - integral b 1.
Proof.
  assert (E : exists m, n = S m) by (exists (n - 1)%nat; lia). destruct E as [m E].
  replace (seq 0 n) with (seq 0 (S m)) by now rewrite E. rewrite by_parts. fold (reached m).
  destruct cell_of_x as [j [Hj Hjx]]. pose proof (integral_le b Hb 0 1 ltac:(lra)) as I.
  assert (A0 : above b 0 = integral b 0) by (unfold above; lra). destruct (Nat.eq_dec j m) as [->|Hne].
  - pose proof (to_x m Hjx) as X. rewrite reached_S in X. rewrite distance_here in * by easy. pose proof (integral_pos b Hb 0). lra.
  - destruct m as [|m]; [lia|]. pose proof (right_cells j m Hjx ltac:(lia)) as Rc. pose proof (edge_le (S j) (S m) ltac:(lia)).
    rewrite distance_right by lra. cbn [level]. unfold above at 2 in Rc. pose proof (integral_pos b Hb (edge (S m) - x)). lra.
Qed.

(** The mean distance of x from the centres of the cells. *)
Theorem mean_distance : mean n (expo b far n x) (fun i => Rabs (centre n i - x)) phi
  <= / (2 * INR n) + 2 * ln 2 / b - integral b 1.
Proof.
  set (h := / (2 * INR n)). assert (Hh : / INR n = 2 * h) by (unfold h; field; pose proof n_pos; lra).
  assert (Ph : 0 < h) by (unfold h; apply Rinv_0_lt_compat; pose proof n_pos; lra).
  assert (Near : forall i, Rabs (centre n i - x) <= h - (0 - distance i)).
  { intros i. assert (C : centre n i = edge i + h) by (unfold centre, edge, h; field; pose proof n_pos; lra). rewrite C.
    pose proof (edge_S i). unfold distance. set (p := edge i - x). set (q := x - edge (S i)).
    pose proof (Rmax_l 0 (Rmax p q)). pose proof (Rmax_r 0 (Rmax p q)). pose proof (Rmax_l p q). pose proof (Rmax_r p q).
    apply Rabs_le. unfold p, q in *. lra. }
  assert (Mono : monotone 1 phi) by (apply (monotone_inverse 1 1); lra).
  pose proof (mean_positive n (expo b far n x) (fun i => h - (0 - distance i) - Rabs (centre n i - x)) phi expo_increasing Mono
    (fun i _ => ltac:(specialize (Near i); lra))) as Q.
  rewrite !mean_minus in Q.
  assert (Phi0 : 0 <= phi (expo b far n x 0) <= 1).
  { unfold phi. pose proof (exp_pos (b * (corner far n 0 - x))) as P. fold (expo b far n x 0) in P.
    split; [left; apply Rinv_0_lt_compat; lra|]. rewrite <- Rinv_1 at 2. apply Rinv_le_contravar; lra. }
  assert (Const : forall c, mean n (expo b far n x) (fun _ => c) phi = c * phi (expo b far n x 0)).
  { intros c. unfold mean. rewrite total_first; [easy|easy|]. intros i. cbn [difference]. ring. }
  rewrite !Const in Q.
  assert (Dist : mean n (expo b far n x) distance phi <= 2 * above b 0 - integral b 1).
  { eapply Rle_trans; [|apply all_cells]. unfold mean.
    assert (P0 : 0 <= distance 0) by apply Rmax_l.
    assert (Z : forall m, total (seq 0 (S m)) (fun i => difference distance i * phi (expo b far n x i))
      <= total (seq 0 (S m)) (fun i => difference distance i * level i)).
    { induction m as [|m IH]; [unfold total; simpl; pose proof (Rmult_le_compat_l (distance 0) _ 1 P0 (proj2 Phi0)); lra|].
      rewrite total_seq_S, (total_seq_S (S m)). apply Rplus_le_compat; [exact IH|]. apply Req_le. reflexivity. }
    specialize (Z (n - 1)%nat). replace (S (n - 1)) with n in Z by lia. exact Z. }
  rewrite above_0 in Dist. pose proof (Rmult_le_compat_l h _ 1 ltac:(lra) (proj2 Phi0)). unfold Rdiv in *. lra.
Qed.
End Axis.
