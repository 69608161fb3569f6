"""Saving loses nothing: only our own files are replaced, only on request, and a reader never meets a mixture of two models."""

import functools
import itertools
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import onelayer as ol
from onelayer import InputError, gallery
from onelayer.apps.cli import main
from onelayer.common import atomic
from onelayer.deployment.earlier_model import MODEL_FILES, REPORT, STUDENT_FILES
from onelayer.deployment.student_folder import save_student
from onelayer.model.token_encoder import TokenEncoder


@pytest.fixture(scope="module")
def models():
    """Two models with the same variables, whose files could be mixed up."""
    return tuple(ol.build(f, [(0, 1)], 0.1, method="representative") for f in ("x1", "0.5 - x1"))


@pytest.fixture
def run(capsys, tmp_path, monkeypatch, as_user):
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        capsys.readouterr()
        status = main([str(a) for a in arguments])
        return status, *capsys.readouterr()

    return command


def with_notes(folder):
    """Files of the user's own in a model folder."""
    (folder / "notes.txt").write_text("years of work")
    (folder / "exports" / "deep").mkdir(parents=True)
    (folder / "exports" / "deep" / "x.csv").write_text("1")
    return folder


def notes_are_there(folder):
    return (folder / "notes.txt").read_text() == "years of work" and (folder / "exports/deep/x.csv").read_text() == "1"


def test_an_earlier_model_is_replaced_on_request_and_nothing_else(models, tmp_path):
    old, new = models
    folder = with_notes(old.save(tmp_path / "f"))
    with pytest.raises(InputError) as refused:
        new.save(folder)
    for word in (str(folder), "certificate.json", "notes.txt", "overwrite=True"):
        assert word in str(refused.value)
    assert ol.load(folder).target_text == "x1"
    new.save(folder, overwrite=True)
    assert ol.load(folder).target_text == "0.5 - x1"
    assert notes_are_there(folder)
    assert sorted(os.listdir(folder)) == sorted([*MODEL_FILES, "notes.txt", "exports"])
    assert os.listdir(tmp_path) == ["f"]


def test_the_working_directory_stays(run, models, tmp_path):
    with_notes(models[0].save(tmp_path, overwrite=True))
    asked = ["build", "0.5 - x1", "--domain", "0:1", "--eps", "0.1", "--method", "representative", "--out", "."]
    assert run(*asked)[0] == 2
    assert run(*asked, "--force")[0] == 0
    assert notes_are_there(tmp_path)
    assert ol.load(".").target_text == "0.5 - x1"


@pytest.mark.parametrize("name", [*MODEL_FILES, *STUDENT_FILES, REPORT])
def test_files_of_others_with_our_names_stay(run, name):
    Path("f").mkdir()
    for content in (b"mine", b"{}", b'{"schema": 3}'):
        Path("f", name).write_bytes(content)
        asked = [
            "build",
            "x1",
            "--domain",
            "0:1",
            "--eps",
            "0.1",
            "--method",
            "representative",
            "--out",
            "f",
            "--force",
        ]
        status, _, err = run(*asked)
        assert (status, err.count("\n")) == (2, 1)
        assert name in err
        assert Path("f", name).read_bytes() == content
        assert os.listdir("f") == [name]


def test_a_report_goes_with_the_model_that_it_describes(models, tmp_path):
    old, new = models
    folder = old.save(tmp_path / "f")
    old.report(folder / REPORT)
    new.save(folder, overwrite=True)
    assert not (folder / REPORT).exists()
    (folder / REPORT).write_text("<html>my own page</html>")
    old.save(folder, overwrite=True)
    assert (folder / REPORT).read_text() == "<html>my own page</html>"


def test_a_student_and_a_model_replace_each_other(models, tmp_path):
    student = TokenEncoder(vocabulary=5, length=4, outputs=3, heads=2, width=8, d_model=8, pooled=False, seed=0)
    about = {"how": "test", "teacher_parameters": 1}
    folder = with_notes(models[0].save(tmp_path / "f"))
    with pytest.raises(InputError, match="overwrite=True"):
        save_student(student, about, folder)
    save_student(student, about, folder, overwrite=True)
    assert isinstance(ol.load(folder), TokenEncoder)
    assert sorted(os.listdir(folder)) == sorted([*STUDENT_FILES, "notes.txt", "exports"])
    models[1].save(folder, overwrite=True)
    assert ol.load(folder).target_text == "0.5 - x1"
    assert sorted(os.listdir(folder)) == sorted([*MODEL_FILES, "notes.txt", "exports"])
    assert notes_are_there(folder)


