"""The command line: what it prints, writes and refuses. In process, but for three runs of `python -m`."""

import json
import math
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.target.sides import read_domain

PAPER = ["sin(x1)+sin(x2)", "--domain", "0:2*pi", "--eps", "1", "--method", "representative"]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    """(status, stdout, stderr) of one command, in an empty folder, as a user runs it."""
    monkeypatch.chdir(tmp_path)
    _ = ol.build  # torch is imported before any clock runs

    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """x·p over named variables, with a proof."""
    path = tmp_path_factory.mktemp("cli") / "product"
    ol.build("x*p", {"x": (0, 1), "p": (-1, "pi/2")}, 0.5, method="representative").save(path)
    return path


@pytest.fixture(scope="module")
def two_outputs(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "two"
    ol.build("x1; 2*x1", [(0, 1)], 0.25, method="representative").save(path)
    return path


def rows(text, title):
    """label → value of a printed table."""
    lines = text.split(title + "\n", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return {line.split("  ", 1)[0].strip(): line.split("  ", 1)[1].strip() for line in lines}


def refused(outcome, *words):
    status, out, err = outcome
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert err.endswith("\n")
    assert "Traceback" not in err
    assert all(word in err for word in words), err
    assert os.listdir() == []


# ---- build


def test_build_writes_what_the_plan_said(run):
    status, out, err = run("build", *PAPER, "--out", "f")
    assert (status, err) == (0, "")
    plan, built = rows(out, "Plan"), rows(out, "Approximation by one layer")
    assert (plan["units"], plan["parameters"]) == (built["units"], built["parameters"])
    assert built["verdict"] == "CERTIFIED"
    assert out.splitlines()[-1].startswith("written to f")
    approx = ol.load("f")
    assert f"{approx.units:,}" == plan["units"]
    x = np.random.default_rng(5).uniform(0, 2 * np.pi, (5000, 2))
    assert np.abs(approx(x) - np.sin(x).sum(axis=1)).max() <= approx.certificate.bound <= 1
    assert os.listdir() == ["f"]


def test_build_json_is_one_document(run):
    status, out, err = run("build", *PAPER, "--out", "deep/f", "--json")
    record = json.loads(out, parse_constant=pytest.fail)
    assert (status, err) == (0, "")
    assert record["verdict"] == record["certificate"]["verdict"] == "CERTIFIED"
    assert record["units"] == record["plan"]["units"] == 90
    assert record["parameters"] == record["plan"]["parameters"]
    assert Path(record["folder"]).is_dir()


def test_not_certified_is_status_1_with_a_folder(run):
    status, out, _ = run(
        "build", "sin(9*x1)", "--domain=-1:1", "--tolerance", "1e-6", "--units", "2", "--out", "f", "--json"
    )
    record = json.loads(out, parse_constant=pytest.fail)
    assert status == 1
    assert record["plan"] is None
    assert record["certificate"]["verdict"] == "REFUTED"
    assert ol.load("f").certificate.witness == tuple(record["certificate"]["witness"])


def test_quiet(run):
    assert run("build", *PAPER, "--out", "f", "--quiet") == (0, "", "")
    assert ol.load("f").units == 90


def test_build_replaces_a_model_folder_and_nothing_else(run):
    assert run("build", *PAPER, "--out", "f", "--quiet")[0] == 0
    assert run("build", *PAPER, "--out", "f", "--quiet")[0] == 2
    assert run("build", *PAPER, "--out", "f", "--quiet", "--force")[0] == 0
    Path("other").mkdir()
    Path("other/notes.txt").touch()
    Path("file").touch()
    for out in ("other", "file", "file/f", "", "..", "n" * 250):
        status, _, err = run("build", *PAPER, "--out", out)
        assert (status, err.count("\n")) == (2, 1)
    assert sorted(os.listdir()) == ["f", "file", "other"]


@pytest.mark.long
def test_options_reach_the_build(run):
    about = ["--domain", "0:1", "--eps", "2", "--method", "representative", "--json", "--out", "f", "--force"]
    sequence = ["x1+x4; x2; x3; x1", "--shape", "2,2", "--output-shape", "2,2", "--layout", "wide"]
    status, out, _ = run("build", *sequence, *about)
    assert (status, json.loads(out)["layout"]) == (0, "wide")
    assert ol.load("f")(np.zeros((3, 2, 2))).shape == (3, 2, 2)
    _, out, _ = run("build", "x1*x2", "--within", "x1**2+x2**2<=1", "--lipschitz", "1,max(1,0)", *about)
    record = json.loads(out)
    assert "derived" in record["plan"]["modulus"]  # what is declared of a formula is only checked
    assert "where x1**2+x2**2<=1" in record["certificate"]["domain"]
    solved = ["--domain", "0:1", "--eps", "0.01", "--json", "--out", "f", "--force", "--method", "solved"]
    _, out, _ = run(
        "build", "x1*x2", "--units", "16", "--construction", "memory", "--seed", "3", "--hinges", "2", *solved
    )
    record = json.loads(out)
    assert (record["construction"], record["units"], record["seed"]) == ("memory", 16, 3)
    _, out, _ = run("build", "x1+x2", "--symmetric", *solved)
    assert json.loads(out)["construction"] == "symmetric"


def test_interrupt(run, monkeypatch):
    monkeypatch.setattr(ol, "build", lambda *a, **k: signal.raise_signal(signal.SIGINT))
    assert run("build", "x1", "--domain", "0:1", "--eps", "0.1", "--out", "f") == (130, "", "interrupted\n")
    assert os.listdir() == []


def test_a_bug_is_no_bad_input(run, monkeypatch):
    monkeypatch.setattr(ol, "build", lambda *a, **k: {}["bug"])
    with pytest.raises(KeyError):
        run("build", "x1", "--domain", "0:1", "--eps", "0.1", "--out", "f")


def test_a_full_disk_is_one_line(run, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", "f")

    monkeypatch.setattr("onelayer.deployment.folder.write_folder", full)
    refused(run("build", "x1", "--domain", "0:1", "--eps", "0.5", "--units", "2", "--out", "f"), "No space left")


# ---- bad input

HOSTILE = [
    "__import__('os').system('x')",
    "x1.__class__",
    "9**9**9**9",
    "(" * 10_000 + "x1" + ")" * 10_000,
    "(" * 4_000 + "x1" + ")" * 4_000,
    "nothing(x1)",
    "x1 + y",
    "",
    "[bold]x1[/bold]",
    "1/x1",
    "1/(x1-x2)",
    "log(x1)",
    "0/0",
    "x1; 0/0",
]


@pytest.mark.parametrize("method", ["representative", "solved"])
@pytest.mark.parametrize("formula", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_formulas(run, formula, method):
    refused(run("build", formula, "--domain", "-1:1", "--eps", "0.1", "--out", "f", "--method", method), "change: ")


@pytest.mark.parametrize(
    "domain",
    [
        *["nan:1", "0:nan", "0:inf", "-Infinity:0", "1:0", "1:1", "0:1e200", "0:x1", "0:max(1,2", "0:" + "(" * 9000],
        *["", "0", "0:1:2", "0:1,", "0:1;2", "=0:1", "x1=x2=0:1", "x1=0:1, 0:1", "x1=0:1, x1=0:2", "pi=0:1", "T=0:1"],
    ],
)
def test_bad_domains(run, domain):
    refused(run("build", "x1", "--domain", domain, "--eps", "0.1", "--out", "f"), "change: ")


@pytest.mark.parametrize("eps", ["0", "-1", "nan", "inf", "abc", ""])
def test_bad_tolerances(run, eps):
    refused(run("build", "x1", "--domain", "0:1", "--eps", eps, "--out", "f"))
    refused(run("plan", "x1", "--domain", "0:1", "--eps", eps))


@pytest.mark.parametrize(
    "extra",
    [
        *[["--method", "x"], ["--bogus"], ["extra"], ["--units", "0"], ["--units", "two"], ["--hinges", "-1"]],
        *[["--seed", "1e9"], ["--seed", "9" * 30], ["--shape", "2"], ["--shape", "2,0"], ["--shape", "a,b"]],
        *[["--output-shape", "3"], ["--lipschitz", "nan"], ["--lipschitz", "1;2"], ["--within", "x1"]],
        ["--within", "x1 < -1"],
    ],
)
def test_bad_options(run, extra):
    refused(run("build", "x1", "--domain", "0:1", "--eps", "0.1", "--out", "f", *extra))


def test_usage_errors_are_one_line(run):
    refused(run("bogus"), "bogus", "onelayer --help")
    refused(run("build"), "FORMULA", "onelayer build --help")
    refused(run("build", "x1", "--domain", "0:1", "--eps", "1"), "--out")
    refused(run("--bogus"), "--bogus")


# ---- domains


def test_domains():
    assert read_domain("0:2*pi") == [("0", "2*pi")]
    assert read_domain(" 0:1 , -1 : max(1, 2)") == [("0", "1"), ("-1", "max(1, 2)")]
    assert read_domain("T=280:350, p=1:10") == {"T": ("280", "350"), "p": ("1", "10")}
    assert read_domain("where(1<=2, 0, 1):4") == [("where(1<=2, 0, 1)", "4")]


def test_one_interval_stands_for_all_variables(run):
    assert "x3 in [0, 1]" in run("build", "x3", "--domain", "0:1", "--eps", "0.5", "--units", "2", "--out", "f")[1]
    assert "x1 in [0, 1]" in run("build", "7", "--domain", "0:1", "--eps", "0.5", "--units", "2", "--out", "g")[1]
    condition = ["--within", "x1 < x2", "--units", "9"]
    assert "x2 in [0, 1]" in run("build", "x1", "--domain", "0:1", "--eps", "0.5", *condition, "--out", "h")[1]


# ---- plan


def test_plan(run):
    status, out, err = run("plan", *PAPER[:-2])
    assert (status, err) == (0, "")
    assert "representative     90" in out
    assert "solved" in out
    status, out, _ = run("plan", *PAPER, "--json")
    assert (status, json.loads(out)["units"]) == (0, 90)
    assert [p["method"] for p in json.loads(run("plan", *PAPER[:-2], "--json")[1])["plans"]] == [
        "representative",
        "solved",
        "polished",
    ]
    assert os.listdir() == []


def test_plan_refuses_what_does_not_fit(run):
    arguments = ["sin(x1)+sin(x2)", "--domain", "0:2*pi", "--eps", "1e-5"]
    refused(run("plan", *arguments, "--method", "representative"), "heads", "--method solved", "a tolerance of about")
    status, out, _ = run("plan", *arguments)
    assert status == 0
    assert "solved" in out
    assert "asked: --method representative" in out


@pytest.mark.parametrize("eps", ["1e-17", "1e-280", "1e-312"])
def test_plan_refuses_what_floating_point_cannot_hold(run, eps):
    arguments = ["sin(x1)+sin(x2)", "--domain", "0:2*pi", "--eps", eps]
    refused(run("plan", *arguments, "--method", "representative"), "change: ")


def test_plan_of_nothing_is_one_refusal(run):
    status, out, err = run("plan", "1/x1", "--domain", "-1:1", "--eps", "0.1")
    assert (status, out, err.count("asked:")) == (2, "", 1)


@pytest.mark.parametrize("shape", ["99999,99999", "999999999,999999999", "513,1"])
def test_a_shape_of_too_many_variables_is_refused(run, shape):
    refused(
        run("build", "x1", "--domain", "0:1", "--eps", "0.1", "--shape", shape, "--out", "f"), "at most 512 variables"
    )


# ---- eval


def test_eval_at_a_point(run, folder):
    status, out, err = run("eval", folder, "0.5", "pi/4")
    assert (status, err) == (0, "")
    assert float(out) == ol.load(folder)(np.array([0.5, math.pi / 4]))
    status, out, err = run("eval", folder, "0.5", "-0.25", "--json")
    record = json.loads(out, parse_constant=pytest.fail)
    assert record["x"] == [0.5, -0.25]
    assert abs(record["y"] + 0.125) <= record["bound"] <= 0.5
    assert record["covered"] is True


def test_eval_outside(run, folder):
    status, _, err = run("eval", folder, "-pi", "-2")
    assert (status, err.count("\n")) == (0, 1)
    assert "not covered by the certificate, which asks for points in the domain" in err
    refused(run("eval", folder, "-pi", "-2", "--outside", "error"), "points in the domain")
    clipped = run("eval", folder, "-pi", "-2", "--outside", "clip")
    assert clipped[1] == run("eval", folder, "0", "-1")[1]
    for option in ("allow", "clip"):
        record = json.loads(run("eval", folder, "-pi", "-2", "--outside", option, "--json")[1])
        assert (record["covered"], record["bound"]) == (False, None)


def test_eval_where_the_certificate_is_silent(run):
    """Within the margin of a jump, and at a number that is not float32: no bound, and the note says why."""
    ol.build("where(x1 < 0.5, 0, 1)", [(0, 1)], 0.05, margin=0.1, method="solved").save("step")
    ol.build("x1", [(0, 1)], 0.05, dtype="float32", method="solved").save("single")
    for folder, x, why in (
        ("step", "0.45", "more than 0.1 away from every jump"),
        ("single", "0.1", "points in float32"),
    ):
        record = json.loads(run("eval", folder, x, "--json")[1])
        assert (record["covered"], record["bound"]) == (False, None)
        assert why in run("eval", folder, x)[2]
        status, out, err = run("eval", folder, x, "--outside", "error")
        assert (status, out, why in err) == (2, "", True)
        record = json.loads(run("eval", folder, "0.25", "--json")[1])
        assert (record["covered"], record["bound"] > 0) == (True, True)


def test_eval_explain(run, folder):
    status, out, _ = run("eval", folder, "0.5", "1", "--explain")
    assert status == 0
    assert out.startswith("Why T(x) has its value\n")
    value = float(out.splitlines()[-1])
    why = json.loads(run("eval", folder, "0.5", "1", "--explain", "--json")[1])["explanation"]
    assert sum(head["adds"][0] for head in why["heads"]) + why["rest"][0] == pytest.approx(value)
    clipped = run("eval", folder, "9", "-9", "--explain", "--outside", "clip")[1]
    assert clipped == run("eval", folder, "1", "-1", "--explain")[1]


def test_eval_several_outputs(run, two_outputs):
    _, out, _ = run("eval", two_outputs, "0.5")
    assert [float(v) for v in out.split()] == ol.load(two_outputs)(np.array([0.5])).tolist()
    Path("in.csv").write_text("0.5\n\n0.25\n")
    _, out, _ = run("eval", two_outputs, "--input", "in.csv")
    assert [len(line.split(",")) for line in out.splitlines()] == [3, 3]
    Path("in.csv").write_text("x1\n0.5\n")
    assert run("eval", two_outputs, "--input", "in.csv")[1].startswith("x1,y1,y2\n0.5,")


def test_eval_csv(run, folder):
    Path("in.csv").write_text('\ufeffp,"name, of point", x\n1,"a ""b""",0.5\n-0.5,c,2.5e-1\n', encoding="utf-8")
    status, out, err = run("eval", folder, "--input", "in.csv", "--output", "out.csv")
    assert (status, out, err) == (0, "2 values written to out.csv\n", "")
    y = ol.load(folder)(np.array([[0.5, 1], [0.25, -0.5]])).tolist()
    lines = ['p,"name, of point",x,y', f'1,"a ""b""",0.5,{y[0]!r}', f"-0.5,c,2.5e-1,{y[1]!r}"]
    assert Path("out.csv").read_text() == "\n".join(lines) + "\n"
    assert run("eval", folder, "--input", "in.csv")[1] == Path("out.csv").read_text()
    record = json.loads(run("eval", folder, "--input", "in.csv", "--json")[1])
    values = {"x": [[0.5, 1.0], [0.25, -0.5]], "y": [[v] for v in y], "covered": [True, True]}
    assert record == {"points": 2, "uncovered": 0, "columns": ["y"]} | values
    assert sorted(os.listdir()) == ["in.csv", "out.csv"]


def test_eval_csv_without_points(run, folder):
    Path("in.csv").write_text("x,p\n")
    assert run("eval", folder, "--input", "in.csv") == (0, "x,p,y\n", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", ["empty"]),
        ("1,2\n3\n", ["line 2", "'3'"]),
        ("x,p\n1,2\n\n1,2,3\n", ["line 4"]),
        ("x,p\n1,2\n1,two\n", ["line 3", "'two'"]),
        ("1,2\nnan,1\n", ["line 2", "'nan'"]),
        ("1,2\n1,-inf\n", ["line 2", "'-inf'"]),
        ("1,1e999\n", ["line 1"]),
        ("1;2\n", ["line 1", "no column x"]),
        ("a,b\n1,2\n", ["no column x in line 1"]),
        ("x,p,x\n1,2,3\n", ["x twice in line 1"]),
        ("x,p,y\n1,2,3\n", ["a column y"]),
        ('1,2\n"1,2\n', ["line 2", "unexpected end"]),
        ("x,p\n0,0\n9,9\n", ["line 3", "points in the domain"]),
    ],
)
def test_bad_csv(run, folder, content, words):
    Path("in.csv").write_text(content)
    status, out, err = run("eval", folder, "--input", "in.csv", "--output", "out.csv", "--outside", "error")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert all(word in err for word in words), err
    assert os.listdir() == ["in.csv"]


def test_csv_that_is_no_text(run, folder):
    Path("in.csv").write_bytes(b"1,2\n\xff,2\n")
    status, out, err = run("eval", folder, "--input", "in.csv")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "UTF-8" in err


def test_an_old_output_survives_a_failure(run, folder, monkeypatch):
    Path("in.csv").write_text("0,0\n")
    Path("out.csv").write_text("old")

    def broken(*_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr("onelayer.deployment.files.streaming.os.replace", broken)
        status, _, err = run("eval", folder, "--input", "in.csv", "--output", "out.csv", "--force")
    assert (status, err.count("\n")) == (2, 1)
    assert Path("out.csv").read_text() == "old"
    assert sorted(os.listdir()) == [".out.csv.part", "in.csv", "out.csv"]
    status, _, err = run("eval", folder, "--input", "in.csv", "--output", "out.csv", "--force")
    assert (status, err) == (0, "note: resuming after 1 point of an earlier run\n")
    assert Path("out.csv").read_text().startswith("0,0,")
    assert sorted(os.listdir()) == ["in.csv", "out.csv"]


def test_bad_eval(run, folder):
    refused(run("eval", "nowhere", "1"), "a model folder at nowhere")
    refused(run("eval", folder), "neither")
    refused(run("eval", folder, "1"), "2 numbers (x, p)")
    refused(run("eval", folder, "1", "2", "3"))
    for text in ("nan", "inf", "x", "1/0", "1;2", "__import__('os')"):
        refused(run("eval", folder, "1", text), "change: ")
    refused(run("eval", folder, "1", "2", "--bogus"), "--bogus")
    refused(run("eval", folder, "1", "2", "--input", "in.csv"), "both")
    refused(run("eval", folder, "1", "2", "--output", "out.csv"))
    refused(run("eval", folder, "--input", "in.csv"), "no file in.csv")
    refused(run("eval", folder, "--input", "in.csv", "--explain"))
    refused(run("eval", folder, "--input", "in.csv", "--output", "no/out.csv"), "no folder no")
    refused(run("eval", folder, "--input", "in.csv", "--output", "."))


def test_an_edited_folder_is_refused(run, two_outputs, tmp_path):
    copy = shutil.copytree(two_outputs, tmp_path / "copy")
    certificate = copy / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"tolerance": 0.25', '"tolerance": 0.5'))
    status, _, err = run("eval", copy, "0.5")
    assert (status, err.count("\n")) == (2, 1)


# ---- help, version, and the process


def test_help_and_version(run):
    assert run("--version") == (0, f"onelayer {ol.__version__}\n", "")
    assert run()[1].strip() == run("--help")[1].strip()
    for command in ("build", "plan", "eval"):
        status, out, err = run(command, "--help")
        assert (status, err) == (0, "")
        assert f"onelayer {command}" in out


def process(*arguments, cwd, **variables):
    command = [sys.executable, "-m", "onelayer.apps.cli", *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(ol.__file__).parents[1])} | variables
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=environment)


def test_help_imports_nothing_heavy():
    code = """
import sys
from onelayer.apps.cli import main
status = main(["build", "--help"]) or main(["--version"])
heavy = ("torch", "numpy", "scipy", "flint", "jaxtyping", "plotly", "rich", "safetensors", "onelayer.formula")
sys.exit(status or any(name in sys.modules for name in heavy))
"""
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        ("onelayer ", {"build", "plan", "eval", "check", "export", "gallery"}),
        ("onelayer build --me", {"--method"}),
        ("onelayer build --method s", {"solved"}),
    ],
)
def test_completion_in_bash(words, answers, tmp_path):
    about = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    found = process(cwd=tmp_path, _ONELAYER_COMPLETE="complete_bash", **about)
    assert (found.returncode, found.stderr) == (0, "")
    assert answers <= set(found.stdout.split())
    assert list(tmp_path.iterdir()) == []


