"""The examples run as they stand: each prints what it found and a verdict, and its exit status says that it holds."""

import importlib
import sys

import pytest
import torch

import onelayer as ol
from pages import ROOT

EXAMPLES = ROOT / "examples"
RUN_HERE = (
    *("van_der_waals", "sorting", "memory", "surrogate_in_c", "sequence", "error_in_time", "newton_and_descent"),
    *("two_layers", "frozen_block", "monotone_water", "water_density"),
)
LONG = ("van_der_waals", "sequence", "newton_and_descent", "frozen_block")
WITHOUT_MORE = [  # water has tests of its own
    pytest.param(name, marks=pytest.mark.long if name in LONG else ()) for name in RUN_HERE[:-2]
]
RUN_ELSEWHERE = {"demo": "test_demo", "errata": "test_paper"}


def run(name: str) -> int:
    return importlib.import_module(name).main()


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", WITHOUT_MORE)
def test_example_runs(name, capsys):
    assert run(name) == 0
    assert "CERTIFIED" in capsys.readouterr().out


def test_every_example_is_run_and_says_what_you_learn():
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*RUN_HERE, *RUN_ELSEWHERE}
    for name in RUN_HERE:
        about = importlib.import_module(name).__doc__
        assert f"python examples/{name}.py" in about
        assert "What you learn:" in about


@pytest.mark.long
def test_the_water_example_is_honest(capsys):
    """What rests on a sampled constant says so, and what is only observed has no bound."""
    pytest.importorskip("CoolProp")
    import water_density

    slopes = water_density.steepest()
    assert 0.4 < slopes[0] < 0.8
    assert run("water_density") == 0
    out = capsys.readouterr().out
    assert "assumes: the modulus of continuity as declared" in out
    assert "by the declared modulus" in out
    fine = next(line for line in out.splitlines() if line.startswith("nothing assumed"))
    assert fine.endswith("UNDECIDED")
    assert " none " in fine


@pytest.mark.long
def test_water_is_proved_to_be_monotone(capsys):
    pytest.importorskip("CoolProp")
    assert run("monotone_water") == 0
    out = capsys.readouterr().out
    assert out.count("PROVED") == 2
    assert "REFUTED" in out


@pytest.mark.parametrize("name", ["water_density", "monotone_water"])
def test_without_coolprop_there_is_one_clear_line(name, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "CoolProp", None)
    assert run(name) == 2
    assert capsys.readouterr().out == "CoolProp is not installed: pip install 'onelayer[examples]'\n"


def test_without_a_compiler_there_is_one_clear_line(monkeypatch, capsys):
    import surrogate_in_c

    monkeypatch.setattr(surrogate_in_c.shutil, "which", lambda name: None)
    assert surrogate_in_c.main() == 0
    assert "no C compiler" in capsys.readouterr().out


def test_numbers_that_cannot_be_sorted_are_refused(capsys):
    import sorting

    assert sorting.main(["0.5", "2"]) == 2
    assert "between 0 and 1" in capsys.readouterr().out


@pytest.fixture
def trained_a_little(monkeypatch):
    """A way to see whether a few steps of training move the certified function of a frozen block."""
    import frozen_block

    monkeypatch.setattr(frozen_block, "STEPS", 3)
    approx = ol.build(frozen_block.FORMULA, {"x": frozen_block.BOX, "y": frozen_block.BOX}, 0.1)

    def moved(model):
        x, u, _ = frozen_block.drawn(50, torch.Generator().manual_seed(3))
        before = model.certified(x, u)
        frozen_block.train(model)
        return (before - model.certified(x, u)).abs().max().item(), (
            model.certified(x, u) - model.certified(x, u + 1)
        ).abs().max().item()

    return frozen_block, approx, moved


def test_training_leaves_the_frozen_block_alone(trained_a_little):
    example, approx, moved = trained_a_little
    assert moved(example.Comparer(approx)) == (0.0, 0.0)


def test_each_rule_of_the_frozen_block_is_needed(trained_a_little, monkeypatch):
    """Layers that write to its lanes, or tokens that it attends to, change its answers."""
    example, approx, moved = trained_a_little
    with monkeypatch.context() as patched:
        patched.setattr(example, "keep_off", lambda layer, lanes: None)
        assert min(moved(example.Comparer(approx))) > 0
    model = example.Comparer(approx)
    with torch.no_grad():
        model.encoder.layers[1].self_attn.in_proj_weight[:, model.kept - 1] = 0  # FLAG, by which others are hidden
        model.encoder.layers[1].self_attn.in_proj_weight[:, model.kept :] = 0.01  # lanes that are not its own
    assert min(moved(model)) > 0
    post = torch.nn.TransformerEncoderLayer(8, 2, 8, norm_first=False)
    with pytest.raises(ValueError, match="norm_first"):
        example.keep_off(post, 2)
    with pytest.raises(ValueError, match="one answer"):
        example.block_of(ol.gallery.sort(3, 1e-2), 40)
