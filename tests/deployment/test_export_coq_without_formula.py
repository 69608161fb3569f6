"""Coq on sorting, counting and stored samples: the files say what they prove, Coq accepts them, and rejects what is false."""

import copy
import re
import shutil
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.common.errors import InputError
from onelayer.construction.gallery.order import median, sort, top_k
from onelayer.construction.gallery.tokens import copy_where, histogram, majority, parity
from onelayer.deployment.export import coq
from onelayer.deployment.export.coq.by_kernel import checked
from onelayer.deployment.export.coq.dyadic import below, pair
from onelayer.deployment.export.coq.run import run
from onelayer.deployment.export.coq.samples import MOST_SAMPLES
from onelayer.deployment.export.coq.sorting import _constants, _ranks_of
from onelayer.deployment.export.subject import subject_of

proves = [pytest.mark.long, pytest.mark.skipif(shutil.which("coqc") is None, reason="no coqc here")]
X = np.random.default_rng(0).uniform(-1, 1, (30, 2))
Y = np.stack([np.sin(3 * X[:, 0]), X[:, 1]], axis=1)
WORDS = np.array(["red", "green", "blue"])[np.arange(30) % 3]


def changed(subject, name, place, value):
    """The same subject with another weight."""
    model = copy.deepcopy(subject.model)
    with torch.no_grad():
        getattr(model, name)[place] = value
    return replace(subject, model=model)


@pytest.mark.parametrize(
    ("layer", "data", "claim"),
    [
        (sort(3, 1e-3), None, "Rabs (run (W i) [x1; x2; x3] - nth i (sort [x1; x2; x3]) 0) <= (1 / 1000)."),
        (top_k(3, 2, 1e-3), None, "Rabs (run (W i) [x1; x2; x3] - nth (2 - i) (sort [x1; x2; x3]) 0) <= (1 / 1000)."),
        (
            histogram(5, 3),
            None,
            "Rabs (nth 0 (run (real W) i (inputs 3 x)) 0 - INR (occurs (nth i x 0%nat) x)) <= (1 / 4).",
        ),
        (majority(5), None, "Rabs (nth 0 (run (real W) 5 (inputs 2 x)) 0 - INR (answer (occurs 1 x))) <= (1 / 4)."),
        (
            ol.memorize(X, Y, tolerance=0.5),
            (X, Y),
            "Forall2 (fun a b => Rabs (a - val b) <= (1 / 2)) (run (real W) 1 (map vals x)) y.",
        ),
    ],
    ids=["sort", "top_k", "histogram", "majority", "samples"],
)
def test_the_file_states_the_claim(layer, data, claim):
    text = coq.source(subject_of(layer, None), data)
    assert claim in text
    assert text.index("Definition W") < text.index("Theorem certified")
    assert not re.search(r"\b(Axiom|Admitted|admit|Parameter)\b", text)


def test_the_file_holds_the_samples_and_the_weights():
    layer = ol.memorize(X, WORDS)
    text = coq.source(subject_of(layer, None), (X, WORDS))
    for value in [*X.flat, *(v for t in layer.model.state_dict().values() for v in t.flatten().tolist())]:
        assert pair(float(value)) in text


def test_pairs_are_exact():
    for value in (0.0, 1.0, -0.375, 1e-300, 3e200, 0.1):
        m, e = map(int, re.findall(r"-?\d+", pair(value)))
        assert np.ldexp(float(m), e) == value
    assert below(Fraction(1, 4)) == Fraction(1, 4)
    assert 1 - Fraction(1, 2**60) < below(Fraction(49, 100)) / Fraction(49, 100) < 1


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_bound_of_ranks_holds(n):
    layer = sort(n, 1e-2)
    it = _ranks_of(subject_of(layer, None))
    generator = np.random.default_rng(n)
    near = 0.5 + generator.normal(size=(20_000, n)) * 2 / float(it.beta)  # as close as the heads are sharp
    x = np.clip(np.concatenate([near, generator.uniform(size=(2_000, n))]), 0, 1)
    error = np.asarray(layer(x)) - np.sort(x, axis=1)
    for k in range(n):
        low, high = map(float, _constants(it, k))
        assert error[:, k].min() >= -low - 1e-13
        assert error[:, k].max() <= (n - 1 - k) * high + 1e-13
        assert max(error[:, k].max(), -error[:, k].min()) > 0.02 / float(it.beta)  # the points say something


@pytest.mark.parametrize(
    ("make", "data", "found"),
    [
        (lambda: sort(7, 1e-3), None, "sort of 7 numbers"),
        (lambda: median(3, 1e-3), None, "kind gallery"),
        (lambda: copy_where(4, 3), None, "kind gallery"),
        (lambda: histogram(500, 500), None, "vocabulary of 500"),
        (lambda: sort(3, 1e-3), (X, Y), "leave the data out"),
        (lambda: ol.memorize(X, Y, tolerance=0.5), None, "does not hold them"),
        (lambda: ol.memorize(X, Y, tolerance=0.5), (X, Y + 1), "another SHA-256"),
        (lambda: ol.memorize(X, WORDS), (X[::-1], WORDS), "another SHA-256"),
    ],
    ids=["too many", "median", "copy_where", "long", "data", "no data", "other data", "other order"],
)
def test_what_is_not_covered_is_refused(make, data, found):
    with pytest.raises(InputError, match=found):
        coq.source(subject_of(make(), None), data)


