(** * The maximum-minimums identity

    The k-th smallest of n numbers is a sum of the maxima of all non-empty subsets S, each times (-1)^(s-k) C(s, k), where
    s = |S| - 1 and k counts from 0. The proof is by induction over the list: how the sum changes when a number joins it is how a
    sorted list changes when a number is inserted. *)
From Coq Require Import Reals List Lra Lia Sorted Permutation.
From Onelayer Require Import Attention Matrices Differences.
Import ListNotations.
Open Scope R_scope.
Local Notation S := Datatypes.S.

(** ** Sorting by insertion *)

Fixpoint insert (a : R) (l : vec) : vec :=
  match l with
  | [] => [a]
  | c :: l' => if Rle_dec a c then a :: l else c :: insert a l'
  end.
Fixpoint sort (l : vec) : vec :=
  match l with
  | [] => []
  | a :: l' => insert a (sort l')
  end.

Lemma insert_permutation a l : Permutation (insert a l) (a :: l).
Proof.
  induction l as [|c l IH]; [easy|]. cbn [insert]. destruct (Rle_dec a c); [easy|].
  rewrite IH. apply perm_swap.
Qed.

Theorem sort_permutation l : Permutation (sort l) l.
Proof. induction l as [|a l IH]; [easy|]. cbn [sort]. rewrite insert_permutation. now constructor. Qed.

Lemma insert_sorted a l : StronglySorted Rle l -> StronglySorted Rle (insert a l).
Proof.
  induction 1 as [|c l H IH Hc]; [repeat constructor|]. cbn [insert]. destruct (Rle_dec a c) as [L|G].
  - constructor; [now constructor|]. constructor; [easy|]. eapply Forall_impl; [|exact Hc]. intros b Hb. cbv beta in *. lra.
  - constructor; [easy|]. rewrite insert_permutation. constructor; [lra|easy].
Qed.

Theorem sort_sorted l : StronglySorted Rle (sort l).
Proof. induction l as [|a l IH]; [constructor|]. now apply insert_sorted. Qed.

(** ** Cutting off below a *)

Lemma cut_none a s : Forall (Rle a) s -> map (Rmax a) s = s.
Proof. induction 1 as [|c s H _ IH]; [easy|]. simpl. rewrite IH. f_equal. now apply Rmax_right. Qed.

Lemma insert_least a s : Forall (Rle a) s -> insert a s = a :: s.
Proof. destruct 1 as [|c s H _]; [easy|]. cbn [insert]. destruct (Rle_dec a c); [easy|lra]. Qed.

Lemma cut_monotone a b c : b <= c -> Rmax a b <= Rmax a c.
Proof. intros H. apply Rle_max_compat_l. exact H. Qed.

Lemma insert_cut a b s : StronglySorted Rle s -> insert (Rmax a b) (map (Rmax a) s) = map (Rmax a) (insert b s).
Proof.
  induction 1 as [|c s H IH Hc]; [easy|]. cbn [map insert]. destruct (Rle_dec b c) as [L|G].
  - destruct (Rle_dec (Rmax a b) (Rmax a c)) as [_|N]; [easy|]. now pose proof (cut_monotone a b c L).
  - destruct (Rle_dec (Rmax a b) (Rmax a c)) as [E|_]; cbn [map]; [|now rewrite IH].
    assert (Eq : Rmax a b = Rmax a c) by (pose proof (cut_monotone a c b ltac:(lra)); lra).
    rewrite <- IH, insert_least; [now rewrite Eq|]. rewrite Eq. apply Forall_map. eapply Forall_impl; [|exact Hc].
    intros d Hd. now apply cut_monotone.
Qed.

Lemma sort_cut a l : sort (map (Rmax a) l) = map (Rmax a) (sort l).
Proof. induction l as [|b l IH]; [easy|]. cbn [map sort]. rewrite IH. apply insert_cut, sort_sorted. Qed.

(** How the k-th smallest changes when a joins. (Past its end a list has zeros.) *)
Lemma nth_insert a s : StronglySorted Rle s -> forall k, nth k (insert a s) 0 =
  match k with O => a | S j => nth j (map (Rmax a) s) 0 end - nth k (map (Rmax a) s) 0 + nth k s 0.
Proof.
  induction 1 as [|c s H IH Hc]; intros k.
  - destruct k as [|[|k]]; simpl; ring.
  - cbn [insert]. destruct (Rle_dec a c) as [L|G].
    + rewrite cut_none; [destruct k; cbn [nth]; ring|]. constructor; [easy|].
      eapply Forall_impl; [|exact Hc]. intros b Hb. cbv beta in *. lra.
    + destruct k as [|k]; cbn [nth map].
      * rewrite Rmax_left by lra. ring.
      * rewrite IH. destruct k as [|k]; cbn [nth]; [|easy]. rewrite Rmax_left by lra. ring.
Qed.

(** ** Subsets *)

(** The non-empty subsets of n positions, and what a subset selects. *)
Fixpoint masks (n : nat) : list (list bool) :=
  match n with
  | O => []
  | S n' => (true :: repeat false n') :: map (cons true) (masks n') ++ map (cons false) (masks n')
  end.
Fixpoint select (mask : list bool) (x : vec) : vec :=
  match mask, x with
  | b :: mask', v :: x' => if b then v :: select mask' x' else select mask' x'
  | _, _ => []
  end.
Fixpoint max_of (l : vec) : R :=
  match l with
  | [] => 0
  | [a] => a
  | a :: l' => Rmax a (max_of l')
  end.

Lemma select_none n x : select (repeat false n) x = [].
Proof. revert x; induction n as [|n IH]; intros [|v x]; simpl; auto. Qed.

