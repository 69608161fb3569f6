"""Keyboard interrupts at a convenient moment: deferred to the end of a step, or immediate and final."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class DeferredInterrupt:
    """Within it the first interrupt is only noted (`bool(interrupted)`), so that a step ends whole; a second one is raised.

    Interrupts reach the main thread alone; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: Any = None

    def __bool__(self) -> bool:
        return self.noted

    def __enter__(self) -> "DeferredInterrupt":
        if _interrupts_are_ours():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def call(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call back; an interrupt that the callback raises is noted too."""
        try:
            callback(*arguments)
        except KeyboardInterrupt:
            self.noted = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True


class _FinalInterrupt(BaseException):
    """Not a KeyboardInterrupt, so that no search catches it and returns its best result so far."""


@contextmanager
def immediate_interrupt() -> Iterator[None]:
    """Within it the first interrupt ends the work, even where a search would return its best result so far."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _FinalInterrupt

    if not _interrupts_are_ours():
        yield
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    except _FinalInterrupt:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupts_are_ours() -> bool:
    """Whether interrupts reach this thread and nobody else handles them."""
    main = threading.current_thread() is threading.main_thread()
    return main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
