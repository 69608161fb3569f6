From Coq Require Import Reals List Bool Lra Lia ZArith Permutation.
From Interval Require Import Tactic.
Import ListNotations.
Open Scope R_scope.

(** ** A single-layer softmax Transformer over the real numbers *)

Definition vec := list R.
Definition mat := list vec.
Fixpoint sum (a : vec) : R := match a with [] => 0 | x :: a' => x + sum a' end.
Fixpoint dot (a b : vec) : R := match a, b with x :: a', y :: b' => x * y + dot a' b' | _, _ => 0 end.
Fixpoint vadd (a b : vec) : vec := match a, b with x :: a', y :: b' => (x + y) :: vadd a' b' | _, _ => [] end.
Fixpoint vmul (a b : vec) : vec := match a, b with x :: a', y :: b' => (x * y) :: vmul a' b' | _, _ => [] end.
(* a row vector times a matrix of d columns *)
Fixpoint vm (a : vec) (M : mat) (d : nat) : vec :=
  match a, M with x :: a', r :: M' => vadd (map (Rmult x) r) (vm a' M' d) | _, _ => repeat 0 d end.
Definition relu (z : R) : R := Rmax 0 z.

(* Tokens of d numbers; heads (W_Q, W_K, W_V) of widths d_k and d_v. Numbers are of type T. No residual, no LayerNorm. *)
Record layer (T : Type) := { d_model : nat; d_ff : nat; d_k : nat; d_v : nat; d_out : nat;
  shift : list (list T); scale : list (list T); W_E : list (list T); b_E : list T; P : list (list T); S : list (list T);
  heads : list (list (list T) * list (list T) * list (list T)); W_O : list (list T);
  W_1 : list (list T); b_1 : list T; W_2 : list (list T); b_2 : list T; W_R : list (list T); b_R : list T }.
Arguments d_model {T}. Arguments d_ff {T}. Arguments d_k {T}. Arguments d_v {T}. Arguments d_out {T}.
Arguments shift {T}. Arguments scale {T}. Arguments W_E {T}. Arguments b_E {T}. Arguments P {T}. Arguments S {T}.
Arguments heads {T}. Arguments W_O {T}. Arguments W_1 {T}. Arguments b_1 {T}. Arguments W_2 {T}. Arguments b_2 {T}.
Arguments W_R {T}. Arguments b_R {T}.

(* A data token (x - shift) scale W_E + b_E + p; the special tokens follow. *)
Definition token (L : layer R) (x sh sc p : vec) : vec :=
  vadd (vadd (vm (vmul (vadd x (map Ropp sh)) sc) (W_E L) (d_model L)) (b_E L)) p.
Definition tokens (L : layer R) (x : mat) : mat :=
  map (fun '(xj, (sh, (sc, p))) => token L xj sh sc p) (combine x (combine (shift L) (combine (scale L) (P L)))) ++ S L.

(* Softmax attention with scores s and values v; then a head, whose values have d_v columns. *)
Definition attend (s v : vec) : R := dot (map exp s) v / sum (map exp s).
Definition head (L : layer R) (t : mat) (ask : vec) (h : mat * mat * mat) : vec :=
  let '(wq, wk, wv) := h in
  let s := map (fun r => dot (vm ask wq (d_k L)) (vm r wk (d_k L)) / sqrt (INR (d_k L))) t in
  map (fun c => attend s (map (fun r => nth c (vm r wv (d_v L)) 0) t)) (seq 0 (d_v L)).

Definition behind (L : layer R) (z : vec) : vec :=
  let a := vm z (W_O L) (d_model L) in
  let f := vadd (vm (map relu (vadd (vm a (W_1 L) (d_ff L)) (b_1 L))) (W_2 L) (d_model L)) (b_2 L) in
  vadd (vm f (W_R L) (d_out L)) (b_R L).
(* The outputs at one of the tokens. *)
Definition run (L : layer R) (read : nat) (x : mat) : vec :=
  let t := tokens L x in behind L (flat_map (head L t (nth read t [])) (heads L)).

(** ** Stored numbers: the pair (m, e) is m 2^e *)

Definition num := (Z * Z)%type.
Definition val (a : num) : R := IZR (fst a) * powerRZ 2 (snd a).
Definition vals := map val.
Definition real (L : layer num) : layer R := {|
  d_model := d_model L; d_ff := d_ff L; d_k := d_k L; d_v := d_v L; d_out := d_out L;
  shift := map vals (shift L); scale := map vals (scale L); W_E := map vals (W_E L); b_E := vals (b_E L);
  P := map vals (P L); S := map vals (S L);
  heads := map (fun '(q, k, v) => (map vals q, map vals k, map vals v)) (heads L); W_O := map vals (W_O L);
  W_1 := map vals (W_1 L); b_1 := vals (b_1 L); W_2 := map vals (W_2 L); b_2 := vals (b_2 L);
  W_R := map vals (W_R L); b_R := vals (b_R L) |}.
