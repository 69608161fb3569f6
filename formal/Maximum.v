(** * The maximum of n numbers, by one head

    One head whose key is beta x and whose value is x; the tokens need no codes, no anchor and no bounded domain. *)
From Coq Require Import Reals List Lra Lia.
From Onelayer Require Import Attention Matrices Assemble SoftMax.
Import ListNotations.
Open Scope R_scope.

Definition zeros (n : nat) : vec := repeat 0 n.
Definition ones (n : nat) : vec := repeat 1 n.

(** Inputs that are not scaled stay what they are. *)
Lemma normalise_plain D special hs bias x : length x = D -> normalise (assemble D (zeros D) (ones D) special hs bias) x = x.
Proof.
  intros <-. unfold normalise, zeros, ones. cbn [shift scale assemble].
  induction x as [|v x IH]; [easy|]. cbn [length repeat map combine]. rewrite IH. f_equal. rewrite Rinv_1. ring.
Qed.

Definition max_head (n : nat) (beta : R) : unit_head := {|
  key_x := beta; key_code := zeros n; key_flag := 0; value_x := 1; value_flag := 0; weight := [1] |}.
Definition max_layer (n : nat) (beta : R) : layer := assemble n (zeros n) (ones n) [] [max_head n beta] [0].

Lemma max_well_formed n beta : well_formed n 1 (max_layer n beta).
Proof.
  apply (assemble_well_formed n (zeros n) (ones n) [] [max_head n beta] [0]); [apply repeat_length..|now right|].
  intros h [<-|[]]. split; [apply repeat_length|easy].
Qed.

(** The layer is a softmax average. *)
Lemma run_max n beta x : length x = n -> x <> [] -> run (max_layer n beta) x = attend (map (Rmult beta) x) x.
Proof.
  intros Hx Hne. assert (Hn : (0 < n)%nat) by (destruct x; [easy|simpl in Hx; lia]).
  unfold run. transitivity (nth 0 (outputs (max_layer n beta) x) 0); [now destruct (outputs _ _)|].
  unfold max_layer. rewrite outputs_assemble; rewrite ?normalise_plain by easy; cbn [length]; try lia; [|right; auto|].
  - cbn [map sum nth weight max_head head_output value_x]. unfold scores. cbn [key_x key_code max_head].
    replace (map (fun '(ui, ci) => ui * beta + ci) (combine x (zeros n))) with (map (Rmult beta) x).
    + replace (map (Rmult 1) x) with x; [ring|]. clear. induction x as [|v x IH]; [easy|]. simpl. rewrite <- IH. f_equal. ring.
    + subst n. clear. unfold zeros. induction x as [|v x IH]; [easy|]. simpl. rewrite <- IH. f_equal. ring.
  - intros h [<-|[]]. cbn. unfold zeros. rewrite repeat_length. auto.
Qed.

(** It is short of the maximum M by at most c, with the sharp c of SoftMax.v, *)
Theorem maximum n beta c M x : 0 < beta -> length x = n -> In M x -> (forall v, In v x -> v <= M) ->
  INR n - 1 <= beta * c * exp (beta * c + 1) -> 0 <= M - run (max_layer n beta) x <= c.
Proof. intros Hb Hx Hin Hle Hc. rewrite run_max by (auto; now intros ->). apply softmax_max; auto. now rewrite Hx. Qed.

(** and in any case by at most (n-1)/(e beta). *)
Theorem maximum_simple n beta M x : 0 < beta -> length x = n -> In M x -> (forall v, In v x -> v <= M) ->
  0 <= M - run (max_layer n beta) x <= (INR n - 1) / (exp 1 * beta).
Proof. intros Hb Hx Hin Hle. rewrite run_max by (auto; now intros ->). rewrite <- Hx. now apply softmax_max_simple. Qed.
