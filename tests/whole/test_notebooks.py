"""The notebooks run from top to bottom, solutions included, and are stored without outputs."""

import json
import re

import pytest

from pages import ROOT

FOLDER = ROOT / "notebooks"
LESSONS = ("01_the_theorem_step_by_step", "02_seven_holes", "03_construction_against_training")
WITH_LENS = "04_heads_in_transformer_lens"  # for researchers: no exercises
NAMES = (*LESSONS, WITH_LENS)


def cells(name: str) -> list[dict]:
    return json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_notebook_runs(name):
    if name == WITH_LENS:
        pytest.importorskip("transformer_lens")
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    about = {"metadata": {"path": str(FOLDER)}}
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3", resources=about).execute()  # an error raises
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in code)
    shown = [output.data for cell in code for output in cell.outputs if "data" in output]
    assert any("application/vnd.plotly.v1+json" in data or "text/html" in data for data in shown)  # figures


def test_every_notebook_is_run():
    assert {path.stem for path in FOLDER.iterdir() if path.suffix == ".ipynb"} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_notebooks_are_tidy(name):
    """No outputs, no counters, one kernel, no paths of a machine; every exercise is followed by a folded solution."""
    text = (FOLDER / f"{name}.ipynb").read_text()
    notebook = json.loads(text)
    assert len(text) < 60_000
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    assert not re.search(r"/(home|work|tmp|root|Users)/", text)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    exercises = 0
    for cell, after in zip(notebook["cells"], [*notebook["cells"][1:], None], strict=True):
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
        elif "✏️ **Exercise" in "".join(cell["source"]):
            exercises += 1
            assert after is not None
            assert after["metadata"]["tags"] == ["solution"]
            assert after["metadata"]["jupyter"] == {"source_hidden": True}
    assert exercises >= 5 or name not in LESSONS


def test_the_seven_holes_are_those_of_the_errata():
    import errata

    text = "".join("".join(cell["source"]) for cell in cells("02_seven_holes"))
    for hole in errata.ALL:
        assert f"## {hole.__name__} · " in text
