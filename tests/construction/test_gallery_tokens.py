"""Token programs: every answer right, every error within the proved bound, and a proof that can fail."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch

import onelayer as ol
import tracr
from onelayer.common.errors import InputError
from onelayer.construction.gallery import tokens
from onelayer.construction.gallery.tokens import CopyWhere, FirstOccurrence, Histogram, Majority, Parity, Reverse, prove
from onelayer.construction.gallery.tokens.piecewise_linear import decoder_through, decoding_terms, read_decoder
from onelayer.construction.gallery.tokens.weights import average_error, weight_error
from onelayer.layer.arithmetic import FLOAT32, FLOAT64
from onelayer.layer.heads import MASKED

DTYPES = ("float64", "float32")


def counted(s, V):
    return [s.count(t) for t in s]


def firsts(s, V):
    return [s.index(t) for t in s]


def backwards(s, V):
    return s[::-1]


def copied(s, V):
    return [next((t - V for t in s if t >= V), V)] * len(s)


def odd(s, V):
    return sum(s) % 2


def most(s, V):
    return int(sum(s) > len(s) - sum(s))


BITS = {tokens.parity: odd, tokens.majority: most}
WORDS = {
    tokens.histogram: counted,
    tokens.first_occurrence: firsts,
    tokens.reverse_tokens: backwards,
    tokens.copy_where: copied,
}
SMALL = [
    *((entry, n, V) for entry in WORDS for n, V in ((1, 2), (2, 5), (3, 3), (4, 4), (6, 2))),
    *((entry, n, 2) for entry in BITS for n in (1, 2, 3, 8, 11)),
]
LARGE = [
    (tokens.histogram, 100, 26, 200),
    (tokens.first_occurrence, 100, 26, 200),
    (tokens.reverse_tokens, 200, 26, 100),
    (tokens.copy_where, 100, 26, 200),
    (tokens.parity, 128, 2, 2000),
    (tokens.majority, 101, 2, 2000),
]


def built(entry, n, V, dtype):
    return entry(n, dtype=dtype) if entry in BITS else entry(n, V, dtype=dtype)


def check(entry, approx, x, V):
    """Right answers, and errors within the bound, with no slack."""
    right = np.array([(BITS | WORDS)[entry](list(map(int, row)), V) for row in x])
    assert (approx.answer(x) == right).all()
    y = np.asarray(approx(x), dtype=np.float64)
    exact = np.eye(y.shape[-1])[right] if y.ndim == 3 else right
    assert np.abs(y - exact).max() <= approx.certificate.bound


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("entry", "n", "V"), SMALL)
def test_all_short_sequences(entry, n, V, dtype):
    approx = built(entry, n, V, dtype)
    assert approx.certificate.verdict == "CERTIFIED"
    assert approx.certificate.arithmetic == dtype
    x = np.array(list(itertools.product(range(approx.vocabulary), repeat=n)))
    check(entry, approx, x, V)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("entry", "n", "V", "count"), LARGE)
def test_long_sequences(entry, n, V, count, dtype):
    approx = built(entry, n, V, dtype)
    assert approx.certificate.verdict == "CERTIFIED"
    generator, T = np.random.default_rng(7), approx.vocabulary
    spread = generator.integers(0, T, size=(count, n))
    bunched = generator.integers(0, 2, size=(count // 2, n)) * (T - 1)
    check(entry, approx, np.concatenate([spread, bunched]), V)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_count(dtype):
    """Counts from 1 to n and from 0 to n, the counted tokens anywhere: the cases of the proof."""
    generator, n = np.random.default_rng(3), 100
    x = np.array([[0] * c + [1 + j % 25 for j in range(n - c)] for c in range(1, n + 1)])
    check(tokens.histogram, tokens.histogram(n, dtype=dtype), generator.permuted(x, axis=1), 26)
    ones = generator.permuted(np.array([[1] * c + [0] * (n - c) for c in range(n + 1)]), axis=1)
    for entry in BITS:
        check(entry, entry(n, dtype=dtype), ones, 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_adversarial_look_ups(dtype):
    n, V = 60, 7
    last = [0] * (n - 1)
    rows = [[*last, V], [*last, 2 * V - 1], [V - 1] * n, [2 * V - 1] * n, [V, *last], [*last[:-1], V + 3, V + 4]]
    check(tokens.copy_where, tokens.copy_where(n, V, dtype=dtype), np.array(rows), V)
    same = [[v] * n for v in range(V)] + [[*last, 6], [6, *last], list(range(V)) * 8 + [6] * 4]
    check(tokens.first_occurrence, tokens.first_occurrence(n, V, dtype=dtype), np.array(same), V)
    check(tokens.reverse_tokens, tokens.reverse_tokens(n, V, dtype=dtype), np.array(same), V)


PROGRAMS = [Histogram(6, 5), FirstOccurrence(5, 9), Reverse(6, 3), CopyWhere(5, 3), Parity(7), Majority(6)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_scores_are_whole_and_far_apart(program, dtype):
    """The tokens with weight have the same score, all others lie 800 below or more, computed as in exact arithmetic."""
    single, double = program.write().to(dtype), program.write()
    x = np.random.default_rng(0).integers(0, program.tokens, size=(300, program.n))
    eye = torch.eye(program.tokens, dtype=torch.float64)[torch.from_numpy(x)]
    found = []
    for model in (single, double):
        with torch.no_grad():
            e = model.tokens(eye.to(model.W_E.dtype))
            q, k = (model._project(e, which).double() for which in "QK")
            found.append((q @ k.mT)[:, 0, model.config.read_rows] / math.sqrt(model.config.d_k))
    assert torch.equal(*found)
    gap = found[1].amax(dim=-1, keepdim=True) - found[1]
    assert ((gap == 0) | (gap >= MASKED)).all()
    weighted = (gap == 0).sum(dim=-1)
    if program.name == "histogram":
        assert torch.equal(weighted.double(), 1 + torch.from_numpy(program.answers(x)))
    elif program.kind == "lookup":
        assert (weighted == 1).all()
    else:
        assert (weighted == program.n + 1).all()
    with torch.no_grad():
        alpha = single.attention(eye.to(dtype))[:, 0, single.config.read_rows].double()
    assert (alpha[gap > 0] == 0).all()
    share = (alpha * weighted.unsqueeze(-1))[gap == 0]
    eta = weight_error(single.config.all_tokens, FLOAT32 if dtype == torch.float32 else FLOAT64)
    assert float((share - 1).abs().max()) <= eta


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_changed_weights_are_not_claimed(program, dtype):
    model = program.write().to(dtype)
    assert prove(program, model).bound < 0.25
    for name, tensor in model.state_dict().items():
        index = (0,) * tensor.ndim
        kept = tensor[index].item()
        for other in (kept + 1e-3, math.nan):
            tensor[index] = other
            lemma = prove(program, model)
            assert lemma.bound == math.inf
            assert name in lemma.statement
        tensor[index] = kept
    assert prove(program, model).bound < 0.25
    assert prove(type(program)(*list(program.parameters.values())[:-1], 11), model).bound == math.inf


def test_a_changed_model_is_not_saved(tmp_path):
    approx = tokens.parity(5)
    with torch.no_grad():
        approx.model.b_2[0] = 1.0
    with pytest.raises(InputError, match="changed"):
        approx.save(tmp_path / "p")
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("program", [Histogram(12, 3), Parity(9), Majority(9)], ids=lambda p: p.name)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_proof_reads_the_stored_decoder(program, dtype):
    """With a wrong height or knot the terms grow, and still bound what the network does."""
    generator = torch.Generator().manual_seed(1)
    arithmetic = FLOAT32 if dtype == torch.float32 else FLOAT64
    spread = average_error(program.n + 1, arithmetic)
    for wrong in (0.0, 1e-4, 1e-2, 0.3):
        model = program.write().to(dtype)
        with torch.no_grad():
            model.W_2[-1, 0] += wrong
            model.b_1[0] -= wrong / 3
            terms = decoding_terms(model, program.nodes(), spread)
            bound = math.fsum(terms.values())
            assert bound >= wrong / 100
            worst = 0.0
            for x, y in program.nodes():
                moved = [float(x) * (1 + float(spread) * t) for t in (-0.99, -0.5, 0, 0.3, 0.99)]
                for order in (torch.arange(len(model.b_1)), torch.randperm(len(model.b_1), generator=generator)):
                    h = torch.tensor(moved, dtype=torch.float64).to(dtype).unsqueeze(1)
                    inside = (h.double() - float(x)).abs() <= float(spread * x)
                    hidden = torch.relu(h @ model.W_1[:1, order] + model.b_1[order])
                    out = hidden @ model.W_2[order, 0] + model.b_2[0]
                    worst = max(worst, *(out.double() - float(y)).abs()[inside[:, 0]].tolist(), 0.0)
            assert worst <= bound


def test_a_larger_spread_or_exp_error_is_felt():
    program = Parity(9)
    model = program.write()
    small, large = (sum(decoding_terms(model, program.nodes(), Fraction(1, k)).values()) for k in (10**6, 20))
    assert small < 1e-4
    assert large > 0.4  # 9·1/20 = 0.45 beyond the last node, and up to there before it
    assert weight_error(10, FLOAT32) > weight_error(10, FLOAT64) > 18 * Fraction(FLOAT64.u)


def test_decoder_through_its_nodes():
    nodes = [(Fraction(x), Fraction(y)) for x, y in ((0, 3), (1, -1), (4, -1), (5, 2), (7, 8), (9, 0))]
    for start in range(len(nodes)):
        decoder = decoder_through(nodes, start)
        assert [decoder(x) for x, _ in nodes] == [y for _, y in nodes]
        assert decoder(Fraction(1, 2)) == 1
        assert decoder(Fraction(6)) == 5
        assert decoder.size(Fraction(9)) >= abs(decoder(Fraction(9)))
    assert len(read_decoder(Majority(50).write()).units) == 2
    assert len(read_decoder(Parity(50).write()).units) == 50
    assert read_decoder(Histogram(1, 2).write()).units == ()


def test_folder(tmp_path):
    for entry, x in (
        (tokens.histogram, [3, 1, 3, 3]),
        (tokens.copy_where, [3, 28, 3, 50]),
        (tokens.reverse_tokens, [0, 1, 2, 25]),
    ):
        approx = entry(4)
        again = ol.load(approx.save(tmp_path / entry.__name__))
        assert again.vocabulary == approx.vocabulary
        assert again.certificate == approx.certificate
        assert again.certificate.verdict == "CERTIFIED"
        assert (again.answer(x) == approx.answer(x)).all()
        assert again.description.entry in {"histogram", "copy_where", "reverse"}
        assert again.description.parameters == {"n": 4, "vocabulary": 26}
        program = tokens.PROGRAMS[again.description.entry](**again.description.parameters)
        assert prove(program, again.model).bound == again.certificate.bound
        assert sum(again.certificate.evidence.terms.values()) <= again.certificate.bound
        assert again.facts.story[:40] in str(again)
    assert tokens.parity(6).answer([1, 0, 1, 1, 0, 0]) == 1
    assert tokens.majority(4).answer(torch.tensor([1, 0, 1, 0])) == 0


def test_benchmark(capsys):
    """The script's own count of wrong answers is 0, and sees a layer that is wrong."""
    found = tracr.rows([(tokens.parity, Parity(4)), (tokens.copy_where, CopyWhere(3, 2))], everything=True)
    assert [row[3:6] for row in found] == [["all 16", "0", "0"], ["all 64", "0", "0"]]
    approx = tokens.parity(4)
    with torch.no_grad():
        approx.model.b_2[0] += 1.0
    approx = replace(approx, certificate=replace(approx.certificate, weights=approx.model.fingerprint()))
    assert tracr.wrong(approx, Parity(4), np.zeros((3, 4), dtype=np.int64)) == 3
    assert tracr.random_sequences(7, 5).shape == (tracr.SEQUENCES, 7)
    assert "parity 4" in capsys.readouterr().out


