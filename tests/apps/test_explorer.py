"""The explorer's JSON: requests in, events out; what is refused, what is cancelled, what is left of it."""

import io
import json
import re
import time
import zipfile
from contextlib import ExitStack

import httpx
import pytest

import onelayer as ol
from explorers import alive, serving
from onelayer.apps.web.app import MENU
from onelayer.apps.web.input import LayerSpec, building_of, spec_of, training_of
from onelayer.apps.web.limits import VisitorLimits
from onelayer.common.errors import InputError

SINES = {"formula": "sin(x1) + sin(x2)", "domain": "0:2*pi", "tolerance": 1e-2}
SLOW = {"formula": "sin(9*x1*x2*x3) + exp(-40*(x1 - x2)**2)*x3", "domain": "0:1", "tolerance": 1e-6}


@pytest.fixture(scope="module")
def server():
    with serving() as found:
        yield found
        workers = found.workers
    assert found.process.returncode == 0  # it ends cleanly, and its workers with it
    assert waited_for(lambda: not any(map(alive, workers)), 5)


@pytest.fixture
def client(server):
    with httpx.Client(base_url=server.address, timeout=100) as found:
        yield found


def events(client, path, record):
    with client.stream("POST", path, json=record) as response:
        assert response.status_code == 200, response.read()
        yield from (json.loads(line) for line in response.iter_lines())


def waited_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def test_a_request_becomes_a_certified_layer(client, tmp_path):
    found = {event["event"]: event for event in events(client, "/api/build", SINES)}
    assert found["result"]["verdict"] == "CERTIFIED"
    assert found["result"]["bound"] <= 1e-2
    assert set(found["result"]["sections"]) == {"function", "heads", "point", "certificate"}
    assert found["covering"]["covering"]["patches"]
    archive = client.get(f"/api/folders/{found['folder']['key']}")
    assert archive.headers["content-type"] == "application/zip"
    zipfile.ZipFile(io.BytesIO(archive.content)).extractall(tmp_path)
    assert ol.check(tmp_path / "layer").verdict == "VALID"
    scope: dict = {}
    exec(found["result"]["code"].replace('"layer"', repr(str(tmp_path / "again"))), scope)
    assert scope["approx"].certificate.bound == found["result"]["bound"]


@pytest.mark.long
def test_training_beside_it(client):
    told = []
    for event in events(client, "/api/train", {**SINES, "parameters": 187}):
        told.append(event)
        if len([e for e in told if e["event"] == "moment"]) == 5:
            break
    size = next(e for e in told if e["event"] == "size")
    moments = [e for e in told if e["event"] == "moment"]
    assert abs(size["parameters"] - 187) <= 0.1 * 187
    assert moments[-1]["step"] > moments[0]["step"]
    assert all(m["largest"] > 0 for m in moments)


def test_a_job_that_is_left_is_killed_and_the_next_one_runs(server, client):
    assert waited_for(lambda: len(server.workers) == 2)
    before = set(server.workers)
    with client.stream("POST", "/api/build", json=SLOW) as response:
        for line in response.iter_lines():
            if json.loads(line)["event"] == "progress":
                break
        assert len(server.jobs) == 1
    assert waited_for(lambda: not server.jobs)
    assert any(e["event"] == "result" for e in events(client, "/api/build", SINES))
    assert set(server.workers) == before  # they are ready for the next job at once


def test_one_job_at_a_time_and_a_queue(server):
    with ExitStack() as stack:

        def asked(client, record):
            lines = stack.enter_context(client.stream("POST", "/api/build", json=record)).iter_lines()
            streams.append(lines)  # closing it would cancel the job
            return json.loads(next(lines))

        streams, most = [], VisitorLimits().each
        first, second = (stack.enter_context(httpx.Client(base_url=server.address, timeout=100)) for _ in range(2))
        event = asked(first, SLOW)
        while event["event"] == "queued":  # the worker is still busy with what was asked before
            event = json.loads(next(streams[0]))
        assert event["event"] == "started"
        assert [asked(second, SINES) for _ in range(most)] == [
            {"event": "queued", "position": k + 1} for k in range(most)
        ]
        refused = second.post("/api/build", json=SINES)
        assert refused.status_code == 429
        assert "try again" in refused.json()["error"]["change"]


