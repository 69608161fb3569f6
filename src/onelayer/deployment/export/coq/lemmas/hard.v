
(** ** The same layer in exact arithmetic, with hard attention *)

Definition zero : num := (0, 0)%Z.
Definition addN (a b : num) : num :=
  match fst a, fst b with
  | 0%Z, _ => b | _, 0%Z => a
  | m, n => let e := snd a in let f := snd b in
    if (e <=? f)%Z then ((m + Z.shiftl n (f - e))%Z, e) else ((Z.shiftl m (e - f) + n)%Z, f)
  end.
Definition mulN (a b : num) : num :=
  match fst a, fst b with 0%Z, _ => zero | _, 0%Z => zero | m, n => ((m * n)%Z, (snd a + snd b)%Z) end.
Definition oppN (a : num) : num := ((- fst a)%Z, snd a).
Definition absN (a : num) : num := (Z.abs (fst a), snd a).
Definition reluN (a : num) : num := if (fst a <=? 0)%Z then zero else a.
Definition leN (a b : num) : bool := (0 <=? fst (addN b (oppN a)))%Z.
Definition eqN (a b : num) : bool := (fst (addN b (oppN a)) =? 0)%Z.
Definition natN (n : nat) : num := (Z.of_nat n, 0%Z).

Fixpoint sumN (a : list num) : num := match a with [] => zero | x :: a' => addN x (sumN a') end.
Fixpoint dotN (a b : list num) : num := match a, b with x :: a', y :: b' => addN (mulN x y) (dotN a' b') | _, _ => zero end.
Fixpoint vaddN (a b : list num) : list num := match a, b with x :: a', y :: b' => addN x y :: vaddN a' b' | _, _ => [] end.
Fixpoint vmulN (a b : list num) : list num := match a, b with x :: a', y :: b' => mulN x y :: vmulN a' b' | _, _ => [] end.
Fixpoint vmN (a : list num) (M : list (list num)) (d : nat) : list num :=
  match a, M with x :: a', r :: M' => vaddN (map (mulN x) r) (vmN a' M' d) | _, _ => repeat zero d end.
Definition tokenN (L : layer num) (x sh sc p : list num) : list num :=
  vaddN (vaddN (vmN (vmulN (vaddN x (map oppN sh)) sc) (W_E L) (d_model L)) (b_E L)) p.
