"""Hugging Face: a folder that `transformers` opens as a stock one-layer architecture, without code from the folder.

    config.json, model.safetensors      the model (`architectures` says which one is chosen)
    wrapper.py, wrapper.safetensors     from x to y: embedding of numbers and read-out; not for text
    tokenizer.json, tokenizer_config.json   for tokens and text
    README.md                           the model card, written from the certificate

LayerNorm is dealt with as in the stock export: `layernorm` rewrites a layer that has none, `deviation` bounds what it changes.
The folder is run by `transformers` before it is put in place.
"""

import contextlib
import importlib
import json
import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from safetensors.torch import save

from ....common.errors import InputError
from ....language_model import LanguageModel
from ..deviation import deviation
from ..layernorm import doubled
from ..sequence_subject import SequenceSubject
from ..subject import Bound, Made, Measured, Subject
from ..torch import require_own
from ..value_bounds import AnySubject, value_bounds
from .architectures import Head, StockModel, text_head, with_stock_eps
from .model_card import UNBOUNDED, CardFacts, model_card

FILES = (
    *("README.md", "config.json", "tokenizer.json", "tokenizer_config.json"),
    *("wrapper.py", "wrapper.safetensors", "model.safetensors"),
)
CHUNK = 2**22  # numbers held at a time when measuring
WORK = 2**34  # products spent on measuring: wide models are measured at fewer points
NEEDED = "transformers, version 5 or later"
FAR_BELOW = 800.0  # logits of ids that are no words are this far below all others


