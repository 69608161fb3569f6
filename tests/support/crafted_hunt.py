"""The hunt with crafted layers and formulas: every seed is one attack, of a kind that the seed chooses.

`attack(seed)` says which kind it was, whether anything was said that could have been false, and what was. A refusal of ours
(`InputError`) says nothing; any other exception is reported as a crash, which is a fault but no false statement.
"""

import time
import traceback
from dataclasses import dataclass

import numpy as np

import crafted_checks
import crafted_folders
import crafted_formulas
from crafting import crafted
from onelayer.common.errors import OneLayerError
from onelayer.common.machine import one_thread

SHARES = {
    "bounds": 0.6, "prove": 0.02, "slopes": 0.1, "checker": 0.07, "supremum": 0.02, "certify": 0.02, "norm": 0.01,
    "circuit": 0.005, "fast": 0.05, "overflow": 0.01, "formulas": 0.03, "scaled": 0.03, "exports": 0.005,
}  # fmt: skip
KINDS = tuple(SHARES)
AFFINITY = {  # motifs that such attacks see most in
    "checker": ("x lane", "hat"), "slopes": ("tiny scores", "masked"), "prove": ("masked", "tiny scores"), "fast": ("sigmoid",),
    "supremum": ("hat", "masked"),
}  # fmt: skip
WITHOUT = {  # a crafted layer
    "formulas": crafted_formulas.attack,
    "scaled": crafted_folders.attack_scaled,
    "exports": crafted_folders.attack_exports,
}


@dataclass(frozen=True)
class Attack:
    """One attack: its kind, what it was about, whether a statement was made, what of it is false, what crashed."""

    seed: int
    kind: str
    about: str
    said: bool
    false: tuple[str, ...] = ()
    crash: str = ""
    seconds: float = 0.0


def kind_of(seed: int) -> str:
    shares = np.array(list(SHARES.values()))
    return str(np.random.default_rng([seed, 1]).choice(KINDS, p=shares / shares.sum()))


def attack(seed: int, kind: str = "", motif: str = "", patience: float = 1.0) -> Attack:
    """The attack of a seed, of its own kind and motifs unless these are given.

    With more `patience` proofs have more time, and bounds only become smaller: what was false once is found again.
    """
    crafted_checks.SECONDS = 0.6 * patience
    kind, started, about = kind or kind_of(seed), time.perf_counter(), ""
    said, false, crash = False, list[str](), ""
    try:
        with one_thread(), np.errstate(all="ignore"):
            if kind in WITHOUT:
                said, false = WITHOUT[kind](seed)
            else:
                rng = np.random.default_rng([seed, 2])
                near = AFFINITY.get(kind, ()) if rng.random() < 0.7 else ()
                one = crafted(seed, motif or (str(rng.choice(near)) if near else ""))
                about = str(one)
                if not one.heavy or kind == "bounds":
                    said, false = crafted_checks.CHECKS[kind](one, rng)
    except OneLayerError:
        pass
    except Exception:
        crash = traceback.format_exc()
    return Attack(seed, kind, about, said, tuple(false), crash, time.perf_counter() - started)
