(** * The theorem: one layer approximates every Lipschitz function on a box

    docs/theory/theorem.md, Section 3, in any number D of variables, with its constants: if f changes by at most
    sum over j of K_j |x_j - y_j| between points x and y of a box with sides s_j, cut into n_1 x ... x n_D cells, then

        |run W x - f x|  <=  sum over j of L_j (1/(2 n_j) + 2 ln 2 / beta),   L_j = K_j s_j,

    on the whole box, for every sharpness beta > 0 and the matrices W of Gates.v, one head per cell. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Assemble Monotone Differences Logistic Gates.
Import ListNotations.
Open Scope R_scope.

(** ** The bound, on the unit cube *)

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
  revert k; induction ns as [|n ns IH]; intros [|i k] Hk; try (split; [easy|constructor]); try (apply cells_length in Hk; discriminate).
  apply in_cells in Hk as [Hi Hk]. destruct (IH k Hk) as [H1 H2]. split; [simpl; now f_equal|].
  simpl. constructor; [|exact H2]. unfold centre. assert (N : 0 < INR n) by (apply lt_0_INR; lia).
  assert (I : INR i + 1 <= INR n) by (rewrite <- S_INR; apply le_INR; lia). pose proof (pos_INR i).
  split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
  apply Rmult_le_reg_r with (INR n); [easy|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

Lemma first_cell ns : Forall (le 1) ns -> In (repeat O (length ns)) (cells ns).
Proof.
  induction 1 as [|n ns Hn _ IH]; [now left|]. cbn [length repeat]. apply in_cells. split; [lia|easy].
Qed.

(** Corners at -far leave almost nothing out. *)
Lemma first_small b ns u : 0 < b -> in_cube (length ns) u -> first (axes b ns u) <= integral b 1.
Proof.
  intros Hb [Hl Hu].
  assert (S1 : first (axes b ns u) <= INR (length ns) * exp (- (b * far ns))).
  { unfold axes. generalize (far ns). intros a. revert u Hl Hu.
    induction ns as [|n ns IH]; intros [|v u] Hl Hu; try discriminate; [unfold first; simpl; lra|].
    cbn [length combine map]. rewrite S_INR. unfold first. cbn [map sum]. fold (first (map (fun '(n, x) => expo b a n x) (combine ns u))).
    inversion Hu; subst. specialize (IH u ltac:(simpl in Hl; lia) ltac:(easy)).
    assert (E : expo b a n v O <= exp (- (b * a))).
    { unfold expo, corner. assert (H : b * (- a - v) <= - (b * a)) by (pose proof (Rmult_le_pos b v ltac:(lra) ltac:(lra)); lra).
      destruct H as [H|H]; [left; now apply exp_increasing|rewrite H; lra]. }
    lra. }
  eapply Rle_trans; [exact S1|]. eapply Rle_trans; [|apply (room b Hb)]. unfold far. set (D := length ns).
  set (z := 2 * (INR D * b)). assert (Z : 0 <= z) by (unfold z; pose proof (pos_INR D); pose proof (Rmult_le_pos (INR D) b ltac:(lra) ltac:(lra)); lra).
  replace (- (b * (2 * INR D + 1))) with (- z + - b) by (unfold z; ring). rewrite exp_plus, exp_Ropp.
  pose proof (exp_ineq1_le z). pose proof (exp_pos (- b)) as P.
  replace (INR D * (/ exp z * exp (- b))) with (exp (- b) / (2 * b) * (z / exp z)) by (unfold z; field; split; [apply Rgt_not_eq, exp_pos|lra]).
  rewrite <- Rmult_1_r. apply Rmult_le_compat_l; [left; apply Rdiv_lt_0_compat; lra|].
  apply Rmult_le_reg_r with (exp z); [lra|]. unfold Rdiv. rewrite Rmult_assoc, Rinv_l by lra. lra.
Qed.

(** The mean of the change is at most the bound, with room to spare. *)
Lemma means_bound b L : forall ns a u, 0 < b -> 0 <= a -> Forall (Rle 0) L -> length L = length ns -> in_cube (length ns) u -> Forall (le 1) ns ->
  means ns (map (fun '(n, x) => expo b a n x) (combine ns u)) (errors L ns u) phi <= bound b L ns - sum L * integral b 1.
Proof.
  induction L as [|l L IH]; intros [|n ns] a [|v u] Hb Ha HL Hl [Hu Hc] Hn; try discriminate; [simpl; lra|].
  inversion HL; inversion Hc; inversion Hn; subst. cbn [combine map errors means bound sum].
  specialize (IH ns a u Hb Ha ltac:(easy) ltac:(simpl in Hl; lia) ltac:(split; [simpl in Hu; lia|easy]) ltac:(easy)).
  rewrite mean_scale. pose proof (mean_distance b a v n Hb Ha ltac:(easy) ltac:(easy)) as M.
  pose proof (Rmult_le_compat_l l _ _ ltac:(easy) M). lra.
Qed.

Lemma between a c : Rabs a <= c -> - c <= a <= c.
Proof. intros H. pose proof (Rle_abs a). pose proof (Rle_abs (- a)). rewrite Rabs_Ropp in *. lra. Qed.

(** The error of the average, for a function F on the cube that changes by at most sum over j of L_j |u_j - v_j|. *)
Theorem average_error (F : vec -> R) (L : vec) (b : R) (ns : list nat) (u : vec) :
  let value k := F (centres ns k) in
  let start := value (repeat O (length ns)) in
  0 < b -> Forall (Rle 0) L -> length L = length ns -> Forall (le 1) ns ->
  (forall v w, in_cube (length ns) v -> in_cube (length ns) w -> Rabs (F v - F w) <= change L v w) ->
  in_cube (length ns) u ->
  Rabs (model ns (axes b ns u) (fun k => value k - start) phi 0 + start - F u) <= bound b L ns.
Proof.
  intros value start Hb HL Hl Hn Lip Hu. pose proof Hu as [Hu1 Hu2].
  set (us := axes b ns u). assert (Ha : 0 <= far ns) by (unfold far; pose proof (pos_INR (length ns)); lra).
  assert (Lu : length us = length ns) by (unfold us, axes; rewrite map_length, combine_length; lia).
  assert (Iu : Forall increasing us).
  { unfold us, axes. apply Forall_map, Forall_forall. intros [n v] H. apply expo_increasing; [easy..|].
    apply in_combine_l in H. rewrite Forall_forall in Hn. now apply Hn. }
  (* the weights of the average, and what they leave out *)
  set (B := phi (first us)). assert (HB : 0 <= B <= 1 /\ 1 - B <= integral b 1).
  { pose proof (first_pos us Iu) as P. pose proof (first_small b ns u Hb Hu) as Q. fold us in Q. unfold B, phi.
    assert (0 <= / (1 + first us)) by (left; apply Rinv_0_lt_compat; lra).
    assert (E : 1 - / (1 + first us) = first us * / (1 + first us)) by (field; lra).
    assert (C : / (1 + first us) <= 1) by (rewrite <- Rinv_1; apply Rinv_le_contravar; lra).
    pose proof (Rmult_le_compat_l (first us) _ _ P C). pose proof (Rmult_le_pos (first us) _ P H). lra. }
  destruct HB as [HB1 HB2].
  assert (Const : forall c, model ns us (fun _ => c) phi 0 = c * B) by (intros c; rewrite model_constant, Rplus_0_l by easy; easy).
  (* the error on every cell *)
  set (e := along (errors L ns u)).
  assert (Err : forall k, In k (cells ns) -> Rabs (value k - F u) <= e k).
  { intros k Hk. unfold value, e. rewrite <- change_errors by (try apply cells_length; congruence).
    apply Lip; [now apply centres_in_cube|easy]. }
  assert (Hm : model ns us e phi 0 <= bound b L ns - sum L * integral b 1).
  { eapply Rle_trans; [|apply (means_bound b L ns (far ns) u); easy]. apply model_along; try easy; try lra.
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
  assert (SL : 0 <= sum L) by (clear - HL; induction HL; simpl; lra).
  pose proof (Rmult_le_compat_l (sum L) _ _ SL HB2).
  apply Rabs_le. lra.
Qed.

(** ** The theorem, on a box *)

(** The box of points x with low_j <= x_j <= low_j + side_j. *)
Definition in_box (low side x : vec) : Prop :=
  length x = length side /\ Forall (fun '(v, (l, s)) => l <= v <= l + s) (combine x (combine low side)).

(** Lipschitz constants per side of the box: L_j = K_j s_j. *)
Definition per_side (K side : vec) : vec := map (fun '(k, s) => k * s) (combine K side).

Lemma place_in_box low side u : length low = length side -> Forall (Rlt 0) side -> in_cube (length side) u ->
  in_box low side (place low side u).
Proof.
  intros Hl Hs [Hu Hc]. split; [unfold place; rewrite map_length, !combine_length; lia|].
  revert low u Hl Hu Hc; induction Hs as [|s side Hs _ IH]; intros [|l low] [|v u] Hl Hu Hc; try discriminate; [constructor|].
  inversion Hc; subst. cbn. constructor; [|apply IH; auto].
  pose proof (Rmult_le_pos s v ltac:(lra) ltac:(lra)). pose proof (Rmult_le_compat_l s v 1 ltac:(lra) ltac:(lra)). lra.
Qed.

Lemma change_place K : forall low side u v, length K = length side -> length low = length side -> Forall (Rlt 0) side ->
  length u = length side -> length v = length side ->
  change K (place low side u) (place low side v) = change (per_side K side) u v.
Proof.
  induction K as [|k K IH]; intros [|l low] [|s side] [|a u] [|c v] HK Hl Hs Hu Hv; try discriminate; [easy|].
  inversion Hs; subst. unfold place, per_side. cbn [combine map change]. f_equal; [|apply IH; auto].
  replace (l + s * a - (l + s * c)) with (s * (a - c)) by ring. rewrite Rabs_mult, (Rabs_right s) by lra. ring.
Qed.

Lemma normalise_in_cube m f b low side ns x : let W := universal_layer m f b low side ns in
  length low = length ns -> length side = length ns -> Forall (Rlt 0) side -> in_box low side x ->
  in_cube (length ns) (normalise W x) /\ place low side (normalise W x) = x.
Proof.
  intros W Hl Hs Hp [Hx Hb]. unfold normalise, W. cbn [shift scale universal_layer assemble]. rewrite <- Hs in *. clear W ns Hs.
  revert low x Hl Hx Hb; induction Hp as [|s side Hs _ IH]; intros [|l low] [|v x] Hl Hx Hb; try discriminate;
    [split; [split; [easy|constructor]|easy]|].
  cbn [map combine] in *. inversion Hb as [|? ? Hv Hr]; subst.
  destruct (IH low x ltac:(simpl in *; lia) ltac:(simpl in *; lia) Hr) as [[H1 H2] H3].
  split; [split; [simpl; now f_equal|constructor; [|exact H2]]|].
  - split; [apply Rmult_le_pos; [lra|left; now apply Rinv_0_lt_compat]|].
    apply Rmult_le_reg_r with s; [easy|]. rewrite Rmult_assoc, Rinv_l by lra. lra.
  - unfold place in *. cbn [combine map]. f_equal; [field; lra|exact H3].
Qed.

(** Output q of a layer with m outputs. (Continuous functions that are not Lipschitz: Continuous.v.) *)
Theorem universal (m : nat) (f : vec -> vec) (K : vec) (beta : R) (low side : vec) (ns : list nat) (q : nat) :
  length K = length ns -> length low = length ns -> length side = length ns ->
  Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (le 1) ns -> 0 < beta -> (q < m)%nat ->
  (forall x y, in_box low side x -> in_box low side y -> Rabs (nth q (f x) 0 - nth q (f y) 0) <= change K x y) ->
  forall x, in_box low side x ->
  Rabs (nth q (outputs (universal_layer m f beta low side ns) x) 0 - nth q (f x) 0) <= bound beta (per_side K side) ns.
Proof.
  intros HK Hl Hs PK Ps Hn Hb Hq Lip x Hx.
  destruct (normalise_in_cube m f beta low side ns x Hl Hs Ps Hx) as [Hu E].
  rewrite outputs_universal by (apply Hu || easy). set (u := normalise _ x) in *. rewrite <- E at 1.
  apply (average_error (fun v => nth q (f (place low side v)) 0) (per_side K side) beta ns u); auto.
  - unfold per_side. apply Forall_map, Forall_forall. intros [k s] H. pose proof (in_combine_l _ _ _ _ H) as H1.
    apply in_combine_r in H. rewrite Forall_forall in PK, Ps. specialize (PK k H1). specialize (Ps s H).
    apply Rmult_le_pos; lra.
  - unfold per_side. rewrite map_length, combine_length. lia.
  - intros v w Hv Hw. rewrite <- Hs in Hv, Hw. rewrite <- (change_place K low side v w); try apply Hv; try apply Hw; try congruence; auto.
    apply Lip; apply place_in_box; congruence || auto.
Qed.

(** The layer has n_1 x ... x n_D heads. *)
Theorem number_of_heads m f b low side ns : length (W_O (universal_layer m f b low side ns)) = fold_right Nat.mul 1%nat ns.
Proof.
  cbn [W_O universal_layer assemble]. rewrite !map_length. induction ns as [|n ns IH]; [easy|].
  cbn [cells fold_right]. rewrite <- IH. generalize (cells ns). intros l. rewrite <- (seq_length n 0) at 2.
  induction (seq 0 n) as [|i s IHs]; [easy|]. cbn [flat_map length]. rewrite app_length, map_length, IHs. lia.
Qed.
