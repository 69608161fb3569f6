"""Scikit-learn's own checks of the estimators, what they promise beyond that, and real data beside ridge regression."""

import io
import pickle
import subprocess
import sys
import warnings

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, make_friedman1
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import onelayer as ol
from onelayer.common.errors import InputError
from onelayer.training.estimators.regression import random_gates, solve_values, solved_fit
from onelayer.training.estimators.rows import rows_of

FOLDER = "onelayer.training.estimators.estimator"
METHODS = ["solved", "polished", "trained"]
QUICK = {"steps": 30, "width": 16, "d_model": 16}


def wave(count=150, noise=0.2):
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (count, 2))
    return X, np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + noise * rng.standard_normal(count)


@pytest.mark.one_in(12)
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([ol.OneLayerRegressor(), ol.OneLayerClassifier(steps=50, width=16, d_model=8)])
def test_scikit_learns_checks(estimator, check, as_user):
    check(estimator)


@pytest.mark.long
@pytest.mark.parametrize(
    "estimator", [ol.OneLayerClassifier(), *(ol.OneLayerRegressor(method) for method in METHODS)], ids=str
)
def test_check_estimator_in_full(estimator, as_user):
    """No check fails, none is excused; what scikit-learn leaves out by itself needs packages that are not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, on_skip=None)
    assert {entry["status"] for entry in found} <= {"passed", "skipped"}
    assert not any(entry["expected_to_fail"] for entry in found)
    for entry in found:
        assert (
            entry["status"] == "passed" or "pandas" in str(entry["exception"]) or "ARRAY_API" in str(entry["exception"])
        )


@pytest.mark.parametrize("method", ["solved", pytest.param("polished", marks=pytest.mark.long), "trained"])
def test_weights_are_copies_and_order_does_not_matter(method):
    X, y = wave(40)
    rng = np.random.default_rng(0)
    w = rng.integers(0, 4, len(X))
    by = rng.permutation(len(X))
    model = ol.OneLayerRegressor(method, **QUICK)
    weighted = clone(model).fit(X, y, sample_weight=w).predict(X)
    copied = clone(model).fit(X.repeat(w, axis=0), y.repeat(w)).predict(X)
    moved = clone(model).fit(X[by], y[by], sample_weight=w[by]).predict(X)
    assert np.array_equal(weighted, copied)
    assert np.array_equal(weighted, moved)
    assert not np.array_equal(weighted, clone(model).fit(X, y).predict(X))


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS)
def test_several_outputs_of_different_size(method):
    X, y = wave()
    Y = np.stack([y, 1e4 * X[:, 1], np.full(len(X), 3.0)], axis=1)
    quick = {"steps": 200, "width": 32, "d_model": 32}
    model = ol.OneLayerRegressor(method, **quick).fit(X, Y)
    found = model.predict(X)
    assert found.shape == Y.shape
    for k in (0, 1):
        assert 1 - np.mean((found[:, k] - Y[:, k]) ** 2) / Y[:, k].var() > 0.5
    assert np.allclose(found[:, 2], 3.0, atol=1e-9 if method != "trained" else 0.2)
    column = ol.OneLayerRegressor(method, **QUICK).fit(X, y[:, None])
    assert column.predict(X).shape == (len(X), 1)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "estimator", [*(ol.OneLayerRegressor(m, **QUICK) for m in METHODS), ol.OneLayerClassifier(**QUICK)]
)
def test_survives_pickle_joblib_and_skops(estimator, tmp_path):
    import skops.io as skops_io  # takes seconds: here alone

    X, y = wave(60)
    y = np.where(y > 0, "high", "low") if isinstance(estimator, ol.OneLayerClassifier) else y
    model = clone(estimator).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    kept = skops_io.dumps(model)
    untrusted = skops_io.get_untrusted_types(data=kept)
    assert untrusted == [f"{FOLDER}.{type(model).__name__}"]  # no module of torch, nothing else of ours
    for other in (
        pickle.load(io.BytesIO(pickle.dumps(model))),
        joblib.load(tmp_path / "model.joblib"),
        skops_io.loads(kept, trusted=untrusted),
    ):
        assert np.array_equal(other.predict(X), model.predict(X))
        assert other.approximation_.facts == model.approximation_.facts
        assert other.get_params() == model.get_params()
    again = ol.load(model.approximation_.save(tmp_path / "folder"))
    assert np.array_equal(np.asarray(again(X)), np.asarray(model.approximation_(X)))


def test_the_layer_is_the_regression():
    """The assembled Transformer computes what was solved for, is only observed, and stands in its own attributes."""
    X, y = wave()
    rows = rows_of(X, y[:, None], None)
    fitted = solved_fit(rows, None, None, 0)
    model = ol.OneLayerRegressor().fit(X, y)
    mean, spread = rows.answer_units
    z = (X - rows.units[0]) * rows.units[1]
    expected = mean + spread * (fitted.bias + fitted.gating.features(z) @ fitted.values)
    assert np.allclose(model.predict(X), expected[:, 0], rtol=0, atol=1e-10)
    assert isinstance(model.model_, ol.SingleLayerTransformer)
    assert model.approximation_.certificate.verdict == "UNDECIDED"
    assert model.approximation_.units == len(fitted.gating) > 0
    assert not hasattr(model, "history_")
    assert str(model.approximation_).count("held-out samples") == 1


def test_leave_one_out_is_what_leaving_out_gives():
    X, y = wave(30)
    w = np.random.default_rng(1).integers(1, 4, 30).astype(float)
    rows = rows_of(X, y[:, None], w)
    gating, alpha = random_gates(rows, 8, 1.0, 0), np.array([0.5])
    found = solve_values(rows, gating, alpha).held_out[:, 0]
    mean, spread = rows.answer_units
    z, t = (rows.x - rows.units[0]) * rows.units[1], (rows.y[:, 0] - mean[0]) / spread[0]
    for i in (0, 7, 29):
        kept = np.arange(30) != i
        F, r = np.column_stack([np.ones(30), gating.features(z)]), np.sqrt(rows.weights)
        penalty = 0.5 * np.eye(F.shape[1])
        penalty[0, 0] = 0.0
        A = F[kept] * r[kept, None]
        c = np.linalg.solve(A.T @ A + penalty, A.T @ (r * t)[kept])
        assert abs(t[i] - F[i] @ c) == pytest.approx(abs(found[i]), rel=1e-8)


def test_size_and_shrinkage_are_chosen_and_can_be_given():
    X, y = wave()
    assert ol.OneLayerRegressor().fit(X, 3 * X[:, 0] - X[:, 1]).approximation_.units == 0  # a line needs no gate
    assert ol.OneLayerRegressor(units=7).fit(X, y).approximation_.units == 7
    noise = np.random.default_rng(0).standard_normal(len(X))
    assert np.std(ol.OneLayerRegressor().fit(X, noise).predict(X)) < 0.3  # little is learned where there is nothing
    flat = ol.OneLayerRegressor(alpha=1e9).fit(X, y).predict(X)
    assert np.ptp(flat) < 1e-3


@pytest.mark.long
def test_polishing_pays():
    X, y = make_friedman1(200, noise=1.0, random_state=0)
    Xt, yt = make_friedman1(1000, random_state=1)
    solved, polished = (ol.OneLayerRegressor(m).fit(X, y) for m in ("solved", "polished"))
    assert polished.score(Xt, yt) > solved.score(Xt, yt) + 0.05
    assert ol.OneLayerRegressor("polished").fit(X, X[:, 0]).approximation_.units == 0  # and is left where it does not


def test_pipeline_and_grid_search():
    X, y = wave()
    pipe = make_pipeline(StandardScaler(), ol.OneLayerRegressor())
    search = GridSearchCV(pipe, {"onelayerregressor__units": [0, 16]}, cv=3).fit(X, y)
    assert search.best_params_ == {"onelayerregressor__units": 16}
    assert search.best_score_ > 0.8


@pytest.mark.long
def test_classifier_says_labels_and_probabilities():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    before = torch.random.get_rng_state(), str(np.random.get_state())  # noqa: NPY002 (that it is left alone)
    model = ol.OneLayerClassifier(steps=100).fit(X, names)
    assert before[1] == str(np.random.get_state())  # noqa: NPY002
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert model.score(X, names) > 0.95
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert (model.approximation_.answer(X) == model.predict(X)).all()
    assert model.n_iter_ == model.history_.steps == 100
    again = clone(model).fit(X, names)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"method": "guessed"}, "one of solved, polished, trained"),
        ({"units": -1}, "whole number from 0"),
        ({"alpha": 0}, "above 0"),
        ({"tokens": (2, 1)}, "leave tokens=None"),
        ({"method": "trained", "tokens": (3, 1)}, "make the two agree"),
        ({"method": "trained", "tokens": 3}, "two whole numbers"),
        ({"method": "trained", "heads": 0}, "heads"),
        ({"random_state": "x"}, "random_state"),
        ({"dtype": "int8"}, "float64 or float32"),
    ],
)
def test_bad_parameters_are_refused_in_one_line(parameters, words, as_user):
    X, y = wave(30)
    with pytest.raises(InputError, match=words):
        ol.OneLayerRegressor(**parameters).fit(X, y)


def test_bad_data_are_refused_in_one_line():
    X, y = wave(30)
    with pytest.raises(InputError, match="two classes"):
        ol.OneLayerClassifier().fit(X, np.zeros(30, int))
    with pytest.raises(InputError, match="weights ≥ 0"):
        ol.OneLayerRegressor().fit(X, y, sample_weight=-np.ones(30))
    with pytest.raises(InputError, match="other units"):
        ol.OneLayerRegressor().fit(1e200 * X, y)


def test_without_scikit_learn():
    """onelayer itself does not import it; the estimators say in one line what to install."""
    code = """
