"""Token programs that count: histogram, majority and parity, for all sequences of their length.

With no codes of positions a layer sees only how often each token occurs, and it tells one token from all others: one exact
evaluation for every token and every count proves the claim (`lemmas/tokens.v`).
"""

from ....common.errors import InputError
from ..subject import Subject
from .dyadic import OTHER, require_plain, tolerance, weights
from .formula import number
from .library import lemmas

ANSWERS = {"majority": "if Nat.ltb {n} (2 * c) then 1%nat else 0%nat", "parity": "if Nat.odd c then 1%nat else 0%nat"}
ENTRIES = ("histogram", *ANSWERS)
MOST_WORK = 10**8  # products of the embeddings of all tokens, for every token and count: minutes


def counting(subject: Subject) -> str:
    """The file but for its header."""
    require_plain(subject)
    a, c = subject.approximation, subject.model.config
    n, V, entry = c.tokens, a.vocabulary, a.description.entry
    assert V is not None
    asked = f"{' or '.join(ENTRIES)} without codes of positions, for a proof in Coq"
    if entry not in ENTRIES or c.code != "none" or c.features_out != 1:
        raise InputError(asked, f"{entry} with code {c.code}", OTHER)
    if n * V * (n + V) * V * c.d_model > MOST_WORK:
        raise InputError(asked, f"n = {n} and a vocabulary of {V}", "take a shorter sequence or fewer tokens")
    if entry == "histogram":
        return lemmas("layer", "hard", "tokens", "histogram") + weights(subject) + _histogram(subject, n, V)
    return lemmas("layer", "hard", "tokens", "bits") + weights(subject) + _bits(subject, n, ANSWERS[entry].format(n=n))


def _histogram(subject: Subject, n: int, V: int) -> str:
    return f"""
(** ** The theorem: at every position, how often its token occurs; x holds token numbers, which enter as unit vectors *)

Lemma computed : check_histogram W tol {V} {n} = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Theorem certified : forall x : list nat, length x = {n}%nat -> Forall (fun v => v < {V})%nat x -> forall i, (i < {n})%nat ->
  Rabs (nth 0 (run (real W) i (inputs {V} x)) 0 - INR (occurs (nth i x 0%nat) x)) <= {number(tolerance(subject))}.
Proof.
  intros x Hx HV i Hi. eapply Rle_trans; [|exact tol_small].
  exact (histogram_sound W tol {V} {n} eq_refl eq_refl eq_refl computed x Hx HV i Hi).
Qed.
"""


def _bits(subject: Subject, n: int, answer: str) -> str:
    read = subject.model.config.read_rows.start + subject.places[0]
    return f"""
(** ** The theorem: the answer for c ones among {n} bits, which enter as unit vectors *)

Definition answer (c : nat) : nat := {answer}.
Lemma computed : check_bits W tol {n} {read} answer = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Theorem certified : forall x : list nat, length x = {n}%nat -> Forall (fun v => v < 2)%nat x ->
  Rabs (nth 0 (run (real W) {read} (inputs 2 x)) 0 - INR (answer (occurs 1 x))) <= {number(tolerance(subject))}.
Proof.
  intros x Hx HV. eapply Rle_trans; [|exact tol_small].
  exact (bits_sound W tol {n} {read} answer eq_refl eq_refl eq_refl ltac:(lia) computed x Hx HV).
Qed.
"""
