"""What a caller may choose between: the method, and the kind of heads."""

from typing import Literal

Method = Literal["polished", "solved", "representative"]
Construction = Literal["auto", "gates", "memory"]
