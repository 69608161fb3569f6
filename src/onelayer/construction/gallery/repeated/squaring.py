"""x² on [0, 1] by one layer with three ReLUs, applied several times: every step divides the error by four.

Let g(y) = 2 min(y, 1 − y) be the tent map and y_k = g(…g(x)), k times. Since y − y² = g(y)/4 + (g(y) − g(y)²)/4 (for y ≤ ½:
y/2 + (2y − 4y²)/4, and both sides are symmetric in y ↔ 1 − y),

    x² = x − Σ_(k=1)^m y_k/4^k − (y_m − y_m²)/4^m                                        (*)

so that after m terms the error is y_m(1 − y_m)/4^m, exactly: at most 4^(−m−1), and at most y_m/4^m. The numbers s = 4^(−k) and
w = y_k/4^k obey

    w ← min(w, s − w)/2 = (w − relu(2w − s))/2,      s ← s/4,      sum ← sum − w,

three maps without a constant term: the feed-forward network of *one* layer does them at every scale. Its halting unit is w,
which bounds the error: it stops when w ≤ tolerance, after ⌈log₄(1/tolerance)⌉ steps at most, and earlier where x allows it.

Rounding. The embedding computes fl(x + 2) − 2: it rounds x ∈ [0, 1] to a multiple of 4u, off by 2u at most, which changes x²
by 4u at most. From there on y_k is a multiple of 4u, and so w, s, 2w − s and the updates −(w + relu(2w − s))/2 and −3s/4 are
multiples of G = 2u·4^(−k). The sizes of what is added up are together at most 3·4^(−k) < G/u: sums are exact in any order.
Attention adds exact zeros (W^V = 0). Only the sum is rounded, once in each step. It never exceeds 1, so that it is off by u/2
at most each time.
"""

from fractions import Fraction

import torch

from ....common.checks import known_options, require_whole
from ....layer.arithmetic import arithmetic_of
from ....layer.assemble.frame import Frame, blank
from ....model.config import LayerConfig
from ....model.repeated import RepeatedLayer
from ....model.transformer import SingleLayerTransformer
from ....target.target import require_tolerance
from ...lemma import Lemma
from ..tokens.weights import rounded_up
from .proved_steps import ProvedSteps

SUM, W, S = range(3)  # of the stream
DEEPEST = 48  # steps: beyond, 4u·4^(−k) might underflow in float32


@known_options
def square(tolerance: float = 1e-6, *, most_steps: int = DEEPEST, dtype: str = "float64") -> ProvedSteps:
    """x² on [0, 1]: a layer with three ReLUs, applied until its halting unit is at most the tolerance."""
    require_tolerance(tolerance)
    require_whole("most_steps", most_steps, 1, DEEPEST)
    a = arithmetic_of(dtype)
    layer = _written().to(a.dtype).eval()
    repeated = RepeatedLayer(layer, halting=W, threshold=tolerance, most_steps=most_steps)
    u = Fraction(a.u)

    def lemma(left: Fraction, steps: int) -> Lemma:
        return Lemma(
            "after m steps the error of the tent expansion of x² is y_m(1 − y_m)/4^m, at most 4^(−m−1) and at most the halting"
            " unit; tent map and scale are exact, x is rounded to a multiple of 4u once, the sum once in each step",
            {
                "terms left out": rounded_up(left),
                "rounding of x": rounded_up(4 * u),
                "rounding of the sum": rounded_up(steps * u / 2),
            },
        )

    return ProvedSteps(
        repeated,
        f"all {a.name} numbers x in [0, 1]",
        lambda steps: lemma(Fraction(1, 4 ** (steps + 1)), steps),
        lemma(Fraction(tolerance), most_steps),
        layer.fingerprint(),
    )


def _written() -> SingleLayerTransformer:
    """Stream: sum | w | s. Units: relu(w), relu(2w − s), relu(s)."""
    config = LayerConfig(
        tokens=1, features_in=1, features_out=1, d_model=3, heads=1, d_k=1, d_v=1, ffn_width=3, code="none"
    )
    model = blank(config, Frame((-2.0,), (1.0,)))
    with torch.no_grad():
        model.W_E[0, SUM] = model.W_E[0, W] = model.b_E[S] = 1.0
        model.b_E[SUM] = model.b_E[W] = -2.0
        model.W_1[W, 0], model.W_1[W, 1], model.W_1[S, 1], model.W_1[S, 2] = 1.0, 2.0, -1.0, 1.0
        model.W_2[0, W] = model.W_2[1, W] = -0.5  # w + this = (w − relu(2w − s))/2
        model.W_2[0, SUM], model.W_2[1, SUM] = -0.5, 0.5  # less the new w
        model.W_2[2, S] = -0.75
        model.W_R[SUM, 0] = 1.0
    return model