Definition tokensN (L : layer num) (x : list (list num)) : list (list num) :=
  map (fun '(xj, (sh, (sc, p))) => tokenN L xj sh sc p) (combine x (combine (shift L) (combine (scale L) (P L)))) ++ S L.
Definition behindN (L : layer num) (z : list num) : list num :=
  let a := vmN z (W_O L) (d_model L) in
  let f := vaddN (vmN (map reluN (vaddN (vmN a (W_1 L) (d_ff L)) (b_1 L))) (W_2 L) (d_model L)) (b_2 L) in
  vaddN (vmN f (W_R L) (d_out L)) (b_R L).

(* Attention is hard where every score is the largest, or at least 100 below it: then the average is near that of the top. *)
Definition eta : num := (1, -140)%Z.
Fixpoint top (b : list bool) (v : list num) : num :=
  match b, v with x :: b', y :: v' => if x then addN y (top b' v') else top b' v' | _, _ => zero end.
Definition count (b : list bool) : nat := length (filter (fun x => x) b).
Definition near_quotient (a : num) (n : nat) : num :=
  if Nat.eqb n 1 then a else (Z.div (Z.shiftl (fst a) 200) (Z.of_nat n), (snd a - 200)%Z).
Definition averageN (b : list bool) (v : list num) : num * num :=
  let M := top b v in let d := near_quotient M (count b) in
  (d, addN (absN (addN M (oppN (mulN (natN (count b)) d))))
        (mulN eta (addN (sumN (map absN v)) (mulN (natN (length v)) (absN d))))).
Definition largestN (s : list num) : num := fold_right (fun a m => if leN m a then a else m) (hd zero s) s.
Definition triple := (list (list num) * list (list num) * list (list num))%type.
Definition scoreN (L : layer num) (ask : list num) (h : triple) (r : list num) : num :=
  dotN (vmN ask (fst (fst h)) (d_k L)) (vmN r (snd (fst h)) (d_k L)).
Definition most (L : layer num) (ask : list num) (h : triple) (t : list (list num)) : num :=
  largestN (map (scoreN L ask h) t).
Definition hardN (root m a : num) : bool := orb (eqN a m) (leN (addN a (mulN (100, 0)%Z root)) m).
Definition headN (L : layer num) (root : num) (t : list (list num)) (ask : list num) (h : triple) : bool * list (num * num) :=
  let s := map (scoreN L ask h) t in let m := most L ask h t in let b := map (fun a => eqN a m) s in
  (forallb (hardN root m) s && negb (Nat.eqb (count b) 0),
   map (fun c => averageN b (map (fun r => nth c (vmN r (snd h) (d_v L)) zero) t)) (seq 0 (d_v L))).
Definition sizeN (M : list (list num)) : num := sumN (map (fun r => sumN (map absN r)) M).
Definition steepN (L : layer num) : num := mulN (mulN (sizeN (W_O L)) (sizeN (W_1 L))) (mulN (sizeN (W_2 L)) (sizeN (W_R L))).
Fixpoint agree (e tol : num) (a b : list num) : bool :=
  match a, b with
  | [], [] => true
  | x :: a', y :: b' => leN (addN (absN (addN x (oppN y))) e) tol && agree e tol a' b'
  | _, _ => false
  end.
(* Whether the outputs at token [read] are within [tol] of y. *)
Definition check (L : layer num) (steep tol : num) (read : nat) (x : list (list num)) (y : list num) : bool :=
  let root := Nat.sqrt (d_k L) in
  let t := tokensN L x in let ask := nth read t [] in
  let found := map (headN L (natN root) t ask) (heads L) in
  let z := flat_map snd found in
  let e := mulN steep (sumN (map snd z)) in
  Nat.eqb (root * root) (d_k L) && Nat.ltb 0 root && forallb fst found && agree e tol (behindN L (map fst z)) y.

(** ** Exact arithmetic is exact *)

Lemma shift_val n k e : (0 <= k)%Z -> IZR (Z.shiftl n k) * powerRZ 2 e = IZR n * powerRZ 2 (e + k).
Proof.
  intros H. rewrite Z.shiftl_mul_pow2, mult_IZR, powerRZ_add by (easy || lra).
  replace (IZR (2 ^ k)) with (powerRZ 2 k); [ring|]. destruct k as [|p|p]; [easy| |easy].
  rewrite <- (positive_nat_Z p) at 2. rewrite <- pow_IZR. simpl. reflexivity.
Qed.
Lemma val_zero : val zero = 0.
Proof. unfold val. simpl. ring. Qed.
Lemma val_null e : val (0%Z, e) = 0.
Proof. unfold val. simpl. ring. Qed.
Lemma val_add a b : val (addN a b) = val a + val b.
Proof.
  destruct a as [m e], b as [n f]. unfold addN. cbn [fst snd].
  destruct m as [|m|m]; [rewrite val_null; ring|..]; (destruct n as [|n|n]; [rewrite (val_null f); ring|..]);
  (destruct (Z.leb_spec e f); unfold val; cbn [fst snd]; rewrite plus_IZR, Rmult_plus_distr_r, shift_val by lia; do 3 f_equal; lia).
Qed.
Lemma val_mul a b : val (mulN a b) = val a * val b.
Proof.
  destruct a as [m e], b as [n f]. unfold mulN. cbn [fst snd].
  destruct m as [|m|m]; [rewrite val_null, val_zero; ring|..]; (destruct n as [|n|n]; [rewrite val_null, val_zero; ring|..]);
  (unfold val; cbn [fst snd]; rewrite mult_IZR, powerRZ_add by lra; ring).
Qed.
Lemma val_opp a : val (oppN a) = - val a.
Proof. unfold val, oppN. cbn [fst snd]. rewrite opp_IZR. ring. Qed.
Lemma power_pos e : 0 < powerRZ 2 e.
Proof. apply powerRZ_lt. lra. Qed.
Lemma val_abs a : val (absN a) = Rabs (val a).
Proof. unfold val, absN. cbn [fst snd]. rewrite Rabs_mult, abs_IZR, (Rabs_right (powerRZ _ _)); [easy|]. pose proof (power_pos (snd a)). lra. Qed.
Lemma val_sign a : (0 <= fst a)%Z -> 0 <= val a.
Proof. intros H. apply Rmult_le_pos; [now apply IZR_le|]. apply Rlt_le, power_pos. Qed.
Lemma val_relu a : val (reluN a) = relu (val a).
Proof.
  unfold reluN, relu. destruct (Z.leb_spec (fst a) 0) as [L|G].
  - rewrite val_zero, Rmax_left; [easy|]. pose proof (val_sign (oppN a)) as H. rewrite val_opp in H. cbn in H.
    specialize (H ltac:(lia)). lra.
  - rewrite Rmax_right; [easy|]. apply val_sign. lia.
Qed.
Lemma le_val a b : leN a b = true -> val a <= val b.
Proof. unfold leN. intros H. apply Z.leb_le, val_sign in H. rewrite val_add, val_opp in H. lra. Qed.
Lemma eq_val a b : eqN a b = true -> val a = val b.
Proof.
  unfold eqN. intros H. apply Z.eqb_eq in H. assert (E : val (addN b (oppN a)) = 0) by (unfold val; rewrite H; ring).
  rewrite val_add, val_opp in E. lra.
Qed.
Lemma val_nat n : val (natN n) = INR n.
Proof. unfold val, natN. cbn [fst snd powerRZ]. rewrite INR_IZR_INZ. ring. Qed.

Lemma vals_dot a : forall b, val (dotN a b) = dot (vals a) (vals b).
Proof. induction a as [|x a IH]; intros [|y b]; cbn [dotN dot vals map]; rewrite ?val_zero; try easy. rewrite val_add, val_mul. now rewrite IH. Qed.
Lemma vals_sum a : val (sumN a) = sum (vals a).
Proof. induction a as [|x a IH]; cbn [sumN sum vals map]; [apply val_zero|]. rewrite val_add. now rewrite IH. Qed.
Lemma vals_add a : forall b, vals (vaddN a b) = vadd (vals a) (vals b).
Proof. induction a as [|x a IH]; intros [|y b]; cbn [vaddN vadd vals map]; try easy. rewrite val_add. f_equal. apply IH. Qed.
Lemma vals_mul a : forall b, vals (vmulN a b) = vmul (vals a) (vals b).
Proof. induction a as [|x a IH]; intros [|y b]; cbn [vmulN vmul vals map]; try easy. rewrite val_mul. f_equal. apply IH. Qed.
Lemma vals_opp a : vals (map oppN a) = map Ropp (vals a).
Proof. unfold vals. rewrite !map_map. apply map_ext. apply val_opp. Qed.
Lemma vals_relu a : vals (map reluN a) = map relu (vals a).
Proof. unfold vals. rewrite !map_map. apply map_ext. apply val_relu. Qed.
Lemma vals_vm a d : forall M, vals (vmN a M d) = vm (vals a) (map vals M) d.
Proof.
  assert (Z : vals (repeat zero d) = repeat 0 d).
  { clear. unfold vals. induction d; cbn [repeat map]; [easy|]. now rewrite IHd, val_zero. }
  induction a as [|x a IH]; intros [|r M]; cbn [vmN vm vals map]; try exact Z. fold vals. rewrite vals_add, IH. f_equal.
  unfold vals. rewrite !map_map. apply map_ext. apply val_mul.
Qed.
Lemma vals_token L x sh sc p : vals (tokenN L x sh sc p) = token (real L) (vals x) (vals sh) (vals sc) (vals p).
Proof. unfold tokenN, token. now rewrite !vals_add, vals_vm, vals_mul, vals_add, vals_opp. Qed.
Lemma combine_map {A B C D} (f : A -> C) (g : B -> D) a : forall b,
  combine (map f a) (map g b) = map (fun '(x, y) => (f x, g y)) (combine a b).
Proof. induction a as [|x a IH]; intros [|y b]; cbn; try easy. now rewrite IH. Qed.
Lemma vals_tokens L x : map vals (tokensN L x) = tokens (real L) (map vals x).
Proof.
  unfold tokensN, tokens. rewrite map_app. cbn [shift scale P S real]. f_equal. rewrite !combine_map, !map_map. apply map_ext.
  intros [xj [sh [sc p]]]. apply vals_token.
Qed.
Lemma vals_behind L z : vals (behindN L z) = behind (real L) (vals z).
Proof. unfold behindN, behind. cbv zeta. now repeat (rewrite vals_add || rewrite vals_vm || rewrite vals_relu). Qed.

(** ** Hard attention *)

Lemma eta_exp : exp (-100) <= val eta.
Proof. unfold val, eta. cbn [fst snd]. replace (powerRZ 2 (-140)) with (/ 2 ^ 140) by reflexivity. interval. Qed.

Fixpoint follows (m : R) (b : list bool) (s : vec) : Prop :=
  match b, s with
  | [], [] => True
  | x :: b', a :: s' => (if x then a = m else a <= m - 100) /\ follows m b' s'
  | _, _ => False
  end.
Lemma hard_sums m d b : forall s v, follows m b s -> length v = length s ->
  Rabs (dot (map (fun a => exp (a - m)) s) (vals v) - d * sum (map (fun a => exp (a - m)) s) - (val (top b v) - INR (count b) * d))
    <= val eta * (sum (map Rabs (vals v)) + INR (length v) * Rabs d)
  /\ INR (count b) <= sum (map (fun a => exp (a - m)) s).
Proof.
  induction b as [|x b IH]; intros [|a s] [|y v] F E; try easy; cbn [follows] in F; try easy.
  - cbn. rewrite val_zero. rewrite Rabs_right; lra.
  - destruct F as [Fx F]. injection E as E. destruct (IH s v F E) as [A B]. cbn [map vals dot sum top]. fold vals.
    change (length (y :: v)) with (Datatypes.S (length v)). rewrite S_INR.
    set (N := dot _ _) in *. set (Z := sum (map (fun a => exp (a - m)) s)) in *.
    pose proof (exp_pos (a - m)). unfold count in *. cbn [filter]. destruct x.
    + subst a. replace (m - m) with 0 in * by ring. rewrite exp_0 in *. cbn [length]. rewrite val_add, S_INR.
      pose proof (Rabs_pos (val y)). pose proof (Rabs_pos d). pose proof (exp_pos (-100)). pose proof eta_exp.
      split; [|lra]. eapply Rle_trans; [|apply Rle_trans with (1 := A)].
      * right. f_equal. ring.
      * apply Rmult_le_compat_l; lra.
    + assert (Q : exp (a - m) <= val eta).
      { eapply Rle_trans; [|apply eta_exp]. destruct (Req_dec (a - m) (-100)) as [->|]; [lra|]. apply Rlt_le, exp_increasing. lra. }
      split; [|lra].
      replace (exp (a - m) * val y + N - d * (exp (a - m) + Z) - (val (top b v) - INR (length (filter (fun x => x) b)) * d))
        with (exp (a - m) * (val y - d) + (N - d * Z - (val (top b v) - INR (length (filter (fun x => x) b)) * d))) by ring.
      eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_mult, (Rabs_right (exp _)) by lra.
      assert (T : Rabs (val y - d) <= Rabs (val y) + Rabs d).
      { eapply Rle_trans; [apply Rabs_triang|]. rewrite Rabs_Ropp. lra. }
      pose proof (Rabs_pos (val y - d)).
      assert (exp (a - m) * Rabs (val y - d) <= val eta * (Rabs (val y) + Rabs d)) by (apply Rmult_le_compat; lra).
      lra.
Qed.
Lemma hard m b s v : follows m b s -> length v = length s -> count b <> 0%nat ->
  Rabs (attend s (vals v) - val (fst (averageN b v))) <= val (snd (averageN b v)).
Proof.
  intros F E C. unfold averageN. cbn [fst snd]. set (d := near_quotient _ _).
  destruct (hard_sums m (val d) b s v F E) as [A B].
  rewrite val_add, val_abs, val_add, val_opp, !val_mul, val_add, val_mul, val_abs, !val_nat, vals_sum.
  replace (vals (map absN v)) with (map Rabs (vals v)) by (unfold vals; rewrite !map_map; apply map_ext; intros; now rewrite val_abs).
  assert (N : attend s (vals v) = dot (map (fun a => exp (a - m)) s) (vals v) / sum (map (fun a => exp (a - m)) s)).
  { unfold attend.
    assert (X : forall s, map exp s = map (Rmult (exp m)) (map (fun a => exp (a - m)) s)).
    { clear. intros s. rewrite map_map. apply map_ext. intros a. rewrite <- exp_plus. f_equal. ring. }
    rewrite X. clear. generalize (vals v) as w. set (u := map (fun a => exp (a - m)) s). clearbody u. intros w.
    assert (D : forall u w, dot (map (Rmult (exp m)) u) w = exp m * dot u w).
    { clear. induction u as [|x u IH]; intros [|y w]; cbn; try ring. rewrite IH. ring. }
    assert (Q : forall u, sum (map (Rmult (exp m)) u) = exp m * sum u).
    { clear. induction u as [|x u IH]; cbn; [ring|]. rewrite IH. ring. }
    rewrite D, Q. pose proof (exp_pos m). destruct (Req_dec (sum u) 0) as [->|]; [|field; lra].
    rewrite Rmult_0_r. unfold Rdiv. rewrite Rinv_0. ring. }
  rewrite N. set (n := dot _ _) in *. set (z := sum (map (fun a => exp (a - m)) s)) in *.
  assert (1 <= INR (count b)) by (change 1 with (INR 1); apply le_INR; lia).
  replace (n / z - val d) with ((n - val d * z) / z) by (field; lra). unfold Rdiv. rewrite Rabs_mult, Rabs_inv, (Rabs_right z) by lra.
  apply Rmult_le_reg_r with z; [lra|]. rewrite Rmult_assoc, Rinv_l, Rmult_1_r by lra.
  set (e := Rabs (val (top b v) + _) + _).
  assert (K : Rabs (n - val d * z) <= e).
  { unfold e. replace (n - val d * z) with (n - val d * z - (val (top b v) - INR (count b) * val d)
      + (val (top b v) + - (INR (count b) * val d))) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra. }
  pose proof (Rabs_pos (n - val d * z)). apply Rle_trans with (e * 1); [lra|]. apply Rmult_le_compat_l; lra.
Qed.

Definition close (a : R) (b : num * num) : Prop := Rabs (a - val (fst b)) <= val (snd b).
Definition triple_vals (h : triple) : mat * mat * mat := (map vals (fst (fst h)), map vals (snd (fst h)), map vals (snd h)).
(* The token r counts as u does: both are at the top, or both are far below it; and they have the same values. *)
Definition stands (L : layer num) (root : nat) (ask : list num) (h : triple) (m : num) (r : vec) (u : list num) : Prop :=
  let s := dot (vm (vals ask) (map vals (fst (fst h))) (d_k L)) (vm r (map vals (snd (fst h))) (d_k L)) in
  (if eqN (scoreN L ask h u) m then s = val m else s <= val m - 100 * INR root) /\
  vm r (map vals (snd h)) (d_v L) = vals (vmN u (snd h) (d_v L)).
Lemma score_val L ask h r : val (scoreN L ask h r)
  = dot (vm (vals ask) (map vals (fst (fst h))) (d_k L)) (vm (vals r) (map vals (snd (fst h))) (d_k L)).
Proof. unfold scoreN. now rewrite vals_dot, !vals_vm. Qed.
Lemma hard_val root m a : hardN (natN root) m a = true -> if eqN a m then val a = val m else val a <= val m - 100 * INR root.
Proof.
  unfold hardN. intros H. destruct (eqN a m) eqn:E; [now apply eq_val|]. cbn [orb] in H.
  apply le_val in H. rewrite val_add, val_mul, val_nat in H. unfold val in H at 2. cbn [fst snd powerRZ] in H. lra.
Qed.
Lemma stands_self L root t ask h : fst (headN L (natN root) t ask h) = true ->
  Forall2 (stands L root ask h (most L ask h t)) (map vals t) t.
Proof.
  unfold headN. cbn [fst]. intros H. apply andb_true_iff in H as [H _]. generalize (most L ask h t) as m, H. clear. intros m H.
  induction t as [|r t IH]; [constructor|]. cbn [map forallb] in *. apply andb_true_iff in H as [H T]. constructor; [|now apply IH].
  unfold stands. rewrite <- score_val, vals_vm. split; [now apply hard_val|easy].
Qed.
Lemma head_close L root t tr ask h : (root * root = d_k L)%nat -> (0 < root)%nat -> fst (headN L (natN root) t ask h) = true ->
  Forall2 (stands L root ask h (most L ask h t)) tr t ->
  Forall2 close (head (real L) tr (vals ask) (triple_vals h)) (snd (headN L (natN root) t ask h)).
Proof.
  intros Hr H0 H St. unfold headN in *. unfold head, triple_vals. cbn [fst snd d_k d_v real] in *.
  apply andb_true_iff in H as [_ C]. apply negb_true_iff, Nat.eqb_neq in C. set (m := most L ask h t) in *. clearbody m.
  set (b := map _ (map _ t)) in *. assert (R0 : 0 < INR root) by now apply lt_0_INR.
  assert (Q : sqrt (INR (d_k L)) = INR root) by (rewrite <- Hr, mult_INR; apply sqrt_square; lra). rewrite Q.
  assert (F : follows (val m / INR root) b (map (fun r => dot (vm (vals ask) (map vals (fst (fst h))) (d_k L))
    (vm r (map vals (snd (fst h))) (d_k L)) / INR root) tr)).
  { unfold b. clear - St R0. induction St as [|r u tr t [S1 _] _ IH]; [exact I|]. cbn [map follows]. split; [|exact IH].
    destruct (eqN (scoreN L ask h u) m); [now rewrite S1|]. apply Rmult_le_reg_r with (INR root); [easy|].
    unfold Rdiv. rewrite Rmult_minus_distr_r, !Rmult_assoc, !Rinv_l by lra. lra. }
  assert (Len : length t = length tr) by (clear - St; induction St; cbn; lia).
  generalize (seq 0 (d_v L)) as cs. induction cs as [|c cs IH]; [constructor|]. cbn [map]. constructor; [|exact IH].
  unfold close. replace (map (fun r => nth c (vm r (map vals (snd h)) (d_v L)) 0) tr)
    with (vals (map (fun r => nth c (vmN r (snd h) (d_v L)) zero) t)).
  - apply hard with (m := val m / INR root); [easy| |easy]. now rewrite !map_length.
  - clear - St. induction St as [|r u tr t [_ S2] _ IH]; [easy|]. cbn [map vals] in *. rewrite <- IH, S2. f_equal.
    unfold vals. rewrite <- val_zero. symmetry. apply map_nth.
Qed.

(** ** What stands behind the heads changes little when they do *)

Definition near (e : R) : vec -> vec -> Prop := Forall2 (fun a b => Rabs (a - b) <= e).
Definition size (M : mat) : R := sum (map (fun r => sum (map Rabs r)) M).
Lemma sum_abs_pos r : 0 <= sum (map Rabs r).
Proof. induction r as [|x r IH]; cbn; [lra|]. pose proof (Rabs_pos x). lra. Qed.
Lemma size_pos M : 0 <= size M.
Proof. unfold size. induction M as [|r M IH]; cbn; [lra|]. pose proof (sum_abs_pos r). lra. Qed.
Lemma near_refl a : near 0 a a.
Proof. unfold near. induction a as [|x a IH]; constructor; [|easy]. rewrite Rminus_diag_eq, Rabs_R0 by easy. lra. Qed.
Lemma near_more d e a b : d <= e -> near d a b -> near e a b.
Proof. intros L. induction 1 as [|x y a b H _ IH]; constructor; [lra|easy]. Qed.
Lemma near_add d e a b a' b' : near d a b -> near e a' b' -> near (d + e) (vadd a a') (vadd b b').
Proof.
  intros H. revert a' b'. induction H as [|x y a b H _ IH]; intros a' b' H'; [constructor|].
  destruct H' as [|x' y' a' b' H' T]; [constructor|]. cbn [vadd]. constructor; [|now apply IH].
  replace (x + x' - (y + y')) with (x - y + (x' - y')) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.
