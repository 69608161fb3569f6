"""Folders of layers as built, told anew: powers of two moved between tensors, numbers of the evidence changed, digests that fit.

The real function of such a layer is the same, and its computed answers are compared with those of the layer as built: both would
be within the bound of f. An export states how far its file is from f in all; what it observed itself must not be more.
"""

import functools
import math
import tempfile
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import torch

import onelayer as ol
from crafted_gauges import transformed
from onelayer.common.errors import InputError

BUILT = {
    "sin": lambda: ol.build("sin(x1)", [(0, 1)], 1e-3, seconds=8.0),
    "solved": lambda: ol.build("1/(1 + 25*x1^2)", [(-1, 1)], 1e-3, method="solved", seconds=8.0),
    "single": lambda: ol.build("x1*x2", [(0, 1)] * 2, 1e-2, dtype="float32", seconds=8.0),
    "kink": lambda: ol.build("abs(x1 - x2)", [(0, 1)] * 2, 1e-3, seconds=8.0),
    "histogram": lambda: ol.gallery.any_length.histogram(longest=6, vocabulary=3),
    "count": lambda: ol.gallery.histogram(3, vocabulary=3),
    "clip": lambda: ol.gallery.clip(2, -0.5, 0.5),
}  # fmt: skip
ANY_LENGTH = ("histogram",)
TRIES = 60


@functools.cache
def built(name: str):
    return BUILT[name]()


def scaled(name: str, rng: np.random.Generator):
    """A layer as built, after some transformations that leave its real function alone, with the certificate it had."""
    one = built(name)
    old, c = one.model, one.model.config
    a = {n: t.detach().double().numpy().copy() for n, t in old.state_dict().items()}
    relu, single = c.activation == "relu", old.W_E.dtype == torch.float32
    done = transformed(rng, a, c.heads, c.residual, relu, single, int(rng.integers(1, 9)))
    model = ol.SingleLayerTransformer(c, dtype=old.W_E.dtype)
    model.load_state_dict({n: torch.tensor(v).to(old.W_E.dtype) for n, v in a.items()})
    certificate = replace(one.certificate, weights=model.eval().fingerprint())
    return replace(one, model=model, certificate=certificate), done


def inputs(name: str, rng: np.random.Generator) -> list:
    one = built(name)
    if name in ANY_LENGTH:
        return [
            [int(v) for v in rng.integers(0, rng.integers(1, 4), size=n)]
            for n in range(1, one.longest + 1)
            for _ in range(3)
        ]
    x = one.domain.points(rng.random((200, one.domain.dimension)))
    if one.vocabulary is not None:
        x = np.rint(x)
    return [one.domain.representable(x, one.certificate.arithmetic == "float32")]


def attack_scaled(seed: int) -> tuple[bool, list[str]]:
    """The checker does not say VALID where answers moved by more than twice the bound."""
    rng = np.random.default_rng(seed)
    name, moved = str(rng.choice(["histogram", "count", *BUILT])), 0.0
    for _ in range(TRIES):  # most leave the answers as they are
        new, done = scaled(name, rng)
        for x in inputs(name, rng):
            with np.errstate(all="ignore"):
                gap = np.abs(np.asarray(new(x), dtype=np.float64) - np.asarray(built(name)(x), dtype=np.float64))
            moved = max(moved, float(np.nan_to_num(gap, nan=math.inf).max(initial=0.0)))
        if moved > 2 * new.certificate.bound * (1 + 1e-9):
            break
    bound = new.certificate.bound
    if not moved > 2 * bound * (1 + 1e-9):
        return False, []
    with tempfile.TemporaryDirectory() as folder:
        new.save(Path(folder) / "a")
        verdict = ol.check(Path(folder) / "a", 4.0).verdict
    found = f"{name}, powers {done}: VALID with bound {bound!r}, but answers moved by {moved!r}"
    return verdict in ("VALID", "INVALID"), [found] if verdict == "VALID" else []


def attack_exports(seed: int) -> tuple[bool, list[str]]:
    """What an export says of its file, where the evidence of the certificate was changed."""
    rng = np.random.default_rng(seed)
    name = str(rng.choice([n for n in BUILT if n not in (*ANY_LENGTH, "count", "clip")]))
    one = built(name)
    c = one.certificate
    names = [f.name for f in fields(c.evidence) if isinstance(getattr(c.evidence, f.name), float)]
    changes = {n: c.bound * (1 - 10.0 ** -rng.uniform(0, 8)) for n in names if rng.random() < 0.7}
    changed = replace(one, certificate=replace(c, evidence=replace(c.evidence, **changes)))
    to = str(rng.choice(["c", "c", "onnx", "hf"]))
    with tempfile.TemporaryDirectory() as folder:
        changed.save(Path(folder) / "a")
        if ol.check(Path(folder) / "a", 5.0).verdict != "VALID":
            return False, []
        try:
            found = ol.export(
                Path(folder) / "a",
                Path(folder) / ("e.c" if to == "c" else "e.onnx" if to == "onnx" else "e"),
                to=to,
                points=2000,
            )
        except InputError:
            return False, []
    false = []
    if found.bound is not None and found.difference is not None and found.difference > found.bound:
        false.append(f"{name} to {to}: differs by {found.difference!r}, at most {found.bound!r}")
    if found.in_all is not None and found.error is not None and found.error > found.in_all:
        false.append(
            f"{name} to {to}, evidence {sorted(changes)} changed: in all {found.in_all!r} < error {found.error!r}"
        )
    return found.bound is not None, false
