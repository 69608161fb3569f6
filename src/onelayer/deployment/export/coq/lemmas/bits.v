
(* A function of the number of ones among n bits, read at a special token: one check for every count. *)
Definition check_bits (L : layer num) (tol : num) (n read : nat) (answer : nat -> nat) : bool :=
  let steep := steepN L in forallb (fun c => check_count L steep tol 2 n read 1 c (natN (answer c))) (seq 0 (Datatypes.S n)).

Lemma bits_sound L tol n read answer : shift L = repeat (hd [] (shift L)) n -> scale L = repeat (hd [] (scale L)) n ->
  P L = repeat (hd [] (P L)) n -> (n <= read)%nat -> check_bits L tol n read answer = true ->
  forall x, length x = n -> Forall (fun v => v < 2)%nat x ->
  Rabs (nth 0 (run (real L) read (inputs 2 x)) 0 - INR (answer (occurs 1 x))) <= val tol.
Proof.
  intros H1 H2 H3 Hr H x Hx HV. unfold check_bits in H. cbv zeta in H.
  rewrite forallb_forall in H. specialize (H (occurs 1 x)). rewrite in_seq in H. pose proof (occurs_most 1 x).
  specialize (H ltac:(lia)). rewrite <- val_nat.
  apply (count_sound L 2 n H1 H2 H3 (steepN L) tol read read 1 x (natN (answer (occurs 1 x))) eq_refl Hx HV H).
  rewrite !app_nth2; rewrite !map_length; unfold ordered; rewrite ?app_length, ?repeat_length; try lia.
  f_equal. lia.
Qed.
