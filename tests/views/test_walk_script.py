"""The numbers of the walk, in node: those of the real model at every step, for every kind of layer, to 1e-9."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import onelayer as ol
from in_node import in_node, needs_node
from onelayer.formula.vocabulary import RECORDS, SPOKEN
from onelayer.views.pages import formula_record, layer_record
from reports import KINDS

pytestmark = needs_node
SHOWN = ("2-D", "memory", "kink", "sequence", "gallery", "tokens", "memorised", "paper", "data")
SCRIPT = """
const list = (v) => (v.length === undefined ? v : Array.from(v, list));
console.log(JSON.stringify(given.map(({ layer, points }) => {
  for (const name of Object.keys(layer.weights)) layer.weights[name] = decoded(layer.weights[name]);
  return points.map(([x, output]) => {
    const t = traced(layer, x, output), first = t.read[0], by = (name) => list(first.heads.map((head) => head[name]));
    const own = Object.fromEntries(["q", "k", "scores", "alpha", "v", "z", "added"].map((name) => [name, by(name)]));
    return { ...own, row: t.rows[0], value: t.value, tokens: list(t.tokens), h: list(first.h), before: list(first.before),
      hidden: list(first.hidden), y: list(first.y), outs: t.outs, byHead: t.byHead, f: targetAt(layer.target, x, output) };
  });
})));
"""
FORMULAS = (
    "sin(x1)*cos(x2) - tan(x1/4)/exp(x2) + log(2 + x1) + sqrt(x2 + 2)",
    "tanh(x1) + sinh(x2)*cosh(x1) + atan(x1) + asin(x2/3) + acos(x1/3) + sigmoid(x1*x2) + erf(x2)",
    "expm1(x1) + log1p(x2 + 1) + softplus(x1) + sinc(x1 - x2) + exprel(x1) + cbrt(x2) + abs(x1) + sqr(x2)",
    "atan2(x1 + 2, x2) + hypot(x1, x2) + min(x1, x2, 0) + max(x1, x2) + x1**3 + (x2 + 3)**x1 + (x2 + 2)**(1/3)",
    "where(x1 < x2 and not x1 > 0.3 or x2 >= 0.5, pi*x1, e - x2); where(x1 <= x2, 1, -x1)",
    "asinh(x1) + acosh(3 + x2) + atanh(x1/2) + floor(3*x1) + ceil(2*x2) + round(x1*x2) + mod(x1, 0.3) + sign(x2)",
    "sec(x1) + csc(x2 + 2) + cot(x1 + 2) + exp2(x2) + log2(x1 + 2) + log10(x2 + 2)",
)


def points(approx, count=3):
    rng, D = np.random.default_rng(5), approx.domain.dimension
    m = min(int(np.prod(approx.output_shape)), 6)
    if approx.vocabulary:
        x = rng.integers(0, approx.vocabulary, (count, D)).astype(float)
    else:
        low, high = (np.array(end) for end in layer_record(approx)["ends"])
        x = low + rng.uniform(size=(count, D)) * (high - low)
    return [(row.tolist(), k % m) for k, row in enumerate(x)]


def steps_of(approx, x, output):
    """What the real model has on its way, by its own methods."""
    model, c = approx.model, approx.model.config
    given = (
        torch.eye(approx.vocabulary)[torch.tensor(x).long()]
        if approx.vocabulary
        else torch.tensor(x, dtype=torch.float64)
    )
    given = given.reshape(1, c.tokens, c.features_in).to(model.W_E.dtype)
    place, entry = approx.facts.places[output // c.features_out], output % c.features_out
    row = c.read_rows.start + (place if c.readout != "mean" else 0)
    with torch.no_grad():
        e = model.tokens(given)
        q, k, v = (model._project(e, which)[0] for which in "QKV")
        scores = (k @ q[:, row, :, None])[..., 0] / c.d_k**0.5
        alpha = model.attention(given)[0, :, row]
        z = torch.einsum("ht,htw->hw", alpha, v)
        added = torch.einsum("hw,hwm->hm", z, model.W_O.reshape(c.heads, c.d_v, c.d_model))
        a = model.attend(e[:, row : row + 1], e, e.new_zeros(0, c.d_model))[0, 0]
        h = e[0, row] + a if c.residual else a
        before = h @ model.W_1 + model.b_1
        y = model.block(e)[0, row]
        value = model(given)[0, place, entry]
        found = {
            "tokens": e[0],
            "q": q[:, row],
            "k": k,
            "scores": scores,
            "alpha": alpha,
            "v": v,
            "z": z,
            "added": added,
        }
        return found | {"h": h, "before": before, "hidden": before.relu(), "y": y, "value": value}, row


def require_same(told, approx, x, output, name):
    expected, row = steps_of(approx, x, output)
    assert told["row"] == row
    for step, numbers in expected.items():
        numbers = numbers.numpy()
        scale = max(1.0, float(np.abs(numbers).max(initial=0.0)))
        assert np.shape(told[step]) == numbers.shape, (name, step)
        assert np.abs(np.array(told[step]) - numbers).max(initial=0.0) <= 1e-9 * scale, (name, step)


@pytest.mark.parametrize("kinds", [SHOWN[:2], pytest.param(SHOWN[2:], marks=pytest.mark.long)])
def test_every_step_is_that_of_the_model(tmp_path, kinds):
    found = {name: KINDS[name]() for name in kinds}
    given = [{"layer": layer_record(approx), "points": points(approx)} for approx in found.values()]
    told = in_node(tmp_path, ("layer.js", "formula.js"), SCRIPT, given)
    for (name, approx), one, walks in zip(found.items(), given, told, strict=True):
        for (x, output), walk in zip(one["points"], walks, strict=True):
            require_same(walk, approx, x, output, name)
            explained = approx.explain(np.array(x))
            assert walk["byHead"] == pytest.approx(explained.contributions[:, output].tolist(), rel=1e-9, abs=1e-9)


def test_a_changed_weight_is_seen(tmp_path):
    approx = KINDS["memory"]()
    given = [{"layer": layer_record(approx), "points": points(approx, 1)}]
    (walk,) = in_node(tmp_path, ("layer.js", "formula.js"), SCRIPT, given)[0]
    with torch.no_grad():
        approx.model.W_V += 1e-6
    approx = replace(approx, certificate=replace(approx.certificate, weights=approx.model.fingerprint()))
    with pytest.raises(AssertionError):
        require_same(walk, approx, *given[0]["points"][0], "memory")


@pytest.mark.long
def test_a_trained_layer(tmp_path):
    """GELU, read as a mean: the value is that of the model, and the walk follows the first row."""
    approx = KINDS["trained"]()
    given = [{"layer": layer_record(approx), "points": points(approx)}]
    walks = in_node(tmp_path, ("layer.js", "formula.js"), SCRIPT, given)[0]
    for (x, output), walk in zip(given[0]["points"], walks, strict=True):
        expected, _ = steps_of(approx, x, output)
        close = 1e-4 if approx.model.W_E.dtype == torch.float32 else 1e-9
        assert walk["value"] == pytest.approx(float(expected["value"]), abs=close)
        assert walk["byHead"] is None
        assert np.mean(walk["outs"]) == pytest.approx(walk["value"], abs=1e-12)


def test_f_is_that_of_the_formula(tmp_path):
    """Every function of the language, at points all over the domain."""
    here = [name for name in SPOKEN - {"beta"} if name not in RECORDS or RECORDS[name].array]  # beta is made of lgamma
    assert all(f"{name}(" in " ".join(FORMULAS) for name in here)
    assert formula_record(ol.Target("j0(x1)", [(0, 1)]).formula) is None
    targets = [ol.Target(text, [(-1, 1)] * 2) for text in FORMULAS]
    x = np.random.default_rng(0).uniform(-1, 1, (50, 2))
    given = [[formula_record(target.formula), x.tolist(), target.outputs] for target in targets]
    script = """console.log(JSON.stringify(given.map(([target, points, outputs]) =>
      points.map((x) => Array.from({ length: outputs }, (_, o) => targetAt(target, x, o))))));"""
    for target, told in zip(targets, in_node(tmp_path, ("layer.js", "formula.js"), script, given), strict=True):
        assert np.array(told) == pytest.approx(target.values(x), rel=1e-12, abs=1e-12), target.formula.text


def test_f_is_unknown_where_it_is_no_formula_or_has_no_value(tmp_path):
    assert layer_record(KINDS["callable"]())["target"] is None
    target = formula_record(ol.Target("1/x1", [(0.5, 1)]).formula)
    script = "console.log(JSON.stringify([targetAt(null, [1], 0), targetAt(given, [0], 0), targetAt(given, [4], 0)]));"
    assert in_node(tmp_path, ("layer.js", "formula.js"), script, target) == [None, None, 0.25]
