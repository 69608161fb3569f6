
(** ** Sequences of tokens: with no codes of positions, only how often a token occurs counts *)

Definition unit_vector (V v : nat) : vec := map (fun u => if Nat.eqb u v then 1 else 0) (seq 0 V).
Definition inputs (V : nat) (x : list nat) : mat := map (unit_vector V) x.
Definition occurs (v : nat) (x : list nat) : nat := count_occ Nat.eq_dec x v.

Definition unitN (V v : nat) : list num := map (fun u => if Nat.eqb u v then (1, 0)%Z else zero) (seq 0 V).
Definition rowN (L : layer num) (V v : nat) : list num :=
  tokenN L (unitN V v) (hd [] (shift L)) (hd [] (scale L)) (hd [] (P L)).
Definition other (yes : nat) : nat := if Nat.eqb yes 0 then 1%nat else 0%nat.
Definition either (yes v : nat) : nat := if Nat.eqb v yes then yes else other yes.
Definition ordered (n yes c : nat) : list nat := repeat yes c ++ repeat (other yes) (n - c).
Definition sameN (a b : list num) : bool := agree zero zero a b.
(* All tokens but one look alike to the token [ask]. *)
Definition alike (L : layer num) (V yes : nat) (ask : list num) : bool :=
  forallb (fun v => let r := rowN L V v in let r' := rowN L V (either yes v) in
    forallb (fun '(wq, wk, wv) => let q := vmN ask wq (d_k L) in
      eqN (dotN q (vmN r wk (d_k L))) (dotN q (vmN r' wk (d_k L))) && sameN (vmN r wv (d_v L)) (vmN r' wv (d_v L)))
      (heads L)) (seq 0 V).

Lemma unit_vals V v : vals (unitN V v) = unit_vector V v.
Proof.
  unfold unitN, unit_vector, vals. rewrite map_map. apply map_ext. intros u. destruct (Nat.eqb u v); [|apply val_zero].
  unfold val. cbn. ring.
Qed.
Lemma same_vals a b : sameN a b = true -> vals a = vals b.
Proof.
  unfold sameN. revert b; induction a as [|x a IH]; intros [|y b] H; try easy. cbn [agree] in H.
  apply andb_true_iff in H as [H T]. cbn [vals map]. fold (vals a) (vals b). rewrite (IH b T). f_equal.
  apply le_val in H. rewrite val_add, val_abs, val_add, val_opp, !val_zero in H.
  pose proof (Rabs_pos (val x + - val y)). destruct (Req_dec (val x + - val y) 0); [lra|].
  pose proof (Rabs_pos_lt (val x + - val y) ltac:(easy)). lra.
Qed.

Section Tokens.
Variables (L : layer num) (V n : nat).
Hypothesis Hshift : shift L = repeat (hd [] (shift L)) n.
Hypothesis Hscale : scale L = repeat (hd [] (scale L)) n.
Hypothesis HP : P L = repeat (hd [] (P L)) n.
Let row v := vals (rowN L V v).

Lemma tokens_alike x : length x = n -> tokens (real L) (inputs V x) = map row x ++ map vals (S L).
Proof.
  intros Hx. unfold inputs. rewrite (map_ext (unit_vector V) (fun v => vals (unitN V v))) by (intros; now rewrite unit_vals).
  rewrite <- (map_map (unitN V) vals), <- vals_tokens. unfold tokensN. rewrite map_app. f_equal.
  rewrite Hshift, Hscale, HP. unfold row, rowN. subst n.
  generalize (hd [] (shift L)) (hd [] (scale L)) (hd [] (P L)). intros sh sc p. clear.
  induction x as [|v x IH]; [easy|]. cbn [length repeat combine map]. now rewrite IH.
Qed.

Lemma sum_app a b : sum (a ++ b) = sum a + sum b.
Proof. induction a as [|x a IH]; cbn; [ring|]. rewrite IH. ring. Qed.
Lemma sum_repeat (F : nat -> R) v c : sum (map F (repeat v c)) = INR c * F v.
Proof. induction c as [|c IH]; [cbn; ring|]. rewrite S_INR. cbn [repeat map sum]. rewrite IH. ring. Qed.
Lemma occurs_most v x : (occurs v x <= length x)%nat.
Proof. unfold occurs. induction x as [|u x IH]; [easy|]. cbn. destruct (Nat.eq_dec u v); lia. Qed.
Lemma sum_counts (F : nat -> R) yes x : (forall v, In v x -> F v = F (either yes v)) ->
  sum (map F x) = sum (map F (ordered (length x) yes (occurs yes x))).
Proof.
  intros H. unfold ordered. rewrite map_app, sum_app, !sum_repeat, minus_INR by apply occurs_most. unfold occurs.
  induction x as [|v x IH]; [cbn; ring|]. cbn [map sum]. rewrite IH by (intros; apply H; now right).
  rewrite (H v (or_introl eq_refl)). unfold either. cbn [count_occ length]. rewrite S_INR.
  destruct (Nat.eq_dec v yes) as [->|N].
  - rewrite Nat.eqb_refl, S_INR. ring.
  - rewrite (proj2 (Nat.eqb_neq v yes)) by easy. ring.
Qed.
Lemma attend_sums {A} (f g : A -> R) t :
  attend (map f t) (map g t) = sum (map (fun r => exp (f r) * g r) t) / sum (map (fun r => exp (f r)) t).
Proof.
  unfold attend. rewrite map_map. f_equal. induction t as [|r t IH]; cbn; [easy|]. now rewrite IH.
Qed.

Lemma run_ordered read read' ask yes x : length x = n -> Forall (fun v => v < V)%nat x -> alike L V yes ask = true ->
  let x' := ordered n yes (occurs yes x) in
  @nth vec read (map row x ++ map vals (S L)) [] = vals ask -> @nth vec read' (map row x' ++ map vals (S L)) [] = vals ask ->
  run (real L) read (inputs V x) = run (real L) read' (inputs V x').
