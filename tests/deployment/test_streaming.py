"""Points of files, evaluated batch by batch: what is written, refused and copied; killed runs resume to the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.deployment.files import streaming
from onelayer.deployment.files.partial import PartialValues

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 100  # rows of a batch in most tests


@pytest.fixture(scope="module")
def product():
    """x·p over named variables: certified by the theorem, evaluated by its softmax."""
    return ol.build("x*p", {"x": (0, 1), "p": (-1, "pi/2")}, 0.5, method="representative")


@pytest.fixture(scope="module")
def waves():
    """An analytic certificate, which covers the factored form."""
    return ol.build("sin(x1) + sin(x2)", [(0, "2*pi")] * 2, 1e-2, method="solved")


@pytest.fixture(scope="module")
def labels():
    return ol.memorize(np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]), np.array(["ant", "bee", "ant"]))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def small(monkeypatch):
    """Batches of `ROWS` rows for a file of two columns and one output."""
    monkeypatch.setattr(streaming, "CELLS", 3 * ROWS)


@pytest.fixture
def run(capsys):
    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


def points(n, low=(0.0, -1.0), high=(1.0, 1.5), seed=0):
    return np.random.default_rng(seed).uniform(low, high, (n, len(low)))


def write(path, x, names=("x", "p")):
    """The points as a file of the kind of its suffix."""
    path = Path(path)
    if path.suffix == ".npy":
        np.save(path, x)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(dict(zip(names, x.T, strict=True))), path)
    else:
        path.write_text("\n".join([",".join(names), *(",".join(map(repr, row)) for row in x.tolist())]) + "\n")
    return path


def read(path):
    """The values of a file."""
    path = Path(path)
    if path.suffix == ".npy":
        return np.load(path)
    if path.suffix == ".parquet":
        return pq.read_table(path)["y"].to_numpy()
    return np.array([float(line.rsplit(",", 1)[1]) for line in path.read_text().splitlines()[1:]])


# ---- what is written


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
@pytest.mark.parametrize("n", [0, 1, ROWS, 3 * ROWS, 3 * ROWS + 7])
@pytest.mark.usefixtures("small")
def test_values_of_every_kind(product, suffix, n):
    x = points(n)
    assert product.evaluate(write(f"in.{suffix}", x), f"out.{suffix}") == n
    found = read(f"out.{suffix}")
    assert found.shape == (n,)
    assert np.abs(found - product(x)).max(initial=0.0) <= 1e-14
    assert sorted(os.listdir()) == [f"in.{suffix}", f"out.{suffix}"]


@pytest.mark.usefixtures("small")
def test_parquet_carries_columns_along(product):
    n = 3 * ROWS + 7
    x = points(n)
    table = pa.table(
        {
            "p": x[:, 1],
            "word": [f"w{i % 3}" if i % 5 else None for i in range(n)],
            "class": pa.array([str(i % 4) for i in range(n)]).dictionary_encode(),
            "x": pa.array(x[:, 0], pa.float32()),
            "list": [[i, i + 1] for i in range(n)],
        }
    )
    pq.write_table(table, "in.parquet", row_group_size=ROWS // 3)
    assert product.evaluate("in.parquet", "out.parquet") == n
    found = pq.read_table("out.parquet")
    assert found.column_names == [*table.column_names, "y"]
    assert found.drop_columns("y").equals(table)
    x[:, 0] = x[:, 0].astype(np.float32)
    assert np.abs(found["y"].to_numpy() - product(x)).max() <= 1e-14


@pytest.mark.usefixtures("small")
def test_how_the_input_is_cut_does_not_matter(product):
    x = points(5 * ROWS)
    table = pa.table({"x": x[:, 0], "p": x[:, 1]})
    found = []
    for size in (17, 3 * ROWS, 5 * ROWS):
        pq.write_table(table, "in.parquet", row_group_size=size)
        product.evaluate("in.parquet", "out.parquet", overwrite=True)
        found.append(pq.read_table("out.parquet")["y"].to_numpy().tobytes())
        assert pq.ParquetFile("out.parquet").metadata.row_group(0).num_rows == ROWS
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dtype", ["float32", "float64", ">f8", "int64", "uint8"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.usefixtures("small")
def test_arrays(product, dtype, order):
    x = np.asarray(points(2 * ROWS + 1).round(2) if "f" in dtype else points(2 * ROWS + 1) > 0.5, dtype, order=order)
    np.save("in.npy", x)
    product.evaluate("in.npy", "out.npy")
    assert np.abs(np.load("out.npy") - product(x.astype(float))).max() <= 1e-14


@pytest.mark.usefixtures("small")
def test_the_values_alone_from_any_kind(product):
    x = points(2 * ROWS + 3)
    found = []
    for suffix in ("csv", "parquet", "npy"):
        product.evaluate(write(f"in.{suffix}", x), "out.npy", overwrite=True)
        found.append(Path("out.npy").read_bytes())
    assert found[0] == found[1] == found[2]


def test_several_outputs_and_float32():
    two = ol.build("x1; 2*x1", [(0, 1)], 0.25, method="solved", dtype="float32")
    x = points(50, (0.0,), (1.0,))
    two.evaluate(write("in.parquet", x, ("x1",)), "out.parquet")
    two.evaluate(write("in.npy", x[:, 0]), "out.npy")
    table, array = pq.read_table("out.parquet"), np.load("out.npy")
    assert table.column_names == ["x1", "y1", "y2"]
    assert table["y1"].type == pa.float32()
    assert array.dtype == np.float32
    assert (array == np.stack([table["y1"].to_numpy(), table["y2"].to_numpy()], axis=1)).all()
    assert np.abs(array - two(x)).max() <= 1e-5


def test_answers(labels):
    x = np.array([[4.0, 5.0], [2.0, 3.0], [0.0, 1.0]])
    labels.evaluate(write("in.parquet", x, labels.domain.names), "out.parquet")
    assert pq.read_table("out.parquet")["answer"].to_pylist() == ["ant", "bee", "ant"]
    labels.evaluate(write("in.csv", x, labels.domain.names), "out.csv")
    assert [line.rsplit(",", 1)[1] for line in Path("out.csv").read_text().splitlines()] == [
        "answer",
        "ant",
        "bee",
        "ant",
    ]


def test_tokens_are_looked_at():
    count = ol.gallery.histogram(3, vocabulary=4)
    x = np.array([[0, 1, 1], [3, 3, 3], [0, 1, 4]])
    count.evaluate(write("in.npy", x[:2]), "out.npy")
    assert (np.rint(np.load("out.npy").reshape(2, -1)) == np.rint(count(x[:2]).reshape(2, -1))).all()
    with pytest.raises(ol.InputError, match=r"tokens from 0 to 3; found: others in row 2"):
        count.evaluate(write("in.npy", x), "out.npy", overwrite=True)


# ---- which form is evaluated


def test_linear_attention_where_the_certificate_covers_it(waves, product):
    fast = waves.fast()
    assert fast.attention == "linear"
    assert product.fast().attention == "softmax"
    x = points(500, (-1.0, -1.0), (7.0, 7.0))
    inside = waves.domain.contains(x)
    assert 0 < inside.sum() < len(x)
    model = waves(x)
    rounding = waves.certificate.evidence.rounding  # of either form, from the real function
    assert np.abs(fast(x) - model)[inside].max() <= 2 * rounding
    assert np.abs(fast(x) - model)[~inside].max() <= 1e-12 * np.abs(model).max()
    assert np.abs(fast(x, "clip") - waves(x, outside="clip")).max() <= 2 * rounding


@pytest.mark.long
def test_hinges_are_left_to_the_model():
    kinked = ol.build("abs(x1 - 0.5) + x1**2", [(0, 1)], 1e-2, method="solved", hinges=4)
    x = points(200, (0.0,), (1.0,))
    assert kinked.certificate.method == "analytic"
    assert kinked.fast().attention == "softmax"
    assert (kinked.fast()(x) == kinked(x)).all()


# ---- killed and resumed


def started(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": str(Path(ol.__file__).parents[1])}
    command = [sys.executable, "-m", "onelayer.apps.cli", "eval", str(folder), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("suffix", "number"),
    [
        pytest.param("parquet", signal.SIGKILL, marks=pytest.mark.long),
        ("csv", signal.SIGKILL),
        pytest.param("npy", signal.SIGINT, marks=pytest.mark.long),
    ],
)
def test_killed_half_way(product, run, suffix, number):
    product.save("product")
    if suffix == "npy":
        write("in.npy", points(120_000))  # two batches
    else:  # ten batches, by columns that are carried along
        names = ("x", "p", *(f"c{i}" for i in range(40)))
        write(f"in.{suffix}", np.concatenate([points(50_000), np.zeros((50_000, 40))], axis=1), names)
    arguments = ("--input", f"in.{suffix}", "--output", f"out.{suffix}")
    process = started("product", *arguments)
    journal = Path(f".out.{suffix}.part/journal")
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.01)
    process.send_signal(number)
    out, err = process.communicate()
    assert process.returncode == (130 if number == signal.SIGINT else -signal.SIGKILL)
    assert out == ""
    assert not Path(f"out.{suffix}").exists()
    if number == signal.SIGINT:
        assert err.startswith("interrupted after ")
        assert err.endswith(" points; run the same command to resume\n")
        assert err.count("\n") == 1
    status, _, err = run("eval", "product", *arguments)
    assert status == 0
    assert err.startswith("note: resuming after ")
    assert sorted(os.listdir()) == [f"in.{suffix}", f"out.{suffix}", "product"]
    before = Path(f"out.{suffix}").read_bytes()
    Path(f"out.{suffix}").unlink()
    assert run("eval", "product", *arguments)[0] == 0
    assert Path(f"out.{suffix}").read_bytes() == before


class Killed(BaseException):
    """As if the process had ended here."""


def killer(step):
    """A progress that ends the run at the given step."""
    steps = iter(range(step))

    def progress(text, fraction):
        if next(steps, None) is None:
            raise Killed

    return progress


@pytest.fixture(scope="module")
def whole(product, tmp_path_factory):
    """(a file, its output in one go), seven batches."""
    folder = tmp_path_factory.mktemp("whole")
    write(folder / "in.parquet", points(7 * ROWS - 5))
    cells, streaming.CELLS = streaming.CELLS, 3 * ROWS
    product.evaluate(folder / "in.parquet", folder / "out.parquet")
    streaming.CELLS = cells
    return folder / "in.parquet", (folder / "out.parquet").read_bytes()


@pytest.mark.long
@given(
    step=st.integers(0, 13), lost=st.integers(0, 3000), cut=st.integers(0, 40), flip=st.none() | st.integers(0, 5000)
)
def test_whatever_a_kill_leaves(product, whole, step, lost, cut, flip):
    """Wherever it ends, whatever is missing at the ends of the two files, and one wrong byte: the same bytes."""
    source, expected = whole
    output = Path("out.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "CELLS", 3 * ROWS)
        with pytest.raises(Killed):
            product.evaluate(source, output, progress=killer(step))
        assert not output.exists()
        part = Path(".out.parquet.part")
        for name, missing in (("values", lost), ("journal", cut)):
            content = (part / name).read_bytes()
            (part / name).write_bytes(content[: max(0, len(content) - missing)])
        content = bytearray((part / "values").read_bytes())
        if flip is not None and flip < len(content):
            content[flip] ^= 1
            (part / "values").write_bytes(content)
        assert product.evaluate(source, output) == 7 * ROWS - 5
    assert output.read_bytes() == expected
    assert os.listdir() == ["out.parquet"]
    output.unlink()


@pytest.mark.parametrize(
    "line", [b"9" * 17 + b" 0 0\n", b"9" * 5000 + b" 0 0\n", b"7 0 0\n", b"-1 0 0\n", b"3 0\n", b"x\n"]
)
def test_a_journal_that_claims_too_much(line):
    """A batch that is not there does not count, and nothing as large is asked for."""
    with PartialValues(Path("part"), {"input": "same"}, np.dtype("float64"), 1) as values:
        values.append(np.ones((3, 1)), 0)
    with Path("part/journal").open("ab") as file:
        file.write(line)
    with PartialValues(Path("part"), {"input": "same"}, np.dtype("float64"), 1) as values:
        assert values.rows == [3]
        assert (next(values.batches()) == 1).all()


def test_an_interrupt_says_how_far_it_came(product, small):
    x = write("in.parquet", points(5 * ROWS))

    def progress(text, fraction):
        if text == "200 points":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="after 200 points; run the same command to resume"):
        product.evaluate(x, "out.parquet", progress=progress)
    seen = []
    assert product.evaluate(x, "out.parquet", progress=lambda text, fraction: seen.append((text, fraction))) == 5 * ROWS
    assert seen[0] == ("300 points", 0.6)
    assert seen[-1] == ("writing out.parquet", 1.0)


@pytest.mark.usefixtures("small")
def test_another_purpose_starts_afresh(product, waves):
    x = write("in.parquet", points(5 * ROWS))
    told = []
    again = {"notify": told.append, "source": x, "output": Path("out.parquet"), "overwrite": True}

    def kill():
        with pytest.raises(Killed):
            streaming.evaluate_file(product.fast(), **again | {"notify": None}, progress=killer(2))

    kill()
    streaming.evaluate_file(product.fast(), **again)
    kill()
    streaming.evaluate_file(product.fast(), **again, outside="clip")
    kill()
    write("in.parquet", points(5 * ROWS, seed=1))
    streaming.evaluate_file(product.fast(), **again)
    kill()
    write("in.parquet", points(5 * ROWS), waves.domain.names)
    streaming.evaluate_file(waves.fast(), **again)
    assert told[0] == "resuming after 300 points of an earlier run"
    afresh = "an earlier run differs in {}: starting over"
    assert told[1:3] == [afresh.format("points outside"), afresh.format("input")]
    assert told[3].startswith(afresh.format("input, layer, domain")[:46])
    assert np.abs(read("out.parquet") - waves(points(5 * ROWS))).max() <= 1e-12


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize(("n", "when"), [(5 * ROWS, "writing"), (ROWS, "200 points"), (3 * ROWS, "200 points")])
@pytest.mark.usefixtures("small")
def test_an_input_that_changes_in_the_meantime(product, suffix, n, when):
    x = write(f"in.{suffix}", points(2 * ROWS))

    def progress(text, fraction):
        if text.startswith(when):
            write(x, points(n, seed=1))

    with pytest.raises(ol.InputError, match="changed in the meantime"):
        product.evaluate(x, f"out.{suffix}", progress=progress)
    assert os.listdir() == [x.name]


def test_points_too_large_for_float32(run):
    ol.build("x1", [(0, 1)], 0.1, method="solved", dtype="float32").save("line")
    write("in.npy", np.array([0.5, 1e300]))
    refused(run("eval", "line", "--input", "in.npy", "--output", "out.npy", "--outside", "error"), "row 1")


def test_one_at_a_time(product):
    x = write("in.npy", points(3))
    with (
        PartialValues(Path(".out.npy.part"), {}, np.dtype(float), 1),
        pytest.raises(ol.InputError, match=r"out\.npy\.part in use"),
    ):
        product.evaluate(x, "out.npy")
    assert product.evaluate(x, "out.npy") == 3


# ---- what is refused


def refused(outcome, *words):
    status, out, err = outcome
    assert (status, out, err.count("\n")) == (2, "", 1), err
    assert all(word in err for word in words), err
    assert not any(name.startswith((".", "out")) for name in os.listdir())


GOOD = {"x": [0.0] * 250, "p": [0.0] * 250}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (GOOD | {"p": [*[0.0] * 230, None, *[1.0] * 19]}, ["none in column p, row 230"]),
        (GOOD | {"x": [*[0.0] * 230, float("nan"), *[1.0] * 19]}, ["nan in column x, row 230"]),
        (GOOD | {"x": [*[0.0] * 249, float("-inf")]}, ["-inf in column x, row 249"]),
        (GOOD | {"x": [*[0.0] * 230, 9.0, *[1.0] * 19]}, ["points in the domain", "row 230"]),
        (GOOD | {"x": ["1"] * 250}, ["string in column x"]),
        (GOOD | {"x": [True] * 250}, ["bool in column x"]),
        (GOOD | {"y": [1] * 250}, ["a column y"]),
        ({"x": [0.0]}, ["no column p"]),
    ],
)
@pytest.mark.usefixtures("small")
def test_bad_parquet(product, run, columns, words):
    product.save("product")
    pq.write_table(pa.table(columns), "in.parquet")
    arguments = ("--input", "in.parquet", "--output", "out.parquet", "--outside", "error")
    refused(run("eval", "product", *arguments), *words)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((4, 3)), ["[N, 2]", "shape [4, 3]"]),
        (np.array(1.0), ["shape []"]),
        (np.array([["a", "b"]]), ["dtype <U1"]),
        (np.array([[None, 1]], dtype=object), ["dtype object"]),
        (np.zeros((2, 2), complex), ["dtype complex128"]),
        (np.array([[0.0, 0.0], [0.0, np.inf]]), ["inf in column p, row 1"]),
        (np.array([[0.0, 0.0], [0.0, 7.0]]), ["points in the domain", "row 1"]),
    ],
)
def test_bad_array(product, run, array, words):
    product.save("product")
    np.save("in.npy", array)
    refused(run("eval", "product", "--input", "in.npy", "--output", "out.npy", "--outside", "error"), *words)


def test_an_array_of_fewer_than_no_points(product, run):
    product.save("product")
    with Path("in.npy").open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (-1, 2)})
    status, out, err = run("eval", "product", "--input", "in.npy", "--output", "out.npy")
    assert (status, out) == (2, "")
    assert "shape [-1, 2]" in err


def test_files_that_are_none(product, run, monkeypatch):
    product.save("product")
    for suffix in ("parquet", "npy"):
        name = f"in.{suffix}"
        refused(run("eval", "product", "--input", name, "--output", f"out.{suffix}"), f"no file {name}")
        Path(name).write_text("something else")
        refused(run("eval", "product", "--input", name, "--output", f"out.{suffix}"), name)
        refused(run("eval", "product", "--input", name), "--output", f"out.{suffix}")
    content = write("in.npy", points(9)).read_bytes()
    Path("in.npy").write_bytes(content[:-8])
    refused(run("eval", "product", "--input", "in.npy", "--output", "out.npy"), "ends too early")
    write("in.parquet", points(9))
    refused(run("eval", "product", "--input", "in.parquet", "--output", "out.csv"), "call it out.parquet")
    refused(run("eval", "product", "--input", "in.npy", "--output", "out.parquet"), "call it out.npy")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(run("eval", "product", "--input", "in.parquet", "--output", "out.parquet"), "onelayer[files]")
    with pytest.raises(ol.InputError, match="outside, one of allow"):
        product.evaluate("in.npy", "out.npy", outside="maybe")


@pytest.mark.usefixtures("small")
def test_json(product, run):
    product.save("product")
    x = points(2 * ROWS + 1)
    write("in.parquet", x)
    status, out, _ = run("eval", "product", "--input", "in.parquet", "--output", "out.parquet", "--json")
    assert (status, json.loads(out)) == (0, {"points": 201, "uncovered": 0, "columns": ["y"], "output": "out.parquet"})
    record = json.loads(run("eval", "product", "--input", "in.parquet", "--json")[1])
    assert record["x"] == x.tolist()
    assert np.array(record["y"])[:, 0].tolist() == read("out.parquet").tolist()


@pytest.mark.usefixtures("small")
def test_points_that_are_not_covered_are_counted(product, run):
    """Also over an interruption, after which the first batches are not looked at again."""
    product.save("product")
    x = points(4 * ROWS + 1)
    x[[3, 250, 399]] = 7.0
    source = write("in.parquet", x)
    with pytest.raises(Killed):
        product.evaluate(source, "out.parquet", progress=killer(2))
    status, _, err = run("eval", "product", "--input", "in.parquet", "--output", "out.parquet")
    assert status == 0
    assert err.splitlines()[-1] == "note: 3 of 401 points are not covered by the certificate"
    assert "resuming" in err
    status, out, err = run("eval", "product", "--input", "in.parquet", "--json")
    record = json.loads(out)
    assert (record["points"], record["uncovered"]) == (401, 3)
    assert np.flatnonzero(~np.array(record["covered"])).tolist() == [3, 250, 399]
    assert err == "note: 3 of 401 points are not covered by the certificate\n"


@pytest.mark.long
def test_memory_does_not_grow_with_the_points(tmp_path):
    """The benchmark's three runs, the third of which goes on after a kill; one gigabyte is what is promised for any number."""
    from streaming import measured

    found = []
    for n in (10**6, 10**7):
        (tmp_path / str(n)).mkdir()
        found.append(measured(n, tmp_path / str(n)))
    assert all(f.same and f.killed.status == -signal.SIGKILL and f.second.status == 0 for f in found)
    small, large = (f.undisturbed.peak for f in found)
    assert large < 1e9
    assert large - small < 1e8  # nine million points more are 216 MB of numbers


def test_threads_are_part_of_the_purpose(product):
    work = streaming.Streaming(product.fast(), write("in.npy", points(3)), "allow")
    assert work.purpose["threads"] == torch.get_num_threads()