Lemma select_cut a mask : forall x, select mask (map (Rmax a) x) = map (Rmax a) (select mask x).
Proof. induction mask as [|[] mask IH]; intros [|v x]; simpl; auto. now rewrite IH. Qed.

Lemma masks_nonempty n mask x : In mask (masks n) -> length x = n -> select mask x <> [].
Proof.
  revert mask x; induction n as [|n IH]; intros mask [|v x] Hm Hx; try easy. cbn [masks] in Hm.
  destruct Hm as [<-|Hm]; [easy|]. apply in_app_iff in Hm as [Hm|Hm]; apply in_map_iff in Hm as [r [<- Hr]]; [easy|].
  cbn [select]. apply (IH r x Hr). now injection Hx.
Qed.

Lemma max_of_cons a l : l <> [] -> max_of (a :: l) = Rmax a (max_of l).
Proof. destruct l; [easy|reflexivity]. Qed.

Lemma max_of_cut a l : l <> [] -> max_of (map (Rmax a) l) = Rmax a (max_of l).
Proof.
  induction l as [|c [|d l] IH]; intros H; [easy|reflexivity|].
  change (map (Rmax a) (c :: d :: l)) with (Rmax a c :: map (Rmax a) (d :: l)). rewrite !max_of_cons by easy.
  rewrite IH by easy. rewrite <- !Rmax_assoc, (Rmax_assoc c a), (Rmax_comm c a), <- Rmax_assoc, (Rmax_assoc a a).
  now rewrite (Rmax_left a a) by lra.
Qed.

(** ** The coefficients (-1)^(s-k) C(s, k), by Pascal's rule with signs *)

Fixpoint coefficient (k s : nat) : R :=
  match s with
  | O => match k with O => 1 | _ => 0 end
  | S s' => match k with O => 0 | S j => coefficient j s' end - coefficient k s'
  end.

Lemma coefficient_above s : forall k, (s < k)%nat -> coefficient k s = 0.
Proof.
  induction s as [|s IH]; intros [|k] H; try lia; [reflexivity|]. cbn [coefficient]. rewrite !IH by lia. ring.
Qed.

Theorem coefficient_binomial s : forall k, (k <= s)%nat -> coefficient k s = (-1) ^ (s - k) * C s k.
Proof.
  assert (C0 : forall n, C n 0 = 1) by (intros n; unfold C; rewrite Nat.sub_0_r; simpl; field; apply INR_fact_neq_0).
  assert (Cn : forall n, C n n = 1) by (intros n; unfold C; rewrite Nat.sub_diag; simpl; field; apply INR_fact_neq_0).
  induction s as [|s IH]; intros [|k] H; cbn [coefficient]; try lia.
  - rewrite C0. simpl. ring.
  - rewrite IH, !C0, !Nat.sub_0_r by lia. simpl. ring.
  - destruct (Nat.eq_dec k s) as [->|N].
    + rewrite IH, coefficient_above, !Nat.sub_diag, !Cn by lia. simpl. ring.
    + rewrite !IH, <- pascal by lia. replace (S s - S k)%nat with (S (s - S k)) by lia. replace (s - k)%nat with (S (s - S k)) by lia.
      simpl. ring.
Qed.

(** The sum over subsets. *)
Definition alternating (k : nat) (x : vec) : R :=
  total (masks (length x)) (fun mask => coefficient k (length (select mask x) - 1) * max_of (select mask x)).

(** How it changes when a joins. *)
Lemma alternating_cons k a x : alternating k (a :: x) =
  match k with O => a | S j => alternating j (map (Rmax a) x) end - alternating k (map (Rmax a) x) + alternating k x.
Proof.
  unfold alternating. cbn [length masks]. unfold total at 1. cbn [map sum]. fold (total (map (cons true) (masks (length x)) ++ map (cons false) (masks (length x)))
    (fun mask => coefficient k (length (select mask (a :: x)) - 1) * max_of (select mask (a :: x)))).
  rewrite total_app, !total_map. cbn [select]. rewrite select_none. cbn [length max_of Nat.sub]. rewrite <- Rplus_assoc. f_equal.
  rewrite map_length.
  rewrite (total_ext _ (fun mask => coefficient k (length (a :: select mask x) - 1) * max_of (a :: select mask x))
    (fun mask => match k with O => 0 | S j => coefficient j (length (select mask (map (Rmax a) x)) - 1) * max_of (select mask (map (Rmax a) x)) end
      - coefficient k (length (select mask (map (Rmax a) x)) - 1) * max_of (select mask (map (Rmax a) x)))).
  - rewrite total_minus. destruct k as [|j]; cbn [coefficient]; [|ring].
    assert (Z : forall l : list (list bool), total l (fun _ => 0) = 0) by (intros l; unfold total; induction l; simpl; lra).
    rewrite Z. ring.
  - intros mask Hm. pose proof (masks_nonempty _ mask x Hm eq_refl) as Ne.
    rewrite max_of_cons, select_cut, max_of_cut, map_length by easy. cbn [length].
    destruct (select mask x) as [|b l]; [easy|]. cbn [length Nat.sub]. rewrite Nat.sub_0_r.
    destruct k; cbn [coefficient]; ring.
Qed.

(** The identity. *)
Theorem max_min : forall x k, alternating k x = nth k (sort x) 0.
Proof.
  intros x. remember (length x) as n eqn:Hn. revert x Hn; induction n as [|n IH]; intros [|a x] Hn k; try discriminate.
  - unfold alternating, total. simpl. now destruct k.
  - injection Hn as Hn. rewrite alternating_cons. cbn [sort]. rewrite nth_insert by apply sort_sorted.
    rewrite (IH x Hn), <- !sort_cut. destruct k; rewrite ?(IH (map (Rmax a) x)) by now rewrite map_length. all: ring.
Qed.
