"""Comparing: all entrants are judged by the same points, what is proved is kept apart from what is observed, and it is drawn."""

import json
import math

import numpy as np
import pytest

import onelayer as ol
from onelayer.experiments.matched_size import layer_size
from onelayer.experiments.peers import PEERS
from onelayer.experiments.peers.task import matches_budget
from onelayer.views.comparison import comparison_figure, write_page


@pytest.mark.long
def test_everybody_is_judged_alike_and_only_certificates_are_bounds(tmp_path):
    """One run, since it takes long: its rows, its bounds, its series, its picture."""
    options = {"optimizers": ("adam",), "growth": (2,), "samples": (60,)}
    found = ol.compare("x1 * x2", [(0, 1)] * 2, 1e-2, seconds=0.2, **options)
    names = [e.name for e in found.entrants]
    assert names == ["constructed", "trained, adam", "warm-started", *(peer.name for peer in PEERS)]
    built, warm = found.entrants[0], found.entrants[2]
    for e in found.entrants:
        assert math.isnan(e.observed) or matches_budget(e.parameters, built.parameters)
        assert math.isnan(e.observed) == bool(e.note.startswith(("skipped", "no size")))
    text = str(found)
    assert all(name in text for name in names)
    assert "Error against size" in text

    for e in (*found.entrants, *found.growth, *found.samples):
        if e.kind in ("trained", "peer"):
            assert math.isinf(e.bound)
        assert math.isnan(e.observed) or e.observed <= e.bound
    assert built.bound <= 1e-2
    assert found.best("constructed").observed <= found.best("trained").observed
    assert warm.observed <= 1.05 * built.observed  # judged at other points than those that decide

    assert {e.size for e in found.growth} == {2}
    assert {e.kind for e in found.growth} == {"trained", "constructed"}
    assert {e.size for e in found.samples} == {60}

    figure = comparison_figure(found)
    assert len(figure.data) >= 4 + 1 + 3
    page = write_page(found, tmp_path / "p.html").read_text()
    assert '<html lang="en">' in page
    assert "https://cdn" not in page.split("</script>")[-1]
    assert [f.name for f in tmp_path.iterdir()] == ["p.html"]


def test_a_proof_of_what_was_trained_can_be_asked_for():
    found = ol.compare("x1", [(0, 1)], 0.5, seconds=0.1, optimizers=("sgd",), peers=False, prove=5.0)
    trained = found.best("trained")
    assert trained is not None
    assert trained.observed <= trained.bound


@pytest.mark.parametrize("budget", [100, 187, 700, 5000, 50_000])
def test_sizes_match_the_budget(budget):
    target = ol.Target("x1 + x2", [(0, 1)] * 2)
    size = layer_size(target, budget)
    assert size is not None
    heads, width, d_model = size
    layer = ol.train(target, heads=heads, width=width, d_model=d_model, steps=1, samples=10)
    assert matches_budget(layer.parameters, budget)


def test_an_unknown_keyword_is_refused():
    with pytest.raises(ol.InputError, match=r"found: eps; change: did you mean tolerance\?"):
        ol.compare("x1", [(0, 1)], eps=0.1)


def test_the_command_line(tmp_path, capsys, as_user):
    from onelayer.apps.cli import main

    options = ["--domain", "0:1", "--seconds", "0.1", "--no-peers", "--optimizers", "adam"]
    assert main(["compare", "x1**2", *options, "--json", "--plot", str(tmp_path / "p.html")]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [e["kind"] for e in record["entrants"]] == ["constructed", "trained", "warm-started"]
    assert (tmp_path / "p.html").stat().st_size > 10**6
    for bad in (["--seconds", "0"], ["--optimizers", "lion"], ["--growth", "a"], ["--plot", str(tmp_path)]):
        assert main(["compare", "x1**2", *options, *bad]) == 2
        assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_training_on_the_command_line(tmp_path, capsys, as_user):
    from onelayer.apps.cli import main

    small = ["--heads", "1", "--width", "8", "--d-model", "4", "--steps", "30", "--samples", "200"]
    folder, file = str(tmp_path / "t"), str(tmp_path / "c.pt")
    asked = ["train", "x1**2", "--domain", "0:1", *small, "--out", folder, "--checkpoint", file, "--json", "--force"]
    assert main([*asked, "--eps", "0.9", "--certify", "20"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["verdict"] == "CERTIFIED"
    assert record["history"]["moments"][-1]["step"] == 30
    assert np.isfinite(ol.load(folder)([0.5]))
    assert main([*asked, "--eps", "1e-6"]) == 1  # the checkpoint is complete; nothing is proved
    assert main([*asked, "--optimizer", "lion"]) == 2
    assert main([*asked, "--device", "nowhere"]) == 2


def test_the_table_and_the_picture_of_a_short_comparison(tmp_path):
    found = ol.compare("x1", [(0, 1)], 0.1, seconds=0.1, optimizers=("adam",), peers=False)
    assert [e.kind for e in found.entrants] == ["constructed", "trained", "warm-started"]
    assert found.entrants[0].bound <= 0.1
    assert math.isinf(found.entrants[1].bound)
    assert "trained, adam" in str(found)
    assert write_page(found, tmp_path / "p.html").stat().st_size > 10**6
