"""What one server grants its visitors: everything a request could make large has a limit."""

from dataclasses import dataclass


@dataclass(frozen=True)
class VisitorLimits:
    """Characters, variables, outputs and units of a request; seconds and memory of a job; sizes of queues and of what is kept."""

    formula: int = 2000  # characters
    variables: int = 6
    outputs: int = 12
    units: int = 2000
    seconds: float = 120.0  # for one job, proof included
    build: float = 90.0  # of these, for finding a layer and proving it
    memory: int = 4 * 2**30  # bytes a worker may use on top of what it starts with
    waiting: int = 24  # jobs in a queue
    each: int = 12  # of these, from one visitor: a tab has one
    body: int = 2**16  # bytes in a request
    body_seconds: float = 10.0  # for a request to arrive
    kept: int = 32  # model folders held for download
    kept_bytes: int = 2**26
