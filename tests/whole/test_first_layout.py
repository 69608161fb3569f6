"""Folders written before the residual stream carried outputs and x: they are read, proved and checked as ever.

`tests/support/first_layout` holds five of them, as `build` and `save` wrote them at commit 8f8b7b9.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

import onelayer as ol
from checking import forged
from onelayer.checker import check
from onelayer.layer.reading import form_of_model

FOLDERS = sorted((Path(__file__).parent.parent / "support" / "first_layout").iterdir())


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_old_folder_is_read_proved_and_checked(folder):
    approx = ol.load(folder)
    assert not approx.model.config.residual
    reading = form_of_model(approx.model, approx.facts.places)
    assert reading is not None
    assert check(folder).verdict == "VALID"
    again = ol.certify(approx)
    assert again.verdict == "CERTIFIED"
    single = approx.model.W_E.dtype == torch.float32
    unit = np.random.default_rng(0).random((500, approx.domain.dimension))
    x = approx.domain.representable(approx.domain.points(unit), single)
    wrong = np.abs(np.asarray(approx(x)).ravel() - np.asarray(approx.target(x)).ravel())
    assert wrong.max() <= again.bound


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_an_edit_of_an_old_folder_is_found(folder, tmp_path):
    found = check(forged(folder, tmp_path / "f", weights=lambda t: t["b_R"].add_(0.01)), seconds=30.0)
    assert found.verdict == "INVALID"
