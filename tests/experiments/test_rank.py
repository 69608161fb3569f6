"""A layer cut to a smaller rank: what a study says of it."""

import pytest

from onelayer.experiments.study.measures.rank import rank

POINT = {"target": "bump", "formula": "exp(-(x1-0.5)**2)", "domain": "0:1", "margin": 0.0, "tolerance": 1e-2}
POINT |= {"steps": 20, "seed": 0}


@pytest.mark.parametrize("way", ["constructed", "trained"])
def test_the_bound_is_above_what_is_seen_and_the_full_rank_changes_nothing(way):
    none, whole = (
        rank(POINT | {"way": way, "circuit": "OV", "rank": r}) for r in (0, 1 if way == "constructed" else 4)
    )
    assert 0 < none["changed"] <= none["bound"]
    assert none["cut_off"] > 0.1 > 1e-9 > whole["bound"]
    assert whole["observed"] < none["observed"]
    assert (whole["verdict"] == "CERTIFIED") == (way == "constructed")
