"""Attacks on what is said around a bound: which points a certificate covers, relative claims, ends, printed numbers.

`attack(kind, seed, folder)` returns every sentence that turned out false. Errors are proved in ball arithmetic, without slack.
"""

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flint import arb, ctx

import onelayer as ol
from checking import check
from onelayer.common.numbers import at_least, at_most, exact
from onelayer.formula import enclose


def attack(kind: str, seed: int, folder: Path) -> list[str]:
    """What turned out false in one attack of this kind; `folder` is for its files."""
    return [f"{kind} {seed}: {line}" for line in KINDS[kind](np.random.default_rng(seed), folder)]


def relative_claims(rng: np.random.Generator, folder: Path) -> list[str]:
    """A share or a least |f| that was changed in the file must not be VALID; the true one is never INVALID."""
    a, b = rng.uniform(1.2, 3.0), rng.uniform(0.5, 2.0)
    path = ol.build(f"{a!r} + sin({b!r}*x1)", [(0, 3)], float(rng.choice([1e-2, 1e-3])), relative=True).save(
        folder / "m"
    )
    false = []
    if check(path, seconds=60).verdict == "INVALID":
        false.append("a true relative claim is called INVALID")
    about = json.loads((path / "certificate.json").read_text())["evidence"]["relative"]
    factor = float(rng.choice([1.1, 2.0, 1e6]))
    for name, value in (("share", about["share"] / factor), ("least", about["least"] * factor)):
        resign(path, evidence={"relative": about | {name: value}})
        if check(path, seconds=60).verdict == "VALID":
            false.append(f"VALID with {name} {value!r} in place of {about[name]!r}")
    return false


def margins(rng: np.random.Generator, folder: Path) -> list[str]:
    """Points a few floats from the margin of a jump: where the certificate covers them the error is at most the bound."""
    jump, margin = rng.uniform(0.3, 0.7), rng.uniform(0.02, 0.12)
    approx = ol.build(f"where(x1 < {jump!r}, 0, 1)", [(0, 1)], 1e-2, margin=margin)
    edges = np.array([jump - margin, jump + margin, jump])
    near = [np.nextafter(e, e + s, dtype=np.float64) for e in edges for s in (-1, 1)]
    spread = edges[rng.integers(0, 3, 60)] + rng.normal(size=60) * 10.0 ** rng.uniform(-17, -1, 60)
    return _beyond(approx, np.clip(np.concatenate([edges, near, spread]), 0, 1)[:, None])


def float32_points(rng: np.random.Generator, folder: Path) -> list[str]:
    """A float32 layer far from 0: points that are no float32 numbers are moved before it answers."""
    start = int(rng.integers(1000, 2000))
    approx = ol.build(f"sin(40*(x1 - {start}))", [(start, start + 1)], 2e-3, dtype="float32")
    x = start + rng.random(60)
    return _beyond(approx, np.concatenate([x, x.astype(np.float32).astype(float)])[:, None])


def numpy_ends(rng: np.random.Generator, folder: Path) -> list[str]:
    """The text of an end is the number that was given, and the box contains it."""
    kind = rng.choice([np.float16, np.float32, np.float64])
    low, high = kind(rng.uniform(-3, 0)), kind(rng.uniform(0.5, 3))
    domain = ol.Target("x1", [(low, high)]).domain
    (ends,), given, false = domain.ends, (low, high), []
    for text, number in zip(ends, given, strict=True):
        if float(text) != float(number):
            false.append(f"{number!r} is written as {text}")
    if not (domain.lower[0] <= float(ends[0]) and float(ends[1]) <= domain.upper[0]):
        false.append(f"{ends} is not in [{domain.lower[0]!r}, {domain.upper[0]!r}]")
    return false


def printed_numbers(rng: np.random.Generator, folder: Path) -> list[str]:
    """A number read back: never below an upper bound, never above a lower one, and the same float where it is exact."""
    value = float(rng.normal() * 10.0 ** rng.uniform(-300, 300))
    nines = float(f"{rng.choice(['9.9995', '9.99949999999999', '1.00005'])}e{rng.integers(-12, 12)}")
    false = []
    for v in (value, nines, math.nextafter(nines, 0), 5e-324):
        for digits in (1, 2, 3, 4, 6, 17):
            if not float(at_least(v, digits)) <= v <= float(at_most(v, digits)):
                false.append(f"{v!r} with {digits} digits: {at_least(v, digits)} … {at_most(v, digits)}")
        if float(exact(v)) != v:
            false.append(f"{v!r} is written as {exact(v)}")
    return false


KINDS: dict[str, Callable[[np.random.Generator, Path], list[str]]] = {
    f.__name__: f for f in (relative_claims, margins, float32_points, numpy_ends, printed_numbers)
}


def _beyond(approx: ol.Approximation, x: np.ndarray) -> list[str]:
    """Covered points where the error is proved to exceed the bound; an attack without covered points shows nothing."""
    covered, answers = np.asarray(approx.covers(x)), np.asarray(approx(x)).reshape(len(x), -1)
    false = [] if covered.any() else ["no point is covered"]
    for point, answer in zip(x[covered].tolist(), answers[covered].tolist(), strict=True):
        if (error := _error(approx, point, answer)) > approx.certificate.bound:
            false.append(f"covered at {point}, where the error {error!r} exceeds {approx.certificate.bound!r}")
    return false


def _error(approx: ol.Approximation, point: list[float], answer: list[float]) -> float:
    """|T(x) − f(x)| from below."""
    with ctx.workprec(200):
        f = enclose(approx.target.formula, point, prec=200)
        return max(float(abs(arb(a) - v.ball()).lower()) for a, v in zip(answer, f, strict=True))


def resign(folder: Path, **changes: dict) -> None:
    """Change parts of certificate.json and make its digest fit."""
    path = folder / "certificate.json"
    record = json.loads(path.read_text())
    for name, part in changes.items():
        record[name] = record[name] | part
    record.pop("digest")
    record["digest"] = hashlib.sha256(_text(record).encode()).hexdigest()
    path.write_text(_text(record))


def _text(record: dict) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)
