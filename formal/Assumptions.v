(** * What the main theorems assume

    Compiling this file prints it, theorem by theorem. It is the axioms of Coq's classical real numbers and nothing else;
    tests/whole/test_formal.py compares. *)
From Onelayer Require Import Assemble Differences Universal Cases Continuous SoftMax Maximum MaxMin Sort.

Print Assumptions outputs_assemble.
Print Assumptions universal.
Print Assumptions universal_run.
Print Assumptions universal_1.
Print Assumptions universal_2.
Print Assumptions universal_sequence.
Print Assumptions sizes.
Print Assumptions universal_continuous.
Print Assumptions softmax_max.
Print Assumptions maximum.
Print Assumptions max_min.
Print Assumptions sorting.
