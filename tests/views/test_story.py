"""The story's mathematics in node and its ready-made layers: what the page says is what Python proves."""

import asyncio
import base64
import json
import re

import httpx
import numpy as np
import pytest
import torch

import onelayer as ol
from in_node import in_node, needs_node
from onelayer.apps.web.app import application
from onelayer.apps.web.job_queue import JobQueue
from onelayer.apps.web.limits import VisitorLimits
from onelayer.target.target import Target
from onelayer.views.page_files import asset
from onelayer.views.sequence_record import sequence_record
from onelayer.views.story_page import SCRIPTS, story_page

MATHEMATICS = ("layer.js", "story_layers.js")
DECODE = """
for (const record of given.records) for (const name of Object.keys(record.layer.weights)) {
  record.layer.weights[name] = decoded(record.layer.weights[name]);
}
"""
RECORD = json.loads(asset("story.json"))
LAYERS = [*RECORD["solved"], *RECORD["polished"]]


def model_of(record):
    """The layer of a record, from the weights that the page computes with."""
    model = ol.SingleLayerTransformer(ol.LayerConfig(**record["config"]))
    arrays = {name: _array(record["weights"][name]) for name in model.state_dict()}
    model.load_state_dict({name: torch.from_numpy(a) for name, a in arrays.items()})
    return model


def _array(record):
    return np.frombuffer(base64.b64decode(record["base64"]), record["dtype"]).reshape(record["shape"]).copy()


@needs_node
def test_the_staircase_is_the_theorem_s_layer(tmp_path):
    plan = ol.plan("x*(2 - x)", {"x": (0, 1)}, 0.4, method="representative")
    built = ol.build("x*(2 - x)", {"x": (0, 1)}, 0.4, method="representative")
    x = np.linspace(0, 1, 41)
    script = """const layer = staircase(middles((x) => x * (2 - x), given.n), given.beta);
    console.log(JSON.stringify(given.x.map((x) => valueAt(layer, [x]))));"""
    page = in_node(tmp_path, MATHEMATICS, script, {"n": plan.counts[0], "beta": plan.sharpness, "x": x.tolist()})
    assert page == pytest.approx(built(x[:, None]).ravel(), abs=1e-13)


@needs_node
def test_sizes_and_bound_are_those_of_the_plan(tmp_path):
    cases = [(2, 0.3), (3, 0.1), (1, 0.75)]
    script = """console.log(JSON.stringify(given.map(([L, e]) => { const s = theoremSizes(L, e);
      return [s.n, s.beta, theoremBound(L, s.n, s.beta)]; })));"""
    for (slope, tolerance), (n, beta, bound) in zip(cases, in_node(tmp_path, MATHEMATICS, script, cases), strict=True):
        plan = ol.plan(f"{slope}*x", {"x": (0, 1)}, tolerance, method="representative")
        assert n <= plan.counts[0] <= n + 1  # the plan also pays for rounding
        assert beta >= plan.sharpness * (1 - 1e-6)  # the plan gives to β what rounding n up leaves over
        assert bound <= tolerance * (1 + 1e-12)


@needs_node
def test_gates_of_two_numbers_are_soft_corners(tmp_path):
    script = """const layer = gateLayer([given.b], given.beta, [1]);
    console.log(JSON.stringify([given.x.map((x) => valueAt(layer, x)), given.x.map((x) => attentionAt(layer, x, 0))]));"""
    b, beta, x = np.array([0.3, 0.6]), 7.0, np.random.default_rng(0).random((20, 2))
    values, shares = in_node(tmp_path, MATHEMATICS, script, {"b": b.tolist(), "beta": beta, "x": x.tolist()})
    gate = 1 / (1 + np.exp(-beta * (x - b)).sum(axis=1))
    assert values == pytest.approx(gate, abs=1e-14)
    assert np.sum(shares, axis=1) == pytest.approx(1)
    assert np.array(shares)[:, -1] == pytest.approx(gate, abs=1e-14)