import sys
sys.modules["sklearn"] = None
import onelayer
try:
    onelayer.OneLayerRegressor
except onelayer.InputError as error:
    sys.exit("pip install 'onelayer[sklearn]'" not in str(error))
sys.exit(2)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_diabetes_is_no_worse_than_ridge():
    X, y = load_diabetes(return_X_y=True)
    folds = KFold(5, shuffle=True, random_state=10)
    ridge = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 33)))
    ours = cross_val_score(ol.OneLayerRegressor(), X, y, cv=folds).mean()
    assert ours >= cross_val_score(ridge, X, y, cv=folds).mean()


@pytest.mark.long
def test_digits_as_rows_of_pixels():
    X, y = load_digits(return_X_y=True)
    X, Xt, y, yt = train_test_split(X, y, test_size=0.25, random_state=10, stratify=y)
    model = ol.OneLayerClassifier(tokens=(8, 8)).fit(X, y)
    assert model.model_.config.tokens == 8
    assert model.score(Xt, yt) >= 0.97


def test_no_tag_turns_a_check_off():
    for estimator in (ol.OneLayerRegressor(), ol.OneLayerClassifier()):
        tags = estimator.__sklearn_tags__()
        kind = tags.regressor_tags or tags.classifier_tags
        off = (tags.no_validation, tags.non_deterministic, tags.input_tags.pairwise, kind.poor_score)
        assert not any(off)
