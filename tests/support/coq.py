"""Files of the Coq development, formal/*.v, as text: what they define, what they leave unproved, what Coq says they assume."""

import re

from pages import ROOT

FORMAL = ROOT / "formal"
FILES = sorted(FORMAL.glob("*.v"))
COMMENT = re.compile(r"\(\*.*?\*\)", re.DOTALL)
NAMED = re.compile(r"^(?:Theorem|Lemma|Corollary|Definition|Fixpoint|Record) +(\w+)", re.MULTILINE)
HOLE = re.compile(r"\b(?:Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Unset|bypass_check)\b")


def defines(file: str, name: str) -> bool:
    """Whether `formal/File.v` states or defines that name."""
    return name in NAMED.findall((ROOT / file).read_text())


def holes(text: str) -> list[str]:
    """Words with which a file says something that it does not prove."""
    return HOLE.findall(COMMENT.sub("", text))


def axioms(printed: str) -> set[str]:
    """The names below "Axioms:", as `Print Assumptions` writes them: one to a paragraph, its type indented."""
    return set(re.findall(r"^([\w.]+)(?= *:|$)", printed.partition("\nAxioms:\n")[2], re.MULTILINE))
