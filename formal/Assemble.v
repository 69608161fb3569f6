(** * From heads to matrices

    Token j of D is (x_j; e_j; 0), the anchor token is (0; 0; 1) (docs/theory/theorem.md, Section 1). This file writes a list of
    heads over such tokens as the matrices of a layer, and proves what the layer computes: a weighted sum of the heads. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention.
Import ListNotations.
Open Scope R_scope.
Local Notation succ := Datatypes.S.  (* S is the matrix of special tokens *)

(** ** Arithmetic of lists *)

Lemma sum_app a b : sum (a ++ b) = sum a + sum b.
Proof. induction a as [|x a IH]; simpl; [ring|]. rewrite IH. ring. Qed.

Lemma dot_app a b v w : length a = length v -> dot (a ++ b) (v ++ w) = dot a v + dot b w.
Proof.
  revert v; induction a as [|x a IH]; intros [|y v] H; try discriminate; simpl; [ring|].
  rewrite IH by now injection H. ring.
Qed.

Lemma dot_vadd a b w : length a = length b -> dot (vadd a b) w = dot a w + dot b w.
Proof.
  revert b w; induction a as [|x a IH]; intros [|y b] w H; try discriminate; [simpl; ring|].
  destruct w as [|z w]; simpl; [ring|]. rewrite IH by now injection H. ring.
Qed.

Lemma dot_vscale k a w : dot (vscale k a) w = k * dot a w.
Proof.
  revert w; induction a as [|x a IH]; intros [|z w]; simpl; try ring.
  fold (vscale k a). rewrite IH. ring.
Qed.

Lemma dot_zeros m w : dot (repeat 0 m) w = 0.
Proof. revert w; induction m as [|m IH]; intros [|z w]; simpl; try ring. rewrite IH. ring. Qed.

Lemma vadd_length a b : length a = length b -> length (vadd a b) = length a.
Proof.
  revert b; induction a as [|x a IH]; intros [|y b] H; try discriminate; [easy|].
  simpl. f_equal. apply IH. now injection H.
Qed.

Lemma vadd_zeros m : vadd (repeat 0 m) (repeat 0 m) = repeat 0 m.
Proof. induction m as [|m IH]; [easy|]. simpl. rewrite IH. f_equal. ring. Qed.

Lemma vscale_zeros k m : vscale k (repeat 0 m) = repeat 0 m.
Proof. induction m as [|m IH]; [easy|]. simpl. fold (vscale k (repeat 0 m)). rewrite IH. f_equal. ring. Qed.

(** ** One-hot codes *)

Fixpoint onehot (D j : nat) : vec :=
  match D, j with
  | O, _ => []
  | succ D', O => 1 :: repeat 0 D'
  | succ D', succ j' => 0 :: onehot D' j'
  end.

Lemma onehot_length D j : length (onehot D j) = D.
Proof. revert j; induction D as [|D IH]; intros [|j]; simpl; try rewrite repeat_length; auto. Qed.

(** Reading a vector at all codes gives the vector. *)
Lemma dot_onehots v : map (fun j => dot (onehot (length v) j) v) (seq 0 (length v)) = v.
Proof.
  induction v as [|x v IH]; [easy|]. cbn [length seq map]. f_equal.
  - simpl. rewrite dot_zeros. ring.
  - rewrite <- seq_shift, map_map. etransitivity; [|exact IH]. apply map_ext. intros j. simpl. ring.
Qed.

(** ** Heads and their matrices *)

(** A head: its key on x, on the code of each position and on the anchor's flag; its value on x and on the flag; its row in W^O. *)
Record unit_head := { key_x : R; key_code : vec; key_flag : R; value_x : R; value_flag : R; weight : R }.

Definition code (D j : nat) : vec := 0 :: onehot D j ++ [0].
Definition anchor (D : nat) : vec := 0 :: repeat 0 D ++ [1].
Definition column (a : R) (c : vec) (b : R) : vec := a :: c ++ [b].

(** All queries are 1; the feed-forward network is the identity relu(z) - relu(-z) on the first coordinate. *)
Definition assemble (D : nat) (low side : vec) (special : mat) (hs : list unit_head) (bias : R) : layer := {|
  d_model := D + 2; d_ff := 2;
  shift := low; scale := map Rinv side;
  W_E := column 1 (repeat 0 D) 0; b_E := column 0 (repeat 0 D) 0; P := map (code D) (seq 0 D); S := special;
  W_Q := map (fun _ => column 0 (repeat 1 D) 1) hs;
  W_K := map (fun h => column (key_x h) (key_code h) (key_flag h)) hs;
  W_V := map (fun h => column (value_x h) (repeat 0 D) (value_flag h)) hs;
  W_O := map (fun h => weight h :: repeat 0 (D + 1)) hs;
  W_1 := [1; -1] :: repeat [0; 0] (D + 1); b_1 := [0; 0];
  W_2 := [1 :: repeat 0 (D + 1); -1 :: repeat 0 (D + 1)]; b_2 := repeat 0 (D + 2);
  W_R := 1 :: repeat 0 (D + 1); b_R := bias |}.

(** What a column of weights sees of a data token, and of the anchor. *)
Lemma on_data D u j a c b : length c = D ->
  dot (vadd (vadd (vscale u (column 1 (repeat 0 D) 0)) (column 0 (repeat 0 D) 0)) (code D j)) (column a c b)
  = u * a + dot (onehot D j) c.
Proof.
  intros H. set (e := vscale u _). set (z := column 0 _ _).
  assert (He : length e = (D + 2)%nat) by (unfold e, vscale, column; rewrite map_length; simpl; rewrite app_length, repeat_length; simpl; lia).
  assert (Hz : length z = (D + 2)%nat) by (unfold z, column; simpl; rewrite app_length, repeat_length; simpl; lia).
  assert (Hc : length (code D j) = (D + 2)%nat) by (unfold code; simpl; rewrite app_length, onehot_length; simpl; lia).
  rewrite !dot_vadd by (rewrite ?vadd_length; congruence). unfold e, z, code, column. rewrite dot_vscale. cbn [dot].
  rewrite !dot_app by (rewrite ?repeat_length, ?onehot_length; lia). rewrite !dot_zeros. simpl. ring.
Qed.

Lemma on_anchor D a c b : length c = D -> dot (anchor D) (column a c b) = b.
Proof. intros H. unfold anchor, column. simpl. rewrite dot_app, dot_zeros by now rewrite repeat_length. simpl. ring. Qed.

(** What a column of weights sees of all data tokens. *)
Lemma on_embedding D low side special hs bias x a c b : length c = D ->
  map (fun r => dot r (column a c b)) (embed (assemble D low side special hs bias) x)
  = map (fun '(u, ci) => u * a + ci) (combine (normalise (assemble D low side special hs bias) x) c).
Proof.
  intros H. unfold embed. rewrite map_map. cbn [W_E b_E P assemble].
  set (us := normalise _ x). clearbody us.
  transitivity (map (fun '(u, ci) => u * a + ci) (combine us (map (fun j => dot (onehot D j) c) (seq 0 D)))).
  2: { rewrite <- H. now rewrite dot_onehots. }
  generalize (seq 0 D). intros js. revert js; induction us as [|u us IH]; intros [|j js]; try reflexivity.
  cbn [map combine]. rewrite IH, on_data by easy. reflexivity.
Qed.

(** Special tokens: none, or the anchor alone. *)
Definition anchored (D : nat) (special : mat) := special = [] \/ special = [anchor D].

(** The scores and the values of a head on normalised inputs [u]; [rest] is what the special tokens add. *)
Definition scores (h : unit_head) (u : vec) : vec := map (fun '(ui, ci) => ui * key_x h + ci) (combine u (key_code h)).
Definition head_output (special : mat) (h : unit_head) (u : vec) : R :=
  match special with
  | [] => attend (scores h u) (map (Rmult (value_x h)) u)
  | _ => attend (scores h u ++ [key_flag h]) (map (Rmult (value_x h)) u ++ [value_flag h])
  end.

(** Every token asks the same question: its query is 1. *)
Lemma query D low side special hs bias x : let L := assemble D low side special hs bias in
  anchored D special -> length (normalise L x) = D -> (special = [] -> (0 < D)%nat) ->
  dot (last (tokens L x) []) (column 0 (repeat 1 D) 1) = 1.
Proof.
  intros L Hs Hu HD. unfold tokens. change (S L) with special.
  assert (Last : forall (t : mat) w, dot (last t []) w = last (map (fun r => dot r w) t) 0).
  { intros t w. induction t as [|r [|r' t] IH]; [easy..|]. exact IH. }
  destruct Hs as [-> | ->].
  - rewrite app_nil_r, Last. unfold L at 1. rewrite on_embedding by apply repeat_length. fold L.
    rewrite <- Hu. assert (Hn : normalise L x <> []) by (intros E; rewrite E in Hu; simpl in Hu; specialize (HD eq_refl); lia).
    clear - Hn. induction (normalise L x) as [|u [|u' us] IH]; [easy| simpl; ring |]. now apply IH.
  - rewrite last_last. apply on_anchor, repeat_length.
Qed.

(** Two ReLUs are the identity (hole G5 of the paper's proof). *)
Lemma relu_pair z : relu z - relu (- z) = z.
Proof. unfold relu, Rmax. destruct (Rle_dec 0 z), (Rle_dec 0 (- z)); lra. Qed.

(** Behind the heads, the layer sums them with their weights. *)
Lemma behind_assemble D low side special (hs : list unit_head) bias (g : unit_head -> R) :
  behind (assemble D low side special hs bias) (map g hs) = sum (map (fun h => weight h * g h) hs) + bias.
Proof.
  unfold behind. cbn [d_model d_ff W_O W_1 b_1 W_2 b_2 W_R b_R assemble]. f_equal.
  replace (D + 2)%nat with (succ (D + 1)) by lia. set (m := (D + 1)%nat). clearbody m.
  assert (E : vm (map g hs) (map (fun h => weight h :: repeat 0 m) hs) (succ m)
            = sum (map (fun h => weight h * g h) hs) :: repeat 0 m).
  { induction hs as [|h hs IH]; [easy|]. cbn [map vm sum]. rewrite IH. unfold vscale. cbn [map vadd].
    fold (vscale (g h) (repeat 0 m)). rewrite vscale_zeros, vadd_zeros. f_equal. ring. }
  rewrite E. set (s := sum _). clearbody s.
  assert (Z : vm (repeat 0 m) (repeat [0; 0] m) 2 = [0; 0]).
  { clear. induction m as [|m IH]; [easy|]. cbn [repeat vm]. rewrite IH. cbn. repeat (f_equal; try ring). }
  cbn [vm]. rewrite Z. cbn [vscale map vadd repeat].
  replace (s * 1 + 0 + 0) with s by ring. replace (s * -1 + 0 + 0) with (- s) by ring.
  cbn [vm vscale map vadd repeat dot]. rewrite dot_vadd.
  2: { fold (vscale (relu s) (repeat 0 m)) (vscale (relu (- s)) (repeat 0 m)).
       rewrite !vscale_zeros, !vadd_zeros. easy. }
  fold (vscale (relu s) (repeat 0 m)) (vscale (relu (- s)) (repeat 0 m)).
  rewrite !vscale_zeros, !vadd_zeros, dot_zeros. pose proof (relu_pair s). lra.
Qed.

(** One head, written out. *)
Lemma head_assemble D low side special hs bias x h : let L := assemble D low side special hs bias in
  anchored D special -> length (normalise L x) = D -> (special = [] -> (0 < D)%nat) -> length (key_code h) = D ->
  head L x (last (tokens L x) []) (column 0 (repeat 1 D) 1) (column (key_x h) (key_code h) (key_flag h))
    (column (value_x h) (repeat 0 D) (value_flag h))
  = head_output special h (normalise L x).
Proof.
  intros L Hs Hu HD Hk. unfold head.
  pose proof (query D low side special hs bias x Hs Hu HD) as Q. fold L in Q. rewrite Q. clear Q.
  set (key := column (key_x h) _ _). set (val := column (value_x h) _ _).
  assert (K : map (fun r => 1 * dot r key) (embed L x) = scores h (normalise L x)).
  { unfold scores, L, key. rewrite <- (on_embedding D low side special hs bias x (key_x h) (key_code h) (key_flag h) Hk).
    apply map_ext. intros r. ring. }
  assert (V : map (fun r => dot r val) (embed L x) = map (Rmult (value_x h)) (normalise L x)).
  { unfold L, val. rewrite on_embedding by apply repeat_length. fold L. rewrite <- Hu. clear.
    induction (normalise L x) as [|u us IH]; [easy|]. cbn [length repeat combine map]. rewrite IH. f_equal. ring. }
  unfold tokens, head_output. change (S L) with special. destruct Hs as [-> | ->].
  - now rewrite app_nil_r, K, V.
  - rewrite !map_app, K, V. cbn [map]. unfold key, val. rewrite !on_anchor by (easy || apply repeat_length).
    now rewrite Rmult_1_l.
Qed.

(** The layer computes the weighted sum of its heads. *)
Theorem run_assemble D low side special hs bias x : let L := assemble D low side special hs bias in
  anchored D special -> length (normalise L x) = D -> (special = [] -> (0 < D)%nat) ->
  (forall h, In h hs -> length (key_code h) = D) ->
  run L x = sum (map (fun h => weight h * head_output special h (normalise L x)) hs) + bias.
Proof.
  intros L Hs Hu HD Hk. unfold run. rewrite <- (behind_assemble D low side special hs bias). fold L. f_equal.
  assert (M : forall ask l (q k v : unit_head -> vec),
    heads L x ask (map q l) (map k l) (map v l) = map (fun h => head L x ask (q h) (k h) (v h)) l).
  { intros ask l q k v. induction l as [|h l IH]; [easy|]. cbn. now rewrite IH. }
  etransitivity; [apply (M _ hs)|]. apply map_ext_in. intros h Hh.
  apply head_assemble; auto.
Qed.
