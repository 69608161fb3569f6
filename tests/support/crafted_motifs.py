"""Motifs: small structures that are hard to follow, each with random sizes at the edges of what numbers can hold.

Every motif writes into a sketch and adds what a simple reading would make of it. They share coordinates now and then.
"""

import math

from crafted_sketch import Sketch


def x_text(s: Sketch, i: int) -> str:
    return f"z{i + 1}"


def x_lane(s: Sketch) -> None:
    """x̂ reaches the output: by the residual, by a head that copies it, or by units."""
    i, slope = int(s.rng.integers(s.D)), s.pick(1.0, 1.0, s.power(-12, 3))
    if s.residual and s.chance(0.4):
        s["W_R", s.x[i], 0] = slope
        return s.add(slope, x_text(s, i))
    c = s.somewhere()
    if s.residual and s.chance(0.4):
        s["W_E", i, c] = slope
    else:
        s.value(s.head({0}), copied_x(s, i), slope, c)
    s.add(slope * s.leave(c), x_text(s, i))
    return None


def copied_x(s: Sketch, i: int) -> int:
    """The coordinate of x̂, or another one that holds it."""
    if s.chance(0.5):
        return s.x[i]
    c = s.coordinate()
    s["W_E", i, c] = 1.0
    return c


def parts_of(s: Sketch, total: float) -> list[float]:
    """Numbers that meet again: they add up to `total`, up to roundings of the largest."""
    C = s.power(10, 23 if s.single else 52) if s.chance(0.5) else s.power(20, 40 if s.single else 100)
    C = C if s.chance(0.7) else C * float(s.rng.uniform(1, 2))
    u = s.u
    hair = [C * u * float(s.pick(0.25, 0.5, 0.75, 1.25, 1.5, s.rng.uniform(0.1, 4))) for _ in range(2)]
    kinds = [
        [C, total, -C],
        [C, -C, total],
        [C, total - C],
        [total, C, -C],
        [-hair[0], -hair[0], 2 * hair[0] - C, C, total],
        [C, -hair[0], -hair[1], hair[0] + hair[1], -C, total],
        [-C, *[-hair[0]] * 2, 2 * hair[0], C],
    ]
    found = kinds[int(s.rng.integers(len(kinds)))]
    return found if s.chance(0.6) else [found[i] for i in s.rng.permutation(len(found))]


def near_parts(s: Sketch, copies: int) -> list[float]:
    """A number and its negative, but for some units in the last place, for many copies of a head."""
    C, tie, off = (
        s.power(-2, 6),
        copies // 4,
        int(s.rng.integers(1, 4)),
    )  # running sums lose nearly half a unit each time
    first, second = (tie - off, tie + off) if s.chance(0.6) else (int(v) for v in s.rng.integers(1, 4096, size=2))
    return [C * (1 + 2 * s.u * first), -C * (1 + 2 * s.u * second)]


def drift(s: Sketch) -> None:
    """Many heads add what is nearly half a unit in the last place to a constant that was there before."""
    i, t, k, n = int(s.rng.integers(s.D)), s.token(), s.pick(1.0, s.power(-3, 2)), s.pick(63, 127, 255)
    C, c, taken = s.power(-3, 3), s.coordinate(), s.token()
    if s.residual and s.chance(0.3):
        s["b_E", c] = C
    else:
        s.value(s.head({taken}), s.marks[taken], C, c)
    h = s.head({0, t}, n)
    s["W_K", h, s.x[i], 0] = k
    size = C * s.u * s.pick(1.0, 2.0, 4.0) * float(s.rng.uniform(0.85, 1.15))
    s.value(h, s.one, size, c)
    factor = s.leave(c, s.pick("direct", "direct", "pair") if s.residual else "pair")
    s.add(n * size * factor, f"sigmoid({k!r}*{x_text(s, i)})")
    if s.chance(0.7):
        s["b_R", 0] = s["b_R", 0] - C * factor
    else:
        s.constant += C * factor


