
(** ** Ranks: smooth maxima of all parts of a list, with signs *)

(* A number goes before the first that is not smaller. *)
Fixpoint insert (a : R) (l : vec) : vec :=
  match l with [] => [a] | c :: l' => if Rle_dec a c then a :: l else c :: insert a l' end.
Fixpoint sort (l : vec) : vec := match l with [] => [] | a :: l' => insert a (sort l') end.

(* The sum over all parts t of a list. *)
Fixpoint total (l : vec) (h : vec -> R) : R :=
  match l with [] => h [] | a :: l' => total l' h + total l' (fun t => h (a :: t)) end.
(* (-1)^(s-k) C(s, k), by Pascal's rule with signs; a part of s + 1 numbers has coefficient k s. *)
Fixpoint coefficient (k s : nat) : R :=
  match s with
  | O => match k with O => 1 | _ => 0 end
  | Datatypes.S s' => match k with O => 0 | Datatypes.S j => coefficient j s' end - coefficient k s'
  end.
Definition signed (k : nat) (t : vec) : R := match t with [] => 0 | _ :: t' => coefficient k (length t') end.
Definition soft (b : R) (t : vec) : R := attend (map (Rmult b) t) t.
Definition ranked (b : R) (k : nat) (l : vec) : R := total l (fun t => signed k t * soft b t).

Lemma total_ext l : forall g h, (forall t, g t = h t) -> total l g = total l h.
Proof. induction l as [|a l IH]; intros g h E; cbn [total]; [apply E|]. f_equal; apply IH; intros; apply E. Qed.
Lemma total_plus l : forall g h, total l (fun t => g t + h t) = total l g + total l h.
Proof. induction l as [|a l IH]; intros g h; cbn [total]; [easy|]. rewrite !IH. ring. Qed.
Lemma total_scale c l : forall h, total l (fun t => c * h t) = c * total l h.
Proof. induction l as [|a l IH]; intros h; cbn [total]; [easy|]. rewrite !IH. ring. Qed.

(* All ways to leave one number out, each with its weight. *)
Fixpoint without (w : R -> R) (l : vec) (g : vec -> R) : R :=
  match l with [] => 0 | a :: l' => w a * g l' + without w l' (fun r => g (a :: r)) end.

Lemma without_ext w l : forall g h, (forall t, g t = h t) -> without w l g = without w l h.
Proof. induction l as [|a l IH]; intros g h E; cbn [without]; [easy|]. rewrite E. f_equal. apply IH. intros; apply E. Qed.
Lemma without_plus w l : forall g h, without w l (fun r => g r + h r) = without w l g + without w l h.
Proof. induction l as [|a l IH]; intros g h; cbn [without]; [ring|]. rewrite IH. ring. Qed.

Lemma without_total w l : forall h,
  without w l (fun r => total r h) = total l (fun t => (sum (map w l) - sum (map w t)) * h t).
Proof.
  induction l as [|a l IH]; intros h; [cbn; ring|]. cbn [without total map sum]. rewrite without_plus, !IH.
  rewrite (total_ext l (fun t => (w a + sum (map w l) - sum (map w t)) * h t)
    (fun t => w a * h t + (sum (map w l) - sum (map w t)) * h t)) by (intros; ring).
  rewrite total_plus, total_scale.
  rewrite (total_ext l (fun t => (w a + sum (map w l) - (w a + sum (map w t))) * h (a :: t))
    (fun t => (sum (map w l) - sum (map w t)) * h (a :: t))) by (intros; ring). ring.
Qed.

Lemma without_below w l : (forall a, 0 <= w a) -> forall g B, (forall a r, Permutation l (a :: r) -> g r <= B a) ->
  without w l g <= sum (map (fun a => w a * B a) l).
Proof.
  intros Hw. induction l as [|a l IH]; intros g B H; cbn [without map sum]; [lra|]. apply Rplus_le_compat.
  - apply Rmult_le_compat_l; [apply Hw|]. now apply H.
  - apply IH. intros c r P. apply H. rewrite P. apply perm_swap.
