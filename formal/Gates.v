(** * The layer of the theorem: one gate per cell

    docs/theory/theorem.md, Sections 1 and 2. A head with the anchor token computes a soft orthant, 1 over 1 plus a sum of
    exponentials; the layer sums one such gate per cell, with the mixed differences of f at the centres as weights. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Assemble Differences Logistic.
Import ListNotations.
Open Scope R_scope.

(** ** The layer *)

(** The centre of cell k in the unit cube, and the point of the box at u in the unit cube. *)
Definition centres (ns k : list nat) : vec := map (fun '(n, i) => centre n i) (combine ns k).
Definition place (low side u : vec) : vec := map (fun '(ui, (l, s)) => l + s * ui) (combine u (combine low side)).

(** Corners at minus infinity are put at -(2D + 1), which is far enough. *)
Definition far (ns : list nat) : R := 2 * INR (length ns) + 1.

(** The gate of cell k (Section 1): key beta (b_j - x_j) on token j and 0 on the anchor, value 1 on the anchor alone. Its row in
    W^O has the mixed differences of the values y of each output. *)
Definition gate (b : R) (ns : list nat) (ys : list (list nat -> R)) (k : list nat) : unit_head := {|
  key_x := - b; key_code := map (fun '(n, i) => b * corner (far ns) n i) (combine ns k); key_flag := 0;
  value_x := 0; value_flag := 1; weight := map (mixed k) ys |}.

(** Output q of f at the centre of cell k, less that of the first cell, which goes into the bias. *)
Definition value (f : vec -> vec) (low side : vec) (ns : list nat) (q : nat) (k : list nat) : R :=
  nth q (f (place low side (centres ns k))) 0.
Definition start f low side ns q : R := value f low side ns q (repeat O (length ns)).
Definition above_start f low side ns q k : R := value f low side ns q k - start f low side ns q.

(** The layer of f with m outputs: one gate per cell (Section 2). *)
Definition universal_layer (m : nat) (f : vec -> vec) (b : R) (low side : vec) (ns : list nat) : layer :=
  assemble (length ns) low side [anchor (length ns) m]
    (map (gate b ns (map (above_start f low side ns) (seq 0 m))) (cells ns)) (map (start f low side ns) (seq 0 m)).

(** ** What it computes *)

(** The exponentials of the keys. *)
Definition axes (b : R) (ns : list nat) (u : vec) : list (nat -> R) := map (fun '(n, x) => expo b (far ns) n x) (combine ns u).

Lemma cells_length ns k : In k (cells ns) -> length k = length ns.
Proof.
  revert k; induction ns as [|n ns IH]; intros k; [intros [<-|[]]; easy|].
  destruct k as [|i k]; intros H.
  - cbn [cells] in H. apply in_flat_map in H as [j [_ H]]. apply in_map_iff in H as [? [E _]]. discriminate.
  - apply in_cells in H as [_ H]. simpl. auto.
Qed.

Lemma universal_well_formed m f b low side ns : length low = length ns -> length side = length ns ->
  well_formed (length ns) m (universal_layer m f b low side ns).
Proof.
  intros Hl Hs. set (bias := map (start f low side ns) (seq 0 m)).
  assert (Hm : length bias = m) by (unfold bias; now rewrite map_length, seq_length).
  pose proof (assemble_well_formed (length ns) low side [anchor (length ns) m]
    (map (gate b ns (map (above_start f low side ns) (seq 0 m))) (cells ns)) bias Hl Hs) as A. rewrite Hm in A.
  apply A; [now left|]. intros h Hh. apply in_map_iff in Hh as [k [<- Hk]]. apply cells_length in Hk.
  cbn [key_code weight gate]. rewrite !map_length, combine_length, seq_length. lia.
Qed.

(** A head with the anchor computes the attention weight of the anchor: 1 over 1 plus the sum of exponentials. *)
Lemma anchor_weight s u : length s = length u -> attend (s ++ [0]) (map (Rmult 0) u ++ [1]) = phi (sum (map exp s)).
Proof.
  intros H. unfold attend, phi. rewrite map_app. cbn [map]. rewrite exp_0, sum_app, dot_app by now rewrite !map_length.
  assert (Z : dot (map exp s) (map (Rmult 0) u) = 0).
  { revert u H; induction s as [|r s IH]; intros [|v u] H; try discriminate; [easy|]. simpl.
    rewrite IH by now injection H. ring. }
  rewrite Z. cbn [dot sum]. replace (0 + (1 * 1 + 0)) with 1 by ring. replace (sum (map exp s) + (1 + 0)) with (1 + sum (map exp s)) by ring.
  unfold Rdiv. ring.
Qed.

Lemma gate_output b ns ys k u a : length k = length ns -> length u = length ns ->
  head_output [a] (gate b ns ys k) u = phi (along (axes b ns u) k).
Proof.
  intros Hk Hu. cbn [head_output]. change (key_flag _) with 0. change (value_x _) with 0. change (value_flag _) with 1.
  rewrite anchor_weight.
  - f_equal. unfold scores, axes, gate. cbn [key_x key_code]. generalize (far ns). intros c.
    revert k u Hk Hu; induction ns as [|n ns IH]; intros [|i k] [|x u] Hk Hu; try discriminate; [easy|].
    cbn [combine map sum along]. rewrite IH by (simpl in *; lia). f_equal. unfold expo. f_equal. ring.
  - unfold scores, gate. cbn [key_x key_code]. rewrite !map_length, !combine_length, map_length, combine_length. lia.
Qed.

(** Each output of the layer is the functional of Differences.v. *)
Theorem outputs_universal m f b low side ns x q : let L := universal_layer m f b low side ns in
  length (normalise L x) = length ns -> (q < m)%nat ->
  nth q (outputs L x) 0
  = model ns (axes b ns (normalise L x)) (above_start f low side ns q) phi 0 + start f low side ns q.
Proof.
  intros L Hu Hq. assert (Hm : forall g : nat -> R, length (map g (seq 0 m)) = m) by (intros; now rewrite map_length, seq_length).
  assert (Nth : forall A (g : nat -> A) d, nth q (map g (seq 0 m)) d = g q).
  { intros A g d. rewrite (nth_indep _ d (g O)) by now rewrite map_length, seq_length. now rewrite map_nth, seq_nth. }
  unfold L at 1, universal_layer. rewrite outputs_assemble.
  - fold (universal_layer m f b low side ns). fold L. rewrite Nth. f_equal. unfold model, total. rewrite map_map. f_equal.
    apply map_ext_in. intros k Hk. apply cells_length in Hk. rewrite Rplus_0_l, gate_output by easy. f_equal.
    cbn [weight gate]. rewrite map_map. apply (Nth R (fun p => mixed k (above_start f low side ns p))).
  - left. now rewrite Hm.
  - exact Hu.
  - now rewrite Hm.
  - intros h Hh. apply in_map_iff in Hh as [k [<- Hk]]. apply cells_length in Hk.
    cbn [key_code weight gate]. rewrite !map_length, combine_length, !seq_length. lia.
Qed.
