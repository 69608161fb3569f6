"""formal/: the Coq development compiles, assumes what Coq's real numbers assume, and the pages name what is there."""

import re
import shutil
import subprocess

import pytest

from coq import FILES, FORMAL, axioms, defines, holes
from pages import PAGES

needs_coq = pytest.mark.skipif(shutil.which("coqc") is None, reason="needs Coq: apt-get install coq libcoq-interval")

# Coq's classical real numbers: https://coq.inria.fr/doc/V8.16.1/stdlib/Coq.Reals.ClassicalDedekindReals.html
ALLOWED = {
    "ClassicalDedekindReals.sig_forall_dec",
    "ClassicalDedekindReals.sig_not_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}


def make(folder, *options: str) -> str:
    """What `make` prints there, compiled afresh."""
    return subprocess.run(
        ["make", "--no-print-directory", "-C", folder, *options], capture_output=True, text=True, check=True
    ).stdout


@pytest.fixture
def copy(tmp_path):
    """The sources alone, to be compiled."""
    return shutil.copytree(FORMAL, tmp_path / "formal", ignore=shutil.ignore_patterns("*.vo*", "*.glob", ".*"))


@needs_coq
@pytest.mark.long
def test_it_compiles_and_assumes_real_numbers_alone(copy):
    printed = make(copy)
    assert printed.count("coqc ") == len(FILES) - 1
    assert axioms(printed) == ALLOWED


@needs_coq
@pytest.mark.long
def test_an_axiom_is_noticed(copy):
    (copy / "Cheat.v").write_text("Axiom cheat : False.\nPrint Assumptions cheat.\n")
    printed = subprocess.run(["coqc", "Cheat.v"], cwd=copy, capture_output=True, text=True, check=True).stdout
    assert axioms("\n" + printed) == {"cheat"}


def test_nothing_is_left_unproved():
    assert {file.name: holes(file.read_text()) for file in FILES} == {file.name: [] for file in FILES}


@pytest.mark.parametrize(
    "line", ["Admitted.", "  admit.", "Axiom a : 1 = 2.", "Parameter p : nat.", "Axioms a b : False."]
)
def test_what_is_left_unproved_is_noticed(line):
    assert holes(line)
    assert not holes(f"(* {line} *)")


def test_every_file_is_compiled():
    listed = re.search(r"^FILES := (.*)$", (FORMAL / "Makefile").read_text(), re.MULTILINE)[1].split()
    assert sorted([*listed, "Assumptions"]) == [file.stem for file in FILES]


def test_the_pages_name_what_is_there():
    named = {
        (page, *found) for page in PAGES for found in re.findall(r"`(formal/\w+\.v)::(\w+)`", PAGES[page].read_text())
    }
    assert len(named) > 20
    assert [where for where in sorted(named) if not defines(*where[1:])] == []


def test_what_the_pages_quote_is_there():
    sources = "".join(file.read_text() for file in FILES)
    quoted = [
        block for page in PAGES.values() for block in re.findall(r"^```coq\n(.*?)^```$", page.read_text(), re.M | re.S)
    ]
    assert quoted
    assert [block for block in quoted if block not in sources] == []


def test_a_name_that_is_not_there_is_noticed():
    assert defines("formal/Universal.v", "universal")
    assert not defines("formal/Universal.v", "nothing")


def test_without_coq_it_is_skipped_with_a_line():
    assert make(FORMAL, "COQC=no-coq-here").count("skipped") == 1
