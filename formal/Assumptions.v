(** * What the main theorems assume: the axioms of Coq's classical real numbers, and nothing else *)
From Onelayer Require Import Universal.

Check universal.
Print Assumptions universal.
