"""Kinks of a formula that one layer represents exactly, up to its sharpness: f = affine + Σ kinks + remainder.

Additive terms that abs, max and min make of affine functions are taken out of the tree, affine terms too, so the remainder
is exact. Such a term is a difference of maxima of affine forms (`formula.affine`). Forms that others dominate on the domain
are dropped; a maximum along one direction becomes an affine function and kinks max(d, 0), d with slope 1 in its first
variable, so that abs, max, min and clipping of the same two forms share a unit. A kink is carried by

    a head      forms p_j x_j + c_j in one variable each, and perhaps a constant: a max-head, or a gate whose anchor is the
                constant. All tokens of a head share one slope, so that p_j is proportional to the scale of x_j: scales are
                changed for that only where a hinge would not do.
    a hinge     relu(d) of the feed-forward network; needs layout="token".

A term with any other kink stays in the remainder (three and more forms that are not of that shape), and so do kinks inside
other functions.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from ...formula import Formula, to_text
from ...formula.additive import ZERO, additive_terms, gathered
from ...formula.affine import Affine, along, contending, difference, flat
from ...formula.simpler_kinks import kinks_in
from ...formula.tree import Node, Sum
from ...layer.assemble import Frame, Layout
from ...target.domain import Domain

LARGEST_WEIGHT = Fraction(10) ** 150  # its inverse is the smallest
SAME_SIDE = 1e-9  # relative difference up to which sides are equal but for rounding


@dataclass(frozen=True)
class Kink:
    """weights[o]·max(forms) is added to output o; min(forms) if `lowest`."""

    forms: tuple[Affine, ...]
    weights: tuple[Fraction, ...]
    lowest: bool = False


@dataclass(frozen=True)
class Split:
    """f = affine + Σ heads + Σ hinges + smooth, output by output, exactly; `frame` suits all heads.

    kinks_left: what is not smooth in `smooth`, as text. frame: as given, unless heads need other scales.
    """

    affine: tuple[Affine, ...]
    heads: tuple[Kink, ...]
    hinges: tuple[Kink, ...]
    smooth: Formula
    kinks_left: tuple[str, ...]
    frame: Frame
    construction: str

    @property
    def nothing_left(self) -> bool:
        """Whether the smooth remainder is 0."""
        return all(output == ZERO for output in self.smooth.outputs)


@dataclass(frozen=True)
class _Bend:
    """factor·max(forms), or min(forms) if `lowest`."""

    forms: tuple[Affine, ...]
    lowest: bool
    factor: Fraction


@dataclass(frozen=True)
class _Term:
    """An additive term of an output: line + Σ bends on the domain."""

    output: int
    tree: Node
    line: Affine
    bends: tuple[_Bend, ...]


def split(
    formula: Formula,
    domain: Domain,
    frame: Frame,
    construction: str = "gates",
    layout: Layout = "token",
    sharp: bool = True,
) -> Split:
    """Take out what the layer represents exactly. `frame`: the normalisation to keep if possible.

    Where heads cannot be `sharp`, hinges carry all kinks that they can.
    """
    D, m = domain.dimension, len(formula.outputs)
    terms, remaining = list[_Term](), [list[Node]() for _ in range(m)]
    for o, output in enumerate(formula.outputs):
        for tree in additive_terms(output):
            found = _term(o, tree, domain)
            if found is None:
                remaining[o].append(tree)
            else:
                terms.append(found)
    scales, carriers = _Scales(frame), dict[tuple[Affine, ...], str]()
    bent = dict.fromkeys(bend.forms for term in terms for bend in term.bends)
    for forms in sorted(bent, key=len, reverse=True):  # first those that only a head can carry
        hinge = len(forms) == 2 and layout == "token"
        tokens = _tokens(forms) if construction == "gates" else None
        head = tokens is not None and (sharp or not hinge) and scales.join(tokens, stretching=not hinge)
        carriers[forms] = "head" if head else "hinge" if hinge else "none"
    lines, weights = [flat(Fraction(0), D) for _ in range(m)], dict[tuple[tuple[Affine, ...], bool], list[Fraction]]()
    for term in terms:
        if any(carriers[bend.forms] == "none" for bend in term.bends):
            remaining[term.output].append(term.tree)
            continue
        lines[term.output] = lines[term.output] + term.line
        for bend in term.bends:
            weights.setdefault((bend.forms, bend.lowest), [Fraction(0)] * m)[term.output] += bend.factor
    kinks = {"head": list[Kink](), "hinge": list[Kink]()}
    for (forms, lowest), row in weights.items():
        if any(row):
            kinks[carriers[forms]].append(Kink(forms, tuple(row), lowest))
    outputs = tuple(gathered(Sum, trees) for trees in remaining)
    text = "; ".join(to_text(output, formula.names) for output in outputs)
    left = dict.fromkeys(to_text(t, formula.names) for output in outputs for t in kinks_in(output))
    smooth = Formula(text, formula.names, outputs)
    heads, hinges = tuple(kinks["head"]), tuple(kinks["hinge"])
    return Split(tuple(lines), heads, hinges, smooth, tuple(left), scales.frame(), construction)


def _term(output: int, tree: Node, domain: Domain) -> _Term | None:
    """The additive term as an affine function and kinks in normal form; None for all others."""
    D, box = domain.dimension, (domain.lower, domain.upper)
    pair = difference(tree, D)
    if pair is None or not all(_ordinary(form) for forms in pair for form in forms):
        return None
    line, bends = flat(Fraction(0), D), list[_Bend]()
    for sign, forms in zip((Fraction(1), Fraction(-1)), pair, strict=True):
        left = contending(forms, *box)
        found = (left[0], []) if len(left) == 1 else along(left)
        if found is None:
            base, bend = _spread(left, sign)
            line, bends = line + base.times(sign), [*bends, bend]
            continue
        line = line + found[0].times(sign)
        for factor, d in found[1]:
            if d.least(*box) >= 0:
                line = line + d.times(sign * factor)
            elif (flat(Fraction(0), D) - d).least(*box) < 0:
                bends.append(_Bend((d, flat(Fraction(0), D)), False, sign * factor))
    return _Term(output, tree, line, tuple(bends))


def _spread(forms: Sequence[Affine], sign: Fraction) -> tuple[Affine, _Bend]:
    """For forms that differ along several directions: what most have in common, and sign·(their maximum less that)."""
    columns = zip(*(form.slopes for form in forms), strict=True)
    common = Affine(Fraction(0), tuple(Counter(column).most_common(1)[0][0] for column in columns))
    apart = sorted((form - common for form in forms), key=lambda form: form.support)
    s = next(form.slopes[form.support[0]] for form in apart if form.support)  # scaled to 1; max is min then if s < 0
    return common, _Bend(tuple(form.times(1 / s) for form in apart), s < 0, sign * s)


def _ordinary(form: Affine) -> bool:
    """Whether all coefficients are 0 or of a size that floats can work with."""
    return all(1 / LARGEST_WEIGHT <= abs(a) <= LARGEST_WEIGHT for a in (form.constant, *form.slopes) if a)


def _tokens(forms: tuple[Affine, ...]) -> dict[int, Fraction] | None:
    """The slopes p_j of the variables that a head compares, all positive; None if the forms do not suit a head."""
    if len(forms) == 2:  # max(d, 0): of x_i + c and −(the other terms of d)
        forms = halves(forms[0])
    supports = [form.support for form in forms]
    slopes = {s[0]: form.slopes[s[0]] for form, s in zip(forms, supports, strict=True) if s}
    distinct = len(slopes) == sum(map(len, supports)) >= len(forms) - 1
    return slopes if distinct and all(p > 0 for p in slopes.values()) else None


def halves(d: Affine) -> tuple[Affine, Affine]:
    """u in the first variable and v in the others with d = u − v: then max(d, 0) = max(u, v) − v."""
    first = d.support[0]
    u = Affine(d.constant, tuple(a if j == first else Fraction(0) for j, a in enumerate(d.slopes)))
    return u, u - d


@dataclass
class _Scales:
    """Scales of coordinates that heads tie together: in each group they are proportional to the slopes."""

    given: Frame
    groups: list[dict[int, Fraction]] = field(default_factory=list)

    def join(self, slopes: dict[int, Fraction], stretching: bool) -> bool:
        """Tie these coordinates, if that contradicts no earlier tie, and changes no scale unless `stretching`."""
        joined, others = dict(slopes), list[dict[int, Fraction]]()
        for group in self.groups:
            common = [j for j in group if j in slopes]
            if not common:
                others.append(group)
                continue
            factor = slopes[common[0]] / group[common[0]]
            if any(factor * group[j] != slopes[j] for j in common):
                return False
            joined |= {j: factor * p for j, p in group.items()}
        tied = any(set(slopes) <= set(group) for group in self.groups)
        sizes = [float(p / Fraction(self.given.scale[j])) for j, p in joined.items()]
        if not (tied or stretching or max(sizes) <= (1 + SAME_SIDE) * min(sizes)):
            return False
        self.groups = [*others, joined]
        return True

    def frame(self) -> Frame:
        """The given frame, with the scale of each group's longest side (in its proportions) for the whole group."""
        scale = list(self.given.scale)
        for group in self.groups:
            longest = max(group, key=lambda j: group[j] / Fraction(self.given.scale[j]))
            for j, p in group.items():
                scale[j] = float(Fraction(self.given.scale[longest]) * p / group[longest])
        return replace(self.given, scale=tuple(scale))
