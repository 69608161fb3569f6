"""An Approximation of samples as plain arrays, numbers and text, for pickle and the like, and back."""

from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch

from ...approximation import Approximation
from ...layer.facts import Facts
from ...model.config import LayerConfig
from ...model.history import History, Moment
from ...model.transformer import SingleLayerTransformer
from ...proof.certificate import Certificate
from ...target.description import Description


def record_of(approximation: Approximation) -> dict[str, Any]:
    """Weights as NumPy arrays; everything else as JSON would have it."""
    history = approximation.history
    return {
        "config": asdict(approximation.model.config),
        "weights": {name: t.detach().numpy().copy() for name, t in approximation.model.state_dict().items()},
        "facts": asdict(approximation.facts),
        "certificate": approximation.certificate.as_json(),
        "target": approximation.description.as_json(),
        "history": None if history is None else history.record(),
    }


def approximation_of(record: dict[str, Any]) -> Approximation:
    """The Approximation of a record; its answers are equal bit by bit."""
    weights = {name: torch.from_numpy(np.array(array)) for name, array in record["weights"].items()}
    model = SingleLayerTransformer(LayerConfig(**record["config"]), dtype=weights["W_E"].dtype)
    model.load_state_dict(weights)
    facts = {f.name: _frozen(record["facts"][f.name]) for f in fields(Facts)}
    past = record["history"]
    history = None
    if past is not None:
        moments = tuple(Moment(**moment) for moment in past["moments"])
        history = History(moments, past["best"], past["stopped"], past["seconds"])
    certificate, description = Certificate.from_json(record["certificate"]), Description.from_json(record["target"])
    return Approximation(model.eval(), certificate, Facts(**facts), description, history=history)


def _frozen(value: Any) -> Any:
    return tuple(_frozen(v) for v in value) if isinstance(value, list | tuple) else value
