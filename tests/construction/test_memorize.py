"""Stored samples: the proved residual holds with zero slack, conflicts are named, folders and the command line keep labels."""

import itertools
import json
import os
from fractions import Fraction

import numpy as np
import pytest
import torch

import memorize
import onelayer as ol
from onelayer.apps.cli import main
from onelayer.construction.memorize.interpolation import interpolation_of
from onelayer.construction.memorize.residual import projections, residual_of
from onelayer.layer.arithmetic import arithmetic_of

rng = np.random.default_rng


def exceeded(approx, X, Y, outputs=None):
    """Samples whose error, in exact arithmetic, is above what is proved for this very sample."""
    x, y = X.reshape(len(X), -1), Y.reshape(len(Y), -1)
    proved = residual_of(approx.model, x, y).total
    assert proved.max() <= approx.certificate.bound * (1 + 1e-5)
    found = np.asarray(approx(X) if outputs is None else outputs, dtype=np.float64).reshape(len(X), -1)
    return [
        i
        for i in range(len(X))
        if max(abs(Fraction(a) - Fraction(b)) for a, b in zip(found[i].tolist(), y[i].tolist(), strict=True))
        > Fraction(float(proved[i]))
    ]


def scores(Y):
    return (np.asarray(Y)[..., None] == np.unique(Y)).astype(np.float64)


def sequences(N, n=3, d=2, seed=0):
    return rng(seed).standard_normal((N, n, d))


# ---- the residual


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (1, 7), (4, 1), (3, 2), (8, 4)])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_residual_holds_with_zero_slack(dtype, n, d, seed):
    X = sequences(60, n, d, seed)
    X = X.astype(np.float32).astype(np.float64) if dtype == "float32" else X
    Y = rng(seed + 9).standard_normal((60, 2, 2))
    approx = ol.memorize(X, Y, dtype=dtype, seed=seed)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.certificate.tolerance == approx.certificate.bound
    assert approx.certificate.method == "lemma"
    assert exceeded(approx, X, Y) == []
    assert exceeded(approx, X, Y, np.stack([approx(x) for x in X])) == []
    order = rng(seed).permutation(60)
    assert exceeded(approx, X, Y, approx(X[order])[np.argsort(order)]) == []
    assert approx.parameters == approx.model.config.parameter_count
    assert approx.model.config.ffn_width == 59


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("order", ["falling", "rising", "gains first", "units reversed"])
def test_any_order_of_summation(dtype, order):
    X, Y = sequences(80), rng(1).standard_normal(80)
    approx = ol.memorize(X, Y, dtype=dtype)
    f, number = interpolation_of(approx.model), getattr(np, dtype)
    x = torch.tensor(X, dtype=getattr(torch, dtype)).reshape(80, -1)
    terms = (f.frame(x).numpy() * f.directions.ravel().astype(number)).astype(number)
    outputs = []
    for term in terms:
        z = number(0)
        for t in sorted(term, reverse=order == "falling"):
            z += t
        products = [
            number(a) * max(number(s) * z - number(s * k), number(0))
            for a, s, k in zip(f.values[:, 0], f.signs, f.knots, strict=True)
        ]
        key = {"falling": lambda p: -p, "rising": lambda p: p, "gains first": lambda p: p < 0}.get(order)
        total = number(0)
        for p in products[::-1] if key is None else sorted(products, key=key):
            total += p
        outputs.append(total + number(f.base[0]))
    assert exceeded(approx, X, Y, np.array(outputs)) == []


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_terms_against_fractions(dtype):
    """The exact polygon, its slopes and Σ|a||z − k|, each from its definition."""
    X, Y = sequences(40), rng(1).standard_normal((40, 1))
    model = ol.memorize(X, Y, dtype=dtype).model
    f, u = interpolation_of(model), Fraction(1, 2 ** (53 if dtype == "float64" else 24))
    proved = residual_of(model, X.reshape(40, -1), Y)
    t, delta, _ = projections(f, X.reshape(40, -1), arithmetic_of(dtype))
    units = [tuple(map(Fraction, unit)) for unit in zip(f.values[:, 0], f.signs, f.knots, strict=True)]
    base = Fraction(f.base[0])
    hat = f.frame(torch.tensor(X.reshape(40, -1), dtype=getattr(torch, dtype))).double().numpy()
    for i in range(40):
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(hat[i], f.directions.ravel(), strict=True))
        at, reach = Fraction(t[i]), Fraction(delta[i])
        assert abs(exact - at) <= reach
        F = base + sum(a * max(s * (at - k), 0) for a, s, k in units)
        assert abs(F - Fraction(Y[i, 0])) <= Fraction(proved.interpolation[i])
        ends = [at - reach, at + reach]
        inner = sorted([*ends, *(k for _, _, k in units if ends[0] < k < ends[1])])
        for left, right in itertools.pairwise(inner):
            middle = (left + right) / 2
            slope = sum(a * s for a, s, k in units if s * (middle - k) > 0)
            assert abs(slope) * reach <= Fraction(proved.projection[i]) * Fraction(1 + 1e-9)
        for end in ends:
            active = [abs(a) * s * (end - k) for a, s, k in units if s * (end - k) > 0]
            p = len(active) + 2
            assert p * u / (1 - p * u) * (sum(active) + abs(base)) <= Fraction(proved.rounding[i])


