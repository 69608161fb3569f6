(** * Vectors, matrices, and the feed-forward network that does nothing

    What the other files need to know about lists of numbers; then the pair of ReLUs that makes a feed-forward network the
    identity. *)
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
  unfold vscale. revert w; induction a as [|x a IH]; intros [|z w]; simpl; try ring. rewrite IH. ring.
Qed.

Lemma dot_zeros m w : dot (repeat 0 m) w = 0.
Proof. revert w; induction m as [|m IH]; intros [|z w]; simpl; try ring. rewrite IH. ring. Qed.

Lemma dot_zeros_r m w : dot w (repeat 0 m) = 0.
Proof. revert w; induction m as [|m IH]; intros [|z w]; simpl; try ring. rewrite IH. ring. Qed.

Lemma vadd_length a b : length a = length b -> length (vadd a b) = length a.
Proof.
  revert b; induction a as [|x a IH]; intros [|y b] H; try discriminate; [easy|].
  simpl. f_equal. apply IH. now injection H.
Qed.

Lemma vadd_app a b a' b' : length a = length b -> vadd (a ++ a') (b ++ b') = vadd a b ++ vadd a' b'.
Proof.
  revert b; induction a as [|x a IH]; intros [|y b] H; try discriminate; [easy|]. simpl. f_equal. apply IH. now injection H.
Qed.

Lemma vadd_zeros a : vadd a (repeat 0 (length a)) = a.
Proof. induction a as [|x a IH]; [easy|]. simpl. rewrite IH. f_equal. ring. Qed.

Lemma vm_length d (a : vec) (M : mat) : rows d M -> length (vm a M d) = d.
Proof.
  intros H; revert a; induction H as [|r M Hr _ IH]; intros [|x a]; try apply repeat_length.
  cbn [vm]. unfold vscale. rewrite vadd_length; rewrite map_length; [easy|]. now rewrite IH.
Qed.

(** Reading a product of vector and matrix. *)
Lemma dot_vm d (a : vec) (M : mat) (w : vec) : rows d M ->
  dot (vm a M d) w = dot a (map (fun r => dot r w) M).
Proof.
  intros H; revert a; induction H as [|r M Hr HM IH]; intros [|x a]; try apply dot_zeros.
  cbn [vm map dot]. unfold vscale. rewrite dot_vadd by (rewrite map_length, vm_length; auto).
  fold (vscale x r). now rewrite dot_vscale, IH.
Qed.

(** ** One-hot codes *)

Fixpoint onehot (D j : nat) : vec :=
  match D, j with
  | O, _ => []
  | succ D', O => 1 :: repeat 0 D'
  | succ D', succ j' => 0 :: onehot D' j'
  end.

Lemma onehot_length D j : length (onehot D j) = D.
Proof. revert j; induction D as [|D IH]; intros [|j]; simpl; try rewrite repeat_length; auto. Qed.

Lemma dot_onehot v : forall j, dot v (onehot (length v) j) = nth j v 0.
Proof.
  induction v as [|x v IH]; intros [|j]; try reflexivity; simpl.
  - rewrite dot_zeros_r. ring.
  - rewrite IH. ring.
Qed.

(** Reading a vector at all codes gives the vector. *)
Lemma dot_onehots v : map (fun j => dot (onehot (length v) j) v) (seq 0 (length v)) = v.
Proof.
  induction v as [|x v IH]; [easy|]. cbn [length seq map]. f_equal.
  - simpl. rewrite dot_zeros. ring.
  - rewrite <- seq_shift, map_map. etransitivity; [|exact IH]. apply map_ext. intros j. simpl. ring.
Qed.

(** ** The feed-forward network as the identity (hole G5 of the paper's proof) *)

Definition identity (d : nat) : mat := map (onehot d) (seq 0 d).
Definition negative (a : vec) : vec := map Ropp a.

Lemma relu_pair z : relu z - relu (- z) = z.
Proof. unfold relu, Rmax. destruct (Rle_dec 0 z), (Rle_dec 0 (- z)); lra. Qed.

Lemma identity_rows d : rows d (identity d).
Proof. apply Forall_map, Forall_forall. intros j _. apply onehot_length. Qed.

Lemma vm_identity z : vm z (identity (length z)) (length z) = z.
Proof.
  induction z as [|x z IH]; [easy|]. unfold identity. cbn [length seq map vm]. rewrite <- seq_shift, map_map.
  assert (E : forall (a : vec) M d, vm a (map (cons 0) M) (succ d) = 0 :: vm a M d).
  { induction a as [|y a IHa]; intros [|r M] d; try reflexivity. cbn [map vm]. rewrite IHa. simpl. f_equal. ring. }
  change (fun j => onehot (succ (length z)) (succ j)) with (fun j => (fun r => 0 :: r) (onehot (length z) j)).
  rewrite <- (map_map (onehot (length z)) (cons 0)), E. fold (identity (length z)). rewrite IH. simpl. f_equal; [ring|].
  clear. induction z as [|y z IH]; [easy|]. simpl. f_equal; [ring|exact IH].
Qed.

(** A layer of pairs (z, -z), and its inverse. *)
Lemma vm_pairs d (a : vec) (M : mat) : rows d M ->
  vm a (map (fun r => r ++ negative r) M) (d + d) = vm a M d ++ negative (vm a M d).
Proof.
  assert (Z : repeat 0 (d + d) = repeat 0 d ++ negative (repeat 0 d)).
  { rewrite repeat_app. f_equal. unfold negative. clear. induction d as [|d IH]; [easy|]. simpl. rewrite <- IH. f_equal. ring. }
  intros H; revert a; induction H as [|r M Hr HM IH]; intros [|x a]; try exact Z.
  cbn [map vm]. rewrite IH. unfold vscale. rewrite map_app, vadd_app by (rewrite map_length, vm_length; auto). f_equal.
  generalize (vm a M d). clear. induction r as [|y r IH]; intros [|z v]; try reflexivity. cbn. rewrite <- IH. f_equal. ring.
Qed.

Lemma vm_inverse d : forall (a b : vec) (M : mat), rows d M -> length a = length M -> length b = length M ->
  vm (a ++ b) (M ++ map negative M) d = vm (vadd a (negative b)) M d.
Proof.
  intros a b M H Ha Hb.
  assert (N : rows d (map negative M)).
  { apply Forall_map. eapply Forall_impl; [|exact H]. intros r Hr. unfold negative. now rewrite map_length. }
  (* equal in every coordinate *)
  assert (Same : forall v w : vec, length v = d -> length w = d -> (forall j, dot v (onehot d j) = dot w (onehot d j)) -> v = w).
  { intros v w Hv Hw E. apply nth_ext with 0 0; [congruence|]. intros j _.
    rewrite <- !dot_onehot, Hv, Hw. apply E. }
  apply Same; [apply vm_length, Forall_app; auto|now apply vm_length|]. intros j.
  rewrite !dot_vm by (try apply Forall_app; auto). rewrite map_app, dot_app by now rewrite map_length.
  rewrite dot_vadd by (unfold negative; rewrite map_length; congruence). f_equal.
  clear - Hb. rewrite map_map. revert b Hb; induction M as [|r M IH]; intros [|y b] Hb; try discriminate; [easy|].
  cbn [map dot negative]. fold (negative b). rewrite IH by (simpl in Hb; lia). f_equal.
  assert (E : dot (negative r) (onehot d j) = - dot r (onehot d j)).
  { generalize (onehot d j). clear. induction r as [|z r IH]; intros [|v w]; simpl; try ring. fold (negative r). rewrite IH. ring. }
  rewrite E. ring.
Qed.
