"""The checker as its users run it: a file of its own, without the checks of signatures that slow every call down in the tests."""

import hashlib
import importlib.util
import json
import shutil
import sys
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

import onelayer as ol
from onelayer.approximation import Approximation, Facts
from onelayer.layer.assemble import assemble, frame_of, head_kinds, outputs_of
from onelayer.layer.magnitudes import total_of
from onelayer.proof.certificate import Certificate

SOURCE = Path(ol.__file__).parent / "checker.py"

spec = importlib.util.spec_from_file_location("alone", SOURCE)
checker = sys.modules["alone"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(checker)
check = checker.check


def forged(source, destination, certificate=lambda r: r, target=lambda t: t, weights=None, stale=False):
    """A copy with edits; all digests are made to fit unless `stale`."""
    shutil.copytree(source, destination)
    paths = [destination / name for name in checker.FILES]
    if weights is not None:
        with safe_open(paths[0], framework="pt") as file:
            about, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        weights(tensors)
        save_file(tensors, paths[0], metadata=about)
    paths[1].write_text(written(target(json.loads(paths[1].read_text()))))
    record = json.loads(paths[2].read_text())
    if not stale and weights is not None:
        digest = hashlib.sha256()
        for name, t in sorted(tensors.items()):
            digest.update(f"{name} {t.dtype} {list(t.shape)}".encode() + t.numpy().tobytes())
        record["weights"] = digest.hexdigest()
    record = certificate(record)
    if not stale:
        record["sha256"] = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in paths[:2]}
        record.pop("digest")
        record["digest"] = hashlib.sha256(written(record).encode()).hexdigest()
    paths[2].write_text(written(record))
    return destination


def written(record):
    return json.dumps(record, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)


def numbers(*rows):
    return torch.tensor(rows, dtype=torch.float64)


def by_hand(folder, formula, domain, layer, bound, **options):
    """A folder with a layer made by hand and a claimed bound."""
    target = ol.Target(formula, domain, **options)
    model = assemble(layer, frame_of(target.domain), outputs_of(target))
    claim = Certificate(bound, bound, 0.0, 1, "analytic", str(target.domain), weights=model.fingerprint())
    facts = Facts(
        "solved", "gates", "token", head_kinds(layer, outputs_of(target), "token"), layer.units, total_of(layer)
    )
    return Approximation.of(model, target, claim, facts).save(folder)
