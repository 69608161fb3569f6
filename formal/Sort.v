(** * Sorting n numbers in one layer

    A max-head for each of the 2^n - 1 non-empty subsets of the tokens, and the maximum-minimums identity in W^O. A token outside
    of the subset gets a key 2 beta lower, so that it counts for no more than a token inside. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Assemble Differences SoftMax Maximum MaxMin.
Import ListNotations.
Open Scope R_scope.
Local Notation S := Datatypes.S.

(** ** The maximum of some of the tokens *)

Definition mask_key (beta : R) (mask : list bool) : vec := map (fun b : bool => if b then 0 else - (2 * beta)) mask.
Definition biased (beta : R) (mask : list bool) (x : vec) : vec :=
  map (fun '(v, c) => v * beta + c) (combine x (mask_key beta mask)).

Section Subset.
Variables beta M : R.
Hypothesis Hbeta : 0 < beta.
Hypothesis HM : 0 <= M <= 1.
Let cost := exp (beta * M) / (exp 1 * beta).

(** What one token can move the average away from M: selected, *)
Lemma inside v : 0 <= v <= M -> Rabs (M - v) * exp (v * beta + 0) <= cost.
Proof.
  intros H. rewrite Rabs_right by lra. pose proof (t_exp (beta * (M - v))) as T.
  replace (exp (v * beta + 0)) with (exp (beta * M) * exp (- (beta * (M - v)))) by (rewrite <- exp_plus; f_equal; ring).
  pose proof (exp_pos (beta * M)) as P. pose proof (exp_pos 1). unfold cost.
  apply Rmult_le_reg_r with beta; [easy|].
  replace ((M - v) * (exp (beta * M) * exp (- (beta * (M - v)))) * beta)
    with (exp (beta * M) * (beta * (M - v) * exp (- (beta * (M - v))))) by ring.
  replace (exp (beta * M) / (exp 1 * beta) * beta) with (exp (beta * M) * / exp 1) by (field; lra).
  apply Rmult_le_compat_l; [lra|]. now rewrite <- exp_Ropp.
Qed.

(** or not. *)
Lemma outside v : 0 <= v <= 1 -> Rabs (M - v) * exp (v * beta + - (2 * beta)) <= cost.
Proof.
  intros H. assert (A : Rabs (M - v) <= 1) by (apply Rabs_le; lra). pose proof (Rabs_pos (M - v)).
  assert (B : exp (v * beta + - (2 * beta)) <= exp (- beta)).
  { pose proof (Rmult_le_compat_r beta v 1 ltac:(lra) ltac:(lra)).
    destruct (Req_dec (v * beta + - (2 * beta)) (- beta)) as [->|N]; [lra|]. left. apply exp_increasing. lra. }
  pose proof (exp_pos (v * beta + - (2 * beta))). pose proof (exp_pos 1).
  apply Rle_trans with (1 * exp (- beta)); [apply Rmult_le_compat; lra|]. rewrite Rmult_1_l.
  pose proof (t_exp beta) as T. replace (-1) with (- (1)) in T by ring. rewrite (exp_Ropp 1) in T.
  assert (E : 1 <= exp (beta * M)).
  { pose proof (exp_ineq1_le (beta * M)). pose proof (Rmult_le_pos beta M ltac:(lra) ltac:(lra)). lra. }
  apply Rmult_le_reg_l with beta; [easy|]. eapply Rle_trans; [exact T|]. unfold cost.
  replace (beta * (exp (beta * M) / (exp 1 * beta))) with (exp (beta * M) * / exp 1) by (field; lra).
  rewrite <- (Rmult_1_l (/ exp 1)) at 1. apply Rmult_le_compat_r; [left; now apply Rinv_0_lt_compat|easy].
Qed.

Definition gap (mask : list bool) (x : vec) : R :=
  M * sum (map exp (biased beta mask x)) - dot (map exp (biased beta mask x)) x.

(** All tokens; and all tokens when one of those selected has the value M. *)
Lemma gap_bound x : forall mask, length mask = length x -> Forall (fun v => 0 <= v <= 1) x ->
  (forall v, In v (select mask x) -> v <= M) ->
  Rabs (gap mask x) <= INR (length x) * cost /\
  (In M (select mask x) -> Rabs (gap mask x) <= (INR (length x) - 1) * cost /\ exp (beta * M) <= sum (map exp (biased beta mask x))).
Proof.
  unfold gap. induction x as [|v x IH]; intros [|b mask] Hl Hx Hle; try discriminate.
  - cbn. rewrite Rmult_0_r, Rminus_0_r, Rabs_R0. split; [lra|easy].
  - inversion Hx; subst. destruct (IH mask) as [A B]; [now injection Hl|easy|intros w Hw; apply Hle; cbn; destruct b; [now right|easy]|].
    replace (length (v :: x)) with (S (length x)) by easy. rewrite S_INR. unfold biased, mask_key in *. cbn [map combine sum dot].
    set (e := exp (v * beta + _)) in *. assert (Pe : 0 < e) by apply exp_pos.
    set (Z := sum _) in *. set (N := dot _ x) in *.
    assert (T : Rabs (M - v) * e <= cost).
    { unfold e. destruct b; [apply inside|now apply outside]. split; [easy|]. apply Hle. now left. }
    assert (PZ : 0 <= Z).
    { unfold Z. clear. induction (combine x _) as [|[w c] l IH]; cbn [map sum]; [lra|]. pose proof (exp_pos (w * beta + c)). lra. }
    replace (M * (e + Z) - (e * v + N)) with ((M - v) * e + (M * Z - N)) by ring.
    assert (Tri : Rabs ((M - v) * e + (M * Z - N)) <= Rabs (M - v) * e + Rabs (M * Z - N)).
    { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_right e) by lra. lra. }
    split; [lra|]. intros Hin. destruct b; cbn [select] in Hin; [destruct Hin as [->|Hin]|].
    + replace ((M - M) * e + (M * Z - N)) with (M * Z - N) by ring. split; [lra|].
      replace (exp (beta * M)) with e by (unfold e; f_equal; ring). lra.
    + destruct (B Hin). split; lra.
    + destruct (B Hin). split; lra.
Qed.

Lemma subset_max mask x : length mask = length x -> Forall (fun v => 0 <= v <= 1) x ->
  In M (select mask x) -> (forall v, In v (select mask x) -> v <= M) ->
  Rabs (attend (biased beta mask x) x - M) <= (INR (length x) - 1) / (exp 1 * beta).
Proof.
  intros Hl Hx Hin Hle. destruct (gap_bound x mask Hl Hx Hle) as [_ B]. destruct (B Hin) as [G HZ]. unfold gap in G. unfold attend.
  set (Z := sum _) in *. set (N := dot _ x) in *. pose proof (exp_pos (beta * M)) as P. pose proof (exp_pos 1).
  assert (K : 0 <= INR (length x) - 1).
  { destruct x as [|v x]; [destruct mask; easy|]. replace (length (v :: x)) with (S (length x)) by easy.
    rewrite S_INR. pose proof (pos_INR (length x)). lra. }
  replace (N / Z - M) with (- ((M * Z - N) / Z)) by (field; lra). rewrite Rabs_Ropp. unfold Rdiv at 1.
  rewrite Rabs_mult, (Rabs_right (/ Z)) by (left; apply Rinv_0_lt_compat; lra).
  apply Rmult_le_reg_r with Z; [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  eapply Rle_trans; [exact G|]. unfold cost.
  replace ((INR (length x) - 1) * (exp (beta * M) / (exp 1 * beta))) with ((INR (length x) - 1) / (exp 1 * beta) * exp (beta * M)) by (field; lra).
  apply Rmult_le_compat_l; [|easy]. apply Rmult_le_pos; [easy|]. left. apply Rinv_0_lt_compat, Rmult_lt_0_compat; lra.
Qed.
End Subset.

(** ** The layer *)

(** The number of tokens in a subset. *)
Definition size (mask : list bool) : nat := length (filter (fun b => b) mask).

Definition subset_head (n : nat) (beta : R) (mask : list bool) : unit_head := {|
  key_x := beta; key_code := mask_key beta mask; key_flag := 0; value_x := 1; value_flag := 0;
  weight := map (fun k => coefficient k (size mask - 1)) (seq 0 n) |}.

(** Output k is the k-th smallest, k = 0, ..., n - 1. *)
Definition sort_layer (n : nat) (beta : R) : layer :=
  assemble n (zeros n) (ones n) [] (map (subset_head n beta) (masks n)) (zeros n).

Lemma masks_length n mask : In mask (masks n) -> length mask = n.
Proof.
  revert mask; induction n as [|n IH]; intros mask; [easy|]. cbn [masks]. intros [<-|H]; [simpl; now rewrite repeat_length|].
  apply in_app_iff in H as [H|H]; apply in_map_iff in H as [r [<- Hr]]; simpl; auto.
Qed.

Lemma sort_well_formed n beta : well_formed n n (sort_layer n beta).
Proof.
  pose proof (assemble_well_formed n (zeros n) (ones n) [] (map (subset_head n beta) (masks n)) (zeros n)) as A.
  rewrite (repeat_length 0 n : length (zeros n) = n) in A. apply A; [easy|apply repeat_length|now right|]. intros h Hh. apply in_map_iff in Hh as [mask [<- Hm]]. cbn [key_code weight subset_head]. unfold mask_key.
  rewrite !map_length, seq_length, (masks_length n mask Hm). auto.
Qed.

Lemma select_size mask x : length mask = length x -> length (select mask x) = size mask.
Proof.
  unfold size. revert x; induction mask as [|[] mask IH]; intros [|v x] H; try discriminate; simpl; auto.
Qed.

Lemma outputs_sort n beta x k : length x = n -> (k < n)%nat ->
  nth k (outputs (sort_layer n beta) x) 0
  = total (masks n) (fun mask => coefficient k (size mask - 1) * attend (biased beta mask x) x).
Proof.
  intros Hx Hk. assert (Hz : length (zeros n) = n) by apply repeat_length.
  unfold sort_layer. rewrite outputs_assemble; rewrite ?normalise_plain, ?Hz by easy; try easy.
  - unfold zeros. rewrite nth_repeat, Rplus_0_r, map_map. unfold total. f_equal. apply map_ext. intros mask.
    cbn [weight subset_head head_output value_x]. f_equal.
    + rewrite (nth_indep _ 0 ((fun k => coefficient k (size mask - 1)) O)) by now rewrite map_length, seq_length.
      rewrite (map_nth (fun k => coefficient k (size mask - 1))). now rewrite seq_nth.
    + unfold scores. cbn [key_x key_code subset_head]. f_equal.
      clear. induction x as [|v x IH]; [easy|]. cbn [map]. rewrite IH. f_equal. ring.
  - right. split; [easy|lia].
  - intros h Hh. apply in_map_iff in Hh as [mask [<- Hm]]. cbn [key_code weight subset_head]. unfold mask_key.
    rewrite !map_length, seq_length, (masks_length n mask Hm). auto.
Qed.

(** ** The theorem *)

Lemma max_of_in l : l <> [] -> In (max_of l) l /\ forall v, In v l -> v <= max_of l.
Proof.
  induction l as [|a [|b l] IH]; intros H; [easy|split; [now left|intros v [<-|[]]; simpl; lra]|].
  rewrite max_of_cons by easy. destruct (IH ltac:(easy)) as [I L]. split.
  - unfold Rmax. destruct (Rle_dec a (max_of (b :: l))); [now right|now left].
  - intros v [<-|Hv]; [apply Rmax_l|]. eapply Rle_trans; [now apply L|apply Rmax_r].
Qed.

Lemma coefficient_bound s : forall k, Rabs (coefficient k s) <= 2 ^ s.
Proof.
  induction s as [|s IH]; intros k; cbn [coefficient pow].
  - destruct k; [rewrite Rabs_R1|rewrite Rabs_R0]; lra.
  - unfold Rminus. eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. pose proof (IH k).
    destruct k as [|k]; [rewrite Rabs_R0; pose proof (Rabs_pos (coefficient 0 s)); lra|]. pose proof (IH k). lra.
Qed.

(** The sum of 2^(|S| - 1) over all non-empty subsets. *)
Lemma sum_of_sizes n : total (masks n) (fun mask => 2 ^ (size mask - 1)) = (3 ^ n - 1) / 2.
Proof.
  induction n as [|n IH]; [unfold total; simpl; field|]. cbn [masks pow]. unfold total at 1. cbn [map sum].
  fold (total (map (cons true) (masks n) ++ map (cons false) (masks n)) (fun mask => 2 ^ (size mask - 1))).
  rewrite total_app, !total_map.
  assert (A : size (true :: repeat false n) = 1%nat).
  { unfold size. cbn [filter length]. f_equal. induction n; simpl; auto. clear. induction n; simpl; auto. }
  rewrite A. rewrite (total_ext (masks n) (fun a => 2 ^ (size (true :: a) - 1)) (fun a => 2 * 2 ^ (size a - 1))).
  - rewrite total_scale, IH. change (fun a => 2 ^ (size (false :: a) - 1)) with (fun a => 2 ^ (size a - 1)). rewrite IH.
    cbn [Nat.sub pow]. field.
  - intros mask Hm. pose proof (masks_nonempty n mask (zeros n) Hm (repeat_length 0 n)) as Ne.
    assert (P : size mask <> O).
    { rewrite <- (select_size mask (zeros n)) by (unfold zeros; now rewrite repeat_length, (masks_length n)).
      intros E. apply Ne. now apply length_zero_iff_nil. }
    change (size (true :: mask)) with (S (size mask)). destruct (size mask) as [|s]; [easy|].
    cbn [Nat.sub]. now rewrite Nat.sub_0_r.
Qed.

Lemma total_error {A} (l : list A) (c g h : A -> R) (w : A -> R) e : 0 <= e ->
  (forall a, In a l -> Rabs (c a) <= w a /\ Rabs (g a - h a) <= e) ->
  Rabs (total l (fun a => c a * g a) - total l (fun a => c a * h a)) <= total l w * e.
Proof.
  intros He H. unfold total. induction l as [|a l IH]; cbn [map sum]; [rewrite Rminus_0_r, Rabs_R0; lra|].
  destruct (H a (or_introl eq_refl)) as [H1 H2]. specialize (IH (fun b Hb => H b (or_intror Hb))).
  set (G := sum (map (fun a => c a * g a) l)) in *. set (K := sum (map (fun a => c a * h a) l)) in *.
  replace (c a * g a + G - (c a * h a + K)) with (c a * (g a - h a) + (G - K)) by ring.
  eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, Rmult_plus_distr_r. apply Rplus_le_compat; [|exact IH].
  apply Rmult_le_compat; auto using Rabs_pos.
Qed.

Theorem sorting n beta x k : 0 < beta -> length x = n -> Forall (fun v => 0 <= v <= 1) x -> (k < n)%nat ->
  Rabs (nth k (outputs (sort_layer n beta) x) 0 - nth k (sort x) 0) <= (3 ^ n - 1) / 2 * ((INR n - 1) / (exp 1 * beta)).
Proof.
  intros Hb Hx Hc Hk. rewrite outputs_sort, <- max_min by easy. unfold alternating. rewrite Hx.
  rewrite (total_ext (masks n) (fun mask => coefficient k (length (select mask x) - 1) * max_of (select mask x))
    (fun mask => coefficient k (size mask - 1) * max_of (select mask x))).
  2: { intros mask Hm. rewrite select_size; [easy|]. now rewrite (masks_length n). }
  rewrite <- sum_of_sizes. apply total_error.
  - apply Rmult_le_pos; [|left; apply Rinv_0_lt_compat, Rmult_lt_0_compat; [apply exp_pos|easy]].
    pose proof (le_INR 1 n ltac:(lia)) as I. simpl in I. lra.
  - intros mask Hm. split; [apply coefficient_bound|].
    pose proof (masks_nonempty n mask x Hm Hx) as Ne. destruct (max_of_in (select mask x) Ne) as [I L].
    rewrite <- Hx. apply subset_max; auto; [|now rewrite Hx, (masks_length n)].
    assert (Sub : forall m y v, In v (select m y) -> In v y).
    { clear. induction m as [|[] m IH]; intros [|w y] v; simpl; try easy; [intros [<-|H]; auto|auto]. }
    apply Sub in I. rewrite Forall_forall in Hc. auto.
Qed.