Qed.
Lemma without_above w l : (forall a, 0 <= w a) -> forall g c, (forall a r, Permutation l (a :: r) -> c <= g r) ->
  c * sum (map w l) <= without w l g.
Proof.
  intros Hw. induction l as [|a l IH]; intros g c H; cbn [without map sum]; [lra|].
  pose proof (Rmult_le_compat_l (w a) c (g l) (Hw a) (H a l ltac:(easy))).
  enough (c * sum (map w l) <= without w l (fun r => g (a :: r))) by lra.
  apply IH. intros d r P. apply (H d). rewrite P. apply perm_swap.
Qed.

(* Signs cancel: sums over all parts that depend on lengths alone, and with one number of the part as a factor. *)
Lemma lengths_cancel l : forall k, total l (fun t => coefficient k (length t)) = if Nat.eqb k (length l) then 1 else 0.
Proof.
  induction l as [|a l IH]; intros k; [destruct k; easy|]. cbn [total length]. rewrite <- total_plus.
  destruct k as [|k].
  - rewrite (total_ext l _ (fun _ => 0 * 0)) by (intros; cbn [coefficient]; ring). rewrite total_scale. cbn. ring.
  - rewrite (total_ext l _ (fun t => coefficient k (length t))) by (intros; cbn [coefficient]; ring). apply IH.
Qed.
Lemma numbers_cancel (g : R -> R) l : forall k, (Datatypes.S k < length l)%nat -> total l (fun t => signed k t * sum (map g t)) = 0.
Proof.
  induction l as [|a l IH]; intros k Hk; [easy|]. cbn [total]. cbn [length] in Hk.
  rewrite (total_ext l (fun t => signed k (a :: t) * sum (map g (a :: t)))
    (fun t => g a * coefficient k (length t) + coefficient k (length t) * sum (map g t)))
    by (intros; cbn [signed map sum]; ring).
  rewrite total_plus, total_scale, lengths_cancel. destruct (Nat.eqb_spec k (length l)) as [->|_]; [lia|].
  rewrite Rmult_0_r, Rplus_0_l, <- total_plus.
  destruct k as [|k].
  - rewrite (total_ext l _ (fun _ => 0 * 0)); [rewrite total_scale; ring|].
    intros [|c t]; cbn [signed coefficient length map sum]; ring.
  - rewrite (total_ext l _ (fun t => signed k t * sum (map g t))); [apply IH; lia|].
    intros [|c t]; cbn [signed coefficient length map sum]; ring.
Qed.

(* The whole list alone is left where it has k + 1 numbers. *)
Lemma coefficient_small s : forall k, (s < k)%nat -> coefficient k s = 0.
Proof. induction s as [|s IH]; intros [|k] H; try lia; [easy|]. cbn [coefficient]. rewrite !IH by lia. ring. Qed.
Lemma coefficient_same s : coefficient s s = 1.
Proof. induction s as [|s IH]; [easy|]. cbn [coefficient]. rewrite IH, coefficient_small by lia. ring. Qed.
Lemma total_short l : forall h, (forall t, (length t < length l)%nat -> h t = 0) -> total l h = h l.
Proof.
  induction l as [|a l IH]; intros h H; [easy|]. cbn [total]. cbn [length] in H.
  assert (E : total l (fun t => h (a :: t)) = h (a :: l)).
  { apply (IH (fun t => h (a :: t))). intros t Ht. apply H. cbn. lia. }
  rewrite E, (total_ext l h (fun t => if Nat.leb (length t) (length l) then 0 else h t)).
  2: { intros t. destruct (Nat.leb_spec (length t) (length l)); [apply H; lia|easy]. }
  rewrite IH; rewrite ?Nat.leb_refl; [ring|]. intros t Ht. now rewrite (proj2 (Nat.leb_le _ _)) by lia.
Qed.

