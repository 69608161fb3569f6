"""Hostile requests against a real server on loopback: refused in one line, or queued and ended; nothing is left behind."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress

import pytest

from assaults import GOOD, bodies, foreign, malformed, request, slow, wish, wishes
from explorers import Server, alive
from onelayer.apps.web.limits import VisitorLimits

pytestmark = pytest.mark.long  # a server of its own, and many requests

START = """
from onelayer.apps.web import server
from onelayer.apps.web.limits import VisitorLimits
server.HEADER_SECONDS = server.READING_SECONDS = 2.0
server.serve(0, limits=VisitorLimits(body_seconds=2.0, {}), started=lambda address: print(address, flush=True))
"""
SLOW = {"formula": "sin(9*x1*x2*x3) + exp(-40*(x1 - x2)**2)*x3", "domain": "0:1", "tolerance": 1e-6}
EACH = VisitorLimits().each  # jobs of one visitor that may wait
PATIENCE = 60  # seconds until a silent server counts as hanging


@contextmanager
def assailed(errors, limits="seconds=60.0"):
    """A server with short waits, its complaints in a file."""
    with open(errors, "w", encoding="utf-8") as file:
        command = [sys.executable, "-c", START.format(limits)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=file, text=True)
    try:
        found = Server(process, process.stdout.readline().strip())
        assert found.address, errors.read_text()
        assert waited_for(lambda: len(found.workers) == 2)
        assert told(found, wish(host(found), GOOD))[-1]["event"] == "done"  # the workers are warm
        yield found
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
    assert process.returncode == 0
    complaints = errors.read_text()
    assert not any(word in complaints for word in ("Traceback", "never retrieved", "Exception")), complaints


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with assailed(tmp_path_factory.mktemp("server") / "errors") as found:
        yield found


def waited_for(condition, seconds=PATIENCE):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)
    return condition()


def host(server):
    return server.address.removeprefix("http://").rstrip("/")


def connected(server):
    name, _, port = host(server).rpartition(":")
    return socket.create_connection((name, int(port)), timeout=PATIENCE)


def answer(server, data):
    """(status, headers, body), or None if the connection is closed without one; a silent server raises TimeoutError."""
    with connected(server) as connection:
        with suppress(ConnectionResetError, BrokenPipeError):  # refused before its end
            connection.sendall(data)
        response = http.client.HTTPResponse(connection)
        with closing(response):
            try:
                response.begin()
                return response.status, response.headers, response.read()
            except (http.client.RemoteDisconnected, ConnectionResetError):
                return None


def told(server, data):
    """The events of a stream that was admitted."""
    status, _, body = answer(server, data)
    assert status == 200, body
    return [json.loads(line) for line in body.splitlines()]


def built(server):
    """The verdict of a friendly build, once there is room in the queue."""
    end = time.monotonic() + PATIENCE
    while (found := answer(server, wish(host(server), GOOD)))[0] == 429 and time.monotonic() < end:
        time.sleep(0.05)
    events = [json.loads(line) for line in found[2].splitlines()]
    return next((event["verdict"] for event in events if event["event"] == "result"), None)


def assert_refused(name, found, closed=False):
    """A 4xx with one JSON line and the headers of the guard; or, where that is enough, a closed connection."""
    if found is None:
        assert closed, f"{name}: closed without an answer"
        return
    status, headers, body = found
    assert 400 <= status <= 431, (name, status, body[:300])
    assert set(json.loads(body)["error"]) == {"asked", "found", "change"}, name
    assert all(json.loads(body)["error"].values()), (name, body)
    assert b"\n" not in body
    assert headers["X-Content-Type-Options"] == "nosniff", name
    assert "default-src 'none'" in headers["Content-Security-Policy"], name


def test_there_are_more_than_two_hundred():
    cases = [repr(case[1:]) for case in (*malformed("h:1"), *slow("h:1"), *foreign("h:1"), *wishes())]
    assert len(set(cases)) == len(cases) > 400


def test_bytes_that_are_no_http(server):
    for name, data in malformed(host(server)):
        assert_refused(name, answer(server, data), closed=True)


def test_foreign_requests(server):
    for name, data in foreign(host(server)):
        assert_refused(name, answer(server, data))


def test_wishes_that_ask_too_much(server):
    for name, path, record in wishes():
        assert_refused(name, answer(server, wish(host(server), record, path)), closed=len(str(record)) > 2**16)


def test_no_body_hurts_anywhere(server):
    for path in ("/api/parse", "/api/train"):
        for name, body in bodies().items():
            assert_refused(name, answer(server, wish(host(server), body, path)), closed=len(body) > 2**16)


def test_slow_requests_end(server):
    found = {}

    def asked(name, data):
        found[name] = answer(server, data)

    cases = slow(host(server))
    threads = [threading.Thread(target=asked, args=case) for case in cases]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(found) == len(cases)
    for name, outcome in found.items():
        assert_refused(name, outcome, closed=True)
        assert outcome is None or outcome[0] == 408


@pytest.mark.parametrize("first", [b"GET / HT", b"GET /nothing HTTP/1.1\r\nHost: {}\r\nContent-Length: 99999\r\n\r\n"])
def test_a_trickle_ends(server, first):
    """A byte now and then keeps no connection open: neither in the headers nor behind an answer."""
    with connected(server) as connection:
        connection.sendall(first.replace(b"{}", host(server).encode()))
        connection.settimeout(0.2)
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                connection.sendall(b"a")
                if connection.recv(2**16) == b"":
                    break
            except TimeoutError:
                continue
            except (ConnectionResetError, BrokenPipeError):
                break
        else:
            pytest.fail("still open")


def test_garbage_behind_a_request(server):
    good = request(host(server), "GET /api/about HTTP/1.1").replace(b"Connection: close\r\n", b"")
    for rest in (b"\x00\x01\x02\r\n\r\n", b"GET [ HTTP/1.1\r\n\r\n", b"a" * 100_000):
        assert answer(server, good + rest)[0] == 200
    chunked = f"GET /api/about HTTP/1.1\r\nHost: {host(server)}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    with connected(server) as connection:
        connection.sendall(chunked)
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(b"zz\r\n")  # answered already: closed
        while connection.recv(2**16):
            pass


@pytest.mark.long
def test_fifty_at_once(server):
    """Each gets a place in the queue, a start or a 429; then all go away."""
    data = wish(host(server), SLOW)
    connections = [connected(server) for _ in range(50)]
    try:
        for connection in connections:
            connection.sendall(data)
        statuses = []
        for connection in connections:
            response = http.client.HTTPResponse(connection)
            response.begin()
            statuses.append(response.status)
            if response.status == 200:
                assert json.loads(response.readline())["event"] in ("queued", "started")
            else:
                assert "try again" in json.loads(response.read())["error"]["change"]
        assert set(statuses) == {200, 429}
        assert statuses.count(200) == 1 + EACH  # one that runs, and those of this visitor that wait
    finally:
        for connection in connections:
            connection.close()
    assert built(server)


@pytest.mark.long
def test_visitors_share(server):
    """A visitor who fills his places leaves the turn to another one."""
    opened = []

    def asked(visitor, record):
        connection = connected(server)
        opened.append(connection)
        data = wish(host(server), record).replace(
            b"\r\n\r\n", f"\r\nCookie: visitor={visitor * 22}\r\n\r\n".encode(), 1
        )
        connection.sendall(data)
        response = http.client.HTTPResponse(connection)
        response.begin()
        return response

    try:
        many = [asked("a", SLOW) for _ in range(1 + EACH)]
        assert [json.loads(r.readline())["event"] for r in many] == ["started"] + ["queued"] * EACH
        assert asked("a", SLOW).status == 429
        other = asked("b", GOOD)
        assert json.loads(other.readline()) == {"event": "queued", "position": 1 + EACH}
        for connection in opened[: 1 + EACH]:
            connection.shutdown(socket.SHUT_RDWR)  # the responses still hold it
        assert any(json.loads(line)["event"] == "result" for line in other)
    finally:
        for connection in opened:
            connection.close()


@pytest.mark.long
@pytest.mark.parametrize("visitors", [1, 10])
def test_ten_tabs_that_type_at_once_keep_one_build_each(server, visitors):
    """Each tab asks six times, faster than anything can be built, and leaves no request: one job of a tab at any time."""
    assert waited_for(lambda: not server.jobs)
    tabs, keys, told, most, opened, threads = 10, 6, {}, [], [], []

    def asked(tab, last):
        """An admitted request, in the order of the key presses."""
        own = {"tab": f"tab {tab}", "coarse": True, "tolerance": 0.01 + 0.001 * tab if last else 1e-6}
        cookie = f"\r\nCookie: visitor={chr(97 + tab % visitors) * 22}\r\n\r\n".encode()
        opened.append(connected(server))
        opened[-1].sendall(wish(host(server), {**(GOOD if last else SLOW), **own}).replace(b"\r\n\r\n", cookie, 1))
        response = http.client.HTTPResponse(opened[-1])
        response.begin()
        return response

    def read(tab, key, response):
        told[tab, key] = response.status, [json.loads(line)["event"] for line in response]

    for key in range(keys):
        for tab in range(tabs):
            threads.append(threading.Thread(target=read, args=(tab, key, asked(tab, key == keys - 1))))
            threads[-1].start()
        most.append(len(server.jobs))
    for thread in threads:
        thread.join(3 * PATIENCE)
    for connection in opened:
        connection.close()
    assert max(most) <= 1  # one builder in this server
    assert len(told) == tabs * keys
    for (tab, key), (status, names) in told.items():
        assert status == 200, (tab, key, names)
        assert names[-1] == ("done" if key == keys - 1 else "replaced"), (tab, key, names)
        assert ("result" in names) is (key == keys - 1)
    assert waited_for(lambda: not server.jobs)
    assert len(server.workers) == 2


@pytest.mark.long
def test_a_visitor_with_many_tabs_fills_no_more_than_his_places(server):
    """Names of tabs are the visitor's to choose: they give no more than his places in the queue."""
    opened = []
    try:
        statuses = []
        for k in range(2 * EACH):
            connection = connected(server)
            opened.append(connection)
            connection.sendall(wish(host(server), {**SLOW, "tab": f"tab {k}"}))
            response = http.client.HTTPResponse(connection)
            response.begin()
            statuses.append(response.status)
        assert statuses == [200] * (1 + EACH) + [429] * (EACH - 1)
    finally:
        for connection in opened:
            connection.close()
    assert built(server)


