"""Text models for tests: a causal layer with random weights whose answers are logits."""

from dataclasses import replace

import onelayer as ol
from onelayer.layer.facts import Facts
from onelayer.sequence_layer import SequenceLayer
from onelayer.target.sequence_task import SequenceTask


def language(words, longest=12, seed=5):
    """A layer over these words that nobody trained."""
    V = len(words)
    config = ol.LayerConfig(
        tokens=longest, features_in=V, features_out=V, d_model=8, heads=2, d_k=4, d_v=4, ffn_width=8, code="learned",
        any_length=True, causal=True,
    )  # fmt: skip
    model = ol.SingleLayerTransformer(config, seed=seed)
    task = SequenceTask(
        kind="language", text="the next token", longest=longest, ends=(0.0, V - 1.0), answer="position", outputs=V,
        vocabulary=V, words=tuple(words),
    )  # fmt: skip
    certificate = replace(
        ol.gallery.any_length.mean(2).certificate, weights=model.fingerprint(), domain=task.quantifier
    )
    return SequenceLayer(model, certificate, Facts("language", "random", "position", (("head", 2),), 8), task)