Lemma near_shift e a b c : near e a b -> near e (vadd a c) (vadd b c).
Proof. intros H. rewrite <- (Rplus_0_r e). apply near_add; [easy|apply near_refl]. Qed.
Lemma near_relu e a b : near e a b -> near e (map relu a) (map relu b).
Proof.
  intros H. induction H as [|x y a b H _ IH]; constructor; [|easy]. eapply Rle_trans; [|exact H].
  unfold relu, Rmax, Rabs. destruct (Rle_dec 0 x), (Rle_dec 0 y); repeat destruct Rcase_abs; lra.
Qed.
Lemma near_vm e d M : 0 <= e -> forall a b, near e a b -> near (e * size M) (vm a M d) (vm b M d).
Proof.
  intros He. induction M as [|r M IH]; intros a b H.
  - unfold size. cbn [map sum]. rewrite Rmult_0_r. destruct H; apply near_refl.
  - destruct H as [|x y a b H T]; cbn [vm].
    + apply near_more with 0; [|apply near_refl]. apply Rmult_le_pos; [easy|apply size_pos].
    + unfold size. cbn [map sum]. fold (size M). rewrite Rmult_plus_distr_l. apply near_add; [|now apply IH].
      assert (Q : forall s, Forall (fun c => Rabs c <= s) r -> near (e * s) (map (Rmult x) r) (map (Rmult y) r)).
      { clear - H He. intros s. induction 1 as [|c r B _ IH]; constructor; [|easy].
        replace (x * c - y * c) with ((x - y) * c) by ring. rewrite Rabs_mult.
        apply Rmult_le_compat; auto using Rabs_pos. }
      apply Q. clear. induction r as [|c r IH]; constructor; cbn [map sum]; pose proof (sum_abs_pos r); pose proof (Rabs_pos c); [lra|].
      eapply Forall_impl; [|exact IH]. intros u B. cbv beta in *. lra.
