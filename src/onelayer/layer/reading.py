"""Reading a Form back from the weights of a model: what a constructed Transformer computes, without its layer.

Every token of a constructed model is affine in the normalised input x̂, so that for a row i that is read out

    score_t(x̂) = q_i(x̂)·k_t(x̂)/√d_k    is affine (a token where it is quadratic must be masked),
    value_t(x̂) = e_t(x̂) W^V W^O A       is affine, A being what the FFN and the read-out make of a stream coordinate.

A token whose score stays at least `gap` below another's on the box |x̂| ≤ edge has weight 0 in floating point and is left
out; a head with one token left is affine. The FFN is linear where relu(z) − relu(−z) = z or where a unit's sign is proved;
units relu(a·x̂ + b) are hinges. Anything else (LayerNorm, trained weights, quadratic scores, …) has no reading: None.

Exactness. Apart from W^K, W^V, W^O and constants, all factors must be 0 or ± powers of two, and every coefficient must
arise in one way only: then keys, biases and hinges are the stored floats, scaled by powers of two, and a value is at
most one product of two floats. All tokens of a head reach an output in the same way, so that what is added up on the way is its
z. `error` bounds, per output, how far the Form can be from the real function of the stored weights: products and sums that are
not floats, and the masked tokens (some 1e-300, or 1e-37 in float32). What underflow can do is in it, too.

Slopes. What is lost is a sum of constants, of c·x̂ with |c|·edge ≤ its share of `error`, and of averages of values that are
off, or of tokens that were left out. With scores of slope at most S an average of values of size E has a slope of at most
2S·E, plus E/edge where the values move; so does a lost weight times what it is the weight of, with twice the constants.
Hence `slope_error` = (2/edge + 4S)·`error`.

Second derivatives. Scores of masked tokens may be quadratic, with second derivatives of at most S/edge. A weight w changes by
at most 2S·w, and that by at most (4S² + 2S/edge)·w; an average of values of size E, which move by E/edge, then has a second
derivative of at most (4S² + 6S/edge)·E. By the product rule what a lost weight costs has one of at most 16S·(S + 1/edge) times
its share of `error`, and what else is lost costs less: `curvature_error` = 16S·(S + 1/edge)·`error`.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..common.outward import UP
from ..model.transformer import SingleLayerTransformer
from .arithmetic import FLOAT64, arithmetic_of
from .assemble import Frame
from .equivalent import softmax_equivalent
from .exact_sums import Stream, every_way, feed_forward, meets_itself, powers_of_two, product, summed, underflow
from .form import Block, Form
from .heads import EDGE, Hinges
from .number_range import out_of_range

GAP = {torch.float64: 745.2, torch.float32: 104.0}  # exp(−gap) is below half the smallest positive number
MOST_OFF = 0.1  # of a score, by underflow: more is not read
Weights = dict[str, np.ndarray]
Tokens = tuple[np.ndarray, np.ndarray]  # (constants [token, model], slopes [feature, model])


@dataclass(frozen=True)
class Reading:
    """T as a form and hinges, per output in the order of the places; `error` bounds |form + hinges − T| on the box."""

    form: Form
    hinges: Hinges
    hinge_values: torch.Tensor
    frame: Frame
    error: torch.Tensor
    slope_error: torch.Tensor  # per output: bounds what the form's slopes, with respect to any x̂_i, are off by
    curvature_error: torch.Tensor  # likewise for second derivatives along one x̂_i
    passed: torch.Tensor  # per output: constants that are added and subtracted again, in absolute value
    constants: torch.Tensor  # per output: likewise, of heads with one token, which are summands
    summands: int  # terms of the sum over the heads, at most
    steps: int  # additions after that sum, at most
    edge: float


@dataclass(frozen=True)
class _Heads:
    """All heads seen from one row: scores, values in the stream, and which tokens have a weight."""

    biases: np.ndarray  # [head, token]
    keys: np.ndarray  # [head, token, coordinate]
    kept: np.ndarray  # [head, token]
    lost: np.ndarray  # [head]: at most this much weight is on the tokens that were left out
    off: np.ndarray  # [head]: what underflow can do to a score
    exact: np.ndarray  # [head, token]: the score is known exactly, each coefficient arising in one way
    steepest: float  # a bound on the slopes of all scores, those of masked tokens included


def form_of_model(model: SingleLayerTransformer, places: tuple[int, ...] = (0,), edge: float = EDGE) -> Reading | None:
    """What `model` computes at the given places for |x̂| ≤ edge, read from its weights; None if it has another form."""
    c = model.config
    plain = not (c.any_length or c.causal) and c.norm == "none" and c.activation == "relu" and not c.projection_bias
    if not plain or c.dropout or c.readout == "mean" or not all(0 <= p < c.places for p in places):
        return None
    same = softmax_equivalent(model, places, edge)
    if same is None:
        return None
    model, c = same.model, same.model.config
    w = {name: t.detach().to(torch.float64).numpy() for name, t in model.state_dict().items()}
    if out_of_range(model, edge) is not None or math.sqrt(c.d_k) != 2.0 ** round(math.log2(c.d_k) / 2):
        return None
    if not (w["scale"] > 0).all():  # boxes in x̂ would be reversed
        return None
    tokens = _embedding(model, w)
    if tokens is None:
        return None
    frame = Frame(tuple(w["shift"].flatten().tolist()), tuple(w["scale"].flatten().tolist()))
    rows = [c.read_rows.start + p for p in places]
    parts = []
    for row in rows:
        heads = _heads_at(model, w, tokens, row, edge)
        part = _outputs_at(model, w, tokens, row, heads, edge, same.underflow) if heads else None
        if part is None:
            return None
        parts.append(part)
    return _joined(parts, frame, edge) if parts else None


def _embedding(model: SingleLayerTransformer, w: Weights) -> Tokens | None:
    """(constants, slopes): e_t = constant_t + x̂_t slopes (data tokens only), or None.

    It is free of rounding: in every coordinate a token has one constant, or one feature times a power of two.
    """
    c = model.config
    slopes = w["W_E"]
    codes = [w["b_E"][None].repeat(c.tokens, axis=0)] + ([w["P"]] if c.code != "none" else [])
    once = (np.stack(codes) != 0).sum(axis=0) + (slopes != 0).sum(axis=0)
    if not powers_of_two(slopes) or (once > 1).any():
        return None
    special = w["S"] if c.special_tokens else np.zeros((0, c.d_model))
    return np.concatenate([np.sum(codes, axis=0), special]), slopes


def _heads_at(model: SingleLayerTransformer, w: Weights, tokens: Tokens, row: int, edge: float) -> _Heads | None:
    """Scores of all heads for the query of one row, and the tokens that keep a weight."""
    c = model.config
    constants, slopes = tokens
    f, T, n = c.features_in, c.all_tokens, c.tokens
    of_data, arithmetic = row < n, arithmetic_of(model.W_E.dtype)
    significant = 53 if arithmetic is FLOAT64 else 24  # a key that is rounded when it is computed is not charged for
    q0, q0_ways, q0_exact = summed(constants[row][None], w["W_Q"], arithmetic, significant)  # [head, 1, width]
    q1, q1_ways, q1_exact = summed(slopes * of_data, w["W_Q"])  # [head, feature, width]
    once = (q0_ways[:, 0] + q1_ways.sum(axis=1) <= 1).all()
    if not (once and q0_exact.all() and q1_exact.all() and powers_of_two(q0) and powers_of_two(q1)):
        return None
    k0, k0_ways, k0_exact = summed(constants, w["W_K"], arithmetic, significant)  # [head, token, width]
    k1, k1_ways, k1_exact = summed(slopes, w["W_K"])  # [head, feature, width]
    _count_beside_slopes(k0_ways, k0_exact, constants[:n], w["W_K"], k1)
    root, W_K = math.sqrt(c.d_k), np.abs(w["W_K"])
    k0_size, k1_size = np.abs(constants) @ W_K, np.abs(slopes) @ W_K  # of all their terms, which may cancel
    of_constants, of_slopes = (k0, k0_ways, k0_exact, k0_size), (k1, k1_ways, k1_exact, k1_size)

    def score(q: np.ndarray, k: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(Σ_w q_w k_w/√d_k, ways, Σ_w |…|), [head, one side, other side]; exact where there is at most one way."""
        ways = np.einsum("haw,hbw->hab", (q != 0).astype(np.int64), k[1])
        unclear = np.einsum("haw,hbw->hab", (q != 0).astype(np.int64), (~k[2]).astype(np.int64))
        size = np.einsum("haw,hbw->hab", np.abs(q), k[3]) / root
        return np.einsum("haw,hbw->hab", q, k[0]) / root, ways + 2 * unclear, size * UP

    off = _score_underflow(w, q0, q1, k0_size, k1_size, edge, arithmetic.smallest, root)
    if not (off <= MOST_OFF).all():
        return None
    b, b_ways, b_size = score(q0, of_constants)
    own, own_ways, own_size = score(q0, of_slopes)  # of data tokens, in their own features
    of_row, of_row_ways, of_row_size = score(q1, of_constants)  # of all tokens, in the row's features
    _, square_ways, square_size = score(q1, of_slopes)
    H, D = c.heads, n * f
    biases, exact = b[:, 0], b_ways[:, 0] <= 1
    keys, ways = np.zeros((H, T, D)), np.zeros((H, T, D), dtype=np.int64)
    size, swing = b_size[:, 0].copy(), np.zeros((H, T))  # of all terms of a score; of those that move with x̂
    for t in range(n):
        keys[:, t, t * f : (t + 1) * f] += own[:, 0]
        ways[:, t, t * f : (t + 1) * f] += own_ways[:, 0]
        swing[:, t] += own_size[:, 0].sum(axis=1) * edge + square_size.sum(axis=(1, 2)) * edge * edge
    if of_data:
        keys[:, :, row * f : (row + 1) * f] += of_row.swapaxes(1, 2)
        ways[:, :, row * f : (row + 1) * f] += of_row_ways.swapaxes(1, 2)
        swing += of_row_size.sum(axis=1) * edge
    exact = exact & (ways <= 1).all(axis=2)
    size = size + swing
    terms = c.d_model + c.d_k + f + 8  # roundings of a score, its keys included
    swing = swing * UP + max(1e-12, 2 * terms * FLOAT64.u) * size  # the rounding of the score here included
    exact[:, :n] &= ~(square_ways != 0).any(axis=(1, 2))[:, None]
    seen = np.isin(np.arange(T), c.seen_by(row))
    sure = np.where(seen, biases - swing, -np.inf).max(axis=1, keepdims=True)
    below = sure - (biases + swing)  # sure distance to the best token that is seen
    dtype = model.W_E.dtype
    rounding = 2 * terms * arithmetic.u * size.max(axis=1, keepdims=True) * UP + 2 * off[:, None]  # of two scores
    kept = ~(below - rounding >= GAP[dtype]) & seen
    with np.errstate(under="ignore"):
        out = seen & ~kept
        lost = np.where(out, np.exp(-np.minimum(np.where(out, below, 0.0), 740.0)) * UP, 0.0).sum(axis=1)
    return _Heads(biases, keys, kept, lost, off, exact, 2 * float(swing.max(initial=0)) / edge * UP)


