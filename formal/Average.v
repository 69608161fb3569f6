(** * The bound on the unit cube: the average is close to f

    docs/theory/theorem.md, Section 3. The model averages the values of f at the centres of cells. Its error is at most the mean
    change of f between x and those centres, and that mean splits into coordinates. What the first corners leave out is paid for
    separately. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Assemble Monotone Differences Logistic Gates.
Import ListNotations.
Open Scope R_scope.

(** The unit cube. *)
Definition in_cube (D : nat) (u : vec) : Prop := length u = D /\ Forall (fun v => 0 <= v <= 1) u.

(** How much f may change between u and v: sum over j of L_j |u_j - v_j|. *)
Fixpoint change (L u v : vec) : R :=
  match L, u, v with
  | l :: L', a :: u', b :: v' => l * Rabs (a - b) + change L' u' v'
  | _, _, _ => 0
  end.

(** The bound of the theorem: sum over j of L_j (1/(2 n_j) + 2 ln 2 / beta). *)
Fixpoint bound (b : R) (L : vec) (ns : list nat) : R :=
  match L, ns with
  | l :: L', n :: ns' => l * (/ (2 * INR n) + 2 * ln 2 / b) + bound b L' ns'
  | _, _ => 0
  end.

(** The change between x and the centre of a cell, one coordinate at a time. *)
Fixpoint errors (L : vec) (ns : list nat) (x : vec) : list (nat -> R) :=
  match L, ns, x with
  | l :: L', n :: ns', v :: x' => (fun i => l * Rabs (centre n i - v)) :: errors L' ns' x'
  | _, _, _ => []
  end.

(** Their sum is the change. *)
Lemma change_errors L : forall ns k x, length L = length ns -> length k = length ns -> length x = length ns ->
  change L (centres ns k) x = along (errors L ns x) k.
Proof.
  induction L as [|l L IH]; intros [|n ns] [|i k] [|v x] HL Hk Hx; try discriminate; [easy|].
  simpl. f_equal. apply IH; simpl in *; lia.
Qed.

(** Between points of the cube f changes by at most the sum of the L_j. *)
Lemma change_cube D L u v : in_cube D u -> in_cube D v -> Forall (Rle 0) L -> change L u v <= sum L.
Proof.
  intros [_ Hu] [_ Hv] HL. revert u v Hu Hv; induction HL as [|l L Hl HL IH]; intros u v Hu Hv; [simpl; lra|].
  assert (P : 0 <= sum L) by (clear - HL; induction HL; simpl; lra).
  destruct Hu as [|a u Ha Hu]; [simpl; lra|]. destruct Hv as [|c v Hc Hv]; [simpl; lra|].
  simpl. specialize (IH u v Hu Hv). assert (A : Rabs (a - c) <= 1) by (apply Rabs_le; lra).
  pose proof (Rmult_le_compat_l l _ _ Hl A). lra.
Qed.

(** Centres of cells lie in the cube. *)
Lemma centres_in_cube ns k : In k (cells ns) -> in_cube (length ns) (centres ns k).
Proof.
  revert k; induction ns as [|n ns IH]; intros [|i k] Hk; try (split; [easy|constructor]); try (apply cells_length in Hk;
    discriminate).
  apply in_cells in Hk as [Hi Hk]. destruct (IH k Hk) as [H1 H2]. split; [simpl; now f_equal|].
  simpl. constructor; [|exact H2]. unfold centre. assert (N : 0 < INR n) by (apply lt_0_INR; lia).
  assert (I : INR i + 1 <= INR n) by (rewrite <- S_INR; apply le_INR; lia). pose proof (pos_INR i).
  split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
  apply Rmult_le_reg_r with (INR n); [easy|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** There is a first cell. *)
Lemma first_cell ns : Forall (le 1) ns -> In (repeat O (length ns)) (cells ns).
Proof.
  induction 1 as [|n ns Hn _ IH]; [now left|]. cbn [length repeat]. apply in_cells. split; [lia|easy].
Qed.

(** A first corner at -far leaves out at most D exp(-beta far), *)
Lemma first_small b far ns u : 0 < b -> in_cube (length ns) u -> first (axes b far ns u) <= INR (length ns) * exp (- (b * far)).
Proof.
  intros Hb [Hl Hu]. unfold axes. revert u Hl Hu.
  induction ns as [|n ns IH]; intros [|v u] Hl Hu; try discriminate; [unfold first; simpl; lra|].
  cbn [length combine map]. rewrite S_INR. unfold first. cbn [map sum].
  fold (first (map (fun '(n, x) => expo b far n x) (combine ns u))).
  inversion Hu; subst. specialize (IH u ltac:(simpl in Hl; lia) ltac:(easy)).
  assert (E : expo b far n v O <= exp (- (b * far))); [|lra].
  unfold expo, corner. pose proof (Rmult_le_pos b v ltac:(lra) ltac:(lra)).
  destruct (Req_dec (b * (- far - v)) (- (b * far))) as [->|N]; [lra|]. left. apply exp_increasing. lra.
Qed.

(** which the room to spare pays for if far is at least 2D + 1. *)
Lemma far_pays b far ns : 0 < b -> far_enough ns <= far -> INR (length ns) * exp (- (b * far)) <= integral b 1.
Proof.
  intros Hb Hf. unfold far_enough in Hf. eapply Rle_trans; [|apply (room b Hb)]. set (D := INR (length ns)) in *.
  assert (HD : 0 <= D) by apply pos_INR. set (z := 2 * (D * b)).
  assert (Z : 0 <= z) by (unfold z; pose proof (Rmult_le_pos D b ltac:(lra) ltac:(lra)); lra).
  pose proof (exp_ineq1_le z). pose proof (exp_pos (- b)) as P.
  apply Rle_trans with (D * (/ exp z * exp (- b))).
  - apply Rmult_le_compat_l; [easy|]. rewrite <- exp_Ropp, <- exp_plus.
    assert (I : b * (2 * D + 1) <= b * far) by (apply Rmult_le_compat_l; lra).
    destruct (Req_dec (- (b * far)) (- z + - b)) as [->|N]; [lra|]. left. apply exp_increasing. unfold z in *. lra.
  - replace (D * (/ exp z * exp (- b))) with (exp (- b) / (2 * b) * (z / exp z))
      by (unfold z; field; split; [apply Rgt_not_eq, exp_pos|lra]).
    rewrite <- Rmult_1_r. apply Rmult_le_compat_l; [left; apply Rdiv_lt_0_compat; lra|].
    apply Rmult_le_reg_r with (exp z); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** The mean of the change is at most the bound, with room to spare. *)
Lemma means_bound b L : forall ns a u, 0 < b -> 0 <= a -> Forall (Rle 0) L -> length L = length ns ->
  in_cube (length ns) u -> Forall (le 1) ns ->
  means ns (map (fun '(n, x) => expo b a n x) (combine ns u)) (errors L ns u) phi <= bound b L ns - sum L * integral b 1.
Proof.
  induction L as [|l L IH]; intros [|n ns] a [|v u] Hb Ha HL Hl [Hu Hc] Hn; try discriminate; [simpl; lra|].
  inversion HL; inversion Hc; inversion Hn; subst. cbn [combine map errors means bound sum].
  specialize (IH ns a u Hb Ha ltac:(easy) ltac:(simpl in Hl; lia) ltac:(split; [simpl in Hu; lia|easy]) ltac:(easy)).
  rewrite mean_scale. pose proof (mean_distance b a v n Hb Ha ltac:(easy) ltac:(easy)) as M.
  pose proof (Rmult_le_compat_l l _ _ ltac:(easy) M). lra.
Qed.

(** A sum of numbers that are not negative. *)
Lemma sum_pos L : Forall (Rle 0) L -> 0 <= sum L.
Proof. induction 1; simpl; lra. Qed.

(** An absolute value bounds from both sides. *)
Lemma between a c : Rabs a <= c -> - c <= a <= c.
Proof. intros H. pose proof (Rle_abs a). pose proof (Rle_abs (- a)). rewrite Rabs_Ropp in *. lra. Qed.

(** The error of the average, for a function F on the cube that changes by at most sum over j of L_j |u_j - v_j|. *)
Theorem average_error (F : vec -> R) (L : vec) (b far : R) (ns : list nat) (u : vec) :
  let value k := F (centres ns k) in
  let start := value (repeat O (length ns)) in
  0 < b -> 0 <= far -> Forall (Rle 0) L -> length L = length ns -> Forall (le 1) ns ->
  (forall v w, in_cube (length ns) v -> in_cube (length ns) w -> Rabs (F v - F w) <= change L v w) ->
  in_cube (length ns) u ->
  Rabs (model ns (axes b far ns u) (fun k => value k - start) phi 0 + start - F u)
    <= bound b L ns + sum L * (INR (length ns) * exp (- (b * far)) - integral b 1).
Proof.
  intros value start Hb Ha HL Hl Hn Lip Hu. pose proof Hu as [Hu1 Hu2].
  set (us := axes b far ns u). set (out := INR (length ns) * exp (- (b * far))).
  assert (Lu : length us = length ns) by (unfold us, axes; rewrite map_length, combine_length; lia).
  assert (Iu : Forall increasing us).
  { unfold us, axes. apply Forall_map, Forall_forall. intros [n v] H. apply expo_increasing; [easy..|].
    apply in_combine_l in H. rewrite Forall_forall in Hn. now apply Hn. }
  (* the weights of the average, and what they leave out *)
  set (B := phi (first us)). assert (HB : 0 <= B <= 1 /\ 1 - B <= out).
  { pose proof (first_pos us Iu) as P. pose proof (first_small b far ns u Hb Hu) as Q. fold us out in Q. unfold B, phi.
    assert (0 <= / (1 + first us)) by (left; apply Rinv_0_lt_compat; lra).
    assert (E : 1 - / (1 + first us) = first us * / (1 + first us)) by (field; lra).
    assert (C : / (1 + first us) <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    pose proof (Rmult_le_compat_l (first us) _ _ P C). pose proof (Rmult_le_pos (first us) _ P H). lra. }
  destruct HB as [HB1 HB2].
  assert (Const : forall c, model ns us (fun _ => c) phi 0 = c * B)
    by (intros c; rewrite model_constant, Rplus_0_l by easy; easy).
  (* the error on every cell *)
  set (e := along (errors L ns u)).
  assert (Err : forall k, In k (cells ns) -> Rabs (value k - F u) <= e k).
  { intros k Hk. unfold value, e. rewrite <- change_errors by (try apply cells_length; congruence).
    apply Lip; [now apply centres_in_cube|easy]. }
  assert (Hm : model ns us e phi 0 <= bound b L ns - sum L * integral b 1).
  { eapply Rle_trans; [|apply (means_bound b L ns far u); easy]. apply model_along; try easy; try lra.
    - clear - Hl Hu1. revert ns u Hl Hu1; induction L as [|l L IH]; intros [|n ns] [|v u] Hl Hu1; try discriminate; simpl; auto.
    - clear - HL. revert ns u; induction HL as [|l L H HL IH]; intros [|n ns] [|v u]; simpl; auto. constructor; [|apply IH].
      intros i. apply Rmult_le_pos; [easy|apply Rabs_pos].
    - apply (monotone_inverse 2 1). lra. }
  assert (Mono : monotone (length ns) phi) by (apply (monotone_inverse (length ns) 1); lra).
  (* positivity, above and below *)
  pose proof (model_positive ns us phi (fun k => e k - (value k - F u)) 0 Lu Iu Mono
    (fun k Hk => ltac:(pose proof (Err k Hk) as E; apply between in E; lra)) ltac:(lra)) as Above.
  pose proof (model_positive ns us phi (fun k => e k - (F u - value k)) 0 Lu Iu Mono
    (fun k Hk => ltac:(pose proof (Err k Hk) as E; apply between in E; lra)) ltac:(lra)) as Below.
  rewrite !model_minus, Const in Above, Below. rewrite model_minus, Const.
  (* what is left out counts as the first cell *)
  assert (Start : Rabs (start - F u) <= sum L).
  { pose proof (first_cell ns Hn) as K. eapply Rle_trans; [apply Lip; [now apply centres_in_cube|easy]|].
    pose proof (change_cube (length ns) L (centres ns (repeat O (length ns))) u (centres_in_cube ns _ K) Hu HL). lra. }
  assert (Out : Rabs ((start - F u) * (1 - B)) <= sum L * (1 - B)).
  { rewrite Rabs_mult, (Rabs_right (1 - B)) by lra. apply Rmult_le_compat_r; lra. }
  apply between in Out.
  pose proof (Rmult_le_compat_l (sum L) _ _ (sum_pos L HL) HB2).
  apply Rabs_le. lra.
Qed.
