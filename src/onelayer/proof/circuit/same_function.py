"""How far apart two layers are whose weights differ, but not what they compute: one in another basis of the stream, say.

T depends on its weights through products in which no basis is left:

    scores    (e W^Q)(e W^K)ᵀ/√d_k of all pairs of tokens e,
    to units  e W^V W^O W^1 of every head, and e W^1 of a residual stream,
    straight  e W^V W^O W^R and e W^R in a residual stream,    from units  W^2 W^R.

Tokens are affine in x̂, or one of a few vectors, so each product is a small table, which is computed in balls from the stored
numbers of both layers. If all scores of a head differ by at most d, its weights differ by factors within exp(±2d), and an average
of values by (exp(2d) − 1) times the largest of them. What the units make of that is at most the steepest slope of the activation
times it.

Both layers have the same heads and units in the same order, and no LayerNorm. Everything is about their real functions.
"""

import numpy as np
from flint import arb, arb_mat, ctx

from ...common.outward import UP_MANY
from ...model.activations import activation_of
from ...model.transformer import SingleLayerTransformer
from .number_sizes import NumberSizes

PRECISION = 192  # bits


class Products:
    """The products of one layer, in balls. Rows are the features of W^E, then the constant part of every token.

    Where inputs are unit vectors, there are no features: every token at every position is a row.
    """

    def __init__(self, model: SingleLayerTransformer, tokens: bool) -> None:
        assert model.config.norm == "none"
        self.config, self.model = model.config, model
        c = model.config
        b_E = model.b_E.detach().double().tolist()
        codes = model.P.detach().double().tolist() if c.code != "none" else [[0.0] * c.d_model] * c.tokens
        constants = [[arb(b) + arb(p) for b, p in zip(b_E, row, strict=True)] for row in codes]
        special = [[arb(v) for v in row] for row in model.special.detach().double().tolist()]
        embedded = self.matrix("W_E").table()
        self.features = 0 if tokens else c.features_in
        if tokens:
            constants = [[a + b for a, b in zip(e, row, strict=True)] for row in constants for e in embedded]
            embedded = []
        self.rows = arb_mat([*embedded, *constants, *special])

    def matrix(self, name: str, head: int | None = None) -> arb_mat:
        t = getattr(self.model, name).detach().double()
        t = t if head is None else t[head]
        return arb_mat([[arb(v) for v in row] for row in (t.tolist() if t.ndim == 2 else [t.tolist()])])

    def projected(self, which: str, head: int) -> arb_mat:
        """q, k or v of a head: of features, and of the constant part of every token, which has the bias."""
        found = self.rows * self.matrix(f"W_{which}", head)
        if not self.config.projection_bias:
            return found
        bias, F = self.matrix(f"b_{which}", head).table()[0], self.features
        return arb_mat(
            [row if i < F else [a + b for a, b in zip(row, bias, strict=True)] for i, row in enumerate(found.table())]
        )

    def scores(self, head: int) -> arb_mat:
        return self.projected("Q", head) * self.projected("K", head).transpose() / arb(self.config.d_k).sqrt()

    def written(self, head: int) -> arb_mat:
        """v W^O of a head."""
        d_v = self.config.d_v
        rows = self.matrix("W_O").table()[head * d_v : (head + 1) * d_v]
        return self.projected("V", head) * arb_mat(rows)

    def bias(self, name: str) -> arb_mat:
        """b^O or nothing, b^2, as rows of the stream."""
        if name == "b_O" and not self.config.projection_bias:
            return arb_mat([[arb(0)] * self.config.d_model])
        return self.matrix(name)


def apart(
    one: SingleLayerTransformer, two: SingleLayerTransformer, edge: np.ndarray, reach: NumberSizes, tokens: bool
) -> float:
    """An upper bound on |T_two − T_one| for |x̂| ≤ edge [token, feature]; with `tokens` inputs are unit vectors.

    `reach` bounds the numbers of layer `one`.
    """
    c = one.config
    with ctx.workprec(PRECISION):
        a, b = Products(one, tokens), Products(two, tokens)
        fold = _Fold(np.zeros((c.tokens * c.features_in, 0)) if tokens else edge)
        asking = slice(-c.output_tokens, None) if c.readout == "output" else slice(0, len(fold.edge))
        to_units, straight = [p.matrix("W_1") for p in (a, b)], [p.matrix("W_R") for p in (a, b)]
        moved, past = np.zeros(c.ffn_width), np.zeros(c.features_out)
        for h in range(c.heads):
            distance = fold(fold(_off(a.scores(h), b.scores(h))).T).T[asking].max()
            if not distance < 0.5:
                return float(np.inf)
            grown = np.expm1(2 * distance * UP_MANY) * UP_MANY
            written = [p.written(h) for p in (a, b)]
            for total, ways in ((moved, to_units), *([(past, straight)] if c.residual else [])):
                first, second = (w * way for w, way in zip(written, ways, strict=True))
                total += fold(_off(first, second)).max(axis=0) + grown * fold(_sizes(first)).max(axis=0)
        if c.residual:
            for total, ways in ((moved, to_units), (past, straight)):
                first, second = (p.rows * way for p, way in zip((a, b), ways, strict=True))
                total += fold(_off(first, second))[asking].max(axis=0)
        for total, ways, names in ((moved, to_units, ("b_O", "b_1")), (past, straight, ("b_2", "b_R"))):
            sums = [p.bias(names[0]) * way + p.matrix(names[1]) for p, way in zip((a, b), ways, strict=True)]
            total += _off(*sums)[0]
            if names[0] == "b_2" and c.residual:
                total += _off(*(p.bias("b_O") * way for p, way in zip((a, b), ways, strict=True)))[0]
        ends = [p.matrix("W_2") * way for p, way in zip((a, b), straight, strict=True)]
        phi = activation_of(c)
        through = phi.steepest * moved @ _sizes(ends[0]) + phi.largest(reach.hidden + moved) @ _off(*ends)
    return float((past + through).max()) * UP_MANY


class _Fold:
    """Tables over features and constant parts become bounds over tokens: Σ_f |x̂_f| |row_f| + |constant row|."""

    def __init__(self, edge: np.ndarray) -> None:
        self.edge = edge  # [token with features, feature]; special tokens come after them

    def __call__(self, table: np.ndarray) -> np.ndarray:
        """[features + token, …] → [token, …], of positive numbers."""
        F = self.edge.shape[1]
        found = table[F:].copy()
        found[: len(self.edge)] += self.edge @ table[:F]
        return found * UP_MANY


def _off(first: arb_mat, second: arb_mat) -> np.ndarray:
    return _sizes(first - second)


def _sizes(table: arb_mat) -> np.ndarray:
    """Upper bounds on the absolute values."""
    return np.array([[float(v.abs_upper()) for v in row] for row in table.table()]) * UP_MANY + 1e-300