Section Rank.
Variables (b : R) (k : nat) (low up : R).
Hypothesis Hb : 0 < b.
Let w a := exp (b * a).
Let Hw a : 0 <= w a.
Proof. apply Rlt_le, exp_pos. Qed.

Lemma soft_sum t : sum (map w t) * soft b t = sum (map (fun a => w a * a) t).
Proof.
  destruct t as [|a t]; [cbn; ring|]. unfold soft, attend. rewrite map_map. fold w.
  assert (0 < sum (map w (a :: t))).
  { cbn [map sum]. pose proof (exp_pos (b * a)). pose proof (sum_exp_pos (map (Rmult b) t)) as P. rewrite map_map in P.
    fold w in P. unfold w at 1. lra. }
  assert (E : forall t, dot (map w t) t = sum (map (fun a => w a * a) t)).
  { clear. induction t as [|a t IH]; cbn; [easy|]. now rewrite IH. }
  rewrite E. field. lra.
Qed.

(* The largest number drawn first: the law of Plackett and Luce. *)
Lemma first_drawn l : (Datatypes.S k < length l)%nat -> sum (map w l) * ranked b k l = without w l (ranked b k).
Proof.
  intros H. unfold ranked. rewrite without_total, <- total_scale.
  rewrite (total_ext l (fun t => (sum (map w l) - sum (map w t)) * (signed k t * soft b t))
    (fun t => sum (map w l) * (signed k t * soft b t) + -1 * (signed k t * sum (map (fun a => w a * a) t)))).
  - rewrite total_plus, (total_scale (-1)), numbers_cancel by easy. ring.
  - intros t. rewrite <- soft_sum. ring.
Qed.

Lemma whole l : length l = Datatypes.S k -> ranked b k l = soft b l.
Proof.
  intros H. unfold ranked. rewrite total_short.
  - destruct l as [|a l]; [easy|]. injection H as H. cbn [signed]. rewrite H, coefficient_same. ring.
  - intros [|a t] Ht; cbn [signed length] in *; [ring|]. rewrite coefficient_small by lia. ring.
Qed.

Definition below (v : R) (l : vec) : nat := length (filter (fun a => if Rle_dec a v then true else false) l).
Definition above (v : R) (l : vec) : nat := length (filter (fun a => if Rle_dec v a then true else false) l).
Lemma filter_same (p : R -> bool) l m : Permutation l m -> length (filter p l) = length (filter p m).
Proof. induction 1; cbn [filter]; repeat match goal with |- context [p ?a] => destruct (p a) end; cbn; lia. Qed.
Lemma below_cons v a l : below v (a :: l) = ((if Rle_dec a v then 1 else 0) + below v l)%nat.
Proof. unfold below. cbn [filter]. now destruct (Rle_dec a v). Qed.
Lemma above_cons v a l : above v (a :: l) = ((if Rle_dec v a then 1 else 0) + above v l)%nat.
Proof. unfold above. cbn [filter]. now destruct (Rle_dec v a). Qed.

Lemma largest (l : vec) : l <> [] -> exists M, In M l /\ forall a, In a l -> a <= M.
Proof.
  induction l as [|a [|c l] IH]; intros N; [easy|exists a; split; [now left|intros d [->|[]]; lra]|].
  destruct (IH ltac:(easy)) as [M [I L]]. destruct (Rle_dec a M).
  - exists M. split; [now right|]. intros d [<-|D]; auto.
  - exists a. split; [now left|]. intros d [<-|D]; [lra|]. specialize (L d D). lra.
Qed.
Lemma below_in v l : (0 < above v l)%nat -> exists a, In a l /\ v <= a.
Proof.
  induction l as [|a l IH]; [cbn; lia|]. rewrite above_cons. destruct (Rle_dec v a) as [L|_]; intros H.
  - exists a. split; [now left|easy].
  - destruct (IH ltac:(lia)) as [c [I L]]. exists c. split; [now right|easy].