def constants(s: Sketch) -> None:
    """Constants go their several ways and meet again: embedding, heads, units, biases; one coordinate or many."""
    copies = s.pick(1, 1, 1, 64, 256, 256)
    parts = near_parts(s, copies) if copies > 8 or s.chance(0.3) else parts_of(s, s.pick(0.0, 1.0, s.power(-6, 3)))
    if len(parts) == 2 and copies > 1 and s.chance(0.7):
        return averaged(s, parts, copies)
    common = s.somewhere() if s.chance(0.6) else None
    total, factor, unit, head = 0.0, None, -1, None
    way = s.pick("embedding", "head", "unit", "mixed", "mixed", "last")
    for part in parts:
        c = s.somewhere() if common is None else common
        kind = s.pick("embedding", "head", "head", "unit", "last") if way == "mixed" else way
        kind = "head" if kind == "embedding" and not s.residual else kind
        if kind == "last":
            name = s.pick("b_R", "b_2") if s.residual else "b_R"
            where = ("b_R", 0) if name == "b_R" else ("b_2", s.out)
            s[where] = s[where] + part
            s.constant += part
            continue
        if kind == "unit":
            unit = s.unit(1.0) if unit < 0 or s.chance(0.4) else unit
            to = s.coordinate() if s.residual else s.out
            s["W_2", unit, to] = s["W_2", unit, to] + part
            s["W_R", to, 0] = 1.0
            s.constant += part
            continue
        if kind == "embedding":
            s["b_E", c] = s["b_E", c] + part
        else:
            head = s.head({s.token()}) if head is None or s.chance(0.5) else head
            s.value(head, s.marks[max(s.heads[head][0])], part, c)
        if common is None:
            s.constant += part * s.leave(c)
        total += part
    if common is not None:
        factor = s.leave(common)
        s.constant += factor * total
    return None


def averaged(s: Sketch, parts: list[float], copies: int) -> None:
    """Heads that average tokens, each with a part of its own, to its own coordinate or to one."""
    tokens = [s.token() for _ in parts]
    seen = {0, *tokens} if s.chance(0.5) else set(tokens)
    while len(seen) & (len(seen) - 1):
        seen.add(s.token())
    h, apart = s.head(seen, copies), s.chance(0.7)
    if s.chance(0.3):
        s.score(h, 0, [s.power(-2, 3)] + [0.0] * (s.D - 1), 0.0)
        s.heads[h] = ({*tokens}, copies)
    share, common = len(s.heads[h][0]), None if apart else s.somewhere()
    for t, part in zip(tokens, parts, strict=True):
        c = s.somewhere() if common is None else common
        s.value(h, s.marks[t], part * share, c)
        s.constant += part * copies * s.leave(c, "direct" if s.residual else "pair")


def sigmoid(s: Sketch) -> None:
    """A head of two tokens, the score of one by the query or by the key, the value a constant or x̂; many copies."""
    i, t = int(s.rng.integers(s.D)), s.token()
    copies = s.pick(1, 1, 1, 2, 4, 8, 64, 255)
    h, k = s.head({0, t}, copies), s.pick(1.0, s.power(-8, 8), float(s.rng.normal()))
    b = float(s.pick(0.0, 0.0, s.rng.normal(), s.power(-6, 5)))
    by_key, kept = s.chance(0.4), s.chance(0.45)
    of = s.pick(0, t) if by_key and kept else t  # the token whose score has the offset
    if kept:
        b = float(s.pick(b, -200.0, -1000.0, -s.cut + s.rng.uniform(-3, 3)))
        spread(s, h, of, parts_of(s, b))
    elif b:
        s["W_K", h, s.marks[of], 0] = b
    if by_key:
        s["W_K", h, copied_x(s, i), 0] = k  # the data token's key holds x̂
    else:
        s.score(h, t, [k if j == i else 0.0 for j in range(s.D)], 0.0 if kept else b)
    moving, fixed = f"{k!r}*{x_text(s, i)}", f"({b!r})"
    ahead = f"{moving} {'+' if of == 0 else '-'} {fixed}" if by_key else f"-({moving} + {fixed})"  # of the data token
    below = float(s.pick(0.0, 0.0, 0.0, -s.rng.uniform(0, 0.99 * s.cut), -s.rng.uniform(0, 10 * s.cut)))
    for token in (0, t) if below else ():  # the same for all tokens that it sees: nothing changes
        s["W_K", h, s.marks[token], 0] = s["W_K", h, s.marks[token], 0] + below
    size = s.pick(1.0, s.power(-10, 3), s.power(-30, 0), s.u * s.power(-2, 3), s.u * float(s.rng.uniform(0.5, 4)))
    c, of_x, own = s.somewhere(), s.chance(0.3), s.chance(0.5)
    s.value(h, s.x[i] if of_x else s.one if own else s.marks[t], size, c)
    inner = ahead if of_x or own else f"-({ahead})"
    s.add(copies * size * s.leave(c), f"sigmoid({inner})" + (f"*{x_text(s, i)}" if of_x else ""))


