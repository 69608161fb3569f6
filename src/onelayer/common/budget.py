"""Budget: how long work may take, and how many boxes a proof may examine."""

import time
from dataclasses import dataclass, field
from threading import Event


class OutOfTime(Exception):
    """The time is up in the middle of a step; whoever holds a valid result from before catches this."""


@dataclass
class Budget:
    """Seconds from its creation, and boxes; a keyboard interrupt ends it early."""

    seconds: float = 60.0
    boxes: int = 200_000
    interrupted: Event = field(default_factory=Event)
    started: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self.started

    @property
    def left(self) -> float:
        """Seconds that remain, at least 0."""
        return max(self.seconds - self.elapsed, 0.0)

    def over(self, boxes: int = 0) -> bool:
        """Whether the time is up, or this many boxes are too many."""
        return self.interrupted.is_set() or boxes > self.boxes or self.elapsed > self.seconds

    def require_time(self) -> None:
        """Raise OutOfTime if the time is up: for loops inside one step."""
        if self.over():
            raise OutOfTime

    def share(self, fraction: float) -> "Budget":
        """A budget of this fraction of the seconds that remain; the interrupt is shared."""
        return self.up_to(fraction * self.left)

    def up_to(self, seconds: float) -> "Budget":
        """A budget of at most this many of the seconds that remain; the interrupt is shared."""
        return Budget(min(seconds, self.left), self.boxes, self.interrupted)
