(** * The theorem: one layer approximates every Lipschitz function on a box

    docs/theory/theorem.md, Section 3, in any number D of variables, with its constants: if f changes by at most
    sum over j of K_j |x_j - y_j| between points x and y of a box with sides s_j, cut into n_1 x ... x n_D cells, then

        |run W x - f x|  <=  sum over j of L_j (1/(2 n_j) + 2 ln 2 / beta),   L_j = K_j s_j,

    on the whole box, for every sharpness beta > 0 and the matrices W of Gates.v, one head per cell. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Assemble Differences Logistic Gates Average.
Import ListNotations.
Open Scope R_scope.

(** ** The box *)

(** The box of points x with low_j <= x_j <= low_j + side_j. *)
Definition in_box (low side x : vec) : Prop :=
  length x = length side /\ Forall (fun '(v, (l, s)) => l <= v <= l + s) (combine x (combine low side)).

(** Lipschitz constants per side of the box: L_j = K_j s_j. *)
Definition per_side (K side : vec) : vec := map (fun '(k, s) => k * s) (combine K side).

(** They are not negative, and neither is their sum. *)
Lemma per_side_pos K side : Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (Rle 0) (per_side K side).
Proof.
  intros PK Ps. apply Forall_map, Forall_forall. intros [k s] H. pose proof (in_combine_l _ _ _ _ H) as H1.
  apply in_combine_r in H. rewrite Forall_forall in PK, Ps. specialize (PK k H1). specialize (Ps s H). apply Rmult_le_pos; lra.
Qed.

(** From the cube to the box, *)
Lemma place_in_box low side u : length low = length side -> Forall (Rlt 0) side -> in_cube (length side) u ->
  in_box low side (place low side u).
Proof.
  intros Hl Hs [Hu Hc]. split; [unfold place; rewrite map_length, !combine_length; lia|].
  revert low u Hl Hu Hc; induction Hs as [|s side Hs _ IH]; intros [|l low] [|v u] Hl Hu Hc; try discriminate; [constructor|].
  inversion Hc; subst. cbn. constructor; [|apply IH; auto].
  pose proof (Rmult_le_pos s v ltac:(lra) ltac:(lra)). pose proof (Rmult_le_compat_l s v 1 ltac:(lra) ltac:(lra)). lra.
Qed.

(** where changes are the same with constants per side, *)
Lemma change_place K : forall low side u v, length K = length side -> length low = length side -> Forall (Rlt 0) side ->
  length u = length side -> length v = length side ->
  change K (place low side u) (place low side v) = change (per_side K side) u v.
Proof.
  induction K as [|k K IH]; intros [|l low] [|s side] [|a u] [|c v] HK Hl Hs Hu Hv; try discriminate; [easy|].
  inversion Hs; subst. unfold place, per_side. cbn [combine map change]. f_equal; [|apply IH; auto].
  replace (l + s * a - (l + s * c)) with (s * (a - c)) by ring. rewrite Rabs_mult, (Rabs_right s) by lra. ring.
Qed.

(** and back: this is what the layer's normalisation does. *)
Lemma normalise_in_cube m f b far low side ns x : let W := universal_layer m f b far low side ns in
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

(** ** The theorem *)

(** Output q of a layer with m outputs, wherever the first corner is. *)
Theorem universal_masked (m : nat) (f : vec -> vec) (K : vec) (beta far : R) (low side : vec) (ns : list nat) (q : nat) :
  length K = length ns -> length low = length ns -> length side = length ns ->
  Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (le 1) ns -> 0 < beta -> 0 <= far -> (q < m)%nat ->
  (forall x y, in_box low side x -> in_box low side y -> Rabs (nth q (f x) 0 - nth q (f y) 0) <= change K x y) ->
  forall x, in_box low side x ->
  Rabs (nth q (outputs (universal_layer m f beta far low side ns) x) 0 - nth q (f x) 0)
    <= bound beta (per_side K side) ns
       + sum (per_side K side) * (INR (length ns) * exp (- (beta * far)) - integral beta 1).
Proof.
  intros HK Hl Hs PK Ps Hn Hb Hf Hq Lip x Hx.
  destruct (normalise_in_cube m f beta far low side ns x Hl Hs Ps Hx) as [Hu E].
  rewrite outputs_universal by (apply Hu || easy). set (u := normalise _ x) in *. rewrite <- E at 1.
  apply (average_error (fun v => nth q (f (place low side v)) 0) (per_side K side) beta far ns u); auto.
  - now apply per_side_pos.
  - unfold per_side. rewrite map_length, combine_length. lia.
  - intros v w Hv Hw. rewrite <- Hs in Hv, Hw.
    rewrite <- (change_place K low side v w); try apply Hv; try apply Hw; try congruence; auto.
    apply Lip; apply place_in_box; congruence || auto.
Qed.

(** The theorem: a first corner at -(2D + 1) or below costs nothing. (Functions that are continuous only: Continuous.v.) *)
Theorem universal (m : nat) (f : vec -> vec) (K : vec) (beta far : R) (low side : vec) (ns : list nat) (q : nat) :
  length K = length ns -> length low = length ns -> length side = length ns ->
  Forall (Rle 0) K -> Forall (Rlt 0) side -> Forall (le 1) ns -> 0 < beta -> far_enough ns <= far -> (q < m)%nat ->
  (forall x y, in_box low side x -> in_box low side y -> Rabs (nth q (f x) 0 - nth q (f y) 0) <= change K x y) ->
  forall x, in_box low side x ->
  Rabs (nth q (outputs (universal_layer m f beta far low side ns) x) 0 - nth q (f x) 0)
    <= bound beta (per_side K side) ns.
Proof.
  intros HK Hl Hs PK Ps Hn Hb Hf Hq Lip x Hx. pose proof (far_pays beta far ns Hb Hf) as Pays.
  assert (Hf0 : 0 <= far) by (unfold far_enough in Hf; pose proof (pos_INR (length ns)); lra).
  eapply Rle_trans; [now apply (universal_masked m f K beta far low side ns q)|].
  pose proof (Rmult_le_compat_l (sum (per_side K side)) _ 0 (sum_pos _ (per_side_pos K side PK Ps)) (Rle_minus _ _ Pays)). lra.
Qed.

(** The layer has n_1 x ... x n_D heads. *)
Theorem number_of_heads m f b far low side ns :
  length (W_O (universal_layer m f b far low side ns)) = fold_right Nat.mul 1%nat ns.
Proof.
  cbn [W_O universal_layer assemble]. rewrite !map_length. induction ns as [|n ns IH]; [easy|].
  cbn [cells fold_right]. rewrite <- IH. generalize (cells ns). intros l. rewrite <- (seq_length n 0) at 2.
  induction (seq 0 n) as [|i s IHs]; [easy|]. cbn [flat_map length]. rewrite app_length, map_length, IHs. lia.
Qed.
