"""The README's figures: they stand in the pages and scripts that they are taken from."""

import re

import pytest

import installed
import size
from pages import ROOT

TEXT = (ROOT / "README.md").read_text()
RUN = ROOT / "docs" / "run"


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of a table's rows; `first` names its first column."""
    table = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in table]


def test_the_feynman_hundred_is_as_its_page_says():
    page = (RUN / "feynman.md").read_text()
    for share, section in zip(("1 %", "0.1 %"), page.split("### Tolerance: ")[1:], strict=True):
        counted = re.search(r"\*\*\d+ of 100 are CERTIFIED\*\*", section)[0]
        assert section.startswith(f"{share} of the range")
        assert re.search(rf"at {share}( of the range)? {re.escape(counted)}", TEXT)


def test_rows_beside_certified_networks_are_those_of_their_page():
    page = rows((RUN / "dynamics.md").read_text(), "system")
    peers = rows(TEXT, "system")
    assert len(peers) == sum(row[3] not in ("–", "") for row in page)
    for name, theirs, tolerance, units, parameters, seconds in peers:
        (at,) = [i for i, row in enumerate(page) if row[0] == name]
        assert page[at][3].startswith(f"{theirs} (runs of")
        ours = page[at + 1]  # at a hundredth of the other paper's ε
        assert (ours[4], ours[5], ours[6], ours[8], ours[10]) == (tolerance, units, parameters, seconds, "CERTIFIED")


def test_the_table_has_the_rows_that_the_script_prints():
    assert [(row[0], float(row[1])) for row in rows(TEXT, "target")] == [
        (title, eps) for title, _, _, eps, _ in size.README
    ]


def test_every_extra_with_a_size_is_measured():
    section = TEXT[TEXT.index("Extras add:") :].split("\n\n")[0]
    assert re.findall(r"`(\w+)`", section) == [name for name in installed.USES if name]


def test_sizes_of_extras_are_about_right():
    base = installed.closure("onelayer")
    assert {"torch", "numpy"} <= base
    assert "nothing-of-that-name*" in installed.closure("nothing-of-that-name")
    for extra, said in re.findall(r"`(web|sklearn|onnx)`[^\d]* (\d+)", TEXT[TEXT.index("Extras add:") :]):
        added = installed.closure("onelayer", extra) - base
        assert 0.5 < installed.megabytes(added) / float(said) < 2, extra


@pytest.mark.parametrize("what", ["arxiv.org/abs/2507.10581", "docs/theory/limits.md", "docs/trust/guarantees.md"])
def test_the_paper_and_the_limits_are_linked(what):
    assert what in TEXT


def test_a_newcomer_reads_it_in_a_minute():
    assert len(TEXT.splitlines()) <= 100
