"""docs/theory/paper.md: every row resolves to code and to a test, nothing of the paper is left out, and every erratum runs."""

import ast
import pkgutil
import re

import pytest

import errata
from coq import defines
from pages import ROOT

HEADERS = {"paper", "hole", "---"}


def rows() -> list[list[str]]:
    lines = (ROOT / "docs" / "theory" / "paper.md").read_text().splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return [row for row in cells if row[0] not in HEADERS]


def resolve(reference: str) -> None:
    """`package.module.name` is importable; `file.py::name` and `file.v::name` define that. Raises when it does not."""
    if ".v::" in reference:
        if not defines(*reference.split("::")):
            raise LookupError(f"there is no {reference}")
    elif "::" in reference:
        file, name = reference.split("::")
        tree = ast.parse((ROOT / file).read_text())
        if name not in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}:
            raise LookupError(f"{file} has no function {name}")
    else:
        pkgutil.resolve_name(reference)


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row[0]} {row[1][:30]}")
def test_row_resolves(row):
    where, test, in_coq = row[2:]
    for reference in re.findall(r"`([^`]+)`", in_coq):
        resolve(reference)
    for cell in (where, test):
        references = re.findall(r"`([^`]+)`", cell)
        assert references
        for reference in references:
            resolve(reference)
    assert all("::test_" in reference for reference in re.findall(r"`([^`]+)`", test))


def test_nothing_is_left_out():
    named = {row[0] for row in rows()}
    wanted = {f"Eq. ({i})" for i in range(1, 11)} | {f"G{i}" for i in range(1, 8)}
    wanted |= {"Figure 1", "Figure 2", "Theorem 1", "Section VI.A", "Section VI.B", "Section VI.C", "Section VII"}
    assert wanted | {"Section V", "Section V, proof"} <= named
    assert "planned" not in (ROOT / "docs" / "theory" / "paper.md").read_text().lower()


def test_a_stale_row_is_noticed():
    for stale in (
        "onelayer.model.transformer.Nothing",
        "tests/model/test_transformer.py::test_nothing",
        "tests/nowhere.py::test_x",
        "formal/Universal.v::nothing",
    ):
        with pytest.raises((AttributeError, LookupError, OSError)):
            resolve(stale)


@pytest.mark.parametrize("hole", errata.ALL, ids=lambda hole: hole.__name__)
def test_counter_example(hole):
    assert hole()


def test_the_script_selects_by_name(capsys):
    errata.main(["G5"])
    printed = capsys.readouterr().out
    assert printed.startswith("G5")
    assert "G6" not in printed