def test_the_page_opens_with_a_certified_layer(client, tmp_path):
    found = client.get("/api/opening")
    told = {event["event"]: event for event in map(json.loads, found.text.splitlines())}
    assert list(told) == ["result", "folder", "covering"]
    assert told["result"]["verdict"] == "CERTIFIED"
    preset = client.get("/api/about").json()["presets"][0]
    assert (
        LayerSpec(preset["formula"], preset["domain"], preset["tolerance"]).code(VisitorLimits())
        == told["result"]["code"]
    )
    archive = client.get(f"/api/folders/{told['folder']['key']}")
    zipfile.ZipFile(io.BytesIO(archive.content)).extractall(tmp_path)
    assert ol.check(tmp_path / "layer").verdict == "VALID"


def test_a_coarse_layer_comes_first_and_claims_nothing(client):
    told = list(events(client, "/api/build", {**SINES, "formula": "sin(x1)*cos(x2)", "coarse": True}))
    names = [event["event"] for event in told if event["event"] not in ("queued", "beat")]
    assert names[:2] == ["started", "coarse"]
    coarse, result = (next(e for e in told if e["event"] == name) for name in ("coarse", "result"))
    assert coarse["bound"] is None
    words = re.sub("<[^>]*>", " ", " ".join([coarse["facts"], *coarse["sections"].values()]))
    assert "not proved" in words
    assert "CERTIFIED" not in words
    assert "an observation: it does not prove that none is larger" in words
    assert set(coarse["data"]["figures"]) == {"function-0"}  # its error is not drawn
    assert 'id="error-0"' in coarse["sections"]["function"]  # but has its place
    assert result["verdict"] == "CERTIFIED"
    told = list(events(client, "/api/build", {**SINES, "formula": "1/(x1 - x1)", "coarse": True}))
    assert [event["event"] for event in told if event["event"] not in ("started", "queued", "beat")] == [
        "error",
        "done",
    ]


def test_a_new_request_of_a_tab_takes_the_place_of_the_last_one(server, client):
    with client.stream("POST", "/api/build", json={**SLOW, "tab": "one"}) as first:
        lines = first.iter_lines()
        assert json.loads(next(lines))["event"] == "started"
        with httpx.Client(base_url=server.address, timeout=100) as other:
            told = list(events(other, "/api/build", {**SINES, "tab": "one"}))
        assert any(event["event"] == "result" for event in told)
        assert [json.loads(line)["event"] for line in lines][-1] == "replaced"


def test_a_formula_is_typeset(client):
    found = client.post("/api/parse", json={"formula": "x1/2; sqrt(x2)", "domain": "0:1"}).json()
    assert found["mathml"].startswith("<math")
    assert "<msqrt>" in found["mathml"]


def test_errors_of_a_job_are_one_line(client):
    told = list(events(client, "/api/build", {**SINES, "formula": "1/(x1 - x1)"}))
    error = next(e for e in told if e["event"] == "error")
    assert error["asked"]
    assert error["found"]
    assert error["change"]
    assert told[-1]["event"] == "done"


def test_the_papers_construction_has_a_limit(client):
    for tolerance, found in ((1e-4, "heads"), (0.05, "the paper's construction takes")):
        told = list(events(client, "/api/build", {**SINES, "tolerance": tolerance, "method": "representative"}))
        assert any(e["event"] == "error" and found in e["found"] for e in told)


def test_nothing_but_what_is_there(client):
    for path in ("/nothing", "/assets/../app.py", "/assets/%2e%2e%2fapp.py", "/assets/index.html", "/api/folders/x"):
        response = client.get(path)
        assert response.status_code == 404, path
        assert response.json()["error"]["found"]
    assert client.get("/api/build").status_code == 405


