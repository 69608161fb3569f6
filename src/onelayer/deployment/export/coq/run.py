"""Running Coq on a file of ours: accepted or not, and what the theorem assumes."""

import re
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

NAME = "onelayer.v"
ASSUMED = "\nPrint Assumptions certified.\n"
NO_INTERVAL = "logical path Interval"  # what Coq says where CoqInterval is not installed
LOGIC = {
    "ClassicalDedekindReals.sig_not_dec",
    "ClassicalDedekindReals.sig_forall_dec",
    "FunctionalExtensionality.functional_extensionality_dep",
    "Classical_Prop.classic",
}
PRIMITIVE = {"PrimInt63", "PrimFloat", "Uint63", "Sint63", "FloatAxioms", "FloatOps"}


@dataclass(frozen=True)
class CoqAnswer:
    """What Coq said. `accepted` is None where there is no Coq with CoqInterval."""

    accepted: bool | None
    seconds: float
    reason: str
    axioms: tuple[str, ...] = ()

    @property
    def assumed(self) -> str:
        """The axioms in one line: those of logic by name, those of machine numbers counted."""
        logic = [name for name in self.axioms if name.split(".")[0] not in PRIMITIVE]
        counts = Counter(name.split(".")[0] for name in self.axioms if name.split(".")[0] in PRIMITIVE)
        numbers = ", ".join(f"{module} ({count})" for module, count in sorted(counts.items()))
        return ", ".join(logic) + (f"; machine integers and floats: {numbers}" if numbers else "")


def run(text: str, seconds: float, assumptions: bool = True) -> CoqAnswer:
    """Compiled in a temporary folder within a time limit. A failure proves nothing: it is no refutation."""
    coqc = shutil.which("coqc")
    if coqc is None:
        return CoqAnswer(None, 0.0, "there is no coqc here")
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, NAME).write_text(text + (ASSUMED if assumptions else ""))
        try:
            done = subprocess.run(
                [coqc, "-q", NAME], cwd=folder, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return CoqAnswer(False, seconds, f"coqc took more than {seconds:g} s")
    took = time.monotonic() - start
    if done.returncode:
        said = " ".join(done.stderr.split())
        if NO_INTERVAL in said:
            return CoqAnswer(None, took, "Coq has no CoqInterval here")
        where = re.search(r"line (\d+), characters [\d-]+: Error", said)
        return CoqAnswer(False, took, f"coqc stops at {_lemma(text, int(where[1])) if where else 'the file'}")
    listed = re.findall(r"^(\S+)(?= :|$)", done.stdout, flags=re.MULTILINE)
    axioms = tuple(name for name in listed if name != "Axioms:")
    if assumptions and not axioms and "Closed under the global context" not in done.stdout:
        return CoqAnswer(False, took, "coqc does not say what the proof assumes")
    strange = [name for name in axioms if name not in LOGIC and name.split(".")[0] not in PRIMITIVE]
    if strange:
        return CoqAnswer(False, took, f"the proof assumes {strange[0]}", axioms)
    return CoqAnswer(True, took, "", axioms)


def _lemma(text: str, line: int) -> str:
    """The statement whose proof holds this line."""
    before = "\n".join(text.splitlines()[:line])
    found = re.findall(r"^(?:Lemma|Theorem) (\w+)", before, flags=re.MULTILINE)
    return f"the proof of {found[-1]}" if found else f"line {line}"