@needs_node
def test_the_page_computes_the_ready_made_layers_and_their_errors_stay_in_their_boxes(tmp_path):
    x = np.linspace(0, 1, 401)
    f = Target(RECORD["formula"], {"x": (0, 1)}).values(x[:, None]).ravel()
    script = (
        DECODE
        + """console.log(JSON.stringify({ f: given.x.map(storyTarget), layers: given.records.map((r) => ({
      T: given.x.map((x) => valueAt(r.layer, [x])), boxes: proofBoxes(r.covering), switches: switches(r.layer) })) }));"""
    )
    page = in_node(tmp_path, MATHEMATICS, script, {"records": LAYERS, "x": x.tolist()})
    assert page["f"] == pytest.approx(f, abs=1e-14)
    for record, found in zip(LAYERS, page["layers"], strict=True):
        with torch.no_grad():
            T = model_of(record["layer"])(torch.from_numpy(x).reshape(-1, 1, 1)).numpy()[
                :, record["layer"]["places"][0], 0
            ]
        assert found["T"] == pytest.approx(T, abs=1e-10)
        error = np.array(found["T"]) - f
        assert np.abs(error).max() <= record["bound"]
        assert len(found["switches"]) == record["units"] == record["layer"]["config"]["heads"]
        boxes = found["boxes"]
        assert (boxes[0]["from"], boxes[-1]["to"]) == (0, 1)
        for box, following in zip(boxes, [*boxes[1:], None], strict=True):
            assert following is None or box["to"] == following["from"]
            inside = (box["from"] <= x) & (x <= box["to"])
            assert ((box["low"] <= error[inside]) & (error[inside] <= box["high"])).all()


@pytest.mark.parametrize("at", [0, *(pytest.param(k, marks=pytest.mark.long) for k in range(1, len(LAYERS)))])
def test_the_ready_made_layers_are_proved_again(at):
    record = LAYERS[at]
    target = Target(RECORD["formula"], {"x": (0, 1)})
    proved = ol.certify(model_of(record["layer"]), target, RECORD["tolerance"], places=tuple(record["layer"]["places"]))
    assert proved.verdict == record["verdict"]
    assert proved.bound == pytest.approx(record["bound"], rel=1e-6)
    assert proved.observed <= record["bound"]


def test_a_changed_weight_is_not_covered_by_the_old_proof():
    record = RECORD["polished"][4]
    assert record["verdict"] == "CERTIFIED"
    model = model_of(record["layer"])
    with torch.no_grad():
        model.W_O.view(-1)[model.W_O.view(-1).nonzero()[0]] *= 1.001
    target = Target(RECORD["formula"], {"x": (0, 1)})
    assert ol.certify(model, target, RECORD["tolerance"], places=(0,)).verdict == "REFUTED"


def test_the_layer_that_looks_twice_is_proved():
    layer, record = ol.gallery.any_length.induction(longest=8, vocabulary=3), RECORD["induction"]["layer"]
    assert layer.certificate.verdict == "CERTIFIED"
    assert record["weights"] == sequence_record(layer)["weights"]
    assert layer.model.config.heads == 15


@needs_node
def test_numbers_are_never_rounded_to_the_wrong_side(tmp_path):
    numbers = [*np.random.default_rng(1).lognormal(0, 9, 300).tolist(), 0.1, 0.3, 1e-5, 0.258, 123.0, 999.9]
    numbers += [-v for v in numbers]
    script = """const shown = (t) => { const [m, p] = t.replace("−", "-").split(/·?10(?=[⁻⁰¹²³⁴⁵⁶⁷⁸⁹])/);
      const e = p ? Number([...p].map((c) => c === "⁻" ? "-" : "⁰¹²³⁴⁵⁶⁷⁸⁹".indexOf(c)).join("")) : 0;
      return Number(`${p && m === "" ? 1 : p && m === "-" ? -1 : m}e${e}`); };
    console.log(JSON.stringify(given.map((v) => [shown(roundedDown(v)), shown(roundedUp(v))])));"""
    for v, (down, up) in zip(numbers, in_node(tmp_path, MATHEMATICS, script, numbers), strict=True):
        assert down <= v <= up
        assert up - down <= 0.0101 * abs(v)


def test_every_word_is_explained():
    page = asset("story.html")
    asked, known = set(re.findall(r'data-word="(\w+)"', page)), set(re.findall(r'<dt id="word-(\w+)"', page))
    assert asked == known
    assert {"gate", "anchor", "certificate", "softmax"} <= known


def test_the_page_is_one_file():
    page = story_page([("On & on", "on.html")])
    assert '<a href="on.html">On &amp; on</a>' in page
    assert "<script src" not in page
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)


def test_the_explorer_serves_it_with_scripts_of_its_own():
    async def fetched(*paths):
        limits = VisitorLimits()
        transport = httpx.ASGITransport(
            app=application(limits, frozenset({"story.test"}), JobQueue(limits), JobQueue(limits))
        )
        async with httpx.AsyncClient(transport=transport, base_url="http://story.test") as client:
            return [await client.get(path) for path in paths]

    page, *scripts = asyncio.run(fetched("/story", *(f"/assets/{name}" for name in SCRIPTS)))
    assert page.status_code == 200
    assert re.findall(r"<script src=\"/assets/([\w.]+)\"", page.text) == list(SCRIPTS)
    assert all(found.headers["content-type"].startswith("text/javascript") for found in scripts)
