"""safetensors: the weights under their names, the configuration and what they compute as JSON in the metadata."""

import json
from dataclasses import asdict, replace

import numpy as np
from safetensors.torch import load, save

from ...model.transformer import SingleLayerTransformer
from .subject import Made, Subject


def make(subject: Subject, x: np.ndarray) -> Made:
    """The file, read back and compared at the points x."""
    weights = {name: t.detach().contiguous() for name, t in subject.model.state_dict().items()}
    read = SingleLayerTransformer(subject.model.config, dtype=subject.model.W_E.dtype)
    read.load_state_dict(load(save(weights)))
    measured = subject.measure(replace(subject.approximation, model=read.eval()), x)
    about = subject.about() | measured.words() | {"config": json.dumps(asdict(subject.model.config))}
    about |= {"places": json.dumps(subject.places), "output_shape": json.dumps(subject.approximation.output_shape)}
    about |= {"vocabulary": json.dumps(subject.approximation.vocabulary)}
    return Made({"model.safetensors": save(weights, metadata=about)}, measured)
