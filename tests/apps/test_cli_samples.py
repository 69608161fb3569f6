"""The command line around a build: samples in files as targets, `--open`, and summaries that fit."""

import json
from pathlib import Path

import numpy as np
import pytest

import onelayer as ol
from onelayer.apps.cli import main

GRID = np.stack(np.meshgrid(np.linspace(0, 1, 9), np.linspace(-1, 1, 9)), axis=-1).reshape(-1, 2)
VALUES = GRID[:, 0] * 0.5 + GRID[:, 1]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    """(status, stdout, stderr) of one command, in a folder with the same samples in several files."""
    monkeypatch.chdir(tmp_path)
    lines = [f"{x!r},{p!r},{y!r}" for (x, p), y in zip(GRID.tolist(), VALUES.tolist(), strict=True)]
    Path("data.csv").write_text("x,p,y\n" + "\n".join(lines) + "\n")
    Path("DATA.CSV").write_text(
        "y,x,p\n" + "\n".join(",".join(line.split(",")[i] for i in (2, 0, 1)) for line in lines)
    )
    np.save("both.npy", np.column_stack([GRID, VALUES]))
    np.save("X.npy", GRID)
    np.save("Y.npy", VALUES)

    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


def test_samples_of_a_file_are_a_target(run, tmp_path):
    status, out, err = run("build", "data.csv", "--eps", 0.3, "--lipschitz", "0.6,1.1", "--out", "m", "--no-report")
    assert (status, err) == (0, "")
    assert "81 samples: x, p → y" in out
    found = ol.load(tmp_path / "m")
    assert found.certificate.verdict == "CERTIFIED"
    assert str(found.domain) == "x in [0.0, 1.0], p in [-1.0, 1.0]"
    expected = ol.build((GRID, VALUES), {"x": (0.0, 1.0), "p": (-1.0, 1.0)}, 0.3, lipschitz=[0.6, 1.1])
    assert found.description == expected.description  # SHA-256 of X and Y included
    assert found.certificate.bound == pytest.approx(expected.certificate.bound)
    assert found.certificate.assumptions == expected.certificate.assumptions


@pytest.mark.parametrize(
    ("file", "options", "columns"),
    [
        ("data.csv", [], (["x", "p"], ["y"])),
        ("DATA.CSV", ["--target", "y"], (["x", "p"], ["y"])),
        ("DATA.CSV", [], (["y", "x"], ["p"])),
        ("both.npy", [], (["x1", "x2"], ["the last column"])),
        ("X.npy", ["--target", "Y.npy"], (None, None)),
    ],
)
def test_the_columns_are_told(run, file, options, columns):
    status, out, _ = run(
        "build", file, *options, "--eps", 5, "--method", "solved", "--out", "m", "--no-report", "--json"
    )
    assert status == 1  # no constant was declared: only observed
    found = json.loads(out)
    assert (found["inputs"], found["answers"]) == columns
    assert found["verdict"] == "UNDECIDED"
    assert found["target"] == "81 samples of 2 variables"


def test_parquet_is_read_too(run):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"a": GRID[:, 0], "b": GRID[:, 1], "y": VALUES}), "data.parquet")
    status, out, _ = run("build", "data.parquet", "--eps", 5, "--method", "solved", "--out", "m", "--no-report")
    assert (status, "81 samples: a, b → y" in out) == (1, True)


