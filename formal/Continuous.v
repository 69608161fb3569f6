(** * The theorem for continuous functions on compact sets: existence

    Every continuous function on a compact set, with any number of variables and of outputs, is approximated by one layer within
    every tolerance. On a compact set a continuous function changes by at most eta + sum over j of K |x_j - y_j|, for every eta > 0
    and some K; up to eta it is then a Lipschitz function on a box around the set, and Universal.v does the rest. *)
From Coq Require Import Reals List Lra Lia Classical_Prop.
From Onelayer Require Import Attention Gates Universal Cases Compact.
Import ListNotations.
Open Scope R_scope.

(** ** Changes are a distance *)

Lemma change_pos K x y : Forall (Rle 0) K -> 0 <= change K x y.
Proof.
  intros H; revert x y; induction H as [|c K Hc _ IH]; intros [|u x] [|v y]; simpl; try lra. specialize (IH x y).
  pose proof (Rmult_le_pos c (Rabs (u - v)) Hc (Rabs_pos _)). lra.
Qed.

Lemma change_self K : forall x, change K x x = 0.
Proof. induction K as [|c K IH]; intros [|u x]; simpl; try lra. rewrite IH, Rminus_eq_0, Rabs_R0. ring. Qed.

Lemma change_sym K : forall x y, change K x y = change K y x.
Proof. induction K as [|c K IH]; intros [|u x] [|v y]; simpl; try lra. now rewrite IH, Rabs_minus_sym. Qed.

Lemma change_triangle K x y z : Forall (Rle 0) K -> length x = length y -> length y = length z ->
  change K x z <= change K x y + change K y z.
Proof.
  intros H; revert x y z; induction H as [|c K Hc _ IH]; intros [|u x] [|v y] [|w z] H1 H2; try discriminate; simpl; try lra.
  specialize (IH x y z ltac:(simpl in *; lia) ltac:(simpl in *; lia)).
  assert (T : Rabs (u - w) <= Rabs (u - v) + Rabs (v - w)) by (replace (u - w) with ((u - v) + (v - w)) by ring; apply Rabs_triang).
  pose proof (Rmult_le_compat_l c _ _ Hc T). lra.
Qed.

(** Points that are not near change a Lipschitz function a good deal. *)
Lemma not_near k d x : 0 <= k -> 0 < d -> forall y n, length x = n -> length y = n ->
  near d x y \/ k * d <= change (repeat k n) x y.
Proof.
  intros Hk Hd. induction x as [|a x IH]; intros [|b y] [|n] Hx Hy; try discriminate; [left; constructor|].
  cbn [repeat change]. assert (P : 0 <= change (repeat k n) x y).
  { apply change_pos, Forall_forall. intros c Hc. now rewrite (repeat_spec _ _ _ Hc). }
  destruct (Rlt_dec (Rabs (a - b)) d) as [L|G].
  - destruct (IH y n) as [N|C]; [now injection Hx|now injection Hy|left; now constructor|right].
    pose proof (Rmult_le_pos k (Rabs (a - b)) Hk (Rabs_pos _)). lra.
  - right. pose proof (Rmult_le_compat_l k d (Rabs (a - b)) Hk ltac:(lra)). lra.
Qed.

(** ** Extension from a set to the whole space, with the same constants (McShane) *)

Section Extension.
Variables (X : vec -> Prop) (D : nat) (K : vec) (eta M : R) (g : vec -> R).
Hypothesis HX : forall x, X x -> length x = D.
Hypothesis Some_point : exists x, X x.
Hypothesis HK : Forall (Rle 0) K.
Hypothesis Bounded : forall x, X x -> Rabs (g x) <= M.
Hypothesis Lip : forall x y, X x -> X y -> Rabs (g x - g y) <= eta + change K x y.

(** The largest function below all cones g(x) + change K x z, x in X. *)
Definition cones (z : vec) (v : R) : Prop := exists x, X x /\ v = - (g x + change K x z).

Lemma cones_bound z : Raxioms.bound (cones z).
Proof.
  exists M. intros v [x [Hx ->]]. pose proof (between _ _ (Bounded x Hx)). pose proof (change_pos K x z HK). lra.
Qed.

