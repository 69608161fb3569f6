(** * Compactness of a box: what holds near every point holds everywhere, with one radius

    The induction principle behind uniform continuity and boundedness of continuous functions. *)
From Coq Require Import Reals List Lra Lia Classical_Prop.
From Onelayer Require Import Attention Universal.
Import ListNotations.
Open Scope R_scope.

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

Lemma near_weaken d d' x y : d <= d' -> near d x y -> near d' x y.
Proof. intros H N. induction N; constructor; auto. lra. Qed.

Lemma near_trans d x y z : near d x y -> near d y z -> near (d + d) x z.
Proof.
  intros H; revert z; induction H as [|a b x y H _ IH]; intros z Hz; inversion Hz; subst; constructor; [|now apply IH].
  match goal with |- Rabs (a - ?c) < _ => replace (a - c) with ((a - b) + (b - c)) by ring end.
  eapply Rle_lt_trans; [apply Rabs_triang|]. lra.
Qed.
