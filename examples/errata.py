"""Seven holes in the paper's proof, each with a counter-example that runs.

    python examples/errata.py          all of them
    python examples/errata.py G3 G6    some

Every function shows numbers that contradict the paper and, where a few lines are enough, the repair. The asserts are the
point: if one of them failed, the hole would not be there. `docs/theory/paper.md` has the same list in words.
"""

import sys
from fractions import Fraction

import numpy as np
import torch
from scipy.optimize import linprog

from onelayer import LayerConfig, SingleLayerTransformer
from onelayer.model.reference import perceptron

ONE_NUMBER = LayerConfig(
    tokens=1, features_in=1, features_out=1, d_model=4, heads=1, d_k=1, d_v=1, ffn_width=2,
    anchor_tokens=1, residual=False,
)  # fmt: skip


def step_head(sharpness: float, anchor: bool) -> SingleLayerTransformer:
    """A head that should answer 1 for x ≥ ½ and 0 below: score β(½ − x) on the data token, 0 on the other token.

    Stream: (x, position, anchor flag, 1). With `anchor` the value 1 sits on the anchor token and the data token has
    value 0; without, the other token is just another token and carries the value 1, as the data token does.
    """
    model = SingleLayerTransformer(ONE_NUMBER)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model.W_E[0, 0] = model.b_E[3] = 1.0
        model.S[0, 2] = model.S[0, 3] = 1.0
        model.W_Q[0, 3, 0] = 1.0
        model.W_K[0, 0, 0], model.W_K[0, 1, 0] = -sharpness, sharpness / 2
        model.W_V[0, 2 if anchor else 3, 0] = 1.0
        model.W_O[0, 0] = 1.0
        model.W_1[0, 0], model.W_1[0, 1], model.W_2[0, 0], model.W_2[1, 0] = 1.0, -1.0, 1.0, -1.0
        model.W_R[0, 0] = 1.0
    return model


def at(model: SingleLayerTransformer, *points: float) -> list[float]:
    with torch.no_grad():
        return model(torch.tensor(points, dtype=torch.float64).reshape(-1, 1, 1)).flatten().tolist()


def G1() -> str:
    """A hyperplane does not separate a cell of a grid from the rest of the domain, and regions have no margin."""
    h, delta = Fraction(1, 2), Fraction(1, 4)
    a, b = (h + delta, Fraction(0)), (Fraction(0), h + delta)  # two points outside the cell [0, h]²
    middle = tuple((p + q) / 2 for p, q in zip(a, b, strict=True))
    assert max(a) > h
    assert max(b) > h
    assert max(middle) <= h  # their midpoint is inside: no half-plane holds the cell's complement
    # the same by linear programming: w·p ≥ c + 1 inside, w·p ≤ c − 1 outside has no solution
    inside, outside = np.array([middle], float), np.array([a, b], float)
    rows = np.block([[-inside, np.ones((1, 1))], [outside, -np.ones((2, 1))]])
    found = linprog(np.zeros(3), A_ub=rows, b_ub=-np.ones(3), bounds=(None, None))
    assert found.status == 2  # infeasible
    return (
        f"cell [0, ½]² of [0, 1]²: {tuple(map(float, a))} and {tuple(map(float, b))} are outside, their midpoint"
        f" {tuple(map(float, middle))} is inside, so no line separates (linear program: infeasible);"
        " neighbouring regions of a connected domain touch, so there is no margin either"
    )


def G2() -> str:
    """A head cannot be dormant: its weights sum to 1. With an anchor token it can look at tokens of value 0 instead."""
    without, with_anchor = step_head(100.0, anchor=False), step_head(100.0, anchor=True)
    assert np.allclose(at(without, 0.1, 0.9), 1.0, rtol=0, atol=1e-15)  # fires everywhere
    low, high = at(with_anchor, 0.1, 0.9)
    assert low < 1e-17
    assert high > 1 - 1e-15
    alpha = with_anchor.attention(torch.tensor([[[0.1]]], dtype=torch.float64))[0, 0, 0]
    assert abs(alpha.sum() - 1) < 1e-15
    return f"every value 1: the head answers 1 at x = 0.1 and at 0.9; with an anchor token: {low:.1e} and {high:.1f}"


