(** * A single-layer softmax Transformer over the real numbers

    The layer that [onelayer] builds: scalar tokens with positional codes, special tokens, heads of width one, the output matrix
    W^O, a ReLU feed-forward network and a linear read-out at the last token, of one or several numbers. No LayerNorm and no residual. The numbers of the
    equations are those of the paper (docs/theory/paper.md). Numbers are reals: nothing here speaks about rounding. *)
From Coq Require Import Reals List.
Import ListNotations.
Open Scope R_scope.

(** ** Vectors and matrices: lists, and lists of rows *)

Definition vec := list R.
Definition mat := list vec.

Fixpoint sum (a : vec) : R :=
  match a with
  | [] => 0
  | x :: a' => x + sum a'
  end.

Fixpoint dot (a b : vec) : R :=
  match a, b with
  | x :: a', y :: b' => x * y + dot a' b'
  | _, _ => 0
  end.

Fixpoint vadd (a b : vec) : vec :=
  match a, b with
  | x :: a', y :: b' => (x + y) :: vadd a' b'
  | _, _ => []
  end.

Definition vscale (k : R) (a : vec) : vec := map (Rmult k) a.

(** The row vector [a] times the matrix [M], which has [d] columns. *)
Fixpoint vm (a : vec) (M : mat) (d : nat) : vec :=
  match a, M with
  | x :: a', r :: M' => vadd (vscale x r) (vm a' M' d)
  | _, _ => repeat 0 d
  end.

(** ** The weights

    [shift] and [scale] bring the inputs to the unit box. [W_E], [b_E] embed a number, [P] has the code of each position, [S] the
    special tokens. Heads have width d_k = d_v = 1, so that head i has one vector of [W_Q], [W_K], [W_V] each, and one row of
    [W_O]. The read-out has a vector of [W_R] and a number of [b_R] for each output. *)
Record layer := {
  d_model : nat; d_ff : nat;
  shift : vec; scale : vec;
  W_E : vec; b_E : vec; P : mat; S : mat;
  W_Q : list vec; W_K : list vec; W_V : list vec; W_O : mat;
  W_1 : mat; b_1 : vec; W_2 : mat; b_2 : vec;
  W_R : list vec; b_R : vec }.

(** Lists are cut off where their lengths differ, so this says that nothing is: for D inputs and m outputs the weights have the
    shapes of a Transformer. *)
Definition rows (d : nat) (M : mat) : Prop := Forall (fun r : vec => length r = d) M.
Definition well_formed (D m : nat) (L : layer) : Prop :=
  length (shift L) = D /\ length (scale L) = D /\
  length (W_E L) = d_model L /\ length (b_E L) = d_model L /\ length (P L) = D /\ rows (d_model L) (P L) /\ rows (d_model L) (S L) /\
  rows (d_model L) (W_Q L) /\ rows (d_model L) (W_K L) /\ rows (d_model L) (W_V L) /\ rows (d_model L) (W_O L) /\
  length (W_K L) = length (W_Q L) /\ length (W_V L) = length (W_Q L) /\ length (W_O L) = length (W_Q L) /\
  length (W_1 L) = d_model L /\ rows (d_ff L) (W_1 L) /\ length (b_1 L) = d_ff L /\
  length (W_2 L) = d_ff L /\ rows (d_model L) (W_2 L) /\ length (b_2 L) = d_model L /\
  length (W_R L) = m /\ rows (d_model L) (W_R L) /\ length (b_R L) = m.

(** ** The tokens *)

Definition normalise (L : layer) (x : vec) : vec :=
  map (fun '(xi, (m, s)) => (xi - m) * s) (combine x (combine (shift L) (scale L))).

Definition embed (L : layer) (x : vec) : mat :=
  map (fun '(u, p) => vadd (vadd (vscale u (W_E L)) (b_E L)) p) (combine (normalise L x) (P L)).

Definition tokens (L : layer) (x : vec) : mat := embed L x ++ S L.

(** ** Attention *)

(** Eq. (5) and (6): the values [v], averaged with the softmax of the scores [s] as weights. *)
Definition attend (s v : vec) : R := dot (map exp s) v / sum (map exp s).

(** Eq. (7) at the token [ask], for one head: its scores are query times key (over the square root of d_k = 1). *)
Definition head (L : layer) (x ask wq wk wv : vec) : R :=
  attend (map (fun r => dot ask wq * dot r wk) (tokens L x)) (map (fun r => dot r wv) (tokens L x)).

Fixpoint heads (L : layer) (x ask : vec) (wq wk wv : list vec) : vec :=
  match wq, wk, wv with
  | q :: wq', k :: wk', v :: wv' => head L x ask q k v :: heads L x ask wq' wk' wv'
  | _, _, _ => []
  end.

(** ** The output *)

Definition relu (z : R) : R := Rmax 0 z.

(** The feed-forward network: Eq. (1), with ReLU and without. *)
Definition feed_forward (L : layer) (z : vec) : vec :=
  vadd (vm (map relu (vadd (vm z (W_1 L) (d_ff L)) (b_1 L))) (W_2 L) (d_model L)) (b_2 L).

(** The Transformer: heads, W^O (Eq. (8)), feed-forward network and read-out at the last token. *)
Definition outputs (L : layer) (x : vec) : vec :=
  let ask := last (tokens L x) [] in
  let z := vm (heads L x ask (W_Q L) (W_K L) (W_V L)) (W_O L) (d_model L) in
  map (fun '(r, b) => dot (feed_forward L z) r + b) (combine (W_R L) (b_R L)).

(** A Transformer with one output. *)
Definition run (L : layer) (x : vec) : R := hd 0 (outputs L x).
