"""Training: it learns, it is deterministic, it goes on after an interrupt bit by bit, and it never spoils a construction."""

import math
import os
import signal
import threading

import numpy as np
import pytest
import torch

import onelayer as ol
from onelayer.training.recipe import Recipe

WAVE = ("sin(x1) + sin(x2)", [(0, "2*pi")] * 2)
SMALL = {"heads": 2, "width": 16, "d_model": 8, "every": 20, "batch": 64, "samples": 500}


def test_a_small_layer_learns():
    a = ol.train("x1 * x2", [(0, 1)] * 2, steps=400, **SMALL)
    assert a.certificate.observed < 0.1
    assert a.history.moments[-1].validated < 0.3 * a.history.moments[0].validated
    assert a.certificate.verdict == "UNDECIDED"
    assert a.facts.method == "trained"
    assert a.model.W_E.dtype == torch.float32
    assert "trained" in str(a)
    assert "best" in str(a.history)


def test_a_trained_layer_is_certified_like_any_other():
    a = ol.train("x1 * x2", [(0, 1)] * 2, steps=200, activation="relu", dtype="float64", **SMALL)
    proved = ol.certify(a, tolerance=0.9, seconds=20.0)
    assert proved.verdict == "CERTIFIED"
    assert proved.observed <= proved.bound


@pytest.mark.one_in(2)
@pytest.mark.parametrize("optimizer", ["adam", "sgd", "momentum"])
def test_equal_recipes_give_equal_layers(optimizer):
    one, two, other = (
        ol.train(*WAVE, optimizer=optimizer, steps=40, dropout=0.1, seed=seed, **SMALL) for seed in (3, 3, 4)
    )
    assert one.history == two.history
    assert one.model.fingerprint() == two.model.fingerprint()
    assert one.model.fingerprint() != other.model.fingerprint()


def stopping_at(step):
    def progress(text, fraction):
        if fraction >= step / 100:
            raise KeyboardInterrupt

    return progress


@pytest.mark.one_in(3)
@pytest.mark.parametrize("options", [{}, {"optimizer": "momentum", "dropout": 0.2}, {"loss": "sup", "every": 7}])
def test_an_interrupted_training_goes_on_bit_by_bit(options, tmp_path):
    asked = SMALL | {"steps": 100} | options
    whole = ol.train(*WAVE, **asked)
    part = ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt", progress=stopping_at(33))
    assert part.history.stopped == "interrupted"
    assert part.history.steps < 100
    again = ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt")
    assert again.history == whole.history
    assert again.model.fingerprint() == whole.model.fingerprint()


def test_time_is_up_between_validations_and_training_goes_on(tmp_path):
    asked = SMALL | {"steps": 60, "every": 25}
    whole = ol.train(*WAVE, **asked)
    for seconds in (0.001, 0.05, 0.001, 100.0):  # stops after one step, after some, after one more
        part = ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt", seconds=seconds)
    assert part.history == whole.history
    assert part.model.fingerprint() == whole.model.fingerprint()


def test_an_interrupt_by_the_keyboard_keeps_the_best_so_far():
    threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()
    a = ol.train(*WAVE, steps=10**6, **SMALL)
    assert a.history.stopped == "interrupted"
    assert a.history.steps < 10**6
    assert np.isfinite(a.certificate.observed)


def test_a_checkpoint_of_something_else_is_refused(tmp_path):
    ol.train(*WAVE, steps=20, **SMALL, checkpoint=tmp_path / "c.pt")
    with pytest.raises(ol.InputError, match="another recipe"):
        ol.train(*WAVE, steps=30, **SMALL, checkpoint=tmp_path / "c.pt")
    (tmp_path / "d.pt").write_text("nothing")
    with pytest.raises(ol.InputError, match="a checkpoint in"):
        ol.train(*WAVE, steps=30, **SMALL, checkpoint=tmp_path / "d.pt")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rate", [1e-6, 10.0])
@pytest.mark.parametrize(("loss", "construction"), [("mse", "gates"), ("sup", "gates"), ("sup", "memory")])
def test_a_construction_is_never_spoiled(loss, construction, rate):
    built = ol.build(*WAVE, 1e-2, construction=construction)
    warm = ol.train(*WAVE, init=built, loss=loss, rate=rate, steps=40, every=10, samples=500)
    x = np.random.default_rng(0).uniform(0, 2 * np.pi, (500, 2))
    if warm.history.best == 0:
        assert np.array_equal(warm(x), built(x))
    assert warm.certificate.observed <= 1.05 * built.certificate.observed  # other points than those it was judged by
    assert warm.model.W_E.dtype == torch.float64


def test_early_stopping_and_schedules():
    a = ol.train(*WAVE, steps=400, rate=0.0, patience=2, **SMALL)
    assert "no progress" in a.history.stopped
    assert a.history.steps == 60  # the first validation is progress, two are not
    r = Recipe(steps=100, warm_up=0.1, rate=1.0)
    assert r.rate_at(0, False) < r.rate_at(9, False)
    assert r.rate_at(99, False) < 1e-3
    assert Recipe(schedule="constant", rate=1.0, steps=100).rate_at(99, False) == 1.0