def test_headers_and_foreigners(server, client):
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-content-type-options"] == "nosniff"
    assert "httponly" in page.headers["set-cookie"].lower()
    assert "samesite=strict" in page.headers["set-cookie"].lower()
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 421
    assert client.post("/api/parse", json=SINES, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get("/api/about", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert (
        client.post("/api/parse", content=json.dumps(SINES), headers={"Content-Type": "text/plain"}).status_code == 415
    )
    own = server.address.rstrip("/")
    assert (
        client.post("/api/parse", json=SINES, headers={"Origin": own, "Sec-Fetch-Site": "same-origin"}).status_code
        == 200
    )


@pytest.mark.parametrize(
    "change",
    [
        {"formula": ""},
        {"formula": 3},
        {"formula": "x" * 3000},
        {"formula": "__import__('os')"},
        {"formula": "x1 +"},
        {"domain": "0:nan"},
        {"domain": "1:0"},
        {"domain": "zero:one"},
        {"formula": "x9"},
        {"formula": "x1;" * 12 + "x1"},
        {"tolerance": 0},
        {"tolerance": -1},
        {"tolerance": float("nan")},
        {"tolerance": 10**400},
        {"tolerance": True},
        {"tolerance": "1e-3"},
        {"units": 10**9},
        {"units": 1.5},
        {"method": "magic"},
        {"construction": ["gates"]},
        {"dtype": "float16"},
        {"more": 1},
        {"slope_tolerance": -1},
        {"slope_tolerance": "0.1"},
        {"properties": 3},
        {"properties": "increasing in"},
        {"properties": "T <= 3; increasing in z"},
        {"properties": "T <= 3; " * 400},
    ],
)
def test_bad_requests_are_refused(change):
    with pytest.raises(InputError):
        spec_of({**SINES, **change}, VisitorLimits())


def test_requests():
    assert spec_of(SINES, VisitorLimits()) == LayerSpec("sin(x1) + sin(x2)", "0:2*pi", 1e-2)
    assert spec_of({"formula": "T*p", "domain": "T=0:1, p=1:2"}, VisitorLimits()).sides == {
        "T": ("0", "1"),
        "p": ("1", "2"),
    }
    assert training_of({**SINES, "parameters": 200}, VisitorLimits())[1] == 200
    for wrong in (None, [], {**SINES}, {**SINES, "parameters": 0}, {**SINES, "parameters": 1e9}):
        with pytest.raises(InputError):
            training_of(wrong, VisitorLimits())


def test_what_a_tab_may_say():
    assert building_of({**SINES, "coarse": True, "tab": "a1"}, VisitorLimits())[1:] == (True, "a1")
    assert building_of(SINES, VisitorLimits())[1:] == (False, "")
    for wrong in (
        None,
        [],
        {**SINES, "coarse": 1},
        {**SINES, "tab": 1},
        {**SINES, "tab": "a" * 41},
        {**SINES, "tab": "é"},
    ):
        with pytest.raises(InputError):
            building_of(wrong, VisitorLimits())


def test_slopes_and_properties_of_a_request():
    asked = {**SINES, "slope_tolerance": 0.1, "properties": " increasing in x1; T <= 3;"}
    spec = spec_of(asked, VisitorLimits())
    assert (spec.slope_tolerance, spec.statements) == (0.1, ["increasing in x1", "T <= 3"])
    assert "slope_tolerance=0.1, properties=['increasing in x1', 'T <= 3']" in spec.code(VisitorLimits())
    with pytest.raises(InputError, match="properties: a variable among x1, x2"):
        spec_of({**SINES, "properties": "convex in z"}, VisitorLimits())


@pytest.mark.long
def test_a_killed_server_leaves_no_worker():
    with serving() as own:
        assert waited_for(lambda: len(own.workers) == 2)
        workers = own.workers
        own.process.kill()
        own.process.wait()
        assert waited_for(lambda: not any(map(alive, workers)), 20)


def test_a_port_that_is_taken_is_one_line(server, capfd, as_user):
    from onelayer.apps.cli import main

    port = server.address.rstrip("/").rpartition(":")[2]
    assert main(["serve", "--port", port]) == 2
    told = capfd.readouterr().err
    assert "asked: port" in told
    assert told.count("\n") == 1


@pytest.mark.long
def test_layers_for_sequences_come_from_a_menu(client):
    page = client.get("/sequences")
    assert page.status_code == 200
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert set(re.findall(r'<option value="(\w+)"', page.text)) == set(MENU)
    found = client.get("/api/sequences/depth").json()
    assert "For all n ≤ 24" in found["intro"]
    assert found["record"]["names"] == ["(", ")"]
    for name in ("balanced", "DEPTH", "depth/9", "..%2f..%2fetc%2fpasswd", "depth%00", "9" * 3000):
        refused = client.get(f"/api/sequences/{name}")
        assert refused.status_code == 404
        assert refused.json()["error"]["change"]
    assert client.post("/api/sequences/depth", json={"longest": 10**9}).status_code == 405
    assert client.get("/assets/sequences.html").status_code == 404


@pytest.mark.long
def test_every_entry_of_the_menu_is_certified(client):
    for name in MENU:
        assert "CERTIFIED" in client.get(f"/api/sequences/{name}").json()["intro"]
