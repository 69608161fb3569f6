"""The hunt with crafted layers and formulas: every seed is one attack, of a kind that the seed chooses.

`attack(seed)` says which kind it was, whether anything was said that could have been false, and what was. A refusal of ours
(`InputError`) says nothing; any other exception is reported as a crash, which is a fault but no false statement.
"""

import time
import traceback
from dataclasses import dataclass

import numpy as np

import crafted_formulas
from crafted_checks import CHECKS
from crafting import crafted
from onelayer.common.errors import OneLayerError
from onelayer.common.machine import one_thread

SHARES = {
    "bounds": 0.5, "prove": 0.07, "slopes": 0.08, "checker": 0.08, "supremum": 0.03, "certify": 0.03, "norm": 0.01, "circuit": 0.01,
    "fast": 0.06, "overflow": 0.01, "formulas": 0.06,
}  # fmt: skip
KINDS = tuple(SHARES)


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


def attack(seed: int, kind: str = "", motif: str = "") -> Attack:
    """The attack of a seed, of its own kind and motifs unless these are given."""
    kind, started, about = kind or kind_of(seed), time.perf_counter(), ""
    said, false, crash = False, list[str](), ""
    try:
        with one_thread(), np.errstate(all="ignore"):
            if kind == "formulas":
                said, false = crafted_formulas.attack(seed)
            else:
                one = crafted(seed, motif)
                about = str(one)
                if not one.heavy or kind == "bounds":
                    said, false = CHECKS[kind](one, np.random.default_rng([seed, 2]))
    except OneLayerError:
        pass
    except Exception:
        crash = traceback.format_exc()
    return Attack(seed, kind, about, said, tuple(false), crash, time.perf_counter() - started)
