"""A sketch of a layer: coordinates of the stream, tokens, heads and units that are asked for one by one, then a model.

Motifs (`crafted_motifs`) write numbers into a sketch and say in words of a formula what a simple reader would make of them.
Nobody has to be right about that: every judgement is about the numbers that the model ends up with.
"""

import itertools
from collections import defaultdict

import numpy as np
import torch

import onelayer as ol

MASKED = (1000.0, 2000.0, 4000.0)  # scores of tokens that a head is not to see are this far below 0
Entries = dict[tuple[str, tuple[int, ...]], float]


class Sketch:
    """One data token of D numbers, special tokens, heads and units; tensors are written entry by entry."""

    def __init__(self, rng: np.random.Generator, D: int, single: bool, residual: bool, edge: float) -> None:
        self.rng, self.D, self.single, self.residual, self.edge = rng, D, single, residual, edge
        self.entries: Entries = defaultdict(float)
        self.coordinates, self.units, self.specials = 0, 0, 0
        self.out = self.coordinate()  # what W_R reads with weight 1 in layers without a residual
        self.x = [self.coordinate() for _ in range(D)]
        self.one = self.coordinate()  # 1 in the data token
        self.marks = [self.one]  # of every kind of token: the coordinate that is 1 in it alone
        self.crowd = dict[int, int]()  # kind of token → how many there are
        self.heads = list[tuple[set[int], int]]()  # the tokens that each sees, and how many copies there are
        self.columns = list[int]()  # of every head
        self.terms, self.constant = list[str](), 0.0
        self.behind, self.left = list[int](), dict[int, float]()  # coordinates that motifs may share; those that go on
        self.probes = list[list[float]]()  # inputs x̂ where something happens
        for i, c in enumerate(self.x):
            self["W_E", i, c] = 1.0
        self["b_E", self.one] = 1.0
        self["W_R", self.out, 0] = 1.0

    def __setitem__(self, where: tuple, value: float) -> None:
        self.entries[where[0], where[1:]] = float(np.float32(value)) if self.single else float(value)

    def __getitem__(self, where: tuple) -> float:
        return self.entries[where[0], where[1:]]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def pick(self, *options):
        return options[int(self.rng.integers(len(options)))]

    def power(self, low: float, high: float) -> float:
        """A power of two between 2^low and 2^high."""
        return 2.0 ** round(float(self.rng.uniform(low, high)))

    @property
    def u(self) -> float:
        return 2.0**-24 if self.single else 2.0**-53

    @property
    def cut(self) -> float:
        """Scores this far below the best one have weights that a computer rounds to 0."""
        return 103.97 if self.single else 745.13

    @property
    def top(self) -> int:
        return 127 if self.single else 1023

    def coordinate(self) -> int:
        self.coordinates += 1
        return self.coordinates - 1

    def somewhere(self) -> int:
        """A coordinate of its own, or one that another motif writes to."""
        if self.behind and self.chance(0.3):
            return self.behind[int(self.rng.integers(len(self.behind)))]
        self.behind.append(self.coordinate())
        return self.behind[-1]

    def token(self, many: int = 1) -> int:
        self.specials += 1
        self.marks.append(self.coordinate())
        self.crowd[self.specials] = many
        self["S", self.specials - 1, self.marks[-1]] = 1.0
        return self.specials

    def tokens_hold(self, token: int, coordinate: int, value: float) -> None:
        """What a token has in a coordinate: a data token by b_E, a special one by S."""
        where = ("b_E", coordinate) if token == 0 else ("S", token - 1, coordinate)
        self[where] = self[where] + value

    def head(self, seen: set[int], copies: int = 1) -> int:
        self.heads.append((seen, copies))
        self.columns.append(0)
        self["W_Q", len(self.heads) - 1, self.one, 0] = 1.0
        return len(self.heads) - 1

    def score(self, head: int, token: int, slope: list[float], offset: float) -> None:
        """The score of a token is offset + slope·x̂: the query holds x̂."""
        self["W_K", head, self.marks[token], 0] = offset
        for i, k in enumerate(slope):
            if k:
                self["W_Q", head, self.x[i], 1 + i] = 1.0
                self["W_K", head, self.marks[token], 1 + i] = k

    def value(self, head: int, source: int, factor: float, target: int, weight: float = 1.0) -> None:
        """One more column of values."""
        self["W_V", head, source, self.columns[head]] = factor
        self["W_O", head, self.columns[head], target] = weight
        self.columns[head] += 1

    def unit(self, bias: float = 0.0) -> int:
        self.units += 1
        if bias:
            self["b_1", self.units - 1] = bias
        return self.units - 1

    def leave(self, c: int, how: str = "") -> float:
        """Coordinate c on its way to the output, once; the factor with which it arrives."""
        if c in self.left:
            return self.left[c]
        how = how or (self.pick("direct", "direct", "direct", "pair", "nothing", "double") if self.residual else "pair")
        if how != "pair":
            self["W_R", c, 0] = 1.0
        if how != "direct":
            to = self.coordinate() if self.residual else self.out
            for sign in (1.0, -1.0):
                j = self.unit()
                self["W_1", c, j] = sign
                self["W_2", j, to] = -sign if how == "nothing" else sign
            self["W_R", to, 0] = 1.0
        self.left[c] = {"direct": 1.0, "pair": 1.0, "nothing": 0.0, "double": 2.0}[how]
        return self.left[c]

    def add(self, factor: float, term: str) -> None:
        """A part of what the layer computes."""
        if factor:
            self.terms.append(f"({float(factor)!r})*({term})")

    def arrays(self, amplitude: float) -> tuple[dict[str, int], dict[str, np.ndarray]]:
        """(the shape, all tensors); every head as often as it is to be there."""
        shift = dict[tuple[str, tuple[int, ...]], float](self.entries)
        if not self.heads:
            self.head({0})
        d_k = 4 if any(k[0] == "W_Q" and k[1][2] > 0 for k in shift) else self.pick(1, 4)
        d_v, counts = max([1, *self.columns]), [copies for _, copies in self.heads]
        order = [h for h, n in enumerate(counts) for _ in range(n)]
        if self.chance(0.3):
            order = [order[i] for i in self.rng.permutation(len(order))]
        crowd = [t for t in range(1, self.specials + 1) for _ in range(self.crowd[t])]
        M, U = self.coordinates, max(1, self.units)
        a = {"W_E": np.zeros((self.D, M)), "b_E": np.zeros(M), "S": np.zeros((self.specials, M))}
        a |= {f"W_{n}": np.zeros((len(counts), M, d)) for n, d in (("Q", d_k), ("K", d_k), ("V", d_v))}
        a |= {"W_O": np.zeros((len(counts), d_v, M)), "W_1": np.zeros((M, U)), "b_1": np.zeros(U)}
        a |= {"W_2": np.zeros((U, M)), "b_2": np.zeros(M), "W_R": np.zeros((M, 1)), "b_R": np.zeros(1)}
        for (name, index), value in self.entries.items():
            a[name][index] = value
        for h, (seen, _) in enumerate(self.heads):
            for t in set(range(self.specials + 1)) - seen:
                a["W_K"][h, self.marks[t], 0] = -self.pick(*MASKED)
        a["W_K"] *= np.sqrt(d_k)
        for n in "QKV":
            a[f"W_{n}"] = a[f"W_{n}"][order]
        a["W_O"] = a["W_O"][order].reshape(-1, M)
        a["S"] = a["S"][[t - 1 for t in crowd]]
        a["W_R"], a["b_R"] = a["W_R"] * amplitude, a["b_R"] * amplitude
        shape = {"d_model": M, "heads": len(order), "d_k": d_k, "d_v": d_v, "ffn_width": U}
        return shape | {"memory_tokens": len(crowd)}, a


def model_of(config: ol.LayerConfig, arrays: dict[str, np.ndarray], single: bool) -> ol.SingleLayerTransformer:
    """The model with these numbers; tensors that are not named are 0, scales and gains 1."""
    model = ol.SingleLayerTransformer(config, dtype=torch.float32 if single else torch.float64)
    with torch.no_grad():
        for name, t in model.state_dict().items():
            t.fill_(float(name == "scale" or name.startswith("gain")))
            if name in arrays and arrays[name].size:
                t.copy_(torch.tensor(arrays[name]).reshape(t.shape))
    return model.eval().requires_grad_(False)


def corners(D: int) -> list[list[float]]:
    return [list(c) for c in itertools.product((-1.0, 0.0, 1.0), repeat=D)]