def test_other_arrangements_of_the_units_are_proved_as_well():
    X, Y = sequences(50), rng(2).standard_normal(50)
    approx = ol.memorize(X, Y)
    order = torch.from_numpy(rng(3).permutation(49))
    with torch.no_grad():
        for parameter, axis in ((approx.model.W_1, 1), (approx.model.b_1, 0), (approx.model.W_2, 0)):
            parameter.copy_(parameter.index_select(axis, order))
    assert residual_of(approx.model, X.reshape(50, -1), Y[:, None]).total.max() == pytest.approx(
        approx.certificate.bound, rel=1e-5
    )
    assert exceeded(approx, X, Y) == []


@pytest.mark.parametrize(
    "X",
    [
        sequences(40) * np.array([1e-12, 1e12]),
        sequences(40) + 1e6,
        np.concatenate([sequences(20), sequences(20) + 1e-9]),
        np.concatenate([sequences(20), np.nextafter(sequences(20), 9.0)]),
        np.concatenate([sequences(30), np.full((30, 3, 2), 0.25)[:, :1] * np.ones((1, 3, 2)) + sequences(30) * 1e-7]),
        rng(5).integers(0, 17, (40, 3, 2)).astype(np.float64) * np.array([1.0, 0.0]),
        sequences(40) * 1e-300,
        sequences(40) * 1e140,
    ],
    ids=["scales", "offset", "near", "adjacent floats", "clusters", "constant column", "tiny", "huge"],
)
def test_hostile_inputs(X):
    X = np.unique(X.reshape(len(X), -1), axis=0).reshape(-1, 3, 2)
    Y = np.sin(np.arange(float(len(X))))
    approx = ol.memorize(X, Y, tolerance=1e9)  # also where nothing useful can be proved, it must be true
    assert exceeded(approx, X, Y) == []
    assert exceeded(approx, X, Y, np.stack([approx(x) for x in X])) == []


def test_close_samples_with_equal_answers_cost_nothing():
    X = np.concatenate([sequences(20), np.nextafter(sequences(20), 9.0)])
    Y = np.tile(np.arange(20) % 3, 2)
    approx = ol.memorize(X, Y)
    assert approx.certificate.bound < 1e-6
    assert (approx.answer(X) == Y).all()


@pytest.mark.parametrize(("N", "classes"), [(1, 1), (2, 1), (2, 2), (3, 2)])
def test_very_few_samples(N, classes):
    X, Y = sequences(N, 1, 3)[:, 0], np.arange(N) % classes
    approx = ol.memorize(X, Y)
    assert approx.model.config.ffn_width == max(N - 1, 1)
    assert approx.answer(X).tolist() == Y.tolist()
    assert approx.answer(X[0]) == Y[0]
    assert exceeded(approx, X, scores(Y)) == []


@pytest.mark.long
def test_ten_thousand_sequences_with_ten_classes():
    X, Y = sequences(10_000, 8, 4), rng(1).integers(0, 10, 10_000)
    approx = ol.memorize(X, Y)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.certificate.bound < 1e-2
    assert (approx.answer(X) == Y).all()
    w = 12  # d_model
    assert approx.parameters == 2 * 32 + w * (4 + 5 * 8 + 3 + 10) + 10 + 9_999 * (2 * w + 1)


def test_two_thousand_sequences_with_real_answers():
    X, Y = sequences(2_000, 8, 4), rng(1).standard_normal(2_000)
    c = ol.memorize(X, Y).certificate
    assert c.observed <= 1e-6
    assert c.observed <= c.bound < 1e-4