def spread(s: Sketch, head: int, token: int, parts: list[float]) -> None:
    """A constant of a key in parts that stand in coordinates of their own."""
    for part in parts:
        c, in_token = s.coordinate(), s.chance(0.7)
        s.tokens_hold(token, c, part if in_token else 1.0)
        s["W_K", head, c, 0] = 1.0 if in_token else part


def value_sum(s: Sketch) -> None:
    """A value that is a sum of constants and of x̂, for a head that copies it or averages."""
    i, t = int(s.rng.integers(s.D)), s.token()
    total, alone = s.pick(0.0, 1.0), s.chance(0.5)
    parts = parts_of(s, total)
    h = s.head({0} if alone else {0, t})
    for part in parts:
        c = s.coordinate()
        s["b_E", c] = 1.0 if s.chance(0.7) else part
        s["W_V", h, c, 0] = part if s["b_E", c] == 1.0 else 1.0
    s["W_V", h, copied_x(s, i), 0] = 1.0
    to = s.somewhere()
    s["W_O", h, 0, to] = 1.0
    s.columns[h] = 1
    s.add((1.0 if alone else 0.5) * s.leave(to), f"{x_text(s, i)} + {total!r}")


def masked(s: Sketch) -> None:
    """A token with a huge value whose mask is weakest in one corner, where it is near the cut; something is behind it."""
    t, i = s.token(), int(s.rng.integers(s.D))
    h = s.head({0, t})
    steep = [float(s.pick(0.0, 1.0, 100.0, 900.0, 1e8)) * s.pick(1, -1) for _ in range(s.D)]
    least = -(s.cut + float(s.rng.uniform(-2, 6)))
    swing = sum(abs(k) for k in steep) * s.edge
    s.score(h, t, steep, least - swing)
    s.probes.append([math.copysign(1.0, k) if k else 0.0 for k in steep])
    V = 2.0 ** (s.top - int(s.pick(0, 0, s.rng.integers(0, 20), s.rng.integers(0, 100))))
    held = s.coordinate()
    s.tokens_hold(t, held, V)
    c = s.coordinate()
    s.value(h, held, 1.0, c)
    effect = math.log2(V) - s.cut / math.log(2)
    if s.chance(0.2):
        s.leave(c)
    else:
        silent(s, c, 0.0, 2.0 ** round(effect - s.rng.uniform(2, 40)), s.power(0, 70 if s.single else 200))
    if s.chance(0.3) and s.residual:
        s["W_R", s.x[i], 0] = s.power(-20, 0)
        s.add(s["W_R", s.x[i], 0], x_text(s, i))


def silent(s: Sketch, c: int, level: float, hair: float, gain: float) -> None:
    """A unit that is silent by a hair where coordinate c is at its level."""
    j, to = s.unit(-(level + hair)), s.coordinate() if s.residual else s.out
    s["W_1", c, j], s["W_2", j, to], s["W_R", to, 0] = 1.0, gain, 1.0


