"""The Triton source of `kernels`: imported only where Triton is installed."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from .kernels import MEMORY_TILES, MOST_SAMPLED, SAMPLED, TILES, interpreted

NEAR = 2.0**18  # scores up to this: float32 finds the largest up to 1, and exponents fit
LOG2E = tl.constexpr(1.4426950408889634)
LATE = tl.constexpr(2048.0)  # a sum of exponentials beyond this: the shift was too small


@triton.jit
@no_type_check
def _inverse(a, FAST: tl.constexpr):
    """1/a; in float32 on a GPU by the card's own instruction, which is within one unit in the last place."""
    if FAST:
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [a], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return 1.0 / a


@triton.jit
@no_type_check
def _shift(top, FAR: tl.constexpr):
    """What is subtracted from scores whose largest is `top`, in the units of `_exponential`."""
    if FAR:
        return top
    else:
        return tl.floor(top * LOG2E)


@triton.jit
@no_type_check
def _scaled(q, z, CARD: tl.constexpr):
    """2^n q for q near 1 and the whole number n in the last bits of z, at most 1000 either way: n goes into the exponent."""
    if CARD:  # in the upper half alone
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 low, high, n, rest;
            mov.b64 {n, rest}, $2;
            max.s32 n, n, -1000;
            min.s32 n, n, 1000;
            mov.b64 {low, high}, $1;
            shl.b32 n, n, 20;
            add.s32 high, high, n;
            mov.b64 $0, {low, high};
            }""",
            "=d,d,d",
            [q, z],
            dtype=tl.float64,
            is_pure=True,
            pack=1,
        )
    else:
        n = tl.minimum(tl.maximum(z.to(tl.int64, bitcast=True).to(tl.int32), -1000), 1000)
        return (q.to(tl.int64, bitcast=True) + (n.to(tl.int64) << 52)).to(tl.float64, bitcast=True)


@triton.jit
@no_type_check
def _exponential(s, shift, CARD: tl.constexpr, FAR: tl.constexpr):
    """2^(s·log2 e − shift) for a whole shift; `kernels.card` says how accurately. A factor that all tokens share cancels.

    In float32 it is the card's own instruction. In float64 w = s·log2 e as a whole number, f = s·log2 e − w in one rounding,
    2^f by a polynomial of degree 10, within 2.9u, and w − shift goes into the exponent; what is beyond 2^±1000 stays there.
    Where scores are too `FAR` apart for that: e^(s − shift).
    """
    if FAR:
        if CARD:
            return tl.extra.cuda.libdevice.exp(s - shift)
        else:
            return tl.exp(s - shift)
    rate = tl.full(s.shape, LOG2E, s.dtype)  # as a scalar it would be rounded to float32
    if s.dtype == tl.float64:
        ones = 6755399441055744.0 - shift  # 1.5·2^52: sums with it are whole numbers
        z = tl.fma(s, rate, ones)
        f = tl.fma(s, rate, ones - z)
        q = f * 7.072585949269223e-09 + 1.0208690299958306e-07
        q = q * f + 1.321544258792169e-06
        q = q * f + 1.5252657260200837e-05
        q = q * f + 0.0001540353044173605
        q = q * f + 0.0013333558230164974
        q = q * f + 0.009618129107606888
        q = q * f + 0.05550410866444772
        q = q * f + 0.24022650695910097
        q = q * f + 0.69314718055995
        q = q * f + 1.0
        return _scaled(q, z, CARD)
    elif CARD:
        return tl.inline_asm_elementwise(
            "ex2.approx.ftz.f32 $0, $1;", "=f,f", [tl.fma(s, rate, -shift)], dtype=tl.float32, is_pure=True, pack=1
        )
    else:
        return tl.exp2(tl.minimum(tl.fma(s, rate, -shift), 100.0))  # NumPy warns of an overflow, a card does not


@triton.jit
@no_type_check
def _denominator(E, G, p, points, h, heads, u: tl.constexpr, e0, e1, e2):
    """(E G)_ph for a tile; the first three columns of E are passed in."""
    d = tl.load(G + u * heads + h)[None, :]
    if u > 0:
        d = e0[:, None] * tl.load(G + h)[None, :] + d
    if u > 1:
        d = e1[:, None] * tl.load(G + heads + h)[None, :] + d
    if u > 2:
        d = e2[:, None] * tl.load(G + 2 * heads + h)[None, :] + d
    for k in tl.static_range(3, u):
        e = tl.load(E + k * points + p, mask=p < points, other=1.0)
        d = e[:, None] * tl.load(G + k * heads + h)[None, :] + d
    return d


@triton.jit
@no_type_check
def _numerator(N, C, p, points, h, heads, v: tl.constexpr):
    """(N C)_ph for a tile."""
    c = tl.load(C + v * heads + h)[None, :]
    for k in tl.static_range(0, v):
        e = tl.load(N + k * points + p, mask=p < points, other=1.0)
        c = e[:, None] * tl.load(C + k * heads + h)[None, :] + c
    return c


@triton.jit
@no_type_check
def _quotients(
    E, G, N, C, Y, points, heads, span,
    u: tl.constexpr, v: tl.constexpr, PAIRED: tl.constexpr, FAST: tl.constexpr, P: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Y[split, out, point]: the sum over the heads of one split."""
    p = tl.program_id(0) * P + tl.arange(0, P)
    split, out = tl.program_id(1), tl.program_id(2)
    C += out * (v + 1) * heads
    inside = p < points
    one = tl.full([P], 1.0, Y.dtype.element_ty)
    e0, e1, e2 = one, one, one
    if u > 0:
        e0 = tl.load(E + p, mask=inside, other=1.0)
    if u > 1:
        e1 = tl.load(E + points + p, mask=inside, other=1.0)
    if u > 2:
        e2 = tl.load(E + 2 * points + p, mask=inside, other=1.0)
    total = tl.zeros([P, H], Y.dtype.element_ty)
    if PAIRED:
        for start in range(split * span, (split + 1) * span, 2 * H):
            h = start + tl.arange(0, H)
            a = _denominator(E, G, p, points, h, heads, u, e0, e1, e2)
            b = _denominator(E, G, p, points, h + H, heads, u, e0, e1, e2)
            top = _numerator(N, C, p, points, h, heads, v) * b + _numerator(N, C, p, points, h + H, heads, v) * a
            total += top * _inverse(a * b, FAST)
    else:
        for start in range(split * span, (split + 1) * span, H):
            h = start + tl.arange(0, H)
            a = _denominator(E, G, p, points, h, heads, u, e0, e1, e2)
            total += _numerator(N, C, p, points, h, heads, v) * _inverse(a, FAST)
    outs = tl.num_programs(2)
    tl.store(Y + (split * outs + out) * points + p, tl.sum(total, axis=1), mask=inside)


