"""Scikit-learn estimators: a single-layer Transformer for noisy data, to fit, cross-validate and use in a pipeline.

    OneLayerRegressor    "solved": random gates, values by least squares; "polished": gates fitted too; "trained": descent
    OneLayerClassifier   trained by gradient descent on the cross-entropy

Sizes, shrinkage and steps that are not given are chosen by held-out error. Nothing is proved about noisy data: `approximation_`
is an ordinary Approximation whose verdict is UNDECIDED; its observed error is the largest held-out error.

Equal samples are merged first (`rows`): a weight of 3 is the same as three copies, and the order of samples does not matter.
"""

import math
import time
import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from ...approximation import Approximation
from ...common.checks import LARGEST_SEED, is_number, is_whole, require_choice, require_whole
from ...common.errors import InputError
from ...layer.arithmetic import arithmetic_of
from ...layer.assemble import frame_of
from ...layer.assemble.memory import assemble_memory
from ...layer.facts import Facts
from ...layer.magnitudes import amplitude_of, largest_score_of, total_of
from ...model.history import History
from ...model.transformer import SingleLayerTransformer
from ...proof.certificate import unproved
from ...target.decoding import Decoding
from ..descent import approximation_of_samples
from ..recipe import LARGEST_COUNT
from .polished import polished_fit
from .record import approximation_of, record_of
from .regression import layer_of, solved_fit
from .rows import Rows, rows_of
from .trained import LayerShape, trained

try:
    with warnings.catch_warnings():  # importing scipy and scikit-learn changes the filters, which are the user's
        from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
        from sklearn.utils.multiclass import check_classification_targets
        from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
except ModuleNotFoundError:
    raise InputError("scikit-learn for the estimators", "not installed", "pip install 'onelayer[sklearn]'") from None

METHODS = ("solved", "polished", "trained")
TOLERANCE = 1e-2  # in the certificate, as for `train`; nobody asks for one with noisy data


