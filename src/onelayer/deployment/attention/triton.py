"""The Triton source of `kernels`: imported only where Triton is installed."""

from typing import no_type_check

import torch
import triton
import triton.language as tl
from torch import Tensor

from .kernels import TILES, interpreted


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
def _exponential(a, LIBRARY: tl.constexpr):
    """e^a within two units in the last place; Triton's float32 exp is less accurate."""
    if LIBRARY:
        return tl.extra.cuda.libdevice.exp(a)
    else:
        return tl.exp(a)


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
def _score(X, K, b, p, points, t, h, heads, D: tl.constexpr):
    """keys_th·x + biases_th for a tile of points × heads."""
    s = tl.load(b + t * heads + h)[None, :]
    for d in tl.static_range(D):
        x = tl.load(X + d * points + p, mask=p < points, other=0.0)
        s = x[:, None] * tl.load(K + (t * D + d) * heads + h)[None, :] + s
    return s


@triton.jit
@no_type_check
def _gates(
    X, K, b, V, S, Y, points, heads, span,
    T: tl.constexpr, D: tl.constexpr, SLOPED: tl.constexpr, LIBRARY: tl.constexpr, P: tl.constexpr, H: tl.constexpr,
):  # fmt: skip
    """Y[split, out, point]: heads of few tokens; scores are computed twice rather than stored."""
    p = tl.program_id(0) * P + tl.arange(0, P)
    split, out = tl.program_id(1), tl.program_id(2)
    total = tl.zeros([P, H], Y.dtype.element_ty)
    for start in range(split * span, (split + 1) * span, H):
        h = start + tl.arange(0, H)
        top = _score(X, K, b, p, points, 0, h, heads, D)
        for t in tl.static_range(1, T):
            top = tl.maximum(top, _score(X, K, b, p, points, t, h, heads, D))
        below = tl.zeros([P, H], Y.dtype.element_ty)
        above = tl.zeros([P, H], Y.dtype.element_ty)
        for t in tl.static_range(T):
            e = _exponential(_score(X, K, b, p, points, t, h, heads, D) - top, LIBRARY)
            value = tl.load(V + (out * T + t) * heads + h)[None, :]
            if SLOPED:
                for d in tl.static_range(D):
                    x = tl.load(X + d * points + p, mask=p < points, other=0.0)
                    value = x[:, None] * tl.load(S + ((out * T + t) * D + d) * heads + h)[None, :] + value
            below += e
            above += e * value
        total += above / below
    outs = tl.num_programs(2)
    tl.store(Y + (split * outs + out) * points + p, tl.sum(total, axis=1), mask=p < points)


@triton.jit
@no_type_check
def _memory(
    X, K, b, V, Y, points, tokens,
    D: tl.constexpr, LIBRARY: tl.constexpr, P: tl.constexpr, T: tl.constexpr,
):  # fmt: skip
    """Y[out, point]: one head of many tokens; a first pass finds the largest score."""
    p = tl.program_id(0) * P + tl.arange(0, P)
    out = tl.program_id(1)
    top = tl.full([P, T], -float("inf"), Y.dtype.element_ty)
    for start in range(0, tokens, T):
        top = tl.maximum(top, _score(X, K, b, p, points, 0, start + tl.arange(0, T), tokens, D))
    most = tl.max(top, axis=1)
    below = tl.zeros([P, T], Y.dtype.element_ty)
    above = tl.zeros([P, T], Y.dtype.element_ty)
    for start in range(0, tokens, T):
        t = start + tl.arange(0, T)
        e = _exponential(_score(X, K, b, p, points, 0, t, tokens, D) - most[:, None], LIBRARY)
        below += e
        above += e * tl.load(V + out * tokens + t)[None, :]
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


def gates(x: Tensor, keys: Tensor, biases: Tensor, values: Tensor, slopes: Tensor | None, splits: int) -> Tensor:
    """See `kernels.averages`."""
    (B, D), (T, heads, m) = x.shape, values.shape
    P, H = TILES[x.dtype]
    span = -(-heads // (splits * H)) * H
    size = splits * span
    biases = torch.cat([_padded(biases[:1], size, 0.0), _padded(biases[1:], size, -torch.inf)])
    V = _padded(values.permute(2, 0, 1), size, 0.0)
    S = V if slopes is None else _padded(slopes.permute(3, 0, 1, 2), size, 0.0)
    Y = x.new_empty(splits, m, B)
    library = not interpreted()
    grid = (triton.cdiv(B, P), splits, m)
    if B:
        given = (x.T.contiguous(), _padded(keys, size, 0.0), biases, V, S, Y)
        _gates[grid](*given, B, size, span, T, D, slopes is not None, library, P, H)
    return Y.sum(dim=0).T


def memory(x: Tensor, keys: Tensor, biases: Tensor, values: Tensor) -> Tensor:
    """One head [batch, out] with keys [token, coordinate], biases [token], values [token, out]."""
    (B, D), (T, m) = x.shape, values.shape
    P, H = TILES[x.dtype]
    size = -(-T // H) * H
    Y = x.new_empty(m, B)
    if B:
        given = (x.T.contiguous(), _padded(keys.T, size, 0.0), _padded(biases, size, -torch.inf))
        values = _padded(values.T, size, 0.0)
        _memory[(triton.cdiv(B, P), m)](*given, values, Y, B, size, D, not interpreted(), P, H)
    return Y.T