@triton.jit
@no_type_check
def _coordinate(X, p, points, d: tl.constexpr, D: tl.constexpr):
    """Coordinate d of a tile of points; 0 if there are not so many."""
    return tl.load(X + d * points + p, mask=(p < points) & (d < D), other=0.0)


@triton.jit
@no_type_check
def _score(X, K, b, p, points, t, h, heads, D: tl.constexpr, x0, x1, x2):
    """keys_th·x + biases_th for a tile of points × heads; the first three coordinates are passed in."""
    s = x0[:, None] * tl.load(K + t * D * heads + h)[None, :] + tl.load(b + t * heads + h)[None, :]
    if D > 1:
        s = x1[:, None] * tl.load(K + (t * D + 1) * heads + h)[None, :] + s
    if D > 2:
        s = x2[:, None] * tl.load(K + (t * D + 2) * heads + h)[None, :] + s
    for d in tl.static_range(3, D):
        x = _coordinate(X, p, points, d, D)
        s = x[:, None] * tl.load(K + (t * D + d) * heads + h)[None, :] + s
    return s


@triton.jit
@no_type_check
def _value(X, V, S, p, points, row, h, heads, D: tl.constexpr, SLOPED: tl.constexpr):
    """The values of a row of tokens, which move with x if they are `SLOPED`."""
    value = tl.load(V + row * heads + h)[None, :]
    if SLOPED:
        for d in tl.static_range(D):
            slope = tl.load(S + (row * D + d) * heads + h)[None, :]
            value = _coordinate(X, p, points, d, D)[:, None] * slope + value
    return value


