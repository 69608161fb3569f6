"""Layers for other programs. One module or package per format.

    onnx               one file, x → y, dynamic batch; run by ONNX Runtime before it is written
    torch              a folder: model.safetensors and layer.py, a stock nn.TransformerEncoderLayer between two linear maps
    hf                 a folder that Hugging Face's transformers opens as BERT, GPT-2 or OPT with one layer
    transformer_lens   a folder: config.json, model.safetensors and load.py, a one-layer model of TransformerLens
    c                  one C99 file that contains the weights
    coq                one file that states and proves the error bound of the stored weights
    vnnlib             a folder: ONNX for verifiers, questions in VNN-LIB 2.0, their answers, and a certificate of the answers

What is written was run before, or compiled, by the program that it is for, if that is here.
The certificate covers our own evaluation. An export reports the largest difference from that which was observed, and a bound
where one is proved (`docs/run/export.md`).
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ...approximation import Approximation
from ...common.checks import known_options, require_choice, require_seed, require_whole
from ...common.errors import InputError
from ...common.numbers import at_least, at_most, exact
from ...common.table import Table
from ...sequence_layer import SequenceLayer
from ..folder import load_approximation, load_certified
from . import c, coq, hf, onnx, onnx_lengths, torch, transformer_lens, vnnlib
from .c_exp import Exponential
from .coq.samples import Pair
from .place import require_place, write
from .sequence_subject import sequence_subject_of
from .subject import Made, subject_of

Format = Literal["onnx", "torch", "hf", "transformer_lens", "c", "coq", "vnnlib"]
MOST_POINTS = 10**7
FILES: dict[str, tuple[str, ...]] = {
    "onnx": ("model.onnx",),
    "torch": torch.FILES,
    "hf": hf.FILES,
    "transformer_lens": transformer_lens.FILES,
    "c": ("onelayer.c",),
    "coq": ("onelayer.v",),
    "vnnlib": vnnlib.FILES,
}


@dataclass(frozen=True)
class Exported:
    """What was written, and how close it is to our own layer.

    `difference` is the largest one observed at this many `points` (None: nothing here could run the file), `error` the largest
    distance from the target observed there (None: the target is not known). `bound` is proved; `bound_of` says of what. `in_all`
    is proved too: the largest error of the export on the domain, by the certificate of the layer (None: nothing is proved).
    """

    to: Format
    path: Path
    files: tuple[str, ...]
    dtype: str
    size: int  # bytes
    tolerance: float
    points: int
    difference: float | None
    error: float | None
    bound: float | None
    bound_of: str
    in_all: float | None
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"path": str(self.path)}

    def table(self) -> Table:
        rows: list[tuple[object, ...]] = [("format", f"{self.to}, {self.dtype}"), ("size", f"{self.size:,} bytes")]
        if self.difference is None:
            rows.append(("observed difference", "not measured"))
        else:
            rows.append(("observed difference", f"{at_least(self.difference, 3)} from our own layer"))
        if self.error is not None:
            rows.append(("observed error", f"{at_least(self.error, 3)} (tolerance {exact(self.tolerance)})"))
        if self.difference is not None:
            rows.append(("points", f"{self.points:,}: random points of the domain, and its corners"))
        if self.bound is not None:
            rows.append(("bound (proved)", f"{at_most(self.bound)}: {self.bound_of}"))
        if self.in_all is not None:
            rows.append(("in all (proved)", f"{at_most(self.in_all)}: any error on the domain, by the certificate"))
        rows += [("note", note) for note in self.notes]
        return Table("Export", ("", "value"), rows)

    def __str__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


@known_options
def export(
    layer: Approximation | SequenceLayer | str | Path,
    path: str | Path,
    *,
    to: Format,
    dtype: Literal["float64", "float32"] | None = None,
    norm: torch.Norm | None = None,
    exp: Exponential | None = None,
    points: int = 10_000,
    seed: int = 0,
    data: Pair | None = None,
    against: Approximation | str | Path | None = None,
    overwrite: bool = False,
) -> Exported:
    """Write a layer, given itself or as a model folder, in another format, after comparing the two at random points.

    `dtype` is that of the layer unless given. `norm` is for `to="torch"`: where the stock layer has its LayerNorm, after the
    sublayers ("post", the default) or before them ("pre"). `exp` is for `to="c"`: that of the C library ("libm", the default), or
    one in the file, whose error is proved ("table"). `data` is for `to="coq"` and a layer that stores samples: these
    samples, (X, Y). `against` is for `to="vnnlib"`: another layer on the same domain; the questions are then how far the two
    are apart. An existing `path` is refused; `overwrite=True` replaces an earlier export. A layer for sequences of any length is
    written as ONNX, with masks, or for Hugging Face or TransformerLens.
    """
    require_choice("to", to, FILES)
    if norm not in (None, "post", "pre") or (norm is not None and to != "torch"):
        raise InputError("norm, post or pre, for to='torch' alone", f"norm={norm!r}, to={to!r}", "leave `norm` out")
    if exp not in (None, *get_args(Exponential)) or (exp is not None and to != "c"):
        raise InputError("exp, libm or table, for to='c' alone", f"exp={exp!r}, to={to!r}", "leave `exp` out")
    if data is not None and to != "coq":
        raise InputError("data for to='coq' alone", f"to={to!r}", "leave `data` out")
    if to == "vnnlib" and dtype == "float32":
        raise InputError("to='vnnlib' in float64", "dtype='float32'", "leave `dtype` out")
    if to != "vnnlib" and against is not None:
        raise InputError("against for to='vnnlib' alone", f"to={to!r}", "leave `against` out")
    require_whole("points", points, 1, MOST_POINTS)
    require_seed(seed)
    place = require_place(path, FILES[to], overwrite)
    loaded = load_certified(layer) if isinstance(layer, str | Path) else layer
    if isinstance(loaded, SequenceLayer):
        return _lengths(loaded, place, to, dtype, seed)
    subject = subject_of(loaded, "float64" if to == "vnnlib" else dtype, causal=to in ("hf", "transformer_lens"))
    other = load_approximation(against) if isinstance(against, str | Path) else against
    match to:
        case "coq":
            made = coq.make(subject, data)
        case "hf":
            made = hf.make(subject, points, seed)
        case "torch":
            made = torch.make(subject, subject.points(points, seed), norm)
        case "c":
            made = c.make(subject, subject.points(points, seed), exp or "libm")
        case "vnnlib":
            beside = None if other is None else subject_of(other, "float64")
            made = vnnlib.make(subject, subject.points(points, seed), beside)
        case _:
            make = {"onnx": onnx.make, "transformer_lens": transformer_lens.make}[to]
            made = make(subject, subject.points(points, seed))
    write(place, made.files)
    if not subject.same and to in ("onnx", "c"):
        about = f"the certificate is about {loaded.certificate.arithmetic}: nothing is proved of this file"
        made = replace(made, notes=(*made.notes, about))
    if subject.stored and to in ("hf", "transformer_lens", *(["torch"] if subject.stored == "int8" else [])):
        made = replace(
            made, notes=(*made.notes, f"the {subject.stored} weights are written as float32: the same numbers")
        )
    tolerance, total = subject.approximation.certificate.tolerance, subject.in_all(made.bound)
    return _exported(to, place, tolerance, subject.arithmetic.name, made, total)


def _lengths(layer: SequenceLayer, place: Path, to: Format, dtype: str | None, seed: int) -> Exported:
    """A layer for any length: ONNX, Hugging Face and TransformerLens have dynamic shapes; stock layers and C have one length."""
    if to not in ("onnx", "hf", "transformer_lens"):
        found = f"a layer for sequences of 1 to {layer.longest:,}, with masks"
        raise InputError(
            f"a layer of one length as {to}",
            found,
            "export it as onnx, hf or transformer_lens, or one length: at_length(n)",
        )
    subject = sequence_subject_of(layer, dtype)
    if to == "hf":
        made = hf.make(subject, 0, seed)
    else:
        made = (onnx_lengths.make if to == "onnx" else transformer_lens.make_lengths)(subject, seed)
    write(place, made.files)
    return _exported(to, place, layer.certificate.tolerance, subject.arithmetic.name, made)


def _exported(
    to: Format, place: Path, tolerance: float, name: str, made: Made, in_all: float | None = None
) -> Exported:
    seen, proved, notes = made.measured, made.bound, made.notes
    if seen is not None and seen.error is not None and seen.error > tolerance:
        notes += (f"misses the tolerance of {exact(tolerance)}: build with a smaller one, or export in float64",)
    elif in_all is not None and in_all > tolerance:
        notes += (f"not proved to keep the tolerance of {exact(tolerance)}: build with a smaller one",)
    files = tuple(made.files) if len(made.files) > 1 else (place.name,)
    size = sum(map(len, made.files.values()))
    points, difference, error = (seen.points, seen.difference, seen.error) if seen is not None else (0, None, None)
    bound, bound_of = (proved.value, proved.of) if proved is not None else (None, "")
    return Exported(to, place, files, name, size, tolerance, points, difference, error, bound, bound_of, in_all, notes)
