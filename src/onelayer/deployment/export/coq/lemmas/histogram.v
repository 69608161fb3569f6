
(* How often the token at a position occurs: one check for every token and every count. *)
Definition check_histogram (L : layer num) (tol : num) (V n : nat) : bool :=
  let steep := steepN L in
  forallb (fun q => alike L V q (rowN L V q) &&
    forallb (fun c => check L steep tol 0 (map (unitN V) (ordered n q c)) [natN c]) (seq 1 n)) (seq 0 V).

Lemma histogram_sound L tol V n : shift L = repeat (hd [] (shift L)) n -> scale L = repeat (hd [] (scale L)) n ->
  P L = repeat (hd [] (P L)) n -> check_histogram L tol V n = true ->
  forall x, length x = n -> Forall (fun v => v < V)%nat x -> forall i, (i < n)%nat ->
  Rabs (nth 0 (run (real L) i (inputs V x)) 0 - INR (occurs (nth i x 0%nat) x)) <= val tol.
Proof.
  intros H1 H2 H3 H x Hx HV i Hi. set (q := nth i x 0%nat). assert (Iq : In q x) by (apply nth_In; lia).
  unfold check_histogram in H. cbv zeta in H. rewrite forallb_forall in H. specialize (H q). rewrite in_seq in H.
  pose proof HV as HV'. rewrite Forall_forall in HV'. specialize (H ltac:(specialize (HV' q Iq); lia)).
  apply andb_true_iff in H as [A C]. rewrite forallb_forall in C. specialize (C (occurs q x)). rewrite in_seq in C.
  assert (Pos : (0 < occurs q x)%nat) by (now apply count_occ_In).
  pose proof (occurs_most q x). specialize (C ltac:(lia)).
  rewrite (run_ordered L V n H1 H2 H3 i 0 (rowN L V q) q x Hx HV A).
  - unfold inputs. rewrite (map_ext (unit_vector V) (fun v => vals (unitN V v))) by (intros; now rewrite unit_vals).
    rewrite <- (map_map (unitN V) vals). apply check_sound in C. inversion C as [|a b l m B D]; subst. cbn [nth].
    rewrite val_nat in B. exact B.
  - rewrite app_nth1 by (rewrite map_length; lia).
    rewrite (nth_indep _ [] (vals (rowN L V 0))) by (rewrite map_length; lia).
    now rewrite (map_nth (fun v => vals (rowN L V v))).
  - unfold ordered. destruct (occurs q x) as [|c]; [lia|]. reflexivity.
Qed.
