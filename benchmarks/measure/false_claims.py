"""False claims about a model folder: copies whose digests fit again, and which say what is known to be untrue.

The independent checker must not say VALID to any of them. What is untrue follows from what the certificate of the folder has
proved: a bound below the proved lower bound, a lower bound above the proved upper one where the point shows less, the formula or
the output's offset moved by more than the bound allows, a slope below one that was observed, a property turned round.
"""

import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Tensors = dict[str, tuple[str, list[int], bytes]]  # by name: dtype, shape, bytes, as the file has them
BELOW = 0.999  # a false bound over what was proved to be reached
ROUNDING = {"float64": 1e-9, "float32": 1e-5}  # an observed error beyond this is not one of rounding
NUMBERS = {"F64": ("torch.float64", "d"), "F32": ("torch.float32", "f")}
TURNED = {"increasing": "decreasing", "decreasing": "increasing", "convex": "concave", "concave": "convex"}


def tensors_of(file: Path) -> tuple[Tensors, dict[str, str]]:
    """The tensors of a .safetensors file, and its metadata."""
    data = file.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header, body = json.loads(data[8 : 8 + size]), data[8 + size :]
    about = header.pop("__metadata__", {})
    spans = {name: entry["data_offsets"] for name, entry in header.items()}
    return {n: (e["dtype"], e["shape"], body[slice(*spans[n])]) for n, e in sorted(header.items())}, about


def write_tensors(file: Path, tensors: Tensors, about: dict[str, str]) -> None:
    """The same file again, with other numbers."""
    header, start = dict[str, Any](__metadata__=about), 0
    for name, (dtype, shape, held) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + len(held)]}
        start += len(held)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(held for _, _, held in tensors.values()))


def fingerprint(tensors: Tensors) -> str:
    """SHA-256 over the names, types, shapes and bytes of all tensors, in the order of their names."""
    digest = hashlib.sha256()
    for name, (dtype, shape, held) in sorted(tensors.items()):
        digest.update(f"{name} {NUMBERS.get(dtype, (dtype,))[0]} {shape}".encode())
        digest.update(held)
    return digest.hexdigest()


def read(file: Path) -> Record:
    return dict(json.loads(file.read_text()))


def text_of(record: Record) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False)


def sealed(folder: Path, record: Record) -> None:
    """Writes the certificate with digests that fit the folder."""
    record.pop("digest", None)
    record["sha256"] |= {n: hashlib.sha256((folder / n).read_bytes()).hexdigest() for n in record["sha256"]}
    record["digest"] = hashlib.sha256(text_of(record).encode()).hexdigest()
    (folder / "certificate.json").write_text(text_of(record))


def low_bound(folder: Path, record: Record) -> bool:
    """A bound just below an error that was proved to be reached, or half of one that was observed; no word about that error."""
    beyond = (record["observed"] or 0.0) / 2 if (record["observed"] or 0.0) > ROUNDING[record["arithmetic"]] else 0.0
    bound = BELOW * record["lower"] if record.get("lower") else beyond
    record |= {"bound": bound, "lower": 0.0, "lower_point": None, "observed": 0.0}
    return bound > 0


def high_error(folder: Path, record: Record) -> bool:
    """An error as large as the bound at a point where it is smaller."""
    if not record.get("lower") or record["lower"] > BELOW * record["bound"]:
        return False
    record |= {"lower": record["bound"]}
    return True


def other_formula(folder: Path, record: Record) -> bool:
    """The target moved by ten times the tolerance."""
    target = read(folder / "target.json")
    if target["kind"] != "formula" or not target["formula"]:
        return False
    first, mark, rest = target["formula"].partition(";")
    target["formula"] = f"{first.rstrip()} + {10 * record['tolerance']!r}{mark}{rest}"
    (folder / "target.json").write_text(text_of(target))
    return True


def other_weights(folder: Path, record: Record) -> bool:
    """Every output moved by more than ten times the tolerance, through the offset of the readout."""
    tensors, about = tensors_of(folder / "model.safetensors")
    if {dtype for dtype, _, _ in tensors.values()} - set(NUMBERS) or record.get("weight_format"):
        return False
    dtype, shape, held = tensors["b_R"]
    code = f"<{len(held) // struct.calcsize(NUMBERS[dtype][1])}{NUMBERS[dtype][1]}"
    first, *others = struct.unpack(code, held)
    moved = first + 10 * record["tolerance"] + 1
    tensors["b_R"] = (dtype, shape, struct.pack(code, moved, *others))
    write_tensors(folder / "model.safetensors", tensors, about)
    record["weights"] = fingerprint(tensors)
    return True


def flat_slope(folder: Path, record: Record) -> bool:
    """A bound on the error of slopes below one that was observed."""
    if not record.get("slope") or not record["slope"]["observed"]:
        return False
    record["slope"]["bound"], record["slope"]["observed"] = BELOW * record["slope"]["observed"], 0.0
    return True


def turned_property(folder: Path, record: Record) -> bool:
    """Increasing becomes decreasing, convex becomes concave."""
    for held in record.get("properties", ()):
        for word, other in TURNED.items():
            if word in json.dumps(held):
                record["properties"] = [json.loads(json.dumps(held).replace(word, other))]
                return True
    return False


KINDS: dict[str, Callable[[Path, Record], bool]] = {
    "bound": low_bound,
    "error": high_error,
    "formula": other_formula,
    "weights": other_weights,
    "slope": flat_slope,
    "property": turned_property,
}


def false_claims(folder: Path, into: Path) -> Iterator[tuple[str, Path]]:
    """(kind, folder) of every false claim that can be made of this one; each is written to `into` in turn."""
    for kind, change in KINDS.items():
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(folder, into)
        record = read(into / "certificate.json")
        if change(into, record):
            sealed(into, record)
            yield kind, into
    shutil.rmtree(into, ignore_errors=True)
