"""The explorer's scripts without a browser: the numbers and colours that they show are those of the certificate."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from decimal import Decimal
from importlib import resources

import numpy as np
import pytest

import onelayer as ol
from onelayer.apps.web.job import view
from reading import Truth

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node: apt-get install nodejs")
PAGE = """
const places = {}, place = (id) => (places[id] ??= { textContent: "", dataset: {}, setAttribute() {} }), heard = {}, drawn = {};
globalThis.document = { getElementById: place, addEventListener: (name, act) => { heard[name] = act; }, dispatchEvent() {} };
globalThis.Plotly = { react: (id, data, layout) => { drawn[id] = { data, layout }; }, purge() {} };
Object.assign(globalThis, { LOOK: {}, FONT: {}, BLUE: "b", GREEN: "g", VERMILION: "v", themed: (layout) => layout });
globalThis.decoded = (given) => given;
Object.assign(globalThis, { DATA: { layer: null, scenes: [] }, Walk: { mount: () => ({ moveTo() {} }) } });
globalThis.soon = (name, work) => work();
"""


@pytest.fixture
def run(tmp_path):
    """Run a script next to the explorer's own; what it prints, as JSON."""
    for asset in (resources.files("onelayer.apps.web") / "assets").iterdir():
        if asset.name.endswith(".js"):
            (tmp_path / asset.name).write_text(asset.read_text())
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def answer(script, given):
        (tmp_path / "given.json").write_text(json.dumps(given))
        start = 'import { readFileSync } from "node:fs";\nconst given = JSON.parse(readFileSync("given.json"));\n'
        (tmp_path / "run.js").write_text(start + PAGE + script)
        done = subprocess.run([NODE, "run.js"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return answer


@pytest.fixture(scope="module")
def shown():
    approx = ol.build("sin(3*x1)*x2", [(0, 1)] * 2, 1e-2)
    certificate = replace(approx.certificate, tolerance=7.123456789e-05, bound=6.432144e-05, observed=2.1976887e-06)
    found = view(replace(approx, certificate=certificate))
    figure = next(f for name, f in found["data"]["figures"].items() if name.startswith("error"))
    return {k: v for k, v in found.items() if k not in ("data", "sections")}, figure


def test_numbers_are_rounded_the_safe_way(run):
    values = [0.01, 0.99995, 0.999949, 123.0, *(10 ** np.random.default_rng(0).uniform(-13, 7, 500)).tolist()]
    script = 'const n = await import("./numbers.js");\n'
    script += "console.log(JSON.stringify(given.map((v) => [n.atMost(v), n.atLeast(v)])));"
    for value, (high, low) in zip(values, run(script, values), strict=True):
        assert Decimal(low) <= Decimal(value) <= Decimal(high)
        assert Decimal(high) <= Decimal(value) * Decimal("1.0011")
        assert Decimal(low) * Decimal("1.0011") >= Decimal(value)
    unknown = "console.log(JSON.stringify([NaN, Infinity, undefined, 0].map(n.atMost)));"
    assert run('const n = await import("./numbers.js");\n' + unknown, None) == ["∞", "∞", "∞", "0"]


@pytest.mark.parametrize("share", [0.5, 0.9999, 1.0, 7.0])
def test_a_box_never_says_more_than_the_certificate(run, shown, share):
    layer, _ = shown
    size = share * layer["bound"]
    patch = {"coordinates": [0, 1], "lower": [[0, 0]], "upper": [[1, 1]], "low": [[-size]], "high": [[size]]}
    script = """const p = await import("./point.js");
    const layer = { ...given.layer, drawn: [] };
    p.setLayer(layer);
    p.setBoxes(layer, { extra: [0], patches: [given.patch] });
    heard.moved({ detail: { x: [0.5, 0.5], output: 0, found: { value: 0.25 } } });
    console.log(JSON.stringify(places.box.textContent));
    process.exit(0);"""
    told = run(script, {"layer": layer, "patch": patch})
    box, whole = map(float, re.search(r"≤ (\S+) is proved \((\S+) on the whole domain\)", told).groups())
    assert whole == float(layer["bound_text"]) >= layer["bound"]
    assert min(size, layer["bound"]) <= box <= whole


def test_trained_errors_have_the_colours_of_constructed_ones(run, shown):
    layer, figure = shown
    moment = {"event": "moment", "step": 50, "largest": 4.3219876e-05, "seconds": 1.0, "axes": [[0, 1], [0, 1]]}
    moment["error"] = {"data": [1e-5, -1e-5, 0, 0]}
    script = """const lines = [{ event: "size", steps: 100, parameters: 9 }, given.moment].map((e) => JSON.stringify(e) + "\\n");
    globalThis.fetch = async () => new Response(lines.join(""));
    const t = await import("./training.js");
    t.setOpponent(given.layer, {});
    await t.train();
    console.log(JSON.stringify([drawn, places["training-status"].textContent]));"""
    drawn, told = run(script, {"layer": layer, "moment": moment})
    own = next(trace for trace in figure["data"] if trace["type"] == "heatmap")
    (trained,) = drawn["trained"]["data"]
    assert trained["zmid"] == 0
    assert (trained["colorscale"], trained["reversescale"]) == (own["colorscale"], own["reversescale"])
    low, high = trained["colorscale"][0][1], trained["colorscale"][-1][1]
    assert (low, high) == ("rgb(103,0,31)", "rgb(5,48,97)")  # red to blue, reversed: errors above 0 are red
    truth = Truth({"bound": layer["bound"]}, {"observed": layer["observed"], "largest": moment["largest"]})
    assert truth.read(told) == {"largest"}
    words = " ".join(
        line.get("hovertemplate", "") + " ".join(line.get("text", [])) for line in drawn["convergence"]["data"]
    )
    assert truth.read(words.replace("<extra>", " ").replace("</extra>", " ")) == {"bound", "observed", "largest"}