def test_digits():
    digits = pytest.importorskip("sklearn.datasets").load_digits()
    approx = ol.memorize(digits.images, digits.target)
    assert approx.certificate.bound < 1e-3
    assert (approx.answer(digits.images) == digits.target).all()


def test_a_broken_weight_shows():
    X, Y = sequences(30), rng(1).standard_normal(30)
    approx = ol.memorize(X, Y)
    x, y = X.reshape(30, -1), Y[:, None]
    with torch.no_grad():
        approx.model.W_2[14, 0] *= 1 + 1e-6
    with pytest.raises(ol.InputError, match="changed after"):
        approx(X)
    errors = np.abs(approx.values_of(approx.model, torch.from_numpy(x)).detach().numpy()[:, 0] - Y)
    assert errors.max() > approx.certificate.bound
    assert (errors <= residual_of(approx.model, x, y).total).all()  # the proof reads the weights as they are
    with pytest.raises(ol.InputError, match="changed after"):
        approx.save("nowhere")
    with torch.no_grad():
        approx.model.W_K[0, 3, 0] = 1.0  # no read-head any more
    assert residual_of(approx.model, x, y).total.min() == np.inf


# ---- labels, shapes, refusals


@pytest.mark.parametrize(
    "Y", [np.array(["no", "yes", "maybe"] * 7), np.array([True, False, True] * 7), np.array([-3, 10**12, 5] * 7)]
)
def test_labels_come_back(Y, tmp_path):
    X = sequences(21)
    approx = ol.memorize(X, Y)
    assert approx.certificate.tolerance == 0.49
    again = ol.load(approx.save(tmp_path / "f"))
    for layer in (approx, again):
        assert layer.answer(X).tolist() == Y.tolist()
        assert layer.answer(X[4]) == Y[4]
    assert again.certificate == approx.certificate
    assert "21 stored samples" in str(again)
    assert ol.check(tmp_path / "f").verdict == "NOT CHECKABLE"


def test_what_answers_are_can_be_said():
    X, Y = sequences(12), np.arange(12) % 4
    assert ol.memorize(X, Y, labels=False).output_shape == (1,)
    assert ol.memorize(X, Y.astype(np.float64), labels=True).answer(X).tolist() == Y.tolist()
    tagged = ol.memorize(X, np.stack([Y, Y[::-1]], axis=1))
    assert tagged.output_shape == (2, 4)
    assert tagged.answer(X).tolist() == np.stack([Y, Y[::-1]], axis=1).tolist()
    assert ol.memorize(torch.tensor(X), torch.tensor(Y)).answer(torch.tensor(X)).tolist() == Y.tolist()


def test_many_features_and_constant_ones(tmp_path):
    X = rng(0).integers(0, 256, (50, 784)).astype(np.float64)
    X[:, :100] = 0.0
    Y = np.arange(50) % 10
    approx = ol.load(ol.memorize(X, Y).save(tmp_path / "f"))
    assert (approx.answer(X) == Y).all()
    assert approx.domain.contains(X).all()
    assert approx.parameters == 2 * 784 + 10 * (784 + 7 + 10) + 10 + 49 * 21
    assert approx.model.config.d_model == 10


def test_explain_adds_up():
    X, Y = sequences(20), rng(1).standard_normal(20)
    approx = ol.memorize(X, Y)
    why = approx.explain(X[3])
    assert why.contributions.sum(axis=0) + why.rest == pytest.approx(why.value)
    assert "token 3 1.00" in str(why)


def test_equal_samples_are_merged_and_conflicts_named():
    X, Y = np.concatenate([sequences(10), sequences(10)]), np.arange(20) % 10
    approx = ol.memorize(X, Y)
    assert approx.model.config.ffn_width == 9
    assert approx.description.parameters["distinct"] == 10
    Y[[12, 13, 14, 15]] = 0
    with pytest.raises(ol.InputError, match=r"row 2 and row 12, row 3 and row 13, row 4 and row 14 and 1 more"):
        ol.memorize(X, Y)
    with pytest.raises(ol.InputError, match=r"row 0 and row 1"):  # one float32 number
        ol.memorize(np.array([[1.0], [1.0 + 1e-12]]), np.array(["a", "b"]), dtype="float32")


