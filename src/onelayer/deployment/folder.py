"""The model folder, saved and loaded: weights, target and certificate on disk, without pickle; `load` reads students too.

    model.safetensors   the weights; in the metadata the configuration, and facts about how the layer was found
    target.json         formula, or a description of a callable or of data; domain as text and as floats, shapes
    certificate.json    the certificate, SHA-256 of the other files, versions, and a digest over target and certificate

A prompt's folder has two files more (`prompt_files`).

A new folder appears complete. In an existing one, with `overwrite`, only these files and an earlier report are replaced: the old
certificate goes first and the new one comes last. Loading checks the digests and reads only numbers and text.

The two files that a prompt's folder has beside those of a model: the frozen weights, and the prompt.

    weights.safetensors   the frozen layer, which is the same, byte for byte, for every prompt
    prompt.safetensors    `tokens` [token, d_model]: all that depends on the function

Together they are the model of model.safetensors, whose certificate holds for both: loading compares them, so does the checker.
"""

import hashlib
import json
import math
from dataclasses import asdict, fields
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as tensors_file
from safetensors.torch import save as weights_file

from ..approximation import Approximation
from ..common.atomic import write_folder
from ..common.checks import known_options, require_files
from ..common.errors import InputError
from ..language_model import LanguageModel
from ..layer.assemble.prompt_tokens import frozen_layer
from ..layer.facts import Facts
from ..layer.weight_format import packed, unpacked
from ..model.config import LayerConfig
from ..model.token_encoder import TokenEncoder
from ..model.transformer import SingleLayerTransformer
from ..proof.certificate import READABLE, SCHEMA, Certificate
from ..sequence_layer import SequenceLayer
from ..target.description import Description
from ..target.sequence_task import SequenceTask
from .earlier_model import MODEL_FILES as FILES
from .earlier_model import PROMPT_FILES, STUDENT_FILES, require_place, stale_files
from .student_folder import load_student


def prompt_files(approximation: Approximation | SequenceLayer) -> dict[str, bytes]:
    """The files of a prompt, by name; none for other layers."""
    if approximation.facts.construction != "prompt":
        return {}
    layer = frozen_layer().layer
    weights = tensors_file(dict(layer.state_dict()), metadata={"frozen": json.dumps(asdict(layer.config))})
    tokens = tensors_file({"tokens": approximation.model.special.detach()}, metadata={"prompt": "tokens"})
    return dict(zip(PROMPT_FILES, (weights, tokens), strict=True))


def require_same(contents: dict[str, bytes], model: SingleLayerTransformer) -> None:
    """Refuse files of a prompt that hold other numbers than the model."""
    if not all(name in contents for name in PROMPT_FILES):
        return
    try:
        weights, tokens = (tensors_of(contents[name]) for name in PROMPT_FILES)
        frozen = frozen_layer()
        same = weights.keys() == frozen.layer.state_dict().keys() and torch.equal(tokens["tokens"], model.special)
        same = same and all(torch.equal(t, weights[name]) for name, t in frozen.layer.state_dict().items())
        same = (
            same and frozen.with_prompt(tokens["tokens"], model.config.features_in).fingerprint() == model.fingerprint()
        )
    except (SafetensorError, KeyError, RuntimeError):
        same = False
    if not same:
        raise InputError("the frozen weights and the prompt of this model", "other numbers", "build the folder again")


PACKAGES = ("onelayer", "torch", "numpy", "scipy", "python-flint", "safetensors")


def save(approximation: Approximation | SequenceLayer, folder: Path, overwrite: bool = False) -> Path:
    """Write the folder; with `overwrite` an earlier model in it is replaced, and nothing else."""
    folder = Path(folder).absolute()
    require_place(folder, overwrite)
    files = files_of(approximation)
    return write_folder(folder, files, stale_files(folder, files))


def files_of(approximation: Approximation | SequenceLayer) -> dict[str, bytes]:
    """The files of a folder, by name; the certificate last."""
    approximation.require_unchanged()
    about = _json({"schema": SCHEMA} | approximation.description.as_json())
    files = {FILES[0]: _weights(approximation), FILES[1]: about.encode()} | prompt_files(approximation)
    record = approximation.certificate.as_json() | {"versions": _versions()}
    record["sha256"] = {name: _digest(content) for name, content in files.items()}
    record["digest"] = _digest(_json(record).encode())
    files[FILES[2]] = _json(record).encode()
    return files


@known_options
def load(folder: str | Path) -> Approximation | SequenceLayer | TokenEncoder:
    """What a folder holds: an Approximation, a SequenceLayer, a LanguageModel, or the module that `distill` trained.

    An edited file is refused; a student's folder has no digests.
    """
    path = Path(folder)
    if (path / STUDENT_FILES[0]).is_file() and not (path / FILES[0]).is_file():
        return load_student(path)
    return load_certified(path)


def load_approximation(folder: str | Path) -> Approximation:
    """The Approximation of a folder. An edited file is refused, and so is a layer for sequences of any length."""
    found = load_certified(folder)
    if isinstance(found, SequenceLayer):
        asked, has = "a layer of one input length", f"one for sequences of 1 to {found.longest:,}"
        raise InputError(asked, has, "choose a length in Python: ol.load(folder).at_length(n)")
    return found


