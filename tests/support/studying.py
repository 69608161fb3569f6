"""Measures for tests of studies: every call leaves a line in a file; and what is left to compare."""

import collections
import os
import signal
import time
from pathlib import Path


def noted(point):
    """Note the call, wait, answer; points with fail=… go wrong."""
    time.sleep(point.get("seconds", 0.0))
    with Path(point["log"]).open("a") as file:
        file.write(f"{point['n']}\n")
    if point["n"] == point.get("fail", -1):
        raise ValueError(f"n = {point['n']} is not liked")
    return {"square": point["n"] ** 2, "worker": os.getpid()}


def deadly(point):
    """One of the points kills its process."""
    if point["n"] == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    return {"square": point["n"] ** 2}


def wrong(point):
    """A result that is not plain."""
    return {"list": [1, 2]}


def stubborn(point):
    """Interrupted, it answers with what it has."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        return {"square": -1}
    return {"square": 0}


def counted(log):
    return collections.Counter(map(int, log.read_text().split())) if log.exists() else collections.Counter()


def table_of(study):
    """The rows, without what depends on the process that measured them."""
    return [{k: v for k, v in row.items() if k not in ("worker", "spent")} for row in study.rows]
