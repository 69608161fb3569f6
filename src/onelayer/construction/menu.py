"""What a caller may choose between: the method, and the kind of heads."""

from typing import Literal

Method = Literal["polished", "solved", "representative"]
Construction = Literal["auto", "gates", "memory"]
# the families of heads that are made for an attention; softmax attention has the one that the construction says
FAMILIES: dict[str, tuple[str, ...]] = {
    "linear": ("gates",),
    "local": ("gates",),
    "sigmoid": ("ridges",),
    "sparsemax": ("ramps",),
}
