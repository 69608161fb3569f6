"""The model folder, saved and loaded: weights, target and certificate on disk, without pickle; `load` reads students too.

    model.safetensors   the weights; in the metadata the configuration, and facts about how the layer was found
    target.json         formula, or a description of a callable or of data; domain as text and as floats, shapes
    certificate.json    the certificate, SHA-256 of the two other files, versions, and a digest over target and certificate

Writing is atomic: everything goes into a fresh folder beside the destination, which is then renamed. Loading checks the
digests and reads only numbers and text.
"""

import hashlib
import json
import math
from dataclasses import asdict, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ..approximation import Approximation, Facts
from ..common.atomic import fresh_folder, umask
from ..common.checks import known_options
from ..common.errors import InputError
from ..model.config import LayerConfig
from ..model.token_encoder import TokenEncoder
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import SCHEMA, Certificate
from ..target.description import Description
from . import student_folder

FILES = ("model.safetensors", "target.json", "certificate.json")
PACKAGES = ("onelayer", "torch", "numpy", "scipy", "python-flint", "safetensors")


def save(approximation: Approximation, folder: Path) -> Path:
    """Write the folder; an earlier model folder with that name is replaced, anything else is refused."""
    folder = Path(folder).absolute()
    require_free(folder)
    approximation.require_unchanged()
    with fresh_folder(folder) as fresh:
        _write_model(approximation, fresh / FILES[0])
        (fresh / FILES[0]).chmod(0o666 & ~umask())
        (fresh / FILES[1]).write_text(_json({"schema": SCHEMA} | approximation.description.as_json()))
        record = approximation.certificate.as_json() | {"versions": _versions()}
        record["sha256"] = {name: _digest((fresh / name).read_bytes()) for name in FILES[:2]}
        record["digest"] = _digest(_json(record).encode())
        (fresh / FILES[2]).write_text(_json(record))
    return folder


@known_options
def load(folder: str | Path) -> Approximation | TokenEncoder:
    """What a folder holds: an Approximation, or the layer over tokens that `distill` trained (a module).

    An edited file of an Approximation is refused.
    """
    path = Path(folder)
    if (path / student_folder.FILES[0]).is_file() and not (path / FILES[0]).is_file():
        return student_folder.load_student(path)
    return load_approximation(path)


def load_approximation(folder: str | Path) -> Approximation:
    """The Approximation of a folder. An edited file is refused."""
    folder = Path(folder)
    for name in FILES:
        if not (folder / name).is_file():
            raise InputError(f"a model folder at {folder}", f"no {name} in it", "name a folder that `build` wrote")
    record = _read(folder / FILES[2])
    _verify(folder, record)
    about = _read(folder / FILES[1])
    try:
        description = Description.from_json(about)
        target = description.target()
        certificate = Certificate.from_json(record)
    except InputError:
        raise  # already says what is wrong
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        found = f"{type(error).__name__} {error}"
        raise InputError("a complete target.json and certificate.json", found, "build the folder again") from None
    model, facts = _read_model(folder / FILES[0])
    _require_fit(description, model, facts)
    if certificate.weights != model.fingerprint():
        raise InputError("the weights that were certified", "other weights", "build the folder again")
    return Approximation(model, certificate, facts, description, target)


def _require_fit(description: Description, model: SingleLayerTransformer, facts: Facts) -> None:
    """Vocabulary and shapes fit the model."""
    c, vocabulary = model.config, description.vocabulary
    shaped = math.prod(description.output_shape) == len(facts.places) * c.features_out
    whole = vocabulary is None or (type(vocabulary) is int and vocabulary == c.features_in)
    if not (shaped and whole and all(0 <= p < c.places for p in facts.places)):
        found = "a vocabulary or a shape of something else"
        raise InputError("a target.json that fits its model", found, "build the folder again")


def require_free(folder: Path) -> None:
    """Nothing is at the destination, or only an earlier model folder, which may be replaced."""
    if folder.is_symlink() or (folder.exists() and not all((folder / name).is_file() for name in FILES)):
        raise InputError(f"a new folder {folder.name}", "something else has that name", "choose another name")


def _write_model(approximation: Approximation, path: Path) -> None:
    facts = asdict(approximation.facts)
    about = {"config": json.dumps(asdict(approximation.model.config)), "facts": json.dumps(facts)}
    tensors = {name: t.detach().contiguous() for name, t in approximation.model.state_dict().items()}
    save_file(tensors, path, metadata=about)


def _read_model(path: Path) -> tuple[SingleLayerTransformer, Facts]:
    try:
        with safe_open(path, framework="pt") as file:
            about = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a dictionary)
        config = LayerConfig(**json.loads(about["config"]))
        given = json.loads(about["facts"])
        given["heads"] = tuple((str(kind), int(count)) for kind, count in given["heads"])
        facts = Facts(**{f.name: _tuple(given[f.name]) for f in fields(Facts) if f.name in given})
        dtype = tensors["W_E"].dtype
        model = SingleLayerTransformer(config, dtype=dtype if dtype == torch.float32 else torch.float64)
        model.load_state_dict(tensors)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        found = " ".join(str(error).split())[:200]
        raise InputError(f"weights in {path.name}", found, "build the folder again") from None
    return model.eval(), facts


def _verify(folder: Path, record: dict[str, Any]) -> None:
    """The digests in the record match the files and the record itself."""
    claimed = dict(record)
    digest = claimed.pop("digest", None)
    if record.get("schema") != SCHEMA:
        raise InputError(f"certificate schema {SCHEMA}", f"{record.get('schema')}", "use the version that wrote it")
    if digest != _digest(_json(claimed).encode()):
        raise InputError("an untouched certificate.json", "its digest does not fit", "build the folder again")
    for name in FILES[:2]:
        if record.get("sha256", {}).get(name) != _digest((folder / name).read_bytes()):
            raise InputError(f"an untouched {name}", "its digest does not fit", "build the folder again")


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"JSON in {path.name}", " ".join(str(error).split())[:200], "build the folder again") from None
    if not isinstance(found, dict):
        raise InputError(f"a JSON object in {path.name}", type(found).__name__, "build the folder again")
    return found


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _versions() -> dict[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = "unknown"
    return found
