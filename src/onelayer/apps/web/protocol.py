"""What the server tells a worker, and how a worker says that a job is over. Loads nothing, so that workers start early."""

import json
from dataclasses import asdict
from typing import Any

from .limits import VisitorLimits

DONE: dict[str, Any] = {"event": "done"}
CANCEL = "\n"  # while a job runs; without one it means nothing


def line_of(record: dict[str, Any]) -> str:
    """An order or an event as one line."""
    return json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n"


def settings(limits: VisitorLimits, threads: int, opening: bool) -> str:
    """The first line a worker receives: limits and threads of a job, and whether the layer that the page opens with is wanted."""
    return line_of({"limits": asdict(limits), "threads": threads, "opening": opening})
