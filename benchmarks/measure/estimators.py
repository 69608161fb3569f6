"""The estimators on noisy data, beside scikit-learn's own on the same splits: the tables of estimators.md.

    python benchmarks/measure/estimators.py           prints the tables; takes a few minutes on one core
    python benchmarks/measure/estimators.py --page    also writes them into estimators.md

Classifiers are fitted to three quarters of the digits and judged on the rest; regressors by 5-fold cross-validation.
"""

import time
import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes, load_digits, make_friedman1
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.model_selection import KFold, cross_val_score, train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onelayer as ol
from page import markdown, options, page_of, placed

PAGE = page_of("estimators.md")
SPLITS = (10, 11, 12)  # seeds by which no setting was chosen

CLASSIFIERS: dict[str, Any] = {
    "OneLayerClassifier, rows of pixels as 8 tokens": ol.OneLayerClassifier(tokens=(8, 8)),
    "LogisticRegression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)),
    "MLPClassifier": make_pipeline(StandardScaler(), MLPClassifier(random_state=0)),
}
REGRESSORS: dict[str, Any] = {
    "OneLayerRegressor, solved": ol.OneLayerRegressor(),
    "OneLayerRegressor, polished": ol.OneLayerRegressor("polished"),
    "OneLayerRegressor, trained": ol.OneLayerRegressor("trained"),
    "RidgeCV": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 5, 33))),
    "MLPRegressor": make_pipeline(StandardScaler(), MLPRegressor(random_state=0, max_iter=1000)),
}


def digits() -> str:
    """Accuracy on the held-out quarters of three splits, and seconds of one fit."""
    X, y = load_digits(return_X_y=True)
    rows = []
    for name, model in CLASSIFIERS.items():
        scores, started = [], time.perf_counter()
        for seed in SPLITS:
            fit_x, test_x, fit_y, test_y = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
            scores.append(model.fit(fit_x, fit_y).score(test_x, test_y))
        seconds = (time.perf_counter() - started) / len(SPLITS)
        rows.append([name, *(f"{100 * score:.1f}%" for score in scores), f"{seconds:.1f}"])
    return markdown(["digits", *(f"split {seed}" for seed in SPLITS), "seconds"], rows)


def regression() -> str:
    """R² by 5-fold cross-validation, and seconds of one fit."""
    data = {
        "diabetes": load_diabetes(return_X_y=True),
        "Friedman 1, 400 samples, noise 1": make_friedman1(400, noise=1.0, random_state=0),
    }
    rows = []
    for name, model in REGRESSORS.items():
        row = [name]
        for X, y in data.values():
            started = time.perf_counter()
            score = cross_val_score(model, X, y, cv=KFold(5, shuffle=True, random_state=SPLITS[0])).mean()
            row += [f"{score:.3f}", f"{(time.perf_counter() - started) / 5:.2f}"]
        rows.append(row)
    return markdown(["R²", *(word for name in data for word in (name, "seconds"))], rows)


def main() -> None:
    parser = options(__doc__)
    parser.add_argument("--page", action="store_true", help="write the tables into estimators.md")
    args = parser.parse_args()
    tables = {"digits": digits(), "regression": regression()}
    page = PAGE.read_text()
    for mark, table in tables.items():
        print(table, end="\n\n")
        page = placed(page, mark, table)
    if args.page:
        PAGE.write_text(page)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the perceptrons warn that they have not converged
    main()
