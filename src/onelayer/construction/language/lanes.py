"""Lanes: for every distribution a short vector h, and one read-out W_R for all, with softmax(h W_R) close to it.

With as many lanes as tokens W_R is the identity and h holds the logarithms of the probabilities, −G where they are 0. That is
the most exact way, and it is taken for small vocabularies. For a large one every lane costs two numbers per context, and m
lanes of random signs carry most of the work: column c of W_R is y_c ∈ {±1}^m. Of a distribution p with support S:

    few tokens      h = Y_S⁺(B + log p): the logit of c is B + log p_c on S, and elsewhere y_c·h, which is small if S is. B is the
                    smallest number for which all of these are at most −G.                                              (1)
    more tokens     several such supports share a set U of at most 0.85 m tokens that contains them: h = Y_U⁺ t with t = G + log p
                    on S and 0 on the rest of U. A lane of their own, with entry −1 outside U, pushes all others below 0. (2)
    many tokens     a private lane: its row of W_R holds log p, and −G outside S; h is 1 there and 0 elsewhere.           (3)

Y⁺ is Yᵀ(YYᵀ)⁻¹. The larger m is, the fewer lanes (2) and (3) need: `sign_lanes` tries several m and takes the fewest in all.
Nothing here is a proof; `proof` looks at the weights as they are stored.
"""

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from ...target.ngram import Distribution

IDENTITY_WORDS = 256  # up to this many tokens there are as many lanes
SIGNS = (64, 96, 128, 192, 256, 384, 512, 768, 1024)  # numbers of lanes of signs that are tried
SHARE = 0.85  # of the lanes of signs that a shared set of tokens may have: more, and Y_U Yᵀ_U is nearly singular
LARGEST_B = 128.0  # sizes of lanes are rounding errors of logits
CHUNK = 2**22  # logits held at a time


@dataclass(frozen=True, eq=False)
class Lanes:
    """One row of `values` per distribution; `read` is their part of W_R."""

    values: Float[np.ndarray, "distribution lane"]
    read: Float[np.ndarray, "lane token"]
    story: str


def gap_of(vocabulary: int, tolerance: float) -> float:
    """G: this far below the others, all tokens together have a probability of at most a quarter of the tolerance."""
    return math.log(4 * vocabulary / min(tolerance, 1.0)) + 0.1


def lanes_of(distributions: list[Distribution], vocabulary: int, tolerance: float) -> Lanes:
    """The lanes for a vocabulary, by identity or by signs."""
    gap = gap_of(vocabulary, tolerance)
    if vocabulary <= IDENTITY_WORDS:
        values = np.full((len(distributions), vocabulary), -gap)
        for row, found in zip(values, distributions, strict=True):
            support, logs = _logs(found)
            row[support] = logs
        return Lanes(values, np.eye(vocabulary), f"{vocabulary} lanes, one for the logit of every token")
    return _sign_lanes(distributions, vocabulary, gap)


def _sign_lanes(distributions: list[Distribution], vocabulary: int, gap: float) -> Lanes:
    """The fewest lanes over the numbers of signs that are tried; it ends when there are more lanes of signs than that."""
    best: _Signs | None = None
    for m in SIGNS:
        if best is None or m < best.width:
            found = _Signs(distributions, vocabulary, gap, m)
            best = found if best is None or found.width < best.width else best
    assert best is not None
    return best.lanes()