# -- a writer that is killed --------------------------------------------------------------------------------------------

CHANGES = ("replace", "rename", "unlink", "remove", "rmdir", "mkdir")  # of `os`: whatever a reader could see


def killed_at(step, work):
    """Do the work in a process that is killed just before its change number `step`; whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0
        for name in CHANGES:
            original = getattr(os, name)

            def change(*args, original=original, **kwargs):
                nonlocal seen
                if seen == step:
                    os.kill(os.getpid(), signal.SIGKILL)
                seen += 1
                return original(*args, **kwargs)

            setattr(os, name, change)
        work()
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def accepted(folder, models):
    """Which of the models the folder is accepted as, by `load` and by the checker; None if it is refused by both."""
    try:
        found = ol.load(folder)
    except InputError:
        found = None
    verdict = ol.check(folder, seconds=60.0).verdict if (folder / MODEL_FILES[2]).exists() else "INVALID"
    if found is None:
        assert verdict != "VALID"
        return None
    match = [m for m in models if m.target_text == found.target_text]
    assert len(match) == 1
    assert match[0].certificate == found.certificate
    assert match[0].model.fingerprint() == found.model.fingerprint()
    return match[0]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("before", ["nothing", "a model", "a model and its report"])
def test_a_killed_writer_leaves_no_mixture(models, before, tmp_path):
    old, new = models
    for step in range(50):
        folder = tmp_path / str(step) / "f"
        if before != "nothing":
            with_notes(old.save(folder))
        if before == "a model and its report":
            old.report(folder / REPORT)
        killed = killed_at(step, lambda folder=folder: new.save(folder, overwrite=True))
        found = accepted(folder, models) if folder.exists() else None
        if found is new:
            assert not (folder / REPORT).exists()
        if before != "nothing":
            assert notes_are_there(folder)
        if not killed:
            assert found is new
            break
        if folder.exists():
            new.save(folder, overwrite=True)  # what a kill left behind is in nobody's way
            assert accepted(folder, models) is new
    assert not killed
    assert step >= (5 if before == "nothing" else 4)  # every file and the certificate's removal


@pytest.mark.parametrize("step", range(3))
def test_a_failed_replacement_leaves_no_mixture_and_loses_nothing(models, step, tmp_path, monkeypatch):
    folder, replace, seen = with_notes(models[0].save(tmp_path / "f")), os.replace, []
    before = {name: (folder / name).read_bytes() for name in MODEL_FILES}

    def full(*args):
        seen.append(args)
        if len(seen) > step:
            raise OSError(28, "No space left on device")
        replace(*args)

    monkeypatch.setattr(atomic.os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        models[1].save(folder, overwrite=True)
    monkeypatch.setattr(atomic.os, "replace", replace)
    assert accepted(folder, models) is (None if step else models[0])
    kept = {path.name: path.read_bytes() for path in folder.rglob("*") if path.name in MODEL_FILES}
    assert kept == before  # in the folder, or moved aside


def test_a_full_disk_leaves_the_old_model(models, tmp_path, monkeypatch):
    folder = models[0].save(tmp_path / "f")
    written, contents = atomic._written, {name: (folder / name).read_bytes() for name in MODEL_FILES}

    def full(path, content):
        if path.name == MODEL_FILES[2]:
            raise OSError(28, "No space left on device")
        return written(path, content)

    monkeypatch.setattr(atomic, "_written", full)
    with pytest.raises(OSError, match="No space"):
        models[1].save(folder, overwrite=True)
    assert {name: (folder / name).read_bytes() for name in os.listdir(folder)} == contents


def test_a_reader_that_is_overtaken_by_a_writer(models, tmp_path, monkeypatch):
    """Between any two of its reads the folder is replaced."""
    read = Path.read_bytes
    for moment in range(4):
        folder, reads = models[0].save(tmp_path / str(moment)), []

        def slow(path, folder=folder, reads=reads, moment=moment):
            reads.append(path)
            if len(reads) == moment + 1:
                with monkeypatch.context() as own:
                    own.setattr(Path, "read_bytes", read)
                    models[1].save(folder, overwrite=True)
            return read(path)

        with monkeypatch.context() as patch:
            patch.setattr(Path, "read_bytes", slow)
            try:
                found = ol.load(folder)
            except InputError:
                continue
        match = next(m for m in models if m.model.fingerprint() == found.model.fingerprint())
        assert (found.target_text, found.certificate) == (match.target_text, match.certificate)


# -- every command that writes ------------------------------------------------------------------------------------------


def no_work(monkeypatch):
    """From now on any long work is an error: refusals come before it."""
    for name in ("build", "train", "certify", "memorize", "distill", "compare", "report"):
        monkeypatch.setattr(ol, name, lambda *_, name=name, **__: pytest.fail(f"{name} was called"))
    sort = functools.wraps(gallery.sort)(lambda *_, **__: pytest.fail("sort was called"))
    monkeypatch.setitem(gallery.ENTRIES, "sort", sort)


MODEL_WRITERS = {
    "build": ["build", "x1", "--domain", "0:1", "--eps", "0.1", "--method", "representative"],
    "train": ["train", "x1", "--domain", "0:1", "--steps", "5", "--heads", "1", "--width", "4", "--d-model", "4"],
    "memorize": ["memorize", "d.csv", "--target", "y"],
    "certify": ["certify", "other"],
    "gallery": ["gallery", "sort", "--n", "2"],
    "distill": ["distill", "teacher", "--inputs", "in.txt"],
}


@pytest.mark.parametrize("name", MODEL_WRITERS)
def test_every_command_asks_before_it_replaces_a_model(run, models, monkeypatch, name):
    folder = with_notes(models[0].save("f"))
    models[0].save("other")
    Path("d.csv").write_text("x,y\n0,1\n1,2\n2,5\n")
    Path("in.txt").write_text("a\nb\n")
    with monkeypatch.context() as patch:
        no_work(patch)
        status, out, err = run(*MODEL_WRITERS[name], "--out", "f")
    assert (status, out, err.count("\n")) == (2, "", 1)
    for word in (str(folder), "notes.txt", "--force"):
        assert word in err
    assert ol.load("f").target_text == "x1"
    if name != "distill":  # a teacher would be needed
        assert run(*MODEL_WRITERS[name], "--out", "f", "--force")[0] in (0, 1)
        assert json.loads(Path("f", "certificate.json").read_text())["digest"]
    assert notes_are_there(folder)


@pytest.mark.parametrize(
    "arguments",
    [
        ["report", "f", "--out", "mine.html"],
        ["export", "f", "--to", "c", "--out", "mine.html", "--points", "10"],
        ["compare", "x1", "--domain", "0:1", "--eps", "0.1", "--seconds", "0.1", "--no-peers", "--plot", "mine.html"],
        ["eval", "f", "--input", "in.csv", "--output", "mine.csv"],
    ],
)
def test_every_command_asks_before_it_replaces_a_file(run, models, monkeypatch, arguments):
    models[0].save("f")
    Path("in.csv").write_text("x1\n0.5\n")
    taken = Path(arguments[arguments.index("mine.csv" if "mine.csv" in arguments else "mine.html")])
    taken.write_text("mine")
    with monkeypatch.context() as patch:
        no_work(patch)
        status, out, err = run(*arguments)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "--force" in err
    assert taken.read_text() == "mine"
    if arguments[0] != "compare":
        assert run(*arguments, "--force")[0] == 0
        assert taken.read_text() != "mine"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_an_input_is_never_overwritten(run, models, force):
    models[0].save("f")
    Path("a.csv").write_text("x1\n0.5\n")
    os.link("a.csv", "hard.csv")
    Path("soft.csv").symlink_to("a.csv")
    Path("here").symlink_to(".")
    for name in ("a.csv", "./a.csv", "hard.csv", "soft.csv", "here/a.csv", "f/../a.csv"):
        status, out, err = run("eval", "f", "--input", "a.csv", "--output", name, *force)
        assert (status, out, err.count("\n")) == (2, "", 1)
        assert "choose another name" in err
    assert Path("a.csv").read_text() == "x1\n0.5\n"
    assert sorted(os.listdir()) == ["a.csv", "f", "hard.csv", "here", "soft.csv"]


def test_a_study_leaves_models_and_the_files_of_others_alone(run, models):
    models[0].save("f")
    axes = [
        "study",
        "--axis",
        "target=sin-sum",
        "--axis",
        "tolerance=3",
        "--axis",
        "method=representative",
        "--workers",
        "1",
    ]
    for extra in ([], ["--force"]):
        status, _, err = run(*axes, "--out", "f", *extra)
        assert (status, err.count("\n")) == (2, 1)
        assert "holds a model" in err
    assert sorted(os.listdir("f")) == sorted(MODEL_FILES)
    Path("s").mkdir()
    for name in ("points.csv", "report.html"):
        Path("s", name).write_text("mine")
        status, _, err = run(*axes, "--out", "s")
        assert (status, err.count("\n")) == (2, 1)
        assert name in err
        assert "--force" in err
    assert {p.name: p.read_text() for p in Path("s").iterdir()} == {"points.csv": "mine", "report.html": "mine"}
    assert run(*axes, "--out", "s", "--force")[0] == 0
    assert run(*axes, "--out", "s")[0] == 0  # its own files are replaced without asking
    assert "mine" not in Path("s", "points.csv").read_text()


def test_an_export_replaces_only_an_export(models, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    (own / "layer.py").write_text("my own layer")
    (own / "model.safetensors").write_bytes(b"my own weights")
    with pytest.raises(InputError, match="something else"):
        ol.export(models[0], own, to="torch", points=10, overwrite=True)
    assert (own / "layer.py").read_text() == "my own layer"
    model = models[0].save(tmp_path / "f")
    with pytest.raises(InputError, match="something else"):
        ol.export(models[0], model, to="torch", points=10, overwrite=True)
    ol.export(models[0], tmp_path / "e", to="torch", points=10)
    with pytest.raises(InputError, match="not written by onelayer"):  # nor does a model replace an export
        models[0].save(tmp_path / "e", overwrite=True)
    ol.export(models[1], tmp_path / "e", to="torch", points=10, overwrite=True)


def test_results_in_python_ask_too(models, tmp_path):
    points = tmp_path / "x.npy"
    np.save(points, np.zeros((3, 1)))
    for write in (
        lambda path, **how: models[0].report(path, **how),
        lambda path, **how: models[0].evaluate(points, path, **how),
        lambda path, **how: models[0].fast().evaluate(points, path, **how),
    ):
        path = tmp_path / "y.npy"
        path.write_text("mine")
        with pytest.raises(InputError, match="overwrite=True"):
            write(path)
        assert path.read_text() == "mine"
        write(path, overwrite=True)
        assert path.stat().st_size > 4


def test_an_empty_folder_is_as_good_as_none_and_others_are_named(models, tmp_path):
    (tmp_path / "empty").mkdir()
    assert sorted(file.name for file in models[0].save(tmp_path / "empty").iterdir()) == [
        "certificate.json",
        "model.safetensors",
        "target.json",
    ]
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(InputError, match=r"one that holds a.txt; .* or write the model beside these: overwrite=True"):
        models[0].save(tmp_path / "notes")
    models[0].save(tmp_path / "notes", overwrite=True)
    assert (tmp_path / "notes" / "a.txt").read_text() == "mine"


def test_of_two_writers_one_waits(models, tmp_path, monkeypatch):
    """Whatever the order of their steps, the folder holds one of the two models in the end, and no writer fails."""
    folder, replace = models[0].save(tmp_path / "f"), os.replace

    def slowly(*paths):
        time.sleep(0.003 * next(turn))
        replace(*paths)

    for n in range(6):
        turn = itertools.cycle((0, 1, 2, n))
        with monkeypatch.context() as patch, ThreadPoolExecutor(2) as pool:
            patch.setattr(os, "replace", slowly)
            for done in [pool.submit(model.save, folder, overwrite=True) for model in models[:2]]:
                assert done.result() == folder
        assert ol.load(folder).certificate.weights in {model.certificate.weights for model in models[:2]}
        assert sorted(p.name for p in folder.iterdir()) == sorted(MODEL_FILES)


@pytest.mark.parametrize("name", MODEL_FILES)
def test_a_file_of_a_model_is_not_replaced_by_something_else(models, tmp_path, name):
    folder = models[0].save(tmp_path / "f")
    for write in (functools.partial(ol.export, models[0], to="c"), models[0].report):
        with pytest.raises(InputError, match="choose another name"):
            write(folder / name, overwrite=True)
    assert ol.load(folder).target_text == "x1"