@pytest.mark.long
def test_labels_numbers_and_sequences():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    labels = np.where(X[:, 0] > 0, "yes", "no")
    a = ol.train((X, labels), loss="cross_entropy", steps=120, heads=2, width=16, d_model=8)
    assert (a.answer(X) == labels).mean() > 0.9
    b = ol.train((X, X[:, :2] * 3 + 100), steps=300, heads=2, width=16, d_model=8)
    assert np.abs(b(X) - (X[:, :2] * 3 + 100)).mean() < 1.0
    S = X.reshape(300, 2, 2)
    c = ol.train((S, np.flip(S, axis=1)), steps=150, heads=2, width=16, d_model=8)
    assert c.model.config.readout == "position"
    assert c(S[:3]).shape == (3, 2, 2)
    assert np.abs(c(S) - np.flip(S, axis=1)).mean() < 0.5


@pytest.mark.long
def test_weights_of_samples_count():
    X = np.concatenate([np.linspace(0, 1, 100), np.linspace(0, 1, 100)])[:, None]
    Y = np.concatenate([np.zeros(100), np.ones(100)])
    w = np.concatenate([np.ones(100), np.zeros(100)])
    a = ol.train((X, Y, w), steps=200, heads=1, width=8, d_model=4, validation=0.0)
    assert np.abs(a(X)).max() < 0.2


def test_training_borrows_no_global_state():
    before = torch.random.get_rng_state(), torch.get_default_dtype(), signal.getsignal(signal.SIGINT)
    ol.train(*WAVE, steps=10, dropout=0.5, **SMALL)
    after = torch.random.get_rng_state(), torch.get_default_dtype(), signal.getsignal(signal.SIGINT)
    assert torch.equal(before[0], after[0])
    assert before[1:] == after[1:]


def test_a_trained_layer_survives_its_folder(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 3))
    a = ol.train((X, (X[:, 0] > 0).astype(int)), loss="cross_entropy", steps=20, heads=1, width=8, d_model=4)
    a.save(tmp_path / "a")
    b = ol.load(tmp_path / "a")
    assert np.array_equal(a(X), b(X))
    assert np.array_equal(a.answer(X), b.answer(X))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"optimizer": "lion"}, "one of adam, sgd, momentum"),
        ({"loss": "hinge"}, "one of mse"),
        ({"steps": 0}, "steps"),
        ({"batch": 2.5}, "batch, a whole number"),
        ({"rate": -1.0}, "rate"),
        ({"heads": 0}, "heads"),
        ({"init": "zeros"}, "init='random'"),
        ({"device": "tpu9"}, "device"),
        ({"loss": "cross_entropy"}, "labels"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"dtype": "float16"}, "float32"),
        ({"samples": 0}, "samples, a whole number"),
        ({"samples": -1}, "samples, a whole number"),
        ({"seconds": math.nan}, "seconds"),
        ({"seconds": -1.0}, "seconds"),
        ({"checkpoint": 5}, "checkpoint"),
    ],
)
def test_bad_options_are_refused_in_one_line(change, words, as_user):
    with pytest.raises(ol.InputError) as refusal:
        ol.train(*WAVE, **(SMALL | {"steps": 5} | change))
    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((np.zeros((3, 2)), np.zeros(4)), "as many answers"),
        ((np.zeros((3, 2, 2, 2)), np.zeros(3)), "shape"),
        ((np.zeros((0, 2)), np.zeros(0)), "N ≥ 1"),
        ((np.zeros((3, 2)), np.zeros(3), -np.ones(3)), "weights ≥ 0"),
        ((np.zeros((3, 2)), np.zeros(3), np.zeros(3)), "not all zero"),
        ((np.zeros((3, 2)), np.zeros(3), np.ones(2)), "a weight for every sample"),
        ((np.zeros((3, 2)),), "two or three"),
        ((np.full((3, 2), np.nan), np.zeros(3)), "finite"),
        ((np.full((3, 2), 1e200), np.zeros(3)), "at most 1e\\+150 in size"),
    ],
)
def test_bad_samples_are_refused(given, words, as_user):
    with pytest.raises(ol.InputError, match=words):
        ol.train(given, steps=5)


def test_an_unknown_option_is_answered_with_the_nearest(as_user):
    with pytest.raises(ol.InputError, match=r"an option of train; found: step; change: did you mean steps\?"):
        ol.train(*WAVE, step=3)


def test_a_target_brings_its_options_along():
    a = ol.train(ol.Target("x1 + x2", [(0, 1)] * 2, within="x1 + x2 <= 1"), steps=2, **SMALL)
    assert a.domain.within is not None
    with pytest.raises(ol.InputError, match="a Target alone"):
        ol.train(a.target, shape=(2, 1), steps=2)
    with pytest.raises(ol.InputError, match=r"samples alone.*found: domain"):
        ol.train((np.eye(3), np.ones(3)), [(0, 1)] * 3, steps=2)