Lemma cones_some z : exists v, cones z v.
Proof. destruct Some_point as [x Hx]. exists (- (g x + change K x z)), x. auto. Qed.

Definition extension (z : vec) : R := - proj1_sig (completeness (cones z) (cones_bound z) (cones_some z)).

Lemma extension_below z x : X x -> extension z <= g x + change K x z.
Proof.
  intros Hx. unfold extension. destruct (completeness _ _ _) as [s [Up Least]]. cbn [proj1_sig].
  assert (- (g x + change K x z) <= s) by (apply Up; now exists x). lra.
Qed.

Lemma extension_above z v : (forall x, X x -> v <= g x + change K x z) -> v <= extension z.
Proof.
  intros H. unfold extension. destruct (completeness _ _ _) as [s [Up Least]]. cbn [proj1_sig].
  assert (s <= - v); [|lra]. apply Least. intros w [x [Hx ->]]. specialize (H x Hx). lra.
Qed.

Lemma extension_near x : X x -> Rabs (extension x - g x) <= eta.
Proof.
  intros Hx. pose proof (extension_below x x Hx) as A. rewrite change_self in A.
  assert (B : g x - eta <= extension x).
  { apply extension_above. intros y Hy. pose proof (between _ _ (Lip y x Hy Hx)). lra. }
  pose proof (between _ _ (Lip x x Hx Hx)) as E. rewrite change_self in E. apply Rabs_le. lra.
Qed.

