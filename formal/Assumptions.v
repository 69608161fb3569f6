(** * The main theorems, and what they assume

    Compiling this file prints them. They assume the axioms of Coq's classical real numbers and nothing else;
    tests/whole/test_formal.py compares. *)
From Coq Require Import Reals List.
From Onelayer Require Import Attention Matrices Assemble Gates Universal Cases Continuous SoftMax Maximum MaxMin Sort.
Open Scope R_scope.

Check universal.
Check universal_compact.
Check maximum.
Check sorting.

Definition theorems := (feed_forward_identity, outputs_assemble, outputs_universal, universal_well_formed, universal, number_of_heads, universal_run,
  universal_1, universal_2, universal_sequence, sizes, sizes_exist, universal_compact, softmax_max, softmax_max_simple, maximum,
  maximum_simple, max_well_formed, sort_permutation, sort_sorted, coefficient_binomial, max_min, sorting, sort_well_formed).
Print Assumptions theorems.
