"""The lemmas of a proof, from files of Coq that stand beside this one."""

from importlib import resources


def lemmas(*names: str) -> str:
    """Their texts, one after the other."""
    folder = resources.files(__package__) / "lemmas"
    return "\n".join((folder / f"{name}.v").read_text(encoding="utf-8") for name in names)
