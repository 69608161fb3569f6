"""A running explorer for tests: a real server process on a free port, and what is left of it afterwards."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager


@contextmanager
def serving(*options):
    """The address of a server that is ended afterwards."""
    command = [sys.executable, "-m", "onelayer.apps.cli", "serve", "--port", "0", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line + process.stderr.read()
        yield Server(process, found[0])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        process.stdout.close()
        process.stderr.close()


class Server:
    def __init__(self, process, address):
        self.process, self.address = process, address

    @property
    def workers(self):
        """Process numbers of the workers."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/children"
        with open(path, encoding="ascii") as file:
            return [int(pid) for pid in file.read().split()]

    @property
    def memory(self):
        """Bytes that the server itself holds."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
