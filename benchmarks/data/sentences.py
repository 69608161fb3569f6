"""English sentences from the docstrings of installed packages: inputs of MiniLM in `benchmarks/measure/distilled.py`.

They are whole sentences of 4 to 40 words without markup or code. Those of scipy and networkx are for judging only; those of
the other packages are learned from. A sentence that both have is in neither.

    python benchmarks/data/sentences.py tokens.npz    token numbers and masks, by MiniLM's tokeniser (extra `teachers`)
"""

import argparse
import ast
import random
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np

LEARNED_FROM = ("", "torch", "sympy", "sklearn", "numpy", "plotly", "dask", "sphinx")  # "": the standard library
JUDGED_BY = ("scipy", "networkx")
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
MARKUP = re.compile(r"[<>={}`|\\_*]|::|--|\.\.\.|>>>")
WORDS = range(4, 41)


def sentences(path: Path) -> Iterator[str]:
    """The whole sentences of a file's docstrings."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError):  # tests hold files that are broken on purpose
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for paragraph in (ast.get_docstring(node) or "").split("\n\n"):
                for sentence in END.split(" ".join(paragraph.split())):
                    whole = sentence[:1].isupper() and sentence[-1:] in (".", "!", "?")
                    if whole and len(sentence.split()) in WORDS and not MARKUP.search(sentence):
                        yield sentence


def of_packages(names: tuple[str, ...]) -> set[str]:
    """The different sentences of these packages; one that is not installed has none."""
    paths, found = sysconfig.get_paths(), set()
    for name in names:
        folder = Path(paths["purelib"]) / name if name else Path(paths["stdlib"])
        for path in sorted(folder.rglob("*.py")):
            if name or "site-packages" not in path.parts:
                found.update(sentences(path))
    return found


def learned_and_judged(seed: int = 0) -> tuple[list[str], list[str]]:
    """(sentences to learn from, sentences to judge by), both shuffled; no sentence is in both."""
    learned, judged = of_packages(LEARNED_FROM), of_packages(JUDGED_BY)
    both = learned & judged
    orders = [sorted(part - both) for part in (learned, judged)]
    for order in orders:
        random.Random(seed).shuffle(order)
    return orders[0], orders[1]


def main() -> None:
    from onelayer.training.distill.teachers import packaged, teacher_of

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the .npz file to write")
    args = parser.parse_args()
    tokenise = teacher_of(packaged("minilm"), "pooled").tokenise
    assert tokenise is not None
    arrays = {}
    for name, texts in zip(("learned", "judged"), learned_and_judged(), strict=True):
        tokens, there = (t.numpy() for t in tokenise(texts))
        arrays |= {name: tokens.astype(np.uint16), f"{name}_mask": there}
        print(f"{name}: {len(texts):,} sentences of up to {tokens.shape[1]} tokens")
    np.savez_compressed(args.out, **arrays)


if __name__ == "__main__":
    main()