def test_explain():
    found = tokens.first_occurrence(4, 3).explain([2, 1, 1, 2])
    assert found.value.tolist() == [0, 1, 1, 0]
    assert np.allclose(found.contributions.sum(axis=0) + found.rest, found.value)


@pytest.mark.parametrize("bad", [-1, 26, 0.5, math.nan])
def test_tokens_out_of_range(bad):
    approx = tokens.histogram(3)
    with pytest.raises(InputError, match="tokens from 0 to 25"):
        approx([0, bad, 1])
    with pytest.raises(InputError, match="shape"):
        approx([0, 1])


@pytest.mark.usefixtures("as_user")
def test_bad_parameters():
    for n in (0, -3, 513, 2.0, "5", True, None):
        for entry in (*WORDS, *BITS):
            with pytest.raises(InputError, match="a whole number from 1 to"):
                entry(n)
    for V in (1, 0, 2000, 2.5):
        for entry in WORDS:
            with pytest.raises(InputError, match="vocabulary"):
                entry(4, V)
    with pytest.raises(InputError, match="dtype"):
        tokens.parity(4, dtype="float16")
    with pytest.raises(InputError, match="seed"):
        tokens.parity(4, seed=-1)
    assert tokens.histogram(np.int64(3), np.int64(4)).answer([1, 1, 3]).tolist() == [2, 2, 1]


def test_what_cannot_be_proved_is_refused():
    assert tokens.parity(300).certificate.bound < 1e-8
    with pytest.raises(InputError, match=r"parity of length 300 in float32.*a bound of 0\.4.*float64"):
        tokens.parity(300, dtype="float32")
