"""Memorised folders with their data beside them: the checker evaluates the layer at every stored sample."""

import hashlib
import json

import numpy as np
import pytest

import onelayer as ol
from checking import check, forged
from onelayer.apps.cli import main

ROWS = "a,b,y\n0.1,0.5,1.5\n0.2,-0.25,2.5\n1,3,-1\n4,5,0.125\n"
WORDS = "kind,a,b\ncat,0.1,0.5\ndog,0.2,-0.25\ncat,1,3\nbird,4,5\n"


def samples(N, D, kind, seed=0):
    rng = np.random.default_rng(seed)
    answers = {
        "numbers": rng.standard_normal(N), "labels": rng.integers(0, 3, N), "pairs": rng.standard_normal((N, 2)),
        "words": np.array(["no", "yes"])[rng.integers(0, 2, N)], "truth": rng.integers(0, 2, N).astype(bool),
    }  # fmt: skip
    return rng.standard_normal((N, D)), answers[kind]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["numbers", "labels", "pairs", "words", "truth"])
@pytest.mark.parametrize(("N", "D"), [(5, 1), (30, 3)])
def test_stored_samples_are_checked(tmp_path, kind, dtype, N, D):
    """The proved residual itself, which is the tolerance of numbers, is proved again."""
    X, Y = samples(N, D, kind)
    approx = ol.memorize(X, Y, dtype=dtype)
    folder = approx.save(tmp_path / "f")
    found = ol.check(folder, data=(X, Y))
    assert found.verdict == "VALID", str(found)
    assert found.bound <= approx.certificate.bound
    assert found.boxes == N
    assert check(folder).verdict == "NOT CHECKABLE"


def test_sequences_and_merged_samples(tmp_path):
    X, Y = np.random.default_rng(1).standard_normal((8, 3, 2)), np.arange(8) % 3
    X[5], Y[5] = X[2], Y[2]
    folder = ol.memorize(X, Y).save(tmp_path / "f")
    assert "the 7 stored samples" in ol.load(folder).certificate.domain
    assert check(folder, data=(X, Y)).verdict == "VALID"


def test_what_is_false_is_refuted(tmp_path):
    X, Y = samples(12, 2, "numbers")
    folder = ol.memorize(X, Y, tolerance=1e-3).save(tmp_path / "f")

    def other_answers(tensors):
        tensors["b_2"] += 0.01
        tensors["b_R"] += 0.01

    moved = forged(folder, tmp_path / "moved", weights=other_answers)
    assert check(moved, data=(X, Y)).verdict == "INVALID"
    fewer = forged(folder, tmp_path / "fewer", lambda r: r | {"domain": r["domain"].replace("12", "13")})
    assert check(fewer, data=(X, Y)).verdict == "INVALID"
    tight = forged(folder, tmp_path / "tight", lambda r: r | {"bound": 0.0, "observed": 0.0})
    assert check(tight, data=(X, Y)).verdict == "NOT CHECKABLE"


@pytest.mark.parametrize(
    "change", [lambda X, Y: (X, Y + 1e-9), lambda X, Y: (X[1:], Y[1:]), lambda X, Y: (X[:, :1], Y)]
)
def test_other_data_are_not_these(tmp_path, change):
    """Nothing is wrong with the folder: the digest says that it speaks of other samples."""
    X, Y = samples(6, 2, "numbers")
    folder = ol.memorize(X, Y).save(tmp_path / "f")
    found = check(folder, data=change(X, Y))
    assert (found.verdict, "SHA-256" in found.reason) == ("NOT CHECKABLE", True)


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(("text", "target"), [(ROWS, "y"), (WORDS, "kind"), (ROWS, "y,b")])
def test_the_command_line_reads_the_file(tmp_path, monkeypatch, capsys, text, target):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text(text)
    (tmp_path / "other.csv").write_text(text.replace("0.25", "0.75"))
    (tmp_path / "bad.csv").write_text("a\n1\n")
    assert main(["memorize", "rows.csv", "--target", target, "--out", "f", "--quiet"]) == 0
    assert main(["check", "f", "--data", "rows.csv", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "VALID"
    assert [main(["check", "f", "--data", name]) for name in ("other.csv", "bad.csv", "none.csv")] == [3, 3, 2]
    assert main(["check", "f"]) == 3
    assert "--data" in capsys.readouterr().out


def test_no_samples_at_all(tmp_path):
    """A folder that names the digest of nothing claims nothing that can be checked."""
    X, Y = samples(4, 2, "numbers")
    folder = ol.memorize(X, Y).save(tmp_path / "f")
    nothing = hashlib.sha256(b"").hexdigest()
    about = {"target": lambda t: t | {"parameters": t["parameters"] | {"sha256": nothing}}}
    assert check(forged(folder, tmp_path / "g", **about), data=([], [])).verdict == "NOT CHECKABLE"


@pytest.mark.parametrize(
    "more",
    [
        lambda r: {"method": "bisect"},  # which a report would take for a proof on the whole box
        lambda r: {"evidence": r["evidence"] | {"relative": {"share": 1e-20, "least": 1e9, "known": "proved"}}},
    ],
)
def test_no_more_is_claimed_than_samples(tmp_path, more):
    X, Y = samples(4, 2, "numbers")
    folder = ol.memorize(X, Y).save(tmp_path / "f")
    found = check(forged(folder, tmp_path / "g", lambda r: r | more(r)), data=(X, Y))
    assert (found.verdict, "more is claimed" in found.reason) == ("INVALID", True)