Lemma extension_lipschitz z z' : length z = D -> length z' = D -> Rabs (extension z - extension z') <= change K z z'.
Proof.
  assert (Half : forall a b, length a = D -> length b = D -> extension a - change K b a <= extension b).
  { intros a b Ha Hb. apply extension_above. intros x Hx. pose proof (extension_below a x Hx).
    pose proof (change_triangle K x b a HK ltac:(rewrite (HX x Hx); congruence) ltac:(congruence)). lra. }
  intros Hz Hz'. pose proof (Half z z' Hz Hz') as A. pose proof (Half z' z Hz' Hz). rewrite change_sym in A.
  apply Rabs_le. lra.
Qed.
End Extension.

(** ** Continuous functions on a compact set *)

Section Continuous.
Variables (m : nat) (f : vec -> vec) (low side : vec) (X : vec -> Prop).

(** X is compact: a closed part of a box. *)
Definition compact : Prop :=
  (forall x, X x -> in_box low side x) /\
  (forall x, in_box low side x -> ~ X x -> exists d, 0 < d /\ forall y, near d x y -> ~ X y).

(** f, with m outputs, changes by at most e between x and y. *)
Definition within (e : R) (x y : vec) : Prop := forall q, (q < m)%nat -> Rabs (nth q (f x) 0 - nth q (f y) 0) <= e.

(** f is continuous on X. *)
Definition continuous : Prop := forall x, X x -> forall e, 0 < e ->
  exists d, 0 < d /\ forall y, X y -> near d x y -> within e x y.

Hypothesis Hlow : length low = length side.
Hypothesis Hside : Forall (Rlt 0) side.
Hypothesis HX : compact.
Hypothesis Hf : continuous.

(** What holds near every point of X holds on X, with one radius. *)
Lemma compact_set (Q : vec -> R -> Prop) : (forall y r r', 0 < r' <= r -> Q y r -> Q y r') ->
  (forall x, X x -> exists r, 0 < r /\ forall y, X y -> near r x y -> Q y r) ->
  exists r, 0 < r /\ forall y, X y -> Q y r.
Proof.
  intros Anti Local. destruct HX as [In Closed].
  destruct (compact_box side low (fun y r => X y -> Q y r) Hlow Hside) as [r [Hr H]].
  - intros y r r' Hr HQ Hy. apply (Anti y r); auto.
  - intros x Hx. destruct (classic (X x)) as [Y|N].
    + destruct (Local x Y) as [r [Hr H]]. exists r. split; [easy|]. intros y _ Hxy Hy. now apply H.
    + destruct (Closed x Hx N) as [r [Hr H]]. exists r. split; [easy|]. intros y _ Hxy Hy. now destruct (H y Hxy).
  - exists r. split; [easy|]. intros y Hy. apply H; auto.
Qed.

(** Uniform continuity. *)
Lemma uniform e : 0 < e -> exists d, 0 < d /\ forall x y, X x -> X y -> near d x y -> within e x y.
Proof.
  intros He. destruct (compact_set (fun x r => forall y, X y -> near r x y -> within e x y)) as [d [Hd H]].
  - intros x r r' Hr HQ y Hy Hxy. apply HQ; [easy|]. now apply (near_weaken r').
  - intros x Hx. destruct (Hf x Hx (e / 2) ltac:(lra)) as [d [Hd H]]. exists (d / 2). split; [lra|].
    intros y Hy Hxy z Hz Hyz q Hq.
    pose proof (H y Hy (near_weaken (d / 2) d x y ltac:(lra) Hxy) q Hq) as A.
    pose proof (H z Hz (near_weaken (d / 2 + d / 2) d x z ltac:(lra) (near_trans _ x y z Hxy Hyz)) q Hq) as B.
    replace (nth q (f y) 0 - nth q (f z) 0) with (- (nth q (f x) 0 - nth q (f y) 0) + (nth q (f x) 0 - nth q (f z) 0)) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
  - exists d. split; [easy|]. intros x y Hx Hy. now apply H.
Qed.

(** Boundedness. *)
Lemma bounded : exists M, 0 < M /\ forall x, X x -> forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= M.
Proof.
  destruct (compact_set (fun x r => forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= / r)) as [d [Hd H]].
  - intros x r r' Hr HQ q Hq. eapply Rle_trans; [now apply HQ|]. apply Rinv_le_contravar; lra.
  - intros x Hx. destruct (Hf x Hx 1 ltac:(lra)) as [d [Hd H]].
    assert (B : exists B, 0 < B /\ forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= B).
    { clear. induction m as [|n [B [HB H]]]; [exists 1; split; [lra|lia]|].
      exists (B + Rabs (nth n (f x) 0)). pose proof (Rabs_pos (nth n (f x) 0)). split; [lra|]. intros q Hq.
      destruct (Nat.eq_dec q n) as [->|Hne]; [lra|]. specialize (H q ltac:(lia)). lra. }
    destruct B as [B [HB HB']]. exists (Rmin d (/ (B + 1))).
    assert (P : 0 < / (B + 1)) by (apply Rinv_0_lt_compat; lra). pose proof (Rmin_glb_lt d (/ (B + 1)) 0 Hd P) as Pr.
    pose proof (Rmin_l d (/ (B + 1))). pose proof (Rmin_r d (/ (B + 1))) as Er. split; [easy|].
    intros y Hy Hxy q Hq. pose proof (H y Hy (near_weaken (Rmin d (/ (B + 1))) d x y ltac:(easy) Hxy) q Hq) as A.
    specialize (HB' q Hq). apply Rinv_le_contravar in Er; [|easy]. rewrite Rinv_inv in Er.
    replace (nth q (f y) 0) with (- (nth q (f x) 0 - nth q (f y) 0) + nth q (f x) 0) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
  - exists (/ d). split; [now apply Rinv_0_lt_compat|]. intros x Hx. now apply H.
Qed.

(** Lipschitz up to eta, with one constant k in all coordinates. *)
Lemma almost_lipschitz eta : 0 < eta -> exists k, 0 <= k /\ forall q, (q < m)%nat -> forall x y, X x -> X y ->
  Rabs (nth q (f x) 0 - nth q (f y) 0) <= eta + change (repeat k (length side)) x y.
Proof.
  intros He. destruct (uniform eta He) as [d [Hd Hu]]. destruct bounded as [M [HM Hb]].
  set (k := 2 * M / d). assert (Hk : 0 <= k) by (unfold k; left; apply Rdiv_lt_0_compat; lra).
  exists k. split; [easy|]. intros q Hq x y Hx Hy.
  destruct (not_near k d x Hk Hd y (length side) (proj1 (proj1 HX x Hx)) (proj1 (proj1 HX y Hy))) as [N|C].
  - pose proof (Hu x y Hx Hy N q Hq). assert (0 <= change (repeat k (length side)) x y); [|lra].
    apply change_pos, Forall_forall. intros c Hc. now rewrite (repeat_spec _ _ _ Hc).
  - replace (k * d) with (2 * M) in C by (unfold k; field; lra). pose proof (Hb x Hx q Hq). pose proof (Hb y Hy q Hq).
    unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
Qed.

(** The theorem: one layer, every output, everywhere on X. *)
Theorem universal_compact eps : 0 < eps -> exists W : layer, well_formed (length side) m W /\
  forall x, X x -> forall q, (q < m)%nat -> Rabs (nth q (outputs W x) 0 - nth q (f x) 0) <= eps.
Proof.
  intros He. destruct (classic (exists x, X x)) as [Hsome|Hnone].
  2: { exists (universal_layer m f 1 low side (repeat 1%nat (length side))). split.
       - rewrite <- (repeat_length 1%nat (length side)) at 1. apply universal_well_formed; now rewrite repeat_length.
       - intros x Hx. destruct Hnone. now exists x. }
  destruct (almost_lipschitz (eps / 2) ltac:(lra)) as [k [Hk Lip]]. destruct bounded as [M [HM Hb]].
  set (K := repeat k (length side)) in *. assert (LK : length K = length side) by apply repeat_length.
  assert (PK : Forall (Rle 0) K) by (apply Forall_forall; intros c Hc; now rewrite (repeat_spec _ _ _ Hc)).
  assert (PL : Forall (Rle 0) (per_side K side)).
  { unfold per_side. apply Forall_map, Forall_forall. intros [a s] H. pose proof (in_combine_l _ _ _ _ H) as H1.
    apply in_combine_r in H. pose proof Hside as Ps. rewrite Forall_forall in PK, Ps. specialize (PK a H1). specialize (Ps s H).
    apply Rmult_le_pos; lra. }
  destruct (sizes_exist (eps / 2) (per_side K side) ltac:(lra) PL) as [beta [ns [Hbeta [Hns [Hn HB]]]]].
  assert (E : length (per_side K side) = length side) by (unfold per_side; rewrite map_length, combine_length; lia).
  (* the outputs of f, extended *)
  set (g := fun q x => if lt_dec q m then nth q (f x) 0 else 0).
  assert (Bg : forall q x, X x -> Rabs (g q x) <= M).
  { intros q x Hx. unfold g. destruct (lt_dec q m); [now apply Hb|rewrite Rabs_R0; lra]. }
  assert (HD : forall x, X x -> length x = length side) by (intros x Hx; apply (proj1 HX x Hx)).
  set (F := fun x => map (fun q => extension X K M (g q) Hsome PK (Bg q) x) (seq 0 m)).
  exists (universal_layer m F beta low side ns). split; [rewrite <- E, <- Hns; apply universal_well_formed; congruence|].
  intros x Hx q Hq.
  assert (HF : forall z, nth q (F z) 0 = extension X K M (g q) Hsome PK (Bg q) z).
  { intros z. unfold F. set (h := fun q => extension X K M (g q) Hsome PK (Bg q) z).
    rewrite (nth_indep _ 0 (h O)) by now rewrite map_length, seq_length. now rewrite map_nth, seq_nth. }
  assert (Lg : forall a b, X a -> X b -> Rabs (g q a - g q b) <= eps / 2 + change K a b).
  { intros a b Ha Hb'. unfold g. destruct (lt_dec q m); [now apply Lip|easy]. }
  pose proof (universal m F K beta low side ns q ltac:(congruence) ltac:(congruence) ltac:(congruence) PK Hside Hn
    Hbeta Hq) as U.
  specialize (U (fun a b Ha Hb' => ltac:(rewrite !HF; apply (extension_lipschitz X (length side)); auto; apply Ha || apply Hb'))
    x (proj1 HX x Hx)).
  pose proof (extension_near X K (eps / 2) M (g q) Hsome PK (Bg q) Lg x Hx) as Near.
  rewrite HF in U. replace (g q x) with (nth q (f x) 0) in Near by (unfold g; now destruct (lt_dec q m)).
  set (e := extension _ _ _ _ _ _ _ x) in *.
  replace (nth q (outputs (universal_layer m F beta low side ns) x) 0 - nth q (f x) 0)
    with ((nth q (outputs (universal_layer m F beta low side ns) x) 0 - e) + (e - nth q (f x) 0)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
End Continuous.