def test_what_cannot_be_told_apart_is_refused():
    X = sequences(30)
    X[29] = np.nextafter(X[4], 9.0)
    Y = np.arange(30) % 7
    with pytest.raises(ol.InputError, match=r"residual of at most 0.49 .*closest are row 4 and row 29"):
        ol.memorize(X, Y)
    with pytest.raises(ol.InputError, match=r"residual of at most 1e-25"):
        ol.memorize(sequences(30), rng(1).standard_normal(30), tolerance=1e-25)
    with pytest.raises(ol.InputError, match=r"use dtype='float64'"):
        ol.memorize(sequences(900), rng(1).integers(0, 9, 900), dtype="float32")
    with pytest.raises(ol.InputError, match=r"inf; closest are row 0 and row 1"):  # slopes that overflow
        ol.memorize(np.array([[0.0], [5e-324]]), np.array([0.0, 1e150]))
    with pytest.raises(
        ol.InputError, match=r"a constant .*found: 2\.01; closest are row 0 and row 1"
    ):  # one projection
        ol.memorize(np.array([[0.0], [5e-324], [1.0]]), np.array([0.0, 2.0, 0.0]))
    assert ol.memorize(sequences(30), rng(1).standard_normal(30), tolerance=1e-3).certificate.tolerance == 1e-3


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("X", "Y", "wishes", "words"),
    [
        (np.zeros((2, 2, 2, 2)), [1, 2], {}, r"\[N, D\] or \[N, n, d\]"),
        (np.zeros((0, 2)), [], {}, r"\[N, D\] or \[N, n, d\]"),
        (np.eye(3), [1, 2], {}, "3 inputs and 2 answers"),
        (np.eye(3), [1.0, np.nan, 2.0], {}, "nan in Y, row 1"),
        (np.eye(3) + np.inf, [1, 2, 3], {}, "inf in X, row 0"),
        (np.eye(3) * 1e38, [1, 2, 3], {"dtype": "float32"}, "at most 1e"),
        (np.eye(3), ["a", "b", "c"], {"labels": False}, "words such as 'a'"),
        (np.eye(3), [1j, 2j, 3j], {}, "complex"),
        (np.eye(3), [[1], [2, 3], [4]], {}, "Y"),
        (np.eye(3), [1, 2, 3], {"tolerance": 0.5}, "below ½"),
        (np.eye(3), [1, 2, 3], {"tolerance": -1.0}, "tolerance"),
        (np.eye(3), [1, 2, 3], {"dtype": "float16"}, "float16"),
        (np.eye(3), [1, 2, 3], {"seed": -1}, "seed"),
        (np.eye(3), [1, 2, 3], {"names": ["a", "a", "b"]}, "3 distinct names"),
        ([["a"]], [1], {}, "real numbers as X"),
    ],
)
def test_bad_input(X, Y, wishes, words):
    with pytest.raises(ol.InputError, match=words) as refusal:
        ol.memorize(X, Y, **wishes)
    assert "\n" not in str(refusal.value)


def test_it_is_deterministic_and_touches_no_global_state():
    before = torch.random.get_rng_state(), str(np.random.get_state())  # noqa: NPY002
    X, Y = sequences(20), rng(1).standard_normal(20)
    one, two, three = (ol.memorize(X, Y, seed=s).model.fingerprint() for s in (0, 0, 1))
    assert one == two != three
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == str(np.random.get_state())  # noqa: NPY002


# ---- the command line


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        capsys.readouterr()
        return main([str(a) for a in arguments]), *capsys.readouterr()

    return command


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


IRIS = "width,kind,length\n1.5,setosa,2\n0.5,virginica,-3\n\n2.25,setosa,7e-1\n"


def test_csv_with_labels(run):
    write("iris.csv", IRIS)
    status, out, err = run("memorize", "iris.csv", "--target", "kind", "--out", "f")
    assert (status, err) == (0, "")
    assert "CERTIFIED" in out
    assert out.endswith("written to f\n")
    assert ol.load("f").domain.names == ("width", "length")
    status, out, err = run("eval", "f", "0.5", "-3")
    assert (status, err) == (0, "note: the certificate holds for the stored samples only\n")
    assert out.splitlines()[-1] == "answer: virginica"
    record = json.loads(run("eval", "f", "1.5", "2", "--json")[1])
    assert (record["answer"], record["covered"], record["bound"]) == ("setosa", False, None)  # is it stored? not known
    out = run("eval", "f", "--input", "iris.csv")[1]
    assert out.splitlines()[0] == "width,kind,length,y1,y2,answer"
    assert [line.rsplit(",", 1)[1] for line in out.splitlines()[1:]] == ["setosa", "virginica", "setosa"]
    table = json.loads(run("eval", "f", "--input", "iris.csv", "--json")[1])
    assert table["answer"] == [["setosa"], ["virginica"], ["setosa"]]


