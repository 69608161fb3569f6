"""Every command that writes a folder: the checker decides it, and the page says so."""

import contextlib
import io
import re
from pathlib import Path

import pytest
import typer.main

from checking import check
from folders import DECIDED, files, words_of
from onelayer.apps.cli import app, main

HERE = Path(__file__).resolve().parents[2]
PAGE = (HERE / "docs" / "trust" / "checker.md").read_text()


def walked():
    """(command, verdict) of the page's table."""
    table = PAGE.split("<!-- walk -->")[1].split("<!-- /walk -->")[0]
    return {
        command.replace("\\|", "|"): verdict
        for command, verdict in re.findall(r"^\| `onelayer (.+?)` \| (.+?) \|", table, re.M)
    }


def test_the_page_lists_every_command_and_all_are_valid():
    assert list(walked()) == list(DECIDED)
    assert set(walked().values()) == {"VALID"}


def test_every_command_that_writes_a_model_is_walked():
    commands = typer.main.get_command(app).commands
    writing = {
        name
        for name, command in commands.items()
        if any("model folder to write" in (p.help or "") for p in command.params)
    }
    assert writing == {words_of(command)[0] for command in DECIDED}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("command", DECIDED)
def test_the_checker_decides(command, tmp_path, monkeypatch, as_user):
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main([*words_of(command), "--out", "folder"]) == 0
    data = None
    if command.startswith("memorize"):
        rows = [[float(v) for v in line.split(",")] for line in (tmp_path / "points.csv").read_text().splitlines()[1:]]
        data = ([row[:-1] for row in rows], [row[-1:] for row in rows])
    found = check(tmp_path / "folder", data=data)
    assert found.verdict == "VALID", str(found)