def test_a_domain_may_be_given(run, tmp_path):
    wider = ["--eps", 0.9, "--method", "solved", "--no-report", "--lipschitz", "1.1"]
    for i, domain in enumerate(["p=-1:1, x=-0.5:1", "-0.5:1, -1:1", "-1:1"]):
        run("build", "data.csv", *wider, "--domain", domain, "--out", f"m{i}")
        found = ol.load(tmp_path / f"m{i}").domain
        assert found.names == ("x", "p")
        assert found.lower == ((-0.5, -1.0) if i < 2 else (-1.0, -1.0))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.csv"], "no file none.csv"),
        (["data.csv", "--target", "z"], "no column 'z'"),
        (["data.csv", "--domain", "0:1"], "samples in the domain"),
        (["data.csv", "--domain", "q=0:1, p=-1:1"], "a side for each of x, p"),
        (["data.csv", "--domain", "0:1, -1:1, 0:1"], "a side for each of x, p"),
        (["words.csv"], "numbers as answers; found: high"),
        (["mixed.csv"], "numbers as answers; found: abc"),
        (["twice.csv"], "the same input with different answers: line 2 and line 4"),
        (["semicolons.csv"], "columns separated by commas in semicolons.csv; found: semicolons in line 1: 'x;y'"),
        (["tabs.csv"], "columns separated by commas in tabs.csv; found: tabs in line 1"),
        (["bare.csv"], "a header in bare.csv"),
        (["X.npy", "--target", "Z.npy"], "no file Z.npy"),
        (["Y.npy"], "shape [81]"),
        (["data.csv", "--lipschitz", "0.1"], "samples that obey the declared Lipschitz constants 0.1"),
        (["data.csv", "--no-report", "--open"], "--open"),
        (["x1", "--domain", "0:1", "--target", "y"], "--target"),
        (["x1"], "a domain for the formula"),
    ],
)
def test_bad_samples_are_refused_in_one_line(run, tmp_path, arguments, words):
    Path("words.csv").write_text("x,y\n1,high\n2,low\n")
    Path("mixed.csv").write_text("x,y\n1,2\n2,abc\n")
    Path("twice.csv").write_text("x,y\n1,2\n2,3\n1,3\n")
    Path("semicolons.csv").write_text("x;y\n1;2\n2;3\n")
    Path("tabs.csv").write_text("x\ty\n1\t2\n2\t3\n")
    Path("bare.csv").write_text("0.5,1\n0.7,2\n0.9,3\n")
    status, out, err = run("build", *arguments, "--eps", 0.3, "--out", "m")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert words in err
    assert not (tmp_path / "m").exists()


@pytest.fixture
def opened(monkeypatch):
    pages = []
    monkeypatch.setattr("webbrowser.open", lambda page: pages.append(page) or True)
    return pages


def test_open_shows_the_report_that_was_written(run, opened, tmp_path, monkeypatch):
    build = ["build", "x1", "--domain", "0:1", "--eps", 0.5, "--method", "representative"]
    assert run(*build, "--out", "quiet", "--quiet")[0] == 0
    assert opened == []
    assert run(*build, "--out", "m", "--open", "--quiet") == (0, "", "")
    assert opened.pop() == (tmp_path / "m" / "report.html").as_uri()
    assert run("report", "m", "--out", "page.html", "--open")[0] == 0
    assert opened.pop() == (tmp_path / "page.html").as_uri()
    small = ["--heads", 2, "--width", 8, "--d-model", 8, "--steps", 2]
    assert run("train", "x1", "--domain", "0:1", "--out", "t", *small, "--open")[0] == 1
    assert opened.pop() == (tmp_path / "t" / "report.html").as_uri()
    assert (tmp_path / "t" / "report.html").is_file()
    monkeypatch.setattr("webbrowser.open", lambda page: False)
    assert "no browser found" in run("report", "m", "--out", "page2.html", "--open")[2]


def test_no_summary_of_a_command_is_cut(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run("--help")
    commands = out.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    assert len(commands) >= 15
    assert all(line.endswith(".") and "..." not in line for line in commands), commands


def test_tables_fit_a_narrow_terminal(run, monkeypatch):
    build = ["build", "sin(x1)+x1*" + "*".join(["1"] * 60), "--domain", "0:1", "--eps", 0.5, "--no-report", "--out"]
    assert max(map(len, run(*build, "wide")[1].splitlines())) > 100
    monkeypatch.setenv("COLUMNS", "70")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert max(map(len, run(*build, "narrow")[1].splitlines())) <= 70
