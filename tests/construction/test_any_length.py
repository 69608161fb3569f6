"""The gallery for all lengths: every answer right at every length, every error within the bound, and proofs that can fail."""

import json

import numpy as np
import pytest
import torch

import lengths
import onelayer as ol
from onelayer.construction.gallery.any_length.brackets import Balanced, Depth
from onelayer.construction.gallery.any_length.induction import Induction
from onelayer.construction.gallery.any_length.listed_functions import ListedComposition
from onelayer.construction.gallery.any_length.recall import LookUp, PairedReverse
from onelayer.construction.gallery.any_length.sorting import Sorting
from onelayer.construction.gallery.any_length.token_layers import SignMajority
from onelayer.construction.gallery.tokens import FirstOccurrence, Histogram, prove
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.model.masking import of_any_length

any_length = ol.gallery.any_length
CASES = [*lengths.NUMBERS, *lengths.TOKENS]
LONGEST = {"sort": 5, "balanced": 12, "reverse": 6, "induction": 9, "composition": 18}
PROGRAMS = [
    Histogram(9, 4),
    FirstOccurrence(9, 4),
    SignMajority(9),
    Depth(9),
    Balanced(9),
    LookUp(9, 3, 3),
    PairedReverse(5, 3),
    Induction(5, 3),
    ListedComposition(8, 3),
]
named = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def built(case, dtype="float64", **more):
    single = case.single if dtype == "float32" else {}
    return getattr(any_length, case.name)(**{"longest": LONGEST.get(case.name, 60)} | single | more, dtype=dtype)


@pytest.mark.one_in(5)
@named
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_every_length_is_answered_within_the_bound(case, dtype):
    layer = built(case, dtype)
    assert layer.certificate.verdict == "CERTIFIED"
    sequences = lengths.drawn(layer, 60, seed=7)
    assert lengths.wrong(layer, sequences, case.right) == 0
    assert lengths.padded_wrong(layer, sequences, case.right) == 0
    assert lengths.refuses_longer(layer)


@pytest.mark.parametrize("case", lengths.TOKENS, ids=lambda case: case.name)
def test_all_small_sequences_are_answered_right(case):
    layer = getattr(any_length, case.name)(**case.small | {"longest": 4})
    assert lengths.wrong(layer, lengths.small_sequences(layer), case.right_if_small or case.right) == 0


@pytest.mark.long
@named
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_thousand_tokens(case, dtype):
    assert lengths.row(case, 300)[6:10:2] == ["0", "0"]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("domain", [(-1.0, 1.0), (-5.0, -3.0), (1e-3, 2e-3), (-1e6, 1e6)])
@pytest.mark.parametrize("name", ["mean", "running_mean", "maximum", "minimum", "running_max", "sort"])
def test_numbers_of_other_sizes(name, domain):
    size = max(map(abs, domain))
    tolerance = {} if "mean" in name else {"tolerance": 1e-6 * size}
    layer = getattr(any_length, name)(LONGEST.get(name, 40), domain=domain, **tolerance)
    case = next(c for c in CASES if c.name == name)
    low, high = domain
    sequences = [[low + (high - low) * v for v in s] for s in lengths.drawn(layer, 60, seed=3)]
    sequences += [[low] * 3, [high] * 4, [low, high]]
    assert lengths.wrong(layer, sequences, case.right) == 0


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_changed_weights_lose_their_proof(program):
    model = of_any_length(program.write(), program.causal)
    assert prove(program, model).bound < 0.25
    for name, tensor in model.state_dict().items():
        before = tensor.clone()
        tensor.view(-1)[0] += 1.0
        assert prove(program, model).bound == np.inf, name
        tensor.copy_(before)
    if program.layout == "position":  # a causal layer is read at its positions
        other = of_any_length(program.write(), not program.causal)
        assert prove(program, other).bound == np.inf


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
def test_the_bound_is_near_what_stored_weights_can_do(program):
    """A bound that a change of one part in a million breaks is no bound about something else."""
    model = of_any_length(program.write().float(), program.causal)
    bound = prove(program, model).bound
    x = np.random.default_rng(0).integers(0, program.tokens, (200, program.n))
    features = torch.nn.functional.one_hot(torch.from_numpy(x), program.tokens).float()
    y = model(features).detach().double().numpy().reshape(len(x), -1)
    assert np.abs(y - program.answers(x).reshape(len(x), -1)).max() <= bound < 0.25


@pytest.mark.parametrize("program", [Induction(6, 2), Induction(5, 3), ListedComposition(9, 2)], ids=str)
def test_heads_in_pairs_read_one_thing(program):
    """At all sequences: tokens whose score is within 800 of the largest have the same value. That is what the lemma assumes."""
    model = of_any_length(program.write(), program.causal)
    for n in range(1, program.n + 1):
        x = torch.cartesian_prod(*[torch.arange(program.tokens)] * n).reshape(-1, n)
        e = model.tokens(torch.nn.functional.one_hot(x, program.tokens).double())
        q, k, v = (torch.einsum("btm,hmw->bhtw", e, w.detach()) for w in (model.W_Q, model.W_K, model.W_V))
        scores = torch.einsum("bhiw,bhjw->bhij", q[:, :, :n], k) / model.config.d_k**0.5
        if program.causal:
            later = torch.ones(n, n, dtype=torch.bool).triu(1)
            scores[..., :n] = scores[..., :n].masked_fill(later, -torch.inf)
        near = scores > scores.amax(dim=-1, keepdim=True) - 800
        read = torch.gather(v, 2, scores.argmax(dim=-1)[..., None].expand(-1, -1, -1, v.shape[-1]))
        same = (read[:, :, :, None] == v[:, :, None]).all(dim=-1)
        assert (same | ~near).all()


