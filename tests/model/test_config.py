"""A bad config gives one clear line: asked, found, change."""

import pickle

import numpy as np
import pytest

from cases import plain_config
from onelayer import InputError


@pytest.mark.parametrize(
    ("changes", "mentions"),
    [
        ({"heads": 0}, "heads=0"),
        ({"ffn_width": -3}, "ffn_width=-3"),
        ({"d_k": 1.5}, "d_k=1.5"),
        ({"tokens": True}, "tokens=True"),
        ({"anchor_tokens": -1}, "anchor_tokens=-1"),
        ({"activation": "step"}, "activation='step'"),
        ({"norm": None}, "norm=None"),
        ({"readout": "last"}, "readout='last'"),
        ({"residual": 1}, "residual=1"),
        ({"dropout": 1.0}, "dropout=1.0"),
        ({"dropout": float("nan")}, "dropout=nan"),
        ({"norm_eps": 0.0}, "norm_eps=0.0"),
        ({"norm_eps": -1e-5}, "norm_eps=-1e-05"),
        ({"d_model": 4}, "d_model=4"),
        ({"readout": "output", "output_tokens": 0}, "output_tokens=0"),
    ],
)
@pytest.mark.usefixtures("as_user")
def test_bad_config_is_one_clear_line(changes, mentions):
    with pytest.raises(InputError) as caught:
        plain_config(**changes)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith("asked: ")
    assert "; change: " in message
    assert mentions in message.split("; found: ")[1]


def test_a_good_config_passes():
    config = plain_config(readout="output", norm="post", code="sinusoidal")
    assert (config.special_tokens, config.all_tokens, config.places) == (2, 5, 1)
    assert config.read_rows == slice(4, 5)


@pytest.mark.usefixtures("as_user")
def test_numpy_numbers_are_welcome():
    assert plain_config(tokens=np.int64(3)) == plain_config()
    assert type(plain_config(tokens=np.int64(3)).tokens) is int


def test_an_error_survives_pickling():
    """Worker processes hand errors back by pickling them."""
    error = InputError("a", "b", "c")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
