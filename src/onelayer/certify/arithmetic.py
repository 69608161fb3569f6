"""The floating-point arithmetic that a model is deployed in."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arithmetic:
    """IEEE 754 rounding to nearest: u the unit roundoff, `smallest` above every underflow, exp within so many u."""

    name: str
    u: float
    smallest: float
    exp_units: float = 4.0


FLOAT64 = Arithmetic("float64", 2.0**-53, 2.0**-1070)
FLOAT32 = Arithmetic("float32", 2.0**-24, 2.0**-145)
