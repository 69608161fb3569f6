(** * Mixed differences, and why the model is an average

    The model is T = sum over cells k of Delta_k phi(s_k), phi(s) = 1/(1+s), with Delta_k the mixed differences of the values y_k
    and s_k the sum of the exponentials of head k (docs/theory/theorem.md, Section 2). This file proves that T is a *positive*
    functional of y: where all y_k >= 0, T >= 0, because phi is completely monotone. So T is an average of the y_k, up to a total
    weight of nearly 1. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Monotone.
Import ListNotations.
Open Scope R_scope.
Local Notation S := Datatypes.S.  (* the successor, not the special tokens of a layer *)

(** ** Sums over lists *)

Definition total {A} (l : list A) (f : A -> R) : R := sum (map f l).

Lemma total_app {A} (l l' : list A) f : total (l ++ l') f = total l f + total l' f.
Proof. unfold total. now rewrite map_app, sum_app. Qed.

Lemma total_ext {A} (l : list A) f g : (forall a, In a l -> f a = g a) -> total l f = total l g.
Proof. intros H. unfold total. f_equal. now apply map_ext_in. Qed.

Lemma total_minus {A} (l : list A) f g : total l (fun a => f a - g a) = total l f - total l g.
Proof. unfold total. induction l as [|a l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma total_scale {A} (l : list A) c f : total l (fun a => c * f a) = c * total l f.
Proof. unfold total. induction l as [|a l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma total_flat_map {A B} (l : list A) (g : A -> list B) f : total (flat_map g l) f = total l (fun a => total (g a) f).
Proof. induction l as [|a l IH]; [easy|]. cbn [flat_map]. rewrite total_app, IH. reflexivity. Qed.

Lemma total_plus {A} (l : list A) f g : total l (fun a => f a + g a) = total l f + total l g.
Proof. unfold total. induction l as [|a l IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma total_map {A B} (l : list A) (g : A -> B) f : total (map g l) f = total l (fun a => f (g a)).
Proof. unfold total. now rewrite map_map. Qed.

Lemma total_seq_S m f : total (seq 0 (S m)) f = total (seq 0 m) f + f m.
Proof. rewrite seq_S, total_app. unfold total at 2. simpl. ring. Qed.

Lemma total_first n f : (1 <= n)%nat -> (forall i, f (S i) = 0) -> total (seq 0 n) f = f O.
Proof.
  intros Hn H. induction Hn as [|n Hn IH]; [unfold total; simpl; ring|].
  rewrite total_seq_S, IH. destruct n; [lia|]. rewrite H. ring.
Qed.

(** ** Cells, and mixed differences over them *)

(** All cells (k_1, ..., k_D) with k_j < n_j. *)
Fixpoint cells (ns : list nat) : list (list nat) :=
  match ns with
  | [] => [[]]
  | n :: ns' => flat_map (fun i => map (cons i) (cells ns')) (seq 0 n)
  end.

Lemma in_cells n ns i k : In (i :: k) (cells (n :: ns)) <-> (i < n)%nat /\ In k (cells ns).
Proof.
  cbn [cells]. rewrite in_flat_map. split.
  - intros [j [Hj Hk]]. apply in_map_iff in Hk as [k' [E Hk]]. injection E as -> ->. apply in_seq in Hj. split; [lia|easy].
  - intros [Hi Hk]. exists i. split; [apply in_seq; lia|]. now apply in_map.
Qed.

(** Each number minus its predecessor, the first one kept. *)
Definition difference (a : nat -> R) (i : nat) : R :=
  match i with
  | O => a O
  | S i' => a i - a i'
  end.

(** The mixed difference Delta_k of the values y: along every axis in turn. *)
Fixpoint mixed (k : list nat) (y : list nat -> R) : R :=
  match k with
  | [] => y []
  | i :: k' => difference (fun i => mixed k' (fun r => y (i :: r))) i
  end.

(** s_k = sum over j of u_j(k_j). *)
Fixpoint along (us : list (nat -> R)) (k : list nat) : R :=
  match us, k with
  | u :: us', i :: k' => u i + along us' k'
  | _, _ => 0
  end.

(** The model, as a functional of the values y. *)
Definition model (ns : list nat) (us : list (nat -> R)) (y : list nat -> R) (phi : R -> R) (s : R) : R :=
  total (cells ns) (fun k => mixed k y * phi (s + along us k)).

Lemma mixed_minus k : forall y z, mixed k (fun r => y r - z r) = mixed k y - mixed k z.
Proof.
  induction k as [|i k IH]; intros y z; [easy|]. destruct i; simpl; rewrite !IH; ring.
Qed.

Lemma mixed_scale k : forall c y, mixed k (fun r => c * y r) = c * mixed k y.
Proof. induction k as [|i k IH]; intros c y; [easy|]. destruct i; simpl; rewrite !IH; ring. Qed.

Lemma mixed_ext k : forall y z, (forall r, y r = z r) -> mixed k y = mixed k z.
Proof.
  induction k as [|i k IH]; intros y z E; [apply E|].
  destruct i; simpl; [|f_equal]; apply IH; intros r; apply E.
Qed.

(** The model along the first axis: differences of models of the other axes. *)
Lemma model_cons n ns u us y phi s : model (n :: ns) (u :: us) y phi s =
  total (seq 0 n) (fun i => difference (fun j => model ns us (fun r => y (j :: r)) phi (s + u i)) i).
Proof.
  unfold model at 1. cbn [cells]. rewrite total_flat_map. apply total_ext. intros i _. rewrite total_map.
  unfold model. destruct i; cbn [mixed along difference].
  - apply total_ext. intros k _. f_equal. f_equal. ring.
  - rewrite <- total_minus. apply total_ext. intros k _. rewrite <- Rmult_minus_distr_r. f_equal. f_equal. ring.
Qed.

Lemma model_minus ns us y z phi s : model ns us (fun r => y r - z r) phi s = model ns us y phi s - model ns us z phi s.
Proof. unfold model. rewrite <- total_minus. apply total_ext. intros k _. rewrite mixed_minus. ring. Qed.

(** In the argument: a difference of phi is a difference of models. *)
Lemma model_step ns us y phi s h :
  model ns us y (fun t => phi t - phi (t + h)) s = model ns us y phi s - model ns us y phi (s + h).
Proof.
  unfold model. rewrite <- total_minus. apply total_ext. intros k _. rewrite Rmult_minus_distr_l.
  do 3 f_equal. ring.
Qed.

(** Increasing axes: what the exponentials of a lattice are. *)
Definition increasing (u : nat -> R) := forall i j, (i <= j)%nat -> 0 <= u i <= u j.

(** One axis: where each step down the diagonal loses nothing, the sum of differences is at least the last entry. *)
Lemma diagonal (P : nat -> nat -> R) m : (forall i, (i < m)%nat -> P i (S i) <= P i i) ->
  P m m <= total (seq 0 (S m)) (fun i => difference (fun j => P j i) i).
Proof.
  intros H. induction m as [|m IH]; [unfold total; simpl; lra|].
  rewrite total_seq_S. cbn [difference]. specialize (IH (fun i Hi => H i ltac:(lia))). specialize (H m ltac:(lia)). lra.
Qed.

(** *** Positivity: the model of non-negative values is non-negative. *)
Theorem model_positive ns : forall us phi y s, length us = length ns -> Forall increasing us -> monotone (length ns) phi ->
  (forall k, In k (cells ns) -> 0 <= y k) -> 0 <= s -> 0 <= model ns us y phi s.
Proof.
  induction ns as [|n ns IH]; intros [|u us] phi y s Hl Hu Hphi Hy Hs; try discriminate.
  - unfold model, total. simpl. destruct Hphi as [Hphi _]. specialize (Hphi (s + 0) ltac:(lra)). specialize (Hy [] (or_introl eq_refl)).
    pose proof (Rmult_le_pos _ _ Hy Hphi). lra.
  - inversion Hu as [|? ? Hu1 Hu2]; subst. destruct Hphi as [_ [Hm Hd]]. injection Hl as Hl.
    rewrite model_cons. destruct n as [|n]; [unfold total; simpl; lra|].
    eapply Rle_trans; [|apply (diagonal (fun j i => model ns us (fun r => y (j :: r)) phi (s + u i)))].
    + pose proof (Hu1 n n (le_n n)). apply IH; try lra; auto. intros k Hk. apply Hy, in_cells. auto with arith.
    + intros i Hi. pose proof (Hu1 i (S i) ltac:(lia)) as B.
      pose proof (IH us (fun t => phi t - phi (t + (u (S i) - u i))) (fun r => y (i :: r)) (s + u i) Hl Hu2
        (Hd (u (S i) - u i) ltac:(lra)) (fun k Hk => Hy _ (proj2 (in_cells _ _ _ _) (conj (Nat.lt_lt_succ_r _ _ Hi) Hk))) ltac:(lra)) as Q.
      rewrite model_step in Q. replace (s + u i + (u (S i) - u i)) with (s + u (S i)) in Q by ring. lra.
Qed.

(** ** What the model makes of constants, and of sums of functions of one coordinate *)

(** s_k of the first cell. *)
Definition first (us : list (nat -> R)) : R := sum (map (fun u => u O) us).

(** The weights of the average sum to phi of the first cell. *)
Lemma model_constant ns : forall us c phi s, length us = length ns -> Forall (le 1) ns ->
  model ns us (fun _ => c) phi s = c * phi (s + first us).
Proof.
  induction ns as [|n ns IH]; intros [|u us] c phi s Hl Hn; try discriminate.
  - unfold model, total, first. simpl. ring.
  - inversion Hn; subst. injection Hl as Hl. rewrite model_cons. rewrite total_first; [|easy|].
    + cbn [difference]. rewrite IH by easy. unfold first. cbn [map sum]. do 2 f_equal. ring.
    + intros i. cbn [difference]. ring.
Qed.

(** The model in one variable. *)
Definition mean (n : nat) (u e : nat -> R) (phi : R -> R) : R := total (seq 0 n) (fun i => difference e i * phi (u i)).

Lemma mean_minus n u e d phi : mean n u (fun i => e i - d i) phi = mean n u e phi - mean n u d phi.
Proof. unfold mean. rewrite <- total_minus. apply total_ext. intros i _. destruct i; cbn [difference]; ring. Qed.

Lemma mean_scale n u c e phi : mean n u (fun i => c * e i) phi = c * mean n u e phi.
Proof. unfold mean. rewrite <- total_scale. apply total_ext. intros i _. destruct i; cbn [difference]; ring. Qed.

Lemma mean_step n u e phi a : mean n u e (fun t => phi t - phi (t + a)) = mean n u e phi - mean n u e (fun t => phi (t + a)).
Proof. unfold mean. rewrite <- total_minus. apply total_ext. intros i _. ring. Qed.

Lemma mean_positive n u e phi : increasing u -> monotone 1 phi -> (forall i, (i < n)%nat -> 0 <= e i) -> 0 <= mean n u e phi.
Proof.
  intros Hu [H0 [_ H1]] He. unfold mean. destruct n as [|n]; [unfold total; simpl; lra|].
  rewrite (total_ext _ _ (fun i => difference (fun j => e j * phi (u i)) i)).
  2: { intros i _. destruct i; cbn [difference]; ring. }
  eapply Rle_trans; [|apply (diagonal (fun j i => e j * phi (u i)))].
  - pose proof (Hu n n (le_n n)). apply Rmult_le_pos; [auto with arith|apply H0; lra].
  - intros i Hi. pose proof (Hu i (S i) ltac:(lia)) as B. apply Rmult_le_compat_l; [auto with arith|].
    destruct (H1 (u (S i) - u i) ltac:(lra)) as [Q _]. specialize (Q (u i) ltac:(lra)). cbv beta in Q.
    replace (u i + (u (S i) - u i)) with (u (S i)) in Q by ring. lra.
Qed.

(** In one variable, by parts: an average of e over the cells. *)
Lemma by_parts m (e g : nat -> R) : total (seq 0 (S m)) (fun i => difference e i * g i)
  = total (seq 0 m) (fun i => e i * (g i - g (S i))) + e m * g m.
Proof.
  induction m as [|m IH]; [unfold total; simpl; ring|].
  rewrite total_seq_S, IH, (total_seq_S m). cbn [difference]. ring.
Qed.

(** For an error that is a sum over coordinates, the mean is at most the sum of the means in one variable each. *)
Fixpoint means (ns : list nat) (us es : list (nat -> R)) (phi : R -> R) : R :=
  match ns, us, es with
  | n :: ns', u :: us', e :: es' => mean n u e phi + means ns' us' es' phi
  | _, _, _ => 0
  end.

Lemma first_pos us : Forall increasing us -> 0 <= first us.
Proof.
  unfold first. induction 1 as [|u us Hu _ IH]; simpl; [lra|]. pose proof (Hu O O (le_n O)). lra.
Qed.

Theorem model_along ns : forall us es phi s, length us = length ns -> length es = length ns -> Forall (le 1) ns ->
  Forall increasing us -> Forall (fun e => forall i, 0 <= e i) es -> monotone 2 phi -> 0 <= s ->
  model ns us (along es) phi s <= means ns us es phi.
Proof.
  induction ns as [|n ns IH]; intros [|u us] [|e es] phi s Hu He Hn Iu Ie Hphi Hs; try discriminate.
  - unfold model, total. simpl. lra.
  - inversion Hn; inversion Iu as [|? ? Iu1 Iu2]; inversion Ie as [|? ? Ie1 Ie2]; subst. injection Hu as Hu. injection He as He.
    pose proof (Iu1 O O (le_n O)) as B.
    specialize (IH us es phi (s + u O) Hu He ltac:(easy) Iu2 Ie2 Hphi ltac:(lra)). cbn [means].
    assert (E : model (n :: ns) (u :: us) (along (e :: es)) phi s
              = mean n u e (fun t => phi (t + (s + first us))) + model ns us (along es) phi (s + u O)).
    { rewrite model_cons. set (r := model ns us (along es) phi (s + u O)).
      rewrite <- (total_first n (fun i => match i with O => r | _ => 0 end)) by easy.
      unfold mean. rewrite <- total_plus. apply total_ext. intros i _.
      assert (A : forall j t, model ns us (fun r => along (e :: es) (j :: r)) phi t
                = e j * phi (t + first us) + model ns us (along es) phi t).
      { intros j t. rewrite <- (model_constant ns us (e j) phi t Hu) by easy.
        unfold model. rewrite <- total_plus. apply total_ext. intros k _.
        rewrite <- Rmult_plus_distr_r. f_equal.
        rewrite (mixed_ext k _ (fun r => e j - (0 - 1) * along es r)) by (intros; cbn [along]; ring).
        rewrite mixed_minus, mixed_scale. ring. }
      destruct i; cbn [difference]; rewrite !A; unfold r; replace (u O + (s + first us)) with (s + u O + first us) by ring;
        [ring|]. replace (u (S i) + (s + first us)) with (s + u (S i) + first us) by ring. ring. }
    rewrite E. pose proof (first_pos us Iu2).
    pose proof (mean_positive n u e (fun t => phi t - phi (t + (s + first us))) Iu1
      (proj2 (proj2 Hphi) (s + first us) ltac:(lra)) (fun i _ => Ie1 i)) as Q.
    rewrite mean_step in Q. lra.
Qed.
