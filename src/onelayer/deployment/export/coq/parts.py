"""The layer and the formula as a sum of parts, each of one input or of two, with shares of the tolerance."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ....common.errors import InputError
from ....common.numbers import exact as exact_text
from ....formula import Formula, evaluate
from ....formula.additive import additive_terms, components, home_of, links_of, parts_of
from ....formula.tree import Call, Node, Number, Sum, postorder, variables
from ..subject import Subject
from .exact import Exact, Polynomial, constant
from .formula import number, printed
from .heads import Kept
from .text import polynomial

POINTS = {1: 2001, 2: 201}  # per side, at which the error of a part is looked at, to divide the tolerance
KINKS = ("abs", "max", "min")
OTHER = "export it as onnx, torch or c"


@dataclass(frozen=True)
class Part:
    """What depends on one input or on two: heads and their factors, a linear term, terms of f, a share of the tolerance."""

    coordinates: tuple[int, ...]
    heads: list[tuple[int, Fraction]]
    smooth: Polynomial
    target: Node
    share: Fraction
    seen: float  # the largest |T − f| of the part at some points
    along: int  # the input along which it is cut into slices, if there are two

    @property
    def xs(self) -> str:
        return " ".join(f"x{j + 1}" for j in self.coordinates)


def shares(errors: Sequence[np.ndarray], tolerance: Fraction) -> list[tuple[Fraction, Fraction]]:
    """(middle, share) of every part: half its observed range, and an equal part of what remains."""
    found = [((e.max() + e.min()) / 2, (e.max() - e.min()) / 2) for e in errors]
    off = abs(sum(middle for middle, _ in found))
    spare = (float(tolerance) * (1 - 1e-9) - off - sum(half for _, half in found)) / len(found)
    return [(Fraction(middle), Fraction(half + spare)) for middle, half in found]


def at(p: Polynomial, u: np.ndarray) -> np.ndarray:
    """A polynomial at points [n, D] of the normalised inputs."""
    return sum((float(c) * u[:, list(m)].prod(axis=1) for m, c in p.items()), np.zeros(len(u)))


def values(kept: Kept, u: np.ndarray) -> np.ndarray:
    """The closed form of a head at points [n, D] of the normalised inputs."""
    weights = [np.exp(at(kept.score(t), u)) for t in kept.others]
    top = sum((w * at(kept.value(t), u) for w, t in zip(weights, kept.others, strict=True)), np.zeros(len(u)))
    return at(kept.head.values[kept.base], u) + top / (1 + sum(weights, np.zeros(len(u))))


def parts(subject: Subject, exact: Exact, kept: list[Kept], tolerance: Fraction, anyway: bool) -> list[Part]:
    """One part per group of inputs that heads or terms of the formula mix; refused where more than two are mixed."""
    a, D = subject.approximation, exact.dimension
    assert a.target is not None
    assert a.target.formula is not None
    formula = a.target.formula
    if any(isinstance(tree, Call) and tree.name in KINKS for tree in postorder(formula.outputs)):
        raise InputError("kinks alone or none, for a proof in Coq", "kinks beside smooth terms", OTHER)
    links = [*links_of(formula), *(tuple(one.variables) for one in kept), *((j,) for j in range(D))]
    groups = components(links)
    if (most := max(map(len, groups))) not in POINTS:
        raise InputError("at most two variables mixed, for a proof in Coq", f"{most} variables that are mixed", OTHER)
    own: list[tuple[Polynomial, list[tuple[int, Fraction]]]] = []
    for i in range(len(groups)):
        smooth = {m: c for m, c in exact.output.items() if max(m, default=0) < D and home_of(m, groups) == i}
        heads = [h for h, one in enumerate(kept) if home_of(one.variables, groups) == i]
        own.append((Polynomial(smooth), [(h, exact.output.get((D + h,), Fraction(0))) for h in heads]))
    errors, along = [], []
    for group, term, (smooth_, heads_) in zip(groups, parts_of(formula, groups), own, strict=True):
        x, u = _points(subject, group)
        found = pieces(term, smooth_, [(kept[h], c) for h, c in heads_], x, u)
        errors.append(np.sum(found, axis=0))
        along.append(_along(found, group))
    terms = additive_terms(formula.outputs[0])
    divided = []
    for i, (group, (middle, share)) in enumerate(zip(groups, shares(errors, tolerance), strict=True)):
        mine = [t for t in terms if home_of((v - 1 for v in variables(t)), groups) == i]
        target = mine[0] if len(mine) == 1 else Sum((*mine,)) if mine else Number(Fraction(0))
        seen = (errors[i].max() - errors[i].min()) / 2
        if share <= seen and not anyway:
            asked = f"an error within {exact_text(float(tolerance))} at all points"
            raise InputError(asked, "a larger one: there is nothing to prove", "build with more heads")
        smooth_, heads_ = own[i]
        if len(groups) > 1:
            smooth_ = smooth_ - constant(middle)
        else:
            share, seen = tolerance_of(tolerance), np.abs(errors[i]).max()
        divided.append(Part(group, heads_, smooth_, target, share, float(seen), along[i]))
    return divided


def tolerance_of(tolerance: Fraction) -> Fraction:
    """What is proved of the closed form: the tolerance, less what tokens of nearly no weight may cost."""
    return tolerance * (1 - Fraction(1, 10**9))


def _points(subject: Subject, group: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """A grid of the group's inputs, and all inputs normalised (those of other groups anywhere)."""
    domain, model = subject.approximation.domain, subject.model
    sides = [np.linspace(domain.lower[j], domain.upper[j], POINTS[len(group)]) for j in group]
    x = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, len(group))
    full = np.tile(domain.lower, (len(x), 1))
    full[:, list(group)] = x
    shift, scale = (t.double().flatten().numpy() for t in (model.shift, model.scale))
    return x, (full - shift) * scale


def pieces(
    formula: Formula, smooth: Polynomial, heads: list[tuple[Kept, Fraction]], x: np.ndarray, u: np.ndarray
) -> list[np.ndarray]:
    """What T − f of one part is the sum of, at points of its own inputs x and of all normalised inputs u."""
    return [at(smooth, u), *(float(c) * values(one, u) for one, c in heads), -evaluate(formula, x).reshape(-1)]


def _along(found: list[np.ndarray], group: tuple[int, ...]) -> int:
    """The input along which the pieces are nearest to parabolas: slices along it can be wide."""
    grid = (POINTS[len(group)],) * len(group)
    third = [sum(np.abs(np.diff(one.reshape(grid), 3, axis=i)).max() for one in found) for i in range(len(group))]
    return group[int(np.argmin(third))]


def definitions(number_: int, part: Part, kept: Sequence[Kept]) -> str:
    """The part of the layer in closed form, and the part of the formula."""
    own = [" ".join(f"x{j + 1}" for j in sorted(kept[h].variables)) for h, _ in part.heads]
    heads = (f"{number(c)} * g{h + 1} {x}" for x, (h, c) in zip(own, part.heads, strict=True))
    return f"""Definition part{number_} ({part.xs} : R) : R := {" + ".join([polynomial(part.smooth), *heads])}.
Definition f{number_} ({part.xs} : R) : R := {printed(part.target)}."""
