"""What a page needs to compute a layer for sequences of any length: weights, tokens and how they are written."""

from dataclasses import asdict
from typing import Any

import numpy as np

from ..sequence_layer import SequenceLayer
from ..target.sequence_task import SequenceTask
from ..target.tokenizer import START
from .pages import array_record

MOST_SEQUENCE_WEIGHTS = 1_500_000  # numbers a page can hold: sixteen megabytes in float64
MOST_TOKENS = 1000  # in a sequence on a page
MOST_CONTEXT = 200  # tokens that a text model reads on a page
START_LENGTH = 12
BRACKETS = {"depth": "(())()((()", "balanced": "(())()((()"}
WIDEST = 1e3  # numbers between wider ends are drawn from [−10, 10]


def sequence_record(layer: SequenceLayer) -> dict[str, Any] | None:
    """For assets/sequence.js and sequence_page.js; None if there are too many weights for a page."""
    if layer.parameters > MOST_SEQUENCE_WEIGHTS:
        return None
    task, c = layer.description, layer.model.config
    c.require_softmax("a page")
    most = MOST_CONTEXT if task.kind == "language" else MOST_TOKENS
    return {
        "config": asdict(c),
        "weights": {name: array_record(t.detach().cpu().numpy()) for name, t in layer.model.state_dict().items()},
        "vocabulary": task.vocabulary,
        "answer": task.answer,
        "decoding": None if task.decoding is None else task.decoding.record(),
        "language": task.kind == "language",
        "first": 0 if task.kind == "language" and task.words[:1] == (START,) else None,  # stands before every text
        "names": token_names(task),
        "special": special_names(layer),
        "ends": list(task.ends),
        "drawn": list(task.ends) if task.ends[1] - task.ends[0] <= WIDEST else [-10.0, 10.0],
        "longest": task.longest,
        "most": min(task.longest, most),
        "text": start_text(task),
    }


def token_names(task: SequenceTask) -> list[str] | None:
    """How tokens are written, in the order of their numbers; None where they are written as numbers."""
    if task.words:
        return list(task.words)
    if task.entry in BRACKETS:
        return ["(", ")"]
    if task.entry == "look_up":
        keys, values = int(task.parameters["keys"]), int(task.parameters["values"])
        return [f"{k}={v}" for k in range(keys) for v in range(values)] + [f"{k}?" for k in range(keys)]
    return None


def special_names(layer: SequenceLayer) -> list[str]:
    """The special tokens, in their order."""
    c = layer.model.config
    kinds = [("anchor", c.anchor_tokens), ("memory", c.memory_tokens), ("output", c.output_tokens)]
    return [name if n == 1 else f"{name} {i + 1}" for name, n in kinds for i in range(n)]


def start_text(task: SequenceTask) -> str:
    """The sequence that the page opens with, as it is typed."""
    if task.kind == "language":
        return "" if task.words[:1] == (START,) else "".join(task.words[:START_LENGTH])
    n, names = min(task.longest, START_LENGTH), token_names(task)
    if task.entry in BRACKETS:
        return BRACKETS[task.entry][:n]
    if task.vocabulary is not None:
        tokens = [(3 * j + j * j // 4) % task.vocabulary for j in range(n)]
        return " ".join(str(t) if names is None else names[t] for t in tokens)
    low, high = task.ends if task.ends[1] - task.ends[0] <= WIDEST else (-10.0, 10.0)
    share = 0.5 + 0.45 * np.cos(2.4 * np.arange(n) + 1.0)
    return " ".join(f"{low + (high - low) * s:.3g}" for s in share)
