"""Stored samples: |T(x) − y| at each of them, by one exact evaluation per sample.

The folder does not hold the samples: they are given beside it, and must have the digest that it names.
"""

import hashlib
from itertools import permutations
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from ....common.errors import InputError
from ..subject import Subject
from .dyadic import OTHER, pairs, require_plain, rows, tolerance, weights
from .formula import number
from .library import lemmas

MOST_SAMPLES = 1000
MOST_ORDERED = 4  # columns of answers that are tried in every order
Pair = tuple[Any, Any]  # inputs and answers, as they were memorised


def samples(subject: Subject, data: Pair | None) -> str:
    """The file but for its header."""
    require_plain(subject)
    x, y = _stored(subject, data)
    c = subject.model.config
    if len(x) > MOST_SAMPLES:
        found = f"{len(x):,} samples"
        raise InputError(f"at most {MOST_SAMPLES:,} stored samples, for a proof in Coq", found, "store fewer")
    x = torch.from_numpy(x).to(subject.model.W_E.dtype).double().numpy()  # as the layer takes them
    inputs = x.reshape(len(x), c.tokens, c.features_in).tolist()
    listed = ";\n  ".join(f"({rows(a)}, {pairs(b)})" for a, b in zip(inputs, y.tolist(), strict=True))
    read = c.read_rows.start + subject.places[0]
    return f"""{lemmas("layer", "hard")}{weights(subject)}
(** ** The samples: the numbers of the tokens, and the answers *)

Local Open Scope Z_scope.
Definition samples : list (list (list num) * list num) := [
  {listed}].
Local Close Scope Z_scope.

(** ** The theorem: all outputs at all samples *)

Lemma computed : (let steep := steepN W in forallb (fun '(x, y) => check W steep tol {read} x y) samples) = true.
Proof. vm_cast_no_check (eq_refl true). Qed.
Theorem certified : forall x y, In (x, y) samples ->
  Forall2 (fun a b => Rabs (a - val b) <= {number(tolerance(subject))}) (run (real W) {read} (map vals x)) y.
Proof.
  intros x y H. pose proof computed as C. cbv zeta in C. rewrite forallb_forall in C. specialize (C (x, y) H). cbv beta iota in C.
  apply check_sound in C. pose proof tol_small as T. generalize dependent (run (real W) {read} (map vals x)). intros v C. clear H.
  induction C; constructor; [lra|easy].
Qed.
"""


def _stored(
    subject: Subject, data: Pair | None
) -> tuple[Float[np.ndarray, "sample coordinate"], Float[np.ndarray, "sample out"]]:
    """Inputs and answers as numbers, if their digest is that of the folder."""
    about = subject.approximation.description
    asked = "the samples that were stored, for a proof in Coq"
    if data is None:
        raise InputError(asked, "a folder that does not hold them", "give them as data (--data FILE)")
    try:
        x = np.asarray(data[0], dtype="<f8") + 0.0
        x = x.reshape(len(x), -1)
        answers = np.asarray(data[1])
        answers = answers.reshape(len(answers), -1)
    except (TypeError, ValueError) as error:
        raise InputError(asked, " ".join(str(error).split())[:100], "give inputs and answers") from None
    columns = range(answers.shape[1])
    for order in permutations(columns) if len(columns) <= MOST_ORDERED else [tuple(columns)]:
        y = _scores(answers[:, list(order)], about.decoding.labels if about.decoding is not None else None)
        digest = hashlib.sha256(x.tobytes() + y.tobytes()).hexdigest() if y is not None else ""
        if y is not None and digest == about.parameters.get("sha256") and len(x) == len(y):
            return x, y
    raise InputError(asked, "data with another SHA-256", f"give the data that were memorised, or {OTHER}")


def _scores(answers: np.ndarray, labels: tuple[Any, ...] | None) -> Float[np.ndarray, "sample out"] | None:
    """The answers as numbers: themselves, or 1 for their label and 0 for all others; None if they are no numbers."""
    if labels is not None:
        hits = [[float(cell == label) for cell in row for label in labels] for row in answers.tolist()]
        return np.array(hits, dtype="<f8")
    try:
        return answers.astype("<f8") + 0.0
    except ValueError:
        return None
