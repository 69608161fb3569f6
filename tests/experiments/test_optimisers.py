"""Four methods move the same units from the same start."""

import pytest
import torch

from onelayer.experiments.study.measures import optimisers
from onelayer.experiments.study.measures.optimisers import optimise

POINT = {
    "target": "runge",
    "formula": "1/(1 + 25*x1**2)",
    "domain": "-1:1",
    "margin": 0.0,
    "family": "gates",
    "units": 2,
}
POINT |= {"seed": 0, "seconds": 0.1}


@pytest.mark.parametrize("optimiser", ["polishing", "marquardt", "lbfgs", "adam"])
def test_the_start_is_shared_and_improved(optimiser):
    found, other = (optimise(POINT | {"optimiser": name}) for name in (optimiser, "lbfgs"))
    assert found["start"] == other["start"]
    assert found["parameters"] == 2 * 2 + 5
    assert 0 < found["rmse"] < found["start"]


def test_seeds_start_elsewhere_and_no_time_changes_nothing():
    one, two = (optimise(POINT | {"optimiser": "marquardt", "seconds": 1e-6, "seed": seed}) for seed in (0, 1))
    assert one["start"] != two["start"]
    assert one["observed"] == one["start"]


def test_what_is_moved_is_the_layer_itself():
    """Φ(θ, x) c is what the heads of that θ compute: values and keys are those of a real layer."""
    family = optimisers.family_of("memory", 1)
    theta = family.start(3, optimisers.ARRANGEMENT["memory"], 0)
    c = torch.arange(1.0, 5.0, dtype=torch.float64)[:, None]
    units = optimisers._Units(family, theta, c)
    x = torch.linspace(-1, 1, 5, dtype=torch.float64)[:, None]
    w = torch.softmax(x @ theta[:, :1].T + theta[:, 1], dim=1)
    assert torch.allclose(units(x), 1 + 2 * x + w[:, 1:] @ c[2:], atol=1e-12)
    assert torch.allclose(units(x[0]), units(x)[0], rtol=0, atol=1e-14)