def make(subject: AnySubject, points: int, seed: int) -> Made:
    """The files, run by `transformers` from a folder of their own before they are returned."""
    transformers = packages()
    text = subject.layer if isinstance(subject, SequenceSubject) and isinstance(subject.layer, LanguageModel) else None
    model, head, bound, notes = _stock_model(subject, text is not None)
    tensors = model.tensors(head)
    layer = {"layer": json.dumps(_about(subject, model), sort_keys=True)}  # also the mark of an export
    files = {"config.json": _config(transformers, subject, model)}
    if model.words:
        from .word_level import tokenizer_files

        files |= tokenizer_files(model, text)
    if text is None:
        source = Path(__file__).parent / "wrapper.py"
        files |= {"wrapper.py": source.read_bytes(), "wrapper.safetensors": save(model.ends(), metadata=layer)}
    files["model.safetensors"] = save(tensors, metadata={"format": "pt"} | layer)
    cost = model.shape.all_tokens * sum(t.numel() for t in tensors.values())
    with tempfile.TemporaryDirectory() as folder, _quiet(transformers):
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        measured = _measured(subject, model, Path(folder), max(1, min(points, WORK // cost)), seed)
    certified = (subject.layer if isinstance(subject, SequenceSubject) else subject.approximation).certificate.weights
    facts = CardFacts(subject.about(), model, measured, bound, certified, files["model.safetensors"])
    files = {"README.md": model_card(facts)} | files
    return Made(files, measured, bound, notes)


def packages() -> Any:
    change = "pip install 'onelayer[interop]'"
    try:
        importlib.import_module("tokenizers")
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise InputError(f"the package {NEEDED}", f"{error.name} is not installed", change) from None
    if int(transformers.__version__.split(".")[0]) < 5:
        raise InputError(f"the package {NEEDED}", f"version {transformers.__version__}", change)
    return transformers


def _stock_model(
    subject: AnySubject, text: bool
) -> tuple[StockModel, torch.Tensor | None, Bound | None, tuple[str, ...]]:
    """The model, the read-out of a text, what is proved about LayerNorm, and remarks."""
    c, words = subject.model.config, subject.vocabulary or 0
    head: Head = "text" if text else "tokens" if words else "none"
    if c.norm != "none":
        require_own(c, None)
        if words or isinstance(subject, SequenceSubject):
            found = f"{c.norm}-norm of the layer's own"
            raise InputError("a layer of tokens or of any length without LayerNorm", found, "export it as onnx")
        own = {name: t.detach() for name, t in subject.model.state_dict().items()}
        model = StockModel("opt", head, *with_stock_eps(c, own), words)
        return model, None, None, (f"{model.name}, {c.norm}-norm, the layer's own",)
    architecture: Literal["gpt2", "bert"] = "gpt2" if c.causal else "bert"
    rewritten = doubled(subject, architecture)
    model = StockModel(architecture, head, rewritten.config, rewritten.weights, words)
    of = "what LayerNorm changes in exact arithmetic; rounding is only measured"
    value = deviation(subject, rewritten, architecture, bias_in_stream=text)
    bound = Bound(value, of) if value < math.inf and model.exact_words else None
    notes: tuple[str, ...] = (f"{model.name}, constants ±C in the stream, C = {rewritten.constant:.4g}",)
    notes += () if bound is not None else (f"what LayerNorm changes is not bounded: {UNBOUNDED}",)
    if not text:
        return model, None, bound, notes
    s, w = value_bounds(subject), {name: t.detach().double().abs() for name, t in subject.model.state_dict().items()}
    largest = float(((s.stream + s.fed) @ w["W_R"] + w["b_R"]).max())
    return model, text_head(rewritten, words, model.pad + 1, -(largest + FAR_BELOW)), bound, notes


def _about(subject: AnySubject, model: StockModel) -> dict[str, Any]:
    """What the wrapper needs to know."""
    c = model.shape
    s = c.special_tokens
    answer = (list(subject.places), list(subject.shape)) if isinstance(subject, Subject) else (None, None)
    return {
        "special": model.special,
        "tokens": bool(model.words),
        "features": c.features_in,
        "all_see_all": model.architecture == "opt" and not c.causal,
        "rows": [s - c.output_tokens, s] if c.readout == "output" else [s, s + c.tokens],
        "mean": c.readout == "mean",
        "per_position": c.readout == "position",
        "places": answer[0],
        "shape": answer[1],
    }


def _config(transformers: Any, subject: AnySubject, model: StockModel) -> bytes:
    """config.json; answers that are labels have their names."""
    given = model.config()
    description = (subject.approximation if isinstance(subject, Subject) else subject.layer).description
    labels = description.decoding.labels if description.decoding is not None else ()
    if model.head == "tokens" and len(labels) == model.shape.features_out:
        given |= {"id2label": {i: str(label) for i, label in enumerate(labels)}}
    kind = {"bert": "BertConfig", "gpt2": "GPT2Config", "opt": "OPTConfig"}[model.architecture]
    return str(getattr(transformers, kind)(**given).to_json_string()).encode()


def _measured(subject: AnySubject, model: StockModel, folder: Path, points: int, seed: int) -> Measured:
    """The folder compared with our own layer, without gradients."""
    c = model.shape
    rows = max(1, CHUNK // (c.all_tokens * max(c.d_model, c.heads * c.all_tokens, c.ffn_width)))
    layer = _text_layer(folder, model) if model.head == "text" else _wrapped(folder)

    def answer(x: np.ndarray, padding: np.ndarray | None = None) -> np.ndarray:
        masks = [None] * len(x) if padding is None else torch.from_numpy(~padding).split(rows)
        with torch.no_grad():
            parts = [layer(part, mask) for part, mask in zip(torch.from_numpy(x).split(rows), masks, strict=False)]
        return torch.cat([part.reshape(len(part), -1) for part in parts]).numpy() if len(x) else np.zeros((0, 1))

    if isinstance(subject, SequenceSubject):
        return subject.measure(answer, seed)
    return subject.measure(answer, subject.points(points, seed))


def _wrapped(folder: Path) -> Any:
    from .wrapper import load

    return load(folder)


def _text_layer(folder: Path, model: StockModel) -> Any:
    """Token numbers → logits of the words, as our own layer gives them: 0 where there is no token."""
    from transformers import AutoModelForCausalLM

    stock, special = AutoModelForCausalLM.from_pretrained(folder).eval(), torch.tensor(model.special)

    def layer(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        ids = torch.cat([special.expand(len(x), -1), x.long()], dim=1)
        seen = torch.nn.functional.pad(mask.long(), (len(special), 0), value=1)
        logits = stock(input_ids=ids, attention_mask=seen).logits
        return logits[:, len(special) :, : model.words] * mask.unsqueeze(-1)

    return layer


@contextlib.contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """No progress bars and remarks of `transformers` meanwhile."""
    logs = transformers.utils.logging
    verbosity, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    logs.disable_progress_bar()
    try:
        yield
    finally:
        logs.set_verbosity(verbosity)
        if bars:
            logs.enable_progress_bar()