def _count_beside_slopes(
    ways: np.ndarray, exact: np.ndarray, constants: np.ndarray, W: np.ndarray, moving: np.ndarray
) -> None:
    """Constants of data tokens that are added up without rounding: not so where the same sum holds x̂. In place."""
    n = len(constants)
    each = (constants != 0).astype(np.int64) @ (W != 0).astype(np.int64)  # [head, data token, width]
    ways[:, :n] = np.where((moving != 0).any(axis=1)[:, None], each, ways[:, :n])
    exact[:, :n] &= ways[:, :n] <= 1


def _score_underflow(
    w: Weights,
    q0: np.ndarray,
    q1: np.ndarray,
    k0_size: np.ndarray,
    k1_size: np.ndarray,
    edge: float,
    smallest: float,
    root: float,
) -> np.ndarray:
    """[head]: what products below the smallest normal number, those of x̂ and W_E among them, can do to any score."""
    q = np.abs(q0[:, 0]) + np.abs(q1).sum(axis=1) * edge  # [head, width]
    k = k0_size.max(axis=1) + k1_size.sum(axis=1) * edge
    of_q, of_k = (smallest * (np.abs(w[name]).sum(axis=1) + w[name].shape[1] + 1) for name in ("W_Q", "W_K"))
    lost = (q * of_k + k * of_q + of_q * of_k).sum(axis=1) / root + (q.shape[1] + 1) * smallest
    return np.asarray(lost * UP)