def G3() -> str:
    """In one layer a query sees its own token only; it is the softmax's denominator that sees all of them."""
    config = LayerConfig(
        tokens=2, features_in=1, features_out=1, d_model=3, heads=1, d_k=1, d_v=1, ffn_width=1, residual=False
    )
    model = SingleLayerTransformer(config)
    x = torch.tensor([[[0.2], [0.3]], [[0.2], [0.9]]], dtype=torch.float64)  # token 2 changes, token 1 does not
    with torch.no_grad():
        queries = model.embed(x) @ model.W_Q[0]
        alpha = model.attention(x)[:, 0, 0]
    assert torch.equal(queries[0, 0], queries[1, 0])  # the query of token 1 did not notice
    assert not torch.equal(alpha[0], alpha[1])  # its attention weights did
    return (
        f"token 2 moves from 0.3 to 0.9: query of token 1 stays {queries[0, 0, 0]:.4f},"
        f" its weight on itself goes {alpha[0, 0]:.4f} → {alpha[1, 0]:.4f}"
    )


def G4() -> str:
    """W^O is the same at every position, so it cannot send different outputs to different positions. The FFN can."""
    rng = np.random.default_rng(0)
    Z, W_O, order = rng.normal(size=(3, 4)), rng.normal(size=(4, 4)), [2, 0, 1]
    assert np.allclose(
        (Z @ W_O)[order], Z[order] @ W_O, rtol=0, atol=1e-15
    )  # W^O commutes with every permutation of positions
    # repair: every position holds the whole answer z = (z_1, z_2, z_3) and its own one-hot code;
    # relu(z_q + 2B·code_q − B) is z_q + B at position q and 0 elsewhere, for |z| ≤ B
    z, B = rng.uniform(-1, 1, size=3), 1.0
    read = [sum(max(z[q] + 2 * B * (p == q) - B, 0.0) for q in range(3)) - B for p in range(3)]
    assert np.allclose(read, z, rtol=0, atol=4e-16)
    return (
        f"(Z W^O) permuted = (Z permuted) W^O; selecting by ReLU and position code gives {np.round(read, 4).tolist()}"
    )


def G5() -> str:
    """ReLU is not the identity, but two of them are: relu(z) − relu(−z) = z, without any rounding."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=10_000) * 10.0 ** rng.integers(-320, 300, size=10_000)
    assert perceptron.relu(np.array([-1.0])) == [0.0]
    assert np.array_equal(perceptron.relu(z) - perceptron.relu(-z), z)
    return "relu(−1) = 0 ≠ −1; relu(z) − relu(−z) equals z at 10,000 numbers from 1e-320 to 1e300, both signs"


def G6() -> str:
    """Eq. (9)–(10) with the paper's δ^l = ∂L/∂h^l are not the gradient; with δ^l = ∂L/∂z^l they are."""
    rng = np.random.default_rng(0)
    weights = [(rng.normal(size=(3, 2)), rng.normal(size=3)), (rng.normal(size=(1, 3)), rng.normal(size=1))]
    x, activations = rng.normal(size=2), ["sigmoid", "sigmoid"]
    passed = perceptron.forward(weights, x, activations)
    upstream = np.ones(1)  # L = h^2, so ∂L/∂h^2 = 1

    def loss(entry: float) -> float:
        moved = [(weights[0][0].copy(), weights[0][1]), weights[1]]
        moved[0][0][0, 0] = entry
        return float(perceptron.forward(moved, x, activations).h[-1][0])

    w, t = weights[0][0][0, 0], 1e-5
    difference = (loss(w + t) - loss(w - t)) / (2 * t)
    slope = perceptron.ACTIVATION["sigmoid"][1]
    as_printed = ((weights[1][0].T @ upstream) * slope(passed.z[0]))[0] * x[0]  # δ^2 taken as ∂L/∂h^2
    repaired = perceptron.backpropagate(weights, passed, upstream)[0][0][0, 0]
    assert abs(repaired - difference) < 1e-9
    assert abs(as_printed - difference) > 0.5 * abs(difference)
    return f"∂L/∂W^1_11: finite difference {difference:.6f}, as printed {as_printed:.6f}, with δ = ∂L/∂z {repaired:.6f}"


def G7() -> str:
    """T is continuous and the step function y is not: at a face T misses it by half the jump or more, however sharp."""
    gaps = []
    for sharpness in (1e1, 1e4, 1e8):
        value = at(step_head(sharpness, anchor=True), 0.5)[0]
        gaps.append(abs(value - 1.0))  # y jumps from 0 to 1 at x = ½
        assert gaps[-1] == 0.5
    return f"y jumps 0 → 1 at x = ½: T(½) is off by {gaps} for sharpness 1e1, 1e4, 1e8, and y is within ω(h) of f"


ALL = (G1, G2, G3, G4, G5, G6, G7)


def main(names: list[str]) -> None:
    known = [hole.__name__ for hole in ALL]
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"asked: {', '.join(unknown)}; found: {', '.join(known)}; change: name some of these, or none for all")
    for hole in ALL:
        if not names or hole.__name__ in names:
            print(f"{hole.__name__}  {hole.__doc__}\n    {hole()}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
