"""`onelayer distill`: a deep model of token sequences becomes one layer."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ...common.errors import InputError
from . import options as given
from .build import usable
from .show import print_json, progress_bar


class Read(StrEnum):
    hidden = "hidden"
    logits = "logits"
    pooled = "pooled"


def distill(
    teacher: Annotated[
        str,
        typer.Argument(
            metavar="TEACHER", help="The folder of a transformers model, or a packaged one: rxnmapper, minilm."
        ),
    ],
    inputs: Annotated[
        Path, typer.Option(metavar="FILE", help="Texts, one per line (.txt), or token numbers [N, n] (.npy).")
    ],
    out: Annotated[str, typer.Option(metavar="FOLDER", help="The folder to write the student to.")],
    read: Annotated[Read, typer.Option(help="What to learn from the teacher.")] = Read.hidden,
    heads: Annotated[int, typer.Option(min=1, help="Number of heads.")] = 4,
    width: Annotated[int, typer.Option(min=1, help="Width of the feed-forward network.")] = 512,
    d_model: Annotated[int, typer.Option("--d-model", min=1, help="Width of the stream.")] = 128,
    steps: Annotated[int, typer.Option(min=1, help="Number of training steps.")] = 2000,
    seconds: Annotated[float | None, typer.Option(help="Stop after this many seconds.")] = None,
    checkpoint: given.Checkpoint = None,
    device: given.Device = "cpu",
    seed: given.Seed = 0,
    force: given.Force = False,
    json: given.Json = False,
) -> int:
    """Train one layer on the answers of a deep model. One input in ten is held out to judge it: observed, not proved."""
    destination = usable(out, force)
    sequences = _inputs(inputs)
    import onelayer as ol

    from ...training.distill.teachers import PACKAGED, packaged

    folder = packaged(teacher) if teacher in PACKAGED else Path(teacher)
    every = max(1, min(200, steps // 5))
    with progress_bar(not json) as progress:
        found = ol.distill(
            folder, sequences, heads=heads, width=width, d_model=d_model, steps=steps, seconds=seconds, every=every,
            checkpoint=checkpoint, device=device, seed=seed, read=read.value, progress=progress,
        )  # fmt: skip
        found.save(destination, overwrite=force)
    if json:
        print_json(found.record())
    else:
        print(found)
        print(f"written to {out}")
    return 0


def _inputs(path: Path) -> Any:
    if not path.is_file():
        raise InputError("a file of inputs", f"no file {path}", "name a .txt or .npy file")
    if path.suffix == ".npy":
        import numpy as np

        try:
            found = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise InputError(f"token numbers in {path.name}", f"{error}", "save an array of whole numbers") from None
        if not isinstance(found, np.ndarray):
            raise InputError(f"token numbers in {path.name}", "an archive", "save one array of whole numbers")
        return found
    try:
        texts = [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except UnicodeDecodeError:
        raise InputError(f"texts in UTF-8 in {path.name}", "other bytes", "convert the file") from None
    if len(texts) < 2:
        raise InputError(f"at least two texts in {path.name}", f"{len(texts)}", "give more lines")
    return texts
