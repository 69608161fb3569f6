"""The running error: what each step of a layer adds to how far computed numbers are from exact ones, for any weights.

A number comes with a bound on its size and with `off`, how far the computed one is from it. Every operation is off by u of its
result, or by the smallest number where it underflows, so that

    sums       of k products: (k + 2)u of Σ|terms|, in any order, and the errors of the terms
    scores     q·k/√d_k, the same, and a few more roundings of the result; fused programs divide q before, which may underflow
    averages   z = Σ_t w_t v_t with weights w_t = e_t/Σ e_t: where the exponentials are off by factors 1 + η_t, |η_t| ≤ ε, it
               moves by Σ_t w_t η_t (v_t − z)/(1 + Σ_t w_t η_t); normaliser, division and the sum over n tokens cost
               (2(n + R) + 8)u of Σ_t w_t |v_t|, R the number of rescalings (`online_softmax`)

A factor that all exponentials share cancels. No step knows where weights come from, and none counts as exact.
"""

import numpy as np

from ...common.outward import UP, UP_FEW
from ..arithmetic import Arithmetic

MOST_EXPONENT = 0.1  # errors of an exponent beyond this are not followed


def sums(
    size: np.ndarray, off: np.ndarray, W: np.ndarray, bias: np.ndarray | float, a: Arithmetic, relative: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """(bounds on the absolute values, errors) of x W + bias; the products may be off by a share `relative`, too."""
    terms = np.count_nonzero(W, axis=-2) + 2  # a weight of 0 adds exactly nothing
    terms = terms[..., None, :] if W.ndim > 2 and size.ndim > 1 else terms
    far = np.abs(W)
    with np.errstate(all="ignore"):
        whole = (size + off) @ far + np.abs(bias)
        share = np.where(terms * a.u < 0.01, terms * a.u * 1.01, np.inf) + relative
        rounded = np.where(whole > 0, share * whole, 0.0)
        return whole, (off @ far + rounded) * UP + a.smallest * terms


def scores(
    sizes: tuple[np.ndarray, np.ndarray], offs: tuple[np.ndarray, np.ndarray], root: float, a: Arithmetic
) -> tuple[np.ndarray, np.ndarray]:
    """(Σ|q_i k_i|, errors of q·k/√d_k, two roundings of the result left out) from [..., row, width] and [..., token, width]."""
    (q, k), (q_off, k_off) = sizes, offs
    with np.errstate(all="ignore"):
        whole = q @ k.swapaxes(-1, -2)
        off = q @ k_off.swapaxes(-1, -2) + q_off @ (k + k_off).swapaxes(-1, -2)
        off = (off + (q.shape[-1] + 2 + a.score_roundings) * a.u * whole) / root * 1.01
        return whole, off + a.smallest * (1 + (root > 1) * (k + k_off).sum(axis=-1)[..., None, :] * UP_FEW)


def exponentials(exponent: np.ndarray) -> np.ndarray:
    """ε of an exponential whose exponent, with everything that is relative, is off by this much."""
    with np.errstate(all="ignore"):
        return np.where(exponent < MOST_EXPONENT, np.expm1(exponent) * UP_FEW, np.inf)


def moved(epsilon: np.ndarray, span: np.ndarray | float) -> np.ndarray:
    """How far ε moves an average of values that lie within `span`: Σ_t w_t |v_t − z| is at most half of that."""
    with np.errstate(all="ignore"):
        return np.where(np.equal(span, 0), 0.0, 0.56 * epsilon * span)  # 1/(1 − ε) ≤ 1.12


def averages(n: int, mass: np.ndarray, most: np.ndarray, v_off: np.ndarray, a: Arithmetic) -> np.ndarray:
    """What errors of the values, normaliser, division and the sum over n tokens cost; Σ_t w_t |v_t| ≤ mass, |v_t| ≤ most."""
    R = a.rescalings
    relative = (2 * (n + R) + 8) * a.u
    return np.asarray((relative * mass + v_off * (1 + relative)) * UP_FEW + 2 * n * (1 + R) * a.smallest * (1 + most))