def test_module_runs_as_a_command(tmp_path):
    found = process("build", "[x1]", "--domain", "0:1", "--eps", "0.1", "--out", "f", cwd=tmp_path)
    assert (found.returncode, found.stdout, found.stderr.count("\n")) == (2, "", 1)
    found = process("plan", "x1", "--domain", "0:1", "--eps", "0.1", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert (found.returncode, found.stderr) == (0, "")


def test_a_reader_that_leaves_early():
    code = "from onelayer.apps.cli import main; import sys; sys.exit(main(['--help']))"
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    writer.stdout.close()
    assert writer.stderr.read() == b""
    writer.stderr.close()
    assert writer.wait() in (0, 1)


def test_certify_again_and_check(run):
    assert (
        run("build", "abs(x1-x2)", "--domain", "0:1", "--eps", "0.2", "--units", "9", "--out", "f", "--quiet")[0] == 0
    )
    status, out, _ = run("certify", "f", "--eps", "0.3", "--json")
    record = json.loads(out, parse_constant=pytest.fail)
    assert (status, record["verdict"], record["tolerance"]) == (0, "CERTIFIED", 0.3)
    status, out, _ = run("certify", "f", "--eps", "1e-6", "--out", "g")
    assert status == 1
    assert "REFUTED" in out
    assert ol.load("g").certificate.verdict == "REFUTED"
    status, out, _ = run("check", "f")
    assert (status, out.split(":")[0]) == (0, "VALID")
    status, out, _ = run("check", "g", "--json")  # a refutation is checked too
    assert (status, json.loads(out)["verdict"]) == (0, "VALID")


def test_certify_and_check_refuse_what_is_no_folder(run):
    for command in ("certify", "check"):
        status, _, err = run(command, "nothing")
        assert (status, err.count("\n")) == (2, 1)


def test_a_margin_around_a_jump(run):
    asked = ("where(x1<0.5,0,1)", "--domain", "0:1", "--eps", "0.05", "--margin", "0.05")
    assert run("build", *asked, "--out", "f", "--quiet")[0] == 0
    assert ol.load("f").certificate.margin == ol.load("f").target.margin == 0.05
    assert run("certify", "f", "--margin", "0.001")[0] == 1
    for bad in ("-1", "nan", "inf"):
        status, _, err = run("build", *asked[:-1], bad, "--out", "g")
        assert (status, err.count("\n")) == (2, 1)


def test_checking_no_folder_is_a_mistake_in_one_line(run, tmp_path):
    status, out, err = run("check", tmp_path / "nothing")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert "no such folder" in err
    status, _, err = run("check", tmp_path)
    assert (status, "no model.safetensors in it" in err) == (2, True)


def test_properties_of_a_folder(run):
    words = ("x^3", "--domain", "-1:1", "--eps", "1e-3", "--out", "f", "--quiet", "--no-report")
    assert run("build", *words, "--property", "increasing in x", "--property", "T < 1.01")[0] == 0
    status, out, err = run("prove", "f", "increasing in x")
    assert (status, err) == (0, "")
    assert rows(out, "Property")["verdict"] == "PROVED"
    status, out, _ = run("prove", "f", "convex in x", "--json")
    record = json.loads(out, parse_constant=pytest.fail)
    assert (status, record["verdict"], len(record["witness"])) == (1, "REFUTED", 3)
    for wrong in (("prove", "f", "growing in x"), ("prove", "f", "increasing in y"), ("prove", "g", "increasing in x")):
        status, out, err = run(*wrong)
        assert (status, out, err.count("\n")) == (2, "", 1)
    assert run("build", *words, "--force", "--property", "convex in x")[0] == 2


def test_the_supremum_of_two_formulas_and_of_a_folder(run):
    status, out, err = run("supremum", "sin(x1)", "x1 - x1**3/6", "--domain", "0:1", "--accuracy", "0.01")
    assert (status, err) == (0, "")
    assert rows(out, "Supremum of |p − q|")["at most (proved)"].startswith("0.0081")
    assert rows(out, "Supremum of |p − q|")["p"] == "sin(x1)"
    status, out, _ = run("supremum", "x*y", "x^2", "--domain", "-1:1", "--within", "x^2 + y^2 <= 1", "--json")
    record = json.loads(out, parse_constant=pytest.fail)
    assert status == 0
    assert record["reached"]
    assert record["lower"] <= record["upper"] <= 1.01 * record["lower"]
    assert run("supremum", "x", "x", "--domain", "0:1")[0] == 1  # no share of 0 can be reached
    assert run("build", "sin(x1)", "--domain", "0:1", "--eps", "1e-3", "--out", "f", "--quiet")[0] == 0
    status, out, _ = run("supremum", "f")
    assert (status, rows(out, "Supremum of |T − f|")["f"]) == (0, "sin(x1)")
    other = rows(run("supremum", "f", "sin(x1) + 1")[1], "Supremum of |T − f|")
    assert other["at least (proved)"].startswith("1.00")
    for words, told in (
        (("f", "--domain", "0:1"), "the layer's own domain; found: --domain as well"),
        (("f", "x1", "--within", "x1 < 0.5"), "give --domain as well, or leave --within out"),
        (("x1", "f", "--domain", "0:1"), "give the folder first"),
        (("f", "f"), "compare each with a formula"),
    ):
        status, out, err = run("supremum", *words)
        assert (status, out, err.count("\n"), told in err) == (2, "", 1, True), err


@pytest.mark.parametrize(
    "words",
    [
        ("x",),
        ("x", "y"),
        ("x", "y", "--domain", "0"),
        ("x", "sin(x", "--domain", "0:1"),
        ("x", "x^2", "--domain", "0:1", "--accuracy", "0"),
        ("x", "x^2", "--domain", "0:1", "--seconds", "0"),
    ],
)
def test_what_has_no_supremum_is_refused_in_one_line(run, words):
    status, out, err = run("supremum", *words)
    assert (status, out, err.count("\n")) == (2, "", 1)
