"""The quickest evaluation of a layer that its certificate covers.

An analytic certificate bounds the rounding of explicit softmax attention and of the factored form (`certify/deployed`) on the
box of the domain. There the form read from the weights is evaluated without the layer around it (`fast`); elsewhere, and for
all other certificates, the model itself.
"""

import numpy as np
import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from .approximation import Approximation, Outside
from .certify.reading import form_of_model
from .fast import Factored


class Evaluator:
    """x ↦ T(x) for batches of points, in the arithmetic of the weights."""

    def __init__(self, approximation: Approximation, outside: Outside = "allow") -> None:
        self.approximation, self.outside, self.form = approximation, outside, covered_form(approximation)
        ends = (approximation.domain.lower, approximation.domain.upper)
        self.lower, self.upper = (torch.tensor(end, dtype=torch.float64) for end in ends)

    def __call__(self, x: Float[np.ndarray, "point coordinate"]) -> Shaped[np.ndarray, "point out"]:
        given = torch.from_numpy(x).to(self.approximation.model.W_E.dtype)
        with torch.no_grad():
            return self._values(given).numpy()

    def _values(self, x: Tensor) -> Tensor:
        if self.form is None:
            return self._model(x)
        inside = ((x >= self.lower) & (x <= self.upper)).all(dim=1)
        if inside.all():
            return self.form(x)
        y = x.new_empty(len(x), len(self.form.form.bias))
        y[inside], y[~inside] = self.form(x[inside]), self._model(x[~inside])
        return y

    def _model(self, x: Tensor) -> Tensor:
        found: Tensor = self.approximation(x, self.outside)
        return found.reshape(len(x), -1)


def covered_form(approximation: Approximation) -> Factored | None:
    """The form that the weights have on the domain, if the certificate speaks of it and it has no hinges."""
    if approximation.certificate.method != "analytic" or approximation.vocabulary is not None:
        return None
    reading = form_of_model(approximation.model, approximation.facts.places)
    if reading is None or len(reading.hinge_values):
        return None
    ends = torch.tensor([approximation.domain.lower, approximation.domain.upper], dtype=torch.float64)
    known = bool((reading.frame(ends).abs() <= reading.edge).all())
    return Factored(reading.form, reading.frame) if known else None