Proof.
  intros Hx HV Ha x' A A'. unfold run. cbv zeta.
  assert (Hx' : length x' = n).
  { unfold x', ordered. rewrite app_length, !repeat_length. pose proof (occurs_most yes x). lia. }
  rewrite !tokens_alike, A, A' by easy. f_equal. cbn [heads real]. rewrite !flat_map_concat_map, !map_map. f_equal.
  apply map_ext_in. intros [[wq wk] wv] Hh. unfold head. cbn [d_k d_v real].
  assert (E : forall v, In v x -> vm (row v) (map vals wv) (d_v L) = vm (row (either yes v)) (map vals wv) (d_v L) /\
    dot (vm (vals ask) (map vals wq) (d_k L)) (vm (row v) (map vals wk) (d_k L))
    = dot (vm (vals ask) (map vals wq) (d_k L)) (vm (row (either yes v)) (map vals wk) (d_k L))).
  { intros v Hv. unfold alike in Ha. rewrite forallb_forall in Ha. rewrite Forall_forall in HV. specialize (HV v Hv).
    specialize (Ha v). rewrite in_seq in Ha. specialize (Ha ltac:(lia)). cbv zeta in Ha. rewrite forallb_forall in Ha.
    specialize (Ha _ Hh). cbv zeta in Ha. apply andb_true_iff in Ha as [S1 S2].
    apply eq_val in S1. apply same_vals in S2. rewrite !vals_dot, !vals_vm in S1. rewrite !vals_vm in S2. easy. }
  apply map_ext. intros c. rewrite !attend_sums, !map_app, !sum_app.
  f_equal; f_equal.
  - rewrite !map_map. subst n. apply sum_counts. intros v Hv. destruct (E v Hv) as [E1 E2]. now rewrite E1, E2.
  - rewrite !map_map. subst n. apply sum_counts. intros v Hv. destruct (E v Hv) as [E1 E2]. now rewrite E2.
Qed.
End Tokens.
