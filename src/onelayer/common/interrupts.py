"""Interruption: a keyboard interrupt that waits for the end of a step, so that what was done is whole."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Within it the first interrupt is only noted (`bool(interruption)`), a second one strikes at once.

    Interrupts reach the main thread alone; elsewhere nothing is changed.
    """

    def __init__(self) -> None:
        self.noted = False
        self._before: Any = None

    def __bool__(self) -> bool:
        return self.noted

    def __enter__(self) -> "Interruption":
        ours = threading.current_thread() is threading.main_thread()
        if ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def ask(self, callback: Callable[..., None], *arguments: Any) -> None:
        """Call back; an interrupt that it raises is noted too."""
        try:
            callback(*arguments)
        except KeyboardInterrupt:
            self.noted = True

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True


class Halt(BaseException):
    """An interrupt that nobody takes for a wish to have the best so far."""


@contextmanager
def at_once() -> Iterator[None]:
    """Within it the first interrupt strikes, also where work would go on with the best so far."""

    def halt(number: int, frame: FrameType | None) -> None:
        raise Halt

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    before = signal.signal(signal.SIGINT, halt)
    try:
        yield
    except Halt:
        raise KeyboardInterrupt from None
    finally:
        signal.signal(signal.SIGINT, before)