def test_sorting_bounds_hold_with_little_sharpness():
    """Smooth minima are far off here: the bound must still be above."""
    for beta in (2.0, 16.0, 256.0):
        for arithmetic in (FLOAT64, FLOAT32):
            sorting = Sorting(4, (-1.0, 2.0), beta, arithmetic)
            model = of_any_length(sorting.write().to(arithmetic.dtype))
            x = 3 * torch.rand(500, 3, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64) - 1
            x[:100, 1] = x[:100, 0]
            x = x.to(arithmetic.dtype)
            y = model(x).detach().double()
            error = (y - x.double().sort(dim=1).values).abs().max()
            assert 0.01 * sorting.lemma.bound < error <= sorting.lemma.bound


def test_a_folder_is_saved_and_loaded(tmp_path):
    layer = any_length.depth(20)
    folder = layer.save(tmp_path / "depth")
    again = ol.load(folder)
    assert isinstance(again, ol.SequenceLayer)
    assert again.description == layer.description
    assert again.certificate == layer.certificate
    assert "all n ≤ 20" in again.certificate.domain
    assert again.answer([0, 0, 1]).tolist() == [1, 2, 1]
    with pytest.raises(ol.InputError, match="one length as c"):
        ol.export(folder, tmp_path / "x.c", to="c")


@pytest.mark.parametrize("change", [{"longest": 30}, {"vocabulary": 3}, {"outputs": 2}, {"answer": "whole"}])
def test_a_task_that_does_not_fit_its_weights_is_refused(tmp_path, change, monkeypatch):
    from onelayer.deployment import folder as folders

    path = any_length.depth(20).save(tmp_path / "depth")
    about = json.loads((path / "target.json").read_text()) | change
    (path / "target.json").write_text(json.dumps(about))
    with pytest.raises(ol.InputError, match="untouched"):
        ol.load(path)
    monkeypatch.setattr(folders, "_verified", lambda contents: folders._record(contents, folders.FILES[2]))
    with pytest.raises(ol.InputError, match=r"fits its model|no task on sequences"):
        ol.load(path)


def test_at_length_gives_an_ordinary_approximation():
    layer = any_length.histogram(30, 5)
    three = layer.at_length(3)
    assert three.certificate.verdict == "CERTIFIED"
    assert three.unchanged
    assert three.answer([4, 1, 4]).tolist() == layer.answer([4, 1, 4]).tolist() == [2, 1, 2]
    with pytest.raises(ol.InputError, match="31 tokens"):
        layer.at_length(31)


def test_attention_is_that_of_the_sequence():
    weights = any_length.running_mean(9).attention([0.5, 0.25, 1.0])
    assert np.allclose(weights[0], [[1, 0, 0], [1 / 2, 1 / 2, 0], [1 / 3, 1 / 3, 1 / 3]])
    with pytest.raises(ol.InputError, match="one sequence"):
        any_length.running_mean(9).attention([[0.5], [0.25]])


def test_covers():
    layer = any_length.mean(9, dtype="float32")
    assert layer.covers([0.5, 0.25])
    assert not layer.covers([0.1])
    assert not layer.covers([2.0])
    assert layer.covers([[0.5], [0.5, 3.0]]).tolist() == [True, False]
    with torch.no_grad():
        layer.model.W_V[0, 0, 0] = 2.0
    assert not layer.covers([0.5])
    assert "none" in str(layer)
    with pytest.raises(ol.InputError, match="changed"):
        layer.save("never")


BAD = [
    (lambda: any_length.histogram(0), "longest|the length, a whole number"),
    (lambda: any_length.histogram(10**6), "whole number"),
    (lambda: any_length.mean(True), "longest"),
    (lambda: any_length.sort(9), "1 to 8"),
    (lambda: any_length.maximum(10, 1e-30), "no proof below"),
    (lambda: any_length.sort(8, 1e-6, dtype="float32"), "float64"),
    (lambda: any_length.balanced(200, dtype="float32"), "a length up to "),
    (lambda: any_length.shift(5, by=5), "below 5"),
    (lambda: any_length.look_up(10, keys=0), "keys"),
    (lambda: any_length.induction(129), "128"),
    (lambda: any_length.induction(5, 63), "62"),
    (lambda: any_length.composition(5, 65), "64"),
    (lambda: any_length.depth(5)([0, 1, 2]), "tokens from 0 to 1"),
    (lambda: any_length.depth(5)([]), "1 to 5 tokens"),
    (lambda: any_length.depth(5)([[0, 1], [0.5]]), "tokens"),
    (lambda: any_length.mean(5)("abc"), "numbers"),
    (lambda: any_length.mean(5)([[[1.0]]]), "sequence"),
    (lambda: any_length.mean(5).answer([1.0]), "real values"),
]


@pytest.mark.parametrize(("bad", "words"), BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(bad, words):
    with pytest.raises(ol.InputError, match=words):
        bad()
