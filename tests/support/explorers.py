"""A running explorer for tests: a real server process on a free port, and what is left of it afterwards."""

import os
from contextlib import contextmanager

import explorer


@contextmanager
def serving(*options):
    """A server that is ended afterwards."""
    with explorer.serving(*options) as (process, address):
        yield Server(process, address)


class Server:
    def __init__(self, process, address):
        self.process, self.address = process, address

    @property
    def workers(self):
        """Process numbers of the workers."""
        return children(self.process.pid)

    @property
    def jobs(self):
        """Process numbers of the jobs that run: forks of the workers."""
        return [job for worker in self.workers for job in children(worker)]

    @property
    def memory(self):
        """Bytes that the server itself holds."""
        with open(f"/proc/{self.process.pid}/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
