
(* How often the token at a position occurs: one check for every token and every count. *)
Definition check_histogram (L : layer num) (tol : num) (V n : nat) : bool :=
  let steep := steepN L in
  forallb (fun q => forallb (fun c => check_count L steep tol V n 0 q c (natN c)) (seq 1 n)) (seq 0 V).

Lemma histogram_sound L tol V n : shift L = repeat (hd [] (shift L)) n -> scale L = repeat (hd [] (scale L)) n ->
  P L = repeat (hd [] (P L)) n -> check_histogram L tol V n = true ->
  forall x, length x = n -> Forall (fun v => v < V)%nat x -> forall i, (i < n)%nat ->
  Rabs (nth 0 (run (real L) i (inputs V x)) 0 - INR (occurs (nth i x 0%nat) x)) <= val tol.
Proof.
  intros H1 H2 H3 H x Hx HV i Hi. set (q := nth i x 0%nat). assert (Iq : In q x) by (apply nth_In; lia).
  unfold check_histogram in H. cbv zeta in H. rewrite forallb_forall in H. specialize (H q). rewrite in_seq in H.
  pose proof HV as HV'. rewrite Forall_forall in HV'. specialize (H ltac:(specialize (HV' q Iq); lia)).
  rewrite forallb_forall in H. specialize (H (occurs q x)). rewrite in_seq in H.
  assert (Pos : (0 < occurs q x)%nat) by (now apply count_occ_In).
  pose proof (occurs_most q x). specialize (H ltac:(lia)). rewrite <- val_nat.
  apply (count_sound L V n H1 H2 H3 (steepN L) tol i 0 q x (natN (occurs q x)) eq_refl Hx HV H).
  rewrite app_nth1 by (rewrite map_length; lia).
  rewrite (nth_indep _ [] (vals (rowN L V 0))) by (rewrite map_length; lia).
  rewrite (map_nth (fun v => vals (rowN L V v))). unfold ordered. destruct (occurs q x) as [|c]; [lia|]. reflexivity.
Qed.
