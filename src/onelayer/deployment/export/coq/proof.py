"""The file: the layer, the target, one lemma per head, one enclosure per group of inputs, and the theorem."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from ....formula.tree import Node
from .exact import Exact, Polynomial, Range
from .formula import is_trigonometric, number, printed
from .heads import Kept, lemma
from .mixed import sliced
from .parts import Part, definitions
from .text import polynomial

NEXT = "\n    | "
FINE = Fraction(1, 10**7)  # below this Taylor models of a higher degree are tried first


def box_text(lower: Sequence[Fraction], upper: Sequence[Fraction]) -> str:
    sides = zip(lower, upper, strict=True)
    return " -> ".join(f"{number(a)} <= x{j + 1} <= {number(b)}" for j, (a, b) in enumerate(sides))


def enlarged(low: Fraction, high: Fraction, wide: bool) -> Range:
    """A slightly larger side where sine and its like are enclosed: their ends must not be near multiples of pi."""
    if not wide:
        return low, high
    step = (high - low) / 2**26
    return (low - step if low else low), high + step


def enclosure(number_: int, part: Part, kept: Sequence[Kept], side: Range, units: str) -> str:
    """One part of one input and its bound, by interval arithmetic with Taylor models."""
    x = part.xs
    gs = ", ".join(
        [f"part{number_}", f"f{number_}", *(f"g{h + 1}" for h, _ in part.heads), units, "tanh", "sinh", "cosh"]
    )
    low, high = side
    degrees = [10, 15] if part.share > FINE else [15]
    ways = [f"i_degree {degree}" for degree in degrees] + ["i_degree 15, i_prec 80"]
    tries = [f"interval with (i_bisect {x}, i_taylor {x}, {way})" for way in ways]
    return f"""{definitions(number_, part, kept)}
Lemma close_{number_} {x} : {number(low)} <= {x} <= {number(high)} ->
  Rabs (part{number_} {x} - f{number_} {x}) <= {number(part.share)}.
Proof.
  intros. unfold {gs}. cbn [map dot sum].
  first [{NEXT.join(tries)}].
Qed.
"""


@dataclass(frozen=True)
class CoqClaim:
    """What is to be proved: the layer, its heads, the target, the tolerance and the box."""

    exact: Exact
    kept: list[Kept]
    target: Node
    tolerance: Fraction
    lower: list[Fraction]
    upper: list[Fraction]

    @property
    def xs(self) -> str:
        return " ".join(f"x{j + 1}" for j in range(self.exact.dimension))

    @property
    def inputs(self) -> str:
        return f"[{self.xs.replace(' ', '; ')}]"

    @property
    def box(self) -> str:
        return box_text(self.lower, self.upper)

    @property
    def statement(self) -> str:
        claim = f"Rabs (run W {self.inputs} - f {self.xs}) <= {number(self.tolerance)}"
        return f"(** ** The theorem *)\n\nTheorem certified {self.xs} : {self.box} -> {claim}."

    @property
    def heads_known(self) -> list[str]:
        """Lines of a proof: what is known of every head."""
        hold = " ltac:(assumption)" * self.exact.dimension
        return [f"  pose proof (between _ _ (head_{h + 1} {self.xs}{hold}))." for h in range(len(self.kept))]


def opening(claim: CoqClaim, shift: list[float], scale: list[float]) -> str:
    """The target, and the layer in closed form."""
    exact, xs, inputs = claim.exact, claim.xs, claim.inputs
    D, n = exact.dimension, len(claim.kept)
    ask = f"(nth (read W) (tokens W {inputs}) [])"
    lines = [f"Definition f ({xs} : R) : R := {printed(claim.target)}.\n"]
    for j in range(D):
        u = f"(x{j + 1} - {number(shift[j])}) * {number(scale[j])}"
        lines.append(f"Definition u{j + 1} (x{j + 1} : R) : R := {u}.")
    for h in range(n):
        columns = " ".join(f"(nth {h} ({w} W) [])" for w in ("W_Q", "W_K", "W_V"))
        lines.append(f"Definition H{h + 1} ({xs} : R) : R := head (tokens W {inputs}) {ask} {columns}.")
    zs = [f"z{h + 1}" for h in range(n)]
    rest = Polynomial({m: c for m, c in exact.output.items() if not any(i >= D for i in m)})
    factors = [exact.output.get((D + h,), Fraction(0)) for h in range(n)]

    def output(names: Sequence[str]) -> str:
        return " + ".join([polynomial(rest), *(f"{number(c)} * {z}" for c, z in zip(factors, names, strict=True))])

    applied = [f"(H{h + 1} {xs})" for h in range(n)]
    lines.append(f"""
(** ** The layer in closed form *)

Lemma behind_W {xs} {" ".join(zs)} : behind W {ask} [{"; ".join(zs)}] = {output(zs)}.
Proof. unroll. relus. Qed.
Theorem reduced {xs} : run W {inputs} = {output(applied)}.
Proof. exact (behind_W {xs} {" ".join(applied)}). Qed.
""")
    lines += [lemma(h + 1, one, xs, claim.box) for h, one in enumerate(claim.kept)]
    return "\n".join(lines)


def ending(claim: CoqClaim, parts: list[Part]) -> str:
    """The theorem of an additive layer, from an enclosure of every part."""
    lines = ["(** ** The parts, each of one input or of two *)\n"]
    for i, part in enumerate(parts):
        wide = is_trigonometric(part.target)
        sides = [enlarged(claim.lower[j], claim.upper[j], wide) for j in part.coordinates]
        if len(sides) == 1:
            lines.append(enclosure(i + 1, part, claim.kept, sides[0], f"u{part.coordinates[0] + 1}"))
        else:
            lines.append(sliced(i + 1, part, claim.kept, sides))
    split = " + ".join(f"f{i + 1} {part.xs}" for i, part in enumerate(parts))
    fs = ", ".join(["f", *(f"f{i + 1}" for i in range(len(parts)))])
    lines.append(f"""Lemma split {claim.xs} : f {claim.xs} = {split}.
Proof. unfold {fs}. first [reflexivity | lra | field | ring]. Qed.

{claim.statement}
Proof.
  intros. rewrite reduced, (split {claim.xs}).""")
    lines += claim.heads_known
    for i, part in enumerate(parts):
        known = f"between _ _ (close_{i + 1} {part.xs}{' ltac:(lra)' * len(part.coordinates)})"
        lines.append(f"  pose proof ({known}). unfold part{i + 1} in *.")
    lines.append("  apply Rabs_le. lra.\nQed.")
    return "\n".join(lines) + "\n"
