"""The benchmarks' own parts: named targets, peers on tiny budgets, Chebyshev counts against known values, the page."""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import attribution
import circuits
import induction
import lengths
import onelayer as ol
import peers
import size
import walk
from chebyshev_counts import chebyshev_counts
from onelayer.common.errors import InputError
from onelayer.experiments.peers import (
    PEERS,
    PeerResult,
    chebyshev,
    compare_peers,
    descent,
    features,
    kan,
    marquardt,
    perceptron,
    seconds_for,
    transformer,
)
from onelayer.experiments.peers.task import FittedPeer, matches_budget, observed_error, samples_of
from pages import ROOT, with_package
from targets import TARGETS, named

SCRIPTS = [path for path in sorted((ROOT / "benchmarks").rglob("*.py")) if "__main__" in path.read_text()]
PARABOLA = ol.Target("x1**2 + 0.5*x1*x2", [(0, 1), (-1, 3)])


def test_every_target_is_a_target():
    assert len({entry.name for entry in TARGETS}) == len(TARGETS)
    for entry in TARGETS:
        target = entry.target
        assert np.isfinite(target(target.domain.points(np.random.default_rng(0).random((64, target.dimension))))).all()
    with pytest.raises(InputError, match="franke"):
        named("frank")


@pytest.mark.parametrize(
    ("name", "error", "counts"),
    [
        ("sin-sum", 3.2e-6, (144, 78, 12)),
        ("runge-1d", 3.2e-6, (65, 65, 33)),
        ("runge-2d", 9.8e-6, (729, 703, 155)),
        ("gauss-4d", 9.8e-4, (6561, 3060, 256)),
        pytest.param("abs", 1e-6, (None, None, None), marks=pytest.mark.long),
        ("cyclic", 1e-9, (3 * 2**3, 3 * 10, 3 * 4)),
    ],
)
def test_chebyshev_counts(name, error, counts):
    assert chebyshev_counts(named(name).target, None, error) == counts


def test_counts_of_a_callable_and_of_a_sum_in_eight_variables():
    found = chebyshev_counts(lambda x: np.sin(x[:, 0]) + np.sin(x[:, 1]), [(0, "2*pi")] * 2, 3.2e-6)
    assert found == (144, 78, 12)
    found = chebyshev_counts(named("additive-8d").target, None, 7.1e-6)
    assert found.tensor == 13**8  # never written out
    assert found.best_n < 80


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("fit", "budget"),
    [
        (transformer.fit, 150),
        (perceptron.fit_tanh, 60),
        (perceptron.fit_relu, 60),
        (marquardt.fit, 60),
        (features.fit, 60),
        (chebyshev.fit, 16),
        pytest.param(kan.fit, 115, marks=pytest.mark.skipif(not kan.installed(), reason="pykan is not installed")),
    ],
)
def test_peers_match_the_budget_and_learn(fit, budget):
    before = torch.random.get_rng_state()
    fitted = fit(PARABOLA, budget, 1.5, 0)
    assert isinstance(fitted, FittedPeer)
    assert matches_budget(fitted.parameters, budget)
    assert torch.equal(before, torch.random.get_rng_state())
    constant = float(samples_of(PARABOLA, budget).reach)  # the best constant
    assert observed_error(fitted.function, PARABOLA) < constant / 2


@pytest.mark.long
def test_marquardt_and_chebyshev_are_accurate():
    assert observed_error(marquardt.fit(PARABOLA, 60, 2.0, 0).function, PARABOLA) < 0.1
    assert observed_error(chebyshev.fit(PARABOLA, 9, 1.0, 0).function, PARABOLA) < 1e-13


def test_no_size_matches_a_budget_of_one():
    for fit in (transformer.fit, perceptron.fit_tanh, marquardt.fit, features.fit):
        assert fit(PARABOLA, 1, 1.0, 0) is None


def test_parameters_are_counted_as_stored():
    for widths in perceptron.shapes(3, 2, 500):
        model = perceptron.perceptron(3, widths, 2, torch.nn.Tanh)
        assert descent.stored_numbers(model) == perceptron.parameters_of(3, widths, 2)
        assert matches_budget(descent.stored_numbers(model), 500)
    for found in transformer.sizes(3, 2, 500):
        assert matches_budget(descent.stored_numbers(transformer.StockTransformer(3, 2, found)), 500)
    assert descent.stored_numbers(transformer.StockTransformer(2, 1, (64, 4, 256))) == 50_369


def test_observed_sees_corners_and_what_is_not_finite():
    target = ol.Target("x1", [(0, 1)])
    assert observed_error(lambda x: np.where(x == 1, 9.0, x), target) == 8
    assert observed_error(lambda x: np.where(x > 0.5, np.nan, x), target) == math.inf


@pytest.mark.long
def test_compare_peers_and_its_table():
    rows = compare_peers("sin(x1); x1**2", [(0, 1)], 100, 0.05)
    assert [row.peer for row in rows] == [peer.name for peer in PEERS]
    text = peers.table(rows)
    assert text.count("\n") == len(rows) + 1
    assert kan.installed() or "skipped: not installed" in text


def test_trained_peers_get_a_minute_or_three_times_ours():
    assert [seconds_for(ours) for ours in (1.0, 20.0, 30.0)] == [60, 60, 90]
    assert seconds_for(1.0, 2.0) == 3