@pytest.mark.long
def test_a_job_dies_with_its_worker(server):
    with connected(server) as connection:
        connection.sendall(wish(host(server), SLOW))
        assert waited_for(lambda: len(server.jobs) == 1)
        (job,) = server.jobs
        for pid in server.workers:
            os.kill(pid, signal.SIGKILL)
        assert waited_for(lambda: not alive(job))
    assert built(server)


@pytest.mark.long
def test_thirty_disconnects(server):
    """Before a start, in the queue, in the middle: the next build works, and so does every job that waits."""
    for k in range(30):
        with connected(server) as connection:
            connection.sendall(wish(host(server), {**SLOW, "parameters": 500} if k % 3 == 2 else SLOW,
                                    "/api/train" if k % 3 == 2 else "/api/build"))  # fmt: skip
            if k % 3:
                connection.recv(2**12)
            if k % 5 == 0:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")  # reset
    assert built(server)


def test_a_worker_that_is_killed(server):
    with connected(server) as connection:
        connection.sendall(wish(host(server), SLOW))
        response = http.client.HTTPResponse(connection)
        response.begin()
        for line in response:
            if json.loads(line)["event"] == "progress":
                break
        for pid in server.workers:
            os.kill(pid, signal.SIGKILL)
        last = [json.loads(line) for line in response][-1]
    assert last["event"] == "error"
    assert last["found"] == "the worker ended"
    assert built(server)


