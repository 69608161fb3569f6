"""Headless Firefox for tests, by its own remote protocol (Marionette): Playwright drives no stock Firefox."""

import json
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest

FIREFOX = shutil.which("firefox-esr") or shutil.which("firefox")
needs_firefox = pytest.mark.skipif(FIREFOX is None, reason="needs Firefox: apt-get install firefox-esr")


@contextmanager
def firefox(profile, width=1400):
    """A browser with an empty profile in the folder `profile`, closed afterwards."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "user.js").write_text(f'user_pref("marionette.port", {port});\n', encoding="utf-8")
    command = [FIREFOX, "--headless", "--marionette", "--no-remote", "--profile", str(profile)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            page = FirefoxPage(port)
            with page.socket, page.file:
                page.command("WebDriver:SetWindowRect", width=width, height=1000)
                yield page
        finally:
            process.kill()


class FirefoxPage:
    """One page. Messages are JSON, each with its length before it: [0, number, command, arguments] there,
    [1, number, error, result] back."""

    def __init__(self, port: int) -> None:
        deadline = time.monotonic() + 90
        while True:
            try:
                self.socket = socket.create_connection(("127.0.0.1", port), timeout=90)
                break
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
        self.file, self.sent = self.socket.makefile("rb"), 0
        self._read()  # its greeting
        self.command("WebDriver:NewSession")

    def _read(self):
        length = b"".join(iter(lambda: self.file.read(1), b":"))
        return json.loads(self.file.read(int(length)))

    def command(self, name: str, **arguments: object):
        self.sent += 1
        message = json.dumps([0, self.sent, name, arguments]).encode()
        self.socket.sendall(f"{len(message)}:".encode() + message)
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(error["message"])
        return result

    def goto(self, address: str) -> None:
        self.command("WebDriver:Navigate", url=address)

    def evaluate(self, script: str):
        """What the script returns: `return …`."""
        return self.command("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def wait_for(self, condition: str, seconds: float = 60) -> None:
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"return Boolean({condition})"):
            assert time.monotonic() < deadline, f"not within {seconds} s: {condition}"
            time.sleep(0.1)
