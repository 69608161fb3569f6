"""README.md of a Hugging Face folder: what the layer computes, what is proved about it, and how to run it."""

import hashlib
from dataclasses import dataclass

from ....common.numbers import at_most
from ..subject import Bound, Measured
from .architectures import StockModel

RUN = {
    "numbers": """from wrapper import load  # in this folder; needs torch, transformers and safetensors

y = load()(x)  # x {input}""",
    "tokens": """from transformers import AutoModelForTokenClassification, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForTokenClassification.from_pretrained(folder)
logits = model(**tokenizer("{example}", return_tensors="pt")).logits  # {rows}

from wrapper import load  # in this folder: the same, from token numbers to y

y = load()(x)  # x {input}""",
    "text": """from transformers import AutoModelForCausalLM, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained(folder)  # refuses words that the model does not have
model = AutoModelForCausalLM.from_pretrained(folder)
given = tokenizer("", return_tensors="pt")
print(tokenizer.decode(model.generate(**given, max_length={longest}, do_sample=True)[0], skip_special_tokens=True))""",
}
UNBOUNDED = "scores are too large for numbers of this type, or the vectors of the vocabulary had to be rounded"


@dataclass(frozen=True)
class CardFacts:
    """What the card says: words of the subject, the model, what was measured and proved, and the file of weights."""

    about: dict[str, str]
    model: StockModel
    measured: Measured
    bound: Bound | None
    certified: str  # digest of the weights that the certificate is about
    weights: bytes


def model_card(facts: CardFacts) -> bytes:
    """The card, in Markdown."""
    about, model = facts.about, facts.model
    certified = ("certified",) if about["verdict"].startswith("CERTIFIED") else ()
    tags = "\n".join(f"- {tag}" for tag in ("onelayer", *certified, model.architecture))
    rows = "\n".join(
        f"| {name} | {_cell(about[name])} |" for name in ("target", "domain", "tolerance", "verdict", "bound")
    )
    parts = [
        f"---\nlibrary_name: transformers\ntags:\n{tags}\n---",
        f"# One layer: {_cell(about['target'])}",
        f"A `{model.name}` of `transformers` with one layer. Its weights were computed by {about['producer']}."
        " Loading it runs no code from this folder.",
        f"| | |\n|---|---|\n{rows}",
        f"```python\n{_run(facts)}\n```",
        "## What is proved, and what is not",
        _proved(facts),
        "## Weights",
        f"SHA-256 of `model.safetensors`: `{hashlib.sha256(facts.weights).hexdigest()}`\n\n"
        f"SHA-256 of the weights that the certificate is about, as onelayer stores them: `{facts.certified}`",
    ]
    return ("\n\n".join(parts) + "\n").encode()


def _proved(facts: CardFacts) -> str:
    about, model = facts.about, facts.model
    lines = [
        "- The certificate is about the layer as onelayer stores and evaluates it."
        f" Verdict: {about['verdict']}. Bound: {about['bound']}.",
        f"- Difference when `transformers` runs it, {about['dtype']}:"
        f" {facts.measured.words()['difference']}. This proves nothing.",
    ]
    if model.architecture == "opt":
        lines.insert(
            1, "- The layer has LayerNorm itself, where this architecture has it: the same function up to rounding."
        )
    elif facts.bound is None:
        lines.insert(1, f"- What LayerNorm changes, which the layer does not have, is not bounded: {UNBOUNDED}.")
    else:
        change = f"LayerNorm, which the layer does not have, changes an answer by at most {at_most(facts.bound.value)}"
        change += " on the domain (proved, in exact arithmetic)."
        lines.insert(1, f"- {change} Rounding in `transformers` is observed, not bounded.")
    if model.head == "text":
        lines.append(
            f"- The logits are those of ids 0 to {model.words - 1}. Others are special tokens, whose probability is below"
            " 1e-300. Logits that are off by at most d give distributions within d/2 in total variation."
        )
    return "\n".join(lines)


def _run(facts: CardFacts) -> str:
    model, s = facts.model, facts.model.shape.special_tokens
    if model.head == "text":
        return RUN["text"].format(longest=model.shape.all_tokens)
    if model.head == "none":
        return RUN["numbers"].format(input=facts.about["input"].removeprefix("x "))
    output = model.shape.readout == "output"
    rows = f"y is read at row {s - model.shape.output_tokens}" if output else f"y is read from row {s} on"
    example = " ".join(str(i % model.words) for i in range(min(4, model.shape.tokens)))
    if not model.shape.any_length:
        example = " ".join(str(i % model.words) for i in range(model.shape.tokens))
    return RUN["tokens"].format(example=example, rows=rows, input=facts.about["input"].removeprefix("x "))


def _cell(text: str) -> str:
    """Text for a table: one line, no bars."""
    return " ".join(text.split()).replace("|", "\\|")
