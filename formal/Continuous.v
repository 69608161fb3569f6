(** * The theorem for continuous functions: existence

    Every continuous function on a box, with any number of variables and of outputs, is approximated by one layer within every
    tolerance. A continuous function on a box changes by at most eta + K |x - y|_1, for every eta > 0 and some K; Universal.v does
    the rest. *)
From Coq Require Import Reals List Lra Lia Classical_Prop.
From Onelayer Require Import Attention Gates Universal Cases.
Import ListNotations.
Open Scope R_scope.

(** ** Compactness of a box: what holds near every point holds everywhere, with one radius *)

(** U s r: "U holds at s with radius r". *)
Lemma compact_interval (a c : R) (U : R -> R -> Prop) : a <= c ->
  (forall s r r', 0 < r' <= r -> U s r -> U s r') ->
  (forall t, a <= t <= c -> exists r, 0 < r /\ forall s, a <= s <= c -> Rabs (t - s) < r -> U s r) ->
  exists r, 0 < r /\ forall s, a <= s <= c -> U s r.
Proof.
  intros Hac Anti Local.
  set (E := fun v => a <= v <= c /\ exists r, 0 < r /\ forall s, a <= s <= v -> U s r).
  assert (Ea : E a).
  { split; [lra|]. destruct (Local a ltac:(lra)) as [r [Hr H]]. exists r. split; [easy|]. intros s Hs. apply H; [lra|].
    replace (a - s) with 0 by lra. now rewrite Rabs_R0. }
  destruct (completeness E) as [m [Up Least]]; [exists c; intros v [Hv _]; lra|now exists a|].
  assert (Hm : a <= m <= c) by (split; [now apply Up|apply Least; intros v [Hv _]; lra]).
  destruct (Local m Hm) as [r [Hr H]].
  assert (V : exists v, E v /\ m - r < v).
  { apply NNPP. intros N. assert (m <= m - r); [|lra]. apply Least. intros v Hv. apply Rnot_lt_le. intros L. apply N. now exists v. }
  destruct V as [v [[Hv [r' [Hr' Hv']]] Hmv]].
  set (e := Rmin c (m + r / 2)). pose proof (Rmin_l c (m + r / 2)) as E1. pose proof (Rmin_r c (m + r / 2)) as E2. fold e in E1, E2.
  assert (Ee : exists p, 0 < p /\ forall s, a <= s <= e -> U s p).
  { exists (Rmin r r'). pose proof (Rmin_l r r'). pose proof (Rmin_r r r'). pose proof (Rmin_glb_lt r r' 0 Hr Hr').
    split; [easy|]. intros s Hs. destruct (Rle_dec s v) as [L|G].
    - apply (Anti s r'); [lra|]. apply Hv'. lra.
    - apply (Anti s r); [lra|]. apply H; [lra|]. apply Rabs_def1; lra. }
  assert (He : a <= e) by (apply Rmin_glb; lra).
  assert (e <= m) by (apply Up; split; [lra|easy]).
  assert (Ec : e = c) by (unfold e, Rmin in *; destruct (Rle_dec c (m + r / 2)); lra).
  now rewrite Ec in Ee.
Qed.

Definition near (d : R) (x y : vec) : Prop := Forall2 (fun a b => Rabs (a - b) < d) x y.

Lemma in_box_cons l low s side v x : in_box (l :: low) (s :: side) (v :: x) <-> l <= v <= l + s /\ in_box low side x.
Proof.
  unfold in_box. cbn [length combine]. split.
  - intros [H1 H2]. inversion H2; subst. auto with arith.
  - intros [H1 [H2 H3]]. split; [congruence|now constructor].
Qed.

Lemma compact_box side : forall low (Q : vec -> R -> Prop), length low = length side -> Forall (Rlt 0) side ->
  (forall y r r', 0 < r' <= r -> Q y r -> Q y r') ->
  (forall x, in_box low side x -> exists r, 0 < r /\ forall y, in_box low side y -> near r x y -> Q y r) ->
  exists r, 0 < r /\ forall y, in_box low side y -> Q y r.
Proof.
  induction side as [|s side IH]; intros [|l low] Q Hl Hs Anti Local; try discriminate.
  - destruct (Local []) as [r [Hr H]]; [split; [easy|constructor]|]. exists r. split; [easy|].
    intros [|v y] Hy; [apply H; [easy|constructor]|]. destruct Hy. discriminate.
  - inversion Hs; subst.
    destruct (compact_interval l (l + s) (fun v r => forall y, in_box low side y -> Q (v :: y) r)) as [r [Hr H]]; [lra|..].
    + intros v r r' Hr HU y Hy. apply (Anti _ r); auto.
    + intros t Ht.
      destruct (IH low (fun y r => forall v, l <= v <= l + s -> Rabs (t - v) < r -> Q (v :: y) r)) as [r [Hr H]]; auto.
      * intros y r r' Hr HQ v Hv Htv. apply (Anti _ r); [easy|]. apply HQ; [easy|lra].
      * intros x Hx. destruct (Local (t :: x)) as [r [Hr H]]; [now apply in_box_cons|]. exists r. split; [easy|].
        intros y Hy Hxy v Hv Htv. apply H; [now apply in_box_cons|now constructor].
      * exists r. split; [easy|]. intros v Hv Htv y Hy. now apply H.
    + exists r. split; [easy|]. intros [|v y] Hy; [destruct Hy; discriminate|]. apply in_box_cons in Hy. now apply H.
Qed.

(** ** Continuous functions on a box *)

Section Continuous.
Variables (m : nat) (f : vec -> vec) (low side : vec).
Hypothesis Hlow : length low = length side.
Hypothesis Hside : Forall (Rlt 0) side.

(** f, with m outputs, changes by at most e between x and y. *)
Definition within (e : R) (x y : vec) : Prop := forall q, (q < m)%nat -> Rabs (nth q (f x) 0 - nth q (f y) 0) <= e.

Definition continuous : Prop := forall x, in_box low side x -> forall e, 0 < e ->
  exists d, 0 < d /\ forall y, in_box low side y -> near d x y -> within e x y.
Hypothesis Hf : continuous.

Lemma near_weaken d d' x y : d <= d' -> near d x y -> near d' x y.
Proof. intros H N. induction N; constructor; auto. lra. Qed.

Lemma near_trans d x y z : near d x y -> near d y z -> near (d + d) x z.
Proof.
  intros H; revert z; induction H as [|a b x y H _ IH]; intros z Hz; inversion Hz; subst; constructor; [|now apply IH].
  match goal with |- Rabs (a - ?c) < _ => replace (a - c) with ((a - b) + (b - c)) by ring end.
  eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
Qed.

(** Uniform continuity. *)
Lemma uniform e : 0 < e -> exists d, 0 < d /\
  forall x y, in_box low side x -> in_box low side y -> near d x y -> within e x y.
Proof.
  intros He.
  destruct (compact_box side low (fun x r => forall y, in_box low side y -> near r x y -> within e x y) Hlow Hside) as [d [Hd H]].
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
Lemma bounded : exists M, 0 < M /\ forall x, in_box low side x -> forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= M.
Proof.
  destruct (compact_box side low (fun x r => forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= / r) Hlow Hside) as [d [Hd H]].
  - intros x r r' Hr HQ q Hq. eapply Rle_trans; [now apply HQ|]. apply Rinv_le_contravar; lra.
  - intros x Hx. destruct (Hf x Hx 1 ltac:(lra)) as [d [Hd H]].
    assert (B : exists B, 0 < B /\ forall q, (q < m)%nat -> Rabs (nth q (f x) 0) <= B).
    { clear. induction m as [|n [B [HB H]]]; [exists 1; split; [lra|lia]|].
      exists (B + Rabs (nth n (f x) 0)). pose proof (Rabs_pos (nth n (f x) 0)). split; [lra|]. intros q Hq.
      destruct (Nat.eq_dec q n) as [->|Hne]; [lra|]. specialize (H q ltac:(lia)). lra. }
    destruct B as [B [HB HB']]. exists (Rmin d (/ (B + 1))).
    assert (P : 0 < / (B + 1)) by (apply Rinv_0_lt_compat; lra). pose proof (Rmin_glb_lt d (/ (B + 1)) 0 Hd P) as Pr.
    pose proof (Rmin_l d (/ (B + 1))). pose proof (Rmin_r d (/ (B + 1))) as Er. split; [easy|].
    intros y Hy Hxy q Hq. pose proof (H y Hy (near_weaken (Rmin d (/ (B + 1))) d x y ltac:(easy) Hxy) q Hq) as A. specialize (HB' q Hq).
    apply Rinv_le_contravar in Er; [|easy]. rewrite Rinv_inv in Er.
    replace (nth q (f y) 0) with (- (nth q (f x) 0 - nth q (f y) 0) + nth q (f x) 0) by ring.
    eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
  - exists (/ d). split; [now apply Rinv_0_lt_compat|]. intros x Hx. now apply H.
Qed.

(** Points that are not near change a Lipschitz function a good deal. *)
Lemma not_near k d x : 0 <= k -> 0 < d -> forall y n, length x = n -> length y = n ->
  near d x y \/ k * d <= change (repeat k n) x y.
Proof.
  intros Hk Hd. induction x as [|a x IH]; intros [|b y] [|n] Hx Hy; try discriminate; [left; constructor|].
  cbn [repeat change]. assert (P : 0 <= change (repeat k n) x y).
  { clear - Hk. revert x y; induction n as [|n IH]; intros [|a x] [|b y]; simpl; try lra. specialize (IH x y).
    pose proof (Rmult_le_pos k (Rabs (a - b)) Hk (Rabs_pos _)). lra. }
  destruct (Rlt_dec (Rabs (a - b)) d) as [L|G].
  - destruct (IH y n) as [N|C]; [now injection Hx|now injection Hy|left; now constructor|right].
    pose proof (Rmult_le_pos k (Rabs (a - b)) Hk (Rabs_pos _)). lra.
  - right. pose proof (Rmult_le_compat_l k d (Rabs (a - b)) Hk ltac:(lra)). lra.
Qed.

(** The theorem: one layer, every output, everywhere on the box. *)
Theorem universal_continuous eps : 0 < eps -> exists W : layer,
  forall x, in_box low side x -> forall q, (q < m)%nat -> Rabs (nth q (outputs W x) 0 - nth q (f x) 0) <= eps.
Proof.
  intros He. destruct (uniform (eps / 2) ltac:(lra)) as [d [Hd Hu]]. destruct bounded as [M [HM Hb]].
  set (k := 2 * M / d). assert (Hk : 0 <= k) by (unfold k; left; apply Rdiv_lt_0_compat; lra).
  set (K := repeat k (length side)). assert (LK : length K = length side) by apply repeat_length.
  assert (PK : Forall (Rle 0) K) by (unfold K; apply Forall_forall; intros a Ha; now rewrite (repeat_spec _ _ _ Ha)).
  assert (PL : Forall (Rle 0) (per_side K side)).
  { unfold per_side. apply Forall_map, Forall_forall. intros [a s] H. pose proof (in_combine_l _ _ _ _ H) as H1.
    apply in_combine_r in H. rewrite Forall_forall in PK, Hside. specialize (PK a H1). specialize (Hside s H).
    apply Rmult_le_pos; lra. }
  destruct (sizes_exist (eps / 2) (per_side K side) ltac:(lra) PL) as [beta [ns [Hbeta [Hns [Hn HB]]]]].
  assert (E : length (per_side K side) = length side) by (unfold per_side; rewrite map_length, combine_length; lia).
  exists (universal_layer m f beta low side ns). intros x Hx q Hq.
  eapply Rle_trans; [apply (universal m f K (eps / 2) beta low side ns q)|]; try congruence; try easy; try lra.
  intros a b Ha Hb'. destruct (not_near k d a Hk Hd b (length side) (proj1 Ha) (proj1 Hb')) as [N|C].
  - pose proof (Hu a b Ha Hb' N q Hq). assert (0 <= change K a b); [|lra].
    clear - PK. revert a b; induction PK as [|c K Hc _ IH]; intros [|u a] [|v b]; simpl; try lra. specialize (IH a b).
    pose proof (Rmult_le_pos c (Rabs (u - v)) Hc (Rabs_pos _)). lra.
  - fold K in C. replace (k * d) with (2 * M) in C by (unfold k; field; lra). pose proof (Hb a Ha q Hq). pose proof (Hb b Hb' q Hq).
    unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra.
Qed.
End Continuous.
