
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
(* To the token [ask] every token but one looks like [other], or both are far below the top. *)
Definition alike (L : layer num) (V yes : nat) (t : list (list num)) (ask : list num) : bool :=
  forallb (fun h => let m := most L ask h t in let u := rowN L V (other yes) in
    let top := eqN (scoreN L ask h u) m in let values := vmN u (snd h) (d_v L) in
    forallb (fun v => Nat.eqb v yes || (let r := rowN L V v in let s := scoreN L ask h r in
      Bool.eqb (eqN s m) top && hardN (natN (Nat.sqrt (d_k L))) m s && sameN (vmN r (snd h) (d_v L)) values)) (seq 0 V))
    (heads L).
Definition check_count (L : layer num) (steep tol : num) (V n read yes c : nat) (y : num) : bool :=
  let x := map (unitN V) (ordered n yes c) in let t := tokensN L x in
  alike L V yes t (nth read t []) && check L steep tol read x [y].

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

Lemma tokens_exact x : length x = n -> tokensN L (map (unitN V) x) = map (rowN L V) x ++ S L.
Proof.
  intros Hx. unfold tokensN. f_equal. rewrite Hshift, Hscale, HP. unfold rowN. subst n.
  generalize (hd [] (shift L)) (hd [] (scale L)) (hd [] (P L)). intros sh sc p. clear.
  induction x as [|v x IH]; [easy|]. cbn [length repeat combine map]. now rewrite IH.
Qed.
Lemma inputs_exact x : inputs V x = map vals (map (unitN V) x).
Proof. unfold inputs. rewrite map_map. apply map_ext. intros. now rewrite unit_vals. Qed.
Lemma tokens_alike x : length x = n -> tokens (real L) (inputs V x) = map row x ++ map vals (S L).
Proof. intros Hx. now rewrite inputs_exact, <- vals_tokens, tokens_exact, map_app, map_map. Qed.

Lemma occurs_most v x : (occurs v x <= length x)%nat.
Proof. unfold occurs. induction x as [|u x IH]; [easy|]. cbn [count_occ length]. destruct (Nat.eq_dec u v); lia. Qed.

(* The order of tokens does not matter: those that are [yes] come first. *)
Lemma yes_first yes x : exists z, Permutation x (repeat yes (occurs yes x) ++ z) /\
  length z = (length x - occurs yes x)%nat /\ forall v, In v z -> In v x /\ v <> yes.
Proof.
  induction x as [|u x [z [P1 [P2 P3]]]]; [exists []; easy|]. unfold occurs in *. cbn [count_occ length].
  pose proof (occurs_most yes x) as M. unfold occurs in M. destruct (Nat.eq_dec u yes) as [->|N].
  - exists z. split; [cbn; now constructor|]. split; [lia|]. intros v Hv. destruct (P3 v Hv). split; [now right|easy].
  - exists (u :: z). split; [rewrite P1 at 1; apply Permutation_middle|]. split; [cbn [length]; lia|].
    intros v [<-|Hv]; [split; [now left|easy]|]. destruct (P3 v Hv). split; [now right|easy].
Qed.
Lemma sum_permuted {A} (f : A -> R) a b : Permutation a b -> sum (map f a) = sum (map f b).
Proof. induction 1; cbn [map sum]; lra. Qed.
Lemma attend_sums {A} (f g : A -> R) t :
  attend (map f t) (map g t) = sum (map (fun r => exp (f r) * g r) t) / sum (map (fun r => exp (f r)) t).
Proof. unfold attend. rewrite map_map. f_equal. induction t as [|r t IH]; cbn; [easy|]. now rewrite IH. Qed.
Lemma head_permuted M t t' ask h : Permutation t t' -> head M t ask h = head M t' ask h.
Proof.
  intros H. destruct h as [[wq wk] wv]. unfold head. apply map_ext. intros c. rewrite !attend_sums.
  f_equal; now apply sum_permuted.
Qed.

Theorem count_sound steep tol read read' yes x y : steep = steepN L -> length x = n -> Forall (fun v => v < V)%nat x ->
  let x' := ordered n yes (occurs yes x) in check_count L steep tol V n read' yes (occurs yes x) y = true ->
  nth read (map row x ++ map vals (S L)) [] = nth read' (map row x' ++ map vals (S L)) [] ->
  Rabs (nth 0 (run (real L) read (inputs V x)) 0 - val y) <= val tol.