def crowd(s: Sketch) -> None:
    """Very many equal tokens whose weights do not quite add up to 1, and a unit that opens at that."""
    many = int(2 ** s.rng.uniform(10, 17.5))
    t = s.token(many)
    h, c = s.head({0, t}), s.coordinate()
    s["W_V", h, s.one, 0] = s["W_V", h, s.marks[t], 0] = 1.0
    for _ in range(s.pick(0, 1)):
        s["W_V", h, s.marks[t], 1] = 0.0
        s.columns[h] = 2
    s["W_O", h, 0, c], s.columns[h] = 1.0, max(1, s.columns[h])
    silent(s, c, 1.0, 10 ** s.rng.uniform(-4.2 if s.single else -9, -3), s.power(0, 20))


def hat(s: Sketch) -> None:
    """Three units that make a narrow hat, between any samples; only its peak shows it."""
    i, n = int(s.rng.integers(s.D)), int(s.rng.integers(8, 14 if s.single else 26))
    w, at = 2.0**-n, int(s.rng.integers(-120, 120)) / 256
    to, height = s.coordinate() if s.residual else s.out, s.pick(1.0, s.power(-20, 40))
    steep = s.pick(1.0, s.power(0, 0.98 * s.top), s.power(0.8 * s.top, 0.98 * s.top))
    source = s.x[i]
    if not s.residual:
        source = s.coordinate()
        s.value(s.head({0}), s.x[i], 1.0, source)
    for k, weight in enumerate((1.0, -2.0, 1.0)):
        j = s.unit(-(at + k * w) * steep)
        s["W_1", source, j], s["W_2", j, to] = steep, weight * height / steep
    s["W_R", to, 0] = 1.0
    for d in (0.0, w, 2 * w):
        s.probes.append([(at + d) / s.edge if d_ == i else 0.0 for d_ in range(s.D)])


def tiny_scores(s: Sketch) -> None:
    """Huge values with both signs, told apart by a score that is tiny."""
    i, m = int(s.rng.integers(s.D)), int(s.rng.uniform(s.pick(0.02, 0.6), 0.93) * s.top)
    one, two = s.token(), s.token()
    h, c, V = s.head({one, two}), s.coordinate(), 2.0 ** (m - int(s.rng.integers(0, 6)))
    s.score(h, one, [2.0**-m if j == i else 0.0 for j in range(s.D)], 0.0)
    held = s.coordinate()
    s.tokens_hold(one, held, 1.0)
    s.tokens_hold(two, held, -1.0)
    s.value(h, held, V, c)
    factor = s.leave(c, "direct" if s.residual else "pair")
    if s.chance(0.4):  # else a reading that loses the score is right
        s.add(V * 2.0**-m / 2 * factor, x_text(s, i))


def both_ways(s: Sketch) -> None:
    """Coordinates that hold 0 only exactly, what cancels and what it leaves, each with both signs on the way out."""
    big = s.power(0, 60 if s.single else 120)
    for C in (big, big * s.u)[: s.pick(1, 2, 2)]:
        c, h, t = s.coordinate(), None, s.token()
        eps = C * s.u * s.pick(1.25, 0.75, 1.5, 0.5)
        parts = [-C, -eps, -eps, 2 * eps]
        start = s.residual and s.chance(0.8)
        if start:
            s["b_E", c] = C
        else:
            parts.append(C)
        for part in parts:
            h = s.head({t})
            s.value(h, s.marks[t], part, c)
        s.leave(c, s.pick("nothing", "nothing", "double", "direct") if s.residual else "pair")


MOTIFS = {
    "x lane": x_lane, "constants": constants, "sigmoid": sigmoid, "value sum": value_sum, "masked": masked, "crowd": crowd,
    "hat": hat, "tiny scores": tiny_scores, "both ways": both_ways, "drift": drift,
}  # fmt: skip
WEIGHTS = (0.8, 5, 5, 2.5, 2.5, 0.4, 2, 1.5, 2.5, 1.2)
