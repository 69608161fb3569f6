"""The machine: the CPU or a GPU that torch can use, and how many threads small work should use."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .errors import InputError


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
    """Inside the block torch runs on one thread: for small work, waking a second one costs more than it saves."""
    before = torch.get_num_threads()
    if not when or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
