"""Devices: the CPU, or a GPU that torch can use."""

import torch

from .errors import InputError


def device_of(name: str) -> torch.device:
    """The device of that name, if it works."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, TypeError) as error:
        found = str(error).splitlines()[0][:100]
    else:
        if device.type in ("cpu", "cuda"):
            return device
        found = f"{name!r}"
    raise InputError("device 'cpu' or 'cuda', present on this machine", found, "use device='cpu'")
