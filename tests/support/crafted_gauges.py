"""Powers of two from one tensor to its partner: the same real function, with numbers from the smallest to the largest.

A coordinate of the stream can be multiplied by 2^k where it is written and by 2^−k where it is read, and so can queries and keys,
values and W_O, a ReLU before and behind, x̂ and W_E. As long as no stored number loses a bit, the real function stays what it
was, whatever the layer; computed answers need not.
"""

import numpy as np

Arrays = dict[str, np.ndarray]


def _room(a: np.ndarray, single: bool) -> tuple[int, int]:
    """(how many binary places these numbers can go down, up) without losing a bit."""
    a = np.abs(a[(a != 0) & np.isfinite(a)])
    if not a.size:
        return 4000, 4000
    m, e = np.frexp(a)
    whole = (m * 2.0**53).astype(np.int64)
    lowest = e - 53 + np.log2((whole & -whole).astype(np.float64)).astype(int)
    return int(lowest.min()) + (149 if single else 1074), (128 if single else 1024) - int(e.max())


def sites(a: Arrays, heads: int, residual: bool, relu: bool) -> list[list[tuple[list, list]]]:
    """Every kind of place: (views to be multiplied, views to be divided), all at once first and then one by one."""
    M, units = a["W_1"].shape
    O = a["W_O"].reshape(heads, -1, M)
    streams, scores, values, hidden = list[list](), list[tuple](), list[tuple](), list[tuple]()
    for c in (slice(None), *range(M)):
        embedded = [a[n][..., c] for n in ("W_E", "b_E", "P", "S") if n in a]
        attended = [a[n][..., c] for n in ("W_O", "b_O") if n in a]
        passed = [a[n][..., c] for n in ("W_2", "b_2")]
        by_heads, by_units, by_output = [a[n][:, c] for n in ("W_Q", "W_K", "W_V")], [a["W_1"][c]], [a["W_R"][c]]
        if residual:
            streams.append([([*embedded, *attended, *passed], [*by_heads, *by_units, *by_output])])
        else:
            streams.append([(embedded, by_heads), (attended, by_units), (passed, by_output)])
    for h in (slice(None), *range(min(heads, 12))):
        biases = {n: [a[f"b_{n}"][h]] if f"b_{n}" in a else [] for n in "QKV"}
        scores.append(([a["W_Q"][h], *biases["Q"]], [a["W_K"][h], *biases["K"]]))
        values.append(([a["W_V"][h], *biases["V"]], [O[h]]))
    for j in (slice(None), *range(units)) if relu else ():
        hidden.append(([a["W_1"][:, j], a["b_1"][j : j + 1] if isinstance(j, int) else a["b_1"]], [a["W_2"][j]]))
    kinds = [*map(list, zip(*streams, strict=True)), scores, values, hidden, [([a["scale"]], [a["W_E"]])]]
    return [there for kind in kinds if (there := [s for s in kind if all(any(np.any(v) for v in side) for side in s)])]


def transformed(
    rng: np.random.Generator, a: Arrays, heads: int, residual: bool, relu: bool, single: bool, times: int
) -> list[int]:
    """Some of these transformations, in place; the exponents."""
    done = list[int]()
    for _ in range(times):
        kinds = sites(a, heads, residual, relu)
        if not kinds:
            break
        kind = kinds[int(rng.integers(len(kinds)))]
        up, down = kind[0 if rng.random() < 0.4 else int(rng.integers(len(kind)))]
        rooms = [_room(np.concatenate([np.ravel(v) for v in views]), single) for views in (up, down)]
        low, high = -min(rooms[0][0], rooms[1][1]), min(rooms[0][1], rooms[1][0])
        if low >= high:
            continue
        end = int(low if rng.random() < 0.5 else high)
        k = end if rng.random() < 0.25 else round(end * float(rng.random()))
        for v in up:
            v[...] = np.ldexp(v, k)
        for v in down:
            v[...] = np.ldexp(v, -k)
        done.append(k)
    return done