def _outputs_at(
    model: SingleLayerTransformer, w: Weights, tokens: Tokens, row: int, heads: _Heads, edge: float, underflowing: float
) -> Reading | None:
    """The outputs at one row; a weight loses at most `underflowing` times the smallest normal number by underflow."""
    c = model.config
    constants, slopes = tokens
    H, f, n, D = c.heads, c.features_in, c.tokens, c.tokens * c.features_in
    arithmetic = arithmetic_of(model.W_E.dtype)
    v0, v0_ways, v0_exact = summed(constants, w["W_V"], arithmetic)  # [head, token, width]
    v1, v1_ways, v1_exact = summed(slopes, w["W_V"])  # [head, feature, width]
    _count_beside_slopes(v0_ways, v0_exact, constants[:n], w["W_V"], v1)
    W_O = w["W_O"].reshape(H, c.d_v, c.d_model)
    values, values_error, fine_0 = product(v0, v0_ways, v0_exact, W_O)  # [head, token, model]
    moves, moves_error, fine_1 = product(v1, v1_ways, v1_exact, W_O)  # [head, feature, model]
    moved = heads.kept[:, :n].any(axis=1, keepdims=True)
    if not ((fine_0 | ~heads.kept).all() and (fine_1 | ~moved).all()):
        return None
    alone = heads.kept.sum(axis=1) == 1
    token = heads.kept.argmax(axis=1)
    stream = Stream.of_row(constants[row], slopes, row, c, edge)
    stream = stream.with_heads(values, moves, values_error, moves_error, alone, token, n, f, edge)
    many = ~alone & (W_O != 0).any(axis=(1, 2))
    if not (heads.exact | ~heads.kept)[many].all():
        return None
    moving = (values[many] != 0).any(axis=(0, 1)) | (moves[many] != 0).any(axis=(0, 1))
    reach = np.abs(values)
    reach[:, :n] += np.abs(moves).sum(axis=1)[:, None] * edge
    reach *= heads.kept[..., None] * UP
    bound = reach[many].max(axis=1).sum(axis=0) if many.any() else np.zeros(c.d_model)
    smallest = arithmetic.smallest
    flushed = (
        c.all_tokens * smallest * underflowing
    )  # a weight below the smallest normal number may be anything below it
    everything = (np.abs(constants) @ np.abs(w["W_V"])).max(axis=1) + (np.abs(slopes) @ np.abs(w["W_V"])).sum(
        axis=1
    ) * edge
    everything = (everything[:, None] @ np.abs(W_O))[:, 0]  # [head, model]: values of masked tokens, too
    lost = ((heads.lost + flushed + np.expm1(4 * heads.off))[:, None] * 2 * everything * UP).sum(axis=0)  # [model]
    passed = feed_forward(w, c, stream, moving, bound + lost, edge, arithmetic.u)
    if passed is None:
        return None
    A = passed.matrix
    columns = ((v0 != 0) & heads.kept[..., None]).any(axis=1) | ((v1 != 0).any(axis=1) & moved)
    if meets_itself(columns, W_O, A)[many].any():
        return None  # what cancels where the ways meet is rounded all the same
    used = many & ((values @ A != 0).any(axis=(1, 2)) | (moves @ A != 0).any(axis=(1, 2)))
    widths = heads.kept[used].sum(axis=1)
    blocks = []
    lost = lost + (values_error.max(axis=1) + moves_error.sum(axis=1) * edge)[used].sum(axis=0) * UP
    error = passed.error + underflow(w, c, smallest) + every_way(w, c, lost)
    for width in np.unique(widths).tolist():
        mine = np.flatnonzero(used)[widths == width]
        order = np.argsort(~heads.kept[mine], axis=1, kind="stable")[:, :width]
        pick = (mine[:, None], order)
        slope = np.zeros((len(mine), width, n, f, A.shape[1]))
        data = order < n
        own = (moves[mine] @ A)[:, None].repeat(width, axis=1)[data]  # [kept data tokens, feature, out]
        head, slot = np.nonzero(data)
        slope[head, slot, order[data]] = own
        numbers = (heads.keys[pick], heads.biases[pick], values[pick] @ A, slope.reshape(len(mine), width, D, -1))
        blocks.append(Block(*(torch.from_numpy(np.ascontiguousarray(t)) for t in numbers)))
    form = Form(torch.from_numpy(passed.constant), torch.from_numpy(passed.linear), tuple(blocks))
    hinges = Hinges(torch.from_numpy(passed.directions), torch.from_numpy(passed.offsets))
    summands = int((W_O[used] != 0).sum(axis=(0, 1)).max(initial=0)) + int(stream.terms.max(initial=0))
    slope_error = error * (2 / edge + 4 * heads.steepest) * UP
    curvature_error = error * 16 * heads.steepest * (heads.steepest + 1 / edge) * UP
    errors = (torch.from_numpy(error), torch.from_numpy(slope_error), torch.from_numpy(curvature_error))
    beside = (torch.from_numpy(passed.passed), torch.from_numpy(passed.constants))
    hinge_values = torch.from_numpy(passed.hinge_values)
    return Reading(form, hinges, hinge_values, Frame((), ()), *errors, *beside, summands, passed.steps, edge)