class _Signs:
    """Which distributions go which way, for m lanes of signs."""

    def __init__(self, distributions: list[Distribution], vocabulary: int, gap: float, m: int) -> None:
        self.gap, self.m, self.pairs = gap, m, [_logs(found) for found in distributions]
        self.Y = np.random.default_rng(m).choice([-1.0, 1.0], size=(vocabulary, m))
        self.few = self._few()
        left = [i for i in range(len(self.pairs)) if i not in self.few]
        self.private = [i for i in left if len(self.pairs[i][0]) > SHARE * m]
        self.shared = _grouped(
            {i: frozenset(self.pairs[i][0].tolist()) for i in left if i not in set(self.private)}, SHARE * m
        )

    @property
    def width(self) -> int:
        """The number of lanes."""
        return self.m + len(self.shared) + len(self.private)

    def _few(self) -> dict[int, Float[np.ndarray, " m"]]:
        """(1), for the distributions for which B is small enough."""
        by_size: defaultdict[int, list[int]] = defaultdict(list)
        for i, (support, _) in enumerate(self.pairs):
            if len(support) <= self.m // 4:
                by_size[len(support)].append(i)
        found: dict[int, np.ndarray] = {}
        step = max(1, CHUNK // len(self.Y))
        for members in by_size.values():
            for start in range(0, len(members), step):
                found |= self._few_alike(members[start : start + step])
        return found

    def _few_alike(self, members: list[int]) -> dict[int, Float[np.ndarray, " m"]]:
        """(1) for distributions with supports of one size."""
        support = np.stack([self.pairs[i][0] for i in members])
        logs = np.stack([self.pairs[i][1] for i in members])
        Y_S = self.Y[support]  # [distribution, k, m]
        sides = np.stack([logs, np.ones_like(logs)], axis=2)
        solved = np.linalg.solve(Y_S @ Y_S.transpose(0, 2, 1), sides)
        h_log, h_one = (np.einsum("nk,nkm->nm", solved[:, :, j], Y_S) for j in range(2))
        off_log, off_one = h_log @ self.Y.T, h_one @ self.Y.T
        with np.errstate(divide="ignore", invalid="ignore"):
            needed = np.where(off_one < 1, (self.gap + off_log) / (1 - off_one), np.inf)  # off_log + B·off_one ≤ B − G
        np.put_along_axis(needed, support, -np.inf, axis=1)
        B = np.maximum(needed.max(axis=1), self.gap)
        return {i: h_log[j] + B[j] * h_one[j] for j, i in enumerate(members) if B[j] <= LARGEST_B}

    def lanes(self) -> Lanes:
        """Values and read-out."""
        m, width = self.m, self.width
        values, read = np.zeros((len(self.pairs), width)), np.zeros((width, len(self.Y)))
        read[:m] = self.Y.T
        for i, h in self.few.items():
            values[i, :m] = h
        for lane, (union, members) in enumerate(self.shared, start=m):
            values[members, :m], values[members, lane] = self._together(union, members)
            read[lane] = -1.0
            read[lane, union] = 0.0
        for lane, i in enumerate(self.private, start=m + len(self.shared)):
            support, logs = self.pairs[i]
            values[i, lane], read[lane], read[lane, support] = 1.0, -self.gap, logs
        story = (
            f"{m} lanes of signs, {len(self.shared)} shared by distributions on many tokens, and"
            f" {len(self.private)} private ones for those on the most"
        )
        return Lanes(values, read, story)

    def _together(self, union: list[int], members: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """(2) for all supports within one set: their lanes, and how far all other tokens are pushed, a power of two."""
        place = {token: j for j, token in enumerate(union)}
        sides = np.zeros((len(union), len(members)))
        for j, i in enumerate(members):
            support, logs = self.pairs[i]
            sides[[place[t] for t in support.tolist()], j] = self.gap + logs
        Y_U = self.Y[union]
        h = np.linalg.solve(Y_U @ Y_U.T, sides).T @ Y_U
        others = np.delete(h @ self.Y.T, union, axis=1).max(axis=1, initial=1.0)
        return h, 2.0 ** np.ceil(np.log2(np.maximum(others, 1.0)))


def _logs(distribution: Distribution) -> tuple[np.ndarray, np.ndarray]:
    """The support, and log p on it."""
    tokens, counts = np.array(distribution).T
    return tokens, np.log(counts) - math.log(counts.sum())


def _grouped(supports: dict[int, frozenset[int]], most: float) -> list[tuple[list[int], list[int]]]:
    """Supports put together while their union has at most this many tokens: (union, members); the largest come first."""
    groups: list[tuple[set[int], list[int]]] = []
    for i in sorted(supports, key=lambda i: (-len(supports[i]), i)):
        support = supports[i]
        fits = [group for group in groups if len(group[0] | support) <= most]
        if fits:
            union, members = min(fits, key=lambda group: len(support - group[0]))
            union |= support
            members.append(i)
        else:
            groups.append((set(support), [i]))
    return [(sorted(union), members) for union, members in groups]
