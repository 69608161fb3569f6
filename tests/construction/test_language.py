"""Text: the next-token distributions of the layer against exact counts, and proofs that changed weights lose."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import torch
from flint import arb, ctx

import onelayer as ol
from onelayer.construction.language import lanes as lanes_module
from onelayer.construction.language.construction import sampled_contexts, total_variations
from onelayer.construction.language.lanes import lanes_of
from onelayer.construction.language.network import Cases, Places, write
from onelayer.construction.language.proof import prove
from onelayer.target.ngram import NGram

TEXT = "the cat sat on the mat. the dog sat on the cat. a cat and a dog ran."


def random_counts(seed, vocabulary, grams, order=3):
    """Counts of random n-grams, some of them large, with contexts of many sizes."""
    rng = np.random.default_rng(seed)
    found = {}
    for _ in range(grams):
        gram = tuple(f"t{int(v)}" for v in (vocabulary * rng.random(order) ** 2))
        found[gram] = int(10 ** (6 * rng.random()))
    return NGram.of(found, order, "words")


def exact_variation(logits, ngram, context):
    """½ Σ|softmax(logits) − p| in ball arithmetic of 128 bits: a lower end."""
    found, z = ngram.next(context), [arb(float(v)) for v in logits]
    total, summed = sum(found.values()), sum((v.exp() for v in z), arb(0))
    parts = (abs(v.exp() / summed - arb(found.get(c, 0)) / total) for c, v in enumerate(z))
    return (sum(parts, arb(0)) / 2).lower()


def every_context(ngram):
    V = len(ngram.words)
    return [[a, b] for a in range(V) for b in range(V)]


def signed(monkeypatch, m):
    """Lanes of signs even for few tokens."""
    monkeypatch.setattr(lanes_module, "IDENTITY_WORDS", 0)
    monkeypatch.setattr(lanes_module, "SIGNS", (m,))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    ("seed", "vocabulary", "grams", "signs"), [(0, 3, 12, 0), (1, 12, 80, 0), (2, 20, 150, 64), (3, 40, 60, 16)]
)
def test_no_context_is_further_away_than_proved(monkeypatch, dtype, seed, vocabulary, grams, signs):
    """Every context of a small vocabulary, no slack: logits as the layer computes them, softmax and counts exactly."""
    monkeypatch.setattr(ctx, "prec", 128)
    if signs:
        signed(monkeypatch, signs)
    ngram = random_counts(seed, vocabulary, grams)
    layer = ol.language(ngram, tolerance=1e-3, longest=5, dtype=dtype)
    bound = layer.certificate.bound
    assert bound <= 1e-3
    contexts = every_context(ngram)
    logits = layer(np.array(contexts))
    worst = max(exact_variation(z[1], ngram, c) for z, c in zip(logits, contexts, strict=True))
    assert worst <= bound
    assert worst >= bound / 100  # the proof says little more than is true
    assert max(exact_variation(logits[len(ngram.words) * a, 0], ngram, [a]) for a in range(len(ngram.words))) <= bound


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_lanes_of_any_values_are_judged_rightly(monkeypatch, dtype):
    """Lanes moved by random amounts, small and large: the bound moves with them and stays above the truth."""
    monkeypatch.setattr(ctx, "prec", 128)
    ngram = random_counts(5, 8, 40)
    cases = Cases(ngram)
    at, contexts = Places(len(ngram.words), 4).lanes, every_context(ngram)
    layer = ol.language(ngram, tolerance=1e-3, longest=4)
    for trial in range(6):
        size, rng = 10.0 ** (trial - 5), np.random.default_rng(trial)
        lanes = lanes_of(cases.distributions, len(ngram.words), 1e-6)
        moved = replace(lanes, values=lanes.values + size * rng.normal(size=lanes.values.shape))
        if trial % 2:
            moved = replace(moved, read=lanes.read + 1e-2 * size * rng.normal(size=lanes.read.shape))
        model = write(cases, 4, moved, str(dtype).removeprefix("torch."))
        lemma = prove(model, ngram)
        known = replace(layer.certificate, weights=model.fingerprint())
        found = replace(layer, model=model, certificate=known)(np.array(contexts))
        worst = max(exact_variation(z[1], ngram, c) for z, c in zip(found, contexts, strict=True))
        assert worst <= lemma.bound
        assert model.W_E[:, at:].abs().max() > 0


def test_float32_softmax_is_covered(monkeypatch):
    """Softmax in float32 itself: half the sum of the differences of what torch answers."""
    signed(monkeypatch, 64)
    ngram = random_counts(2, 20, 150)
    layer = ol.language(ngram, tolerance=1e-2, longest=4, dtype="float32")
    x = torch.tensor(every_context(ngram), dtype=torch.float32)
    with torch.no_grad():
        q = torch.softmax(layer.model(layer.description.features(x)), dim=-1)[:, 1]
    for row, context in zip(q.tolist(), every_context(ngram), strict=True):
        found = ngram.next(context)
        total = sum(found.values())
        apart = sum(abs(Fraction(v) - Fraction(found.get(c, 0), total)) for c, v in enumerate(row)) / 2
        assert apart <= layer.certificate.bound


def test_long_contexts_give_what_their_last_two_tokens_give():
    layer = ol.language(TEXT, longest=40)
    ngram = NGram.of(TEXT, 3, "characters")
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 17, 40):
        x = rng.integers(len(ngram.words), size=(5, n)).tolist()
        assert max(total_variations(layer, ngram, x)) <= layer.certificate.bound
    assert layer.certificate.verdict == "CERTIFIED"
    assert "all n ≤ 40" in layer.certificate.domain


CHANGES = {
    "W_E": lambda m: m.W_E[1, 0].neg_(),
    "a lane of W_E": lambda m: m.W_E[1, -1].add_(3.0),
    "W_2": lambda m: m.W_2[0, -2].add_(5.0),
    "W_2 outside lanes": lambda m: m.W_2[0, 0].add_(1.0),
    "W_1": lambda m: m.W_1[0, 0].neg_(),
    "b_1": lambda m: m.b_1[0].add_(1.0),
    "b_2": lambda m: m.b_2[-1].add_(1.0),
    "W_R": lambda m: m.W_R[-1, -1].add_(0.5),
    "b_R": lambda m: m.b_R[1].add_(1.0),
    "W_Q": lambda m: m.W_Q[0, 0, 0].add_(1.0),
    "W_K": lambda m: m.W_K.mul_(0.5),
    "W_V": lambda m: m.W_V[0, 0, 0].mul_(2.0),
    "W_O": lambda m: m.W_O[0, 0].add_(1.0),
    "P": lambda m: m.P[2, 0].add_(1.0),
    "S": lambda m: m.S[0, 0].add_(1.0),
    "scale": lambda m: m.scale[0, 1].mul_(2.0),
    "NaN": lambda m: m.W_R[-1, 0].fill_(torch.nan),
    "infinity": lambda m: m.W_2[0, -1].fill_(torch.inf),
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_weights_lose_the_proof(name):
    ngram = NGram.of(TEXT, 3, "characters")
    layer = ol.language(ngram, longest=8)
    assert prove(layer.model, ngram).bound == layer.certificate.bound
    with torch.no_grad():
        CHANGES[name](layer.model)
    assert not prove(layer.model, ngram).bound <= layer.certificate.tolerance
    assert not layer.unchanged


def test_other_counts_lose_the_proof():
    ngram = NGram.of(TEXT, 3, "characters")
    layer = ol.language(ngram, longest=8)
    followers = {context: dict(found) for context, found in ngram.followers.items()}
    context = ngram.own_contexts[0]
    followers[context][next(iter(followers[context]))] += 1
    token = next(iter(set(range(1, len(ngram.words))) - set(followers[context])))
    followers[context][token] = 1
    assert prove(layer.model, NGram(3, ngram.words, followers)).bound > 1e-3
    assert prove(layer.model, NGram.of(TEXT + "!", 3, "characters")).bound > 1e-3
    assert prove(layer.model, NGram.of(TEXT, 2, "characters")).bound > 1e-3


def test_a_bigram_needs_no_hidden_units():
    layer = ol.language([TEXT, "so it ends."], 2, longest=8)
    assert layer.facts.units == 0
    ngram = NGram.of([TEXT, "so it ends."], 2, "characters")
    assert max(total_variations(layer, ngram, every_context(ngram))) <= layer.certificate.bound <= 1e-6


def test_words_with_lanes_of_signs():
    """More words than the identity is taken for; contexts on few, more and many tokens."""
    rng = np.random.default_rng(0)
    text = " ".join(f"{'abcdefghijklmnopqrst'[i]}{'uvwxyz'[j]}{'aeiou'[k]}" for i, j, k in zip(
        (20 * rng.random(4000) ** 2).astype(int), rng.integers(6, size=4000), rng.integers(5, size=4000), strict=True
    ))  # fmt: skip
    ngram = NGram.of(text, 3, "words")
    layer = ol.language(ngram, tokens="words", longest=16)
    assert len(ngram.words) > lanes_module.IDENTITY_WORDS
    assert "lanes of signs" in layer.facts.story
    lanes = layer.model.config.d_model - Places(len(ngram.words), 16).lanes
    assert lanes < len(ngram.words)
    contexts = sampled_contexts(ngram, 500, seed=1)
    assert max(total_variations(layer, ngram, contexts)) <= layer.certificate.bound <= 1e-6


@pytest.mark.usefixtures("as_user")
@pytest.mark.parametrize(
    ("call", "mentions"),
    [
        (lambda: ol.language(""), "one token or more"),
        (lambda: ol.language([]), "a corpus"),
        (lambda: ol.language(5), "a corpus"),
        (lambda: ol.language(Path("no such file.txt")), "a text file"),
        (lambda: ol.language("ab", 4), "order 2 or 3"),
        (lambda: ol.language("ab", tokens="letters"), "characters, words"),
        (lambda: ol.language("ab", tolerance=0), "a tolerance above 0"),
        (lambda: ol.language("ab", longest=1), "longest, a whole number from 2"),
        (lambda: ol.language("ab", dtype="float16"), "dtype, float64 or float32"),
        (lambda: ol.language("ab", eps=1e-3), "did you mean tolerance?"),
        (lambda: ol.language({("a", "b"): 0}), "correct this entry"),
        (lambda: ol.language({("a", "⟨start⟩"): 1}), "correct this entry"),
        (lambda: ol.language({}), "one token or more"),
        (lambda: ol.language(TEXT, dtype="float32"), "or use dtype='float64'"),
        (lambda: ol.language(NGram.of("ab", 2, "characters")), "order=2"),
    ],
)  # fmt: skip
def test_bad_requests_get_one_clear_line(call, mentions):
    with pytest.raises(ol.InputError) as caught:
        call()
    assert mentions in str(caught.value)
    assert "\n" not in str(caught.value)
