"""Text of Coq: expressions as data, their derivative in one variable, and a function between two places of it."""

CALCULUS = r"""
From Interval.Tactics Require Import Interval_helper.
From Interval.Eval Require Import Eval Tree Prog Reify.
(** ** Expressions of two variables y and v, and their derivative in v *)

Definition int z := Econst (Int z).
Definition is_int z e := match e with Econst (Int n) => Z.eqb n z | _ => false end.
Definition eneg a := if is_int 0 a then a else Eunary Neg a.
Definition eadd a b := if is_int 0 a then b else if is_int 0 b then a else Ebinary Add a b.
Definition esub a b := if is_int 0 b then a else if is_int 0 a then Eunary Neg b else Ebinary Sub a b.
Definition emul a b := if is_int 0 a then a else if is_int 0 b then b else if is_int 1 a then b else Ebinary Mul a b.
Definition ediv a b := if is_int 0 a then a else Ebinary Div a b.

Fixpoint derive (e : expr) : expr := match e with
  | Evar n => match n with 1%nat => int 1 | _ => int 0 end
  | Econst _ => int 0
  | Eunary o a => let d := derive a in match o with
    | Neg => eneg d
    | Inv => eneg (emul d (Eunary Sqr e))
    | Sqr => emul (emul (int 2) a) d
    | Sqrt => ediv d (emul (int 2) e)
    | Cos => eneg (emul d (Eunary Sin a))
    | Sin => emul d (Eunary Cos a)
    | Tan => emul d (eadd (int 1) (Eunary Sqr e))
    | Atan => ediv d (eadd (int 1) (Eunary Sqr a))
    | Exp => emul d e
    | Ln => ediv d a
    | PowerInt (Zpos p) => emul (emul (int (Zpos p)) d) (Eunary (PowerInt (Zpos p - 1)) a)
    | _ => int 0 end
  | Ebinary o a b => let d := derive a in let d' := derive b in match o with
    | Add => eadd d d'
    | Sub => esub d d'
    | Mul => eadd (emul d b) (emul a d')
    | Div => ediv (esub d (emul e d')) b end
  end.

(* Where an expression is defined and can be differentiated again and again. *)
Fixpoint smooth (e : expr) (x : list R) : Prop := match e with
  | Evar _ | Econst _ => True
  | Eunary o a => smooth a x /\ match o with
    | Inv => eval a x <> 0
    | Sqrt | Ln => 0 < eval a x
    | Tan => cos (eval a x) <> 0
    | PowerInt n => (0 <= n)%Z
    | Abs | Nearbyint _ | Round _ _ _ => False
    | _ => True end
  | Ebinary o a b => smooth a x /\ smooth b x /\ match o with Div => eval b x <> 0 | _ => True end
  end.

(* What must be checked for it: expressions that are positive (true) or not 0 (false). *)
Fixpoint needs (e : expr) : list (bool * expr) := match e with
  | Evar _ | Econst _ => []
  | Eunary o a => match o with
    | Inv => [(false, a)]
    | Sqrt | Ln => [(true, a)]
    | Tan => [(false, Eunary Cos a)]
    | PowerInt (Zneg _) | Abs | Nearbyint _ | Round _ _ _ => [(true, int 0)]
    | _ => [] end ++ needs a
  | Ebinary o a b => match o, b with
    | Div, Econst (Int n) => if Z.eqb n 0 then [(false, b)] else []
    | Div, _ => [(false, b)]
    | _, _ => [] end ++ needs a ++ needs b
  end.
Definition holds (x : list R) (c : bool * expr) : Prop := if fst c then 0 < eval (snd c) x else eval (snd c) x <> 0.

Lemma needs_smooth e x : Forall (holds x) (needs e) -> smooth e x.
Proof.
  assert (One : forall c l, Forall (holds x) (c :: l) -> holds x c /\ Forall (holds x) l) by (intros c l A; now inversion A).
  induction e as [n|n|o a IH|o a IHa b IHb]; cbn [needs smooth]; try easy; intros H; apply Forall_app in H as [H H'].
  - split; [now apply IH|]. destruct o; try easy; try (apply One in H as [H _]; unfold holds in H; cbn in H; easy || lra).
    destruct n; [easy | easy |]. apply One in H as [H _]. unfold holds in H; cbn in H. lra.
  - apply Forall_app in H' as [Ha Hb]. repeat split; [now apply IHa | now apply IHb |]. destruct o; try easy. clear - H One.
    destruct b as [|[n| |]| |]; try (apply One in H as [H _]; exact H). cbn. destruct (Z.eqb_spec n 0) as [->|N].
    + apply One in H as [H _]. exact H.
    + now apply IZR_neq.
Qed.

Lemma is_int_eval z e x : is_int z e = true -> eval e x = IZR z.
Proof. destruct e as [|[n| |]| |]; try easy. cbn. intros H. now apply Z.eqb_eq in H as ->. Qed.
Ltac by_int x := repeat match goal with |- context [is_int ?z ?e] =>
  let H := fresh in destruct (is_int z e) eqn:H; [try apply (is_int_eval z e x) in H|] end.
Lemma eval_eneg a x : eval (eneg a) x = - eval a x.
Proof. unfold eneg. by_int x; cbn; lra. Qed.
Lemma eval_eadd a b x : eval (eadd a b) x = eval a x + eval b x.
Proof. unfold eadd. by_int x; cbn; lra. Qed.
Lemma eval_esub a b x : eval (esub a b) x = eval a x - eval b x.
Proof. unfold esub. by_int x; cbn; lra. Qed.
Lemma eval_emul a b x : eval (emul a b) x = eval a x * eval b x.
Proof. unfold emul. by_int x; cbn; rewrite ?H, ?H0, ?H1; lra. Qed.
Lemma eval_ediv a b x : eval (ediv a b) x = eval a x / eval b x.
Proof. unfold ediv. by_int x; cbn; [rewrite H|]; unfold Rdiv; lra. Qed.
Lemma smooth_all a b x : smooth a x -> smooth b x -> smooth (eneg a) x /\ smooth (eadd a b) x /\ smooth (esub a b) x /\
  smooth (emul a b) x /\ (eval b x <> 0 -> smooth (ediv a b) x).
Proof. intros. unfold eneg, eadd, esub, emul, ediv. repeat split; intros; by_int x; cbn; tauto. Qed.
Lemma pow_int a n : (0 <= n)%Z -> unary_real (PowerInt n) a = a ^ Z.to_nat n.
Proof. intros H. cbn. rewrite <- (Z2Nat.id n H) at 1. symmetry. apply pow_powerRZ. Qed.

Lemma smooth_derive e x : smooth e x -> smooth (derive e) x.
Proof.
  assert (N : forall a, smooth a x -> smooth (eneg a) x) by (intros a A; exact (proj1 (smooth_all a a x A A))).
  assert (P : forall a b, smooth a x -> smooth b x -> smooth (eadd a b) x) by (intros; now apply smooth_all).
  assert (M : forall a b, smooth a x -> smooth b x -> smooth (emul a b) x) by (intros; now apply smooth_all).
  assert (Q : forall a b, smooth a x -> smooth b x -> eval b x <> 0 -> smooth (ediv a b) x)
    by (intros a b A B; exact (proj2 (proj2 (proj2 (proj2 (smooth_all a b x A B)))))).
  induction e as [n|n|o a IH|o a IHa b IHb]; cbn [smooth derive].
  - destruct n as [|[|n]]; easy.
  - easy.
  - intros [A C]. specialize (IH A). destruct o as [| | | | | | | | | | |n| |]; try easy; try (now apply N).
    + apply N, M; [easy|]. now cbn.
    + apply M; [|easy]. now apply M.
    + apply Q; [easy | apply M; now cbn |]. rewrite eval_emul. cbn. pose proof (sqrt_lt_R0 _ C). lra.
    + apply N, M; [easy|]. now cbn.
    + apply M; [easy|]. now cbn.
    + apply M; [easy|]. apply P; now cbn.
    + apply Q; [easy | apply P; now cbn |]. rewrite eval_eadd. cbn.
      pose proof (Rle_0_sqr (eval a x)). lra.
    + apply M; [easy|]. now cbn.
    + apply Q; [easy | easy |]. lra.
    + destruct n; try easy. apply M; [now apply M|]. cbn [smooth]. split; [easy|]. lia.
  - intros [A [B C]]. specialize (IHa A). specialize (IHb B). destruct o.
    + now apply P.
    + now apply smooth_all.
    + apply P; now apply M.
    + apply Q; [|easy|easy]. apply smooth_all; [easy|]. apply M; [|easy]. cbn. tauto.
Qed.

Lemma derive_const (c v : R) : is_derive (fun _ : R => c) v 0.
Proof. now auto_derive. Qed.
Lemma derive_correct e y v : smooth e [y; v] -> is_derive (fun v => eval e [y; v]) v (eval (derive e) [y; v]).
Proof.
  assert (C : forall (F a : R -> R) a' r d, is_derive a v a' -> a v = r -> is_derive F r d ->
    is_derive (fun v => F (a v)) v (a' * d))
    by (intros F a a' r d A <- B; exact (is_derive_comp F a v d a' B A)).
  induction e as [n|n|o a IH|o a IHa b IHb]; cbn [smooth derive eval].
  - intros _. destruct n as [|[|n]]; cbn; [apply derive_const | now auto_derive |].
    apply (is_derive_ext (fun _ => nth n [] 0)); [|apply derive_const]. now intros.
  - intros _. apply derive_const.
  - intros [A S]. specialize (IH A). set (r := eval a [y; v]) in *.
    destruct o as [| | | | | | | | | | |n| |]; try easy;
      rewrite ?eval_eneg, ?eval_ediv, ?eval_emul, ?eval_eadd; cbn [int eval unary_real nullary_real]; fold r.
    + evar_last; [apply (C Ropp _ _ r (-1) IH eq_refl) | lra]. auto_derive; [easy | lra].
    + evar_last; [apply (C Rinv _ _ r (- / (r * r)) IH eq_refl) | unfold Rsqr; field; exact S].
      auto_derive; [exact S | field; exact S].
    + evar_last; [apply (C Rsqr _ _ r (2 * r) IH eq_refl) | lra]. unfold Rsqr. auto_derive; [easy | lra].
    + pose proof (sqrt_lt_R0 _ S). evar_last; [apply (C sqrt _ _ r (/ (2 * sqrt r)) IH eq_refl) | unfold Rdiv; lra].
      auto_derive; [exact S | field; lra].
    + evar_last; [apply (C cos _ _ r (- sin r) IH eq_refl) | lra]. auto_derive; [easy | lra].
    + evar_last; [apply (C sin _ _ r (cos r) IH eq_refl) | lra]. auto_derive; [easy | lra].
    + evar_last; [apply (C tan _ _ r (1 + tan r * tan r) IH eq_refl) | unfold Rsqr; lra]. unfold tan.
      auto_derive; [exact S |]. field. exact S.
    + evar_last; [apply (C atan _ _ r (/ (1 + r * r)) IH eq_refl) | unfold Rdiv, Rsqr; lra].
      apply is_derive_Reals. evar_last; [apply derivable_pt_lim_atan |]. unfold Rsqr. f_equal. ring.
    + evar_last; [apply (C exp _ _ r (exp r) IH eq_refl) | lra]. auto_derive; [easy | lra].
    + evar_last; [apply (C ln _ _ r (/ r) IH eq_refl) | unfold Rdiv; lra]. auto_derive; [exact S | lra].
    + apply (is_derive_ext (fun v => (eval a [y; v]) ^ Z.to_nat n)).
      { intros t. symmetry. now apply pow_int. }
      destruct n as [|p|p]; [exact (derive_const 1 v) | | easy].
      rewrite !eval_emul. change (eval (Eunary (PowerInt (Zpos p - 1)) a) [y; v]) with (unary_real (PowerInt (Zpos p - 1)) r).
      assert (H : (0 <= Zpos p - 1)%Z) by lia. rewrite (pow_int r _ H).
      evar_last; [apply (C (fun t => t ^ Z.to_nat (Zpos p)) _ _ r (IZR (Zpos p) * r ^ pred (Z.to_nat (Zpos p))) IH eq_refl)|].
      * apply is_derive_Reals. evar_last; [apply derivable_pt_lim_pow|]. f_equal.
        rewrite INR_IZR_INZ. f_equal. lia.
      * cbn [int eval nullary_real]. replace (Z.to_nat (Zpos p - 1)) with (pred (Z.to_nat (Zpos p))) by lia. cbn. ring.
  - intros [A [B S]]. specialize (IHa A). specialize (IHb B).
    destruct o; rewrite ?eval_ediv, ?eval_esub, ?eval_eadd, ?eval_emul; cbn.
    + now apply (is_derive_plus (fun v => eval a [y; v])).
    + now apply (is_derive_minus (fun v => eval a [y; v])).
    + evar_last; [apply (is_derive_mult (fun v => eval a [y; v]) _ _ _ _ IHa IHb); exact Rmult_comm|].
      cbn. unfold plus, mult; cbn. ring.
    + evar_last; [apply (is_derive_div (fun v => eval a [y; v]) _ _ _ _ IHa IHb); exact S|]. cbn. field. exact S.
Qed.

(* Between two places a function is near its chord. *)
Lemma chord (F F1 F2 : R -> R) (a b M e0 : R) : a < b ->
  (forall v, a <= v <= b -> is_derive F v (F1 v)) -> (forall v, a <= v <= b -> is_derive F1 v (F2 v)) ->
  (forall v, a <= v <= b -> Rabs (F2 v) <= M) -> Rabs (F a) <= e0 -> Rabs (F b) <= e0 ->
  forall v, a <= v <= b -> Rabs (F v) <= e0 + M * ((b - a) * (b - a)) / 8.
Proof.
  intros ab D1 D2 HM Ha Hb v Hv.
  assert (M0 : 0 <= M) by (pose proof (HM v Hv); pose proof (Rabs_pos (F2 v)); lra).
  assert (0 <= M * ((b - a) * (b - a))) by (apply Rmult_le_pos; [easy|]; apply Rmult_le_pos; lra).
  destruct (Req_dec v a) as [->|Na]; [lra|]. destruct (Req_dec v b) as [->|Nb]; [lra|].
  set (s := (F b - F a) / (b - a)). set (K := (F v - F a - s * (v - a)) / ((v - a) * (v - b))).
  assert (Sb : s * (b - a) = F b - F a) by (unfold s; field; lra).
  assert (Kv : K * ((v - a) * (v - b)) = F v - F a - s * (v - a)) by (unfold K; field; lra).
  set (G := fun t => F t - s * (t - a) - K * ((t - a) * (t - b))).
  set (G1 := fun t => F1 t - s - K * (2 * t - a - b)).
  assert (DG : forall t, a <= t <= b -> derivable_pt_lim G t (G1 t)).
  { intros t Ht. apply is_derive_Reals. unfold G, G1. evar_last.
    - apply (is_derive_minus (fun t => F t - s * (t - a)) (fun t => K * ((t - a) * (t - b)))).
      + apply (is_derive_minus F (fun t => s * (t - a))); [apply D1; easy|]. auto_derive; [easy | reflexivity].
      + auto_derive; [easy | reflexivity].
    - unfold minus, plus, opp; cbn. ring. }
  assert (DG1 : forall t, a <= t <= b -> derivable_pt_lim G1 t (F2 t - 2 * K)).
  { intros t Ht. apply is_derive_Reals. unfold G1. evar_last.
    - apply (is_derive_minus (fun t => F1 t - s) (fun t => K * (2 * t - a - b))).
      + apply (is_derive_minus F1 (fun _ => s)); [apply D2; easy | apply derive_const].
      + auto_derive; [easy | reflexivity].
    - unfold minus, plus, opp, zero; cbn. ring. }
  destruct (MVT_cor2 G G1 a v) as [p [Ep Hp]]; [lra | intros; apply DG; lra |].
  destruct (MVT_cor2 G G1 v b) as [q [Eq Hq]]; [lra | intros; apply DG; lra |].
  assert (Ga : G a = F a) by (unfold G; ring).
  assert (Gv : G v = F a) by (unfold G; lra).
  assert (Gb : G b = F a) by (unfold G; lra).
  assert (Zp : G1 p = 0) by (rewrite Ga, Gv in Ep; destruct (Rmult_integral (G1 p) (v - a)); lra).
  assert (Zq : G1 q = 0) by (rewrite Gb, Gv in Eq; destruct (Rmult_integral (G1 q) (b - v)); lra).
  destruct (MVT_cor2 G1 (fun t => F2 t - 2 * K) p q) as [z [Ez Hz]]; [lra | intros; apply DG1; lra |].
  assert (E : F2 z = 2 * K) by (rewrite Zp, Zq in Ez; destruct (Rmult_integral (F2 z - 2 * K) (q - p)); lra).
  pose proof (HM z ltac:(lra)) as Hz'. rewrite E in Hz'. apply Rabs_le_between in Hz', Ha, Hb.
  set (t := (v - a) / (b - a)). assert (T : t * (b - a) = v - a) by (unfold t; field; lra).
  assert (Ht : 0 <= t <= 1) by (split; apply Rmult_le_reg_r with (b - a); lra).
  assert (B : - e0 <= F a + s * (v - a) <= e0).
  { replace (F a + s * (v - a)) with ((1 - t) * F a + t * F b);
      [|rewrite <- T; replace (F b) with (F a + s * (b - a)) by lra; ring].
    split.
    - assert ((1 - t) * (- e0) <= (1 - t) * F a) by (apply Rmult_le_compat_l; lra).
      assert (t * (- e0) <= t * F b) by (apply Rmult_le_compat_l; lra). lra.
    - assert ((1 - t) * F a <= (1 - t) * e0) by (apply Rmult_le_compat_l; lra).
      assert (t * F b <= t * e0) by (apply Rmult_le_compat_l; lra). lra. }
  set (w := (v - a) * (b - v)). assert (W0 : 0 <= w) by (apply Rmult_le_pos; lra).
  assert (W1 : w <= (b - a) * (b - a) / 4).
  { pose proof (Rle_0_sqr (v - a - (b - v))) as Q. unfold Rsqr in Q. unfold w. nra. }
  assert (E' : F v = F a + s * (v - a) - K * w) by (unfold w; lra).
  assert (K * w <= M / 2 * w) by (apply Rmult_le_compat_r; lra).
  assert (- (M / 2) * w <= K * w) by (apply Rmult_le_compat_r; lra).
  assert (M / 2 * w <= M / 2 * ((b - a) * (b - a) / 4)) by (apply Rmult_le_compat_l; lra).
  apply Rabs_le. lra.
Qed.
"""