def test_ratios_and_better_peers_are_said():
    result = size.measure(named("sin-sum"), size.Goal(1e-2, 16), None)
    assert result.ratio("descent") == "–"
    ours = result.observed
    rows = [PeerResult(peer.name, 1, ours * (i + 1) / 2, 0.0, "") for i, peer in enumerate(PEERS)]
    result = size.Result(result.entry, result.goal, result.approx, ours, 1.0, result.counts, rows, (100, ours), 90.0)
    assert result.ratio("descent") == "0.5"
    assert result.ratio("Levenberg–Marquardt") == "2.5"
    cells = size.peer_cells(result)
    assert cells[2] == "90"
    assert sum("**" in cell for cell in cells) == 1  # the first is better, the second as good
    assert "CERTIFIED" in size.size_table([result])


def test_tables_go_between_their_marks():
    page = "a\n<!-- t -->\nold\n<!-- /t -->\nb"
    assert size.placed(page, "t", "new") == "a\n<!-- t -->\n\nnew\n\n<!-- /t -->\nb"
    assert size.placed(size.placed(page, "t", "x"), "t", "new") == size.placed(page, "t", "new")
    with pytest.raises(InputError, match="put the two comments back"):
        size.placed("nothing here", "t", "new")
    written = size.PAGE.read_text()
    for mark in ("sizes", "peers"):
        assert size.placed(written, mark, "x") != written


def test_changes_of_room():
    entered = [("pipeline.py", "build"), ("target/domain.py", "a"), ("target/points.py", "b"), ("checker.py", "c")]
    entered += [("pipeline.py", "build"), ("pipeline.py", "d")]
    assert len(walk.changes(entered)) == 3
    assert len(walk.changes(entered, walk.room_or_top)) == 2
    assert len(walk.changes([*entered, ("common/budget.py", "over"), ("pipeline.py", "d")])) == 3
    assert walk.pairs_table(entered, 1).splitlines()[2:] == ["| pipeline.py → target | 1 | target/domain.py: a 1 |"]


def test_a_walk_sees_the_second_run_alone():
    calls = []

    def run() -> None:
        calls.append(PARABOLA.outputs)
        if len(calls) == 1:
            named("franke").target(np.zeros((1, 2)))

    modules = {module for module, _ in walk.walk(run)}
    assert calls == [1, 1]
    assert modules == {"target/target.py"}
    assert sys.getprofile() is None


@pytest.mark.long
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_runs_by_its_path(script):
    """Shared modules are found without pytest's path."""
    done = subprocess.run(
        [sys.executable, script, "--help"], capture_output=True, text=True, check=False, env=with_package()
    )
    assert done.returncode == 0, done.stderr


def test_tasks_of_two_layers_are_those_of_the_gallery():
    """Batches for training have the answers that the constructed layers are judged by, and sizes are as the page says."""
    for task, right in (
        (induction.induction(9), lengths.followers(8)),
        (induction.composition(4), lengths.composed(4)),
    ):
        x, y = task.batch(50, torch.Generator().manual_seed(0))
        assert [right(row) for row in x.tolist()] == y.tolist()
        counts = [sum(p.numel() for p in induction.Encoder(task, layers).parameters()) for layers in (1, 2)]
        assert abs(counts[0] / counts[1] - 1) < 0.03
        assert 0 <= induction.trained(task, 2, seed=0, seconds=0.1)[0] <= 1
    for n in (1, 5):
        c = induction.induction(n).built().model.config
        k, b, heads = 16, 4, (2 * n - 1) * (n + 9)
        assert (c.heads * c.d_model, c.ffn_width) == (heads, 9)
        assert c.heads * c.d_model * 2 * (c.d_k + c.d_v) == heads * 2 * (k + b)
    c = induction.composition(4).built().model.config
    assert (c.heads, c.d_model, c.ffn_width, c.d_k, c.d_v) == (9, 2 * 4 + 2 + 3, 5, 4, 3)


def test_scores_of_heads_and_areas_under_roc_curves():
    assert attribution.auc(np.array([2.0, 3.0]), np.array([1.0])) == 1.0
    assert attribution.auc(np.array([1.0]), np.array([1.0, 2.0])) == 0.25
    mean, low, high = attribution.interval(np.array([0.5, 1.0, 0.75, 1.0]))
    assert low <= mean <= high <= 1.0
    layer = ol.gallery.histogram(3, 3)
    variant = layer.disguised(seed=1)
    x = layer.as_tokens(circuits.inputs(layer, 32, 0))
    run = attribution.Run(variant.layer.model, x, layer.facts.places)
    torch.testing.assert_close(run.answer(run.z), variant.layer.model(x)[:, list(layer.facts.places)].flatten(1))
    found = attribution.scores(variant.layer.model, x, layer.facts.places)
    real, quiet = variant.roles.index("layer"), variant.roles.index("quiet")
    assert found["patching with 0"][real] > 1e6 * found["patching with 0"][quiet]
    plain = attribution.scores(variant.plain, x, layer.facts.places)
    np.testing.assert_allclose(plain["patching with 0"], found["patching with 0"], atol=1e-8)  # no basis is seen
