"""The machine: the CPU or a GPU that torch can use, and how many threads small work should use."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .errors import InputError

_shared = threading.Lock()
_blocks: list[int] = []  # threads before the first block of `one_thread`, then a 1 for each that has not ended


def device_of(name: str) -> torch.device:
    """The device of that name; refused if it does not work."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        known = str(name).startswith(("cpu", "cuda"))
        found = str(error).splitlines()[0][:100] if known else f"{name!r}"
    else:
        if device.type in ("cpu", "cuda"):
            return device
        found = f"{name!r}"
    raise InputError("the device cpu or cuda, present on this machine", found, "use device='cpu'")


@contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """Inside the block torch runs on one thread: for small work, waking a second one costs more than it saves.

    The number is that of the whole process, so blocks that run side by side share it: the last to end brings the old one back.
    """
    if not when:
        yield
        return
    with _shared:
        if not _blocks:
            _blocks.append(torch.get_num_threads())
            torch.set_num_threads(1)
        _blocks.append(1)
    try:
        yield
    finally:
        with _shared:
            _blocks.pop()
            if len(_blocks) == 1:
                torch.set_num_threads(_blocks.pop())