class _OneLayer(BaseEstimator):  # type: ignore[misc]
    """What both estimators share: the fitted layer, and how it is pickled."""

    approximation_: Approximation

    @property
    def model_(self) -> SingleLayerTransformer:
        """The fitted layer, a torch module that takes raw rows as [batch, tokens, features]."""
        return self.approximation_.model

    @property
    def history_(self) -> History:
        """The history of the training that chose the number of steps, or of the only one."""
        if self.approximation_.history is None:
            raise AttributeError("history_: only a trained layer has one")
        return self.approximation_.history

    def __getstate__(self) -> dict[str, Any]:
        """Plain arrays, numbers and text: no torch module is pickled."""
        state = dict(super().__getstate__())
        if "approximation_" in state:
            state["approximation_"] = record_of(state["approximation_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "approximation_" in state:
            state["approximation_"] = approximation_of(state["approximation_"])
        super().__setstate__(state)

    def _values(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "approximation_")
        x = validate_data(self, X, dtype=np.float64, reset=False)
        y = np.asarray(self.approximation_(x), dtype=np.float64)
        return y.reshape(len(x), *self.approximation_.output_shape)

    def _weights(self, sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
        return None if sample_weight is None else _check_sample_weight(sample_weight, X, dtype=np.float64)

    def _trained(self, rows: Rows, labels: bool) -> Approximation:
        shape = LayerShape(self.heads, self.width, self.d_model, _tokens(self.tokens), self.dtype)
        found = trained(rows, labels, shape, self.steps, _seed(self.random_state))
        assert found.history is not None
        self.n_iter_ = found.history.steps
        return found


class OneLayerRegressor(MultiOutputMixin, RegressorMixin, _OneLayer):  # type: ignore[misc]
    """A single-layer Transformer for real answers, one or several per row.

    method     "solved" (default): random ridge gates and a linear part, by least squares; "polished": the gates are fitted as
               well, if cross-validation prefers that; "trained": gradient descent
    units      number of gates; None: chosen by leave-one-out error, 0 among the choices
    alpha      how much values are shrunk, as in ridge regression on standardised features; None: chosen in the same way
    heads, width, d_model, steps, tokens    of a trained layer; steps=None: chosen by held-out error;
               tokens=(n, d): a row is a sequence of n tokens of d numbers in the same unit; None: a row is one token
    dtype      "float64" or "float32", in which the layer is stored and evaluated
    """

    def __init__(
        self,
        method: Literal["solved", "polished", "trained"] = "solved",
        *,
        units: int | None = None,
        alpha: float | None = None,
        heads: int = 4,
        width: int = 128,
        d_model: int = 64,
        steps: int | None = None,
        tokens: tuple[int, int] | None = None,
        random_state: Any = 0,
        dtype: str = "float64",
    ) -> None:
        self.method = method
        self.units = units
        self.alpha = alpha
        self.heads = heads
        self.width = width
        self.d_model = d_model
        self.steps = steps
        self.tokens = tokens
        self.random_state = random_state
        self.dtype = dtype

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OneLayerRegressor":
        """Fit the layer to rows X and answers y, [N] or [N, outputs]."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        self._require()
        rows = rows_of(X, y.reshape(len(X), -1), self._weights(sample_weight, X))
        self.n_outputs_ = rows.y.shape[1]
        self._column = y.ndim > 1
        self.approximation_ = self._trained(rows, False) if self.method == "trained" else self._solved(rows)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Answers of the layer, in the shape of the y given to `fit`."""
        y = self._values(X)
        return y if self._column else y[:, 0]

    def _require(self) -> None:
        require_choice("method", self.method, METHODS)
        if self.units is not None:
            require_whole("units", self.units, 0, LARGEST_COUNT)
        if self.alpha is not None and not (is_number(self.alpha) and 0 < self.alpha < math.inf):
            raise InputError("alpha, a number above 0, or None", f"{self.alpha!r}", "choose for instance 1e-6")
        if self.tokens is not None and self.method != "trained":
            raise InputError("method='trained' for rows as tokens", f"{self.method!r}", "leave tokens=None")

    def _solved(self, rows: Rows) -> Approximation:
        started = time.perf_counter()
        seed, arithmetic = _seed(self.random_state), arithmetic_of(self.dtype)
        fitted = solved_fit(rows, self.units, self.alpha, seed)
        if self.method == "polished":
            fitted = polished_fit(rows, fitted, self.units, self.alpha, seed)
        layer = layer_of(fitted, rows)
        model = assemble_memory(layer, frame_of(rows.hull)).to(arithmetic.dtype).eval()
        facts = Facts(
            method=self.method,
            construction="ridge",
            layout="token",
            heads=(("ridge", len(layer.ridges)) if len(layer.ridges) else ("unused", 1),),
            units=layer.units,
            total=total_of(layer),
            seconds=time.perf_counter() - started,
            seed=seed,
            notes=(f"values shrunk by alpha = {fitted.alpha:.3g}; held-out errors by cross-validation",),
            amplitude=amplitude_of(layer),
            largest_score=largest_score_of(layer),
        )
        observed = float(np.abs(fitted.held_out * rows.answer_units[1]).max())
        certificate = unproved(model, TOLERANCE, str(rows.hull), observed, len(rows))
        shapes = ((1, rows.x.shape[1]), (rows.y.shape[1],))
        return approximation_of_samples(model, certificate, facts, rows.hull, *shapes, len(rows))


class OneLayerClassifier(ClassifierMixin, _OneLayer):  # type: ignore[misc]
    """A single-layer Transformer for labels, trained on the cross-entropy; at least two classes.

    heads, width, d_model    the shape of the layer
    steps      of gradient descent; None: chosen by held-out error among lengths that depend on the size of the data
    tokens     (n, d): a row is a sequence of n tokens of d numbers in the same unit, as rows of pixels; None: a row is one token
    dtype      "float64" or "float32", in which the layer is stored and evaluated; training is done in float32
    """

    def __init__(
        self,
        *,
        heads: int = 4,
        width: int = 128,
        d_model: int = 64,
        steps: int | None = None,
        tokens: tuple[int, int] | None = None,
        random_state: Any = 0,
        dtype: str = "float64",
    ) -> None:
        self.heads = heads
        self.width = width
        self.d_model = d_model
        self.steps = steps
        self.tokens = tokens
        self.random_state = random_state
        self.dtype = dtype

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "OneLayerClassifier":
        """Fit the layer to rows X and labels y."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = self._weights(sample_weight, X)
        if weights is not None and (weights > 0).any():  # a class without weight does not count
            X, y, weights = X[weights != 0], y[weights != 0], weights[weights != 0]
        self.classes_, numbers = np.unique(y, return_inverse=True)
        rows = rows_of(X, numbers.reshape(-1, 1).astype(np.float64), weights)
        if len(self.classes_) < 2:
            raise InputError("two classes or more", f"1 class, {self.classes_[0]!r}", "give samples of another class")
        found = self._trained(rows, True)
        decoding = Decoding("largest", tuple(self.classes_.tolist()))
        self.approximation_ = replace(found, description=replace(found.description, decoding=decoding))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, in the order of `classes_`: the softmax of the layer's outputs."""
        scores = self._values(X)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights / weights.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


def _tokens(tokens: Any) -> tuple[int, int] | None:
    if tokens is None:
        return None
    fits = isinstance(tokens, tuple | list) and len(tokens) == 2
    if not fits or not all(is_whole(t) and t > 0 for t in tokens):
        raise InputError(
            "tokens (n, d), two whole numbers above 0, or None", f"{tokens!r}", "write for instance (8, 8)"
        )
    return int(tokens[0]), int(tokens[1])


def _seed(random_state: Any) -> int:
    """A seed from a number, a NumPy generator or None; NumPy's global generator is not touched."""
    if random_state is None:
        random_state = np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(LARGEST_SEED + 1))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    require_whole("random_state, a NumPy generator or a seed", random_state, 0, LARGEST_SEED)
    return int(random_state)