@pytest.mark.long
def test_what_does_not_exist_on_its_domain(server):
    for formula in (
        "1/0",
        "1/x1",
        "log(x1 - 2)",
        "sqrt(-1 - x1)",
        "x1**(-0.5)",
        "exp(exp(exp(100)))*x1",
        "exp(900*x1)",
    ):
        for path, more in (("/api/build", {}), ("/api/train", {"parameters": 100})):
            events = told(server, wish(host(server), {"formula": formula, "domain": "0:1", **more}, path))
            assert events[0]["event"] in ("queued", "started")
            assert any(event["event"] == "error" for event in events), (formula, path)
            assert events[-1]["event"] == "done", (formula, path)


def test_texts_of_two_thousand_characters_are_read(server):
    """They are formulas: as long as they may be, and read without work that grows faster than they do."""
    for formula in (
        "1+" * 999 + "1",
        ";".join(["x1" + "*x1" * 50] * 12),
        "sin(" * 99 + "x1" + ")" * 99,
        "where(" + "1<" * 900 + "2, x1, 2)",
    ):
        status, _, body = answer(
            server, wish(host(server), {"formula": formula, "domain": "0:" + "1+" * 990 + "1"}, "/api/parse")
        )
        assert status == 200, body[:200]


@pytest.mark.long
def test_a_client_that_does_not_read(server):
    """What was sent is not taken: the connection is cut, and the next visitor's job runs."""
    ask = request(host(server), "GET /assets/plotly.js HTTP/1.1").replace(b"Connection: close\r\n", b"")
    time.sleep(1.0)  # earlier visitors are gone
    before = descriptors(server)
    with connected(server) as connection:
        connection.sendall(ask * 20)
        assert waited_for(lambda: descriptors(server) > before)
        assert waited_for(lambda: descriptors(server) <= before)
    assert built(server)


def descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def threads(server):
    return len(os.listdir(f"/proc/{server.process.pid}/task"))


def test_nothing_is_left(server):
    """Workers, zombies, threads, open files and memory after a mixture of all of it are what they were."""
    assert built(server)  # a worker that an earlier test killed is replaced when it is needed: two at most
    assert waited_for(lambda: 1 <= len(server.workers) <= 2)
    name = host(server)
    before = {"files": descriptors(server), "threads": threads(server), "memory": server.memory}
    for _, data in malformed(name):
        answer(server, data)
    for _, path, record in wishes()[::3]:
        answer(server, wish(name, record, path))
    waiting = [connected(server) for _ in range(50)]
    for k, connection in enumerate(waiting):
        connection.sendall(wish(name, SLOW) if k % 2 else slow(name)[k % 8][1])
    for connection in waiting:
        connection.close()
    for _ in range(3):
        assert built(server)
    assert waited_for(lambda: 1 <= len(server.workers) <= 2 and all(map(alive, server.workers)))
    assert waited_for(lambda: descriptors(server) <= before["files"] + 4), descriptors(server)
    assert waited_for(lambda: threads(server) <= before["threads"] + 2), threads(server)
    assert server.memory <= before["memory"] + 60 * 2**20
    assert built(server) == "CERTIFIED"


@pytest.mark.long
def test_time_is_limited(tmp_path):
    with assailed(tmp_path / "errors", "seconds=8.0") as server:
        events = told(server, wish(host(server), SLOW))
        assert events[-1]["event"] == "error"
        assert "8 s were not enough" in events[-1]["found"]
        assert built(server)


@pytest.mark.long
def test_memory_is_limited(tmp_path):
    with assailed(tmp_path / "errors", "seconds=60.0, memory=2**26") as server:
        hungry = {**SLOW, "tolerance": 1e-4, "units": 2000}
        events = told(server, wish(host(server), hungry))
        assert any(event["event"] == "error" for event in events)
        assert waited_for(lambda: len(server.workers) == 2)
        assert answer(server, wish(host(server), GOOD, "/api/parse"))[0] == 200