def test_inputs_of_one_variable_may_be_a_vector():
    x = np.linspace(0, 1, 30)
    one, two = (ol.train((X, x**2), steps=5, heads=1, width=4, d_model=4) for X in (x, x[:, None]))
    assert one.model.fingerprint() == two.model.fingerprint()
    assert np.array_equal(one(x[:, None]), two(x[:, None]))


def test_a_shared_scale_normalises_all_entries_alike():
    X = np.random.default_rng(0).normal(size=(40, 4)) * [1, 10, 100, 1000]
    shared, own = (ol.train((X, X[:, 0]), steps=1, width=4, shared_scale=s) for s in (True, False))
    assert len(torch.unique(shared.model.state_dict()["scale"])) == 1
    assert len(torch.unique(own.model.state_dict()["scale"])) == 4


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU on this machine")
def test_training_on_a_gpu(tmp_path):
    asked = SMALL | {"steps": 60, "device": "cuda"}
    whole = ol.train(*WAVE, **asked)
    part = ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt", progress=stopping_at(33))
    assert part.history.stopped == "interrupted"
    assert ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt").history.steps == whole.history.steps
    assert whole.model.W_E.device.type == "cpu"
    X = np.random.default_rng(0).normal(size=(100, 3))
    ol.train((X, X[:, 0] > 0), loss="cross_entropy", steps=20, dropout=0.1, device="cuda")


def test_the_layer_that_is_returned_is_the_one_that_was_validated():
    X = np.random.default_rng(1).standard_normal((200, 3, 1))
    Y = X + np.array([100.0, 0.0, -100.0])[:, None]
    a = ol.train((X, Y), steps=100, every=50, heads=1, width=16, d_model=8, dtype="float64")
    best = min(moment.rmse for moment in a.history.moments)
    held = next(moment for moment in a.history.moments if moment.rmse == best)
    assert abs(a.certificate.observed - held.validated) < 1e-9 * held.validated + 1e-9


def test_a_training_that_patience_ended_stays_ended(tmp_path):
    rng = np.random.default_rng(1)
    A, B = rng.standard_normal((64, 2)), rng.standard_normal(64)
    asked = {"steps": 400, "every": 5, "patience": 1, "heads": 1, "width": 8, "d_model": 4, "batch": 10}
    for seed in range(3):
        first, again = (ol.train((A, B), **asked, seed=seed, checkpoint=tmp_path / f"{seed}.pt") for _ in range(2))
        assert "no progress" in again.history.stopped
        assert first.history == again.history
        assert first.model.fingerprint() == again.model.fingerprint()


@pytest.mark.long
def test_going_on_from_a_construction_bit_by_bit(tmp_path):
    built = ol.build(*WAVE, 1e-2)
    asked = {"init": built, "steps": 60, "every": 10, "samples": 300, "rate": 1e-6}
    whole = ol.train(*WAVE, **asked)
    ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt", progress=stopping_at(33))
    again = ol.train(*WAVE, **asked, checkpoint=tmp_path / "c.pt")
    assert again.history == whole.history
    assert again.model.fingerprint() == whole.model.fingerprint()


def test_a_start_has_the_same_function_however_it_is_typed():
    built = ol.build("2*x**2", {"x": (0, 1)}, 0.1)
    assert ol.train("f(x) = 2x²", [(0, 1)], init=built, steps=2, samples=50).target.text == "2*x**2"
    with pytest.raises(ol.InputError, match="an Approximation of 3x²"):
        ol.train("3x²", [(0, 1)], init=built, steps=2)


def test_a_start_of_another_shape_is_refused():
    X = np.random.default_rng(0).random((30, 2))
    built, stored = ol.build("x1 + x2", [(0, 1)] * 2, 0.1), ol.memorize(X, ["a", "b", "c"] * 10)
    for given, init in [
        (("x1 + x2", [(0, 1)] * 2), stored),
        (((X[:, :1], X[:, 0]),), built),
        (((X, X),), built),
        ((lambda x: x[:, 0], [(0, 1)] * 3), built),
    ]:
        with pytest.raises(ol.InputError, match="init, a layer with"):
            ol.train(*given, init=init, steps=5)


def test_other_weights_of_held_out_samples_are_another_training(tmp_path):
    X, w = np.random.default_rng(0).random((40, 2)), np.ones(40)
    asked = {"steps": 10, "heads": 1, "width": 4, "d_model": 4, "checkpoint": tmp_path / "c.pt"}
    ol.train((X, X[:, 0], w), **asked)
    held = np.random.default_rng(0).permutation(40)[0]
    w[held] = 5.0
    with pytest.raises(ol.InputError, match="another recipe"):
        ol.train((X, X[:, 0], w), **asked)


def test_the_tolerance_is_the_third_argument_as_in_build():
    found = ol.train("2*x1", (0, 1), 0.5, steps=2, heads=1, width=2, d_model=4)
    assert found.certificate.tolerance == 0.5