Qed.
Lemma size_val M : val (sizeN M) = size (map vals M).
Proof.
  unfold sizeN, size. rewrite vals_sum. f_equal. unfold vals at 1. rewrite !map_map. apply map_ext. intros r. rewrite vals_sum.
  f_equal. unfold vals. rewrite !map_map. apply map_ext. apply val_abs.
Qed.
Lemma behind_near L e a b : 0 <= e -> near e a b -> near (val (steepN L) * e) (behind (real L) a) (behind (real L) b).
Proof.
  intros He H. unfold steepN. rewrite !val_mul, !size_val. unfold behind. cbn [W_O W_1 b_1 W_2 b_2 W_R b_R d_model d_ff d_out real].
  apply near_shift. set (o := size _). set (p := size (map vals (W_1 L))). set (q := size (map vals (W_2 L))). set (r := size (map vals (W_R L))).
  assert (0 <= o) by apply size_pos. assert (0 <= p) by apply size_pos. assert (0 <= q) by apply size_pos.
  assert (0 <= e * o) by now apply Rmult_le_pos. assert (0 <= e * o * p) by now apply Rmult_le_pos.
  replace (o * p * (q * r) * e) with (e * o * p * q * r) by ring.
  apply near_vm; [now apply Rmult_le_pos|]. apply near_shift, near_vm; [easy|]. apply near_relu, near_shift, near_vm; [easy|].
  now apply near_vm.