Qed.
Lemma below_all v l : (length l <= below v l)%nat -> forall a, In a l -> a <= v.
Proof.
  assert (Q : forall l, (below v l <= length l)%nat).
  { induction l0 as [|a l0 IH]; [easy|]. rewrite below_cons. cbn. destruct (Rle_dec a v); lia. }
  induction l as [|a l IH]; [easy|]. rewrite below_cons. specialize (Q l). cbn [length].
  destruct (Rle_dec a v); [|lia]. intros H c [<-|C]; [easy|]. apply IH; [lia|easy].
Qed.
Lemma next v l : (below v l < length l)%nat -> exists v', In v' l /\ v < v' /\ forall a, In a l -> v < a -> v' <= a.
Proof.
  induction l as [|a l IH]; [cbn; lia|]. rewrite below_cons. cbn [length]. intros H.
  destruct (le_lt_dec (length l) (below v l)) as [A|N].
  - pose proof (below_all v l A) as D. destruct (Rle_dec a v) as [|G]; [lia|]. exists a. split; [now left|]. split; [lra|].
    intros c [<-|C] Hc; [lra|]. specialize (D c C). lra.
  - destruct (IH N) as [v' [I [L F]]]. destruct (Rlt_dec v a) as [G|G]; [destruct (Rle_dec v' a)|].
    + exists v'. split; [now right|]. split; [easy|]. intros c [<-|C]; auto.
    + exists a. split; [now left|]. split; [easy|]. intros c [<-|C] Hc; [lra|]. specialize (F c C Hc). lra.
    + exists v'. split; [now right|]. split; [easy|]. intros c [<-|C] Hc; [lra|auto].