def load_certified(folder: str | Path) -> Approximation | SequenceLayer:
    """The layer of a folder with its certificate. An edited file is refused."""
    folder = Path(folder)
    require_files(folder, FILES)
    contents = {name: _read(folder / name) for name in FILES}  # once: they may be replaced meanwhile
    listed = _record(contents, FILES[2]).get("sha256", {})
    contents |= {name: _read(folder / name) for name in PROMPT_FILES if name in listed}
    return certified_of(contents)


def certified_of(contents: dict[str, bytes]) -> Approximation | SequenceLayer:
    """The layer of the files of a folder (`files_of`)."""
    record = _verified(contents)
    about = _record(contents, FILES[1])
    try:
        description = SequenceTask.from_json(about) if "longest" in about else Description.from_json(about)
        target = description.target() if isinstance(description, Description) else None
        certificate = Certificate.from_json(record)
    except InputError:
        raise  # already says what is wrong
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        found = f"{type(error).__name__} {error}"
        raise InputError("a complete target.json and certificate.json", found, "build the folder again") from None
    model, facts = model_of(contents[FILES[0]], certificate.weight_format)
    _require_fit(description, model, facts)
    if isinstance(description, SequenceTask) and certificate.domain != description.quantifier:
        raise InputError("a certificate for the task of target.json", certificate.domain, "build the folder again")
    if certificate.weights != model.fingerprint():
        raise InputError("the weights that were certified", "other weights", "build the folder again")
    require_same(contents, model)
    if isinstance(description, SequenceTask):
        kind = LanguageModel if description.kind == "language" else SequenceLayer
        return kind(model, certificate, facts, description)
    return Approximation(model, certificate, facts, description, target)


def _require_fit(description: Description | SequenceTask, model: SingleLayerTransformer, facts: Facts) -> None:
    """Vocabulary, lengths and shapes fit the model."""
    c, vocabulary = model.config, description.vocabulary
    if isinstance(description, SequenceTask):
        at_positions = c.readout == "position"
        shaped = description.outputs == c.features_out and at_positions == (description.answer == "position")
        shaped &= c.any_length and c.tokens == description.longest
    else:
        shaped = math.prod(description.output_shape) == len(facts.places) * c.features_out and not c.any_length
    whole = vocabulary is None or (type(vocabulary) is int and vocabulary == c.features_in)
    whole &= vocabulary is not None or not isinstance(description, SequenceTask) or c.features_in == 1
    if not (shaped and whole and all(0 <= p < c.places for p in facts.places)):
        found = "a vocabulary or a shape of something else"
        raise InputError("a target.json that fits its model", found, "build the folder again")


def _weights(approximation: Approximation | SequenceLayer) -> bytes:
    facts = asdict(approximation.facts)
    about = {"config": json.dumps(asdict(approximation.model.config)), "facts": json.dumps(facts)}
    return weights_file(packed(approximation.model, approximation.certificate.weight_format), metadata=about)


def model_of(content: bytes, weight_format: str = "") -> tuple[SingleLayerTransformer, Facts]:
    """The model in a file of weights, and how it was found; bfloat16 and int8 only if the certificate says so."""
    try:
        tensors, found = unpacked(tensors_of(content))
        about = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])["__metadata__"]
        config = LayerConfig(**json.loads(about["config"]))
        given = json.loads(about["facts"])
        given["heads"] = tuple((str(kind), int(count)) for kind, count in given["heads"])
        facts = Facts(**{f.name: _tuple(given[f.name]) for f in fields(Facts) if f.name in given})
        dtype = tensors["W_E"].dtype
        model = SingleLayerTransformer(config, dtype=dtype if dtype == torch.float32 else torch.float64)
        model.load_state_dict(tensors)
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        found = " ".join(str(error).split())[:200]
        raise InputError(f"weights in {FILES[0]}", found, "build the folder again") from None
    if weight_format != (found if found in ("bfloat16", "int8") else ""):
        raise InputError(f"{weight_format or 'float64 or float32'} weights", f"{found}", "build the folder again")
    return model.eval(), facts


def _verified(contents: dict[str, bytes]) -> dict[str, Any]:
    """The record of the certificate, once its digests match the files and the record itself."""
    record = _record(contents, FILES[2])
    claimed = dict(record)
    digest = claimed.pop("digest", None)
    if record.get("schema") not in READABLE:
        known = " or ".join(map(str, READABLE))
        raise InputError(f"certificate schema {known}", f"{record.get('schema')}", "use the version that wrote it")
    if digest != _digest(_json(claimed).encode()):
        raise InputError("an untouched certificate.json", "its digest does not fit", "build the folder again")
    for name in contents.keys() - {FILES[2]}:
        if record.get("sha256", {}).get(name) != _digest(contents[name]):
            raise InputError(f"an untouched {name}", "its digest does not fit", "build the folder again")
    return record


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path.name} of a model folder", f"{error.strerror}", "build the folder again") from None


def _record(contents: dict[str, bytes], name: str) -> dict[str, Any]:
    try:
        found = json.loads(contents[name])
    except ValueError as error:
        raise InputError(f"JSON in {name}", " ".join(str(error).split())[:200], "build the folder again") from None
    if not isinstance(found, dict):
        raise InputError(f"a JSON object in {name}", type(found).__name__, "build the folder again")
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
