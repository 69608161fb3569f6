"""A wheel builds, installs into an empty environment without the extras, and works there; so does the demo. Needs an index."""

import json
import math
import os
import shutil
import subprocess
import sys
import zipfile

import pytest

from pages import ROOT

SOURCE = ROOT / "src"
EXTRAS = ("pytest", "hypothesis", "beartype", "sklearn", "onnx", "pyarrow", "sphinx", "kaleido", "CoolProp")

pytestmark = pytest.mark.long


def run(*command, **options) -> str:
    """What a command prints. Nothing of this checkout or environment is on its path."""
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, env=clean, **options)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    place = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", place, ROOT)
    (found,) = place.glob("onelayer-*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    files = (file for file in (SOURCE / "onelayer").rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    assert names == {file.relative_to(SOURCE).as_posix() for file in files}


@pytest.fixture
def environment(wheel, tmp_path):
    """bin of an environment that holds the wheel and what it needs; deleted afterwards, since it is large."""
    place = tmp_path / "environment"
    run(sys.executable, "-m", "venv", place)
    run(place / "bin" / "python", "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel)
    yield place / "bin"
    shutil.rmtree(place)


def test_the_wheel_works_in_an_empty_environment(environment, tmp_path):
    python, onelayer = environment / "python", environment / "onelayer"
    code = f"import importlib.util as u, json; print(json.dumps([m for m in {EXTRAS} if u.find_spec(m)]))"
    assert json.loads(run(python, "-c", code)) == []
    code = """
import onelayer as ol
print(ol.__file__)
for name in ol.__all__:
    try:
        getattr(ol, name)
    except ol.InputError as refusal:
        assert "onelayer[sklearn]" in str(refusal), name
"""
    assert run(python, "-c", code, cwd=tmp_path).startswith(str(environment.parent))

    asked = ["sin(x1)+sin(x2)", "--domain", "0:2*pi", "--eps", "1e-4"]
    assert "CERTIFIED" in run(onelayer, "build", *asked, "--out", "sinsum", cwd=tmp_path)
    assert run(onelayer, "check", "sinsum", cwd=tmp_path).startswith("VALID")
    assert abs(float(run(onelayer, "eval", "sinsum", "1.0", "2.0", cwd=tmp_path)) - math.sin(1) - math.sin(2)) < 1e-4
    assert "CERTIFIED" in run(onelayer, "gallery", "sort", "--n", "3", cwd=tmp_path)
    assert "report.html" in run(python, ROOT / "examples" / "demo.py", cwd=tmp_path)
    command = [onelayer, "export", "sinsum", "--to", "onnx", "--out", "a.onnx"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "onelayer[onnx]" in refused.stderr
