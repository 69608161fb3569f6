"""Students in a folder: saved, loaded bit by bit, refused if bad, resumed if interrupted."""

import json

import numpy as np
import pytest
import torch
import torch.utils.flop_counter
from safetensors.torch import save_file

import onelayer as ol
from onelayer.apps.cli import main
from onelayer.model.token_encoder import TokenEncoder
from teachers import Deep, network, sequences


def test_an_interrupted_distillation_resumes_to_the_same_weights(tmp_path):
    options = {"heads": 2, "width": 16, "d_model": 8, "steps": 40, "every": 10, "batch": 32}
    whole = ol.distill(Deep().eval(), sequences(), **options)

    class Enough(Exception):
        pass

    def stop(text, share):
        if share >= 0.5:
            raise Enough

    with pytest.raises(Enough):
        ol.distill(Deep().eval(), sequences(), checkpoint=tmp_path / "c", progress=stop, **options)
    parts = ol.distill(Deep().eval(), sequences(), checkpoint=tmp_path / "c", **options)
    for a, b in zip(whole.student.state_dict().values(), parts.student.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(ol.InputError, match="of this very training"):
        ol.distill(Deep().eval(), sequences(), checkpoint=tmp_path / "c", **(options | {"seed": 1}))
    other = Deep().eval()
    with torch.no_grad():
        other.embedding.weight.neg_()
    with pytest.raises(ol.InputError, match="of this very training"):
        ol.distill(other, sequences(), checkpoint=tmp_path / "c", **options)


def test_a_distillation_that_runs_out_of_time_resumes_from_its_last_step(tmp_path):
    options = {"heads": 2, "width": 16, "d_model": 8, "steps": 6, "every": 6, "batch": 32}
    whole = ol.distill(Deep().eval(), sequences(), **options)
    for _ in range(6):  # a single step each time
        parts = ol.distill(Deep().eval(), sequences(), checkpoint=tmp_path / "c", seconds=1e-9, **options)
    assert parts.history.stopped == "time is up" or parts.history.best == 6
    for a, b in zip(whole.student.state_dict().values(), parts.student.state_dict().values(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("read", ["hidden", "pooled"])
def test_a_student_of_tokens_is_saved_and_loaded_bit_by_bit(tmp_path, read):
    found = ol.distill(Deep().eval(), sequences(), read=read, heads=2, width=16, d_model=8, steps=5, every=5)
    folder = found.save(tmp_path / "student")
    again = ol.load(folder)
    assert isinstance(again, TokenEncoder)
    assert not again.training
    given_ = (sequences(4), torch.ones(4, 6, dtype=torch.bool))
    assert torch.equal(again(*given_), found.student(*given_))
    assert json.loads((folder / "distillation.json").read_text())["agreement"] == found.fidelity.agreement
    assert all(torch.equal(t, again.state_dict()[name]) for name, t in found.student.state_dict().items())
    with pytest.raises(ol.InputError, match="a new folder"):
        found.save(folder)
    for given_ in (
        (sequences(4) + 20, torch.ones(4, 6, dtype=torch.bool)),
        (sequences(4).float(), torch.ones(4, 6, dtype=torch.bool)),
        (sequences(4, 7), torch.ones(4, 7, dtype=torch.bool)),
    ):
        with pytest.raises(ol.InputError, match="token numbers"):
            again(*given_)


def test_a_student_in_float64_is_loaded_in_float64(tmp_path):
    start = TokenEncoder(11, 6, 16, 2, 16, 8, False, 0).double()
    found = ol.distill(Deep().double().eval(), sequences(), student=start, steps=2, every=2)
    again = ol.load(found.save(tmp_path / "student"))
    given_ = (sequences(4), torch.ones(4, 6, dtype=torch.bool))
    assert again(*given_).dtype == torch.float64
    assert torch.equal(again(*given_), found.student(*given_))


@pytest.mark.parametrize("how", ["constructed", "trained"])
def test_a_student_of_real_inputs_is_loaded_bit_by_bit(tmp_path, how):
    x = np.random.default_rng(0).uniform(-1, 1, (60, 2))
    if how == "constructed":
        found = ol.distill(network(2, 3, 1), domain=[(-1, 1)] * 2, tolerance=0.1)
    else:
        found = ol.distill(network(2, 3, 1), x, heads=2, width=16, d_model=8, steps=5)
    again = ol.load(found.save(tmp_path / "student"))
    assert isinstance(again, ol.Approximation)
    assert np.array_equal(again(x), found(x))
    assert again.certificate == found.approximation.certificate


@pytest.mark.usefixtures("as_user")
def test_a_bad_student_folder_is_refused_in_one_line(tmp_path, capsys):
    student = TokenEncoder(11, 6, 16, 2, 16, 8, False, 0)
    weights = {name: t.detach() for name, t in student.state_dict().items()}
    sizes = student.sizes

    def refused(words="a student in"):
        with pytest.raises(ol.InputError, match=words) as refusal:
            ol.load(tmp_path)
        assert "\n" not in str(refusal.value)

    refused("a model folder")  # empty
    for heads in (0, 3, "many"):
        save_file(weights, tmp_path / "student.safetensors", metadata={"student": json.dumps(sizes | {"heads": heads})})
        refused()
    for about in ({}, {"student": "no JSON"}, {"student": "[]"}, {"student": json.dumps(sizes | {"hats": 1})}):
        save_file(weights, tmp_path / "student.safetensors", metadata=about)
        refused()
    save_file(
        {name: t for name, t in weights.items() if name != "positions"},
        tmp_path / "student.safetensors",
        metadata={"student": json.dumps(sizes)},
    )
    refused()
    (tmp_path / "student.safetensors").write_bytes(b"nothing")
    refused()
    save_file(weights, tmp_path / "student.safetensors", metadata={"student": json.dumps(sizes)})
    assert isinstance(ol.load(tmp_path), TokenEncoder)
    out = str(tmp_path / "out")
    for command in (["inspect"], ["certify"], ["report"], ["export", "--to", "c", "--out", out]):  # of Approximations
        assert main([command[0], str(tmp_path), *command[1:]]) == 2
        assert "a model folder" in capsys.readouterr().err
