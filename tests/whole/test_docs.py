"""The documentation: every Python block and every command runs as it stands, links lead somewhere, the site builds.

Commands that measure for minutes (`python benchmarks/…`) are not run: their scripts exist and accept the options.
"""

import argparse
import contextlib
import io
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from onelayer.apps.cli import main
from pages import PAGES, ROOT, Step, inline, same, steps, with_package

LONG = {"docs/build/training.md", "docs/theory/cases.md", "docs/run/transformer_lens.md"}
LONG |= {"docs/run/verifiers.md", "docs/run/formats.md", "docs/run/export.md"}  # the last runs Coq
LONG |= {
    "docs/start/tutorial.md",
    "docs/start/report.md",
    "docs/build/sequences.md",
    "docs/build/study.md",
    "docs/build/distill.md",
}
LONG |= {"docs/theory/attention.md", "docs/theory/questions.md", "docs/run/circuits.md"}
PACKAGES = {name: find_spec(name) is not None for name in ("transformers", "transformer_lens")}
AT_HAND = {"gpu": torch.cuda.is_available(), **PACKAGES}
NEEDY = [(page, step) for page in PAGES for step in steps(PAGES[page].read_text()) if step.needs]


def runnable() -> list:
    marks = {page: [pytest.mark.long] if page in LONG else [] for page in PAGES}
    return [pytest.param(page, marks=marks[page], id=page) for page in PAGES if steps(PAGES[page].read_text())]


@pytest.fixture
def desk(tmp_path, monkeypatch, as_user):
    """An empty folder in which the repository's files have the names that the pages call them by."""
    for name in ("src", "examples", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", runnable())
def test_page_runs(page, desk):
    run_page(page, [step for step in steps(PAGES[page].read_text()) if not step.needs])


def needy() -> list:
    """What needs more than the tests do; packages take seconds to import."""
    marks = [pytest.mark.long if page in LONG or step.needs != "gpu" else [] for page, step in NEEDY]
    return [
        pytest.param(*case, marks=mark, id=f"{case[0]}:{case[1].line}") for case, mark in zip(NEEDY, marks, strict=True)
    ]


@pytest.mark.parametrize(("page", "step"), needy())
def test_what_needs_more_runs_where_it_is(page, step, desk):
    if not AT_HAND[step.needs]:
        pytest.skip(f"{page}:{step.line} needs {step.needs}")
    run_page(page, [other for other in steps(PAGES[page].read_text()) if not other.needs or other == step])


def run_page(page: str, found: list[Step]) -> None:
    namespace = {"__name__": "__main__"}
    for step in found:
        where = f"{page}:{step.line}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            if step.kind == "file":
                Path(step.name).write_text(step.text)
            elif step.kind == "python":
                exec(compile(step.text, where, "exec"), namespace)
            else:
                run_command(step.text, where)
        if step.output is not None:
            assert same(step.output, printed.getvalue()), f"{where} prints\n{printed.getvalue()}"


def run_command(text: str, where: str) -> None:
    words = shlex.split(text, comments=True)
    if words[0] == "onelayer":
        brief = ["--seconds", "1"] if words[1] == "compare" and "--seconds" not in words else []
        expected = re.search(r"# exit status (\d)", text)
        assert main(words[1:] + brief) == (int(expected[1]) if expected else 0), where
    elif words[0] == "python" and words[1].startswith("benchmarks/"):
        assert accepts(words[1], words[2:]), where
    elif words[0] == "python":
        call = [sys.executable, *words[1:]]
        done = subprocess.run(call, capture_output=True, text=True, check=False, env=with_package())
        assert done.returncode == 0, f"{where}: {done.stderr}"
        print(done.stdout, end="")
    elif words[0] == "make":
        planned = subprocess.run(["make", "--dry-run", "-C", ROOT, *words[1:]], capture_output=True, check=False)
        assert planned.returncode == 0, where
    elif words[:2] == ["pip", "install"]:  # from a clone; the extras exist
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        place, _, named = words[2].rstrip("]").partition("[")
        assert (place, set(filter(None, named.split(","))) <= set(extras)) == (".", True), where
    elif words[0] == "cp":
        shutil.copy(*words[1:])
    else:
        raise AssertionError(f"{where}: no test knows how to run {words[0]}")


class Accepted(Exception):
    pass


def accepts(script: str, words: list[str]) -> bool:
    """The script's own parser takes these options. Nothing after the parser is run."""
    parse = argparse.ArgumentParser.parse_args

    def and_stop(parser, *given):
        parse(parser, *given)
        raise Accepted

    with (
        patch.object(argparse.ArgumentParser, "parse_args", and_stop),
        patch.object(sys, "argv", [script, *words]),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        try:
            runpy.run_path(str(ROOT / script), run_name="__main__")
        except Accepted:
            return True
        except SystemExit:
            return False
    raise AssertionError(f"{script} ran without looking at its options")


@pytest.mark.parametrize("page", PAGES)
def test_scripts_in_the_text_exist_and_take_their_options(page):
    for command in inline(PAGES[page].read_text(), "python"):
        script, *words = shlex.split(command)[1:]
        assert (ROOT / script).is_file(), command
        if script.startswith("benchmarks/"):
            assert accepts(script, words), command


def test_a_wrong_option_is_noticed():
    assert not accepts("benchmarks/measure/memorize.py", ["--nothing"])
    assert accepts("benchmarks/measure/memorize.py", ["digits"])


@pytest.mark.parametrize("page", PAGES)
def test_commands_and_options_in_the_text_exist(page, capsys, as_user):
    for command in inline(PAGES[page].read_text(), "onelayer"):
        words = command.split()[1:]
        name = [] if words[0].startswith("-") else words[:1]
        assert main([*name, "--help"]) == 0, command
        known = capsys.readouterr().out
        entry = name == ["gallery"]  # the options of an entry are those of its function
        for option in (word.split("=")[0] for word in words if word.startswith("--") and not entry):
            assert re.search(rf"{option}\b", known), command


def test_extras_in_the_text_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in PAGES.values():
        for found in re.findall(r"onelayer\[([\w,]+)\]'", page.read_text()):
            assert set(found.split(",")) <= set(extras), page.name


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page):
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[page].read_text()):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        goal = PAGES[page].parent / file if file else PAGES[page]
        assert goal.exists(), link
        assert not anchor or anchor in anchors(goal.read_text()), link


