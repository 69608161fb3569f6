"""Tokenizers that `AutoTokenizer` opens: one word for every token, special tokens before them. Unknown words are refused.

A token program is written as numbers, "3 1 2"; a text as it is, cut into characters or words as `target.tokenizer` does.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from ....language_model import LanguageModel
from .architectures import StockModel

PAD = "⟨pad⟩"
FILES = ("tokenizer.json", "tokenizer_config.json")


def special_words(model: StockModel) -> list[str]:
    """The names of the special tokens, in their order."""
    c = model.shape
    kinds = [("anchor", c.anchor_tokens), ("memory", c.memory_tokens), ("output", c.output_tokens)]
    return [f"⟨{kind} {i + 1}⟩" for kind, count in kinds for i in range(count)]


def tokenizer_files(model: StockModel, text: LanguageModel | None) -> dict[str, bytes]:
    """The files of the tokenizer."""
    from transformers import PreTrainedTokenizerFast

    special = special_words(model)
    words = text.words if text is not None else [str(i) for i in range(model.words)]
    tokenizer = _cutting([*words, *special, PAD], text)
    begin = [*special, words[0]] if text is not None else special  # a text follows ⟨start⟩, its first word
    tokenizer.post_processor = _beginning(tokenizer, begin)
    options: dict[str, Any] = {"pad_token": PAD, "additional_special_tokens": special, "padding_side": "right"}
    options |= {"model_input_names": ["input_ids", "attention_mask"], "model_max_length": model.shape.all_tokens}
    options |= {"bos_token": words[0]} if text is not None else {}
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, clean_up_tokenization_spaces=False, **options)
    with tempfile.TemporaryDirectory() as folder:
        fast.save_pretrained(folder)
        return {name: (Path(folder) / name).read_bytes() for name in FILES}


def _cutting(words: list[str], text: LanguageModel | None) -> Any:
    """From a text to words and back."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers

    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}))
    if text is None:
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        return tokenizer
    pattern = _word_pattern(text.words) if text.tokens == "words" else r"[\s\S]"
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
    tokenizer.decoder = decoders.Fuse()
    return tokenizer


def _word_pattern(words: tuple[str, ...]) -> str:
    """How `target.tokenizer` cuts words, its classes spelled out for the characters of these words.

    What a letter is differs between Python and `tokenizers`. Other characters are in no word, and so refused either way.
    """
    known = sorted(set("".join(words[1:])))
    classes = ((r"[^\W\d_]", "+"), (r"\d|_|[^\w\s]", ""))
    parts = [(" ?", [c for c in known if re.fullmatch(kind, c)], times) for kind, times in classes]
    parts.append(("", [c for c in known if c.isspace()], ""))
    listed = ((before, "".join(f"\\x{{{ord(c):x}}}" for c in chars), times) for before, chars, times in parts if chars)
    return "|".join(f"{before}[{chars}]{times}" for before, chars, times in listed)


def _beginning(tokenizer: Any, begin: list[str]) -> Any:
    """What puts these tokens before every text."""
    from tokenizers import processors

    numbers = [(word, tokenizer.token_to_id(word)) for word in begin]
    return processors.TemplateProcessing(single=[*begin, "$A"], special_tokens=numbers)
