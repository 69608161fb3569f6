"""What the tests of exports share: layers around random models, and scripts that run without onelayer."""

import math
import subprocess
import sys

import numpy as np

from onelayer.approximation import Approximation, Facts
from onelayer.model.transformer import SingleLayerTransformer
from onelayer.proof.certificate import Certificate
from onelayer.target.description import Description
from onelayer.target.domain import domain_of

SINES = ("sin(x1)+sin(x2)", [(0, "2*pi")] * 2)


def wrapped(model: SingleLayerTransformer, places: tuple[int, ...] | None = None) -> Approximation:
    """A model as an Approximation on [−1, 2]^D, of nothing in particular."""
    c = model.config
    places = tuple(range(c.places)) if places is None else places
    arithmetic = str(model.W_E.dtype).removeprefix("torch.")
    certificate = Certificate(1.0, math.inf, 0.0, 0, "none", "anywhere", arithmetic, weights=model.fingerprint())
    facts = Facts("trained", "", "position", (("trained", c.heads),), c.heads, 0.0, places=places)
    domain = domain_of([(-1, 2)] * (c.tokens * c.features_in))
    shape = (len(places), c.features_out) if len(places) > 1 else (c.features_out,)
    about = {
        "kind": "callable",
        "text": "nothing in particular",
        "shape": (c.tokens, c.features_in),
        "output_shape": shape,
    }
    return Approximation(model, certificate, facts, Description(domain=domain, **about))


def size_of(approximation: Approximation) -> float:
    """How large the answers are."""
    x = approximation.domain.points(np.random.default_rng(9).random((200, approximation.domain.dimension)))
    x = np.rint(x) if approximation.vocabulary is not None else x
    return 1 + float(np.abs(approximation(x)).max())


def run_alone(code: str, *arguments: object) -> str:
    """What a fresh Python prints that never imports onelayer."""
    code += "\nimport sys\nassert not any(name.split('.')[0] == 'onelayer' for name in sys.modules)\n"
    command = [sys.executable, "-c", code, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return found.stdout
