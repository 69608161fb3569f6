
(* A function of the number of ones among n bits, read at a special token: one check for every count. *)
Definition check_bits (L : layer num) (tol : num) (n read : nat) (answer : nat -> nat) : bool :=
  let steep := steepN L in
  alike L 2 1 (nth (read - n) (S L) []) &&
  forallb (fun c => check L steep tol read (map (unitN 2) (ordered n 1 c)) [natN (answer c)]) (seq 0 (Datatypes.S n)).

Lemma bits_sound L tol n read answer : shift L = repeat (hd [] (shift L)) n -> scale L = repeat (hd [] (scale L)) n ->
  P L = repeat (hd [] (P L)) n -> (n <= read)%nat -> check_bits L tol n read answer = true ->
  forall x, length x = n -> Forall (fun v => v < 2)%nat x ->
  Rabs (nth 0 (run (real L) read (inputs 2 x)) 0 - INR (answer (occurs 1 x))) <= val tol.
Proof.
  intros H1 H2 H3 Hr H x Hx HV. unfold check_bits in H. cbv zeta in H. apply andb_true_iff in H as [A C].
  rewrite forallb_forall in C. specialize (C (occurs 1 x)). rewrite in_seq in C. pose proof (occurs_most 1 x).
  specialize (C ltac:(lia)).
  assert (Ask : forall y, length y = n -> nth read (map (fun v => vals (rowN L 2 v)) y ++ map vals (S L)) [] = vals (nth (read - n) (S L) [])).
  { intros y Hy. rewrite app_nth2 by (rewrite map_length; lia). rewrite map_length, Hy. change (@nil R) with (vals []). apply map_nth. }
  rewrite (run_ordered L 2 n H1 H2 H3 read read (nth (read - n) (S L) []) 1 x Hx HV A).
  - unfold inputs. rewrite (map_ext (unit_vector 2) (fun v => vals (unitN 2 v))) by (intros; now rewrite unit_vals).
    rewrite <- (map_map (unitN 2) vals). apply check_sound in C. inversion C as [|a b l m B D]; subst. cbn [nth].
    rewrite val_nat in B. exact B.
  - now apply Ask.
  - apply Ask. unfold ordered. rewrite app_length, !repeat_length. lia.
Qed.
