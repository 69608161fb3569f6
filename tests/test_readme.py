"""The README's Python blocks and commands run as they stand."""

import re
import shlex
from pathlib import Path

import pytest

from onelayer.apps.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text()
COMMANDS = re.findall(r"^\$ onelayer (.*)$", README, re.MULTILINE)


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_block_runs(block, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    assert capsys.readouterr().out


@pytest.mark.usefixtures("as_user")
def test_commands_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 3
    for command in COMMANDS:
        given = shlex.split(command)
        brief = ["--seconds", "1"] if given[0] == "compare" else []  # everything trains, but not for long
        assert main(given + brief) == 0, command
    assert "CERTIFIED" in capsys.readouterr().out
    assert (tmp_path / "sinsum" / "certificate.json").exists()


def test_links_resolve():
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert (Path(__file__).parent.parent / link).exists(), link
