"""Chemical reactions as texts, made from templates: inputs of rxnmapper's ALBERT in `benchmarks/measure/distilled.py`.

The package ships the model and no data. Reactions here are SMILES strings put together from templates of well-known reactions,
substituents and reagents: valid texts of the model's language, far less varied than patents. Reactions with a *reserved*
substituent are never learned from.
"""

import itertools
import random
import re
from pathlib import Path

import numpy as np

TEMPLATES = (
    "OC(=O){a}.N{b}>>O=C(N{b}){a}",  # amide
    "OC(=O){a}.O{b}>>O=C(O{b}){a}",  # ester
    "O=C(Cl){a}.O{b}>>O=C(O{b}){a}",
    "O=C(Cl){a}.N{b}>>O=C(N{b}){a}",
    "O{a}.Br{b}>>O({a}){b}",  # ether
    "N{a}.Br{b}>>N({a}){b}",  # alkylation
    "S{a}.Br{b}>>S({a}){b}",
    "O=C{a}.N{b}>>N({b})C{a}",  # reductive amination
    "O=S(=O)(Cl){a}.N{b}>>O=S(=O)(N{b}){a}",  # sulfonamide
    "O=C=N{a}.N{b}>>O=C(N{b})N{a}",  # urea
    "O=C{a}.Br[Mg]{b}>>OC({a}){b}",  # Grignard
    "O=C(O{b}){a}.O>>OC(=O){a}",  # hydrolysis
    "O=C({a}){b}>>OC({a}){b}",  # reduction
    "C(#N){a}.O{b}>>O=C(O{b}){a}",
)
RINGS = ("c1ccccc1", "c1ccncc1", "c1ccsc1", "c1ccco1", "C1CCCCC1", "C1CC1", "C1CCOCC1", "c1cccnc1")
RING = "c1ccc({})cc1"
ON_RING = ("F", "Cl", "Br", "C", "OC", "C#N", "C(F)(F)F", "N(C)C", "[N+](=O)[O-]", "C(C)(C)C", "CO", "SC")
CHAINS = (
    "C", "CC", "CCC", "C(C)C", "CC(C)C", "CCCC", "CCOC", "CC#N", "CCCl", "C(C)(C)C", "CC(F)(F)F", "CCOCC", "CCCCCC",
)  # fmt: skip
REAGENTS = ("", ".CCN(CC)CC", ".ClCCl", ".C1CCOC1", ".O", ".CN(C)C=O", ".[Na+].[OH-]", ".CCO", ".Cl")
RESERVED = (
    "c1ccc(C(F)(F)F)cc1", "C1CCOCC1", "CCOCC", "Cc1ccc(SC)cc1", "c1ccc(N(C)C)cc1", "CC(F)(F)F", "Cc1ccsc1", "c1cccnc1",
)  # fmt: skip
TOKEN = re.compile(r"\[[^\]]*\]|>>|Br|Cl|%\d\d|[A-Za-z0-9()=#+\-./\\@~*$]")
CLS, SEP, MASK, UNKNOWN = "[CLS]", "[SEP]", "[MASK]", "[UNK]"


def substituents() -> list[str]:
    on_rings = [RING.format(s) for s in ON_RING]
    return sorted({*CHAINS, *RINGS, *on_rings, *(f"C{r}" for r in (*RINGS[:4], *on_rings))})


def reactions(count: int, reserved: bool, seed: int) -> list[str]:
    """Different reactions; with `reserved`, each has a reserved substituent, otherwise none has."""
    own = substituents()
    common = [s for s in own if s not in RESERVED]
    pairs = list(itertools.product(own, own) if reserved else itertools.product(common, common))
    pairs = [p for p in pairs if not reserved or set(p) & set(RESERVED)]
    everything = list(itertools.product(TEMPLATES, pairs, REAGENTS))
    chosen = random.Random(seed).sample(everything, count)
    texts = []
    for template, (a, b), reagent in chosen:
        left, right = template.format(a=a, b=b).split(">>")
        texts.append(f"{left}{reagent}>>{right}")
    return texts


def tokens(texts: list[str], folder: Path, share: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(token numbers, mask of the tokens that are there, mask of the hidden ones): a `share` is replaced by [MASK]."""
    numbers = {text: i for i, text in enumerate((folder / "vocab.txt").read_text().splitlines())}
    rows = [[CLS, *TOKEN.findall(text), SEP] for text in texts]
    width = max(map(len, rows))
    found, there = np.zeros((len(rows), width), dtype=np.int64), np.zeros((len(rows), width), dtype=bool)
    for i, row in enumerate(rows):
        found[i, : len(row)] = [numbers.get(token, numbers[UNKNOWN]) for token in row]
        there[i, : len(row)] = True
    special = np.isin(found, [numbers[CLS], numbers[SEP]]) | ~there
    hidden = (np.random.default_rng(seed).random(found.shape) < share) & ~special
    found[hidden] = numbers[MASK]
    return found, there, hidden
