"""The page's own layer for sequences, in node: the same answers and weights as in Python, to 1e-12."""

import numpy as np
import pytest
import torch

import onelayer as ol
from languages import language
from nodes import in_node, needs_node
from onelayer.construction.gallery.any_length import ENTRIES
from onelayer.layer.facts import Facts
from onelayer.sequence_layer import SequenceLayer
from onelayer.target.sequence_task import SequenceTask
from onelayer.views.sequence_record import sequence_record

pytestmark = needs_node
SCRIPT = """
const answered = given.map(({ layer, sequences }) => {
  for (const name of Object.keys(layer.weights)) layer.weights[name] = decoded(layer.weights[name]);
  let at = null;
  return sequences.map((x) => {
    at = prepared(layer, x, at);
    const outs = layer.answer === "whole" ? [wholeAnswer(layer, at)] : x.map((_, t) => rowOf(layer, at, t).out);
    const rows = at.tokens.map((_, row) => rowOf(layer, at, row).alpha.map((a) => Array.from(a)));
    return { outs: outs.map((o) => Array.from(o)), answers: outs.map((o) => answerOf(layer, o)), rows };
  });
});
console.log(JSON.stringify(answered));
"""
SMALL = {
    "mean": {"longest": 9},
    "running_max": {"longest": 9},
    "maximum": {"longest": 9},
    "shift": {"longest": 9},
    "sort": {"longest": 4},
    "histogram": {"longest": 9, "vocabulary": 4},
    "majority": {"longest": 9},
    "copy_where": {"longest": 9, "vocabulary": 3},
    "look_up": {"longest": 9, "keys": 2, "values": 3},
    "depth": {"longest": 9},
    "balanced": {"longest": 9},
}
RANDOM = [
    {"causal": True, "anchor_tokens": 1, "memory_tokens": 2},
    {"causal": True, "readout": "mean", "projection_bias": True, "code": "none"},
    {"readout": "output", "output_tokens": 2, "residual": False, "code": "sinusoidal"},
    {"norm": "pre", "activation": "gelu", "memory_tokens": 1, "causal": True},
    {"norm": "post", "activation": "silu", "readout": "mean"},
]


def random_layer(changes, vocabulary):
    """A layer with weights that nobody constructed."""
    shape = {"tokens": 9, "features_in": vocabulary or 1, "features_out": 3, "d_model": 6, "heads": 3, "d_k": 2}
    shape |= {"d_v": 4, "ffn_width": 5, "code": "learned", "any_length": True}
    model = ol.SingleLayerTransformer(ol.LayerConfig(**shape | changes), seed=7)
    with torch.no_grad():
        for k, tensor in enumerate(model.state_dict().values()):
            tensor += 0.3 * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(k), dtype=torch.float64)
    answer = "position" if model.config.readout == "position" else "whole"
    ends = (0.0, vocabulary - 1.0) if vocabulary else (0.0, 1.0)
    task = SequenceTask(
        kind="set", text="random", longest=9, ends=ends, answer=answer, outputs=3, vocabulary=vocabulary
    )
    certificate = ol.gallery.any_length.mean(2).certificate
    return SequenceLayer(model, certificate, Facts("", "", "position", (("head", 3),), 5), task)


def sequences(task):
    """Of several lengths; the second begins like the first, so that the page keeps what it has."""
    rng = np.random.default_rng(3)
    whole = task.vocabulary is not None
    long = rng.integers(0, task.vocabulary, task.longest) if whole else rng.uniform(0, 1, task.longest)
    others = rng.permutation(long)
    return [long[:2].tolist(), long[:3].tolist(), long.tolist(), long[:1].tolist(), others[: task.longest - 1].tolist()]


def layers():
    named = {name: ENTRIES[name](**options) for name, options in SMALL.items()}
    tokens = {f"random {i}": random_layer(changes, 4) for i, changes in enumerate(RANDOM)}
    return named | tokens | {"random numbers": random_layer(RANDOM[0], None)}


def test_node_and_python_agree(tmp_path):
    found = layers()
    given = [{"layer": sequence_record(layer), "sequences": sequences(layer.description)} for layer in found.values()]
    answered = in_node(tmp_path, ("layer.js", "sequence.js"), SCRIPT, given)
    for (name, layer), one, told in zip(found.items(), given, answered, strict=True):
        for x, page in zip(one["sequences"], told, strict=True):
            T = np.asarray(layer(x), dtype=np.float64)
            assert np.array(page["outs"]).ravel() == pytest.approx(T.ravel(), rel=1e-12, abs=1e-12), name
            alpha = np.array(page["rows"]).transpose(1, 0, 2)  # [head, row, token]
            assert alpha == pytest.approx(layer.attention(x), rel=1e-12, abs=1e-12), name
            if layer.description.decoding is not None:
                assert np.array_equal(page["answers"], np.ravel(layer.answer(x))), name


def test_what_is_typed_is_read_or_refused(tmp_path):
    numbers = sequence_record(ENTRIES["running_max"](longest=4))
    tokens = sequence_record(ENTRIES["histogram"](longest=4, vocabulary=3))
    brackets = sequence_record(ENTRIES["depth"](longest=4))
    text = sequence_record(language(("⟨start⟩", "a", "ab", " ", "b c")))
    asked = [
        (numbers, "0.5, 1;−2\n1e-3", [0.5, 1, -2, 0.001]),
        (numbers, "0.5 x", "“x” is not a number"),
        (numbers, "1 1 1 1 1", "at most 4: these are 5"),
        (numbers, " ", "type a sequence of 1 to 4"),
        (tokens, "0 2 1", [0, 2, 1]),
        (tokens, "0 3", "tokens are 0 to 2, not 3"),
        (tokens, "0.5", "tokens are 0 to 2, not 0.5"),
        (brackets, "( ))", [0, 1, 1]),
        (text, "aab b c", [0, 1, 2, 3, 4]),
        (text, "", [0]),
        (text, "a⟨start⟩", "no token begins “⟨start⟩”"),
        (text, "b", "no token begins “b”"),
    ]
    script = "console.log(JSON.stringify(given.map(([layer, typed]) => sequenceIn(layer, typed))));"
    found = in_node(tmp_path, ("sequence_text.js",), script, [one[:2] for one in asked])
    assert [answer.get("x", answer.get("wrong")) for answer in found] == [one[2] for one in asked]


def test_tokens_are_drawn_by_their_probabilities(tmp_path):
    script = """const logits = Float64Array.from(given.map(Math.log)), random = randomFrom(7), counts = given.map(() => 0);
    for (let k = 0; k < 20000; k++) counts[drawn(logits, 1, random())]++;
    console.log(JSON.stringify([counts.map((c) => c / 20000), drawn(logits, 0, 0.99), drawn(logits, 0.5, 1 - 1e-16)]));"""
    p = [0.1, 0.0, 0.6, 0.3, 0.0]
    shares, best, last = in_node(tmp_path, ("layer.js", "typing.js"), script, p)
    assert shares == pytest.approx(p, abs=0.015)
    assert (best, last) == (2, 3)