@pytest.mark.parametrize("page", PAGES)
def test_modules_in_the_text_exist(page):
    """Paths in backticks are those of the repository or of the package."""
    for path in re.findall(r"`([\w/]+/\w+\.py)`", PAGES[page].read_text()):
        assert any((place / path).is_file() for place in (ROOT, ROOT / "src", ROOT / "src" / "onelayer")), path


def anchors(text: str) -> set[str]:
    """What a repository's view calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_block_is_overlooked():
    """Blocks are of the kinds that are run or compared; commands are not written where no test sees them."""
    for page in PAGES.values():
        for language, body in re.findall(r"^```(\S*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            assert language in ("python", "console", "text", "coq") or language.startswith("{"), (
                f"{page.name}: {language!r}"
            )
            assert language != "text" or not re.search(r"^(\$|python|onelayer|make) ", body, re.MULTILINE), page.name


def test_steps_are_found_in_order():
    page = "```python\nprint(1)\n```\n\n```text\n1\n```\n\nx\n\n<!-- needs: gpu -->\n```console\n$ a b\nc\n$ d\n```\n"
    page += "\n<!-- file: x.csv -->\n\n```text\n1,2\n```\n"
    found = steps(page)
    assert [step.kind for step in found] == ["python", "command", "command", "file"]
    assert [step.output for step in found] == ["1\n", "c\n", None, None]
    assert [step.needs for step in found] == [None, "gpu", "gpu", None]
    assert (found[1].line, found[3].name) == (13, "x.csv")


def test_stale_output_is_noticed():
    shown = "bound (proved)  8.47e-07 at 10,000 points\n-----\nseconds  3\n"
    assert same(shown, "bound (proved)    9.1e-07 at 10,000 points\n\nseconds   9.9\n")
    assert same("T(x) = …", "T(x) = 3.5")
    assert not same(shown, "bound (proved)  8.47e-06 at 10,000 points\n")
    assert not same(shown, "bound (observed)  8.47e-07 at 10,000 points\n")
    assert not same("1\n2\n", "1\n")
    assert not same("-1", "1")