def test_csv_with_numbers(run):
    write("d.csv", "a,b,p,q\n1,2,3,4\n5,6,7,8\n")
    assert run("memorize", "d.csv", "--target", "p,q", "--numbers", "--out", "f", "--quiet") == (0, "", "")
    assert ol.load("f")(np.array([5.0, 6.0])) == pytest.approx([7, 8])
    record = json.loads(
        run(
            *("memorize", "d.csv", "--target", "p", "--out", "f", "--force"),
            *("--json", "--dtype", "float32", "--seed", "3"),
        )[1]
    )
    assert (record["verdict"], record["method"], record["seed"]) == ("CERTIFIED", "memorized", 3)
    assert ol.load("f").answer(np.array([[1.0, 2.0, 4.0]])).tolist() == [3]
    assert run("memorize", "d.csv", "--target", "p", "--numbers", "--eps", "1e-30", "--out", "g")[0] == 2


def test_numpy_files(run):
    X, Y = sequences(9), rng(1).standard_normal((9, 2))
    np.save("X.npy", X)
    np.save("Y.npy", Y)
    assert run("memorize", "X.npy", "--target", "Y.npy", "--out", "f")[0] == 0
    assert ol.load("f")(X) == pytest.approx(Y, abs=1e-9)
    np.save("O.npy", np.array([{}], dtype=object), allow_pickle=True)
    status, _, err = run("memorize", "X.npy", "--target", "O.npy", "--out", "g")
    assert (status, err.count("\n")) == (2, 1)
    assert "O.npy" in err


def test_parquet(run):
    write("d.parquet", "no such thing")
    status, _, err = run("memorize", "d.parquet", "--target", "y", "--out", "g")
    assert (status, err.count("\n")) == (2, 1)
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"a": [1.5, 2.5], "y": ["u", "v"]}), "d.parquet")
    assert run("memorize", "d.parquet", "--target", "y", "--out", "h")[0] == 0
    assert ol.load("h").answer(np.array([2.5])) == "v"


@pytest.mark.parametrize(
    ("text", "target", "words"),
    [
        ("", "y", "empty file"),
        ("a,y\n", "y", "header alone"),
        ("a,y\n1,2\n", "z", "no column 'z' among a, y"),
        ("a,y\n1,2\n", ",", "--target"),
        ("y\n1\n", "y", "column of inputs"),
        ("a,a,y\n1,2,3\n", "y", "'a' twice"),
        ("a,y\n1,2\n3\n", "y", "1 in line 3"),
        ("a,y\n1,2\nx,3\n", "y", "'x' in column a, line 3"),
        ("a,y\n1,2\nnan,3\n", "y", "'nan' in column a, line 3"),
        ("a,y\n1,2.5\n2,inf\n", "y", "line 3"),
        ("a,y\n1,\n", "y", "none in line 2"),
        ("a,y\n1,2\n\n1,3\n", "y", "line 2 and line 4"),
        ("a,y\n1,2\n1.0000000000000002,3\n1e9,2\n", "y", "closest are line 2 and line 3"),
    ],
)
def test_bad_files(run, text, target, words):
    write("d.csv", text)
    status, out, err = run("memorize", "d.csv", "--target", target, "--out", "f")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert os.listdir() == ["d.csv"]


def test_no_file(run):
    assert "no file" in run("memorize", "none.csv", "--target", "y", "--out", "f")[2]


def test_the_benchmark_of_one_row():
    name, dtype, proved, observed, wrong, *_ = memorize.row("a few", memorize.random_sequences(50, 5), "float32")
    assert (name, dtype, wrong) == ("a few", "float32", "0")
    assert float(observed) <= float(proved) < 0.5
    assert memorize.row("too many", memorize.random_sequences(900, 5), "float32")[2].startswith("refused")


def test_numbers_that_overflow_are_not_proved():
    X, Y = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.array([2.0, 2.0, 2.0])
    for scale, direction, bias in [(8.0, [3e38, -3e38], 0.0), (1.0, [3e38, 0.0], 3e38)]:
        model = ol.memorize(X, Y, dtype="float32").model
        with torch.no_grad():
            model.scale.fill_(scale)
            model.shift.fill_(0.0)
            model.W_E[:, 0] = torch.tensor(direction)
            model.W_1[0], model.b_1[:] = 1.0, bias
            model.W_2.fill_(0.0)
        assert np.isinf(residual_of(model, np.array([[1.0, 1.0]]), np.array([[2.0]])).total).all()
