"""`onelayer check --coq`: the file of a folder, made anew from its weights and compiled."""

from dataclasses import dataclass
from pathlib import Path

from ....common.errors import InputError
from ....sequence_layer import SequenceLayer
from ...folder import load_certified
from ..subject import subject_of
from . import source
from .run import run
from .samples import Pair


@dataclass(frozen=True)
class KernelVerdict:
    """VALID (kernel): Coq accepted the proof, from these axioms. NOT PROVED says nothing about the layer."""

    verdict: str
    reason: str
    seconds: float
    axioms: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason}"


def checked(folder: str | Path, seconds: float, data: Pair | None = None) -> KernelVerdict:
    """The verdict on a model folder, with the samples that it stores.

    Refused where there is no Coq, or where nothing of the kind can be stated.
    """
    loaded = load_certified(folder)
    if isinstance(loaded, SequenceLayer):
        raise InputError(
            "a layer of one length, for a proof in Coq", "one for any length", "use the checker that needs no Coq"
        )
    subject = subject_of(loaded, None)
    done = run(source(subject, data), seconds)
    if done.accepted is None:
        change = "install Coq and CoqInterval (Debian: coq, libcoq-interval), or use the checker that needs no Coq"
        raise InputError("Coq with CoqInterval", done.reason, change)
    if not done.accepted:
        return KernelVerdict("NOT PROVED", done.reason, done.seconds, done.axioms)
    about = subject.about()
    reason = f"|T - f| <= {about['tolerance']} on {about['domain']}, T the real function of the weights; assumes {done.assumed}"
    return KernelVerdict("VALID (kernel)", reason, done.seconds, done.axioms)
