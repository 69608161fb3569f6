"""One thread for small work: waking a second one costs more than it brings, and much more on a busy machine."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread(when: bool = True) -> Iterator[None]:
    """Torch runs on one thread inside the block, if `when`; afterwards on as many as before."""
    before = torch.get_num_threads()
    if not when or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