Proof.
  intros -> Hx HV x' H Ask. unfold check_count in H. fold x' in H. cbv zeta in H. apply andb_true_iff in H as [Al Ch].
  assert (Hx' : length x' = n).
  { unfold x', ordered. rewrite app_length, !repeat_length. pose proof (occurs_most yes x). lia. }
  pose proof (tokens_alike x' Hx') as T. rewrite inputs_exact, <- vals_tokens in T. pose proof (tokens_exact x' Hx') as TN.
  set (t := tokensN L (map (unitN V) x')) in *. set (ask := nth read' t []) in *.
  destruct (yes_first yes x) as [z [P1 [P2 P3]]].
  assert (Run : run (real L) read (inputs V x) = behind (real L) (flat_map (head (real L)
    (map row (repeat yes (occurs yes x) ++ z) ++ map vals (S L)) (vals ask)) (heads (real L)))).
  { unfold run. cbv zeta. rewrite tokens_alike by easy. f_equal.
    assert (E : @nth vec read (map row x ++ map vals (S L)) [] = vals ask).
    { etransitivity; [exact Ask|]. rewrite <- T. unfold ask. change (@nil R) with (vals []). apply map_nth. }
    rewrite E, !flat_map_concat_map. f_equal. apply map_ext. intros h. apply head_permuted, Permutation_app_tail.
    now apply Permutation_map. }
  assert (K : Forall2 (fun a b => Rabs (a - val b) <= val tol) (run (real L) read (inputs V x)) [y]).
  2: { inversion K as [|a b l m B D]; subst. exact B. }
  rewrite Run. apply (check_close L tol read' (map (unitN V) x') [y] _ Ch). fold t. fold ask. intros h Hh.
  pose proof Ch as F. unfold check in F. apply andb_true_iff in F as [F _]. apply andb_true_iff in F as [_ F].
  rewrite forallb_forall in F. fold t ask in F.
  assert (G : fst (headN L (natN (Nat.sqrt (d_k L))) t ask h) = true) by (apply F; now apply in_map).
  pose proof (stands_self L (Nat.sqrt (d_k L)) t ask h G) as Self.
  unfold alike in Al. rewrite forallb_forall in Al. specialize (Al h Hh). cbv zeta in Al. rewrite forallb_forall in Al.
  set (m := most L ask h t) in *. clearbody m ask. rewrite TN in Self |- *.
  rewrite map_app in Self. unfold x', ordered in Self |- *. rewrite !map_app, <- !app_assoc in *. rewrite map_map in Self.
  assert (Split : forall a b c d, length a = length c ->
    Forall2 (stands L (Nat.sqrt (d_k L)) ask h m) (a ++ b) (c ++ d) ->
    Forall2 (stands L (Nat.sqrt (d_k L)) ask h m) a c /\ Forall2 (stands L (Nat.sqrt (d_k L)) ask h m) b d).
  { clear. induction a as [|x a IH]; intros b [|u c] d E F; try discriminate; cbn in *; [easy|].
    inversion F; subst. destruct (IH b c d ltac:(now injection E) ltac:(easy)). split; [now constructor|easy]. }
  apply Split in Self as [S1 S2]; [|now rewrite !map_length]. rewrite map_map in S2.
  apply Split in S2 as [S2 S3]; [|now rewrite !map_length].
  apply Forall2_app; [exact S1|]. apply Forall2_app; [|exact S3].
  rewrite Hx in P2. rewrite <- P2. clear - P3 Al HV. induction z as [|v z IH]; [constructor|]. cbn [length repeat map].
  constructor; [|apply IH; intros; apply P3; now right].
  destruct (P3 v (or_introl eq_refl)) as [Iv Nv]. rewrite Forall_forall in HV. specialize (HV v Iv). specialize (Al v).
  rewrite in_seq in Al. specialize (Al ltac:(lia)). rewrite (proj2 (Nat.eqb_neq v yes) Nv) in Al. cbn [orb] in Al.
  apply andb_true_iff in Al as [Al A3]. apply andb_true_iff in Al as [A1 A2]. apply eqb_prop in A1.
  apply same_vals in A3. rewrite vals_vm in A3. apply hard_val in A2. rewrite score_val in A2.
  unfold stands, row. rewrite <- A1. split; [exact A2|exact A3].
Qed.
End Tokens.
