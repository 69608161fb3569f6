"""Signatures are enforced in the tests: a wrong type, shape, result or field is stopped, and users are not."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float

from cases import plain_config, random_model
from signatures import checked


@checked
def product(a: Float[np.ndarray, "n k"], b: Float[np.ndarray, "k m"], turned: bool = False) -> Float[np.ndarray, "n m"]:
    return (a @ b).T if turned else a @ b


@checked
def half(number: int, *, exact: "bool" = True) -> "int | None":
    return number // 2 if number % 2 == 0 else (0.5 * number if exact else None)


@checked
@dataclass(frozen=True)
class Pair:
    low: Float[np.ndarray, " n"]
    high: Float[np.ndarray, " n"]
    name: str = ""

    @checked
    def width(self, other: "Nowhere") -> float:  # noqa: F821
        return float((self.high - self.low).max())


@checked
def up_to(count: int):
    yield from range(count)


def refused(call):
    with pytest.raises(BeartypeCallHintViolation):
        call()


def test_what_fits_passes():
    assert product(np.ones((2, 3)), np.ones((3, 4))).shape == (2, 4)
    assert product(np.ones((2, 3)), np.ones((3, 2)), turned=True).shape == (2, 2)
    assert half(4) == 2
    assert half(3, exact=False) is None
    assert Pair(np.zeros(2), np.ones(2)).width(None) == 1.0  # a name that is not there says nothing
    assert list(up_to(2)) == [0, 1]


def test_wrong_shapes_and_types_are_stopped():
    refused(lambda: product(np.ones(3), np.ones((3, 4))))
    refused(lambda: product(np.ones((2, 3), dtype=int), np.ones((3, 4))))
    refused(lambda: product(np.ones((2, 3)), np.ones((2, 4))))  # k is 3 and 2
    refused(lambda: half("4"))
    refused(lambda: half(4, exact="yes"))
    refused(lambda: Pair(np.zeros(2), np.ones(3)))
    refused(lambda: Pair(np.zeros(2), np.ones(2), name=3))


def test_wrong_results_are_stopped():
    refused(lambda: product(np.ones((2, 3)), np.ones((3, 4)), turned=True))  # m × n instead of n × m
    refused(lambda: half(3))


def test_axes_are_those_of_one_call():
    for n in (2, 3):
        assert product(np.ones((n, n + 1)), np.ones((n + 1, 1))).shape == (n, 1)


def test_the_package_is_checked():
    refused(lambda: random_model(plain_config()).read(torch.zeros(3, 7, dtype=torch.float64)))


@pytest.mark.usefixtures("as_user")
def test_users_meet_the_functions_as_they_are():
    assert half(3) == 1.5
    assert Pair("low", "high", 3).name == 3
    with pytest.raises(TypeError, match="unsupported operand"):
        half(None)
