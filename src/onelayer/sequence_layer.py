"""SequenceLayer: one layer for sequences of any length, what it computes, and what is proved about it for all of them."""

import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .approximation import Approximation
from .common.checks import known_options
from .common.errors import InputError
from .common.table import Table
from .layer.facts import Facts
from .model.transformer import SingleLayerTransformer
from .proof.certificate import Certificate
from .proof.circuit.circuit import Circuit
from .target.description import Description
from .target.domain import domain_of
from .target.sequence_task import SequenceTask

CHUNK = 2**22  # attention weights or hidden units held at a time when evaluating


@dataclass(frozen=True, eq=False)
class SequenceLayer:
    """T ≈ f on every sequence of 1 to `longest` numbers or tokens, with one set of weights.

    Call it with a sequence, an array of sequences, or a list of sequences of different length. The certificate names the
    quantifier: it holds for all lengths at once.
    """

    model: SingleLayerTransformer
    certificate: Certificate
    facts: Facts
    description: SequenceTask

    @property
    def longest(self) -> int:
        """The largest length."""
        return self.description.longest

    @property
    def parameters(self) -> int:
        return self.model.parameter_count

    def __call__(self, x: Any) -> Any:
        """T(x) as NumPy arrays: for one sequence, for an array of them, or a list for a list of different lengths."""
        return self._answered(x, lambda y: y)

    def answer(self, x: Any) -> Any:
        """The whole numbers, tokens or labels that T(x) stands for; right wherever the proved bound is below ½."""
        decoding = self.description.decoding
        if decoding is None:
            raise InputError("a layer whose answers are whole numbers or labels", "real values", "call it instead")
        return self._answered(x, decoding)

    def covers(self, x: Any) -> Any:
        """Whether the certificate speaks of a sequence exactly as it is given; an array of bools for several."""
        together, padding, lengths = self.description.batch(x)
        single = self.model.W_E.dtype == torch.float32
        held = [self.description.covers(row, single) for row in _rows(together.numpy(), padding)]
        return held[0] and self.unchanged if lengths is None else np.array(held, dtype=bool) & self.unchanged

    def attention(self, x: Any) -> Float[np.ndarray, "head row token"]:
        """The attention weights α_ij at one sequence, Eq. (5): rows and columns are its tokens, then the special ones."""
        together, _, lengths = self.description.batch(x)
        if lengths is not None and len(lengths) != 1:
            raise InputError("one sequence", f"{len(lengths)}", "pass one of them")
        with torch.no_grad():
            found = self.model.attention(self.description.features(together.to(self.model.W_E.dtype)))
        return np.asarray(found[0].double().numpy())

    def at_length(self, n: int) -> Approximation:
        """The layer for sequences of exactly n, as an Approximation: to export it, to draw it, to explain a value."""
        self.require_unchanged()  # the certificate goes along, with the fingerprint of the cut weights
        d, c = self.description, self.certificate
        model = self.model.at_length(n)
        shape = (n if d.answer == "position" else 1, *((d.outputs,) if d.outputs > 1 else ()))
        description = Description(
            kind="gallery",
            text=f"{d.text}, n = {n}",
            domain=domain_of([d.ends] * n),
            shape=(n, 1),
            output_shape=shape,
            entry=d.entry,
            parameters=d.parameters | {"n": n},
            vocabulary=d.vocabulary,
            decoding=d.decoding,
        )
        places = tuple(range(n)) if d.answer == "position" else (0,)
        facts = replace(self.facts, places=places)
        domain = f"the sequences of {n} among {c.domain}"
        certificate = replace(c, weights=model.fingerprint(), domain=domain)
        return Approximation(model, certificate, facts, description)

    @known_options
    def circuit(self, n: int, seconds: float = 60.0, accuracy: float = 0.05, seed: int = 0) -> Circuit:
        """The circuit of the layer for sequences of exactly n: heads and hidden units, edges, and the proved effect of each."""
        return self.at_length(n).circuit(seconds, accuracy, seed)

    @property
    def unchanged(self) -> bool:
        """Whether the weights are those that the certificate is about."""
        return self.certificate.weights == self.model.fingerprint()

    def require_unchanged(self) -> None:
        """Refuse a model that is not the one that the certificate is about."""
        if not self.unchanged:
            found, change = "a model that was changed after it was certified", "take the model as built"
            raise InputError("the weights that the certificate is about", found, change)

    @known_options
    def save(self, folder: str | Path, overwrite: bool = False) -> Path:
        """Write the model folder: weights, task, certificate. `ol.load` reads it again."""
        from .deployment.folder import save

        return save(self, Path(folder), overwrite)

    @known_options
    def report(self, path: str | Path = "report.html", overwrite: bool = False) -> Path:
        """Write the report: one page with the certificate and the layer at any sequence that is typed; it needs no network.

        `overwrite=True` replaces a file of that name.
        """
        from .views.report import report

        return report(self, path, overwrite)

    def table(self) -> Table:
        c = self.certificate
        rows: list[tuple[object, ...]] = [
            ("computes", self.description.text),
            ("for", c.domain),
            ("verdict", c.headline if self.unchanged else "none: the model was changed after it was certified"),
            ("tolerance", c.tolerance_text),
            ("bound (proved)", c.stated_bound if self.unchanged else "none proved"),
            ("error", c.norm),
            ("observed error", f"{c.observed_text} at {c.observed_points:,} sequences"),
            ("heads", ", ".join(f"{count} {kind}" for kind, count in self.facts.heads)),
            ("parameters", f"{self.parameters:,}"),
            ("seconds", f"{self.facts.seconds:.2f}"),
            *(("what heads do" if i == 0 else "", line) for i, line in enumerate(textwrap.wrap(self.facts.story, 100))),
            *(("note", note) for note in self.facts.notes),
        ]
        return Table("One layer for sequences of any length", ("", "value"), rows)

    def __repr__(self) -> str:
        return str(self.table())

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()

    def _answered(self, x: Any, then: Callable[[np.ndarray], np.ndarray]) -> Any:
        if str(self.model.W_E.dtype) != f"torch.{self.certificate.arithmetic}":
            self.require_unchanged()
        together, padding, lengths = self.description.batch(x)
        y = then(self.values(together, padding))
        if lengths is None:
            return y[0][()] if y.ndim == 1 else y[0]
        if padding is None or self.description.answer == "whole":
            return y
        return [row[:n] for row, n in zip(y, lengths, strict=True)]

    def values(
        self, x: Float[Tensor, "batch n"], padding: Bool[Tensor, "batch n"] | None = None
    ) -> Float[np.ndarray, "batch ..."]:
        """T at a padded batch: [batch, n] or [batch], with one axis more if an answer has several numbers."""
        c, d = self.model.config, self.description
        width = max(c.heads * (x.shape[1] + c.special_tokens), c.ffn_width, c.features_in)
        rows = max(1, CHUNK // (width * (1 if c.readout == "output" else x.shape[1])))
        found = []
        with torch.no_grad():
            for start in range(0, len(x), rows):
                part = x[start : start + rows].to(self.model.W_E)
                masked = None if padding is None else padding[start : start + rows].to(part.device)
                found.append(self.model(d.features(part), masked).cpu())
        y = torch.cat(found) if found else x.new_zeros(0, x.shape[1] if d.answer == "position" else 1, d.outputs)
        y = y if d.answer == "position" else y[:, 0]
        return y.squeeze(-1).numpy() if d.outputs == 1 else y.numpy()


def _rows(x: np.ndarray, padding: Tensor | None) -> list[np.ndarray]:
    """The sequences of a padded batch, without their padding."""
    return [
        row if padding is None else row[~hidden.numpy()]
        for row, hidden in zip(x, padding if padding is not None else x, strict=True)
    ]


def observed_error(layer: SequenceLayer, batches: list[tuple[np.ndarray, np.ndarray]]) -> tuple[float, int]:
    """The largest |T − f| over batches (sequences of one length, exact answers), and the number of sequences."""
    worst, count = 0.0, 0
    for x, y in batches:
        found = layer.values(torch.from_numpy(x.astype(np.float64))).astype(np.float64)
        error = np.abs(found - y.reshape(found.shape))
        worst = math.nan if not np.isfinite(error).all() else max(worst, float(error.max(initial=0.0)))
        count += len(x)
    return worst, count