Qed.

Lemma agree_near out e tol g : forall y, near (val e) out (vals g) -> agree e tol g y = true ->
  Forall2 (fun a b => Rabs (a - val b) <= val tol) out y.
Proof.
  revert out. induction g as [|u g IH]; intros out [|v y] N A; try easy; inversion N as [|o w p q B C]; subst; [constructor|].
  cbn [agree] in A. apply andb_true_iff in A as [A1 A2]. constructor; [|now apply IH].
  apply le_val in A1. rewrite val_add, val_abs, val_add, val_opp in A1.
  replace (o - val v) with (o - val u + (val u + - val v)) by ring. eapply Rle_trans; [apply Rabs_triang|]. lra.
Qed.

(* The tokens tr, which count as those of x do. *)
Theorem check_close L tol read x y tr : let t := tokensN L x in let ask := nth read t [] in
  check L (steepN L) tol read x y = true ->
  (forall h, In h (heads L) -> Forall2 (stands L (Nat.sqrt (d_k L)) ask h (most L ask h t)) tr t) ->
  Forall2 (fun a b => Rabs (a - val b) <= val tol) (behind (real L) (flat_map (head (real L) tr (vals ask)) (heads (real L)))) y.
Proof.
  cbv zeta. unfold check. set (root := Nat.sqrt _). set (t := tokensN L x). set (ask := nth read t []).
  set (found := map (headN L (natN root) t ask) (heads L)). set (z := flat_map snd found).
  intros H St. apply andb_true_iff in H as [H A]. apply andb_true_iff in H as [H F]. apply andb_true_iff in H as [H1 H2].
  apply Nat.eqb_eq in H1. apply Nat.ltb_lt in H2.
  assert (C : Forall2 close (flat_map (head (real L) tr (vals ask)) (heads (real L))) z).
  { unfold z, found in *. cbn [heads real]. rewrite forallb_forall in F.
    assert (G : forall h, In h (heads L) -> fst (headN L (natN root) t ask h) = true).
    { intros h Hh. apply F. now apply in_map. }
    clear - G St H1 H2. induction (heads L) as [|[[wq wk] wv] hs IH]; [constructor|]. cbn [map flat_map]. apply Forall2_app.
    - apply (head_close L root t tr ask (wq, wk, wv)); auto; [apply G | apply St]; now left.
    - apply IH; intros k Hk; [apply St | apply G]; now right. }
  set (e := val (sumN (map snd z))). assert (Pos : Forall (fun c => 0 <= val (snd c)) z).
  { clear - C. induction C as [|a c l m H _ IH]; constructor; [|easy]. unfold close in H.
    pose proof (Rabs_pos (a - val (fst c))). lra. }
  assert (N : near e (flat_map (head (real L) tr (vals ask)) (heads (real L))) (vals (map fst z)) /\ 0 <= e).
  { unfold e. clear - C Pos. unfold near. induction C as [|a c l m H _ IH]; cbn [map sumN vals].
    - rewrite val_zero. split; [constructor|lra].
    - inversion Pos; subst. destruct (IH ltac:(easy)) as [N E]. fold vals. rewrite val_add. unfold close in H. split; [|lra].
      constructor; [lra|]. eapply near_more; [|exact N]. lra. }
  destruct N as [N E]. apply (behind_near L e _ _ E) in N. rewrite <- vals_behind in N.
  apply (agree_near _ (mulN (steepN L) (sumN (map snd z))) tol (behindN L (map fst z))); [|exact A]. now rewrite val_mul.
Qed.
Theorem check_sound L tol read x y : check L (steepN L) tol read x y = true ->
  Forall2 (fun a b => Rabs (a - val b) <= val tol) (run (real L) read (map vals x)) y.
Proof.
  intros H. unfold run. cbv zeta. rewrite <- vals_tokens.
  change (@nil R) with (vals []). rewrite map_nth. apply (check_close L tol read x y); [exact H|]. intros h Hh. apply stands_self.
  unfold check in H. apply andb_true_iff in H as [H _]. apply andb_true_iff in H as [_ F]. rewrite forallb_forall in F.
  apply F. now apply in_map.
Qed.
