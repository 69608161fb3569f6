"""One head as Coq proves it: tokens of nearly no weight left out, the others in closed form."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from .exact import Head, Polynomial, Range
from .text import listed, polynomial

FAR = -100  # a token whose score is that far below another's is left out
TINY = Fraction(1, 10**30)  # what a head may lose by that


@dataclass(frozen=True)
class Kept:
    """Token `base` has score 0 after a shift; `others` are kept, `dropped` are far below."""

    head: Head
    base: int
    others: list[int]
    dropped: list[int]
    largest: int  # no value exceeds it

    def score(self, t: int) -> Polynomial:
        return self.head.scores[t] - self.head.scores[self.base]

    def value(self, t: int) -> Polynomial:
        return self.head.values[t] - self.head.values[self.base]

    @property
    def variables(self) -> set[int]:
        """The inputs that the closed form depends on."""
        found = self.head.values[self.base].variables
        for t in self.others:
            found |= self.score(t).variables | self.value(t).variables
        return found

    @property
    def lost(self) -> Fraction:
        return TINY if self.dropped else Fraction(0)


def kept_of(head: Head, ranges: list[Range]) -> Kept:
    """The base that leaves out most tokens; among equals the one that depends least on the input."""

    def far(base: int) -> list[int]:
        tokens = range(len(head.scores))
        return [t for t in tokens if t != base and (head.scores[t] - head.scores[base]).within(ranges)[1] <= FAR]

    def cost(base: int) -> tuple[int, int]:
        return -len(far(base)), len(head.scores[base].variables) + len(head.values[base].variables)

    base = min(range(len(head.scores)), key=cost)
    dropped = far(base)
    others = [t for t in range(len(head.scores)) if t != base and t not in dropped]
    ends = [abs(end) for value in head.values for end in value.within(ranges)]
    return Kept(head, base, others, dropped, ceil(max(ends)) + 1)


def lemma(name: int, kept: Kept, inputs: str, box: str) -> str:
    """Definition and lemma of head `name` (from 1): |head − g| ≤ lost."""
    own = " ".join(f"x{j + 1}" for j in sorted(kept.variables))
    binder = f" ({own} : R)" if own else ""
    head, order = kept.head, [kept.base, *kept.others, *kept.dropped]
    scores = {t: polynomial(kept.score(t)) if t != kept.base else "0" for t in order}
    values = {t: polynomial(head.values[t]) for t in order}
    tokens = sorted(order)
    w, s, v = values[kept.base], [scores[t] for t in kept.others], [values[t] for t in kept.others]
    s0, v0 = [scores[t] for t in kept.dropped], [values[t] for t in kept.dropped]
    p = listed([polynomial(kept.value(t)) for t in kept.others])
    closed = f"{w} + dot (map exp {listed(s)}) {p} / (1 + sum (map exp {listed(s)}))" if s else w
    lost = "(1 / 10 ^ 30)" if kept.dropped else "0"
    last = (
        f"apply (masked {kept.largest}); [reflexivity | reflexivity | {PLAIN} | {PLAIN} | {SMALL}]"
        if kept.dropped
        else "rewrite Rminus_diag_eq by reflexivity; rewrite Rabs_R0; lra"
    )
    more_s, more_v = (f" ++ {listed(s0)}", f" ++ {listed(v0)}") if kept.dropped else ("", "")
    units = ", ".join(f"u{j + 1}" for j in range(inputs.count("x")))
    last = last.replace("@units@", units)
    return f"""Definition g{name}{binder} : R := {closed}.
Lemma head_{name} {inputs} : {box} -> Rabs (H{name} {inputs} - g{name} {own}) <= {lost}.
Proof.
  intros.
  assert (E : H{name} {inputs} = attend (map (Rplus {polynomial(head.scores[kept.base])}) {listed([scores[t] for t in tokens])})
    {listed([values[t] for t in tokens])}) by (unfold H{name}, head; apply attend_eq; entries).
  rewrite E, attend_shift; clear E.
  pose (w := {w}); pose (s := {listed(s)} : vec); pose (v := {listed(v)} : vec).
  replace (g{name} {own}) with (attend (0 :: s) (w :: v)).
  2: {{ unfold w, s, v. rewrite (gate _ _ _ {p}); [unfold g{name}; cbn [map dot sum]; lra | reflexivity | entries]. }}
  replace (attend {listed([scores[t] for t in tokens])} {listed([values[t] for t in tokens])})
    with (attend (0 :: s{more_s}) (w :: v{more_v})) by (unfold w, s, v; reorder).
  {last}.
Qed.
"""


PLAIN = "unfold w, v, @units@; repeat constructor; interval"
SMALL = "cbn [map sum]; unfold @units@; interval"