def test_too_many_samples_are_refused():
    x = np.linspace(0, 1, MOST_SAMPLES + 1)[:, None]
    with pytest.raises(InputError, match="1,001 samples"):
        coq.source(subject_of(ol.memorize(x, x[:, 0]), None), (x, x[:, 0]))


def test_heads_that_are_not_sharp_enough_are_refused():
    subject = subject_of(sort(3, 1e-3), None)
    certificate = replace(subject.approximation.certificate, tolerance=1e-5)
    with pytest.raises(InputError, match="not sharp enough"):
        coq.source(replace(subject, approximation=replace(subject.approximation, certificate=certificate)))


def test_samples_from_the_command_line(tmp_path, capsys, as_user, monkeypatch):
    lines = ["a,b,y", *(f"{float(a)!r},{float(b)!r},{float(y)!r}" for (a, b), y in zip(X, Y[:, 0], strict=True))]
    (tmp_path / "d.csv").write_text("\n".join(lines) + "\n")
    folder, data = str(tmp_path / "m"), str(tmp_path / "d.csv")
    assert main(["memorize", data, "--target", "y", "--out", folder, "--quiet"]) == 0
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert main(["export", folder, "--to", "coq", "--data", data, "--out", str(tmp_path / "m.v")]) == 0
    assert "not compiled, not proved" in capsys.readouterr().out
    assert (tmp_path / "m.v").read_text().count("Theorem certified") == 1
    (tmp_path / "other.csv").write_text("a,z\n1,2\n")
    assert main(["export", folder, "--to", "coq", "--data", str(tmp_path / "other.csv"), "--out", "m.v"]) == 2
    assert "columns a, b" in capsys.readouterr().err


class TestWithoutFormula:
    pytestmark = proves

    @pytest.mark.parametrize(
        ("make", "data"),
        [
            (lambda: sort(4, 1e-6), None),
            (lambda: sort(3, 1e-3, descending=True, domain=(-1.0, 3.0)), None),
            (lambda: histogram(8), None),
            (lambda: majority(8), None),
            (lambda: parity(5), None),
            (lambda: ol.memorize(X, Y[:, 0]), (X, Y[:, 0])),
            (lambda: ol.memorize(X, WORDS, dtype="float32"), (X, WORDS)),
        ],
        ids=["sort", "descending", "histogram", "majority", "parity", "samples", "labels"],
    )
    def test_it_accepts(self, make, data, tmp_path):
        make().save(tmp_path / "layer")
        found = checked(tmp_path / "layer", 600.0, data)
        assert found.verdict == "VALID (kernel)", found.reason
        assert "Classical_Prop.classic" in found.axioms

    def test_it_rejects_a_sort_that_is_not_so_sharp(self):
        layer = sort(3, 1e-3)
        x = 0.5 + np.random.default_rng(0).normal(size=(20_000, 3)) / 4096
        observed = float(np.abs(np.asarray(layer(x)) - np.sort(x, axis=1)).max())
        text = coq.source(subject_of(layer, None))
        found = run(text.replace("(1 / 1000)", f"(1 / {int(2 / observed)})"), 600.0)  # false by a factor of two
        assert found.accepted is False
        assert "output_" in found.reason

    @pytest.mark.parametrize(
        ("make", "weight", "data", "stop"),
        [
            (lambda: sort(3, 1e-3), ("W_O", (3, 0), -2.0), None, "signs_0"),  # off by up to 1
            (lambda: histogram(4, 3), ("W_2", (0, 0), 12.0), None, "computed"),  # counts off by 1 and more
            (lambda: histogram(4, 3), ("W_K", (0, 0, 0), 1.0), None, "computed"),  # other tokens are seen
            (lambda: majority(4), ("b_1", 0, -3.0), None, "computed"),  # answers off by 1
            (lambda: ol.memorize(X, Y[:, 0]), ("b_R", 0, 5.0), (X, Y[:, 0]), "computed"),  # off by more than 1
        ],
        ids=["sort", "histogram", "mask", "majority", "samples"],
    )
    def test_it_rejects_other_weights(self, make, weight, data, stop):
        found = run(coq.source(changed(subject_of(make(), None), *weight), data), 600.0)
        assert found.accepted is False
        assert stop in found.reason

    def test_it_rejects_another_answer(self):
        layer = ol.memorize(X, Y[:, 0])
        text, tolerance = coq.source(subject_of(layer, None), (X, Y[:, 0])), layer.certificate.tolerance
        answer = float(Y[7, 0])
        found = run(text.replace(f"[{pair(answer)}])", f"[{pair(answer + 3 * tolerance)}])"), 600.0)
        assert found.accepted is False
        assert "computed" in found.reason