def _joined(parts: list[Reading], frame: Frame, edge: float) -> Reading:
    """The outputs of all places side by side; places with the same heads share them."""
    m = [len(part.form.bias) for part in parts]

    def beside(t: torch.Tensor, place: int) -> torch.Tensor:
        return torch.nn.functional.pad(t, (sum(m[:place]), sum(m[place + 1 :])))

    blocks: list[Block] = []
    for place, part in enumerate(parts):
        for block in part.form.blocks:
            wide = replace(block, values=beside(block.values, place), slopes=beside(block.slopes, place))
            for i, old in enumerate(blocks):
                if torch.equal(old.keys, wide.keys) and torch.equal(old.biases, wide.biases):
                    blocks[i] = replace(old, values=old.values + wide.values, slopes=old.slopes + wide.slopes)
                    break
            else:
                blocks.append(wide)
    bias, linear = torch.cat([p.form.bias for p in parts]), torch.cat([p.form.linear for p in parts], dim=1)
    hinges = Hinges(torch.cat([p.hinges.directions for p in parts]), torch.cat([p.hinges.offsets for p in parts]))
    values = torch.cat([beside(p.hinge_values, i) for i, p in enumerate(parts)])
    names = ("error", "slope_error", "curvature_error", "passed", "constants")
    error, slope_error, curvature_error, passed, constants = (torch.cat([getattr(p, t) for p in parts]) for t in names)
    errors, counts = (
        (error, slope_error, curvature_error),
        (max(p.summands for p in parts), max(p.steps for p in parts)),
    )
    form = Form(bias, linear, tuple(blocks))
    return Reading(form, hinges, values, frame, *errors, passed, constants, *counts, edge)
