"""Models and forms in ball arithmetic, from their stored numbers alone: what floating point is measured against."""

import math

from flint import arb, ctx

BITS = 160


def balls(t):
    return [balls(row) for row in t] if isinstance(t, list) else arb(t)


def dot(a, b):
    return sum((p * q for p, q in zip(a, b, strict=True)), arb(0))


def times(row, W):
    """row @ W, skipping zeros."""
    used = [(v, w) for v, w in zip(row, W, strict=True) if not v.is_zero()]
    return [sum((v * w[i] for v, w in used), arb(0)) for i in range(len(W[0]))]


def added(a, b):
    with ctx.workprec(BITS):
        return [p + q for p, q in zip(a, b, strict=True)]


def softmax(scores):
    top = max(float(s.mid()) for s in scores)
    e = [(s - top).exp() for s in scores]
    total = sum(e, arb(0))
    return [v / total for v in e]


def exact_model(model, x, places):
    """T(x) for one point x [D], the outputs of all places, by the paper's formulas with real numbers."""
    c = model.config
    w = {k: balls(t.double().tolist()) for k, t in model.state_dict().items()}
    with ctx.workprec(BITS):
        tokens = []
        for t in range(c.tokens):
            own = x[t * c.features_in : (t + 1) * c.features_in]
            normal = [(arb(float(v)) - s) * r for v, s, r in zip(own, w["shift"][t], w["scale"][t], strict=True)]
            e = added(times(normal, w["W_E"]), w["b_E"])
            tokens.append(added(e, w["P"][t]) if c.code != "none" else e)
        tokens += w.get("S", [])
        found = []
        for place in places:
            asking = tokens[c.read_rows.start + place]
            concat = []
            for h in range(c.heads):
                q = times(asking, w["W_Q"][h])
                scores = [dot(q, times(e, w["W_K"][h])) / math.sqrt(c.d_k) for e in tokens]
                alpha = softmax(scores)
                values = [times(e, w["W_V"][h]) for e in tokens]
                concat += [dot(alpha, [v[i] for v in values]) for i in range(c.d_v)]
            a = times(concat, w["W_O"])
            h = added(asking, a) if c.residual else a
            hidden = [v if v > 0 else v * 0 if v < 0 else v.max(arb(0)) for v in added(times(h, w["W_1"]), w["b_1"])]
            f = added(times(hidden, w["W_2"]), w["b_2"])
            y = added(h, f) if c.residual else f
            found += added(times(y, w["W_R"]), w["b_R"])
        return found


def exact_form(form, frame, x):
    """T(x) of a form for one point x [D]."""
    with ctx.workprec(BITS):
        at = [(arb(float(v)) - arb(s)) * arb(r) for v, s, r in zip(x, frame.shift, frame.scale, strict=True)]
        total = [arb(b) + dot(at, balls(form.linear[:, o].tolist())) for o, b in enumerate(form.bias.tolist())]
        for block in form.blocks:
            numbers = (t.tolist() for t in (block.keys, block.biases, block.values, block.slopes))
            for keys, biases, values, slopes in zip(*numbers, strict=True):
                there = [t for t, b in enumerate(biases) if b > -math.inf]
                alpha = softmax([dot(at, balls(keys[t])) + arb(biases[t]) for t in there])
                for o in range(len(total)):
                    vs = [arb(values[t][o]) + dot(at, balls([s[o] for s in slopes[t]])) for t in there]
                    total[o] += dot(alpha, vs)
        return total


def exact_hinges(hinges, values, frame, x):
    """Σ values·relu(a·x̂ + b)."""
    with ctx.workprec(BITS):
        at = [(arb(float(v)) - arb(s)) * arb(r) for v, s, r in zip(x, frame.shift, frame.scale, strict=True)]
        units = zip(hinges.directions.tolist(), hinges.offsets.tolist(), strict=True)
        active = [(dot(at, balls(a)) + arb(b)).max(arb(0)) for a, b in units]
        return [dot(active, balls(values[:, o].tolist())) for o in range(values.shape[1])]


def within(a, b, bound):
    """Whether |a − b| ≤ bound is proved, up to the width of the balls (some 2^−100)."""
    with ctx.workprec(BITS):
        return bool(abs(a - b) <= arb(bound) + arb(2) ** -100)