Qed.
Lemma below_more v v' l : v < v' -> In v' l -> (Datatypes.S (below v l) <= below v' l)%nat.
Proof.
  intros L. assert (Q : forall l, (below v l <= below v' l)%nat).
  { induction l0 as [|a l0 IH]; [easy|]. rewrite !below_cons. destruct (Rle_dec a v), (Rle_dec a v'); try lia. lra. }
  induction l as [|a l IH]; [easy|]. rewrite !below_cons. intros [->|I].
  - specialize (Q l). destruct (Rle_dec v' v), (Rle_dec v' v'); try lra. lia.
  - specialize (IH I). destruct (Rle_dec a v), (Rle_dec a v'); try lia. lra.
Qed.

(* Weight at or below v, and the rest. *)
Let part v (l : vec) := sum (map (fun a => if Rle_dec a v then w a else 0) l).
Lemma part_below v l : part v l <= INR (below v l) * w v.
Proof.
  unfold part. induction l as [|a l IH]; [cbn; lra|]. rewrite below_cons, plus_INR. cbn [map sum].
  destruct (Rle_dec a v) as [L|_]; [|simpl INR; lra].
  assert (w a <= w v). { unfold w. destruct L as [L| ->]; [|lra]. apply Rlt_le, exp_increasing, Rmult_lt_compat_l; lra. }
  simpl INR. lra.
Qed.
Lemma part_rest v v' l : v < v' -> In v' l -> part v l + w v' <= sum (map w l).
Proof.
  intros L. assert (Q : forall l, part v l <= sum (map w l)).
  { unfold part. induction l0 as [|a l0 IH]; cbn [map sum]; [lra|]. pose proof (Hw a). destruct (Rle_dec a v); lra. }
  unfold part in *. induction l as [|a l IH]; [easy|]. cbn [map sum]. intros [->|I].
  - specialize (Q l). destruct (Rle_dec v' v); lra.
  - specialize (IH I). pose proof (Hw a). destruct (Rle_dec a v); lra.
Qed.
Lemma weight_pos l : l <> [] -> 0 < sum (map w l).
Proof.
  destruct l as [|a l]; [easy|]. intros _. cbn [map sum]. pose proof (exp_pos (b * a)).
  assert (0 <= sum (map w l)). { clear - Hw. induction l as [|c l IH]; cbn [map sum]; [lra|]. pose proof (Hw c). lra. }
  unfold w at 1. lra.
Qed.

Hypothesis Hlow : INR k <= b * low * exp (b * low + 1).
Lemma rank_low n : forall l v, length l = (n + Datatypes.S k)%nat -> (Datatypes.S n <= above v l)%nat -> v - low <= ranked b k l.
Proof.
  induction n as [|n IH]; intros l v Hl Ha.
  - rewrite whole by easy. destruct (largest l ltac:(now intros ->)) as [M [I L]].
    destruct (below_in v l ltac:(lia)) as [a [Ia La]]. specialize (L a Ia) as LM.
    pose proof (softmax_max b low M l Hb I L) as Q. rewrite Hl in Q. unfold soft. replace (INR (0 + Datatypes.S k) - 1) with (INR k) in Q.
    + specialize (Q Hlow). lra.
    + change (0 + Datatypes.S k)%nat with (Datatypes.S k). rewrite S_INR. ring.
  - pose proof (weight_pos l ltac:(now intros ->)). apply Rmult_le_reg_l with (sum (map w l)); [easy|].
    rewrite first_drawn by lia. rewrite Rmult_comm. apply without_above; [easy|]. intros a r P.
    apply IH; [apply Permutation_length in P; cbn in P; lia|].
    pose proof (filter_same (fun a => if Rle_dec v a then true else false) _ _ P) as E. fold (above v l) (above v (a :: r)) in E.
    rewrite above_cons in E. destruct (Rle_dec v a); lia.
Qed.

Hypothesis Hup : INR (Datatypes.S k) <= b * up * exp (b * up + 1).
Hypothesis Hpos : 0 <= up.
Lemma rank_step v v' A : v < v' -> 0 <= A <= INR (Datatypes.S k) * w v -> (v' - v) * A <= up * (A + w v').
Proof.
  intros L [A0 A1]. pose proof (Hw v). pose proof (exp_pos (b * v')) as P. fold (w v') in P.
  assert (0 <= up * w v') by (apply Rmult_le_pos; lra).
  destruct (Rle_dec (v' - v) up) as [S|B].
  - assert ((v' - v) * A <= up * A) by (apply Rmult_le_compat_r; lra). lra.
  - enough ((v' - v - up) * A <= up * w v') by lra.
    apply Rle_trans with ((v' - v - up) * (INR (Datatypes.S k) * w v)); [apply Rmult_le_compat_l; lra|].
    replace (w v') with (w v * (exp (b * (v' - v) - b * up - 1) * exp (b * up + 1)))
      by (unfold w; rewrite <- !exp_plus; f_equal; ring).
    pose proof (exp_ineq1_le (b * (v' - v) - b * up - 1)) as Q. pose proof (exp_pos (b * up + 1)).
    assert (0 < b * (v' - v - up)) by (apply Rmult_lt_0_compat; lra).
    apply Rle_trans with (w v * ((v' - v - up) * (b * up * exp (b * up + 1)))).
    + rewrite <- Rmult_assoc, (Rmult_comm _ (w v)). apply Rmult_le_compat_l; [easy|]. apply Rmult_le_compat_l; lra.
    + replace (w v * ((v' - v - up) * (b * up * exp (b * up + 1))))
        with (up * w v * exp (b * up + 1) * (b * (v' - v - up))) by ring.
      replace (up * (w v * (exp (b * (v' - v) - b * up - 1) * exp (b * up + 1))))
        with (up * w v * exp (b * up + 1) * exp (b * (v' - v) - b * up - 1)) by ring.
      apply Rmult_le_compat_l; [|lra]. apply Rmult_le_pos; [apply Rmult_le_pos; lra|lra].
Qed.
Lemma rank_up n : forall l v, length l = (n + Datatypes.S k)%nat -> (Datatypes.S k <= below v l)%nat -> ranked b k l <= v + INR n * up.
Proof.
  induction n as [|n IH]; intros l v Hl Ha.
  - rewrite whole by easy. destruct (largest l ltac:(now intros ->)) as [M [I L]].
    pose proof (below_all v l ltac:(lia) M I).
    pose proof (softmax_max b low M l Hb I L) as Q. rewrite Hl in Q. unfold soft. simpl INR.
    replace (INR (0 + Datatypes.S k) - 1) with (INR k) in Q; [specialize (Q Hlow); lra|].
    change (0 + Datatypes.S k)%nat with (Datatypes.S k). rewrite S_INR. ring.
  - pose proof (weight_pos l ltac:(now intros ->)) as W. apply Rmult_le_reg_l with (sum (map w l)); [easy|].
    rewrite first_drawn by lia.
    assert (Left : forall a r, Permutation l (a :: r) -> length r = (n + Datatypes.S k)%nat /\ below v l = below v (a :: r)).
    { intros a r P. split; [apply Permutation_length in P; cbn in P; lia|]. exact (filter_same _ _ _ P). }
    destruct (le_lt_dec (Datatypes.S (Datatypes.S k)) (below v l)) as [Many|Few].
    + eapply Rle_trans; [apply (without_below w l Hw _ (fun _ => v + INR n * up))|].
      * intros a r P. destruct (Left a r P) as [Hr E]. apply IH; [easy|]. rewrite below_cons in E. destruct (Rle_dec a v); lia.
      * assert (E : forall c m, sum (map (fun a => w a * c) m) = sum (map w m) * c).
        { clear. intros c m. induction m as [|a m IH]; cbn [map sum]; [ring|]. rewrite IH. ring. }
        rewrite E. apply Rmult_le_compat_l; [lra|]. rewrite S_INR. lra.
    + destruct (next v l ltac:(lia)) as [v' [I [L F]]].
      eapply Rle_trans; [apply (without_below w l Hw _ (fun a => (if Rle_dec a v then v' else v) + INR n * up))|].
      * intros a r P. destruct (Left a r P) as [Hr E]. rewrite below_cons in E. destruct (Rle_dec a v) as [B|B].
        -- apply IH; [easy|]. apply (Permutation_in _ P) in I as [->|I]; [lra|]. pose proof (below_more v v' r L I). lia.
        -- apply IH; [easy|]. lia.
      * assert (E : forall c m, sum (map (fun a => w a * ((if Rle_dec a v then v' else v) + c)) m)
          = sum (map w m) * (v + c) + (v' - v) * part v m).
        { clear. unfold part. intros c m. induction m as [|a m IH]; cbn [map sum]; [ring|]. rewrite IH. destruct (Rle_dec a v); ring. }
        rewrite E, S_INR. pose proof (part_below v l) as PB. pose proof (part_rest v v' l L I) as PR.
        replace (below v l) with (Datatypes.S k) in PB by lia.
        assert (0 <= part v l).
        { clear - Hw. unfold part. induction l as [|a m IH]; cbn [map sum]; [lra|]. pose proof (Hw a). destruct (Rle_dec a v); lra. }
        pose proof (rank_step v v' (part v l) L ltac:(lra)).
        assert (up * (part v l + w v') <= up * sum (map w l)) by (apply Rmult_le_compat_l; lra). lra.
Qed.
End Rank.

(* Sorted lists. *)
Lemma insert_permutation a l : Permutation (insert a l) (a :: l).
Proof. induction l as [|c l IH]; [easy|]. cbn [insert]. destruct (Rle_dec a c); [easy|]. rewrite IH. apply perm_swap. Qed.
Lemma sort_permutation l : Permutation (sort l) l.
Proof. induction l as [|a l IH]; [easy|]. cbn [sort]. rewrite insert_permutation. now constructor. Qed.
Lemma insert_sorted a l : StronglySorted Rle l -> StronglySorted Rle (insert a l).
Proof.
  induction 1 as [|c l H IH Hc]; [repeat constructor|]. cbn [insert]. destruct (Rle_dec a c) as [L|G].
  - constructor; [now constructor|]. constructor; [easy|]. eapply Forall_impl; [|exact Hc]. intros d Hd. cbv beta in *. lra.
  - constructor; [easy|]. rewrite insert_permutation. constructor; [lra|easy].
Qed.
Lemma sort_sorted l : StronglySorted Rle (sort l).
Proof. induction l as [|a l IH]; [constructor|]. now apply insert_sorted. Qed.
Lemma sorted_counts s : StronglySorted Rle s -> forall k, (k < length s)%nat ->
  (Datatypes.S k <= below (nth k s 0%R) s)%nat /\ (length s <= k + above (nth k s 0%R) s)%nat.
Proof.
  induction 1 as [|c s H IH Hc]; intros k Hk; [easy|]. rewrite below_cons, above_cons. cbn [length] in *.
  destruct k as [|k]; cbn [nth].
  - destruct (Rle_dec c c); [|lra]. assert (E : length s = above c s); [|lia].
    clear - Hc. induction Hc as [|d s L _ IH]; [easy|]. rewrite above_cons. cbn. destruct (Rle_dec c d); [lia|lra].
  - destruct (IH k ltac:(lia)). rewrite Forall_forall in Hc. pose proof (Hc (nth k s 0) ltac:(apply nth_In; lia)).
    destruct (Rle_dec c (nth k s 0)); [|lra]. lia.
Qed.

(* The k-th smallest (from 0) of m + 1 + k numbers. *)
Theorem rank b k low up m l : 0 < b -> length l = (m + Datatypes.S k)%nat -> INR k <= b * low * exp (b * low + 1) ->
  0 <= up -> INR (Datatypes.S k) <= b * up * exp (b * up + 1) ->
  - low <= ranked b k l - nth k (sort l) 0 <= INR m * up.
Proof.
  intros Hb Hl H1 H0 H2. pose proof (sort_permutation l) as P. pose proof (Permutation_length P) as E.
  destruct (sorted_counts (sort l) (sort_sorted l) k ltac:(lia)) as [B A].
  set (v := nth k (sort l) 0) in *.
  assert (below v (sort l) = below v l) by exact (filter_same _ _ _ P).
  assert (above v (sort l) = above v l) by exact (filter_same _ _ _ P).
  pose proof (rank_low b k low Hb H1 m l v Hl ltac:(lia)).
  pose proof (rank_up b k low up Hb H1 H2 H0 m l v Hl ltac:(lia)). lra.
Qed.

(* Sorting and an increasing map can be exchanged. *)
Lemma sort_affine p q l : 0 < p -> sort (map (fun a => p * a + q) l) = map (fun a => p * a + q) (sort l).
Proof.
  intros Hp. induction l as [|a l IH]; [easy|]. cbn [map sort]. rewrite IH. generalize (sort l) as s. clear IH.
  induction s as [|c s IH]; [easy|]. cbn [map insert]. destruct (Rle_dec a c) as [L|G], (Rle_dec (p * a + q) (p * c + q)) as [L'|G'].
  - easy.
  - exfalso. apply G'. apply Rplus_le_compat_r, Rmult_le_compat_l; lra.
  - exfalso. apply Rlt_not_le in L'; [easy|]. apply Rplus_lt_compat_r, Rmult_lt_compat_l; lra.
  - cbn [map]. now rewrite IH.
Qed.
Lemma affine_nth p q k l : 0 < p -> (k < length l)%nat ->
  nth k (sort (map (fun a => p * a + q) l)) 0 = p * nth k (sort l) 0 + q.
Proof.
  intros Hp Hk. rewrite sort_affine by easy.
  rewrite (nth_indep _ 0 (p * 0 + q)) by (rewrite map_length, (Permutation_length (sort_permutation l)); easy).
  apply (map_nth (fun a => p * a + q)).
Qed.