@triton.jit
@no_type_check
def _gates(
    X, K, b, V, S, Y, points, heads, span,
    T: tl.constexpr, D: tl.constexpr, SLOPED: tl.constexpr, CARD: tl.constexpr, FAR: tl.constexpr,
    P: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Y[split, out, point]: heads of few tokens; scores are computed twice rather than stored."""
    p = tl.program_id(0) * P + tl.arange(0, P)
    split, out = tl.program_id(1), tl.program_id(2)
    x0, x1, x2 = (_coordinate(X, p, points, 0, D), _coordinate(X, p, points, 1, D), _coordinate(X, p, points, 2, D))
    total = tl.zeros([P, H], Y.dtype.element_ty)
    for start in range(split * span, (split + 1) * span, H):
        h = start + tl.arange(0, H)
        top = _score(X, K, b, p, points, 0, h, heads, D, x0, x1, x2)
        for t in tl.static_range(1, T):
            top = tl.maximum(top, _score(X, K, b, p, points, t, h, heads, D, x0, x1, x2))
        shift = _shift(top, FAR)
        below = tl.zeros([P, H], Y.dtype.element_ty)
        above = tl.zeros([P, H], Y.dtype.element_ty)
        for t in tl.static_range(T):
            e = _exponential(_score(X, K, b, p, points, t, h, heads, D, x0, x1, x2), shift, CARD, FAR)
            below += e
            above += e * _value(X, V, S, p, points, out * T + t, h, heads, D, SLOPED)
        total += above / below
    outs = tl.num_programs(2)
    tl.store(Y + (split * outs + out) * points + p, tl.sum(total, axis=1), mask=p < points)


@triton.jit
@no_type_check
def _largest(X, K, b, p, points, upto, tokens, D: tl.constexpr, P: tl.constexpr, T: tl.constexpr):
    """The largest score among the first tokens, of every point."""
    x0, x1, x2 = (_coordinate(X, p, points, 0, D), _coordinate(X, p, points, 1, D), _coordinate(X, p, points, 2, D))
    top = tl.full([P, T], -float("inf"), X.dtype.element_ty)
    for start in range(0, upto, T):
        top = tl.maximum(top, _score(X, K, b, p, points, 0, start + tl.arange(0, T), tokens, D, x0, x1, x2))
    return tl.max(top, axis=1)


@triton.jit
@no_type_check
def _sums(
    X, K, b, V, S, p, points, tokens, out, shift,
    D: tl.constexpr, SLOPED: tl.constexpr, CARD: tl.constexpr, FAR: tl.constexpr,
    P: tl.constexpr, T: tl.constexpr, UNROLLED: tl.constexpr,
):  # fmt: skip
    """(Σ_t e_t, Σ_t e_t v_t) in T columns, e_t as `_exponential` has them."""
    x0, x1, x2 = (_coordinate(X, p, points, 0, D), _coordinate(X, p, points, 1, D), _coordinate(X, p, points, 2, D))
    below = tl.zeros([P, T], X.dtype.element_ty)
    above = tl.zeros([P, T], X.dtype.element_ty)
    for start in tl.range(0, tokens, T, loop_unroll_factor=UNROLLED):
        t = start + tl.arange(0, T)
        e = _exponential(_score(X, K, b, p, points, 0, t, tokens, D, x0, x1, x2), shift[:, None], CARD, FAR)
        below += e
        above += e * _value(X, V, S, p, points, out, t, tokens, D, SLOPED)
    return below, above


@triton.jit
@no_type_check
def _memory(
    X, K, b, V, S, Y, X32, K32, b32, points, tokens, sample,
    D: tl.constexpr, SLOPED: tl.constexpr, CARD: tl.constexpr, FAR: tl.constexpr,
    P: tl.constexpr, T: tl.constexpr, T32: tl.constexpr, UNROLLED: tl.constexpr,
):  # fmt: skip
    """Y[out, point]: one head of many tokens. Any number near the largest score serves as a shift.

    It is the largest score of the first tokens, as float32 computes it. A column whose exponentials exceed `LATE` tells that a
    later score is much larger: that tile is done again with the largest of all.
    """
    p = tl.program_id(0) * P + tl.arange(0, P)
    out = tl.program_id(1)
    shift = _shift(_largest(X32, K32, b32, p, points, sample, tokens, D, P, T32), FAR).to(X.dtype.element_ty)
    below, above = _sums(X, K, b, V, S, p, points, tokens, out, shift, D, SLOPED, CARD, FAR, P, T, UNROLLED)
    if tl.max(tl.max(below, axis=1), axis=0) > LATE + tokens / T:
        shift = _shift(_largest(X32, K32, b32, p, points, tokens, tokens, D, P, T32), FAR).to(X.dtype.element_ty)
        below, above = _sums(X, K, b, V, S, p, points, tokens, out, shift, D, SLOPED, CARD, FAR, P, T, UNROLLED)
    tl.store(Y + out * points + p, tl.sum(above, axis=1) / tl.sum(below, axis=1), mask=p < points)


def _padded(t: Tensor, size: int, value: float) -> Tensor:
    return torch.nn.functional.pad(t, (0, size - t.shape[-1]), value=value).contiguous()


def quotients(E: Tensor, G: Tensor, N: Tensor, C: Tensor, paired: bool, splits: int) -> Tensor:
    """See `kernels.quotients`; C is [v + 1, head, out]."""
    B, m, heads = len(E), C.shape[2], G.shape[1]
    P, H = TILES[E.dtype]
    span = -(-heads // (splits * 2 * H)) * 2 * H
    size = splits * span
    G = torch.cat([_padded(G[:-1], size, 0.0), _padded(G[-1:], size, 1.0)])  # padding heads are 0/1
    C = _padded(C.permute(2, 0, 1), size, 0.0)
    Y = E.new_empty(splits, m, B)
    fast = E.dtype == torch.float32 and not interpreted()
    grid = (triton.cdiv(B, P), splits, m)
    columns = (E.T.contiguous(), G, N.T.contiguous(), C, Y)
    if B:
        _quotients[grid](*columns, B, size, span, E.shape[1], N.shape[1], paired, fast, P, H)
    return Y.sum(dim=0).T


def _reach(x: Tensor, keys: Tensor, biases: Tensor) -> Tensor:
    """A bound on all |scores|; keys are [token, coordinate, head], biases [token, head]. Nothing waits for the card."""
    sizes = torch.where(biases > -torch.inf, biases.abs(), 0.0)
    return keys.abs().amax(dim=(0, 2)) @ x.abs().amax(dim=0) + sizes.amax()


def _there(biases: Tensor, reach: Tensor) -> Tensor:
    """Biases for `_exponential`, where scores are not far apart: an absent token needs a finite one in float64.

    It leaves the token a weight of 2^−1000.
    """
    return biases if biases.dtype == torch.float32 else torch.where(biases > -torch.inf, biases, -2 * reach - 1000)


def gates(x: Tensor, keys: Tensor, biases: Tensor, values: Tensor, slopes: Tensor | None, splits: int) -> Tensor:
    """See `kernels.averages`."""
    (B, D), (T, heads, m) = x.shape, values.shape
    P, H = TILES[x.dtype]
    span = -(-heads // (splits * H)) * H
    size = splits * span
    Y = x.new_empty(splits, m, B)
    if not B:
        return Y.sum(dim=0).T
    biases = torch.cat([_padded(biases[:1], size, 0.0), _padded(biases[1:], size, -torch.inf)])
    reach = _reach(x, keys, biases)
    far = not float(reach) <= NEAR
    biases = biases if far else _there(biases, reach)
    V = _padded(values.permute(2, 0, 1), size, 0.0)
    S = V if slopes is None else _padded(slopes.permute(3, 0, 1, 2), size, 0.0)
    given = (x.T.contiguous(), _padded(keys, size, 0.0), biases, V, S, Y, B, size, span)
    _gates[(triton.cdiv(B, P), splits, m)](*given, T, D, slopes is not None, not interpreted(), far, P, H)
    return Y.sum(dim=0).T


def memory(x: Tensor, keys: Tensor, biases: Tensor, values: Tensor, slopes: Tensor | None) -> Tensor:
    """One head [batch, out]: keys [token, coordinate], biases [token], values [token, out], slopes [token, coordinate, out]."""
    (B, D), (T, m) = x.shape, values.shape
    P, H, H32, unrolled, warps = MEMORY_TILES[x.dtype]
    wide = max(H, H32)
    size = -(-T // wide) * wide
    Y = x.new_empty(m, B)
    if not B:
        return Y.T
    reach, biases = _reach(x, keys[..., None], biases[:, None]), _padded(biases, size, -torch.inf)
    x, keys, V = x.T.contiguous(), _padded(keys.T, size, 0.0), _padded(values.T, size, 0.0)
    S = V if slopes is None else _padded(slopes.permute(2, 1, 0), size, 0.0)
    near = _there(biases, reach)
    rough = (x.float(), keys.float(), near.float())
    far = not float(reach) <= NEAR  # the only wait, after all that is small is under way
    biases, rough = (biases, (x, keys, biases)) if far else (near, rough)
    sample = size if far or size > MOST_SAMPLED else max(size // SAMPLED // wide, 1) * wide
    given = (x, keys, biases, V, S, Y, *rough, B, size, sample)
    kinds = (D, slopes is not None, not interpreted(), far)
    _memory[(triton.cdiv(B, P), m)](*given, *kinds, P, H, H32, unrolled, num_warps=warps)
    return Y.T
