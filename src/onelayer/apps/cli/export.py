"""`onelayer export`: a layer for other programs."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ...common.errors import InputError
from . import options as given
from .sample_file import samples_beside
from .show import print_json


class ExportFormat(StrEnum):
    onnx = "onnx"
    torch = "torch"
    hf = "hf"
    c = "c"
    coq = "coq"
    transformer_lens = "transformer_lens"
    vnnlib = "vnnlib"


class NormPosition(StrEnum):
    post = "post"
    pre = "pre"


class CExponential(StrEnum):
    libm = "libm"
    table = "table"


def export(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="A model folder.")],
    to: Annotated[
        ExportFormat,
        typer.Option(
            help="ONNX, stock PyTorch, Hugging Face, TransformerLens, C99 source, a proof for Coq, or questions for verifiers."
        ),
    ],
    out: Annotated[
        str,
        typer.Option(metavar="PATH", help="The file to write; for torch, hf, transformer_lens and vnnlib a folder."),
    ],
    dtype: Annotated[given.Dtype | None, typer.Option(help="Type of the export; the layer's by default.")] = None,
    norm: Annotated[
        NormPosition | None, typer.Option(help="Where the stock layer has its LayerNorm (torch); post by default.")
    ] = None,
    exp: Annotated[
        CExponential | None,
        typer.Option(help="Exponential (c): the C library's, the default, or one in the file with a proved error."),
    ] = None,
    points: Annotated[int, typer.Option(help="Random points at which the export is compared with our layer.")] = 10_000,
    data: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file that was memorised (coq), which the folder does not hold."),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Another layer (vnnlib): the questions are how far the two are apart."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    json: given.Json = False,
) -> int:
    """Write the layer of a folder for another program.

    Prints how far the export is from our own layer.
    """
    if not out.strip():
        raise InputError("a path for --out", f"{out!r}", "name a new file")
    import onelayer as ol

    found = ol.export(
        folder, out, to=to.value, dtype=dtype.value if dtype else None, norm=norm.value if norm else None,
        exp=exp.value if exp else None, points=points, data=samples_beside(folder, data), against=against, overwrite=force,
    )  # fmt: skip
    if json:
        print_json(found.as_json())
    else:
        print(found)
        print(f"written to {out}")
    return 0
