"""One layer applied several times: x² within 4^(−m−1) after m steps, and pointers followed to their end, with zero slack."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from onelayer.common.errors import InputError
from onelayer.construction.gallery.lower_bounds import relus_needed
from onelayer.construction.gallery.repeated import follow_pointers, square

both = pytest.mark.parametrize("dtype", ["float64", "float32"])


def off(proved, x, steps):
    """The exact errors after this many steps."""
    x = x.to(proved.repeated.layer.W_E.dtype)
    y = proved.repeated.after(x[:, None, None], steps).flatten()
    return [Fraction(b) - Fraction(a) ** 2 for a, b in zip(x.tolist(), y.tolist(), strict=True)]


def hard_numbers(steps):
    """Random numbers, ends, subnormal ones, neighbours of ½ and 1, and the midpoints where the error is largest."""
    drawn = torch.rand(300, dtype=torch.float64, generator=torch.Generator().manual_seed(steps))
    special = [0.0, 1.0, 0.5, 5e-324, 1e-30, 2**-53, 1 - 2**-53, 0.5 - 2**-54, 0.5 + 2**-53, 2 / 3, 1 / 3]
    middle = (2 * torch.randint(2**steps, (50,)).double() + 1) / 2 ** (steps + 1)
    return torch.cat([drawn, torch.tensor(special, dtype=torch.float64), middle])


@both
@pytest.mark.parametrize("steps", [0, 1, 2, 5, 9, 13, 25, 48])
def test_the_error_after_every_step_is_within_its_bound(dtype, steps):
    proved = square(dtype=dtype)
    errors = off(proved, hard_numbers(steps), steps)
    assert max(map(abs, errors)) <= Fraction(proved.bound(steps))
    assert max(errors) >= Fraction(1, 4 ** (steps + 1))  # the bound is attained
    assert proved.bound(steps) < 4.0 ** -(steps + 1) + (steps + 8) * torch.finfo(getattr(torch, dtype)).eps / 2


def test_the_error_is_the_one_that_theory_states_exactly():
    x = torch.arange(2**10 + 1, dtype=torch.float64) / 2**10  # all products fit: nothing is rounded
    proved = square()
    for steps in range(13):
        y = [Fraction(v) for v in x.tolist()]
        for _ in range(steps):
            y = [2 * min(v, 1 - v) for v in y]
        assert off(proved, x, steps) == [v * (1 - v) / 4**steps for v in y]


@both
@given(x=st.floats(0, 1), power=st.integers(1, 20))
def test_where_it_halts_the_error_is_below_the_tolerance_and_steps_follow_the_number(dtype, x, power):
    proved = square(4.0**-power, dtype=dtype)
    number = torch.tensor([[[x]]], dtype=torch.float64).to(getattr(torch, dtype))
    found = proved.repeated.run(number)
    assert found.halted.item()
    assert found.steps.item() <= power
    assert abs(Fraction(found.answers.item()) - Fraction(number.item()) ** 2) <= Fraction(proved.bound())


def test_short_binary_numbers_need_fewer_steps():
    found = square(4.0**-15).repeated.run(torch.tensor([0.0, 1.0, 0.5, 0.75, 0.3], dtype=torch.float64)[:, None, None])
    assert found.steps.tolist() == [1, 1, 2, 3, 15]


def test_a_changed_weight_ends_the_proof_and_is_seen():
    proved = square()
    assert proved.bound(8) < 4e-6
    with torch.no_grad():
        proved.repeated.layer.W_2[2, 2] = -0.74
    assert math.isinf(proved.bound(8))
    assert math.isinf(proved.bound())
    assert max(map(abs, off(proved, hard_numbers(8), 8))) > 4e-6


def test_equal_pieces_attain_the_least_number_of_relus():
    for tolerance in (0.2, 0.03, 4.0**-5, 1e-4, 1 / 8, 1 / 32):
        pieces = relus_needed(tolerance) + 1
        assert Fraction(1, 8 * pieces**2) <= Fraction(tolerance)
        assert pieces == 1 or Fraction(1, 8 * (pieces - 1) ** 2) > Fraction(tolerance)
        grid = np.linspace(0, 1, pieces + 1)
        x = np.linspace(0, 1, 4001)
        chords = np.interp(x, grid, grid**2) - 1 / (8 * pieces**2)
        assert np.abs(chords - x**2).max() <= tolerance * (1 + 1e-9)


def ends(g):
    """Where each chain ends, the number of steps the layer should take, and whether all chains end."""
    found, steps = [], 1
    for i in range(len(g)):
        here, taken = g[i], 1
        while g[here] != here:
            here, taken = g[here], taken + 1
            if taken > len(g):
                return None, 0
        found, steps = [*found, here], max(steps, taken)
    return found, steps


def check(proved, lists):
    answers, steps, halted = proved.answer(lists)
    for g, answer, taken, stopped in zip(lists, answers, steps, halted, strict=True):
        right, needed = ends(g)
        assert stopped == (right is not None)
        assert not stopped or (answer.tolist() == right and taken == needed)


@both
def test_all_short_lists_are_followed_to_their_end_and_cycles_never_halt(dtype):
    proved = follow_pointers(5, dtype=dtype)
    check(proved, [list(g) for n in range(1, 5) for g in itertools.product(range(n), repeat=n)])  # padded together
    check(proved, [list(g) for g in itertools.product(range(5), repeat=5)][::5])
    assert proved.bound() < 2e-5


@pytest.mark.one_in(2)
@both
def test_long_lists_take_as_many_steps_as_their_longest_chain(dtype):
    rng = np.random.default_rng(1)
    proved = follow_pointers(100, dtype=dtype)
    lists = [[max(0, i - int(rng.integers(1, reach + 1))) for i in range(100)] for reach in (1, 2, 5, 99)]
    lists += [rng.permutation(100).tolist(), list(range(100)), [7] * 100, [*range(1, 100), 99], [*range(1, 60), 59]]
    check(proved, lists)
    assert ends(lists[0])[1] == 99
    x = torch.nn.functional.one_hot(torch.tensor([lists[1]]), 100).to(getattr(torch, dtype))
    g = here = np.array(lists[1])
    for steps in range(1, 9):  # every step within the bound, halted or not
        here = g[here]
        found = proved.repeated.after(x, steps)[0, :, 0].detach().double().numpy()
        assert np.abs(found - here).max() <= proved.bound(steps)


def test_a_changed_weight_of_the_pointers_is_seen_and_bad_lists_are_refused():
    proved = follow_pointers(8)
    with pytest.raises(InputError, match="pointers of a list of 3"):
        proved.answer([[0, 1, 3]])
    with torch.no_grad():
        proved.repeated.layer.W_K.mul_(0.001)
    assert math.isinf(proved.bound())
    with pytest.raises(AssertionError):
        check(proved, [[0, 0, 1, 2, 3]])
