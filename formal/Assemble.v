(** * From heads to matrices

    Token j of D is (x_j; e_j; 0), the anchor token is (0; 0; 1) (docs/theory/theorem.md, Section 1), both followed by m zeros
    where m outputs will be written. This file writes a list of heads over such tokens as the matrices of a layer, and proves what
    the layer computes: weighted sums of the heads. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices.
Import ListNotations.
Open Scope R_scope.

(** ** Heads and their matrices *)

(** A head: its key on x, on the code of each position and on the anchor's flag; its value on x and on the flag; its row in W^O. *)
Record unit_head := { key_x : R; key_code : vec; key_flag : R; value_x : R; value_flag : R; weight : vec }.

(** Coordinates of the stream: x, the code, the flag, and room for m outputs. *)
Definition column (m : nat) (a : R) (c : vec) (b : R) : vec := a :: c ++ b :: repeat 0 m.
Definition code (D m j : nat) : vec := column m 0 (onehot D j) 0.
Definition anchor (D m : nat) : vec := column m 0 (repeat 0 D) 1.

(** All queries are 1, and the feed-forward network is the identity. *)
Definition assemble (D : nat) (low side : vec) (special : mat) (hs : list unit_head) (bias : vec) : layer :=
  let m := length bias in let d := (m + (D + 2))%nat in {|
  d_model := d; d_ff := d + d;
  shift := low; scale := map Rinv side;
  W_E := column m 1 (repeat 0 D) 0; b_E := column m 0 (repeat 0 D) 0; P := map (code D m) (seq 0 D); S := special;
  W_Q := map (fun _ => column m 0 (repeat 1 D) 1) hs;
  W_K := map (fun h => column m (key_x h) (key_code h) (key_flag h)) hs;
  W_V := map (fun h => column m (value_x h) (repeat 0 D) (value_flag h)) hs;
  W_O := map (fun h => weight h ++ repeat 0 (D + 2)) hs;
  W_1 := map (fun r => r ++ negative r) (identity d); b_1 := repeat 0 (d + d);
  W_2 := identity d ++ map negative (identity d); b_2 := repeat 0 d;
  W_R := map (onehot d) (seq 0 m); b_R := bias |}.

Lemma feed_forward_identity D low side special hs bias (z : vec) : let L := assemble D low side special hs bias in
  length z = d_model L -> feed_forward L z = z.
Proof.
  intros L H. unfold feed_forward. set (d := d_model L) in *.
  change (d_ff L) with (d + d)%nat. change (W_1 L) with (map (fun r => r ++ negative r) (identity d)).
  change (b_1 L) with (repeat 0 (d + d)). change (W_2 L) with (identity d ++ map negative (identity d)).
  change (b_2 L) with (repeat 0 d). rewrite <- H.
  rewrite vm_pairs, vm_identity by apply identity_rows.
  assert (Hn : length (negative z) = length z) by apply map_length.
  assert (Hi : length (identity (length z)) = length z) by (unfold identity; now rewrite map_length, seq_length).
  replace (length z + length z)%nat with (length (z ++ negative z)) by now rewrite app_length, Hn.
  rewrite vadd_zeros, map_app.
  rewrite (vm_inverse (length z) (map relu z) (map relu (negative z)) (identity (length z)) (identity_rows _))
    by (rewrite Hi; unfold negative; now rewrite !map_length).
  assert (E : vadd (map relu z) (negative (map relu (negative z))) = z).
  { clear. induction z as [|x z IH]; [easy|]. simpl. rewrite IH. f_equal. pose proof (relu_pair x). lra. }
  rewrite E, vm_identity. apply vadd_zeros.
Qed.

(** ** What the layer computes *)

Lemma column_length m a c b : length (column m a c b) = (m + (length c + 2))%nat.
Proof. unfold column. simpl. rewrite app_length. simpl. rewrite repeat_length. lia. Qed.

Lemma dot_column m a c b a' c' b' : length c = length c' ->
  dot (column m a c b) (column m a' c' b') = a * a' + dot c c' + b * b'.
Proof. intros H. unfold column. cbn [dot]. rewrite dot_app by easy. cbn [dot]. rewrite dot_zeros. ring. Qed.

(** Its matrices have the right shapes. *)
Lemma assemble_well_formed D low side special hs bias : length low = D -> length side = D ->
  special = [anchor D (length bias)] \/ special = [] ->
  (forall h, In h hs -> length (key_code h) = D /\ length (weight h) = length bias) ->
  well_formed D (length bias) (assemble D low side special hs bias).
Proof.
  intros Hl Hs Hsp Hh. unfold well_formed, rows.
  cbn [shift scale d_model d_ff W_E b_E P S W_Q W_K W_V W_O W_1 b_1 W_2 b_2 W_R b_R assemble].
  pose proof (identity_rows (length bias + (D + 2))) as I.
  assert (Li : length (identity (length bias + (D + 2))) = (length bias + (D + 2))%nat) by (unfold identity; now rewrite map_length, seq_length).
  assert (N : forall r : vec, length (negative r) = length r) by (intros; apply map_length).
  repeat split; rewrite ?Forall_map, ?Forall_app, ?app_length, ?map_length, ?seq_length, ?column_length, ?repeat_length, ?Li; auto;
    try (apply Forall_forall; intros a Ha; cbv beta).
  - unfold code. now rewrite column_length, onehot_length.
  - destruct Hsp as [-> | ->]; [destruct Ha as [<-|[]]|destruct Ha]. unfold anchor. now rewrite column_length, repeat_length.
  - now rewrite ?column_length, ?repeat_length.
  - now rewrite column_length, (proj1 (Hh a Ha)).
  - now rewrite ?column_length, ?repeat_length.
  - now rewrite app_length, repeat_length, (proj2 (Hh a Ha)).
  - unfold rows in I. rewrite Forall_forall in I. now rewrite app_length, N, (I a Ha).
  - split; [exact I|]. apply Forall_map. eapply Forall_impl; [|exact I]. intros a Ha. cbv beta in *. now rewrite N.
  - apply onehot_length.
Qed.

Section Layer.
Variables (D : nat) (low side : vec) (special : mat) (hs : list unit_head) (bias : vec).
Let m := length bias.
Let L := assemble D low side special hs bias.

(** What a column of weights sees of all data tokens. *)
Lemma on_embedding x a c b : length c = D ->
  map (fun r => dot r (column m a c b)) (embed L x) = map (fun '(u, ci) => u * a + ci) (combine (normalise L x) c).
Proof.
  intros H. unfold embed. rewrite map_map. change (W_E L) with (column m 1 (repeat 0 D) 0).
  change (b_E L) with (column m 0 (repeat 0 D) 0). change (P L) with (map (code D m) (seq 0 D)).
  set (us := normalise _ x). clearbody us.
  transitivity (map (fun '(u, ci) => u * a + ci) (combine us (map (fun j => dot (onehot D j) c) (seq 0 D)))).
  2: { rewrite <- H. now rewrite dot_onehots. }
  generalize (seq 0 D). intros js. revert js; induction us as [|u us IH]; intros [|j js]; try reflexivity.
  cbn [map combine]. rewrite IH. f_equal. unfold code.
  set (e := vscale u _). set (z := column m 0 (repeat 0 D) 0). set (p := column m 0 (onehot D j) 0).
  assert (He : length e = (m + (D + 2))%nat) by (unfold e, vscale; now rewrite map_length, column_length, repeat_length).
  assert (Hz : length z = (m + (D + 2))%nat) by (unfold z; now rewrite column_length, repeat_length).
  assert (Hp : length p = (m + (D + 2))%nat) by (unfold p; now rewrite column_length, onehot_length).
  rewrite !dot_vadd by (rewrite ?vadd_length; congruence). unfold e, z, p. rewrite dot_vscale.
  rewrite !dot_column by (rewrite ?repeat_length, ?onehot_length; congruence). rewrite dot_zeros. ring.
Qed.

(** Special tokens: none, or the anchor alone. A layer without tokens computes nothing. *)
Definition with_tokens := special = [anchor D m] \/ (special = [] /\ (0 < D)%nat).

(** The scores of a head on normalised inputs [u], and its output. *)
Definition scores (h : unit_head) (u : vec) : vec := map (fun '(ui, ci) => ui * key_x h + ci) (combine u (key_code h)).
Definition head_output (h : unit_head) (u : vec) : R :=
  match special with
  | [] => attend (scores h u) (map (Rmult (value_x h)) u)
  | _ => attend (scores h u ++ [key_flag h]) (map (Rmult (value_x h)) u ++ [value_flag h])
  end.

Lemma on_anchor a c b : length c = D -> dot (anchor D m) (column m a c b) = b.
Proof. intros H. unfold anchor. rewrite dot_column, dot_zeros by now rewrite repeat_length. ring. Qed.

(** Every token asks the same question: its query is 1. *)
Lemma query x : with_tokens -> length (normalise L x) = D -> dot (last (tokens L x) []) (column m 0 (repeat 1 D) 1) = 1.
Proof.
  intros Hs Hu. unfold tokens. change (S L) with special.
  assert (Last : forall (t : mat) w, dot (last t []) w = last (map (fun r => dot r w) t) 0).
  { intros t w. induction t as [|r [|r' t] IH]; [easy..|]. exact IH. }
  destruct Hs as [E | [E HD]]; rewrite E.
  - rewrite last_last. apply on_anchor, repeat_length.
  - rewrite app_nil_r, Last, on_embedding by apply repeat_length. rewrite <- Hu in HD |- * at 1.
    clear - HD. induction (normalise L x) as [|u [|u' us] IH]; [simpl in HD; lia|simpl; ring|].
    apply IH. simpl. lia.
Qed.

(** One head, written out. *)
Lemma head_assemble x h : with_tokens -> length (normalise L x) = D -> length (key_code h) = D ->
  head L x (last (tokens L x) []) (column m 0 (repeat 1 D) 1) (column m (key_x h) (key_code h) (key_flag h))
    (column m (value_x h) (repeat 0 D) (value_flag h))
  = head_output h (normalise L x).
Proof.
  intros Hs Hu Hk. unfold head. rewrite (query x Hs Hu).
  set (key := column m (key_x h) _ _). set (val := column m (value_x h) _ _).
  assert (K : map (fun r => 1 * dot r key) (embed L x) = scores h (normalise L x)).
  { unfold scores, key. rewrite <- (on_embedding x (key_x h) (key_code h) (key_flag h) Hk). apply map_ext. intros r. ring. }
  assert (V : map (fun r => dot r val) (embed L x) = map (Rmult (value_x h)) (normalise L x)).
  { unfold val. rewrite on_embedding by apply repeat_length. rewrite <- Hu. clear.
    induction (normalise L x) as [|u us IH]; [easy|]. cbn [length repeat combine map]. rewrite IH. f_equal. ring. }
  unfold tokens, head_output. change (S L) with special. destruct Hs as [E | [E _]]; rewrite E.
  - rewrite !map_app, K, V. cbn [map]. unfold key, val. rewrite !on_anchor by (easy || apply repeat_length).
    now rewrite Rmult_1_l.
  - now rewrite app_nil_r, K, V.
Qed.

(** Output q is the sum of the heads, each times entry q of its weight. *)
Theorem outputs_assemble x q : with_tokens -> length (normalise L x) = D -> (q < m)%nat ->
  (forall h, In h hs -> length (key_code h) = D /\ length (weight h) = m) ->
  nth q (outputs L x) 0 = sum (map (fun h => nth q (weight h) 0 * head_output h (normalise L x)) hs) + nth q bias 0.
Proof.
  intros Hs Hu Hq Hh. unfold outputs.
  assert (M : forall ask l (wq wk wv : unit_head -> vec),
    heads L x ask (map wq l) (map wk l) (map wv l) = map (fun h => head L x ask (wq h) (wk h) (wv h)) l).
  { intros ask l wq wk wv. induction l as [|h l IH]; [easy|]. cbn. now rewrite IH. }
  replace (heads L x _ _ _ _) with (map (fun h => head_output h (normalise L x)) hs).
  2: { symmetry. etransitivity; [apply (M _ hs)|]. apply map_ext_in. intros h H. now apply head_assemble; [..|apply Hh]. }
  assert (Rows : rows (d_model L) (W_O L)).
  { cbn [W_O L assemble d_model]. apply Forall_map, Forall_forall. intros h H. rewrite app_length, repeat_length.
    now rewrite (proj2 (Hh h H)). }
  unfold L. rewrite feed_forward_identity by now apply vm_length. fold L.
  set (z := vm _ (W_O L) (d_model L)).
  assert (E : map (fun '(r, b) => dot z r + b) (combine (W_R L) (b_R L))
            = map (fun '(p, b) => dot z (onehot (d_model L) p) + b) (combine (seq 0 m) bias)).
  { cbn [W_R b_R L assemble]. fold m. generalize (seq 0 m), bias. clear. induction l as [|p l IH]; intros [|b v]; try reflexivity.
    cbn [map combine]. now rewrite IH. }
  rewrite E. set (g := fun '(p, b) => _).
  rewrite (nth_indep _ 0 (g (O, 0))) by (rewrite map_length, combine_length, seq_length; fold m; lia).
  rewrite map_nth, combine_nth, seq_nth by (rewrite ?seq_length; easy). cbn [g Nat.add]. f_equal.
  unfold z. rewrite dot_vm by easy. cbn [W_O L assemble]. rewrite map_map. clear - Hh Hq.
  assert (H : forall h, In h hs -> dot (weight h ++ repeat 0 (D + 2)) (onehot (d_model L) q) = nth q (weight h) 0).
  { intros h H. destruct (Hh h H) as [_ Hw]. cbn [d_model L assemble]. fold m. rewrite <- Hw.
    replace (length (weight h) + (D + 2))%nat with (length (weight h ++ repeat 0 (D + 2))) by now rewrite app_length, repeat_length.
    rewrite dot_onehot. apply app_nth1. lia. }
  clear Hh Hq. set (u := normalise L x). set (d := d_model L) in *. clearbody u d. revert H. generalize hs as l.
  induction l as [|h l IH]; intros H; [easy|]. cbn [map dot sum]. rewrite H by now left. rewrite IH; [ring|].
  intros h' H'. apply H. now right.
Qed.
End Layer.
